"""Panels, their axes and their one legend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isnan, log10
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from workbench.libraries import plt
from workbench.plots.labels import AXIS_LABELS, FROM_0_TO_1, PERCENT_COLUMNS
from workbench.plots.style import COLUMN_WIDTH, PAGE_WIDTH, with_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    size = (width, height * rows + 0.3)
    fig, axes = plt.subplots(rows, columns, figsize=size, sharey=sharey, squeeze=False)
    for ax in axes.flat:
        ax.tick_params(which="both", width=0.6, labelsize=7, labelfontfamily="DejaVu Sans")
        ax.grid(True, which="major", linewidth=0.4, alpha=0.35)
        ax.set_axisbelow(True)
    for ax, title in zip(axes.flat, titles, strict=False):
        ax.set_title(title, loc="left")
    return fig, tuple(axes.flat)


def close(fig: Figure) -> None:
    """Forget a figure that is drawn."""
    plt.close(fig)


@with_style
def legend(fig: Figure, columns: int | None = None) -> Figure:
    """One legend for all panels, below them: never over data. Labels that neighbours repeat go."""
    panels = {}
    for ax in fig.axes:
        spec = ax.get_subplotspec()
        if spec is not None:  # a scale of colours has none
            panels[spec.rowspan.start, spec.colspan.start] = ax
    x_labels = {place: ax.get_xlabel() for place, ax in panels.items()}
    y_labels = {place: ax.get_ylabel() for place, ax in panels.items()}
    for (row, column), ax in panels.items():
        if x_labels[row, column] == x_labels.get((row + 1, column)):
            ax.set_xlabel("")
        if y_labels[row, column] == y_labels.get((row, column - 1)):
            ax.set_ylabel("")
    handles = {}
    for ax in fig.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    columns = columns or _legend_columns([*handles], fig.get_figwidth())
    fig.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=min(columns, len(handles)),
        frameon=False,
        handlelength=2.4,
        columnspacing=1.4,
    )
    return fig


def _legend_columns(labels: list[str], inches: float) -> int:
    """As many columns as fit side by side; a letter takes about 0.065 inches, a line 0.5."""
    for columns in range(len(labels), 1, -1):
        blocks = np.array_split(labels, columns)  # as legends fill columns
        widths = [0.5 + 0.065 * max(map(len, block)) for block in blocks]
        if sum(widths) < inches:
            return columns
    return 1


def name_axis(ax: Axes, which: str, what: str, log: bool, label: str | None) -> None:
    """Name an axis, choose its scale, and give it ticks that can be read."""
    ax.set(**{f"{which}label": AXIS_LABELS.get(what, what) if label is None else label})
    axis = getattr(ax, f"{which}axis")
    if log:
        ax.set(**{f"{which}scale": "log"})
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if _roomy(ax, which) else (1,)))
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(
            FuncFormatter(_percent if what in PERCENT_COLUMNS else format_tick)
        )
    elif what in PERCENT_COLUMNS:
        axis.set_major_formatter(FuncFormatter(_percent))


def show_zero(ax: Axes, linear_below: float) -> None:
    """A vertical axis from 0 on, logarithmic above what is said and linear below it."""
    top = ax.get_ylim()[1]
    ax.set_yscale("symlog", linthresh=linear_below, linscale=0.5)
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.yaxis.set_major_formatter(FuncFormatter(format_tick))
    ax.set_ylim(0, top)


def _roomy(ax: Axes, which: str) -> bool:
    """Whether a logarithmic axis has room for three labels a decade."""
    low, high = sorted(getattr(ax, f"{which}axis").get_data_interval())
    if low <= 0:
        return False
    box = ax.get_position()
    fig = ax.get_figure()
    labels = 3 * log10(high / low)
    if which == "x":
        return labels * 0.42 < box.width * fig.get_figwidth()
    return labels * 0.22 < box.height * fig.get_figheight()


def _percent(x: float, _=None) -> str:
    return f"{100 * x:.3g} %".replace("-", "−")


def format_tick(x: float, _=None) -> str:
    """2000, but 5·10⁴ and 10⁻³: short on an axis, and no mathtext."""
    if isnan(x) or x <= 0 or 0.01 <= x < 10_000:
        return f"{x:g}"
    power = int(np.floor(log10(x) + 1e-9))
    digits = f"{x / 10.0**power:.2g}"
    exponent = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{exponent}" if digits == "1" else f"{digits}·10{exponent}"


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
