"""Strips under a figure: every value with its mark, and nothing above them moves."""

import pandas as pd
import pytest

from workbench.figures import plots
from workbench.trials.claims import Strip

SWEPT = Strip("θ", (("20", False), ("40", None), ("65", True)))
NAMED = Strip("ε is", (("the total", True), ("of each release", False)))


@pytest.fixture
def figure():
    rows = [
        {"series": "filter", "panel": panel, "query_size": x, "seed": seed, "value": x + seed}
        for panel in "ab"
        for x in (1, 10, 100)
        for seed in range(3)
    ]
    rows = pd.DataFrame(rows).assign(metric="MeanSquaredError")
    panels = [plots.Panel(name, {"panel": name}, "query_size") for name in "ab"]
    drawn = plots.grid(rows, panels, columns=2)
    yield drawn
    plots.close(drawn)


def inches(figure, box):
    return box.transformed(figure.dpi_scale_trans.inverted()).bounds


def test_a_strip_a_statement_stands_below_what_was_drawn(figure):
    figure.draw_without_rendering()
    above = [inches(figure, ax.get_window_extent()) for ax in figure.axes]
    height = figure.get_figheight()
    plots.strips(figure, {"c-3c-1.2": SWEPT, "f-7a.1": NAMED})
    figure.draw_without_rendering()
    grown = figure.get_figheight() - height
    panels, below = figure.axes[:2], figure.axes[2:]
    for before, ax in zip(above, panels, strict=True):
        x, y, w, h = inches(figure, ax.get_window_extent())
        assert (x, y - grown, w, h) == pytest.approx(before, abs=0.02)
    (legend,) = figure.legends
    top = max(ax.get_tightbbox().y1 for ax in below)
    assert legend.get_window_extent().y0 > top, "the legend is above the strips"
    assert [ax.get_title(loc="left") for ax in below] == ["c-3c-1.2, by θ", "f-7a.1, by ε is"]


def test_no_colour_has_to_be_told_from_another(figure):
    plots.strips(figure, {"c-3c-1.2": SWEPT})
    ax = figure.axes[-1]
    assert [text.get_text() for text in ax.texts] == ["20 ✗", "40 ?", "65 ✓"]
    grey = [sum(patch.get_facecolor()[:3]) / 3 for patch in ax.patches]
    assert len({round(x, 2) for x in grey}) == 3 and all(x > 0.7 for x in grey), (
        "black on it is read"
    )


def test_values_too_long_for_their_cells_stand_in_two_lines(figure):
    many = Strip("ε and line", tuple((f"total {n} %", None) for n in range(18)))
    plots.strips(figure, {"a-6.1": many, "c-3c-1.2": SWEPT})
    figure.draw_without_rendering()
    two, one = figure.axes[-2:]
    assert two.texts[0].get_text() == "total\n0 % ?"
    for ax in (two, one):
        cells = zip(ax.texts, ax.patches, strict=True)
        for text, cell in cells:
            inside, around = text.get_window_extent(), cell.get_window_extent()
            assert around.x0 <= inside.x0 and inside.x1 <= around.x1
            assert around.y0 <= inside.y0 and inside.y1 <= around.y1
