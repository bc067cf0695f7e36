"""Pictures of every figure, from recorded rows: nothing lies over anything, and titles claim what holds."""

from functools import cache
from itertools import combinations
from types import SimpleNamespace

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from workbench.compiled import project_folder
from workbench.figures import Figure, find_figure, find_notebooks, plots
from workbench.figures.notebook import committed_verdicts
from workbench.figures.recorded import recorded_folder
from workbench.figures.saved import TIMED

matplotlib.use("Agg")
IDS = [id for id in find_notebooks(project_folder() / "notebooks") if "20" in id]
WIDTHS = (
    "page",
    *(pytest.param(width, marks=pytest.mark.slow) for width in ("column", "slide")),
)
MOST = 6  # panels of a picture


@cache
def rows_of(id):
    """The recorded rows of the quick run; times, which are not recorded, are all the same."""
    rows = pd.read_csv(recorded_folder() / f"{id}.csv.xz", low_memory=False)
    if "metric" in rows:
        timed = rows.metric.isin(TIMED)
        rows.loc[timed, "value"] = rows.loc[timed, "value"].fillna(1.0)
    return rows


def drawn(id, width):
    """The pictures of a figure, and its panels."""
    figure = find_figure(id).at("quick")
    try:
        with plots.on_page(width):
            return [*figure.drawings(rows_of(id)).items()]
    except FileNotFoundError as e:
        pytest.skip(str(e))


def shown(ax):
    """The texts beside axes that may not touch, by what they are; turned ones have no boxes of their own."""
    renderer = ax.figure.canvas.get_renderer()
    texts = {
        "titles": [ax._left_title, ax.title, ax.xaxis.label, ax.yaxis.label],
        "ends": [text for text in ax.texts if hasattr(text, "series")],
    }
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        ticks = [tick.label1 for tick in axis._update_ticks()]  # those in view
        texts[name] = [label for label in ticks if not label.get_rotation()]
    return {
        kind: [
            (text.get_text(), Text.get_window_extent(text, renderer))
            for text in found
            if text.get_visible() and text.get_text()
        ]
        for kind, found in texts.items()
    }


def cross(a, b):
    """Whether two boxes share more than a pixel in each direction."""
    return min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("id", IDS)
def test_no_words_lie_over_others(id, width):
    for name, fig in drawn(id, width):
        fig.draw_without_rendering()
        assert width != "slide" or fig.get_figheight() <= 2.9
        titles = []
        for ax in fig.axes:
            texts = shown(ax)
            for kind in "xy":
                scaled = getattr(ax, f"get_{kind}scale")() == "log"
                assert not scaled or len(texts[kind]) != 1, (
                    f"{name} {kind}: an axis with one number"
                )
            titles += texts["titles"] + texts["ends"]
            for kind in ("x", "y", "ends"):
                for (a, box), (b, other) in combinations(texts[kind], 2):
                    assert not cross(box, other), f"{name} {kind}: {a!r} lies over {b!r}"
        for (a, box), (b, other) in combinations(titles, 2):
            assert not cross(box, other), f"{name}: {a!r} lies over {b!r}"
        width_of, height_of = fig.bbox.width, fig.bbox.height
        for text, box in titles:
            inside = -1 <= box.x0 and box.x1 <= width_of + 1 and box.y1 <= height_of + 1
            assert inside, f"{name}: {text!r} is cut at the edge"
        plots.close(fig)


@pytest.mark.parametrize("id", IDS)
def test_a_headline_claims_what_the_paper_profile_found(id):
    figure = find_figure(id)
    committed = committed_verdicts(id.partition("_")[0])
    outcomes = dict(zip(committed.id, committed.outcome, strict=True))
    assert bool(figure.headline) == bool(figure.rests_on)
    for name in figure.rests_on:
        statement = name.removeprefix("not ")
        assert statement in figure.checks(), "one of its own"
        assert outcomes[statement] == ("differs" if name.startswith("not ") else "holds")
    assert len(figure.headline) <= 100 and not figure.headline.endswith(".")


@pytest.mark.parametrize("id", IDS)
def test_a_picture_has_at_most_six_panels(id):
    figure = find_figure(id).at("quick")
    assert figure.main <= MOST
    if type(figure).plot is Figure.plot:
        rows, panels = figure._layout(rows_of(id))
        for panel in panels:
            there = np.logical_and.reduce([rows[c] == x for c, x in panel.where.items()])
            assert rows[there].value.notna().any(), f"{panel.title} has no rows"
            assert not panel.title.startswith("("), "letters are added"
            shows = hasattr(figure, "epsilon") and not figure.no_data and panel.x != "epsilon"
            assert not shows or "ε = " in panel.title, "the condition of a panel"
            assert "twin" not in plots.in_words(panel.title)


def test_panels_are_chosen_by_their_letters():
    figure = find_figure("cormode2012_fig3").at("quick")
    rows = rows_of("cormode2012_fig3")
    with plots.on_page("slide"):
        assert [*figure.drawings(rows)] == ["_ab", "_cd"]
        assert len(figure.draw(rows, panels="a, c, e").axes) == 3
        with pytest.raises(ValueError, match="a slide has room for 3 panels, not for 4"):
            figure.draw(rows, panels="abcd")
    with plots.on_page("page"):
        assert [*figure.drawings(rows)] == ["", "_supplement"]
    with plots.on_page("column"):
        assert [*figure.drawings(rows)] == [""]
    with pytest.raises(ValueError, match="no panel 'z': its panels are a to f"):
        figure.draw(rows, panels="az")
    with pytest.raises(ValueError, match="has no panels to choose from"):
        find_figure("cormode2012_table1").at("quick").draw(rows, panels="a")


def test_a_caption_of_a_panel_is_about_its_own_data():
    figure = find_figure("hay2010_fig6").at("quick")
    shown = figure.rows_shown(rows_of("hay2010_fig6"), "a")
    assert {*shown.epsilon} == {1.0} and {*shown.dataset} == {"NetTraceTwin()"}
    assert [*map(repr, figure.datasets_used(shown))] == ["NetTraceTwin()"]
    assert {"NetTraceTwin()", "SearchLogsTwin()"} <= {*map(repr, figure.datasets_used())}


def test_rows_of_another_version_are_refused():
    figure = find_figure("cormode2012_fig3").at("quick")
    rows = rows_of("cormode2012_fig3")
    for column in ("theta", "panel"):
        with pytest.raises(ValueError, match="the rows (lack|have no column)"):
            figure.draw(rows.drop(columns=column))


def test_a_headline_gives_way_to_what_a_run_found():
    figure = find_figure("hay2010_thm4")
    (statement,) = figure.rests_on
    outcomes = {"holds": figure.headline, "undecided": figure.headline, "differs": figure.title}
    for outcome, heading in outcomes.items():
        verdict = SimpleNamespace(id=statement, outcome=outcome)
        assert figure().heading([verdict]) == heading
    moved = find_figure("cormode2012_fig3").at("quick", epsilon=0.5).heading()
    assert moved.endswith("(not the paper's setting: epsilon = 0.5)")
