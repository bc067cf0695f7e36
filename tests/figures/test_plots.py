"""Rows in, axes out: one look a mechanism, readable axes, nothing over the data."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

from workbench import RandomRanges, Sweep, run
from workbench.datasets import GaussianSparse
from workbench.estimates.release import Release
from workbench.figures import plots
from workbench.figures.plots import style
from workbench.figures.plots.axes import format_tick
from workbench.mechanisms import (
    GeometricHistogram,
    HighPassFilter,
    Laborious,
    PrioritySampling,
    PrivTree,
    ThresholdSampling,
)
from workbench.mechanisms.protocol import budget_field, series_name
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

    budget: DP = budget_field()
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
    told = (
        rf"mix .*{column} \(.*, but a mean may be over seeds only\. Put this column on an axis"
    )
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
    looks = {(str(line._dash_pattern), line.get_marker()) for line in drawn(ax).values()}
    assert len(looks) == len({marker for _, marker in looks}) == 4, "not by dashes alone"
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
    for family in (style.SUMMARIES, style.HISTOGRAMS):
        assert len({look for looks in family.values() for look in looks}) == 2 * len(family)


def test_a_number_is_a_shade_and_a_word_a_marker():
    numbers = [f"filter, θ = {theta}" for theta in (1000, 5, 20)]
    words = ["filter, Haar", "filter, dyadic"]
    styles = plots.series_styles([*numbers, *words, "filter"])
    assert len(set(styles.values())) == 6
    light = {name: sum(matplotlib.colors.to_rgb(styles[name].color)) for name in numbers}
    assert sorted(light, key=light.get) == [numbers[0], numbers[2], numbers[1]], (
        "in their order"
    )
    assert len({styles[name].marker for name in numbers}) == 1
    assert len({styles[name].marker for name in [numbers[0], *words, "filter"]}) == 4
    new = plots.series_styles(["new", "newer"])
    assert len({style.color for style in new.values()}) == 2
    assert plots.series_styles(["filter, θ = 5"])["filter, θ = 5"] == plots.SERIES_STYLES[
        "filter"
    ] + ("-",)


@pytest.mark.parametrize("name", plots.SERIES_STYLES)
def test_names_at_the_ends_of_lines_can_be_read(name):
    ink = plots.series_styles([name])[name].ink
    linear = [
        x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4
        for x in matplotlib.colors.to_rgb(ink)
    ]
    assert 1.05 / (np.dot(linear, [0.2126, 0.7152, 0.0722]) + 0.05) > 4.5, "WCAG, level AA"


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


def test_few_seeds_are_dots_and_intervals_are_possible_ones():
    _, (few, many) = plots.panels(1, 2)
    plots.curves(plots.name_series(rows(("filter", 5.0), seeds=3)), "query_size", "series", few)
    wide = plots.name_series(rows(("filter", 5.0)))
    wide["value"] *= np.where(wide.seed < 4, 1, 20)
    plots.curves(wide, "query_size", "series", many)
    dots = [line for line in few.lines if line.get_marker() == "."]
    assert len(dots[0].get_xdata()) == 9 and not few.collections
    (band,) = many.collections
    low = band.get_paths()[0].vertices[:, 1].min()
    assert confidence_intervals(wide, "query_size").low.min() < 0
    assert low == pytest.approx(wide.value.min()), (
        "what may not be negative ends at its least value"
    )


def test_an_interval_of_a_share_ends_at_one():
    high = rows(("filter", 5.0), metric="TopPrecision").assign(
        value=lambda x: 0.9 + 0.1 * (x.seed % 2)
    )
    _, [ax] = plots.panels()
    plots.curves(plots.name_series(high), "query_size", "series", ax, log="x")
    assert ax.collections[0].get_paths()[0].vertices[:, 1].max() == 1


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
    plots.printed([Printed.approximately("about 30", 30, 5, at=1000)], ax)
    plots.printed([Printed("from 0 to 1 %", 0.0, 1e-9), Printed("1000", 9, 11, axis="x")], ax)
    plots.printed([Printed("later", 1, 2, over=(500, 1000))], ax)
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


def test_a_table_is_marks_with_the_printed_ranges():
    table = pd.DataFrame({"name": ["A", "B"], "value": [0.01, 0.2], "metric": "density"})
    said = [Printed("1 %", 0.009, 0.011, at="A"), Printed("not shown", 1, 2, at="C")]
    fig, (ax,) = plots.panels(1, 1)
    plots.marks(table, "name", ax, printed=said)
    fig.canvas.draw()
    assert [t.get_text() for t in ax.get_yticklabels()] == ["A", "B"]
    assert all("%" in t.get_text() for t in ax.get_xticklabels())
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the first is on top"
    assert [text.get_text() for text in ax.texts] == ["1 %", "20 %"]


def test_a_grid_draws_each_panel_from_its_own_rows():
    named = pd.concat([plots.name_series(BOTH).assign(panel=p) for p in "abc"])
    panels = [plots.Panel(p, {"panel": p}, "query_size") for p in "abc"]
    fig = plots.grid(named, panels, columns=2)
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["a", "b", "c"]
    assert all(list(drawn(ax)) == ["geometric", "filter"] for ax in fig.axes)
    assert [ax.texts[0].get_text() for ax in fig.axes] == ["a", "b", "c"]


def test_a_panel_says_what_it_cannot_draw():
    named = plots.name_series(BOTH).assign(panel="a")
    named.loc[:1, "value"] = [np.inf, np.nan]
    panels = [plots.Panel(p, {"panel": p}, "query_size") for p in "ab"]
    fig = plots.grid(named, panels, columns=2)
    said = [ax.get_title(loc="left") for ax in fig.axes]
    assert said == ["a (2 values not finite)", "b (no rows)"]


def test_panels_side_by_side_may_share_their_axis():
    frames = [
        plots.name_series(BOTH.assign(value=BOTH.value * k)).assign(panel=p)
        for p, k in zip("ab", (1, 50), strict=True)
    ]
    panels = [plots.Panel(p, {"panel": p}, "query_size") for p in "ab"]
    a, b = plots.grid(pd.concat(frames), panels, columns=2, sharey=True).axes
    assert a.get_ylim() == b.get_ylim() and not b.yaxis.get_tick_params()["labelleft"]


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
    (scale,) = [ax.get_ylim() for ax in fig.axes if ax.get_subplotspec() is None]
    assert np.allclose(scale, (10, 100))


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


def test_bars_in_groups_show_means_as_marks_where_a_length_says_nothing():
    rows = pd.DataFrame(
        [
            {"series": name, "epsilon": epsilon, "seed": seed, "value": height / epsilon + seed}
            for name, height in (("S̃", 90), ("S̄", 3))
            for epsilon in (1.0, 0.1)
            for seed in range(3)
        ]
    )
    _, (linear, ax) = plots.panels(1, 2)
    plots.grouped_bars(rows, "epsilon", "series", linear, log=False)
    plots.grouped_bars(rows, "epsilon", "series", ax)
    tops = [round(p.get_y() + p.get_height(), 6) for p in linear.patches]
    assert sorted(tops) == [4, 31, 91, 901] and linear.get_ylim()[0] == 0
    assert len({p.get_hatch() for p in linear.patches}) == 2
    marks = [y for line in ax.containers for y in line[0].get_ydata()]
    assert not ax.patches and sorted(np.round(marks, 6)) == [4, 31, 91, 901]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["1", "0.1"]
    assert ax.get_yscale() == "log"
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
    (bar,) = [artist for artist in a.artists if hasattr(artist, "size_bar")]
    (stroke,) = bar.size_bar.get_children()
    assert stroke.get_width() == 50 and not b.artists
    assert bar.txt_label.get_text() == "50 km" and colours.get_xlabel() == "people"
    with pytest.raises(ValueError, match="no rows"):
        plots.maps(one[:0], 1, **look)


def test_no_two_series_of_a_figure_have_one_style():
    kinds = ["geometric", "PrivTree", *(f"outsider {i}" for i in range(12))]
    names = [f"{kind}, θ = {theta}" for theta in range(12) for kind in kinds]
    assert len(set(plots.series_styles(names).values())) == len(names)


def test_panels_share_the_styles_of_their_series():
    rows = figure_rows(["filter, θ = 20", "filter, θ = 40"])
    panels = [plots.Panel(s, {"series": s}, "query_size", log="") for s in rows.series.unique()]
    one, two = (ax.lines[0] for ax in plots.grid(rows, panels, 2).axes)
    assert one.get_color() != two.get_color()


def names_at_ends(ax):
    return [text.get_text() for text in ax.texts if hasattr(text, "series")]


def test_lines_are_named_at_their_ends_and_others_in_a_legend():
    rows = figure_rows(["filter", "priority"])
    panels = [plots.Panel(str(i), {"seed": 0}, "query_size", log="") for i in range(4)]
    fig = plots.grid(rows, panels, 2)
    plots.lay_out(fig)
    assert [names_at_ends(ax) for ax in fig.axes] == [[], ["filter", "priority"], [], []]
    assert not fig.legends
    fig.draw_without_rendering()
    extent = matplotlib.text.Text.get_window_extent  # without the arrow
    boxes = [extent(text) for ax in fig.axes for text in ax.texts if hasattr(text, "series")]
    low, high = sorted(boxes, key=lambda box: box.y0)
    assert low.y1 <= high.y0 + 0.5 and max(low.x1, high.x1) <= fig.bbox.x1
    many = figure_rows([f"series {i}" for i in range(20)])
    fig = plots.grid(many, panels, 2)
    assert not any(map(names_at_ends, fig.axes))
    assert [len(legend.get_texts()) for legend in fig.legends] == [20]


def test_what_lines_of_one_kind_share_is_not_repeated():
    rows = figure_rows(["filter, θ = 20", "filter, θ = 40"])
    fig = plots.grid(rows, [plots.Panel("", {"seed": 0}, "query_size", log="")], 1)
    assert names_at_ends(fig.axes[0]) == ["θ = 20", "θ = 40"]


@pytest.mark.parametrize(
    "width, inches", [("column", 3.4), ("page", 7.0), ("slide", 5.5), (12, 12 / 2.54)]
)
@pytest.mark.parametrize("font, family", [("sans", "Workbench Sans"), ("serif", "STIXGeneral")])
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


@pytest.mark.parametrize("width", ["wide", "-3", "nan", "7.5", "1000"])
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


@pytest.mark.filterwarnings("error")
def test_panels_of_a_column_keep_their_height_under_many_names():
    names = [f"mechanism {i}, dyadic" for i in range(7)]
    x = {"query_size": [1, 10], "value": [1, 10], "metric": "MeanAbsoluteError", "of": "all"}
    rows = pd.concat([pd.DataFrame(x | {"series": name}) for name in names])
    panels = [
        plots.Panel(f"uniform data, ε = {i}: {'words ' * 9}", {"of": "all"}, "query_size")
        for i in (1, 2)
    ]
    with plots.on_page("column"):
        fig = plots.grid(rows, panels, columns=2)
        plots.entitle(fig, "Ranges make the error of long ranges almost independent of length")
        plots.lay_out(fig)
    assert all(ax.get_window_extent().height > 0.5 * fig.dpi for ax in fig.axes)
    plt.close(fig)


def test_a_panel_without_a_condition_shows_all_rows():
    rows = pd.DataFrame(
        {"series": ["a", "b"], "seed": [0, 1], "x": [1, 2], "value": [3.0, 4.0]}
    )
    assert plots.panel_rows(rows, plots.Panel("", {}, x="x")).equals(rows)
    chosen = plots.panel_rows(rows, plots.Panel("", {"series": "b", "seed": 1}, x="x"))
    assert chosen.value.tolist() == [4.0]
