"""Cormode et al. 2012, Figure 6(a): subset queries on commuting data.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.5 and Figure 6(a).
Read    from the text; the plot is not in our copy.
Open    The data, `data.py`. The filter gets the θ that goes with its size, from m, s and ε alone. The
        "small threshold" of filter-priority is not printed: several on OnTheMap or its twin, of which
        θ = 5, the least of section 4.2, is drawn, and run on other tables. Nor are the sizes of the
        subsets.
"""

from __future__ import annotations

from pathlib import Path

from experiments.cormode2012.data import (
    COMMUTING,
    PAPERS,
    CommutingTables,
    dataset_named,
    published_tables,
    query_shares,
)
from experiments.cormode2012.fig6a_claims import CHECKS, PAPER, THETAS, comparison
from experiments.cormode2012.shared import ABSOLUTE, RELATIVE
from workbench import DP, RandomSubsets
from workbench.compiled import pd
from workbench.figures import UNPRINTED, Figure
from workbench.figures.figure import epsilon, queries, seeds, whole, wholes
from workbench.figures.plots import Panel
from workbench.mechanisms import GeometricHistogram, HighPassFilter, PrioritySampling
from workbench.spaces import Domain
from workbench.trials import claims
from workbench.trials.metrics import MeanAbsoluteError, MedianRelativeError
from workbench.value import value


@value
class Fig6a(CommutingTables, Figure):
    """Random subsets of the pairs of places, from a thousandth to half of them."""

    title = "Subset queries on commuting data"
    page = "Cormode et al., ICDT 2012, section 4.5, Figure 6(a)"
    quick = {"seeds": 3, "queries": 200}
    claims = claims.read(
        Path(__file__).with_name("statements.toml"), "cormode2012_fig6a", CHECKS
    )
    shown = ("size",)

    epsilon: float = epsilon(0.1)
    size: int = whole(3_000_000, "s on the twin; elsewhere the same share", unit="cells")
    theta: int = whole(5, "θ of filter-priority, drawn", unit="counts", kind=UNPRINTED)
    thetas: tuple[int, ...] = wholes(
        THETAS, "θ of filter-priority on OnTheMap", unit="counts", kind=UNPRINTED
    )
    data: tuple[str, ...] = published_tables(*COMMUTING)
    shares: tuple[float, ...] = query_shares(
        (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5), "subsets"
    )
    queries: int = queries(1000)
    seeds: int = seeds(200)  # a share of 5 % of single releases takes many

    def mechanisms(self, name: str) -> list:
        """The full table, and every summary of cells."""
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
        """Absolute and relative errors of random subsets."""
        subsets = [RandomSubsets(size, self.queries) for size in self.query_sizes(domain)]
        return [m(x) for m in (MeanAbsoluteError, MedianRelativeError) for x in subsets]

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Absolute errors above, relative errors below, a column a dataset at hand."""
        above = []
        below = []
        for name in rows.panel.unique():
            above.append(Panel(name, {"panel": name, "metric": ABSOLUTE}, "share"))
            printed = PAPER["relative"] if name in PAPERS else ()
            where = {"panel": name, "metric": RELATIVE}
            below.append(Panel("", where, "share", printed=printed))
        return above + below

    def plot(self, rows: pd.DataFrame):
        """Of filter-priority the θ that is drawn."""
        hybrid = rows.mechanism.eq("PrioritySampling") & rows.theta.gt(0)
        return super().plot(rows[~hybrid | rows.theta.eq(self.theta)])

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The relative error that the paper prints, beside ours on every dataset."""
        return comparison(rows)
