"""cormode2012: Figures 4, 5, 6(a) to 6(c): every check tells a true world from a false one."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest

from experiments.cormode2012 import data, fig4, fig5, fig6a, fig6b, fig6c, shared
from experiments.cormode2012.fig5 import DENSE_SUMS, NUMPY, OUR_SUMS, REGIONS, of_regions
from experiments.cormode2012.shared import CELLS, DYADIC, FACTORS, FILTER, FULL, PRIORITY, both
from tests.figures.worlds import World, changed, every, figure_of, made, noisy
from workbench import DP, Domain, Haar, Ranges
from workbench.datasets import GaussianSparse
from workbench.mechanisms import GeometricHistogram, HighPassFilter
from workbench.trials.claims import DEPENDS, HOLDS, UNDECIDED, UNTESTABLE, MissingPoints

LEVEL = 0.99
SPREAD = 0.003
ABSOLUTE = {"metric": "MeanAbsoluteError"}
RANGES = fig5.Fig5().ranges
SHARES = fig6b.Fig6b().shares
HYBRIDS = tuple(map(both, FACTORS))
CONSISTENT = ", consistent"
EVERY = {panel: tuple(of_regions(panel, n) for n in REGIONS) for panel in ("b", "c", "zeros")}


def of_fig4():
    """Summaries take the same time a cell, full tables the same time."""
    a_cell = {"filter": 1e8, "threshold": 9e7, "priority": 5e7, "filter-priority": 6e7}
    a_table = {"geometric": 5e7, "geometric, numpy": 1e7}
    densities = (0.1, 0.01, 0.001)
    rows = every(
        series=a_cell | a_table, m=(10**6, 10**7), density=densities, metric="throughput"
    )
    speeds = rows.series.map(a_cell).fillna(rows.series.map(a_table) * rows.density)
    panels = "m = " + rows.m.astype(str)
    return rows.assign(panel=panels, nonempty=(rows.m * rows.density).round(), value=speeds)


def made_consistent(panel, x, points, cut, series):
    """An error of 1000, and what is left of it with consistency."""
    rows = every(
        panel=panel, series=series, consistent=(False, True), **{x: points}, **ABSOLUTE
    )
    names = rows.series + np.where(rows.consistent, CONSISTENT, "")
    rows = rows.assign(series=names, value=np.where(rows.consistent, 1000 * cut, 1000))
    return rows.to_dict("records")


def of_fig5():
    """Dyadic errors hardly grow; theory is right but for the number of nodes."""
    errors = {FULL: 900, FILTER: 800, PRIORITY: 4000} | dict.fromkeys(HYBRIDS, 1000)
    rows = [
        {"panel": "a", "series": series, "query_size": r, "released": 100, "size": 100}
        | {"value": 11 * r**0.5 if series == CELLS else errors[series] * r**0.01, **ABSOLUTE}
        for series in (CELLS, *errors)
        for r in RANGES
    ]
    for panel, (series, error), r in product(
        EVERY["b"], {FULL: 900, FILTER: 500}.items(), RANGES
    ):
        rows.append(
            {"panel": panel, "series": series, "query_size": r, "value": error, **ABSOLUTE}
        )
    for panel in EVERY["c"]:
        rows += made_consistent(panel, "query_size", RANGES, 0.5, (FILTER, *HYBRIDS))
    for panel in EVERY["zeros"]:
        rows += made_consistent(panel, "query_size", RANGES, 0.999, (FULL,))
    rows += made_consistent("uniform", "query_size", RANGES, 0.9, (FILTER, *HYBRIDS))
    rows += [
        {"panel": "bases", "mechanism": "GeometricHistogram", "transform": basis, **ABSOLUTE}
        | {"series": basis, "query_size": r, "value": error}
        for basis, error in {"Haar()": 850, "Dyadic()": 900}.items()
        for r in RANGES
    ]
    theory = shared.full_tables(10**6, RANGES, 0.1)
    theory.loc[theory.metric == shared.NODES, "value"] = 40.0
    seconds = dict.fromkeys((FILTER, PRIORITY, *HYBRIDS), 0.1) | {FULL: 0.3, NUMPY: 1.0}
    seconds |= {OUR_SUMS: 0.05, DENSE_SUMS: 0.25}
    times = pd.DataFrame(
        {"panel": "sums" if "sums" in series else "throughput", "series": series}
        | {"metric": "throughput", "repeated": 21, "density": density}
        | {"seconds": x, "value": 1 / x}
        for series, x in seconds.items()
        for density in (0.1, 0.01, 0.001)
    )
    rows = noisy(rows, spread=SPREAD)
    return pd.concat([rows, theory, shared.greatest_variances(0.1), times], ignore_index=True)


def of_fig6a(seeds=10):
    """Samples near the full table, the filter far from it."""
    errors = {("GeometricHistogram", np.nan): 1.0, ("HighPassFilter", np.nan): 9.0}
    errors |= {("PrioritySampling", 0): 1.1}
    errors |= {("PrioritySampling", theta): 1.15 for theta in fig6a.Fig6a().thetas}
    return noisy(
        [
            {"panel": data.JUDGED, "dataset": "OnTheMapTwin()", "series": "any"}
            | {"mechanism": mechanism, "theta": theta, "share": share, "metric": metric}
            | {"released": 4001**2, "size": 3e6, "value": error * scale * share**0.5}
            for (mechanism, theta), error in errors.items()
            for share in fig6a.Fig6a().shares
            for metric, scale in (("MeanAbsoluteError", 1e4), ("MedianRelativeError", 1e-3))
        ],
        seeds,
        SPREAD,
    )


def of_fig6b():
    """Theory is right but for where dyadic ranges begin to be better."""
    paper = shared.full_tables(4001**2, (160_080,), 0.1)
    paper.loc[paper.metric == shared.CROSSING, "value"] = 0.01 * 4001**2
    errors = {FULL: 1500, FILTER: 1000, CELLS: 2e5}
    about = dict(panel=data.JUDGED, dataset="OnTheMapTwin()", **ABSOLUTE)
    rows = every(**about, series=errors, share=SHARES)
    growth = np.where(rows.series == CELLS, rows.share**0.5, 1)
    rows = rows.assign(value=rows.series.map(errors) * growth)
    other = shared.full_tables(10**6, (), 0.1)
    return pd.concat([noisy(rows, spread=SPREAD), paper, other], ignore_index=True)


def of_fig6c():
    """Consistency takes more than a tenth off all errors."""
    rows = made_consistent(data.JUDGED, "share", SHARES, 0.85, (FILTER, *HYBRIDS))
    return noisy(rows, spread=SPREAD).assign(dataset="OnTheMapTwin()")


USUAL = dict(series="geometric, numpy")
SAMPLE = dict(mechanism="PrioritySampling", theta=0)
HYBRID = dict(mechanism="PrioritySampling", theta=fig6a.Fig6a().thetas)
LARGE = dict(share=(0.2, 0.3, 0.4, 0.5), metric="MeanAbsoluteError")
CUT_FILTER = FILTER + CONSISTENT
CUT_HYBRIDS = tuple(name + CONSISTENT for name in HYBRIDS)
TRUE = {
    "c-6a-1.6": (SAMPLE | LARGE, 0.8),
    "c-6a-1.7": (HYBRID | LARGE, 0.8),
}
FALSE = {
    "c-4-1.1": (dict(series="filter-priority"), 3),
    "c-4-1.2": (USUAL, 1e3),
    "c-4-1.3": (USUAL, 1e6),
    "c-4-1.4": (USUAL | dict(density=0.001), 1e3),
    "c-4-2.1": (dict(m=10**7), 0.5),
    "c-4-2.2": (dict(density=0.01), 0.5),
    "c-5a-1.1": (dict(panel="a", series=PRIORITY), 0.1),
    "c-5a-1.2": (dict(panel="a", series=FILTER), 3),
    "c-5a-1.3": (dict(metric=shared.VARIANCE, series=FULL), 100),
    "c-5a-1.4": (dict(panel="a", series=FULL, query_size=500_000), 3),
    "c-5a-1.5": (dict(metric=shared.NODES, query_size=(50_000, 100_000, 200_000, 500_000)), 2),
    "c-5a-1.6": (dict(metric=shared.NODES), 0.4),
    "c-5a-2.1": (dict(panel="throughput", series=FILTER), 0.05),
    "c-5a-2.2": (dict(series=NUMPY), 3, "seconds"),
    "c-5b-1.1": (dict(panel=EVERY["b"], series=FILTER), 3),
    "c-5c-1.1": (dict(panel=EVERY["c"], series=CUT_FILTER), 1.9),
    "c-5c-1.2": (dict(panel=EVERY["c"], series=CUT_HYBRIDS), 1.9),
    "c-5c-1.3": (dict(panel="uniform", series=CUT_FILTER), 1.3),
    "c-5c-1.4": (dict(panel="uniform", series=CUT_HYBRIDS), 0.5),
    "c-5c-2.1": (dict(panel=EVERY["zeros"], consistent=True), 0.8),
    "c-w-1.1": (dict(panel="bases", transform="Haar()"), 2),
    "c-w-1.2": (dict(metric=shared.GREATEST, m=2**20), 3),
    "c-6a-1.1": (dict(mechanism="HighPassFilter"), 0.01),
    "c-6a-1.2": (dict(mechanism="HighPassFilter"), 0.01),
    "c-6a-1.3": (SAMPLE, 10),
    "c-6a-1.4": (HYBRID, 10),
    "c-6a-1.5": (dict(mechanism="GeometricHistogram"), 0.1, "released"),
    "c-6a-1.8": (SAMPLE, 10),
    "c-6a-1.9": (HYBRID, 10),
    "c-6a-1.10": (dict(metric="MedianRelativeError", share=0.5), 100),
    "c-6b-1.1": (dict(metric=shared.VARIANCE, series=FULL), 100),
    "c-6b-1.2": (dict(metric=shared.CROSSING), 10),
    "c-6b-1.3": (dict(metric="MeanAbsoluteError", series=FILTER), 3),
    "c-6c-1.1": (dict(series=CUT_FILTER), 1.3),
    "c-6c-1.2": (dict(series=CUT_HYBRIDS), 1.3),
}
OTHER_NAME = dict(panel="a", series=both(1.0))
RIVALS = [  # one summary under two names is none
    ("c-5a-1.2", (OTHER_NAME, 0.5), DEPENDS),
    ("c-5a-1.2", [(OTHER_NAME, 0.5), (OTHER_NAME, 0.9, "released")], HOLDS),
]
RARE = {
    "c-6a-1.6": (SAMPLE, 10),
    "c-6a-1.7": (HYBRID, 10),
}  # chances that take many releases to deny
MAKE = {
    "fig4": of_fig4,
    "fig5": of_fig5,
    "fig6a": of_fig6a,
    "fig6b": of_fig6b,
    "fig6c": of_fig6c,
}
FIGURES = {"fig4": fig4, "fig5": fig5, "fig6a": fig6a, "fig6b": fig6b, "fig6c": fig6c}
WORLDS = [
    World(figure_of(FIGURES[name]), make, [*FALSE.items(), *RIVALS], TRUE)
    for name, make in MAKE.items()
]
WORLDS += [World(fig6a.Fig6a, partial(of_fig6a, seeds=150), [*RARE.items()], TRUE)]


@pytest.fixture(scope="module")
def worlds():
    return lambda name: made(MAKE[name])


def test_what_differs_at_one_m_depends_on_it_and_what_was_not_run_is_open(worlds):
    check = fig4.Fig4.checks()["c-4-1.2"]
    rows = worlds("fig4")
    found = check(changed(rows, USUAL | dict(m=10**7), 1e3), LEVEL)
    assert found.outcome == DEPENDS and "differs for m = 10,000,000" in found.strip.in_words()
    for id, own in fig4.Fig4.checks().items():
        assert own(rows[rows.m == 10**6], LEVEL).outcome == UNDECIDED, id


@pytest.mark.parametrize("id", ["c-5a-2.1", "c-5a-2.2"])
def test_times_of_a_few_releases_decide_nothing(id, worlds):
    found = fig5.Fig5.checks()[id](worlds("fig5").assign(repeated=5), LEVEL)
    assert found.outcome == UNDECIDED and "the best of 5 only" in found.why


@pytest.mark.parametrize(
    "figure, drawn, lost",
    [
        ("fig5", {"query_size": (100, 200)}, [f"c-5a-1.{i}" for i in (3, 4, 5, 6)]),
        ("fig6a", {"share": (0.001, 0.01)}, [f"c-6a-1.{i}" for i in (6, 7, 8, 9, 10)]),
    ],
)
def test_what_is_about_points_that_are_not_drawn_is_not_testable(figure, drawn, lost, worlds):
    rows = worlds(figure)
    for column, points in drawn.items():
        rows = rows[rows[column].isna() | rows[column].isin(points)]
    checks = figure_of(FIGURES[figure]).checks()
    for id in lost:
        with pytest.raises(MissingPoints):
            checks[id](rows, LEVEL)
    assert all(checks[id](rows, LEVEL).measured for id in {*checks} - {*lost})


@pytest.mark.parametrize("figure, cls", [("fig6b", fig6b.Fig6b), ("fig6c", fig6c.Fig6c)])
def test_a_twin_leaves_it_open_and_the_papers_states_decide(figure, cls, worlds):
    rows = worlds(figure)
    rows = rows.assign(truth_public=True)
    needy = [s.id for claim in cls.claims for s in claim.statements if s.needs]
    outcomes = {v.id: v.outcome for v in cls().judge(rows)}
    assert needy and {outcomes[id] for id in needy} == {UNTESTABLE}
    theirs = {data.JUDGED: data.ONTHEMAP, "OnTheMapTwin()": repr(data.DATASETS[data.ONTHEMAP])}
    outcomes = {v.id: v.outcome for v in cls().judge(rows.replace(theirs))}
    assert {outcomes[id] for id in needy} == {HOLDS}


def covers(basis, m, cells=None):
    """Of ranges among m cells how many nodes each needs, and the sum of their squared factors."""
    lo, hi = np.triu_indices(m + 1, 1)
    if cells is not None:
        lo = np.arange(m - cells + 1)
        hi = lo + cells
    nodes = np.zeros(len(lo))
    squares = np.zeros(len(lo))
    on = basis.on(Domain(("cell",), (m,)))
    for query, _, factor in on.terms(Ranges(lo, hi)):
        np.add.at(nodes, query, 1)
        np.add.at(squares, query, np.broadcast_to(factor, query.shape) ** 2)
    return nodes, squares


@pytest.mark.parametrize("cells", [1, 2, 3, 7, 8, 100, 128, 200, 255])
def test_the_mean_number_of_nodes_is_over_all_places(cells):
    nodes, _ = covers(DYADIC, 256, cells)
    assert shared.mean_nodes(cells, 256) == pytest.approx(nodes.mean(), rel=1e-12)
    nodes, _ = covers(DYADIC, 300, min(cells, 100))
    assert shared.mean_nodes(min(cells, 100), 300) == pytest.approx(nodes.mean(), rel=0.02)


@pytest.mark.parametrize("height", [2, 3, 5, 6])
def test_greatest_variances_are_those_of_the_worst_range(height):
    nodes, _ = covers(DYADIC, 2**height)
    assert nodes.max() == 2 * (height - 1)
    _, squares = covers(Haar(), 2**height)
    assert shared.greatest_haar_weight(height) == pytest.approx(squares.max())


def test_nodes_are_better_from_the_crossing_on():
    start = shared.cells_where_nodes_win(10**6, 0.1)
    rows = shared.full_tables(10**6, (start - 1, start), 0.1)
    variance = rows[rows.metric == shared.VARIANCE].set_index(["series", "query_size"]).value
    assert list(variance[FULL] < variance[CELLS]) == [False, True]


def test_what_lies_below_a_noisy_zero_is_dropped_as_a_filter_would():
    table = GaussianSparse(m=500).load()
    full = GeometricHistogram(DP(1.0), transform=DYADIC)(
        table, np.random.default_rng(0)
    ).estimate
    own = shared.BelowZerosDropped()(full)
    passed = HighPassFilter(DP(1.0), theta=1, transform=DYADIC, consistent=True)
    theirs = passed.summarise(full, 1)
    assert (own.keys == theirs.keys).all() and 0 < len(own) < (full.values != 0).sum()
    queries = Ranges([0, 3], [500, 40])
    assert (own.answer(queries) == theirs.answer(queries)).all()
