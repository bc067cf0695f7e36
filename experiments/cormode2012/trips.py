"""Beside Cormode et al. 2012: trips between places, by what was known then and what is known now.

Paper   none. Consistent trees of Hay, Rastogi, Miklau & Suciu, PVLDB 2010, and summaries of Cormode,
        Procopiuc, Srivastava & Tran, ICDT 2012, beside InfTDA (Boninsegna & Silvestri, 2025) and
        the sparse releases of 2023 to 2025, of which the item blanket is ours.
Read    nothing; no claim is judged.
Open    Commuting in Rhode Island by tract, whose regions are counties. Where the files of OnTheMap are
        missing, the first 244 locations of its twin stand in, in regions of a hundred.
        Seven in ten pairs of tracts have jobs, so that this table is not sparse. The consistent
        tree with Gaussian noise has the branching factor that is best for ranges, and nothing is set
        to zero in it. Its nodes follow the order of the places of work, not regions of both ends.
        Everything promises (ε, δ) or ε for replacing one job, since InfTDA states the total. A release that
        promises ε/2 for adding or removing one promises ε for replacing one, and (ε/2, δ/(1 + e^(ε/2)))
        promises (ε, δ). Counts with noise of ρ/2 cost ρ under replacement, because the squared distance
        of two jobs is the sum of both. InfTDA has all of the ρ that (ε, δ) pays for.
        The total, and for the item blanket the number of pairs with jobs, are stated as public.
Found   (one job replaced, ε = 1, paper runs) Between regions InfTDA errs least, with 10 jobs where noise on
        every pair has 90 and the best tree 150: its levels are those regions, and few. At a place the
        consistent tree with Gaussian noise errs least, with 26 jobs, and InfTDA has 43. Between places
        the filter and noise on every pair err least, with 1.8 and 1.9 jobs, and InfTDA has 6.5. One in
        19 pairs that InfTDA shows has no jobs, one in 12 of the filter's, and none where δ pays for
        thresholds. On the stand-in InfTDA errs least at a place as well.
Words   none.
"""

from __future__ import annotations

from math import exp
from typing import Any

import numpy as np

from experiments._fields import unprinted, unprinted_number
from workbench import DP, ZCDP, Domain, Dyadic, Ranges, Sweep
from workbench.compiled import pd
from workbench.data import Bound, SparseTable
from workbench.datasets import OnTheMap, OnTheMapTwin
from workbench.datasets.kinds import Twin
from workbench.figures import EFFORT, Figure
from workbench.figures.fields import choice, seeds
from workbench.figures.plots import Panel
from workbench.mechanisms import (
    GaussianSparseHistogram,
    GeometricHistogram,
    HierarchicalHistogram,
    HighPassFilter,
    InfTDA,
    ItemBlanket,
    MisraGries,
    PrioritySampling,
    StabilityHistogram,
)
from workbench.queries import Boxes
from workbench.trials import first_available
from workbench.trials.metrics import MeanAbsoluteError
from workbench.value import format_number, parameter, value

REAL = "Rhode Island by tract"
TWIN = "part of OnTheMap's twin"
PREFIX = {REAL: 5, TWIN: 1}  # characters of a label that name its region
QUERIES = ("pairs of regions", "jobs at a place", "pairs of places")
TREE = "consistent tree"
NEW = "InfTDA"
TREES = (TREE, f"{TREE}, Gaussian", "consistent filter", NEW)
PAIRS = (
    "geometric",
    "filter",
    "priority",
    "stability histogram",
    "item blanket",
    "Gaussian sparse histogram",
    "Misra–Gries",
    NEW,
)
FAMILIES = {"trees": TREES, "pair by pair": PAIRS}
SERIES = {
    "HierarchicalHistogram, consistent": TREE,
    "HierarchicalHistogram, consistent, Gaussian": f"{TREE}, Gaussian",
    "filter, dyadic boxes, consistent": "consistent filter",
}
REPLACED = "ε, if one job is replaced"


@value
class TwinPart(Twin):
    """Jobs within the first locations of OnTheMap's twin, of a few states. One unit is one job."""

    original = "OnTheMap by tract, which `OnTheMap` reads"
    invented = OnTheMapTwin.invented
    cite = OnTheMapTwin.cite

    places: int = parameter(244, 100, 4001, integer=True, doc="number of locations")

    @property
    def domain(self) -> Domain:
        """Work and home location ids."""
        return Domain(("work", "home"), (self.places, self.places))

    def load(self) -> SparseTable:
        """Return the part of the table."""
        whole = OnTheMapTwin().load()
        codes = whole.domain.codes(whole.keys)
        inside = (codes < self.places).all(axis=1)
        keys = self.domain.keys(codes[inside])
        return SparseTable(self.domain, keys, whole.counts[inside], Bound(), self.truth_public)


@value
class Trips:
    """The trips between all regions, at all places of work, or between all places."""

    between: str = parameter(choices=QUERIES)
    prefix: int = parameter(1, 1, integer=True, doc="characters that name a region")

    def on(self, domain: Domain) -> Any:
        """Return boxes of regions, or ranges of cells."""
        works, homes = domain.shape
        if self.between == QUERIES[0]:
            lo, hi = zip(*(_regions(domain, axis, self.prefix) for axis in (0, 1)), strict=True)
            pairs = [
                np.stack(np.meshgrid(*x, indexing="ij"), axis=-1).reshape(-1, 2)
                for x in (lo, hi)
            ]
            return Boxes(*pairs)
        wide = homes if self.between == QUERIES[1] else 1
        starts = np.arange(0, works * homes, wide)
        return Ranges(starts, starts + wide)


def _regions(domain: Domain, axis: int, prefix: int) -> tuple[np.ndarray, np.ndarray]:
    """The first code of each region, and the code after its last one. Labels are in order."""
    n = domain.shape[axis]
    codes = [str(x).zfill(len(str(n - 1))) for x in range(n)]
    labels = domain.labels[axis] if domain.labels else codes
    names = [label[:prefix] for label in labels]
    starts = [i for i in range(n) if i == 0 or names[i] != names[i - 1]]
    return np.array(starts), np.array([*starts[1:], n])


@value
class EmptyPairs:
    """Share of the pairs with a released count of at least one half between which nobody commutes."""

    workload: Trips

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """Compare pairs with the truth, which must be public."""
        pairs = self.workload.on(truth.domain)
        shown = estimate.answer(pairs) >= 0.5
        return float((truth.answer(pairs)[shown] == 0).mean()) if shown.any() else 0.0


@value
class ThenAndNow(Figure):
    """Errors of regions, places and pairs, against ε under replacement."""

    title = "Trips between places, then and now"
    page = "no figure of the paper: beside Cormode et al., ICDT 2012"
    quick = {"seeds": 3}
    columns = 3
    shown = ("epsilon", "delta", "rho", "theta", "size", "nonempty", "total", "prefixes")

    epsilons: tuple[float, ...] = unprinted_number(
        (0.1, 0.3, 1.0, 3.0), "ε under replacement", 1e-6, 100
    )
    delta: float = unprinted_number(1e-6, "δ under replacement", 0, 0.1, strict=True)
    size: int = unprinted(20_000, "pairs, or nodes, of a summary", unit="cells")
    data: str = choice(
        REAL, (REAL, TWIN), "commutes (a stand-in if files are missing)", kind=EFFORT
    )
    seeds: int = seeds(20)

    def mechanisms(self, epsilon: float, table: SparseTable, prefix: int) -> list:
        """Trees, summaries and their rivals at one ε, converted to each one's own neighbours."""
        pure = DP(epsilon / 2)
        both = DP(epsilon / 2, self.delta / (1 + exp(epsilon / 2)))
        rho = ZCDP.within(DP(epsilon, self.delta)).rho
        sized = dict(size=min(self.size, table.domain.size))
        blanket = min(2 * len(table), table.domain.size)
        return [
            HierarchicalHistogram(pure),
            HierarchicalHistogram(ZCDP(rho / 2), branching="optimal", nonnegative=False),
            HighPassFilter(pure, transform=Dyadic(2), consistent=True, **sized),
            InfTDA(ZCDP(rho), prefixes=prefix, total=int(table.total)),
            GeometricHistogram(pure),
            HighPassFilter(pure, **sized),
            PrioritySampling(pure, **sized),
            StabilityHistogram(both),
            ItemBlanket(pure, nonempty=len(table), size=blanket),
            GaussianSparseHistogram(both),
            MisraGries(both, **sized),
        ]

    def sweeps(self) -> dict[str, Sweep]:
        """One for each ε."""
        real = OnTheMap(level="tract")
        name = REAL if self.data == REAL and first_available(real, None) else TWIN
        dataset = real if name == REAL else TwinPart()
        table = dataset.load()
        asked = [Trips(between, PREFIX[name]) for between in QUERIES]
        metrics = [*map(MeanAbsoluteError, asked), EmptyPairs(asked[-1])]
        return {
            f"{epsilon:g}": Sweep(
                [dataset], self.mechanisms(epsilon, table, PREFIX[name]), metrics, self.seeds
            )
            for epsilon in self.epsilons
        }

    def rows(self, store) -> pd.DataFrame:
        """With ε and δ under replacement in place of what each mechanism was given."""
        rows = super().rows(store)
        asked = {repr(Trips(x, p)): x for x in QUERIES for p in PREFIX.values()}
        return rows.assign(
            own_epsilon=rows.epsilon,
            epsilon=rows.panel.astype(float),
            delta=rows.delta.mask(rows.delta.gt(0) | rows.rho.notna(), self.delta),
            series=rows.series.replace(SERIES),
            panel=rows.workload.map(asked),
        )

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Trees above, and releases of pairs below."""
        return [
            Panel(
                f"{query.capitalize()}, {family}", {"panel": query, "family": family}, REPLACED
            )
            for family in FAMILIES
            for query in QUERIES
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Errors of each family, with InfTDA in both."""
        errors = rows[rows.metric == "MeanAbsoluteError"]
        errors = errors.assign(metric="error (jobs)").rename(columns={"epsilon": REPLACED})
        frames = [
            errors[errors.series.isin(series)].assign(family=family)
            for family, series in FAMILIES.items()
        ]
        return pd.concat(frames, ignore_index=True)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Mean error of each release at each query, and of its pairs those that are empty, at the middle ε."""
        epsilon = sorted(self.epsilons)[len(self.epsilons) // 2]
        own = rows[rows.epsilon == epsilon]
        errors = own[own.metric == "MeanAbsoluteError"]
        table = errors.pivot_table("value", "series", "panel", sort=False)[[*QUERIES]]
        empty = own[own.metric == "EmptyPairs"].groupby("series").value.mean()
        table["empty pairs (%)"] = 100 * empty
        return table.map(format_number).rename_axis(f"error (jobs), ε = {epsilon:g}", axis=1)
