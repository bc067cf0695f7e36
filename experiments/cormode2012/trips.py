"""Comparison of older and newer mechanisms that release trips between places. It extends the figures of
Cormode et al. (2012).

Paper   This is not a figure of a paper. It compares consistent trees (Hay, Rastogi, Miklau & Suciu, PVLDB
        2010) and summaries (Cormode, Procopiuc, Srivastava & Tran, ICDT 2012) with InfTDA (Boninsegna &
        Silvestri, 2025) and with sparse releases of 2023 to 2025. The item blanket is our own.
Read    We read nothing from a paper, and test no statement.
Open    The data are jobs by workplace and home in Rhode Island by tract, and its regions are counties. If the
        files of OnTheMap are missing, we use the first 244 locations of its stand-in, in regions of a
        hundred. Seven in ten pairs of tracts have jobs, so this table is not sparse. The consistent tree with
        Gaussian noise has the branching factor that is best for ranges, and negative counts are not set to
        zero. Its nodes follow the order of workplaces, and not regions of both attributes. All releases
        promise ε or (ε, δ) for replacing one job, because InfTDA states the total. A release that promises
        ε/2 for adding or removing one job promises ε for replacing one. Similarly, (ε/2, δ/(1 + e^(ε/2)))
        gives (ε, δ). If counts have noise for ρ/2, replacing a job costs ρ, because the squared distance is
        the sum of the squared distances for two jobs. InfTDA gets the whole ρ that (ε, δ) allows. The total
        is stated as public, and for the item blanket also the number of pairs with jobs.
Found   (One job replaced, ε = 1, paper runs.) For pairs of regions, InfTDA has the smallest errors: 10 jobs,
        compared with 90 for noise on every pair and 150 for the best tree. The levels of InfTDA's tree are
        these regions, and there are few of them. For the jobs at a place, the consistent tree with Gaussian
        noise has the smallest errors, with 26 jobs. InfTDA has 43. For pairs of places, the filter and noise
        on every pair have the smallest errors, with 1.8 and 1.9 jobs. InfTDA has 6.5. One in 19 of the
        pairs that InfTDA shows has no jobs. It is one in 12 for the filter, and none if thresholds use δ. On
        the stand-in, InfTDA also has the smallest errors for the jobs at a place.
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
    """Jobs within the first locations of OnTheMap's synthetic stand-in, which are in a few states. One unit
    is one job.
    """

    original = "OnTheMap by tract, which `OnTheMap` reads"
    invented = OnTheMapTwin.invented
    cite = OnTheMapTwin.cite

    places: int = parameter(244, 100, 4001, integer=True, doc="number of locations")

    @property
    def domain(self) -> Domain:
        """Domain with the numbers of the work and home locations."""
        return Domain(("work", "home"), (self.places, self.places))

    def load(self) -> SparseTable:
        """Return the table of these jobs."""
        whole = OnTheMapTwin().load()
        codes = whole.domain.codes(whole.keys)
        inside = (codes < self.places).all(axis=1)
        keys = self.domain.keys(codes[inside])
        return SparseTable(self.domain, keys, whole.counts[inside], Bound(), self.truth_public)


@value
class Trips:
    """Queries for the trips between all pairs of regions, to all workplaces, or between all pairs of places."""

    between: str = parameter(choices=QUERIES)
    prefix: int = parameter(1, 1, integer=True, doc="characters that name a region")

    def on(self, domain: Domain) -> Any:
        """Return the queries on a domain, as boxes of cells for regions, and as ranges of cells otherwise."""
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
    """Return the first code of each region, and the code after its last one. Regions are prefixes of labels,
    and labels are in ascending order.
    """
    n = domain.shape[axis]
    codes = [str(x).zfill(len(str(n - 1))) for x in range(n)]
    labels = domain.labels[axis] if domain.labels else codes
    names = [label[:prefix] for label in labels]
    starts = [i for i in range(n) if i == 0 or names[i] != names[i - 1]]
    return np.array(starts), np.array([*starts[1:], n])


@value
class EmptyPairs:
    """Metric: share of pairs without any commuters among the pairs with a released count of at least one
    half.
    """

    workload: Trips

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """Compare the released pairs with the true ones. The true table must be public."""
        pairs = self.workload.on(truth.domain)
        shown = estimate.answer(pairs) >= 0.5
        return float((truth.answer(pairs)[shown] == 0).mean()) if shown.any() else 0.0


@value
class ThenAndNow(Figure):
    """Errors of older and newer mechanisms for regions, places and pairs of places, by the ε for replacing
    one job.
    """

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
        """Return the mechanisms for one ε. The ε for replacing a job is converted to the guarantee that each
        mechanism states.
        """
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
        """Return one sweep (plan of runs) per ε."""
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
        """Return the figure's results. The columns `epsilon` and `delta` are for replacing one job, and not
        the values that the mechanism was given.
        """
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
        """Return the figure's panels: trees in the first row, and releases of single pairs in the
        second row.
        """
        return [
            Panel(
                f"{query.capitalize()}, {family}", {"panel": query, "family": family}, REPLACED
            )
            for family in FAMILIES
            for query in QUERIES
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the errors of each family of mechanisms. InfTDA is in both families."""
        errors = rows[rows.metric == "MeanAbsoluteError"]
        errors = errors.assign(metric="error (jobs)").rename(columns={"epsilon": REPLACED})
        frames = [
            errors[errors.series.isin(series)].assign(family=family)
            for family, series in FAMILIES.items()
        ]
        return pd.concat(frames, ignore_index=True)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table for the middle ε, with the mean error of each release for each query, and the share
        of its pairs that have no jobs.
        """
        epsilon = sorted(self.epsilons)[len(self.epsilons) // 2]
        own = rows[rows.epsilon == epsilon]
        errors = own[own.metric == "MeanAbsoluteError"]
        table = errors.pivot_table("value", "series", "panel", sort=False)[[*QUERIES]]
        empty = own[own.metric == "EmptyPairs"].groupby("series").value.mean()
        table["empty pairs (%)"] = 100 * empty
        return table.map(format_number).rename_axis(f"error (jobs), ε = {epsilon:g}", axis=1)
