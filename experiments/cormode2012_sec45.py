"""Cormode et al. 2012, section 4.5: Dirichlet synthesis against the geometric mechanism, on ranges.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.5, last paragraph; the method is
        that of Machanavajjhala, Kifer, Abowd, Gehrke & Vilhuber, ICDE 2008.
Read    from the text; there is no figure.
Open    Data and ranges as in Figure 6(b): the twin of OnTheMap is judged, US counties and Rhode
        Island by tract stand beside it. ε = 1, δ = 10⁻⁴ as printed. The number of synthetic records
        is not printed: as many as true ones. The total is a parameter that the caller states as
        public: it is printed for these published tables, which say truth_public.
        The prior is not printed: the least α that the exact tails allow for all cells. The closed
        form of 2008 needs ε > ln 2, and the paper found no α below ε = 1; there are some.
        Relation: (ε, δ) is for replacing a record, geometric noise for adding or removing one, and
        the paper compares them at one ε, which is judged. "Replace one" is geometric noise
        at ε/2, which promises ε for replacing. The summaries are there for scale: s/m of Figure 6(a),
        filter-priority with θ = 2.
        Not in the paper, and not judged: "lean", n/100 records and δ for (ε, δ)-DP alone, which both
        need less prior; one table a work place with its jobs public, as OnTheMap itself was made
        (there ε = 8.6, δ = 10⁻⁵), on Rhode Island. Other ε on Rhode Island, at ranges of 1 %.
        In the quick profile US counties go without the n = 140 million records.
        200 queries a size (quick), 1000 (paper).
Words   over three times = geometric below a third of it, intervals apart, at three quarters of the
        sizes; in `beside`, from 3 to 4.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from experiments.cormode2012_fig6a import SIZE
from experiments.cormode2012_fig6b import DATASETS, JUDGED, SHARES, missing_datasets
from workbench import DP, RandomRanges, Sweep, claims, run
from workbench.claims import Claim, Finding, Printed, check_lower, check_printed, mean_curve
from workbench.domain import Domain
from workbench.estimates import Summary
from workbench.mechanisms import (
    DirichletSynthesis,
    GeometricHistogram,
    HighPassFilter,
    PrioritySampling,
)
from workbench.metrics import MeanAbsoluteError
from workbench.plots import Panel, name_series
from workbench.privacy import ADD_REMOVE, REPLACE
from workbench.table import Bound, SparseTable

__all__ = ["missing_datasets"]  # of figure 6(b): the same data

TITLE = "Dirichlet synthesis against geometric noise, on range queries"
PAGE = "Cormode et al., ICDT 2012, section 4.5"

SEEDS = {"quick": 5, "paper": 20}
QUERIES = {"quick": 200, "paper": 1000}
EPSILON, DELTA = 1.0, 1e-4
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.6)
AT = 0.01
TOTALS = {
    "OnTheMap twin": 123_003_381,
    "US counties": 140_843_659,
    "Rhode Island, tracts": 406_052,
}
SMALL, LARGE = "Rhode Island, tracts", "US counties"

PAPER = {
    "ratio": Printed("over three times the absolute error of geometric", 3, 4, at=EPSILON),
}

GEOMETRIC, REPLACED, SYNTHESIS = "geometric", "geometric, replace one", "Dirichlet synthesis"
LEAN, PLACES = "lean synthesis", f"{SYNTHESIS}, by work place"


def synthesis(name: str, epsilon: float, lean: bool = False) -> DirichletSynthesis:
    """As the paper has it, or as lean as can be: fewer records, and no more than (ε, δ)-DP."""
    budget, total = DP(epsilon, DELTA), TOTALS[name]
    if not lean:
        return DirichletSynthesis(budget, records=total, total=total)
    return DirichletSynthesis(budget, records=total // 100, total=total, notion="approximate")


def mechanisms(name: str, epsilon: float, m: int, profile: str) -> list:
    """What is run on one dataset of m cells; the large ones at ε = 1 alone."""
    if epsilon != EPSILON and name != SMALL:
        return []
    size = round(SIZE / DATASETS[JUDGED].domain.size * m)
    found = [
        GeometricHistogram(DP(epsilon)),
        GeometricHistogram(DP(epsilon / 2)),
    ]
    if name != LARGE or profile == "paper":
        found.append(synthesis(name, epsilon))
    found.append(synthesis(name, epsilon, lean=True))
    if epsilon == EPSILON:
        found.append(HighPassFilter(DP(epsilon), size=size))
        found.append(PrioritySampling(DP(epsilon), size=size, theta=2))
    return found


def rows(profile: str, store) -> pd.DataFrame:
    """Errors on every dataset at hand, their ratios to geometric's, and what the prior's share is.

    `epsilon` is for the `relation` of its row, and so twice what the trial of "replace one" spends.
    """
    seeds, found = SEEDS[profile], []
    for name, dataset in DATASETS.items():
        try:
            m = dataset.domain.size
            sizes = {round(share * m): share for share in SHARES}
            metrics = [MeanAbsoluteError(RandomRanges(n, QUERIES[profile])) for n in sizes]
            some = []
            for epsilon in EPSILONS:
                if wanted := mechanisms(name, epsilon, m, profile):
                    one = run(Sweep([dataset], wanted, metrics, seeds), store)
                    some.append(_told(one, epsilon))
            if name == SMALL:
                some.append(_places(dataset, metrics, seeds))
        except FileNotFoundError:
            continue
        one = pd.concat(some, ignore_index=True)
        found.append(one.assign(panel=name, share=one.query_size.map(sizes)))
    errors = pd.concat(found, ignore_index=True)
    there = errors[(errors.panel == SMALL) & (errors.share == AT)]
    ratios = [ratio(there, to).assign(panel=to) for to in (GEOMETRIC, REPLACED) if len(there)]
    return pd.concat([errors, *ratios, priors()], ignore_index=True)


def _told(rows: pd.DataFrame, epsilon: float) -> pd.DataFrame:
    """One line a mechanism in words, and whom its ε is about."""
    rows, synthetic = name_series(rows), rows.mechanism == "DirichletSynthesis"
    halved = rows.epsilon != epsilon
    rows["series"] = rows.series.mask(halved, REPLACED)
    rows["series"] = rows.series.mask(synthetic & (rows.records < rows.total), LEAN)
    rows["relation"] = np.where(halved | synthetic, REPLACE, ADD_REMOVE)
    return rows.assign(epsilon=epsilon)


def ratio(rows: pd.DataFrame, to: str) -> pd.DataFrame:
    """Rows of a metric `ErrorRatio`: the error of each synthesis in units of that of the series `to`.

    Their mean over seeds is a/b for the mean errors a and b; each seed differs from it by what it
    moves it to first order, so that intervals are those of a ratio.
    """
    at = ["epsilon", "share"]
    other = rows[rows.series == to][[*at, "seed", "value"]].rename(columns={"value": "other"})
    ours = rows[rows.series.isin([SYNTHESIS, PLACES, LEAN])].merge(other, on=[*at, "seed"])
    groups = ours.groupby([*at, "series"])
    a, b = (groups[name].transform("mean") for name in ("value", "other"))
    ours["value"] = a / b * (1 + ours.value / a - ours.other / b)
    return ours.drop(columns="other").assign(metric="ErrorRatio")


def priors() -> pd.DataFrame:
    """What share of the records the prior is expected to draw, A/(A + n), on the judged data."""
    k, n = DATASETS[JUDGED].domain.size, TOTALS[JUDGED]
    told = []
    for series, lean in ((SYNTHESIS, False), (LEAN, True)):
        for epsilon in EPSILONS:
            mechanism = synthesis(JUDGED, epsilon, lean)
            weight = k * mechanism.prior(k)
            about = dict(series=series, epsilon=epsilon, delta=DELTA, mechanism=repr(mechanism))
            told.append(about | {"value": weight / (weight + n)})
    about = dict(panel="prior", metric="PriorShare", seed=0, truth_public=True)
    return pd.DataFrame(told).assign(dataset=repr(DATASETS[JUDGED]), **about)


def _places(dataset, metrics: list, seeds: int) -> pd.DataFrame:
    """One synthesis a work place, with its number of jobs public; together they are one release.

    A job that moves its home stays in one table, so that together they promise what each does.
    """
    table = dataset.load()
    parts: list[tuple[list, list]] = [([], []) for _ in range(seeds)]
    for start, part in _rows(table):
        mechanism = DirichletSynthesis(DP(EPSILON, DELTA), part.total, part.total)
        for seed, (keys, counts) in enumerate(parts):
            rng = np.random.default_rng([seed, start])
            estimate = mechanism(part, rng).estimate
            keys.append(start + estimate.keys)
            counts.append(estimate.values)
    about = dict(dataset=repr(dataset), truth_public=dataset.truth_public, series=PLACES)
    about |= dict(epsilon=EPSILON, delta=DELTA, relation=REPLACE, mechanism=PLACES)
    return pd.DataFrame(
        about
        | dict(metric=type(metric).__name__, workload=repr(metric.workload))
        | dict(seed=seed, query_size=metric.workload.size, value=metric(table, whole))
        for seed, (keys, counts) in enumerate(parts)
        for whole in [Summary(table.domain, np.concatenate(keys), np.concatenate(counts), None)]
        for metric in metrics
    )


def _rows(table: SparseTable) -> Iterator[tuple[int, SparseTable]]:
    """Each row of a table of two attributes that holds anything, and its first key."""
    width = table.domain.shape[1]
    homes = Domain(table.domain.attributes[1:], (width,))
    for start in range(0, table.domain.size, width):
        own = slice(*np.searchsorted(table.keys, [start, start + width]))
        keys, counts = table.keys[own] - start, table.counts[own]
        if len(keys):
            yield start, SparseTable(homes, keys, counts, Bound(1, 1), table.truth_public)


def panels(rows: pd.DataFrame) -> list[Panel]:
    """Errors, a panel a dataset at hand; then ratios against ε, and the prior's share."""
    errors = {"metric": "MeanAbsoluteError", "epsilon": EPSILON}
    found = [
        Panel(f"({letter}) {name}", {"panel": name, **errors}, "share")
        for letter, name in zip("abc", DATASETS, strict=True)
        if name in set(rows.panel)
    ]
    titles = {GEOMETRIC: "(d) Rhode Island, at 1 %", REPLACED: "(e) both replace one"}
    found += [
        Panel(
            title, {"panel": to}, "epsilon", printed=PAPER["ratio"] if to == GEOMETRIC else ()
        )
        for to, title in titles.items()
        if to in set(rows.panel)
    ]
    return [*found, Panel("(f) prior, OnTheMap twin", {"panel": "prior"}, "epsilon", log="x")]


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """How many times the error of geometric, under its own relation and under the same."""
    lines = []
    at_one = rows[(rows.metric == "MeanAbsoluteError") & (rows.epsilon == EPSILON)]
    for name, some in at_one.groupby("panel", sort=False):
        for to in (GEOMETRIC, REPLACED):
            ratios = ratio(some, to)
            for series in ratios.series.unique():
                told = check_printed(PAPER["ratio"], mean_curve(ratios, "share", series=series))
                lines.append((f"{name}: {series} / {to}", PAPER["ratio"], told))
    return claims.compare_with_paper(*lines)


def _three_times(rows) -> Finding:
    table, synthetic = (
        mean_curve(rows, "share", panel=JUDGED, series=series, epsilon=EPSILON)
        for series in (GEOMETRIC, SYNTHESIS)
    )
    return check_lower(table, synthetic, times=3)


CLAIMS = (
    Claim(
        "c-45-1",
        "Dirichlet synthesis (ε = 1, δ = 10⁻⁴) has over three times the absolute error of the "
        "geometric mechanism on the same range queries.",
        _three_times,
    ),
)
