"""Section 4.5 of Cormode et al. (2012): errors of range queries from Dirichlet synthesis and from geometric
noise.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.5, last paragraph. The method is that of
        Machanavajjhala, Kifer, Abowd, Gehrke & Vilhuber, ICDE 2008.
Read    We read all numbers from the text, because there is no figure.
Open    Data and ranges are those of Figure 6(b). The paper does not print the number of synthetic records. We
        draw as many as there are true records. The total of a table is a parameter that the caller states as
        public. The totals of these published tables are printed. The prior α is not printed. We use the
        smallest α that the exact tail probabilities allow, for one table of all cells. We also run one table
        per workplace with a public number of jobs, which is how OnTheMap itself was made (with ε = 8.6 and δ
        = 10⁻⁵). The closed form of 2008 bounds a tail by a number with the factor e^ε − 2. The (ε, δ) of the
        synthesis is for replacing a record, and the ε of geometric noise is for adding or removing one. The
        paper compares both at the same ε, and we test this comparison. The curve "replace one" is geometric
        noise at ε/2, which promises ε for replacing a record. The other summaries show the scale, with the
        s/m of Figure 6(a). Some curves are not in the paper, and no statement is tested on them. "Lean"
        synthesis has fewer records and only promises (ε, δ)-DP, and both changes need a smaller prior. Other
        values of ε are run on Rhode Island by tract.
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
    """Dirichlet synthesis of one table per workplace.

    Numbers of jobs per workplace are public. All tables together are one release. If a job moves to another
    home, it stays in the same table. So all tables together promise what each of them promises. The ledger
    does not use this fact, and adds up the costs.
    """

    budget: DP = budget_field(delta="some")
    series = "Dirichlet synthesis, by work place"
    idealised = True
    relation = REPLACE

    def __call__(self, table: SparseTable, rng=None) -> Release:
        """Release synthetic counts for all workplaces."""
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
    """Return the smallest allowed prior α of Dirichlet synthesis for tables with k cells, by the table's
    total. `DirichletSynthesis.prior` proves that this α is enough.
    """
    return {total: DirichletSynthesis(budget, total, total).prior(k) for total in totals}


def work_places(table: SparseTable) -> Iterator[tuple[int, SparseTable]]:
    """Yield the rows of a table by workplace and home that contain jobs. Each row is a table by home, and
    comes with the key of its first cell.
    """
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
    """Return the expected share A/(A + n) of records that come from the prior, by curve and ε. Here n is the
    number of true records, and A is the sum of the prior's weights α over all cells.
    """
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
    """Return the smallest prior α that a condition allows, or infinity if it allows none.

    The closed form requires that a tail probability is at most δ·(e^ε − 2), divided by a positive number. For
    ε below ln 2, no α satisfies this. For larger ε, the α for which no count can exceed (e^ε − 1)·α does,
    because the tail probability is then 0.
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
    """Return the errors with a column `relation`, which says how neighbouring tables differ. Geometric noise
    occurs twice. The curve "replace one" contains the same errors at twice their ε.
    """
    series = errors.mechanism_name.mask(errors.records < errors.total, LEAN)
    relation = np.where(errors.delta > 0, REPLACE, ADD_REMOVE)
    errors = errors.assign(series=series, relation=relation)
    replaced = errors[errors.series == GEOMETRIC].assign(series=REPLACED, relation=REPLACE)
    replaced["epsilon"] *= 2
    return pd.concat([errors, replaced], ignore_index=True)


def error_ratio(rows: pd.DataFrame, base: str) -> pd.DataFrame:
    """Return the error of each synthesis divided by the error of the curve `base`, as the metric
    `ErrorRatio`.
    """
    point = ["epsilon", "share"]
    other = rows[rows.series == base][[*point, "seed", "value"]]
    other = other.rename(columns={"value": "other"})
    ratios = rows[rows.series.isin([SYNTHESIS, PLACES, LEAN])].merge(other, on=[*point, "seed"])
    ratios = ratios.set_index([*point, "series"])
    value = ratio_of_means(ratios.value, ratios.other, [*point, "series"])
    return ratios.drop(columns="other").assign(value=value, metric="ErrorRatio").reset_index()


def not_four(rows, level, synthesis: str) -> Finding:
    """Check whether the mean error of a synthesis over all sizes of ranges is three to four times that of
    geometric noise.
    """
    errors = select(judged(rows), metric=ABSOLUTE, epsilon=1.0)
    means = errors.groupby(["series", "seed"], as_index=False).value.mean().assign(sizes="all")
    ours, other = (select(means, series=x) for x in (synthesis, GEOMETRIC))
    return check_between(ratios(ours, other, "sizes"), level, 3, 4)


def no_prior(rows, level, condition: str) -> Finding:
    """Check whether a condition allows no prior for any tested ε below 1."""
    own = select(rows, panel=CONDITION, series=condition)
    told = [
        f"ε = {x:g}: {f'α = {format_number(alpha)}' if allowed else 'none'}"
        for x, alpha, allowed in zip(own.epsilon, own.value, own.allowed, strict=True)
    ]
    return Finding(not own.allowed.any(), ", ".join(told))


@value
class Sec45(CommutingTables, Figure):
    """Errors of random ranges from synthetic records, and from noise on every cell."""

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
        """Return Dirichlet synthesis for a table. If `lean` is True, it has fewer records and promises only
        (ε, δ)-DP, so that it needs a smaller prior.
        """
        budget = DP(epsilon, self.delta)
        total = table_total(name)
        if not lean:
            return DirichletSynthesis(budget, records=total, total=total)
        records = max(1, total // LEAN_SHARE)
        return DirichletSynthesis(budget, records=records, total=total, notion="approximate")

    def mechanisms(self, name: str) -> list:
        """Return the mechanisms for a table. Other values of ε are used only on Rhode Island by tract."""
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
        """Return the sizes of ranges. They include the size for which error ratios are drawn."""
        at = max(1, round(RATIO_SHARE * domain.size))
        return super().query_sizes(domain) | {at: RATIO_SHARE}

    def rows(self, store) -> pd.DataFrame:
        """Return the errors, their ratios to the errors of geometric noise, and the share of records that
        come from the prior.

        The column `epsilon` is the ε for the `relation` of the row. For the curve "replace one", it is
        therefore twice the ε that the run spends.
        """
        errors = by_relation(super().rows(store))
        other = (errors.panel == TRACTS) & errors.epsilon.isin(self.epsilons)
        errors = errors[other | (errors.epsilon == self.epsilon)]
        small = errors[(errors.panel == TRACTS) & (errors.share == RATIO_SHARE)]
        bases = (GEOMETRIC, REPLACED) if len(small) else ()
        ratios = [error_ratio(small, base).assign(panel=base) for base in bases]
        return pd.concat([errors, *ratios, *self._of_priors()], ignore_index=True)

    def _of_priors(self) -> list[pd.DataFrame]:
        """Return the priors of the first table, and the priors that a condition allows."""
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
        """Return the figure's panels: errors for each available dataset, ratios of errors by ε, and the share
        of records that come from the prior.
        """
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
