"""Panels, axes, legends and the layout of a figure, and the numbers that the figure shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from math import log10
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.compiled import mpl, pd, plt
from workbench.figures.plots.style import (
    AXIS_LABELS,
    COLUMN_WIDTH,
    FROM_0_TO_1,
    PAGE_WIDTH,
    PERCENT_COLUMNS,
    SeriesStyle,
    in_words,
    page,
    with_style,
)
from workbench.value import format_number, number, power_of_ten

if TYPE_CHECKING:
    from jaxtyping import Float
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.text import Text


# Layout


def lay_out(fig: Figure) -> None:
    """Compute the layout of a figure, and keep this layout. So nothing moves if the figure is drawn again.

    To get a new layout after you change the size or the labels of the figure, call
    `fig.set_layout_engine("constrained")`.
    """
    engine = fig.get_layout_engine()
    if engine is None:
        return
    if page().width is not None:
        fig.set_figheight(min(fig.get_figheight(), page().height))
    engine.execute(fig)
    if any([_add_height(fig), *_break_titles(fig), *_add_ticks(fig)]):
        engine.execute(fig)
    _spread_ends(fig)
    _thin_ticks(fig)
    with mpl.rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
        fig.set_layout_engine(None)  # which would else ask them


def _add_height(fig: Figure) -> float:
    """Make a figure as high as its panels need, but at most as high as the page. Return the added height in
    inches.
    """
    panels = [ax for ax in fig.axes if ax.get_subplotspec() is not None]
    if page().width is None or not panels:
        return 0.0
    high = fig.get_figheight()
    lowest = min(ax.get_position(original=True).height for ax in panels) * high
    rows = 1 + max(ax.get_subplotspec().rowspan.start for ax in panels)
    fig.set_figheight(min(high + rows * max(0.0, _LEAST - lowest), page().height))
    return fig.get_figheight() - high


def _break_titles(fig: Figure) -> Iterator[Text]:
    """Break titles that would reach the next panel into more lines."""
    panels = [ax for ax in fig.axes if ax.get_subplotspec() is not None]
    for ax in panels:
        title = ax._left_title
        row = ax.get_subplotspec().rowspan.start
        beside = [x for x in panels if x.get_subplotspec().rowspan.start == row]
        beyond = [x.bbox.x0 - _LETTER_ROOM * fig.dpi for x in beside if x.bbox.x0 > ax.bbox.x0]
        wide = min([*beyond, fig.bbox.width - 2]) - ax.bbox.x0
        if title.get_text() and title.get_window_extent().width > wide:
            title.set_text(_in_width(title, wide))
            yield title


def _add_ticks(fig: Figure) -> Iterator[Axis]:
    """Add numbers to logarithmic axes that have fewer than two numbers."""
    for ax in fig.axes:
        for axis in (ax.xaxis, ax.yaxis):
            locator = axis.get_major_locator()
            low, high = sorted(axis.get_view_interval())
            if axis.get_scale() != "log" or isinstance(locator, mpl.ticker.FixedLocator):
                continue
            of_decades = isinstance(locator, mpl.ticker.LogLocator)
            if not of_decades and high > 100 * low:  # an empty panel, named before it had ends
                axis.set_major_locator(mpl.ticker.LogLocator(numticks=3))
                yield axis
            elif sum(low <= place <= high for place in locator()) < 2:
                axis.set_major_locator(mpl.ticker.LogLocator(subs=(1, 2, 3, 5, 7), numticks=9))
                yield axis


# Axes

_LETTER_ROOM = 0.22  # inches that the letter of a panel takes beside its title
_LEGEND_LINES = 2  # below a figure, for which there is room
_END_LETTERS = 20  # of a line of such a label
_END_LINE = 0.125  # inches of one
_LEAST = 0.8  # inches of a panel, across and high
_LINE = 0.155  # that a line of a legend takes
_LETTER = 0.058  # inches that one takes
_BESIDE = 0.45  # that an axis takes with its numbers and its name


@with_style
def panels(
    rows: int = 1,
    columns: int = 1,
    titles: Sequence[str] = (),
    *,
    width: float | None = None,
    height: float = 2.0,
    sharey: bool = False,
    keep: bool = False,
) -> tuple[Figure, tuple[Axes, ...]]:
    """Make an empty figure with several panels, which are arranged in rows and columns.

    Parameters
    ----------
    rows, columns : int
        Number of rows of panels, and number of panels in each row.
    titles : sequence of str
        Titles of the panels, row by row.
    width : float, optional
        Width of the figure, in inches. By default, a figure with a single column of panels is as wide as a
        column of a paper. Other figures are as wide as a page.
    height : float
        Height of one panel, in inches.
    sharey : bool
        Whether all panels have the same vertical axis.
    keep : bool
        Whether the number of panels in a row stays the same on a narrow page. By default, a narrow page may
        have fewer panels in a row.

    Returns
    -------
    fig : Figure
    axes : tuple of Axes
        Panels, row by row.
    """
    if width is None:
        width = COLUMN_WIDTH if columns == 1 else PAGE_WIDTH
    count = min(rows * columns, len(titles) or rows * columns)
    if sharey and page().narrow:  # names beside panels leave room for one
        rows, columns = count, 1
    if keep:
        width = page().width or width
    else:
        rows, columns, width, height = page().arrange(count, columns, width, height)
    size = (width, height * rows + 0.3)
    fig, axes = plt.subplots(rows, columns, figsize=size, sharey=sharey, squeeze=False)
    for ax in axes.flat:
        ax.tick_params(which="both", width=0.6, labelsize=7)
        ax.grid(True, which="major", linewidth=0.4, alpha=0.35)
        ax.set_axisbelow(True)
    letters = int((width / columns - 1.25 * _BESIDE) / _LETTER)
    for ax, title in zip(axes.flat, titles, strict=False):
        ax.set_title(_in_lines(title, letters), loc="left")
    for ax in axes.flat[count:]:
        ax.remove()
    return fig, tuple(axes.flat[:count])


@with_style
def entitle(fig: Figure, headline: str) -> None:
    """Write a sentence above a figure. A long sentence takes several lines."""
    title = fig.suptitle(headline, x=0.012, ha="left")
    title.set_text(_in_width(title, 0.97 * fig.bbox.width))
    lines = title.get_text().count("\n") + 1
    fig.set_figheight(fig.get_figheight() + 0.19 * lines)


def add_letter(ax: Axes, letter: str) -> None:
    """Write the letter of a panel next to its title."""
    where = dict(xycoords=ax._left_title, textcoords="offset points", annotation_clip=False)
    look = dict(weight="bold", size=ax._left_title.get_size(), va="top")
    ax.annotate(letter, (0, 1), (-11, 0), **look, **where)


def share_y(axes: Sequence[Axes]) -> None:
    """Let panels of one row share a vertical axis if they show the same quantity. Numbers are at the left
    only.
    """
    rows: dict[Any, list[Axes]] = {}
    for ax in axes:
        same = (ax.get_subplotspec().rowspan.start, ax.get_ylabel(), ax.get_yscale())
        rows.setdefault(same, []).append(ax)
    for beside in rows.values():
        limits = np.array([ax.get_ylim() for ax in beside])
        for ax in beside:
            ax.set_ylim(limits[:, 0].min(), limits[:, 1].max())
            ax.tick_params(axis="y", which="both", labelleft=ax is beside[0])


def close(fig: Figure) -> None:
    """Close a figure and free its memory."""
    plt.close(fig)


@with_style
def legend(fig: Figure, styles: Mapping[str, SeriesStyle] | None = None) -> Figure:
    """Write the names of series (the curves) into a figure. If there is space, each name is at the end of its
    curve. Otherwise the names are in a legend below all panels.

    If neighbouring panels have the same label of an axis, the function shows this label only once.

    Parameters
    ----------
    fig : Figure
        Figure with the series.
    styles : mapping, optional
        Styles of those series whose names may be at the ends of their curves.
    """
    panels = {}
    for ax in fig.axes:
        spec = ax.get_subplotspec()
        if spec is not None:  # a scale of colours has none
            panels[spec.rowspan.start, spec.colspan.start] = ax
    x_labels = {place: ax.get_xlabel() for place, ax in panels.items()}
    y_labels = {place: ax.get_ylabel() for place, ax in panels.items()}
    for (row, column), ax in panels.items():
        below = panels.get((row + 1, column))
        if below is not None and x_labels[row, column] == x_labels[row + 1, column]:
            ax.set_xlabel("")
        if below is not None and _names(ax) and _names(ax) == _names(below):
            ax.tick_params(axis="x", labelbottom=False)
        if y_labels[row, column] == y_labels.get((row, column - 1)):
            ax.set_ylabel("")
    wide, high = _panel_size(fig)
    letters = int((wide - _BESIDE) / _LETTER)
    letters_high = max(8, int((high - _BESIDE) / _LETTER))
    for ax in panels.values():
        ax.set_xlabel(_in_lines(ax.get_xlabel(), letters))
        ax.set_ylabel(_in_lines(ax.get_ylabel(), letters_high))
    labelled: set[str] = set()
    styles = styles or {}
    for at in sorted(panels, key=lambda at: (at[0], -at[1])):
        lines = {line.get_label(): line for line in panels[at].get_lines()}
        named = {name: lines[name] for name in styles if name in lines}
        if {*named} - labelled and _label_ends(panels[at], named, styles):
            labelled |= {*named}
    for ax in panels.values():  # marks in groups have no end
        labelled -= {drawn.get_label() for drawn in ax.containers}
    handles = _handles(fig.axes)
    order = [name for name in [*styles, *handles] if name in handles and name not in labelled]
    handles = {name: handles[name] for name in order}
    if handles:
        words = [*map(in_words, handles)]
        looks: dict[str, Any] = dict(frameon=False, handlelength=2.4, columnspacing=1.4)
        looks |= dict(loc="outside lower center")
        for columns in range(len(words), 0, -1):
            box = fig.legend(handles.values(), words, ncols=columns, **looks)
            if columns == 1 or box.get_window_extent().width < fig.bbox.width:
                break
            box.remove()
        one_row = not any(row for row, _ in panels)
        room = 0 if one_row and page().narrow else _LEGEND_LINES
        more = max(0, -(-len(handles) // columns) - room)
        fig.set_figheight(fig.get_figheight() + more * _LINE)  # so that panels stay as high
    return fig


def _panel_size(fig: Figure) -> tuple[float, float]:
    """Return the width and the height in inches that a figure has for each panel."""
    grid = fig.axes[0].get_gridspec()
    return fig.get_figwidth() / grid.ncols, fig.get_figheight() / grid.nrows


def _label_ends(ax: Axes, lines: Mapping[str, Any], styles: Mapping[str, SeriesStyle]) -> bool:
    """Write the names of curves at the right ends of these curves, in the same colours. If there is not
    enough space, change nothing and return False.
    """
    kinds = {name.split(", ")[0] for name in lines}
    short = len(kinds) == 1 < len(lines) and all(", " in name for name in lines)
    texts = {
        name: _in_lines(name.partition(", ")[2] if short else in_words(name), _END_LETTERS)
        for name in lines
    }
    wide, high = _panel_size(ax.get_figure())
    each = [line for text in texts.values() for line in text.split("\n")]
    least = 1.3 * _LEAST if page().narrow else _LEAST
    if len(each) * _END_LINE > high - 2 * _BESIDE:
        return False
    if wide - _BESIDE - _LETTER * max(map(len, each)) < least:
        return False
    leader = dict(arrowstyle="-", linewidth=0.5, shrinkA=1, shrinkB=3, relpos=(0, 0.5))
    for name, line in lines.items():
        points = line.get_xydata()
        points = points[np.isfinite(points).all(axis=1)]
        if len(points):
            points[-1, 1] = np.clip(points[-1, 1], *sorted(ax.get_ylim()))
            text = ax.annotate(
                texts[name],
                points[-1],
                (1.05, points[-1][1]),
                textcoords=ax.get_yaxis_transform(),
                annotation_clip=False,
                color=styles[name].ink,
                size=mpl.rcParams["legend.fontsize"],
                va="center",
                linespacing=0.95,
                arrowprops=leader | {"color": styles[name].color},
            )
            tag(text, name)
    return True


def _spread_ends(fig: Figure) -> None:
    """Move overlapping labels of lines apart, within their panel."""
    for ax in fig.axes:
        ends = [text for text in ax.texts if hasattr(text, "series")]
        if not ends:
            continue
        renderer = fig.canvas.get_renderer()
        box = ax.get_window_extent(renderer)
        extent = mpl.text.Text.get_window_extent  # without the arrow
        heights = np.array([extent(text, renderer).height for text in ends])
        wanted = [ax.transData.transform(text.xy)[1] for text in ends]
        places = apart(np.clip(wanted, box.y0, box.y1), heights, box.y0, box.y1)
        gap = 4 * fig.dpi / 72
        for text, y in zip(ends, places, strict=True):
            text.set_position(fig.transFigure.inverted().transform((box.x1 + gap, y)))
            text.anncoords = fig.transFigure


def _thin_ticks(fig: Figure) -> None:
    """Hide numbers of an axis that would overlap the previous number. Names are made smaller instead."""
    renderer = fig.canvas.get_renderer()
    for ax in fig.axes:
        for low, high, axis in (("x0", "x1", ax.xaxis), ("y0", "y1", ax.yaxis)):
            labels = [tick.label1 for tick in axis._update_ticks()]
            boxes = [
                (text, text.get_window_extent(renderer))
                for text in labels
                if text.get_text() and text.get_visible() and not text.get_rotation()
            ]
            lengths = [getattr(box, high) - getattr(box, low) for _, box in boxes]
            if boxes and isinstance(axis.get_major_locator(), mpl.ticker.FixedLocator):
                room = (getattr(ax.bbox, high) - getattr(ax.bbox, low)) / len(boxes)
                for text, _ in boxes:
                    text.set_size(text.get_size() * min(1, room / max(lengths)))
                continue
            taken = -np.inf
            for text, box in sorted(boxes, key=lambda x: getattr(x[1], low)):
                text.set_visible(getattr(box, low) > taken)
                if text.get_visible():
                    taken = getattr(box, high) + 4 * (axis is ax.xaxis)


def apart(
    wanted: Float[np.ndarray, " n"], heights: Float[np.ndarray, " n"], low: float, high: float
) -> Float[np.ndarray, " n"]:
    """Return the centres of boxes of the given heights, which are near the `wanted` centres but do not
    overlap. If there is not enough space between `low` and `high`, some boxes are below `low`.

    >>> apart(np.array([5.0, 5.0]), np.array([2.0, 2.0]), 0, 10)
    array([4., 6.])
    """
    order = np.argsort(wanted, kind="stable")
    stacked = np.cumsum(heights[order]) - heights[order] / 2
    alone, n = wanted[order] - stacked, len(wanted)
    # the nearest places that keep the order, without scipy.optimize, which loads for half a second
    feet = [
        max(min(alone[j:k].mean() for k in range(i + 1, n + 1)) for j in range(i + 1))
        for i in range(n)
    ]
    places = np.empty(len(wanted))
    last = high - heights.sum()
    places[order] = np.clip(feet, min(low, last), last) + stacked
    return places


def _names(ax: Axes) -> list[str]:
    """Return the names under groups of bars, or no names if the horizontal axis has numbers."""
    named = isinstance(ax.xaxis.get_major_locator(), mpl.ticker.FixedLocator)
    return [label.get_text() for label in ax.get_xticklabels()] if named else []


def _in_width(text: Text, wide: float) -> str:
    """Break a text into as few lines as the width allows. All lines have about the same length."""
    words = text.get_text().replace("\n", " ")
    text.set_text(words)
    letters = max(1, int(len(words) * wide / max(text.get_window_extent().width, wide)))
    lines = _in_lines(words, letters)
    while letters > 1 and _in_lines(words, letters - 1).count("\n") == lines.count("\n"):
        letters -= 1
    return _in_lines(words, letters)


def _in_lines(text: str, letters: int) -> str:
    """Break a title or a name into lines. Existing line breaks are kept, and a value stays on one line
    with its name.

    >>> _in_lines("one cell, w = 10", 14)
    'one cell,\\nw = 10'
    """
    kept = text.replace(" = ", "\xa0=\xa0")
    lines = "\n".join(
        "\n".join(wrap(line, letters, break_on_hyphens=False, break_long_words=False))
        for line in kept.split("\n")
    )
    return lines.replace("\xa0", " ")


def _handles(axes: Sequence[Axes]) -> dict[str, Any]:
    """Return the handles of a legend for several panels, one per series."""
    handles: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    return handles


def name_axis(ax: Axes, which: str, what: str, log: bool, label: str | None = None) -> None:
    """Name an axis, choose its scale, and give it ticks that can be read."""
    ax.set(**{f"{which}label": label or AXIS_LABELS.get(what, what)})
    axis = getattr(ax, f"{which}axis")
    if log:
        ax.set(**{f"{which}scale": "log"})
        locator = mpl.ticker.LogLocator(subs=(1, 2, 5) if _roomy(ax, which) else (1,))
        if page().width and which == "x":
            width = ax.get_position().width * ax.get_figure().get_figwidth()
            locator.set_params(numticks=max(2, int(width / 0.33)))
        axis.set_major_locator(locator)
        axis.set_minor_formatter(mpl.ticker.NullFormatter())
    plain = format_tick if log else _plain_tick
    axis.set_major_formatter(_percent if what in PERCENT_COLUMNS else plain)
    if page().width and (not log or _within_a_decade(axis)):
        width, height = ax.get_position().size * ax.get_figure().get_size_inches()
        room = int(width / 0.42) if which == "x" else int(height / 0.2)
        axis.set_major_locator(mpl.ticker.MaxNLocator(max(2, room), steps=[1, 2, 5, 10]))
    if which == "y" and what in FROM_0_TO_1 and not log:  # for all panels alike
        ax.set_ylim(min(0, max(ax.get_ylim()[0], -0.05)), 1.05)


def _within_a_decade(axis: Axis) -> bool:
    """Return whether a logarithmic axis covers less than one power of ten. Such an axis gets evenly spaced
    numbers.
    """
    low, high = sorted(axis.get_data_interval())
    return low > 0 and high < 10 * low


def show_zero(ax: Axes, linear_below: float) -> None:
    """Start a vertical axis at 0. It is linear up to the given value, and logarithmic above."""
    top = ax.get_ylim()[1]
    ax.set_yscale("symlog", linthresh=linear_below, linscale=0.5)
    ax.yaxis.set_minor_formatter(mpl.ticker.NullFormatter())
    ax.yaxis.set_major_formatter(format_tick)
    ax.set_ylim(0, top)


def _roomy(ax: Axes, which: str) -> bool:
    """Return whether a logarithmic axis has space for three labels per decade."""
    low, high = sorted(getattr(ax, f"{which}axis").get_data_interval())
    if low <= 0:
        return False
    box = ax.get_position()
    fig = ax.get_figure()
    labels = 3 * log10(high / low)
    if page().narrow:
        labels *= 2  # a legend beside may take half
    if which == "x":
        return labels * 0.42 < box.width * fig.get_figwidth()
    return labels * (0.3 if page().width else 0.22) < box.height * fig.get_figheight()


def _plain_tick(x: float, _: Any = None) -> str:
    """Format a number as people write it, but large numbers as powers such as 10⁶, because long labels
    do not fit.
    """
    return number(x, 4) if abs(x) < 100_000 else power_of_ten(x)


def _percent(x: float, _: Any = None) -> str:
    return f"{100 * x:.3g} %".replace("-", "−")


def format_tick(x: float, _: Any = None) -> str:
    """Format a number for an axis in short form, for example 2000, 5·10⁴ or 10⁻³. The text needs no
    mathematical markup.
    """
    return power_of_ten(x, 2) if 0 < x < 0.01 or x >= 10_000 else f"{x:g}"


@contextmanager
def keep_limits(ax: Axes) -> Iterator[None]:
    """Inside the `with` block, keep the range of a panel's axes unchanged, whatever is drawn there."""
    limits = ax.dataLim.frozen()
    yield
    ax.dataLim.set(limits)


# Aggregates

COLUMNS = ("x", "mean", "low", "high")


def tag(
    artists: Artist | Iterable[Artist], series: str, points: pd.DataFrame | None = None
) -> None:
    """Mark matplotlib's artists (drawn elements) with the name of the series (curve) that they draw.

    Parameters
    ----------
    artists : Artist or several
        Artists that draw the series.
    series : str
        Name of the series.
    points : DataFrame, optional
        Numbers of the series. The columns are `x` (as displayed), `at` (the place on the axis), `mean`, `low`
        and `high` (the ends of the interval).
    """
    for artist in artists if isinstance(artists, Iterable) else [artists]:
        artist.series = series
        artist.points = points
        points = None


def aggregates(fig: Figure) -> list[dict[str, Any]]:
    """Return the numbers that a figure shows, for each panel and series (curve). Call this function after
    `lay_out`. The function also gives an id to every drawn element, with which you can find the element in an
    SVG file.

    Parameters
    ----------
    fig : Figure
        Figure that was drawn by the functions of this package.

    Returns
    -------
    list of dict
        One dictionary per panel. `letter` is the letter of the panel, and `where` contains the values of
        columns that select its rows. `series` is a list with one dictionary per series. The dictionary of a
        series contains its `name`, the `ids` of the drawn elements, the `points`, and the `places` of these
        points in units of the SVG file. A point has x, mean, and the ends of the interval, low and high.
    """
    numbers = count()
    height = 72 * fig.get_figheight()
    panels = []
    for ax in fig.axes:
        found: dict[str, dict[str, Any]] = {}
        for artist in ax.get_children():
            name = getattr(artist, "series", None)
            if name is None:
                continue
            artist.set_gid(f"series{next(numbers)}")
            own = found.setdefault(name, {"name": name, "ids": [], "places": [], "points": []})
            own["ids"].append(artist.get_gid())
            points = artist.points
            if points is not None:
                points = points[np.isfinite(points["mean"])]
                places = ax.transData.transform(points[["at", "mean"]].to_numpy(float))
                across, down = (places * 72 / fig.dpi).T
                own["places"] = np.round([across, height - down], 1).T.tolist()
                shown = [points.x.map(_x), *(points[c].map(_y) for c in COLUMNS[1:])]
                own["points"] = [list(point) for point in zip(*shown, strict=True)]
        if found:
            letter, where = getattr(ax, "panel", ("", {}))
            where = {key: str(x) for key, x in where.items()}
            panels.append({"letter": letter, "where": where, "series": [*found.values()]})
    return panels


def _x(x: str | float) -> str:
    return x if isinstance(x, str) else number(x, 4)


def _y(y: float) -> str:
    return format_number(y) if np.isfinite(y) else ""
