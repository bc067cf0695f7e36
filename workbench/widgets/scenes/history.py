"""History: noisy answers that were bought answer further questions, with no look at the data."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from workbench.claims import format_number
from workbench.datasets import IPUMSTwin, Projected
from workbench.domain import Domain
from workbench.estimates import NoisyAnswers
from workbench.inference import KernelPCA, product_prior, select_alpha
from workbench.inference.eigenqueries import Eigenqueries, ProjectedQueries
from workbench.mechanism import Release
from workbench.mechanisms import LaplaceQueries
from workbench.metrics import coverage, rmse
from workbench.noise import Aligned
from workbench.plots import Panel
from workbench.privacy import DP
from workbench.value import value
from workbench.widgets.controls import Control, decades, field_control
from workbench.widgets.scenes import Picture, Setup, Values, loaded, written
from workbench.widgets.scenes.summaries import refuse_many
from workbench.workload import (
    First,
    Marginals,
    RandomMarginalRanges,
    RandomTables,
    Workload,
    linear_queries,
)

RANGES, TABLES = "ranges", "tables"
NAMES = IPUMSTwin().domain.attributes
MOST = 1000  # past queries
PAST = {RANGES: RandomMarginalRanges(MOST), TABLES: RandomTables(MOST)}
NEW = RandomMarginalRanges(200, seed=1)
COUNTS = LaplaceQueries(DP(0.02), Marginals(1))  # behind the prior
ALPHAS = np.geomspace(10, 1e7, 25)
USED = 25, 50, 100, 200, 400, 800  # past queries, besides all
SHOWN = 48  # queries whose answers are drawn
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
            First, "count", 200, decades(20, MOST, whole=True), label="past queries, m", unit=""
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
    grid: ClassVar[dict[str, tuple]] = {
        "epsilon": (0.01, 0.05, 0.2, 1.0),
        "alpha": (1e3, 1e4, 1e5, 1e7),
        "count": (50, 200, 600),
        "prior": (False, True),
        "past": (RANGES, TABLES),
    }

    def setup(self, values: Values) -> Setup:
        """The first m questions of a list, and Laplace's or geometric noise on their answers."""
        refuse_many("First.count", values["count"], MOST)
        refuse_many("IPUMSTwin.records", values["records"])
        asked = First(values["count"], PAST[values["past"]])
        made = LaplaceQueries(DP(values["epsilon"]), asked, values["noise"])
        people, kept = IPUMSTwin(values["records"]), NAMES[: values["attributes"]]
        return Setup(people if kept == NAMES else Projected(people, kept), made)

    def after(self, values: Values, seed: int) -> str:
        """What is inferred from the release, and from the counts behind the prior."""
        data = f"{written(self.setup(values).dataset)}.load()"
        told, lines = f"alpha={values['alpha']!r}, total={values['records']}", []
        if values["prior"]:
            lines.append(f"counts = {written(COUNTS)}({data}, Aligned({_other(seed)}))")
            told += ", prior=inference.product_prior(counts.estimate)"
        lines.append(f"posterior = inference.KernelPCA({told})(release.estimate)")
        return "\n".join([*lines, f"answers, errors = posterior.answer({NEW!r}, error=True)"])

    def look(
        self, values: Values, data: Any, release: Release, seed: int, exact: bool
    ) -> Picture:
        """Errors over α and past queries; answers beside the truth; α validated if it is exact."""
        (dataset, mechanism), alpha = self.setup(values), values["alpha"]
        counts, weights = prior(dataset, seed) if values["prior"] else (None, None)
        method = KernelPCA(alpha, values["records"], weights)
        history, m = release.estimate, len(release.estimate)
        noise, rows = float(np.sqrt(history.variances[0])), []

        def learnt(used: int, workload: Workload) -> ProjectedQueries:
            some = First(used, mechanism.workload.workload)
            reached = asked(data.domain, some, replace(method, alpha=1.0), workload)
            return reached.with_answers(history.values[:used], noise)

        def add(panel: str, name: str, metric: str, x: str, at: Any, told: Any) -> None:
            about = dict(panel=panel, series=name, metric=metric)
            rows.extend(about | {x: a, "value": y} for a, y in zip(at, told, strict=True))

        new, past = learnt(m, NEW), learnt(m, mechanism.workload)
        true, old = truth(dataset, NEW), truth(dataset, mechanism.workload)
        series, alphas = _series(values), np.union1d(ALPHAS, alpha)
        for words, some, exactly in ((FRESH, new, true), (_past(values), past, old)):
            errors = [rmse(some.values(a), exactly) for a in alphas]
            add(OVER, f"{series}, {words}", "RMSE", "alpha", alphas, errors)
        alone = [rmse(new.sampling(a), np.zeros_like(true)) for a in alphas]
        add(ALONE, series, "RMSE", "alpha", alphas, alone)
        sizes = [*(used for used in USED[: None if exact else 1] if used < m), m]
        errors = [rmse(learnt(used, NEW).values(alpha), true) for used in sizes]
        add(GROWN, f"{series}, {FRESH}", "RMSE", "queries", sizes, errors)
        answers, bars = new.values(alpha), new.errors(alpha)
        fresh = {TRUTH: true, series: answers}
        kept = {TRUTH: old, BOUGHT: history.values, series: past.values(alpha)}
        for panel, lines in ((ASKED, fresh), (KEPT, kept)):
            rank, place = shown(lines[TRUTH])
            for name, told in lines.items():
                add(panel, name, "Count", "query", rank, told[place])

        facts = [("noise bought", f"± {format_number(noise)} tuples on each answer")]
        if counts:
            facts.append(
                ("of it, the prior", f"{counts.privacy}, for counts that are bought too")
            )
        inside = [f"{coverage(answers, k * bars, true):.0%}" for k in (1, 2)]
        facts.append(("error bars", "hold {} of new answers, twice as long {}".format(*inside)))
        price = format_number(unit_price(data.domain) / rmse(answers, true))
        facts.append(("to ask instead", f"ε = {price} more for the error that new ranges have"))
        if exact and m in VALIDATED:
            best = select_alpha(history, total=method.total, prior=weights)
            told = f"α = {format_number(best.alpha)}, for an error of about {format_number(best.rmse)}"
            facts.append(("cross-validation", told))
        more = counts.ledger if counts else ()
        return Picture(pd.DataFrame(rows).assign(deviation=noise), facts, ledger=more)

    def panels(self, values: Values, rows: pd.DataFrame) -> list[Panel]:
        """Error over α and over m, with the noise that was bought; new and past answers."""
        noise = "noise of a bought answer", partial(_flat, float(rows.deviation.mean()))
        alone = rows[rows.panel == ALONE].groupby("alpha").value.mean()
        least = rows[rows.panel == OVER].value.min() / 3  # axes reach down to all that is drawn
        laws = noise, (f"{FRESH}, noise alone", partial(_along, alone, least))
        over = dict(theory=laws, whole=True, mark=values["alpha"])
        grown = dict(theory=noise, whole=True)
        fresh, kept = (dict(panel=p, seed=rows.seed.min()) for p in (ASKED, KEPT))
        return [
            Panel("Error over α", {"panel": OVER}, "alpha", **over),
            Panel("Error over past queries", {"panel": GROWN}, "queries", **grown),
            Panel(f"{FRESH.capitalize()}, from past answers", fresh, "query", log=""),
            Panel(f"{_past(values).capitalize()}, bought and improved", kept, "query", log=""),
        ]


@lru_cache(16)
def eigenqueries(domain: Domain, past: First, method: KernelPCA) -> Eigenqueries:
    """Of past queries whose answers are 0, with noise of deviation 1: no data has a part in it."""
    asked = linear_queries(past, domain)
    return method(NoisyAnswers(domain, asked, np.zeros(len(asked)), np.ones(len(asked)))).eigen


@lru_cache(32)
def asked(
    domain: Domain, past: First, method: KernelPCA, workload: Workload
) -> ProjectedQueries:
    """A workload as combinations of eigenqueries."""
    return eigenqueries(domain, past, method).project(workload)


@lru_cache(8)
def prior(dataset: Any, seed: int) -> tuple[Release, tuple]:
    """What is bought for it, and the weights."""
    release = COUNTS(loaded(dataset), Aligned(_other(seed)))
    return release, product_prior(release.estimate)


@lru_cache(16)
def truth(dataset: Any, workload: Workload) -> Float[np.ndarray, " queries"]:
    """Exact answers."""
    return loaded(dataset).answer(workload)


@lru_cache(1)
def unit_price(domain: Domain) -> float:
    """The ε at which new queries are answered with an error of 1 tuple; it is inverse to the error."""
    return LaplaceQueries(DP(1.0), NEW).epsilon_for(domain, 1.0)


def shown(
    exact: Float[np.ndarray, " queries"],
) -> tuple[Int[np.ndarray, " some"], Int[np.ndarray, " some"]]:
    """Ranks of some queries, evenly among all by their truth, and which queries they are."""
    rank = np.unique(np.linspace(0, len(exact) - 1, SHOWN).astype(np.int64))
    return rank + 1, np.argsort(exact, kind="stable")[rank]


def _other(seed: int) -> list[int]:
    """The seed of noise apart from the history's."""
    return [seed, 1]


def _series(values: Values) -> str:
    return "with prior" if values["prior"] else "no prior"


def _past(values: Values) -> str:
    return f"past {values['past']}"


def _flat(y: float, x: np.ndarray) -> np.ndarray:
    return np.full(len(x), y)


def _along(law: pd.Series, least: float, x: np.ndarray) -> np.ndarray:
    """Straight lines on logarithmic axes, from `least` on."""
    y = np.exp(np.interp(np.log(x), np.log(law.index), np.log(law)))
    return np.where(y < least, np.nan, y)
