"""History: noisy answers that were paid for answer further questions."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from workbench.compiled import pd
from workbench.datasets import IPUMSTwin, Projected
from workbench.estimates import NoisyAnswers
from workbench.estimates.release import Release
from workbench.figures.plots import Panel
from workbench.inference import KernelPCA, product_prior, select_alpha
from workbench.inference.eigenqueries import Eigenqueries, ProjectedQueries
from workbench.mechanisms import LaplaceQueries
from workbench.noise import Aligned
from workbench.privacy import DP
from workbench.queries import (
    First,
    Linear,
    Marginals,
    RandomMarginalRanges,
    RandomTables,
    Recipe,
    linear_queries,
)
from workbench.spaces import Domain
from workbench.trials.claims import interpolate_log_log
from workbench.trials.metrics import coverage, rmse
from workbench.value import format_number, value
from workbench.widgets.controls import Control, decades, field_control
from workbench.widgets.scenes import Picture, Setup, Values, joined_lines, loaded
from workbench.widgets.scenes.summaries import refuse_many
from workbench.widgets.view import Setting, qualified_text

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from workbench.inference.cross_validation import SelectedAlpha


# Inferred

NEW = RandomMarginalRanges(200, seed=1)
COUNTS = LaplaceQueries(DP(0.02), Marginals(1))  # behind the prior
SHOWN = 48  # queries whose answers are drawn


@lru_cache(8)
def _queries(workload: Recipe, domain: Domain) -> Linear:
    """A recipe's queries: the same ones, so that their sensitivity is worked out once."""
    return linear_queries(workload, domain)


@lru_cache(8)
def history_release(dataset: Any, mechanism: LaplaceQueries, seed: int) -> Release:
    """Past queries with their noise, which the seed replays."""
    data = loaded(dataset)
    queries = _queries(mechanism.workload, data.domain)
    release = replace(mechanism, workload=queries)(data, Aligned(seed))
    return replace(release, mechanism=mechanism)


@lru_cache(16)
def _eigenqueries(domain: Domain, past: First, method: KernelPCA) -> Eigenqueries:
    """Of past queries whose answers are 0, with noise of deviation 1: no data has a part in it."""
    queries = linear_queries(past, domain)
    count = len(queries)
    return method(NoisyAnswers(domain, queries, np.zeros(count), np.ones(count))).eigen


@lru_cache(32)
def projected_queries(
    domain: Domain, past: First, method: KernelPCA, workload: Recipe
) -> ProjectedQueries:
    """A workload as combinations of eigenqueries."""
    return _eigenqueries(domain, past, method).project(workload)


@lru_cache(8)
def prior_weights(dataset: Any, seed: int) -> tuple[Release, tuple[Any, ...]]:
    """The counts that are bought for the prior, and its weights."""
    release = COUNTS(loaded(dataset), Aligned(prior_seed(seed)))
    return release, product_prior(release.estimate)


def prior_seed(seed: int) -> list[int]:
    """The seed of the prior's noise, apart from the history's."""
    return [seed, 1]


@lru_cache(8)
def validated_alpha(
    dataset: Any, mechanism: LaplaceQueries, total: float, prior: bool, seed: int
) -> SelectedAlpha:
    """The α of cross-validation."""
    history = history_release(dataset, mechanism, seed).estimate
    weights = prior_weights(dataset, seed)[1] if prior else None
    return select_alpha(history, total=total, prior=weights)


@lru_cache(16)
def exact_answers(dataset: Any, workload: Recipe) -> Float[np.ndarray, " queries"]:
    """The truth."""
    return loaded(dataset).answer(workload)


@lru_cache(1)
def unit_price(domain: Domain) -> float:
    """The ε at which new queries are answered with an error of 1 tuple; it is inverse to the error."""
    return LaplaceQueries(DP(1.0), NEW).epsilon_for(domain, 1.0)


def evenly_by_truth(
    exact: Float[np.ndarray, " queries"],
) -> tuple[Int[np.ndarray, " shown"], Int[np.ndarray, " shown"]]:
    """Ranks of some queries, evenly among all by their truth, and which queries they are."""
    rank = np.unique(np.linspace(0, len(exact) - 1, SHOWN).astype(np.int64))
    return rank + 1, np.argsort(exact, kind="stable")[rank]


# History

RANGES, TABLES = "ranges", "tables"
NAMES = IPUMSTwin().domain.attributes
MAX_QUERIES = 1000  # past ones
PAST: dict[str, Recipe] = {
    RANGES: RandomMarginalRanges(MAX_QUERIES),
    TABLES: RandomTables(MAX_QUERIES),
}
ALPHAS = np.geomspace(10, 1e7, 25)
USED = 25, 50, 100, 200, 400, 800  # past queries, besides all
VALIDATED = range(20, 401)  # past queries: with more of them cross-validation takes long
OVER, ALONE, GROWN, ASKED, KEPT = "over", "alone", "grown", "asked", "kept"
TRUTH, BOUGHT, FRESH = "truth", "bought", "new ranges"


@value
class History:
    """Kernel PCA on the noisy answers to random questions about made-up adults."""

    name: ClassVar[str] = "history"
    title: ClassVar[str] = "A history of noisy answers"
    words: ClassVar[str] = (
        "m random questions about two attributes each are answered with noise, for ε together. Kernel "
        "PCA answers new ones from these answers alone. A small α trusts the prior: that all cells are "
        "alike or, once counts of single attributes are bought for it, that attributes are "
        "independent. A large α trusts the answers, noise and all."
    )
    noise_note: ClassVar[str] = (
        "Moving α, the prior or the number of people touches no noise. All else scales it, save that "
        "geometric noise is drawn anew where its scale passes 250 tuples. A larger m asks the same "
        "questions and more; another kind, or other attributes, are other questions."
    )
    controls: ClassVar[tuple[Control, ...]] = (
        Control(
            "epsilon",
            0.05,
            decades(0.005, 5),
            label="ε",
            doc="privacy loss of all past answers together",
        ),
        field_control(KernelPCA, "alpha", 1e4, decades(10, 1e7), label="α"),
        field_control(
            First,
            "count",
            200,
            decades(20, MAX_QUERIES, whole=True),
            label="past queries, m",
            unit="",
        ),
        Control(
            "prior", True, kind="switch", doc="counts of single attributes, bought for ε = 0.02"
        ),
        Control(
            "past",
            RANGES,
            (RANGES, TABLES),
            "choice",
            label="kind of past queries",
            doc="ranges of two attributes, or any of their cells; new queries are ranges",
        ),
        field_control(LaplaceQueries, "noise", "laplace"),
        field_control(
            IPUMSTwin,
            "records",
            50_000,
            decades(10_000, 500_000, whole=True),
            label="people",
            unit="",
        ),
        Control(
            "attributes",
            len(NAMES),
            (2, 3, 4, 6, len(NAMES)),
            "choice",
            doc="of the people; the first so many",
        ),
    )

    def setup(self, values: Values) -> Setup:
        """The first m questions of a list, and Laplace's or geometric noise on their answers."""
        refuse_many("First.count", values["count"], MAX_QUERIES)
        refuse_many("IPUMSTwin.records", values["records"])
        questions = First(values["count"], PAST[values["past"]])
        mechanism = LaplaceQueries(DP(values["epsilon"]), questions, values["noise"])
        people = IPUMSTwin(values["records"])
        attributes = NAMES[: values["attributes"]]
        return Setup(
            people if attributes == NAMES else Projected(people, attributes), mechanism
        )

    def after(self, setting: Setting, seed: int) -> str:
        """What is inferred from the release, and from the counts behind the prior."""
        values = setting.values
        data = f"{qualified_text(setting.dataset)}.load()"
        options = f"alpha={values['alpha']!r}, total={values['records']}"
        lines = []
        if values["prior"]:
            counts = f"{qualified_text(COUNTS)}({data}, Aligned({prior_seed(seed)}))"
            lines.append(f"counts = {counts}")
            options += ", prior=inference.product_prior(counts.estimate)"
        lines.append(f"posterior = inference.KernelPCA({options})(release.estimate)")
        lines.append(f"answers, errors = posterior.answer({NEW!r}, error=True)")
        return "\n".join(lines)

    def release(self, setting: Setting, seed: int) -> Release:
        """The mechanism's, drawn once for every α and prior."""
        return history_release(setting.dataset, setting.mechanism, seed)

    def picture(
        self, setting: Setting, data: Any, release: Release, seed: int, exact: bool
    ) -> Picture:
        """Errors over α and past queries; answers beside the truth; α validated if it is exact."""
        alpha = setting.values["alpha"]
        series = _series(setting)
        counts, weights = None, None
        if setting.values["prior"]:
            counts, weights = prior_weights(setting.dataset, seed)
        method = KernelPCA(alpha, setting.values["records"], weights)
        history = release.estimate
        m = len(history)
        past_queries = setting.mechanism.workload
        noise = float(np.sqrt(history.variances[0]))

        def inferred(used: int, workload: Any) -> ProjectedQueries:
            """The answers to a workload, from the first so many past ones."""
            first = First(used, past_queries.workload)
            queries = projected_queries(
                data.domain, first, replace(method, alpha=1.0), workload
            )
            return queries.with_answers(history.values[:used], noise)

        new = inferred(m, NEW)
        past = inferred(m, past_queries)
        new_truth = exact_answers(setting.dataset, NEW)
        past_truth = exact_answers(setting.dataset, past_queries)
        answers = new.values(alpha)

        lines = []
        alphas = np.union1d(ALPHAS, alpha)
        for name, queries, truth in (
            (FRESH, new, new_truth),
            (_past(setting), past, past_truth),
        ):
            errors = [rmse(queries.values(a), truth) for a in alphas]
            lines.append(_line(OVER, f"{series}, {name}", "RMSE", "alpha", alphas, errors))
        noise_alone = [rmse(new.sampling(a), np.zeros_like(new_truth)) for a in alphas]
        lines.append(_line(ALONE, series, "RMSE", "alpha", alphas, noise_alone))
        used = [n for n in (USED if exact else USED[:1]) if n < m]
        used.append(m)
        errors = [rmse(inferred(n, NEW).values(alpha), new_truth) for n in used]
        lines.append(_line(GROWN, f"{series}, {FRESH}", "RMSE", "queries", used, errors))
        fresh = {TRUTH: new_truth, series: answers}
        bought = {TRUTH: past_truth, BOUGHT: history.values, series: past.values(alpha)}
        for panel, answers_by_series in ((ASKED, fresh), (KEPT, bought)):
            rank, query = evenly_by_truth(answers_by_series[TRUTH])
            for name, counts_of in answers_by_series.items():
                lines.append(_line(panel, name, "Count", "query", rank, counts_of[query]))
        rows = joined_lines(lines).assign(deviation=noise)

        facts = [("noise bought", f"± {format_number(noise)} tuples on each answer")]
        if counts:
            cost = f"{counts.privacy}, for counts that are bought too"
            facts.append(("of it, the prior", cost))
        bars = new.errors(alpha)
        once = coverage(answers, bars, new_truth)
        twice = coverage(answers, 2 * bars, new_truth)
        held = f"hold {once:.0%} of new answers, twice as long {twice:.0%}"
        facts.append(("error bars", held))
        price = format_number(unit_price(data.domain) / rmse(answers, new_truth))
        facts.append(("to ask instead", f"ε = {price} more for the error that new ranges have"))
        if exact and m in VALIDATED:
            prior = setting.values["prior"]
            best = validated_alpha(
                setting.dataset, setting.mechanism, method.total, prior, seed
            )
            best_alpha = f"α = {format_number(best.alpha)}"
            error = f"an error of about {format_number(best.rmse)}"
            facts.append(("cross-validation", f"{best_alpha}, for {error}"))
        return Picture(rows, facts, ledger=counts.ledger if counts else ())

    def panels(self, setting: Setting, rows: pd.DataFrame) -> list[Panel]:
        """Error over α and over m, with the noise that was bought; new and past answers."""
        noise = float(rows.deviation.mean())
        bought = "noise of a bought answer", partial(_constant, noise)
        alone = rows[rows.panel == ALONE].groupby("alpha").value.mean()
        least = rows[rows.panel == OVER].value.min() / 3  # axes reach down to all that is drawn
        law = partial(_above, least, alone.index, interpolate_log_log(alone.index, alone))
        theory = bought, (f"{FRESH}, noise alone", law)
        over: dict[str, Any] = dict(
            theory=theory, fit_theory=True, mark=setting.values["alpha"]
        )
        grown: dict[str, Any] = dict(theory=bought, fit_theory=True)
        first = rows.seed.min()
        fresh = dict(panel=ASKED, seed=first)
        kept = dict(panel=KEPT, seed=first)
        past = _past(setting).capitalize()
        return [
            Panel("Error over α", {"panel": OVER}, "alpha", **over),
            Panel("Error over past queries", {"panel": GROWN}, "queries", **grown),
            Panel(f"{FRESH.capitalize()}, from past answers", fresh, "query", log=""),
            Panel(f"{past}, bought and improved", kept, "query", log=""),
        ]


def _line(panel: str, series: str, metric: str, x: str, at: Any, values: Any) -> dict[str, Any]:
    return {"panel": panel, "series": series, "metric": metric, x: at, "value": values}


def _series(setting: Setting) -> str:
    return "with prior" if setting.values["prior"] else "no prior"


def _past(setting: Setting) -> str:
    return f"past {setting.values['past']}"


def _constant(y: float, x: np.ndarray) -> np.ndarray:
    return np.full(len(x), y)


def _above(least: float, alphas: pd.Index, law: Any, x: np.ndarray) -> np.ndarray:
    """A law, from `least` on; beyond the alphas as at their ends."""
    y = law(np.clip(x, alphas[0], alphas[-1]))
    return np.where(y < least, np.nan, y)
