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
from workbench.plots import Panel, name_series

TITLE = "Every release of sparse counts, on one page"
PAGE = "no figure of the paper: beside Cormode et al., ICDT 2012"
SEEDS = {"quick": 5, "paper": 40}

DATA = GaussianSparse(m=100_000, density=0.01, placement="skewed")
LARGEST, TOTAL = 200, 99_817
EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0)
EPSILON, DELTA = 0.1, 1e-6
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
    budget, found = DP(epsilon), []
    for basis in (None, Dyadic()):
        asked = dict(size=size, transform=basis)
        theta = round(0.8 * HighPassFilter(budget, **asked).threshold(DATA.domain, 1))
        found += [
            ThresholdSampling(budget, **asked),
            PrioritySampling(budget, **asked),
            PrioritySampling(budget, theta=theta, **asked),
        ]
    return [*found, PrioritySampling(budget, theta=theta, consistent=True, **asked)]


def others(epsilon: float, size: int, records: int) -> list:
    """What is no summary of a noisy table."""
    pure, approximate = DP(epsilon), DP(epsilon, DELTA)
    return [
        ALP(pure, largest=LARGEST, total=TOTAL, size_factor=50 * size / SIZE),
        CountSketch(pure, width=2 * size),
        StabilityHistogram(approximate),
        DirichletSynthesis(approximate, records=records, total=TOTAL, notion="approximate"),
    ]


def rows(profile: str, store) -> pd.DataFrame:
    """Errors, in a column `panel` "ε" or "size", and what a release takes, in `bytes`."""
    seeds = SEEDS[profile]
    metrics = [MeanAbsoluteError(RandomRanges(n, count)) for n, count in ASKED.items()]

    def swept(panel: str, mechanisms: list, **about) -> pd.DataFrame:
        return run(Sweep([DATA], mechanisms, metrics, seeds), store).assign(
            panel=panel, **about
        )

    found = [
        swept(
            "ε",
            [*full_tables(e), *filters(e, SIZE), *samples(e, SIZE), *others(e, SIZE, TOTAL)],
        )
        for e in EPSILONS
    ]
    found.append(swept("size", full_tables(EPSILON), target=SIZE))
    for size in SIZES:
        wanted = [
            *filters(EPSILON, size),
            *samples(EPSILON, size),
            *others(EPSILON, size, size),
        ]
        kept = [m for m in wanted if size == SIZE or not isinstance(m, StabilityHistogram)]
        found.append(swept("size", kept, target=size))
    told = with_series(pd.concat(found, ignore_index=True))
    placed = ~told.mechanism.isin(["GeometricHistogram", "CountSketch", "ALP"])
    return told.assign(bytes=8 * told.released * (1 + placed))


def with_series(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with a column `series`; only trees are consistent, which need not be said twice."""
    told = name_series(rows)
    return told.assign(series=told.series.str.replace("dyadic, consistent", "consistent"))


def drawn_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with a column `family`; those of the geometric table and the filter in each."""
    kinds = {
        "full tables": ["GeometricHistogram"],
        "filters": ["HighPassFilter"],
        "samples": ["ThresholdSampling", "PrioritySampling"],
        "others": ["ALP", "CountSketch", "StabilityHistogram", "DirichletSynthesis"],
    }
    beside = {"filters": ["geometric"], "samples": ["geometric"]}
    beside["others"] = ["geometric", "filter"]
    found = []
    for family, mechanisms in kinds.items():
        known = rows.series.isin(beside.get(family, ()))
        own = rows.mechanism.isin(mechanisms)
        found += [rows[known & ~own].assign(family=family), rows[own].assign(family=family)]
    return pd.concat(found, ignore_index=True).assign(metric="error (counts)")


def _nothing(n: int) -> tuple[str, Callable]:
    """The error of a release of nothing, the mean answer: whatever lies above is of no use."""
    table = DATA.load()
    mean = table.answer(RandomRanges(n, ASKED[n]).on(table.domain)).mean()
    return "nothing released", lambda x: np.full(len(x), mean)


QUERIES = {1: "one cell", 100: "100 cells", 10_000: "10⁴ cells"}
FAMILIES = ("full tables", "filters", "samples", "others")
PANELS = tuple(
    Panel(
        f"{family}: {words}",
        {"panel": panel, "family": family, "query_size": n},
        x,
        at=at,
        theory=_nothing(n),
    )
    for panel, families, x, at in (
        ("ε", FAMILIES, "epsilon", None),
        ("size", FAMILIES[1:], "bytes", "target"),
    )
    for family in families
    for n, words in QUERIES.items()
)


def least_errors(rows: pd.DataFrame) -> pd.DataFrame:
    """Which release has the least mean error, ε-DP and (ε, δ)-DP apart; a column a query."""
    told = {}
    for (epsilon, n), some in rows[rows.panel == "ε"].groupby(["epsilon", "query_size"]):
        for promise, those in (("ε", some[some.delta == 0]), ("ε, δ", some[some.delta > 0])):
            errors = those.groupby("series").value.mean()
            words = f"{errors.idxmin()}: {format_number(errors.min())}"
            told.setdefault((promise, epsilon), {})[QUERIES[n]] = words
    return pd.DataFrame(told).T.rename_axis(["promise", "ε"])
