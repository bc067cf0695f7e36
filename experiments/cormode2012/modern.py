"""Beside Cormode et al. 2012: every release of sparse counts that the workbench has, on one page.

Paper   none. The summaries and bases of Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, beside what
        came before and after: stability-based histograms (Korolova et al., WWW 2009), ALP (Aumüller
        et al., CCS 2021), the count sketch, Dirichlet synthesis (Machanavajjhala et al., ICDE 2008).
Read    nothing; no claim is judged.
Open    Made-up data, of which most methods are fond or not alike: m = 10⁵ cells, 1000 of them not
        empty, in ten regions, counts round(N(100, 20²)). Errors of single cells, of ranges of 100
        cells and of 10⁴, a tenth of the domain; above against ε with s = 1000, below against
        size with ε = 0.1.
        Size: eight bytes a number, before any compression. A released cell or node is two numbers,
        its place and its value; a full table needs no places; a bucket is one number, and so are 64
        bits of ALP.
        Filters and samples choose their thresholds from s alone; filter-priority and the consistent
        ones have 4/5 of the θ of the filter of s, as 40 is to 50 in Figure 3. A sketch has one row of
        2·s buckets. ALP is told that no cell exceeds 200, and its size factor is 50 in the upper half.
        Dirichlet synthesis draws as many records as there are, s of them in the lower half. Totals are
        stated as public. δ = 10⁻⁶ where there is one, and Dirichlet synthesis promises ε for
        replacing a record, all else for adding or removing one: at an equal ε, it promises less.
        Stability histograms and full tables have no size to choose, and one mark in the lower half.
Words   none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from workbench import DP, Dyadic, Haar, RandomRanges, Sweep, run
from workbench.claims import Claim, Printed, format_number
from workbench.datasets import GaussianSparse
from workbench.mechanisms import (
    ALP,
    CountSketch,
    DirichletSynthesis,
    GeometricHistogram,
    HighPassFilter,
    PrioritySampling,
    StabilityHistogram,
    ThresholdSampling,
)
from workbench.metrics import MeanAbsoluteError
from workbench.plots import Panel

TITLE = "Every release of sparse counts, on one page"
PAGE = "no figure of the paper: beside Cormode et al., ICDT 2012"
SEEDS = {"quick": 5, "paper": 40}

DATA = GaussianSparse(m=100_000, density=0.01, placement="skewed")
LARGEST = 200
TOTAL = 99_817
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0)
EPSILON = 0.1
DELTA = 1e-6
SIZE = 1000
SIZES = (300, 1000, 3000, 10_000)
ASKED = {1: 20_000, 100: 2000, 10_000: 100}  # cells a query, queries
BASES = (None, Dyadic(), Dyadic(split="geometric"), Haar())

PAPER: tuple[Printed, ...] = ()
CLAIMS: tuple[Claim, ...] = ()


def full_tables(epsilon: float) -> list:
    """Tables of everything."""
    return [GeometricHistogram(DP(epsilon), transform=basis) for basis in BASES]


def filters(epsilon: float, size: int) -> list:
    """The filter in every basis, and the one that checks consistency."""
    budget = DP(epsilon)
    plain = [HighPassFilter(budget, size=size, transform=basis) for basis in BASES]
    return [*plain, HighPassFilter(budget, size=size, transform=Dyadic(), consistent=True)]


def samples(epsilon: float, size: int) -> list:
    """Samples of cells and of nodes."""
    budget = DP(epsilon)
    summaries = []
    for basis in (None, Dyadic()):
        how = dict(size=size, transform=basis)
        theta = round(0.8 * HighPassFilter(budget, **how).threshold(DATA.domain, 1))
        summaries.append(ThresholdSampling(budget, **how))
        summaries.append(PrioritySampling(budget, **how))
        summaries.append(PrioritySampling(budget, theta=theta, **how))
    return [*summaries, PrioritySampling(budget, theta=theta, consistent=True, **how)]


def others(epsilon: float, size: int, records: int) -> list:
    """What is no summary of a noisy table."""
    pure = DP(epsilon)
    approximate = DP(epsilon, DELTA)
    return [
        ALP(pure, largest=LARGEST, total=TOTAL, size_factor=50 * size / SIZE),
        CountSketch(pure, width=2 * size),
        StabilityHistogram(approximate),
        DirichletSynthesis(approximate, records=records, total=TOTAL, notion="approximate"),
    ]


def rows(profile: str, store) -> pd.DataFrame:
    """Errors, in a column `panel` "ε" or "size", and what a release takes, in `bytes`."""
    metrics = [MeanAbsoluteError(RandomRanges(n, count)) for n, count in ASKED.items()]

    def errors(panel: str, mechanisms: list, **columns) -> pd.DataFrame:
        sweep = Sweep([DATA], mechanisms, metrics, SEEDS[profile])
        return run(sweep, store).assign(panel=panel, **columns)

    frames = []
    for epsilon in EPSILONS:
        sized = [
            *filters(epsilon, SIZE),
            *samples(epsilon, SIZE),
            *others(epsilon, SIZE, TOTAL),
        ]
        frames.append(errors("ε", full_tables(epsilon) + sized))
    frames.append(errors("size", full_tables(EPSILON), target=SIZE))
    for size in SIZES:
        sized = [*filters(EPSILON, size), *samples(EPSILON, size), *others(EPSILON, size, size)]
        if size != SIZE:  # a stability histogram has no size
            sized = [m for m in sized if not isinstance(m, StabilityHistogram)]
        frames.append(errors("size", sized, target=size))
    frame = with_series(pd.concat(frames, ignore_index=True))
    placed = ~frame.mechanism.isin(["GeometricHistogram", "CountSketch", "ALP"])
    return frame.assign(bytes=8 * frame.released * (1 + placed))


def with_series(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with a column `series`; only trees are consistent, which need not be said twice."""
    names = rows.mechanism_name.str.replace("dyadic, consistent", "consistent")
    return rows.assign(series=names)


def drawn_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with a column `family`; those of the geometric table and the filter in each."""
    families = {
        "full tables": ["GeometricHistogram"],
        "filters": ["HighPassFilter"],
        "samples": ["ThresholdSampling", "PrioritySampling"],
        "others": ["ALP", "CountSketch", "StabilityHistogram", "DirichletSynthesis"],
    }
    references = {
        "full tables": [],
        "filters": ["geometric"],
        "samples": ["geometric"],
        "others": ["geometric", "filter"],
    }
    frames = []
    for family, mechanisms in families.items():
        members = rows.mechanism.isin(mechanisms)
        reference = rows.series.isin(references[family]) & ~members
        frames += [rows[part].assign(family=family) for part in (reference, members)]
    return pd.concat(frames, ignore_index=True).assign(metric="error (counts)")


def _nothing(n: int) -> tuple[str, Callable]:
    """The error of a release of nothing, the mean answer: whatever lies above is of no use."""
    table = DATA.load()
    mean = table.answer(RandomRanges(n, ASKED[n]).on(table.domain)).mean()
    return "nothing released", lambda x: np.full(len(x), mean)


QUERIES = {1: "one cell", 100: "100 cells", 10_000: "10⁴ cells"}
FAMILIES = ("full tables", "filters", "samples", "others")


def _panels(panel: str, families: tuple[str, ...], x: str, **how) -> list[Panel]:
    """A line a family, a column a query."""
    grid = []
    for family in families:
        for n, label in QUERIES.items():
            where = {"panel": panel, "family": family, "query_size": n}
            grid.append(Panel(f"{family}: {label}", where, x, theory=_nothing(n), **how))
    return grid


PANELS = (
    *_panels("ε", FAMILIES, "epsilon"),
    *_panels("size", FAMILIES[1:], "bytes", at="target"),
)


def least_errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Which release has the least mean error, ε-DP and (ε, δ)-DP apart; a column a query."""
    table: dict[tuple, dict] = {}
    groups = rows[rows.panel == "ε"].groupby(["epsilon", "query_size"])
    for (epsilon, n), errors in groups:
        pure = errors.delta == 0
        for promise, chosen in (("ε", errors[pure]), ("ε, δ", errors[~pure])):
            means = chosen.groupby("series").value.mean()
            best = f"{means.idxmin()}: {format_number(means.min())}"
            table.setdefault((promise, epsilon), {})[QUERIES[n]] = best
    return pd.DataFrame(table).T.rename_axis(["promise", "ε"])
