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

from experiments.cormode2012.fig6a import SIZE
from experiments.cormode2012.fig6b import DATASETS, JUDGED, SHARES, missing_datasets
from experiments.cormode2012.shared import ABSOLUTE
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
from workbench.plots import Panel
from workbench.privacy import ADD_REMOVE, REPLACE
from workbench.table import Bound, SparseTable

__all__ = ["missing_datasets"]  # of figure 6(b): the same data

TITLE = "Dirichlet synthesis against geometric noise, on range queries"
PAGE = "Cormode et al., ICDT 2012, section 4.5"

SEEDS = {"quick": 5, "paper": 20}
QUERIES = {"quick": 200, "paper": 1000}
EPSILON = 1.0
DELTA = 1e-4
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.6)
AT = 0.01
TOTALS = {
    "OnTheMap twin": 123_003_381,
    "US counties": 140_843_659,
    "Rhode Island, tracts": 406_052,
}
SMALL = "Rhode Island, tracts"
LARGE = "US counties"

PAPER = {
    "ratio": Printed("over three times the absolute error of geometric", 3, 4, at=EPSILON),
}

GEOMETRIC = "geometric"
REPLACED = "geometric, replace one"
SYNTHESIS = "Dirichlet synthesis"
LEAN = "lean synthesis"
PLACES = f"{SYNTHESIS}, by work place"


def synthesis(name: str, epsilon: float, lean: bool = False) -> DirichletSynthesis:
    """As the paper has it, or as lean as can be: fewer records, and no more than (ε, δ)-DP."""
    budget = DP(epsilon, DELTA)
    total = TOTALS[name]
    if not lean:
        return DirichletSynthesis(budget, records=total, total=total)
    return DirichletSynthesis(budget, records=total // 100, total=total, notion="approximate")


def mechanisms(name: str, epsilon: float, m: int, profile: str) -> list:
    """What is run on one dataset of m cells; the large ones at ε = 1 alone."""
    if epsilon != EPSILON and name != SMALL:
        return []
    summaries = [GeometricHistogram(DP(epsilon)), GeometricHistogram(DP(epsilon / 2))]
    if name != LARGE or profile == "paper":
        summaries.append(synthesis(name, epsilon))
    summaries.append(synthesis(name, epsilon, lean=True))
    if epsilon == EPSILON:
        size = round(SIZE / DATASETS[JUDGED].domain.size * m)
        summaries.append(HighPassFilter(DP(epsilon), size=size))
        summaries.append(PrioritySampling(DP(epsilon), size=size, theta=2))
    return summaries


def rows(profile: str, store) -> pd.DataFrame:
    """Errors on every dataset at hand, their ratios to geometric's, and what the prior's share is.

    `epsilon` is for the `relation` of its row, and so twice what the trial of "replace one" spends.
    """
    frames = []
    for name, dataset in DATASETS.items():
        try:
            m = dataset.domain.size
            shares = {round(share * m): share for share in SHARES}
            frame = _errors(name, dataset, shares, profile, store)
        except FileNotFoundError:
            continue
        frames.append(frame.assign(panel=name, share=frame.query_size.map(shares)))
    errors = pd.concat(frames, ignore_index=True)
    small = errors[(errors.panel == SMALL) & (errors.share == AT)]
    bases = (GEOMETRIC, REPLACED) if len(small) else ()
    ratios = [error_ratio(small, base).assign(panel=base) for base in bases]
    return pd.concat([errors, *ratios, priors()], ignore_index=True)


def _errors(name: str, dataset, sizes, profile: str, store) -> pd.DataFrame:
    """The errors of one dataset, over ranges of these sizes."""
    metrics = [MeanAbsoluteError(RandomRanges(n, QUERIES[profile])) for n in sizes]
    frames = []
    for epsilon in EPSILONS:
        made = mechanisms(name, epsilon, dataset.domain.size, profile)
        if made:
            frame = run(Sweep([dataset], made, metrics, SEEDS[profile]), store)
            frames.append(_with_relation(frame, epsilon))
    if name == SMALL:
        frames.append(_by_work_place(dataset, metrics, SEEDS[profile]))
    return pd.concat(frames, ignore_index=True)


def _with_relation(rows: pd.DataFrame, epsilon: float) -> pd.DataFrame:
    """One line a mechanism in words, and whom its ε is about."""
    rows = rows.assign(series=rows.mechanism_name)
    synthetic = rows.mechanism == "DirichletSynthesis"
    halved = rows.epsilon != epsilon
    rows["series"] = rows.series.mask(halved, REPLACED)
    rows["series"] = rows.series.mask(synthetic & (rows.records < rows.total), LEAN)
    rows["relation"] = np.where(halved | synthetic, REPLACE, ADD_REMOVE)
    return rows.assign(epsilon=epsilon)


def error_ratio(rows: pd.DataFrame, base: str) -> pd.DataFrame:
    """Rows of a metric `ErrorRatio`: the error of each synthesis in units of that of series `base`.

    Their mean over seeds is a/b for the mean errors a and b; each seed differs from it by what it
    moves it to first order, so that intervals are those of a ratio.
    """
    point = ["epsilon", "share"]
    other = rows[rows.series == base][[*point, "seed", "value"]]
    other = other.rename(columns={"value": "other"})
    ratios = rows[rows.series.isin([SYNTHESIS, PLACES, LEAN])].merge(other, on=[*point, "seed"])
    groups = ratios.groupby([*point, "series"])
    a = groups["value"].transform("mean")
    b = groups["other"].transform("mean")
    ratios["value"] = a / b * (1 + ratios.value / a - ratios.other / b)
    return ratios.drop(columns="other").assign(metric="ErrorRatio")


def priors() -> pd.DataFrame:
    """What share of the records the prior is expected to draw, A/(A + n), on the judged data."""
    k = DATASETS[JUDGED].domain.size
    n = TOTALS[JUDGED]
    shares = []
    for series, lean in ((SYNTHESIS, False), (LEAN, True)):
        for epsilon in EPSILONS:
            mechanism = synthesis(JUDGED, epsilon, lean)
            weight = k * mechanism.prior(k)
            row = dict(series=series, epsilon=epsilon, delta=DELTA, mechanism=repr(mechanism))
            shares.append(row | {"value": weight / (weight + n)})
    columns = dict(panel="prior", metric="PriorShare", seed=0, truth_public=True)
    return pd.DataFrame(shares).assign(dataset=repr(DATASETS[JUDGED]), **columns)


def _by_work_place(dataset, metrics: list, seeds: int) -> pd.DataFrame:
    """One synthesis a work place, with its number of jobs public; together they are one release.

    A job that moves its home stays in one table, so that together they promise what each does.
    """
    table = dataset.load()
    keys: dict[int, list] = {seed: [] for seed in range(seeds)}
    counts: dict[int, list] = {seed: [] for seed in range(seeds)}
    for start, jobs in _work_places(table):
        mechanism = DirichletSynthesis(DP(EPSILON, DELTA), jobs.total, jobs.total)
        for seed in range(seeds):
            estimate = mechanism(jobs, np.random.default_rng([seed, start])).estimate
            keys[seed].append(start + estimate.keys)
            counts[seed].append(estimate.values)
    errors = []
    for seed in range(seeds):
        whole = (np.concatenate(keys[seed]), np.concatenate(counts[seed]))
        whole = Summary(table.domain, *whole, None)
        for metric in metrics:
            row = dict(metric=type(metric).__name__, workload=repr(metric.workload), seed=seed)
            row["query_size"] = metric.workload.size
            errors.append(row | dict(value=metric(table, whole)))
    columns = dict(dataset=repr(dataset), truth_public=dataset.truth_public, series=PLACES)
    columns |= dict(epsilon=EPSILON, delta=DELTA, relation=REPLACE, mechanism=PLACES)
    return pd.DataFrame([columns | row for row in errors])


def _work_places(table: SparseTable) -> Iterator[tuple[int, SparseTable]]:
    """Each row of a table of two attributes that holds anything, and its first key."""
    width = table.domain.shape[1]
    homes = Domain(table.domain.attributes[1:], (width,))
    for start in range(0, table.domain.size, width):
        place = slice(*np.searchsorted(table.keys, [start, start + width]))
        keys = table.keys[place] - start
        if len(keys):
            counts = table.counts[place]
            yield start, SparseTable(homes, keys, counts, Bound(1, 1), table.truth_public)


def panels(rows: pd.DataFrame) -> list[Panel]:
    """Errors, a panel a dataset at hand; then ratios against ε, and the prior's share."""
    available = set(rows.panel)
    grid = []
    for letter, name in zip("abc", DATASETS, strict=True):
        if name in available:
            where = {"panel": name, "metric": ABSOLUTE, "epsilon": EPSILON}
            grid.append(Panel(f"({letter}) {name}", where, "share"))
    if GEOMETRIC in available:
        title = "(d) Rhode Island, at 1 %"
        where = {"panel": GEOMETRIC}
        grid.append(Panel(title, where, "epsilon", printed=PAPER["ratio"]))
        grid.append(Panel("(e) both replace one", {"panel": REPLACED}, "epsilon"))
    return [*grid, Panel("(f) prior, OnTheMap twin", {"panel": "prior"}, "epsilon", log="x")]


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """How many times the error of geometric, under its own relation and under the same."""
    lines = []
    at_one = rows[(rows.metric == ABSOLUTE) & (rows.epsilon == EPSILON)]
    for name, errors in at_one.groupby("panel", sort=False):
        for base in (GEOMETRIC, REPLACED):
            ratios = error_ratio(errors, base)
            for series in ratios.series.unique():
                finding = check_printed(
                    PAPER["ratio"], mean_curve(ratios, "share", series=series)
                )
                lines.append((f"{name}: {series} / {base}", PAPER["ratio"], finding))
    return claims.compare_with_paper(*lines)


def _three_times(rows) -> Finding:
    table = mean_curve(rows, "share", panel=JUDGED, series=GEOMETRIC, epsilon=EPSILON)
    synthetic = mean_curve(rows, "share", panel=JUDGED, series=SYNTHESIS, epsilon=EPSILON)
    return check_lower(table, synthetic, times=3)


CLAIMS = (
    Claim(
        "c-45-1",
        "Dirichlet synthesis (ε = 1, δ = 10⁻⁴) has over three times the absolute error of the "
        "geometric mechanism on the same range queries.",
        _three_times,
    ),
)
