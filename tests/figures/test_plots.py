"""Rows in, axes out: one look a mechanism, readable axes, nothing over the data."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

from workbench import RandomRanges, Sweep, run
from workbench.datasets import GaussianSparse
from workbench.estimates.release import Release
from workbench.figures import plots
from workbench.figures.plots.axes import format_tick
from workbench.mechanisms import (
    GeometricHistogram,
    HighPassFilter,
    Laborious,
    PrioritySampling,
    PrivTree,
    ThresholdSampling,
)
from workbench.mechanisms.protocol import pure_budget, series_name
from workbench.privacy import DP
from workbench.queries import Dyadic, Haar
from workbench.trials import mechanism_columns
from workbench.trials.claims import Printed, confidence_intervals, mean_curve
from workbench.trials.metrics import MeanAbsoluteError, MeanSignedError
from workbench.value import parameter, value

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def rows(*named, seeds=5, metric="MeanAbsoluteError", spread=0.05):
    """Rows of mechanisms, each by its name in figures and θ."""
    sizes = (100, 1000, 10_000)
    return pd.DataFrame(
        [
            {
                "mechanism": name.title().replace(" ", ""),
                "mechanism_name": name,
                "theta": theta,
                "query_size": size,
                "released": 1000 + seed,
                "metric": metric,
                "seed": seed,
                "value": size**0.5 * (i + 1) * (1 + spread * (seed - seeds / 2 + 0.5)),
            }
            for i, (name, theta) in enumerate(named)
            for size in sizes
            for seed in range(seeds)
        ]
    )


BOTH = rows(("geometric", np.nan), ("filter", 50.0))


def drawn(ax):
    return {line.get_label(): line for line in ax.lines if line.get_label()[0] != "_"}


@value
class MyWay:
    """A mechanism that the workbench knows nothing of."""

    budget: DP = pure_budget()
    k: int = parameter(3, 1, integer=True)
    rule: str = "first"
    exact: bool = False
    series = "my way"

    def __call__(self, table, rng=None):
        full = GeometricHistogram(self.budget)(table, rng)
        return Release(full.estimate, full.ledger, self, table.bound)


TABLES = [GaussianSparse(100, 0.1, seed=seed) for seed in (1, 2)]


def swept(tmp_path, *mechanisms, tables=TABLES[:1], metrics=None):
    metrics = metrics or [MeanAbsoluteError(RandomRanges(size, 5)) for size in (1, 10)]
    return run(Sweep(tables, mechanisms, metrics, 2), tmp_path)


def test_an_outsider_is_drawn_by_its_own_name_and_by_what_varies(tmp_path):
    one = swept(tmp_path, MyWay(DP(1.0)))
    _, [ax] = plots.panels()
    plots.curves(plots.name_series(one), "query_size", "series", ax)
    assert [*drawn(ax)] == ["my way"]
    two = DP(2.0)
    several = [MyWay(DP(1.0)), MyWay(two), MyWay(two, k=4), MyWay(two, 4, "last", True)]
    many = swept(tmp_path, *several)
    assert list(plots.name_series(many).series.unique()) == [
        "my way, ε = 1, k = 3, rule = first",
        "my way, ε = 2, k = 3, rule = first",
        "my way, ε = 2, k = 4, rule = first",
        "my way, ε = 2, k = 4, rule = last, exact",
    ]
    named = plots.name_series(many, shown=["epsilon", "rule", "exact"])
    assert set(named.series) == {"my way, k = 3", "my way, k = 4"}


@pytest.mark.parametrize(
    "column, what",
    [
        ("epsilon", dict(mechanisms=[MyWay(DP(0.5)), MyWay(DP(1.0))])),
        ("k", dict(mechanisms=[MyWay(DP(1.0)), MyWay(DP(1.0), 4)])),
        ("dataset", dict(tables=TABLES)),
        ("workload", dict(metrics=[MeanAbsoluteError(RandomRanges(5, n)) for n in (5, 6)])),
        (
            "metric",
            dict(metrics=[m(RandomRanges(5, 5)) for m in (MeanSignedError, MeanAbsoluteError)]),
        ),
    ],
)
def test_a_mean_over_more_than_seeds_is_refused(column, what, tmp_path):
    made = swept(tmp_path, *what.pop("mechanisms", [MyWay(DP(1.0))]), **what)
    values = made[column].unique()
    told = rf"mix .*{column} \(.*: a mean is taken over seeds only\. Put it on an axis, in a panel or"
    with pytest.raises(ValueError, match=told) as refused:
        mean_curve(made, "query_size")
    assert all(str(x) in str(refused.value) for x in values)
    alike = made.assign(series="all", metric="MeanAbsoluteError")
    for draw in (plots.curves, plots.grouped_bars):
        _, [ax] = plots.panels()
        if column != "metric":
            with pytest.raises(ValueError, match=told):
                draw(alike, "query_size", "series", ax)
    panels = [plots.Panel("", {column: x}, "query_size") for x in values]
    fig = plots.grid(made.assign(series="all"), panels, columns=2)
    assert all([*drawn(ax)] == ["all"] for ax in fig.axes)


def test_what_follows_from_the_seed_may_vary_with_it():
    seeds = pd.DataFrame({"query_size": 1, "seed": range(3), "value": [1.0, 2.0, 3.0]})
    seeds["price"] = seeds["released"] = seeds.seed
    assert mean_curve(seeds, "query_size")["mean"].item() == 2
    with pytest.raises(ValueError, match=r"mix price \(0, 1, 2\)"):
        mean_curve(seeds.drop(columns="seed"), "query_size")
    with pytest.raises(ValueError, match=r"mix price \(0, 7\)"):
        mean_curve(pd.concat([seeds, seeds.assign(price=[7, 8, 9])]), "query_size")


def test_mechanisms_are_named_in_words():
    budget = DP(1.0)
    made = [
        GeometricHistogram(budget),
        HighPassFilter(budget, theta=50),
        HighPassFilter(budget, theta=2.5, sides=1),
        PrioritySampling(budget, size=9),
        PrioritySampling(budget, size=9, theta=40),
        Laborious(ThresholdSampling(budget, tau=9, theta=5)),
        PrivTree(budget),
    ]
    kinds = pd.DataFrame(map(mechanism_columns, made))
    assert list(plots.name_series(kinds, "theta").series) == [
        "geometric",
        "filter, θ = 50",
        "one-sided filter, θ = 2.5",
        "priority",
        "filter-priority, θ = 40",
        "laborious filter-threshold, θ = 5",
        "PrivTree",
    ]
    assert "series" not in kinds, "the rows that came in are as they were"


def test_a_basis_is_named_and_told_apart():
    budget = DP(1.0)
    made = [
        HighPassFilter(budget, theta=5),
        HighPassFilter(budget, theta=5, transform=Dyadic()),
        HighPassFilter(budget, theta=5, transform=Dyadic(), consistent=True),
        HighPassFilter(budget, theta=5, transform=Haar()),
    ]
    names = ["filter", "filter, dyadic", "filter, dyadic, consistent", "filter, Haar"]
    assert [series_name(mechanism) for mechanism in made] == names
    kinds = rows(*[(name, 5.0) for name in names])
    _, [ax] = plots.panels()
    plots.curves(plots.name_series(kinds), "query_size", "series", ax)
    assert len({str(line._dash_pattern) for line in drawn(ax).values()}) == 4
    assert {line.get_color() for line in drawn(ax).values()} == {
        plots.SERIES_STYLES["filter"][0]
    }


def test_hollow_marks_promise_less():
    kinds = rows(*((n, np.nan) for n in ("stability histogram", "count sketch", "ALP")))
    kinds["delta"] = (kinds.mechanism_name == "stability histogram") * 1e-6
    _, [ax] = plots.panels()
    plots.curves(plots.name_series(kinds), "query_size", "series", ax)
    faces = {name: line.get_markerfacecolor() for name, line in drawn(ax).items()}
    assert faces == {
        "stability histogram": "white",
        "count sketch": plots.SERIES_STYLES["count sketch"][0],
        "ALP": plots.SERIES_STYLES["ALP"][0],
    }


def test_curves_are_means_over_seeds_with_labels_and_units():
    fig, [ax] = plots.panels()
    plots.curves(plots.name_series(BOTH), "query_size", "series", ax)
    assert list(drawn(ax)) == ["geometric", "filter"]
    np.testing.assert_allclose(
        drawn(ax)["filter"].get_ydata(), 2 * np.sqrt([100, 1000, 10_000])
    )
    assert ax.get_xlabel() == "query size (cells)"
    assert ax.get_ylabel() == "absolute error (counts)"
    assert ax.get_xscale() == ax.get_yscale() == "log"


def test_a_mechanism_looks_the_same_in_every_figure():
    _, (one, two) = plots.panels(1, 2)
    named = plots.name_series(BOTH, "theta")
    plots.curves(named, "query_size", "series", one)
    plots.curves(named[named.mechanism_name == "filter"], "query_size", "series", two)
    a, b = drawn(one)["filter, θ = 50"], drawn(two)["filter, θ = 50"]
    assert (a.get_color(), a.get_marker()) == (b.get_color(), b.get_marker())
    assert a.get_color() == plots.SERIES_STYLES["filter"][0]
    for family in (plots.SUMMARIES, plots.HISTOGRAMS):
        assert len({look for looks in family.values() for look in looks}) == 2 * len(family)


def test_one_look_twice_in_a_panel_differs_in_its_dashes():
    _, [ax] = plots.panels()
    twice = plots.name_series(rows(("filter", 5.0), ("filter", 9.0)), "theta")
    plots.curves(twice, "query_size", "series", ax)
    a, b = drawn(ax).values()
    assert a.get_color() == b.get_color() and a.get_linestyle() != b.get_linestyle()
    new = twice.assign(
        series=twice.series.map({"filter, θ = 5": "new", "filter, θ = 9": "newer"})
    )
    _, [ax] = plots.panels()
    plots.curves(new, "query_size", "series", ax)
    a, b = drawn(ax).values()
    assert a.get_color() != b.get_color() and a.get_marker() != b.get_marker()


def test_later_years_are_dotted_and_crowds_have_no_marks():
    long = pd.DataFrame(
        {"position": i, "value": float(i), "metric": "Count", "series": s, "seed": 0}
        for s in ("Privelet", "H̄")
        for i in range(1, 101)
    )
    _, (many, few) = plots.panels(1, 2)
    plots.curves(long, "position", "series", many, log="")
    plots.curves(long[long.position <= 10], "position", "series", few, log="")
    assert {line.get_marker() for line in drawn(many).values()} == {""}
    assert {line.get_marker() for line in drawn(few).values()} == {"P", "s"}
    assert [line.get_linestyle() for line in drawn(few).values()] == [":", "-"]
    few.set_xlim(1, 3)
    assert all(tick == int(tick) for tick in few.get_xticks())


def test_x_may_vary_with_the_seed():
    _, [ax] = plots.panels()
    plots.curves(plots.name_series(BOTH), "released", "series", ax, at="query_size")
    assert list(drawn(ax)["filter"].get_xdata()) == [1002.0] * 3


def test_wide_intervals_and_single_seeds_do_not_spoil_a_logarithmic_axis():
    for frame in (
        rows(("filter", 5.0), seeds=2, spread=1.9),
        rows(("filter", 5.0), seeds=1),
    ):
        fig, [ax] = plots.panels()
        plots.curves(plots.name_series(frame), "query_size", "series", ax)
        fig.canvas.draw()
        assert ax.get_ylim()[0] > 1


def test_a_band_is_drawn_whole_where_it_can_be():
    wide = plots.name_series(rows(("filter", 5.0), seeds=3, spread=1.9))
    _, [ax] = plots.panels()
    plots.curves(wide, "query_size", "series", ax, log="x")
    assert ax.get_ylim()[0] < confidence_intervals(wide, "query_size").low.min() < 0


def test_mixed_metrics_and_no_rows_are_refused():
    _, [ax] = plots.panels()
    mixed = pd.concat([BOTH, BOTH.assign(metric="MedianRelativeError")])
    with pytest.raises(ValueError, match="mix the metrics MeanAbsoluteError, MedianRelative"):
        plots.curves(plots.name_series(mixed), "query_size", "series", ax)
    with pytest.raises(ValueError, match="no rows"):
        plots.curves(BOTH[:0].assign(series=""), "query_size", "series", ax)


def test_the_paper_is_grey_and_theory_dashed_and_neither_moves_the_view():
    fig, [ax] = plots.panels()
    plots.curves(plots.name_series(BOTH), "query_size", "series", ax)
    view = ax.get_xlim(), ax.get_ylim()
    plots.printed(Printed.approximately("about 30", 30, 5, at=1000), ax)
    plots.printed([Printed("from 0 to 1 %", 0.0, 1e-9), Printed("1000", 9, 11, axis="x")], ax)
    plots.printed(Printed("later", 1, 2, over=(500, 1000)), ax)
    plots.theory(np.sqrt, ax, "√R")
    assert (ax.get_xlim(), ax.get_ylim()) == view
    assert drawn(ax)["√R"].get_linestyle() == "--"
    assert "paper" in ax.get_legend_handles_labels()[1]


@pytest.mark.slow
def test_the_legend_stands_below_the_panels_and_names_each_series_once():
    fig, axes = plots.panels(2, 2, "abcd")
    for ax in axes:
        plots.curves(plots.name_series(BOTH), "query_size", "series", ax)
    plots.legend(fig)
    fig.canvas.draw()
    (legend,) = fig.legends
    assert [t.get_text() for t in legend.get_texts()] == ["geometric", "filter"]
    for ax in axes:
        assert not legend.get_window_extent().overlaps(ax.get_tightbbox())
        assert fig.bbox.containsx(ax.get_tightbbox().x1)
    assert [bool(ax.get_ylabel()) for ax in axes] == [True, False, True, False]
    assert [bool(ax.get_xlabel()) for ax in axes] == [False, False, True, True]


def test_a_table_is_bars_or_marks_with_the_printed_ranges():
    table = pd.DataFrame({"name": ["A", "B"], "value": [0.01, 0.2], "metric": "density"})
    said = [Printed("1 %", 0.009, 0.011, at="A"), Printed("not shown", 1, 2, at="C")]
    fig, (plain, log) = plots.panels(1, 2, sharey=True)
    plots.bars(table, "name", plain, printed=said)
    plots.bars(table, "name", log, printed=said, log=True)
    fig.canvas.draw()
    assert [t.get_text() for t in plain.get_yticklabels()] == ["A", "B"]
    assert len(plain.patches) == 2 and not log.patches
    assert all("%" in t.get_text() for t in plain.get_xticklabels())
    assert plain.get_ylim()[0] > plain.get_ylim()[1], "the first is on top"


def test_a_grid_draws_each_panel_from_its_own_rows():
    named = pd.concat([plots.name_series(BOTH).assign(panel=p) for p in "abc"])
    panels = [plots.Panel(p, {"panel": p}, "query_size") for p in "abc"]
    fig = plots.grid(named, panels, columns=2)
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["a", "b", "c"]
    assert all(list(drawn(ax)) == ["geometric", "filter"] for ax in fig.axes)
    with pytest.raises(ValueError, match="no rows"):
        plots.grid(named, [plots.Panel("d", {"panel": "d"}, "query_size")], columns=1)


def test_the_view_may_hold_the_theory_and_shades_are_those_of_the_first():
    named = plots.name_series(BOTH).assign(panel="a")
    high = "high", lambda x: np.where(x < 101, np.nan, 1e6)
    tops = []
    for whole in (False, True):
        panel = plots.Panel("a", {"panel": "a"}, "query_size", theory=[high], fit_theory=whole)
        ax = plots.grid(named, [panel], columns=1).axes[0]
        tops.append(ax.get_ylim()[1])
        assert ax.get_xlim()[1] < 20_000
    assert tops[0] < 1000 and tops[1] > 1e6
    boxes = pd.DataFrame({"x0": [0, 1], "x1": [1, 2], "y0": 0, "y1": 1, "metric": "Count"})
    truth, release = ([10.0, 100.0], [1.0, 1e6])
    both = [boxes.assign(panel=p, value=v) for p, v in (("truth", truth), ("release", release))]
    panels = [plots.Panel(p, {"panel": p}, "", cells=True) for p in ("truth", "release")]
    fig = plots.grid(pd.concat(both), panels, columns=2)
    scales = [ax.get_xlim() for ax in fig.axes if ax.get_subplotspec() is None]
    assert np.allclose(scales, [(10, 100)] * 2)


@pytest.mark.parametrize(
    "x, text",
    [(1, "1"), (2000, "2000"), (50_000, "5·10⁴"), (1e5, "10⁵"), (1e-4, "10⁻⁴"), (0.05, "0.05")],
)
def test_numbers_on_axes_are_short(x, text):
    assert format_tick(x) == text


def test_styles_stay_inside():
    before = dict(plt.rcParams)
    fig, [ax] = plots.panels()
    plots.curves(plots.name_series(BOTH), "query_size", "series", ax)
    plots.legend(fig)
    assert dict(plt.rcParams) == before


def test_bars_in_groups_show_means_and_begin_below_the_least():
    rows = pd.DataFrame(
        [
            {"series": name, "epsilon": epsilon, "seed": seed, "value": height / epsilon + seed}
            for name, height in (("S̃", 90), ("S̄", 3))
            for epsilon in (1.0, 0.1)
            for seed in range(3)
        ]
    )
    _, (ax,) = plots.panels()
    plots.grouped_bars(rows, "epsilon", "series", ax)
    tops = [round(p.get_y() + p.get_height(), 6) for p in ax.patches]
    assert tops == [91, 901, 4, 31] or tops == [901, 91, 31, 4]
    places = [p.get_x() for p in ax.patches]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["1", "0.1"]
    assert len(set(np.round(places, 6))) == 4 and ax.get_ylim()[0] == pytest.approx(4 / 3)
    assert ax.get_yscale() == "log" and len(ax.containers) >= 2
    with pytest.raises(ValueError, match="no rows"):
        plots.grouped_bars(rows[:0], "epsilon", "series", ax)


def test_maps_share_one_scale_of_colours_and_of_kilometres():
    at = {"latitude": [41.0, 41.0, 42.0], "longitude": [-72.0, -72.0, -71.0]}
    one = pd.DataFrame(at | {"value": [2, 3, 100]}).assign(panel="a")
    two = pd.DataFrame(at | {"value": [1, 0, 7]}).assign(panel="b")
    look = dict(cell=2.0, bar=50.0, label="people", circle=(41.5, -71.5, 8.0))
    fig = plots.maps(pd.concat([one, two]), 2, land=one, **look)
    a, b, colours = fig.axes
    (first,), (second,) = a.collections, b.collections
    assert first.norm is second.norm and (first.norm.vmin, first.norm.vmax) == (1, 100)
    held = [np.ma.filled(x.get_array(), 0) for x in (first, second)]
    assert sorted(x[x > 0].tolist() for x in held[:1])[0] == [5, 100]
    assert held[1].sum() == 8 and held[0].shape == held[1].shape
    assert a.get_aspect() == 1 and a.get_xlim() == b.get_xlim()
    (bar,) = [line for line in a.lines if len(line.get_xdata()) == 2]
    assert np.ptp(bar.get_xdata()) == pytest.approx(50) and not any(
        len(line.get_xdata()) == 2 for line in b.lines
    )
    assert [t.get_text() for t in a.texts] == ["50 km"] and colours.get_xlabel() == "people"
    with pytest.raises(ValueError, match="no rows"):
        plots.maps(one[:0], 1, **look)


def test_a_degree_of_longitude_is_shorter_in_the_north():
    east, north = plots.project(np.array([60.0, 61.0]), np.array([11.0, 10.0]), 60.0, 10.0)
    assert east == pytest.approx([111.195 / 2, 0]) and north == pytest.approx([0, 111.195])


def test_one_value_of_a_field_has_the_same_dashes_in_every_kind():
    names = [f"{kind}, ε = {epsilon}" for epsilon in (1, 10) for kind in ("PrivTree", "source")]
    styles = {name: plots.series_style(name, names).dashes for name in names}
    assert styles["PrivTree, ε = 1"] == styles["source, ε = 1"]
    assert styles["PrivTree, ε = 10"] == styles["source, ε = 10"] != styles["source, ε = 1"]


def test_no_two_series_of_a_figure_have_one_style():
    kinds = ["geometric", "L̃", "PrivTree", "an outsider's", "another's"]
    drawn = [f"{kind}, θ = {theta}" for theta in range(12) for kind in kinds]
    styles = {name: plots.series_style(name, drawn[:i]) for i, name in enumerate(drawn)}
    assert len(set(styles.values())) == len(drawn)
    for name in drawn[::17]:
        assert plots.series_style(name, drawn) == styles[name], "the same in every panel"


def test_panels_share_the_styles_of_their_series():
    rows = figure_rows(["filter, θ = 20", "filter, θ = 40"])
    panels = [plots.Panel(s, {"series": s}, "query_size", log="") for s in rows.series.unique()]
    one, two = (ax.lines[0] for ax in plots.grid(rows, panels, 2).axes)
    assert one.get_linestyle() != two.get_linestyle()


def test_a_long_legend_stands_beside_each_row_with_what_is_drawn_there():
    names = [f"series {i}" for i in range(20)]
    rows = figure_rows(names)
    halves = [names[:10], names[10:]]
    frames = [rows[rows.series.isin(half)].assign(half=i) for i, half in enumerate(halves)]
    panels = [plots.Panel(str(i), {"half": i}, "query_size", log="") for i in range(2)]
    fig = plots.grid(pd.concat(frames), panels, 1)
    shown = [[text.get_text() for text in ax.get_legend().get_texts()] for ax in fig.axes]
    assert shown == halves and not fig.legends
    same = plots.grid(pd.concat(rows.assign(half=i) for i in range(2)), panels, 1)
    assert [ax.get_legend() is None for ax in same.axes] == [False, True], "said once"


@pytest.mark.parametrize(
    "width, inches", [("column", 3.4), ("page", 7.0), ("slide", 5.5), (12, 12 / 2.54)]
)
@pytest.mark.parametrize("font, family", [("sans", "DejaVu Sans"), ("serif", "STIXGeneral")])
def test_a_figure_fits_the_page_that_it_is_drawn_for(width, inches, font, family):
    rows = figure_rows(["filter", "priority"])
    one = {"series": "filter"}
    panels = [plots.Panel(f"panel {i}", one, "query_size", log="") for i in range(6)]
    with plots.on_page(width, font):
        fig = plots.grid(rows, panels, 3)
    assert fig.get_figwidth() == pytest.approx(inches)
    assert fig.get_figheight() <= 8.5
    assert fig.axes[0].xaxis.label.get_fontfamily()[0] == family
    assert plots.grid(rows, panels, 3).get_figwidth() == plots.PAGE_WIDTH, "elsewhere as ever"


@pytest.mark.parametrize("width", ["wide", "-3", "nan", "2", "1000"])
def test_a_width_that_is_none_is_named(width):
    with pytest.raises(ValueError, match="width = .*column, page, slide.*centimetres"):
        with plots.on_page(width):
            pass


def figure_rows(names):
    rows = [
        dict(series=name, query_size=x, value=x + 1.0, seed=0)
        for name in names
        for x in range(3)
    ]
    return pd.DataFrame(rows).assign(metric="MeanAbsoluteError")


def test_bands_wider_than_a_decade_are_pale_on_logarithmic_axes_alone():
    rows = pd.DataFrame(
        {"size": [1, 1, 2, 2], "series": "filter", "value": [1.0, 9.0, 2.0, 9.0]}
    )
    alphas = {}
    for log in ("", "y"):
        fig, (ax,) = plots.panels()
        plots.curves(rows, "size", "series", ax, log=log)
        alphas[log] = [band.get_alpha() for band in ax.collections if len(band.get_paths())]
        plots.close(fig)
    assert min(alphas[""]) == 0.2, "a linear axis shows where they end"
    assert max(alphas["y"]) < 0.1, "they would cover what else is drawn"


def test_serif_accents_tell_letters_apart():
    with plots.on_page("column", "serif"):
        fig, (ax,) = plots.panels(titles=["H̄ and H̃"])
        plots.lay_out(fig)
    assert ax.get_title(loc="left") == r"$\bar{\mathrm{H}}$ and $\tilde{\mathrm{H}}$"


def test_a_legend_beside_a_row_that_is_not_full_takes_no_room_from_others():
    names = [f"a series of a name that is rather long, {i}" for i in range(10)]
    rows = pd.concat(
        pd.DataFrame({"size": [1, 2], "series": name, "value": [1.0, 2.0], "panel": panel})
        for name in names
        for panel in range(5)
    )
    rows = rows[(rows.panel < 3) | (rows.series != names[0])]  # two rows, two legends
    wanted = [plots.Panel(str(i), {"panel": i}, "size") for i in range(5)]
    fig = plots.grid(rows, wanted, 3, width=9.0)
    plots.lay_out(fig)
    widths = [ax.get_position().width * fig.get_figwidth() for ax in fig.axes]
    assert min(widths) > 1.1, "inches of a panel"


def test_bars_are_named_once_under_a_column_of_panels():
    rows = pd.DataFrame(
        {"x": ["a", "b"] * 2, "series": "filter", "value": 1.0, "panel": [0, 0, 1, 1]}
    )
    wanted = [plots.Panel(str(i), {"panel": i}, "x", bars=True) for i in (0, 1)]
    fig = plots.grid(rows, wanted, 1)
    shown = [ax.xaxis.get_tick_params()["labelbottom"] for ax in fig.axes]
    assert shown == [False, True]


def test_theory_of_two_names_in_two_panels_has_two_kinds_of_dashes():
    rows = pd.DataFrame({"size": [1, 2], "series": "filter", "value": 1.0})
    wanted = [
        plots.Panel(n, {"series": "filter"}, "size", theory=(n, lambda x: x))
        for n in ("one", "other")
    ]
    fig = plots.grid(rows, wanted, 2)
    one, other = (drawn(ax)[n] for ax, n in zip(fig.axes, ("one", "other"), strict=True))
    assert one._unscaled_dash_pattern != other._unscaled_dash_pattern
