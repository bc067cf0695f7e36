"""Panels, axes, legends and the layout of a figure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isnan, log10
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.compiled import mpl, plt
from workbench.figures.plots.style import (
    AXIS_LABELS,
    COLUMN_WIDTH,
    FROM_0_TO_1,
    PAGE_WIDTH,
    PERCENT_COLUMNS,
    RC_PARAMS,
    Page,
    page,
    with_style,
)
from workbench.value import number, power_of_ten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


# Layout

_ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar"}


def lay_out(fig: Figure) -> None:
    """Lay a figure out and keep it so: later drawings of it move nothing.

    Whoever changes its size or labels afterwards asks for a layout again:
    `fig.set_layout_engine("constrained")`.
    """
    engine = fig.get_layout_engine()
    if engine is None:
        return
    if page().font == "serif":
        for text in fig.findobj(mpl.text.Text):
            text.set_text(accented(text.get_text()))
    engine.execute(fig)
    _keep_labels(fig)
    with mpl.rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
        fig.set_layout_engine(None)  # which would else ask them


def accented(text: str) -> str:
    """Letters with their accents as mathtext: the serif font would put H̃ and H̄ alike onto the letter.

    >>> accented("H̄, rounded"), accented("theory")
    ('$\\\\bar{\\\\mathrm{H}}$, rounded', 'theory')
    """
    for mark, name in _ACCENTS.items():
        text = re.sub(f"(\\w){mark}", rf"$\\{name}{{\\mathrm{{\1}}}}$", text)
    return text


def _keep_labels(fig: Figure) -> None:
    """Titles and labels stay where they belong now: to find that out takes a third of a drawing."""
    if not hasattr(fig.canvas, "get_renderer"):
        return
    renderer = fig.canvas.get_renderer()
    for ax in fig.axes:
        ax.apply_aspect()
        ax._update_title_position(renderer)
        ax._autotitlepos = False
        for axis in (ax.xaxis, ax.yaxis):
            axis._update_label_position(renderer)
            place = axis.label.get_transform().transform(axis.label.get_position())
            axis.set_label_coords(*ax.transAxes.inverted().transform(place))


# Axes

STRIP_LINES = 3  # of a legend below a figure
_LEAST = 0.8  # inches of a panel, across and high
_LINE = 0.155  # that a line of a legend takes
_LETTER = 0.066  # inches that one takes
_BESIDE = 0.45  # that an axis takes with its numbers and its name
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@with_style
def panels(
    rows: int = 1,
    columns: int = 1,
    titles: Sequence[str] = (),
    *,
    width: float | None = None,
    height: float = 2.0,
    sharey: bool = False,
) -> tuple[Figure, tuple[Axes, ...]]:
    """A figure of rows × columns panels, read line by line.

    Parameters
    ----------
    rows, columns : int
        How many panels.
    titles : sequence of str
        A title a panel.
    width : float, optional
        Of the figure, in inches: one column of panels is as wide as a paper's column, more are as
        wide as its page.
    height : float
        Of one panel, in inches.
    sharey : bool
        One y-axis for all.

    Returns
    -------
    fig : Figure
    axes : tuple of Axes
        One a panel, line by line.
    """
    if width is None:
        width = COLUMN_WIDTH if columns == 1 else PAGE_WIDTH
    count = rows * columns
    rows, columns, width, height = page().arrange(rows, columns, width, height)
    size = (width, height * rows + 0.3)
    fig, axes = plt.subplots(rows, columns, figsize=size, sharey=sharey, squeeze=False)
    for ax in axes.flat:
        ax.tick_params(which="both", width=0.6, labelsize=7)
        ax.grid(True, which="major", linewidth=0.4, alpha=0.35)
        ax.set_axisbelow(True)
    letters = int((width / columns - _BESIDE) / _LETTER)
    for ax, title in zip(axes.flat, titles, strict=False):
        ax.set_title(_in_lines(title, letters), loc="left")
    for ax in axes.flat[count:]:
        ax.remove()
    return fig, tuple(axes.flat[:count])


def close(fig: Figure) -> None:
    """Forget a figure that is drawn."""
    plt.close(fig)


@with_style
def legend(fig: Figure, columns: int | None = None) -> Figure:
    """One strip below all panels, or where that would be high one beside each row of them.

    Where beside panels is no room for one, the strip below is high.
    Never over data, and with what is drawn there alone. Labels of axes that neighbours repeat go, and
    a row's legend that says no more than the one above.
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
    across = max((column for _, column in panels), default=0) + 1
    letters = int((fig.get_figwidth() / across - _BESIDE / 2) / _LETTER)
    under = max((row for row, _ in panels), default=0) + 1
    letters_high = max(8, int((fig.get_figheight() / under - _BESIDE) / _LETTER))
    for ax in panels.values():
        ax.set_xlabel(_in_lines(ax.get_xlabel(), letters))
        ax.set_ylabel(_in_lines(ax.get_ylabel(), letters_high))
    handles = _handles(fig.axes)
    inches = fig.get_figwidth()
    columns = columns or _legend_columns([*handles], inches)
    looks: dict[str, Any] = dict(frameon=False, handlelength=2.4)
    low = not is_high([*handles], inches, columns)
    if low or is_crowded([*handles], inches, across):
        columns = min(columns, len(handles))
        if not low:  # the figure grows, so that panels stay as high
            lines = -(-len(handles) // columns) - STRIP_LINES
            fig.set_figheight(fig.get_figheight() + lines * _LINE)
        looks |= dict(loc="outside lower center", ncols=columns, columnspacing=1.4)
        fig.legend(handles.values(), handles.keys(), **looks)
        return _legible(fig)
    above: list[str] = []
    most = 0
    for row in sorted({row for row, _ in panels}):
        beside = [(place, ax) for place, ax in sorted(panels.items()) if place[0] == row]
        handles = _handles([ax for _, ax in beside])
        most = max(most, len(handles))
        if {*handles} <= {*above}:
            continue
        above = [*handles]
        looks |= dict(loc="upper left", bbox_to_anchor=(1.0, 1.02), borderaxespad=0.3)
        (_, column), last = beside[-1]
        strip = last.legend(handles.values(), handles.keys(), **looks)
        strip.set_in_layout(column == across - 1)  # else it stands where a panel would
    fig.set_figheight(max(fig.get_figheight(), under * (most * _LINE + _BESIDE)))
    return _legible(fig)


def _legible(fig: Figure) -> Figure:
    """Of a figure for a page, made higher where titles, names and legends would crush its panels.

    As far as it stays on the page.
    """
    panels = [ax for ax in fig.axes if ax.get_subplotspec() is not None]
    if page().width is None or not panels:
        return fig
    fig.draw_without_rendering()  # lays it out
    lowest = min(ax.get_position(original=True).height for ax in panels) * fig.get_figheight()
    rows = 1 + max(ax.get_subplotspec().rowspan.start for ax in panels)
    height = fig.get_figheight()
    wanted = height + rows * max(0.0, _LEAST - lowest)
    fig.set_figheight(max(height, min(wanted, Page.height)))
    return fig


def _names(ax: Axes) -> list[str]:
    """What stands under groups of bars; nothing where the horizontal axis has numbers."""
    named = isinstance(ax.xaxis.get_major_locator(), mpl.ticker.FixedLocator)
    return [label.get_text() for label in ax.get_xticklabels()] if named else []


def _in_lines(text: str, letters: int) -> str:
    """A title or a name in as many lines as it needs; lines that it has stay, and no value stands alone.

    >>> _in_lines("one cell, w = 10", 14)
    'one cell,\\nw = 10'
    """
    kept = text.replace(" = ", "\xa0=\xa0")
    lines = "\n".join("\n".join(wrap(line, letters)) for line in kept.split("\n"))
    return lines.replace("\xa0", " ")


def _handles(axes: Sequence[Axes]) -> dict[str, Any]:
    """What a legend shows of several panels, each series once."""
    handles: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    return handles


def is_high(labels: list[str], inches: float, columns: int = 0) -> bool:
    """Whether a strip of these labels takes more lines than one sees at a glance."""
    return len(labels) > STRIP_LINES * (columns or _legend_columns(labels, inches))


def is_crowded(labels: list[str], inches: float, across: int) -> bool:
    """Whether a legend beside so many panels would leave them too little of the width."""
    legend = 0.5 + _LETTER * max(map(len, labels), default=0)
    return (inches - legend) / across - _BESIDE < _LEAST


def _legend_columns(labels: list[str], inches: float) -> int:
    """As many columns as fit side by side; a letter takes about 0.065 inches, a line 0.5.

    On a narrow page letters are counted as they are on the mean, and lines as short as they are.
    """
    letter, line = (0.052, 0.42) if page().narrow else (0.065, 0.5)
    letter *= mpl.rcParams["legend.fontsize"] / RC_PARAMS["legend.fontsize"]
    for columns in range(len(labels), 1, -1):
        blocks = np.array_split(labels, columns)  # as legends fill columns
        widths = [line + letter * max(map(len, block)) for block in blocks]
        if sum(widths) < inches:
            return columns
    return 1


def name_axis(ax: Axes, which: str, what: str, log: bool, label: str | None) -> None:
    """Name an axis, choose its scale, and give it ticks that can be read."""
    ax.set(**{f"{which}label": AXIS_LABELS.get(what, what) if label is None else label})
    axis = getattr(ax, f"{which}axis")
    if log:
        ax.set(**{f"{which}scale": "log"})
        locator = mpl.ticker.LogLocator(subs=(1, 2, 5) if _roomy(ax, which) else (1,))
        if page().width and which == "x":
            width = ax.get_position().width * ax.get_figure().get_figwidth()
            locator.set_params(numticks=max(2, int(width / 0.45)))
        axis.set_major_locator(locator)
        axis.set_minor_formatter(mpl.ticker.NullFormatter())
        axis.set_major_formatter(
            mpl.ticker.FuncFormatter(_percent if what in PERCENT_COLUMNS else tick_formatter())
        )
    elif what in PERCENT_COLUMNS:
        axis.set_major_formatter(mpl.ticker.FuncFormatter(_percent))
    else:
        axis.set_major_formatter(mpl.ticker.FuncFormatter(_plain_tick))
    if page().width and (not log or _within_a_decade(axis)):
        width, height = ax.get_position().size * ax.get_figure().get_size_inches()
        room = int(width / 0.6) if which == "x" else int(height / 0.25)
        axis.set_major_locator(mpl.ticker.MaxNLocator(max(2, room), steps=[1, 2, 5, 10]))


def _within_a_decade(axis: Axis) -> bool:
    """Whether a logarithmic axis shows so little that its numbers are spaced as on any other."""
    low, high = sorted(axis.get_data_interval())
    return low > 0 and high < 10 * low


def show_zero(ax: Axes, linear_below: float) -> None:
    """A vertical axis from 0 on, logarithmic above what is said and linear below it."""
    top = ax.get_ylim()[1]
    ax.set_yscale("symlog", linthresh=linear_below, linscale=0.5)
    ax.yaxis.set_minor_formatter(mpl.ticker.NullFormatter())
    ax.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(tick_formatter()))
    ax.set_ylim(0, top)


def _roomy(ax: Axes, which: str) -> bool:
    """Whether a logarithmic axis has room for three labels a decade."""
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
    """As people write it, and short: 10⁶ would else stand apart from the axis."""
    return number(x, 4) if abs(x) < 100_000 else power_of_ten(x)


def _percent(x: float, _: Any = None) -> str:
    return f"{100 * x:.3g} %".replace("-", "−")


def format_tick(x: float, _: Any = None) -> str:
    """2000, but 5·10⁴ and 10⁻³: short on an axis, and no mathtext."""
    return _power(x, lambda power: str(power).translate(_RAISED), "·")


def tick_formatter() -> Callable[..., str]:
    """`format_tick`, or where the font has no raised digits the same in mathtext."""
    if page().font == "sans":
        return format_tick
    return lambda x, _=None: _power(x, lambda power: f"$^{{{power}}}$", r"$\cdot$")


def _power(x: float, raised: Callable[[int], str], times: str) -> str:
    if isnan(x) or x <= 0 or 0.01 <= x < 10_000:
        return f"{x:g}"
    power = int(np.floor(log10(x) + 1e-9))
    digits = f"{x / 10.0**power:.2g}"
    return f"10{raised(power)}" if digits == "1" else f"{digits}{times}10{raised(power)}"


def limit_to_fractions(ax: Axes, what: str) -> None:
    """From 0 to 1, for all panels alike: the band of a mean of few seeds may leave that range."""
    if what in FROM_0_TO_1 and ax.get_yscale() == "linear":
        bottom = ax.get_ylim()[0]
        ax.set_ylim(min(0, max(bottom, -0.05)), 1.05)


@contextmanager
def keep_limits(ax: Axes) -> Iterator[None]:
    """What is drawn meanwhile does not move the limits of the axes."""
    limits = ax.dataLim.frozen()
    yield
    ax.dataLim.set(limits)
