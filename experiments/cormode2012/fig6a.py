"""Figure 6(a) of Cormode et al. (2012): errors of subset queries on jobs by workplace and home.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.5 and Figure 6(a).
Read    We read all numbers from the text, because the plot is not in our copy.
Open    The module `data` describes the tables. The filter gets the θ that gives its size, which follows from
        m, s and ε alone. The paper does not print the "small threshold" of filter-priority sampling. On
        OnTheMap or its stand-in, we run several values of θ. The figure draws θ = 5, the smallest value of
        section 4.2, and the other tables use only this value. The sizes of the subsets are not printed
        either.
"""

from __future__ import annotations

import numpy as np

from experiments._fields import unprinted
from experiments.cormode2012.data import (
    COMMUTING,
    PAPERS,
    CommutingTables,
    dataset_named,
    judged,
    published_tables,
    query_shares,
)
from experiments.cormode2012.shared import ABSOLUTE, RELATIVE
from workbench import DP, RandomSubsets
from workbench.compiled import pd
from workbench.figures import Figure
from workbench.figures.fields import epsilon, queries, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import GeometricHistogram, HighPassFilter, PrioritySampling
from workbench.spaces import Domain
from workbench.trials.claims import (
    Finding,
    MissingPoints,
    Printed,
    check_between,
    decide,
    means,
    select,
)
from workbench.trials.metrics import MeanAbsoluteError, MedianRelativeError
from workbench.value import format_number, value

THETAS = (1, 2, 5, 10, 20)
LARGE = 0.2
CHANCE = 0.05  # of a single plot that shows it
PRINTED = Printed("less than 0.8 % from 5 % of the space on", 0.0, 0.008, over=(0.05, 0.5))
TABLE = dict(mechanism="GeometricHistogram")
FILTER = dict(mechanism="HighPassFilter")
PRIORITY = dict(mechanism="PrioritySampling", theta=0)


def _errors(rows, method: dict, metric: str = ABSOLUTE) -> pd.DataFrame:
    return select(judged(rows), metric=metric, **method)


def five_times(rows, level) -> Finding:
    """Check whether the full noisy table is more than five times as large as the sample."""
    times = _errors(rows, TABLE).released.min() / _errors(rows, PRIORITY)["size"].max()
    return Finding(bool(times > 5), f"{times:.3g}×")


def single_releases(rows, level, theta: int) -> Finding:
    """Check whether, for large subsets, a single sample is better than a single full table in more than 5 %
    of the cases.
    """
    from scipy.stats import binomtest

    errors = [_errors(rows, x) for x in (PRIORITY | {"theta": theta}, TABLE)]
    large = (own[own.share >= LARGE] for own in errors)
    sample, table = (own.groupby("seed").value.mean() for own in large)
    ratio = (sample / table).dropna()
    if ratio.empty:
        raise MissingPoints("no large queries of both")
    better = int((ratio < 1).sum())
    least, most = binomtest(better, len(ratio)).proportion_ci(level)  # Clopper and Pearson's
    measured = f"better in {better} of {len(ratio)} pairs of releases"
    measured += f"; in the mean {format_number(sample.mean() / table.mean())}× the error"
    return Finding(decide(least > CHANCE, most < CHANCE), measured)


def all_below(rows, level, techniques: str, theta: int) -> Finding:
    """Check whether all methods, or all except the filter, have relative errors below 0.8 % for subsets of at
    least 5 % of the cells.
    """
    methods = [TABLE, PRIORITY, PRIORITY | {"theta": theta}]
    if techniques == "all":
        methods.append(FILTER)
    own = [_errors(rows, x, RELATIVE).assign(method=i) for i, x in enumerate(methods)]
    relative = pd.concat(own)
    relative = relative[relative.share >= 0.05]
    percent = relative.assign(series="any", value=100 * relative.value)
    numbers = means(percent, "any", ["method", "share"])
    return check_between(numbers, level, high=np.nextafter(0.8, 0), unit=" %")


@value
class Fig6a(CommutingTables, Figure):
    """Errors of random subsets of the pairs of places. The subsets contain a thousandth to half of
    all pairs.
    """

    title = "Subset queries on commuting data"
    page = "Cormode et al., ICDT 2012, section 4.5, Figure 6(a)"
    quick = {"seeds": 3, "queries": 200}
    shown = ("size",)

    epsilon: float = epsilon(0.1)
    size: int = whole(3_000_000, "size s on the stand-in (elsewhere a share)", unit="cells")
    theta: int = unprinted(5, "θ of filter-priority, drawn", unit="counts")
    thetas: tuple[int, ...] = unprinted(
        THETAS, "thresholds θ of filter-priority on OnTheMap", unit="counts"
    )
    data: tuple[str, ...] = published_tables(*COMMUTING)
    shares: tuple[float, ...] = query_shares(
        (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5), "subsets"
    )
    queries: int = queries(1000)
    seeds: int = seeds(200)  # a share of 5 % of single releases takes many

    def mechanisms(self, name: str) -> list:
        """Return the mechanisms for a table: the full noisy table, and every summary of cells."""
        budget = DP(self.epsilon)
        size = self.summary_size(dataset_named(name).domain)
        swept = self.thetas if name in PAPERS else ()
        thetas = dict.fromkeys((self.theta, *swept))
        return [
            GeometricHistogram(budget),
            HighPassFilter(budget, size=size),
            PrioritySampling(budget, size=size),
            *(PrioritySampling(budget, size=size, theta=theta) for theta in thetas),
        ]

    def metrics(self, domain: Domain) -> list:
        """Return the metrics for a domain: the mean absolute and median relative errors of random subsets."""
        subsets = [RandomSubsets(size, self.queries) for size in self.query_sizes(domain)]
        return [m(x) for m in (MeanAbsoluteError, MedianRelativeError) for x in subsets]

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels: absolute and relative errors, with one row of panels per dataset."""
        grid = []
        for name in rows.panel.unique():
            printed = PRINTED if name in PAPERS else ()
            for metric, shown in ((ABSOLUTE, ()), (RELATIVE, printed)):
                where = {"panel": name, "metric": metric}
                grid.append(Panel(name, where, "share", printed=shown))
        return grid

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results that the figure draws. Filter-priority sampling is drawn for one θ."""
        hybrid = rows.mechanism.eq("PrioritySampling") & rows.theta.gt(0)
        return rows[~hybrid | rows.theta.eq(self.theta)]
