"""Comparison of all mechanisms of the workbench that release sparse counts. It extends the figures of Cormode
et al. (2012).

Paper   This is not a figure of a paper. It compares the summaries and transforms of Cormode, Procopiuc,
        Srivastava & Tran, ICDT 2012, with older and newer methods. The older ones are stability-based
        histograms (Korolova et al., WWW 2009), the count sketch, and Dirichlet synthesis (Machanavajjhala et
        al., ICDE 2008). The newer ones are ALP (Aumüller et al., CCS 2021), and methods of 2023 to 2025:
        private Misra–Gries, the exact and the correlated Gaussian sparse histogram, and our item blanket
        after Kerschbaum et al.
Read    We read nothing from a paper, and test no statement.
Open    The data are synthetic: ten regions, and counts near 100. The size of a release is eight bytes per
        number, without compression. A released cell or node takes two numbers, its position and its value. A
        full table needs no positions. A bucket takes one number, and so do 64 bits of ALP. Filters and
        samples choose their thresholds from s alone. Filter-priority sampling, and the consistent methods,
        have 4/5 of the θ of a filter of size s. A count sketch has one row of 2·s buckets. ALP's size factor
        is 50 in the upper panels, and grows with s in the lower ones. Dirichlet synthesis draws as many
        records as the data have in the upper panels, and s records in the lower ones. Totals are stated as
        public. Gaussian noise has the largest ρ that (ε, δ) allows. Dirichlet synthesis promises ε for
        replacing a record, and all other methods promise ε for adding or removing one. At the same ε, it
        therefore promises less. To compare all methods for a replaced record, double the ε of all other
        releases, and multiply their δ by 1 + e^ε. The item blanket and the correlated histogram are given the
        number of non-empty cells as a public bound. A blanket that is smaller than this number is left out.
        Misra–Gries has s counters. Stability histograms, Gaussian sparse histograms and full tables have no
        size to choose, so they have one mark in the lower panels.
Found   (One record added or removed, quick runs.) On single cells and short ranges, the item blanket has the
        smallest errors of the ε-DP releases for ε of 1 or more: 0.018 counts per cell, where the filter has
        0.064. It uses the number of non-empty cells, which the filter does not need. For ε up to 0.3, filters
        have smaller errors. The stability histogram has the smallest errors among the (ε, δ)-DP releases for
        ε of 0.3 or more, because a record changes one cell. The Gaussian sparse histogram is good if a unit
        changes many cells. The correlated one has large errors, because it allows a unit to be in every cell.
Words   none.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments._fields import effort, unprinted, unprinted_number
from workbench import DP, ZCDP, Dyadic, Haar, RandomRanges, Sweep
from workbench.compiled import pd
from workbench.data import SparseTable
from workbench.datasets import GaussianSparse
from workbench.figures import Figure
from workbench.figures.fields import seeds
from workbench.figures.plots import Panel
from workbench.mechanisms import (
    ALP,
    CorrelatedGaussianSparseHistogram,
    CountSketch,
    DirichletSynthesis,
    GaussianHistogram,
    GaussianSparseHistogram,
    GeometricHistogram,
    HighPassFilter,
    ItemBlanket,
    MisraGries,
    PrioritySampling,
    StabilityHistogram,
    ThresholdSampling,
)
from workbench.trials.metrics import MeanAbsoluteError
from workbench.value import format_number, value

BASES = (None, Dyadic(), Dyadic(split="geometric"), Haar())
GAUSSIAN = "Gaussian noise"  # of a ρ, whatever the mechanism
SOME = "some"
FAMILIES = {  # of mechanisms, each with the series of others that are drawn for comparison
    SOME: (
        [],
        [
            "geometric",
            "filter",
            "filter-priority",
            "priority",
            "stability histogram",
            "count sketch",
        ],
    ),
    "full table": (["GeometricHistogram"], []),
    "filters": (["HighPassFilter"], ["geometric"]),
    "samples": (["ThresholdSampling", "PrioritySampling"], ["geometric"]),
    "other methods": (
        ["ALP", "CountSketch", "StabilityHistogram", "DirichletSynthesis"],
        ["geometric", "filter"],
    ),
    "recent rivals": (
        [
            "ItemBlanket",
            "GaussianSparseHistogram",
            "MisraGries",
            "CorrelatedGaussianSparseHistogram",
        ],
        ["geometric", "filter", "stability histogram"],
    ),
    GAUSSIAN: (
        [GAUSSIAN],
        ["geometric, Haar", "filter", "filter, dyadic", "filter-priority, dyadic"],
    ),
}

NO_PLACES = ("GeometricHistogram", "GaussianHistogram", "CountSketch", "ALP")


# Every release of sparse counts that the workbench has, at one budget.


def of_no_size(budget: DP, table: SparseTable) -> list:
    """Return the mechanisms whose size cannot be chosen: full noisy tables, and histograms that release every
    cell above a threshold.
    """
    tables = [GeometricHistogram(DP(budget.epsilon), transform=basis) for basis in BASES]
    gaussian = GaussianHistogram(ZCDP.within(budget), transform=Haar())
    stable = [
        StabilityHistogram(budget),
        GaussianSparseHistogram(budget),
        CorrelatedGaussianSparseHistogram(budget, nonempty=len(table)),
    ]
    return [*tables, *stable, gaussian]


def of_size(
    budget: DP, table: SparseTable, largest: int, size: int, records: int, size_factor: float
) -> list:
    """Return the mechanisms that release about `size` numbers: filters and samples of cells and of nodes,
    sketches, and synthetic records.

    Mechanisms that need a δ spend it. Mechanisms with Gaussian noise have the largest ρ within (ε, δ). The
    number of non-empty cells and the total of the table are stated as public.
    """
    pure = DP(budget.epsilon)
    total = int(table.total)
    made = [HighPassFilter(pure, size=size, transform=basis) for basis in BASES]
    made.append(HighPassFilter(pure, size=size, transform=Dyadic(), consistent=True))
    for basis in (None, Dyadic()):
        how = dict(size=size, transform=basis)
        theta = round(0.8 * HighPassFilter(pure, **how).threshold(table.domain, 1))
        made.append(ThresholdSampling(pure, **how))
        made.append(PrioritySampling(pure, **how))
        made.append(PrioritySampling(pure, theta=theta, **how))
    if size >= len(table):
        made.append(ItemBlanket(pure, nonempty=len(table), size=size))
    rho = ZCDP.within(budget)
    cut = HighPassFilter(rho, **how).threshold(table.domain, table.bound)
    return [
        *made,
        PrioritySampling(pure, theta=theta, consistent=True, **how),
        *(HighPassFilter(rho, size=size, transform=basis) for basis in (None, Dyadic())),
        PrioritySampling(rho, theta=round(0.8 * cut), **how),
        ALP(pure, largest=largest, total=total, size_factor=size_factor),
        CountSketch(pure, width=2 * size),
        MisraGries(budget, size=size),
        DirichletSynthesis(budget, records=records, total=total, notion="approximate"),
    ]


@value
class Modern(Figure):
    """Errors of single cells, short ranges and long ranges for all mechanisms, by ε and by the size of the
    release.
    """

    title = "Every release of sparse counts, on one page"
    page = "no figure of the paper: beside Cormode et al., ICDT 2012"
    quick = {"seeds": 2, "cell_queries": 2000, "short_queries": 200, "long_queries": 10}
    columns = 3
    height = 1.8
    rough = {"seeds": 2, "cell_queries": 2000, "short_queries": 200, "long_queries": 20}
    shown = ("epsilon", "rho", "theta", "size", "width", "records", "size_factor")

    epsilons: tuple[float, ...] = unprinted_number(
        (0.03, 0.1, 0.3, 1.0, 3.0), "ε at one size", 1e-6, 1000
    )
    epsilon: float = unprinted_number(0.1, "ε where the size varies", 1e-6, 1000)
    delta: float = unprinted_number(
        1e-6, "δ of the mechanisms that need one", 0, 0.1, strict=True
    )
    m: int = unprinted(100_000, "size of the domain", 1000, 10**8, unit="cells")
    mean: float = unprinted_number(100.0, "mean μ of the counts", unit="counts")
    std: float = unprinted_number(20.0, "standard deviation σ of counts", unit="counts")
    density: float = unprinted_number(
        0.01, "share ρ of cells that are not empty", 0, 0.5, strict=True
    )
    size: int = unprinted(1000, "size s where ε varies", unit="cells")
    sizes: tuple[int, ...] = unprinted(
        (300, 1000, 3000, 10_000), "sizes s at one ε", unit="cells"
    )
    largest: int = unprinted(200, "largest count that ALP can represent")
    short: int = unprinted(100, "length of short ranges", unit="cells")
    long: int = unprinted(10_000, "length of long ranges", unit="cells")
    cell_queries: int = effort(20_000, "number of queries of one cell")
    short_queries: int = effort(2000, "number of short ranges asked")
    long_queries: int = effort(100, "number of long ranges asked")
    seeds: int = seeds(40)

    @property
    def data(self) -> GaussianSparse:
        """Synthetic counts in ten regions."""
        placed = dict(density=self.density, placement="skewed")
        return GaussianSparse(m=self.m, mean=self.mean, std=self.std, **placed)

    def asked(self) -> dict[int, RandomRanges]:
        """Return the range queries, by the length of the ranges."""
        counts = {
            1: self.cell_queries,
            self.short: self.short_queries,
            self.long: self.long_queries,
        }
        return {n: RandomRanges(n, count) for n, count in counts.items()}

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs: one with all values of ε, and one per size."""
        table = self.data.load()
        made = partial(of_size, table=table, largest=self.largest)
        upper = []
        for epsilon in self.epsilons:
            budget = DP(epsilon, self.delta)
            upper += of_no_size(budget, table)
            upper += made(budget, size=self.size, records=int(table.total), size_factor=50.0)
        budget = DP(self.epsilon, self.delta)
        runs = {"ε": upper, "no size": of_no_size(budget, table)}
        for size in self.sizes:
            factor = 50 * size / self.size
            runs[f"size = {size}"] = made(budget, size=size, records=size, size_factor=factor)
        metrics = [MeanAbsoluteError(workload) for workload in self.asked().values()]
        return {
            name: Sweep([self.data], made, metrics, self.seeds) for name, made in runs.items()
        }

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, with the size of a release in `bytes`, and the requested size in
        `target`.

        Rows of mechanisms with a ρ also have the ε and δ to which this ρ belongs.
        """
        rows = super().rows(store)
        sizes = {"no size": self.size} | {f"size = {size}": size for size in self.sizes}
        places = 1 + ~rows.mechanism.isin(NO_PLACES)
        pairs = {ZCDP.within(DP(e, self.delta)).rho: e for e in (*self.epsilons, self.epsilon)}
        return rows.assign(
            epsilon=rows.epsilon.fillna(rows.rho.map(pairs)),
            delta=rows.delta.mask(rows.rho.notna(), self.delta),
            series=rows.series.str.replace("dyadic, consistent", "consistent"),
            target=rows.panel.map(sizes),
            panel=rows.panel.where(rows.panel == "ε", "size"),
            bytes=8 * rows.released * places,
        )

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels. There is one column per query. The first rows show errors by ε and by
        size, and each further row shows one family of mechanisms.
        """
        table = self.data.load()
        nothing = {}
        for n, workload in self.asked().items():
            answer = table.answer(workload.on(table.domain)).mean()
            nothing[n] = ("nothing released", partial(np.full_like, fill_value=answer))

        def line(family: str, where: str, x: str, title: str) -> list[Panel]:
            at = "target" if x == "bytes" else None
            here = {"panel": where, "family": family}
            return [
                Panel(f"{_cells(n)}, {title}", {**here, "query_size": n}, x, at=at, theory=law)
                for n, law in nothing.items()
            ]

        grid = line(SOME, "ε", "epsilon", f"s = {self.size:,}")
        grid += line(SOME, "size", "bytes", f"ε = {self.epsilon:g}")
        for family in list(FAMILIES)[1:]:
            grid += line(family, "ε", "epsilon", family)
        return grid

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results of each family of mechanisms, and of the mechanisms that are drawn with it for
        comparison.
        """
        frames = []
        kinds = rows.mechanism.mask(rows.rho.notna(), GAUSSIAN)
        for family, (mechanisms, references) in FAMILIES.items():
            members = kinds.isin(mechanisms)
            reference = rows.series.isin(references) & ~members
            frames += [rows[part].assign(family=family) for part in (reference, members)]
        return pd.concat(frames, ignore_index=True).assign(metric="error (counts)")

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table of the mechanisms with the smallest mean errors. It has one row per guarantee and ε,
        and one column per query.
        """

        table: dict[tuple, dict] = {}
        groups = rows[rows.panel == "ε"].groupby(["epsilon", "query_size"])
        for (epsilon, n), errors in groups:
            pure = errors.delta == 0
            for promise, chosen in (("ε", errors[pure]), ("ε, δ", errors[~pure])):
                means = chosen.groupby("series").value.mean()
                best = f"{means.idxmin()}: {format_number(means.min())}"
                table.setdefault((promise, epsilon), {})[_cells(n)] = best
        return pd.DataFrame(table).T.rename_axis(["promise", "ε"])


def _cells(n: int) -> str:
    return "one cell" if n == 1 else f"{n:,.0f} cells"
