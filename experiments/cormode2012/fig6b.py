"""Figure 6(b) of Cormode et al. (2012): errors of range queries on jobs by workplace and home, answered from
dyadic ranges.

Paper   Cormode, Procopiuc, Srivastava & Tran, ICDT 2012: section 4.5 and Figure 6(b).
Read    We read all numbers from the text, because the plot is not in our copy.
Open    The module `data` describes the tables. The filter has the θ that gives the size s, which follows from
        m, s and ε alone. Filter-priority sampling has 4/5 of this θ, as in our Figure 5. On the stand-in, the
        two values are 1041 and 833. The lengths of ranges are not printed. The length from which dyadic
        ranges are better follows from m. We compute it for 4001² and for 10⁶ cells.
"""

from __future__ import annotations

from experiments._fields import unprinted_number
from experiments.cormode2012.data import (
    COUNTIES,
    JUDGED,
    PAPERS,
    TRACTS,
    CommutingTables,
    dataset_named,
    judged,
    published_tables,
    query_shares,
)
from experiments.cormode2012.shared import (
    ABSOLUTE,
    CELLS,
    CROSSING,
    FACTOR,
    FILTER,
    FULL,
    THEORY,
    VARIANCE,
    Summaries,
    full_tables,
)
from workbench.compiled import pd
from workbench.figures import Figure
from workbench.figures.fields import epsilon, queries, seeds, whole
from workbench.figures.plots import Panel
from workbench.trials.claims import Finding, Printed, select
from workbench.value import format_number, value

FROM = 0.01
PRINTED = Printed.approximately("around 1 % of the data size", FROM, 0.005, axis="x")
CELLS_OF_PAPER = 4001**2
CELLS_OF_FIG5 = 10**6


def benefit(rows, level) -> Finding:
    """Check whether a full dyadic table has a smaller variance than a full table of cells, for ranges of 1 %
    of the cells.
    """
    variance = select(rows, panel=THEORY, metric=VARIANCE, m=CELLS_OF_PAPER)
    full, cells = (select(variance, series=x).value.item() for x in (FULL, CELLS))
    at_one = judged(rows[rows.metric.eq(ABSOLUTE) & rows.share.eq(FROM)])
    errors = at_one.groupby("series").value.mean()
    measured = f"{format_number(full / cells)}× the variance"
    if {FILTER, CELLS} <= {*errors.index}:
        filtered = format_number(errors[FILTER] / errors[CELLS])
        measured += f"; the filtered one has {filtered}× the error"
    return Finding(bool(full < cells), measured)


def starts(rows, level) -> Finding:
    """Check whether a full dyadic table is better than a full table of cells from about 1 % of the cells on,
    or from a smaller share on.
    """
    starts = select(rows, panel=THEORY, metric=CROSSING).set_index("m").value
    share = starts[CELLS_OF_PAPER] / CELLS_OF_PAPER
    told = [
        f"at {100 * start / m:.2g} % of m = {m:,.0f}, {format_number(start)} cells"
        for m, start in starts.items()
    ]
    return Finding(bool(share <= 0.015), "; ".join(told))


@value
class Fig6b(CommutingTables, Figure):
    """Errors of random ranges over cells in the order of workplaces, answered from dyadic ranges."""

    title = "Range queries on commuting data, by dyadic ranges"
    headline = "On commuting data, dyadic ranges pay off from about 1 % of the cells on"
    rests_on = ("c-6b-1.1", "c-6b-1.2")
    columns = 3
    sharey = True
    page = "Cormode et al., ICDT 2012, section 4.5, Figure 6(b)"
    quick = {"seeds": 3, "queries": 200}
    shown = ("size", "theta")

    epsilon: float = epsilon(0.1)
    size: int = whole(500_000, "size s on the stand-in (elsewhere a share)", unit="nodes")
    data: tuple[str, ...] = published_tables(JUDGED, COUNTIES, TRACTS)
    shares: tuple[float, ...] = query_shares(
        (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5), "ranges"
    )
    factors: tuple[float, ...] = unprinted_number((0.8,), FACTOR, 0, 10, strict=True)
    queries: int = queries(1000)
    seeds: int = seeds(50)

    def summaries(self, name: str) -> Summaries:
        """Return the dyadic summaries for a table."""
        domain = dataset_named(name).domain
        return Summaries(domain, self.summary_size(domain), self.epsilon, self.factors)

    def mechanisms(self, name: str) -> list:
        """Return the mechanisms for a table: the full tables of nodes and of cells, and every summary of
        nodes.
        """
        return self.summaries(name).all()

    def errors(self, store) -> pd.DataFrame:
        """Return the results for all tables. The names of filter-priority curves contain their θ as a
        multiple of the filter's θ.
        """
        by_panel = super().rows(store).groupby("panel", sort=False)
        named = [self.summaries(name).named(own) for name, own in by_panel]
        return pd.concat(named, ignore_index=True)

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, with theoretical values for two numbers of cells: the paper's, and the
        one of Figure 5 of Cormode et al. (2012).
        """
        known = {CELLS_OF_PAPER: (round(FROM * CELLS_OF_PAPER),), CELLS_OF_FIG5: ()}
        theory = [full_tables(m, sizes, self.epsilon) for m, sizes in known.items()]
        theory = pd.concat(theory, ignore_index=True)
        dataset = next(iter(self.datasets().values()))
        rows = [self.errors(store), theory.assign(dataset=repr(dataset))]
        return pd.concat(rows, ignore_index=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return one panel per available dataset."""
        return [
            Panel(name, {"panel": name}, "share", printed=PRINTED if name in PAPERS else ())
            for name in rows.panel.unique()
            if name != THEORY
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results to draw, without the theoretical values."""
        named = rows.series.str.replace(r", [\d.]+ θ$", "", regex=True)
        return rows.assign(series=named)[rows.panel != THEORY]
