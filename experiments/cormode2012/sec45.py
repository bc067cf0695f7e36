"""Cormode et al. 2012, section 4.5: Dirichlet synthesis against the geometric mechanism, on ranges.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.5, last paragraph; the method is
        that of Machanavajjhala, Kifer, Abowd, Gehrke & Vilhuber, ICDE 2008.
Read    from the text; there is no figure.
Open    Data and ranges as in Figure 6(b). The number of synthetic records is not printed: as many as
        true ones. The total is a parameter that the caller states as public: it is printed for these
        published tables, which say truth_public.
        The prior is not printed: the least α that the exact tails allow, for one table of all cells,
        or for one table a work place whose jobs are public, as OnTheMap itself was made (there
        ε = 8.6, δ = 10⁻⁵). The closed form of 2008 bounds a tail by what has the factor e^ε − 2.
        Relation: (ε, δ) is for replacing a record, geometric noise for adding or removing one, and
        the paper compares them at one ε, which is judged. "Replace one" is geometric noise
        at ε/2, which promises ε for replacing. The summaries are there for scale: s/m of Figure 6(a).
        Not in the paper, and not judged: "lean", fewer records and δ for (ε, δ)-DP alone, which both
        need less prior; other ε, on Rhode Island by tract.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import exp, inf, isfinite
from typing import Any

import numpy as np

from experiments._fields import effort, unprinted, unprinted_number
from experiments.cormode2012.data import (
    COUNTIES,
    JUDGED,
    ONTHEMAP,
    TRACTS,
    CommutingTables,
    dataset_named,
    judged,
    published_tables,
    query_shares,
    table_total,
)
from experiments.cormode2012.shared import ABSOLUTE, ratio_of_means
from workbench import DP, noise
from workbench.compiled import pd
from workbench.data import Bound, SparseTable
from workbench.estimates import Summary
from workbench.estimates.release import Release
from workbench.figures import Figure
from workbench.figures.fields import epsilon, number, queries, seeds
from workbench.figures.plots import Panel
from workbench.mechanisms import (
    DirichletSynthesis,
    GeometricHistogram,
    HighPassFilter,
    PrioritySampling,
)
from workbench.mechanisms.protocol import Mechanism, budget_field
from workbench.privacy import ADD_REMOVE, REPLACE
from workbench.spaces import Domain
from workbench.trials.claims import Finding, Printed, check_between, ratios, select
from workbench.value import format_number, value

CONDITION = "condition"


# Dirichlet synthesis of each work place's homes, as OnTheMap itself was made.


@value
class SynthesisByWorkPlace(Mechanism):
    """One synthesis per workplace, with public numbers of jobs. Together they are one release.

    A job that moves its home stays in one table, so that together they promise what each does; the
    ledger, which knows no such relation, adds them up.
    """

    budget: DP = budget_field(delta="some")
    series = "Dirichlet synthesis, by work place"
    idealised = True
    relation = REPLACE

    def __call__(self, table: SparseTable, rng=None) -> Release:
        """Release synthetic counts of all work places."""
        places = list(work_places(table))
        totals = frozenset(jobs.total for _, jobs in places)
        alphas = least_priors(self.budget, totals, table.domain.shape[1])
        keys = []
        counts = []
        ledger = []
        for start, jobs in places:
            drawn = noise.dirichlet_multinomial(
                jobs.keys,
                jobs.counts,
                jobs.domain.size,
                alpha=alphas[jobs.total],
                records=jobs.total,
                cost=self.budget,
                rng=rng,
            )
            keys.append(start + drawn.keys)
            counts.append(drawn.counts)
            ledger.append(drawn.receipt)
        estimate = Summary(table.domain, np.concatenate(keys), np.concatenate(counts), None)
        return Release(estimate, tuple(ledger), self, table.bound)


@cache
def least_priors(budget: DP, totals: frozenset[int], k: int) -> dict[int, float]:
    """The α that `DirichletSynthesis.prior` proves for tables of k cells, by their total."""
    return {total: DirichletSynthesis(budget, total, total).prior(k) for total in totals}


def work_places(table: SparseTable) -> Iterator[tuple[int, SparseTable]]:
    """Each row of a table of two attributes that holds anything, and its first key."""
    width = table.domain.shape[1]
    homes = Domain(table.domain.attributes[1:], (width,))
    for start in range(0, table.domain.size, width):
        place = slice(*np.searchsorted(table.keys, [start, start + width]))
        keys = table.keys[place] - start
        if len(keys):
            counts = table.counts[place]
            yield start, SparseTable(homes, keys, counts, Bound(1, 1), table.truth_public)


# The prior of Dirichlet synthesis: what it draws of the records, and the least that conditions allow.


def prior_shares(
    dataset: Any, made: Mapping[str, Sequence[DirichletSynthesis]]
) -> pd.DataFrame:
    """What share of the records the prior is expected to draw, A/(A + n), by series and ε."""
    k = dataset.domain.size
    shares = []
    for series, mechanisms in made.items():
        for each in mechanisms:
            weight = k * each.prior(k)
            share = weight / (weight + each.total)
            row = dict(series=series, epsilon=each.budget.epsilon, delta=each.budget.delta)
            shares.append(row | dict(mechanism=repr(each), value=share))
    return _rows(shares, dataset, panel="prior", metric="PriorShare")


def allowed_priors(dataset: Any, made: Sequence[DirichletSynthesis]) -> pd.DataFrame:
    """The least α that a condition allows, infinite where there is none.

    The closed form bounds a tail, which is 0 once no count can exceed (e^ε − 1)·α, by δ·(e^ε − 2)
    over what is positive: below ln 2 nothing meets it, above that α does.
    """
    rows = []
    for mechanism in made:
        x = mechanism.budget.epsilon
        closed = mechanism.pure_alpha if exp(x) > 2 else inf
        least = {"closed form": closed, "exact tails": mechanism.prior(dataset.domain.size)}
        rows += [
            {"series": series, "epsilon": x, "value": alpha, "allowed": isfinite(alpha)}
            for series, alpha in least.items()
        ]
    return _rows(rows, dataset, panel=CONDITION, metric="LeastPrior")


def _rows(made: list[dict], dataset: Any, **columns: str) -> pd.DataFrame:
    frame = pd.DataFrame(made).assign(dataset=repr(dataset), **columns)
    return frame.assign(seed=0, truth_public=True)


PRINTED = Printed("over three times the absolute error of geometric", 3, 4, at=1.0)
LEAN_SHARE = 100  # lean synthesis draws one record for so many
RATIO_SHARE = 0.01  # ranges of the ratios, as a share of all cells
BELOW_ONE = (0.1, 0.5, 0.9)  # ε at which a prior is looked for
GEOMETRIC = "geometric"
REPLACED = "geometric, replace one"
SYNTHESIS = "Dirichlet synthesis"
LEAN = "lean synthesis"
PLACES = SynthesisByWorkPlace.series


def by_relation(errors: pd.DataFrame) -> pd.DataFrame:
    """Errors by series and `relation`; geometric noise twice, of "replace one" at twice its ε."""
    series = errors.mechanism_name.mask(errors.records < errors.total, LEAN)
    relation = np.where(errors.delta > 0, REPLACE, ADD_REMOVE)
    errors = errors.assign(series=series, relation=relation)
    replaced = errors[errors.series == GEOMETRIC].assign(series=REPLACED, relation=REPLACE)
    replaced["epsilon"] *= 2
    return pd.concat([errors, replaced], ignore_index=True)


def error_ratio(rows: pd.DataFrame, base: str) -> pd.DataFrame:
    """Rows of a metric `ErrorRatio`: the error of each synthesis in units of that of series `base`."""
    point = ["epsilon", "share"]
    other = rows[rows.series == base][[*point, "seed", "value"]]
    other = other.rename(columns={"value": "other"})
    ratios = rows[rows.series.isin([SYNTHESIS, PLACES, LEAN])].merge(other, on=[*point, "seed"])
    ratios = ratios.set_index([*point, "series"])
    value = ratio_of_means(ratios.value, ratios.other, [*point, "series"])
    return ratios.drop(columns="other").assign(value=value, metric="ErrorRatio").reset_index()


def not_four(rows, level, synthesis: str) -> Finding:
    """Whether in the mean over sizes it has three to four times the error."""
    errors = select(judged(rows), metric=ABSOLUTE, epsilon=1.0)
    means = errors.groupby(["series", "seed"], as_index=False).value.mean().assign(sizes="all")
    ours, other = (select(means, series=x) for x in (synthesis, GEOMETRIC))
    return check_between(ratios(ours, other, "sizes"), level, 3, 4)


def no_prior(rows, level, condition: str) -> Finding:
    """Whether a condition allows no prior at any ε below 1."""
    own = select(rows, panel=CONDITION, series=condition)
    told = [
        f"ε = {x:g}: {f'α = {format_number(alpha)}' if allowed else 'none'}"
        for x, alpha, allowed in zip(own.epsilon, own.value, own.allowed, strict=True)
    ]
    return Finding(not own.allowed.any(), ", ".join(told))


@value
class Sec45(CommutingTables, Figure):
    """Synthetic records beside noise on every cell, on random ranges."""

    title = "Dirichlet synthesis against geometric noise, on range queries"
    headline = "Dirichlet synthesis has settings for ε below 1, contrary to the paper"
    rests_on = ("not c-45-1.3",)
    page = "Cormode et al., ICDT 2012, section 4.5"
    quick = {"seeds": 2, "queries": 200, "records": 130_000_000, "places": 1000}
    columns = 3

    epsilon: float = epsilon(1.0)
    delta: float = number(1e-4, "δ of the synthesis", 0, 0.5, strict=True)
    data: tuple[str, ...] = published_tables(JUDGED, COUNTIES, TRACTS)
    shares: tuple[float, ...] = query_shares(
        (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5), "ranges"
    )
    epsilons: tuple[float, ...] = unprinted_number(
        (0.5, 1.0, 2.0, 4.0, 8.6), "ε of the ratios and of the prior", 1e-6, 1000
    )
    size: int = unprinted(3_000_000, "s on the stand-in (else as a share)", unit="cells")
    theta: int = unprinted(2, "threshold θ of filter-priority", unit="counts")
    records: int = effort(2**28, "largest number of synthetic records", high=2**28)
    places: int = effort(5000, "largest number of workplaces that are synthesised one by one")
    queries: int = queries(1000)
    seeds: int = seeds(20)

    def synthesis(self, name: str, epsilon: float, lean: bool = False) -> DirichletSynthesis:
        """As the paper has it, or as lean as can be: fewer records, and no more than (ε, δ)-DP."""
        budget = DP(epsilon, self.delta)
        total = table_total(name)
        if not lean:
            return DirichletSynthesis(budget, records=total, total=total)
        records = max(1, total // LEAN_SHARE)
        return DirichletSynthesis(budget, records=records, total=total, notion="approximate")

    def mechanisms(self, name: str) -> list:
        """What is run on a table; other ε on Rhode Island by tract alone."""
        made = []
        for x in self._all_epsilons() if name == TRACTS else (self.epsilon,):
            if table_total(name) <= self.records:
                made.append(self.synthesis(name, x))
            made.append(self.synthesis(name, x, lean=True))
            made += [GeometricHistogram(DP(x)), GeometricHistogram(DP(x / 2))]
        budget = DP(self.epsilon)
        size = self.summary_size(dataset_named(name).domain)
        made.append(HighPassFilter(budget, size=size))
        made.append(PrioritySampling(budget, size=size, theta=self.theta))
        domain = dataset_named(name).domain
        if name in (ONTHEMAP, JUDGED, TRACTS) and domain.shape[0] <= self.places:
            made.append(SynthesisByWorkPlace(DP(self.epsilon, self.delta)))
        return [*dict.fromkeys(made)]

    def query_sizes(self, domain: Domain) -> dict[int, float]:
        """The sizes of ranges, that of the ratios among them."""
        at = max(1, round(RATIO_SHARE * domain.size))
        return super().query_sizes(domain) | {at: RATIO_SHARE}

    def rows(self, store) -> pd.DataFrame:
        """Errors, their ratios to geometric's, and what the prior's share is.

        `epsilon` is for the `relation` of its row, and so twice what the trial of "replace one" spends.
        """
        errors = by_relation(super().rows(store))
        other = (errors.panel == TRACTS) & errors.epsilon.isin(self.epsilons)
        errors = errors[other | (errors.epsilon == self.epsilon)]
        small = errors[(errors.panel == TRACTS) & (errors.share == RATIO_SHARE)]
        bases = (GEOMETRIC, REPLACED) if len(small) else ()
        ratios = [error_ratio(small, base).assign(panel=base) for base in bases]
        return pd.concat([errors, *ratios, *self._of_priors()], ignore_index=True)

    def _of_priors(self) -> list[pd.DataFrame]:
        """What the prior is, and what a condition allows, on the first table."""
        name, dataset = next(iter(self.datasets().items()))
        made = {
            series: [self.synthesis(name, x, lean) for x in self._all_epsilons()]
            for series, lean in ((SYNTHESIS, False), (LEAN, True))
        }
        asked = [self.synthesis(name, x) for x in BELOW_ONE]
        return [prior_shares(dataset, made), allowed_priors(dataset, asked)]

    def _all_epsilons(self) -> list[float]:
        return sorted({self.epsilon, *self.epsilons})

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Errors, a panel a dataset at hand; then ratios against ε, and the prior's share."""
        names = [name for name in self.data if name in set(rows.panel)]
        grid = [
            Panel(name, {"panel": name, "metric": ABSOLUTE, "epsilon": self.epsilon}, "share")
            for name in names
        ]
        if GEOMETRIC in set(rows.panel):
            title = f"{TRACTS}, at {100 * RATIO_SHARE:g} %"
            grid.append(Panel(title, {"panel": GEOMETRIC}, "epsilon", printed=PRINTED))
            grid.append(Panel("both replace one", {"panel": REPLACED}, "epsilon"))
        return [*grid, Panel(f"prior, {names[0]}", {"panel": "prior"}, "epsilon", log="x")]
