"""Pictures of releases: a map, a series, or the largest cells, with the noise."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.compiled import mpl, pd
from workbench.estimates import Leaves
from workbench.estimates.describing import chosen_in_words
from workbench.figures.plots.axes import legend, name_axis, panels
from workbench.figures.plots.grids import cells, color_limits, name_shades
from workbench.figures.plots.style import (
    COLUMN_WIDTH,
    PAGE_WIDTH,
    SERIES_STYLES,
    metric_name,
    with_style,
)
from workbench.queries import CodeSets, Selections
from workbench.spaces import Domain, Quadtree
from workbench.value import cell, format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_BLOCKS = 48  # of a map along an axis: codes beyond are added up
_STEPS = 160  # of a series
_BARS = 14
_TICKS = 8
_LETTERS = 17  # of the heading in an inch
_LONGEST = 18  # letters of a label
_NAME = 30  # letters of a bar's name in a line beside bars as wide as a column; on a page twice as many
_COLOR = SERIES_STYLES["filter"][0]
_NOISE = "#e6e6e6"
_ABSENT = "#E69F00"
_WITHIN = "within two deviations of noise"


@with_style
def release_picture(release: Any) -> Figure:
    """Draw a picture of a release. The picture costs no budget, because the function uses only the release.

    The kind of picture depends on the release. For a table with two attributes, the function draws a map of
    counts. Counts of at most two standard deviations of the noise are grey. For a table with one ordered
    attribute, the function draws a curve, with a band that shows the noise. If the release lacks some cells,
    the picture also shows how large the counts of these cells may be. If there are too many labels, the
    function adds up the counts of neighbouring labels. For other tables, the picture shows the largest cells.
    For points with one or two coordinates, the picture shows the released boxes, which are darker where
    points are denser. For points with more coordinates, the picture shows the largest counts of boxes. For
    strings or codes, it shows the largest counts of nodes. A node of strings contains all strings with the
    same beginning, for example "st". A node of codes contains one code or a group of codes, for example all
    diagnoses of one chapter.

    In pictures of the largest cells, boxes or nodes, the counts have error bars of two standard deviations of
    the noise if all of them are shown. If they were chosen by their noisy counts, the picture says so, and
    there are no error bars. A cell is more likely to be among the largest if its noise is positive, so the
    error bars would be wrong for more than 1 in 20 of these cells.

    Parameters
    ----------
    release : Release
        Release of a table, or of points in boxes, or of strings or codes in nodes.

    Returns
    -------
    Figure
        Picture that is as wide as a column of a paper.

    Raises
    ------
    ValueError
        If the release contains no cells, nodes or boxes.
    """
    estimate = release.estimate
    domain = getattr(estimate.domain, "domain", estimate.domain)
    if isinstance(estimate, Leaves) and not isinstance(domain, Domain):
        fig = _adaptive(release)
    elif not isinstance(domain, Domain):
        raise _no_picture(estimate)
    elif len(domain.shape) == 2 and min(domain.shape) > 1:
        fig = _map(release, domain)
    elif len(domain.shape) == 1 and (domain.labels is None or domain.size > _BARS):
        fig = _series(release, domain)
    else:
        fig = _largest(release, domain)
    heading = [_heading(release)]
    for sentence in filter(None, (fig.get_suptitle(), release.counts_what)):
        heading.append(fill(sentence.replace("$", r"\$"), int(_LETTERS * fig.get_figwidth())))
    fig.suptitle("\n".join(heading), fontsize=7, x=0.01, ha="left")
    return fig


def _no_picture(estimate: Any) -> ValueError:
    return ValueError(
        f"there is no picture of {estimate.contents}: need a release of cells with labels, of points, "
        "strings or codes"
    )


def _heading(release: Any) -> str:
    name = str(release.mechanism).partition("(")[0][:40]
    deviations = np.atleast_1d(release.deviations())
    deviations = deviations[np.isfinite(deviations)]
    if not len(deviations):
        return f"{release.privacy} · {name}"
    what = "noise and sampling" if getattr(release.estimate, "tau", 0) else "noise"
    return f"{release.privacy} · {name} · {what} ± {format_number(np.median(deviations))}"


def _blocks(n: int, most: int) -> np.ndarray:
    """Divide `n` codes into at most `most` blocks of equal size, which is a round number. Return the first
    code of each block, and finally `n`.
    """
    return np.append(np.arange(0, n, _round_step(n, most)), n)


def _round_step(n: int, most: int) -> int:
    """Return the smallest block size among 1, 2, 5, 10, 20 and so on for which at most `most` blocks cover
    `n` codes.
    """
    steps = (factor * 10**power for power in count() for factor in (1, 2, 5))
    return next(step for step in steps if n <= step * most)


def _block_answers(release: Any, domain: Domain, edges: list[np.ndarray]) -> Any:
    """Return the released count in each combination of blocks (groups of neighbouring codes). The errors from
    noise and from absent cells are included.
    """
    sets = []
    for n, ends in zip(domain.shape, edges, strict=True):
        runs = [[(int(lo), int(hi))] for lo, hi in zip(ends, ends[1:], strict=False)]
        sets.append(CodeSets.of(n, runs))
    shape = [len(ends) - 1 for ends in edges]
    which = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1) + 1
    try:
        return release.answer(Selections(domain.attributes, tuple(sets), which), error=True)
    except ValueError as e:  # it holds only what was asked
        raise _no_picture(release.estimate) from e


def _map(release: Any, domain: Domain) -> Figure:
    """Draw counts over two attributes, with the first on the vertical and the second on the horizontal
    axis.
    """
    rows, columns = (_blocks(n, _BLOCKS) for n in domain.shape)
    answers = _block_answers(release, domain, [rows, columns])
    i, j = np.unravel_index(np.arange(len(answers.values)), (len(rows) - 1, len(columns) - 1))
    frame = pd.DataFrame(
        {
            "x0": columns[j],
            "x1": columns[j + 1],
            "y0": rows[i],
            "y1": rows[i + 1],
            "value": answers.values,
            "metric": "Count",
        }
    )
    noise = np.nan_to_num(answers.noise)
    stands_out = (answers.values > 2 * noise) & (answers.values > 0)
    is_absent = (answers.values == 0) & (answers.absent_cells > 0)
    is_noise = ~stands_out & ~is_absent
    blank = "nothing released" if is_absent.any() else ""
    tall = min(3.6, max(1.4, 0.16 * (len(rows) - 1)))
    fig, ax = _boxes(frame, stands_out, is_noise, _WITHIN, tall + 0.8, blank)
    ax.set(xlim=(0, domain.shape[1]), ylim=(domain.shape[0], 0))
    _name_ticks(ax, "y", domain, 0, rows)
    _name_ticks(ax, "x", domain, 1, columns)
    return fig


def _boxes(
    frame: pd.DataFrame,
    stands_out: Any,
    is_noise: Any,
    noise: str,
    height: float,
    blank: str = "",
) -> tuple[Figure, Axes]:
    """Draw boxes: coloured by their values if these exceed the noise, and grey otherwise."""
    fig, (ax,) = panels(1, 1, height=height)
    if stands_out.any():
        limits = color_limits(frame[stands_out])
        cells(frame[stands_out], ax, limits)
        name_shades([ax], limits, metric_name(frame), shrink=0.8, aspect=30)
        ticks = np.geomspace(*limits, 3)
        fig.axes[-1].set_xticks(ticks, [format_number(x) for x in ticks])
        fig.axes[-1].set_xticks([], minor=True)
    for x0, y0, x1, y1 in frame.loc[is_noise, ["x0", "y0", "x1", "y1"]].to_numpy():
        box = mpl.patches.Rectangle((x0, y0), x1 - x0, y1 - y0, color=_NOISE, linewidth=0.2)
        ax.add_patch(box)
    ax.grid(False)
    named = {noise: _NOISE} if is_noise.any() else {}
    handles = [
        mpl.patches.Patch(facecolor=color, edgecolor="0.6", linewidth=0.5, label=label)
        for label, color in (named | ({blank: "white"} if blank else {})).items()
    ]
    if handles:
        fig.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
    return fig, ax


def _adaptive(release: Any) -> Figure:
    """Draw boxes of points by their density, or for other hierarchies the largest nodes."""
    estimate = release.estimate
    nodes = estimate.nodes()
    if not len(nodes):
        return _bars([], np.zeros(0), np.zeros(0), [])
    deviation = np.nan if estimate.law is None else np.sqrt(estimate.law.variance)
    noise = np.full(len(nodes), deviation)
    is_boxes = isinstance(estimate.hierarchy, Quadtree)
    if not is_boxes or len(estimate.hierarchy.attributes) > 2:
        order = np.argsort(-nodes.noisy.to_numpy(), kind="stable")[:_BARS]
        attributes = [
            name for name in nodes.columns if name not in ("level", "noisy", "complete")
        ]
        rows = nodes.iloc[order]
        names = [" · ".join(map(_short, x)) for x in rows[attributes].itertuples(index=False)]
        if "complete" in rows:  # else the beginning of several strings
            names = [
                x if whole else f"{x}…" for x, whole in zip(names, rows.complete, strict=True)
            ]
        kind = "boxes" if is_boxes else "nodes"
        chosen = chosen_in_words(len(order), len(nodes), kind)
        return _bars(names, nodes.noisy.to_numpy()[order], noise[order], attributes, chosen)
    x, *y = estimate.hierarchy.attributes
    frame = pd.DataFrame(
        {"x0": nodes[f"{x}_from"], "x1": nodes[f"{x}_to"], "metric": "density"}
    )
    frame["y0"], frame["y1"] = (
        (nodes[f"{y[0]}_{end}"] for end in ("from", "to")) if y else (0, 1)
    )
    frame["value"] = nodes.noisy / ((frame.x1 - frame.x0) * (frame.y1 - frame.y0))
    stands_out = (nodes.noisy > 2 * np.nan_to_num(noise)) & (nodes.noisy > 0)
    is_known = np.isfinite(noise).all()
    within = _WITHIN if is_known else "0 or less, with its noise"
    fig, ax = _boxes(frame, stands_out, ~stands_out, within, 3.6 if y else 1.6)
    if stands_out.any():
        unit = "area" if y else _short(x)
        fig.axes[-1].set_xlabel(f"count per unit of {unit}")
    ax.set(xlim=(frame.x0.min(), frame.x1.max()), ylim=(frame.y0.min(), frame.y1.max()))
    ax.set(xlabel=_short(x), ylabel=_short(y[0]) if y else "")
    if not y:
        ax.set_yticks([])
    return fig


def _series(release: Any, domain: Domain) -> Figure:
    """Draw counts along one attribute, in the order of its labels."""
    edges = _blocks(domain.shape[0], _STEPS)
    answers = _block_answers(release, domain, [edges])
    fig, (ax,) = panels(1, 1, height=2.1)
    noise = np.nan_to_num(2 * answers.noise)
    values = answers.values
    name = _short(domain.attributes[0])
    label = "count" if edges[1] == 1 else f"count of {edges[1]:,} values of {name}"
    ax.stairs(values, edges, color=_COLOR, linewidth=1, baseline=None, label=label)
    low, high = values - noise, values + noise
    most = high + np.nan_to_num(answers.absent)
    for bottom, top, color, alpha, words in (
        (low, high, _COLOR, 0.25, "± 2 deviations of noise"),
        (high, most, _ABSENT, 0.3, "absent cells, at most"),
    ):
        if (top > bottom).any():
            band = dict(color=color, alpha=alpha, linewidth=0, zorder=0.8)
            ax.stairs(top, edges, baseline=bottom, fill=True, label=words, **band)
    name_axis(ax, "y", "Count", False)
    least = min(0.0, float(low.min()))
    span = max(float(high.max()) - least, 1.0)
    ax.set(xlim=(0, domain.shape[0]), ylim=(least - 0.03 * span, least + 1.15 * span))
    _name_ticks(ax, "x", domain, 0, edges)
    return legend(fig)


def _largest(release: Any, domain: Domain) -> Figure:
    """Draw the largest cells, with the first on top. A table of one attribute shows all cells in the
    order of its labels.
    """
    chosen = ""
    if len(domain.shape) == 1:
        answers = _block_answers(release, domain, [_blocks(domain.shape[0], domain.shape[0])])
        counts = answers.values
        noise = answers.noise
        names = [_short(x) for x in domain.decode(domain.attributes[0], np.arange(len(counts)))]
    else:
        try:
            labels, counts, noise = release.largest(_BARS)
        except ValueError as e:
            raise _no_picture(release.estimate) from e
        names = [" · ".join(map(_short, row)) for row in labels.itertuples(index=False)]
        chosen = release.chosen_by_counts(len(names))
    return _bars(names, counts, noise, domain.attributes, chosen)


def _bars(
    names: list[str],
    counts: np.ndarray,
    noise: Any,
    attributes: Sequence[str],
    chosen: str = "",
) -> Figure:
    """Draw one bar per cell. If the text `chosen` says that the cells were chosen by their noisy counts, it is
    the title, and there are no error bars.
    """
    width = PAGE_WIDTH if max(map(len, names), default=0) > _NAME else COLUMN_WIDTH
    names = [fill(name, int(_NAME * width / COLUMN_WIDTH)) for name in names]
    lines = sum(name.count("\n") + 1 for name in names)
    fig, (ax,) = panels(1, 1, width=width, height=0.6 + 0.16 * max(lines, 4))
    if not names:
        ax.text(0.5, 0.5, "nothing was released", transform=ax.transAxes, ha="center")
        ax.set(xticks=[], yticks=[])
        return fig
    places = np.arange(len(names))
    ax.barh(places, counts, height=0.62, color=_COLOR, label="count")
    fig.suptitle(chosen)
    if np.isfinite(noise).any() and not chosen:
        ax.errorbar(
            counts, places, xerr=2 * np.nan_to_num(noise), linestyle="none", color="black",
            elinewidth=0.9, capsize=2, label="± 2 deviations of noise",
        )  # fmt: skip
    ax.set_yticks(places, names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(False, axis="y")
    ax.set_title(" · ".join(map(_short, attributes)), loc="left")  # too long beside the axis
    name_axis(ax, "x", "Count", False)
    return legend(fig)


def _name_ticks(ax: Axes, which: str, domain: Domain, axis: int, edges: np.ndarray) -> None:
    """Label some blocks with the label of their first code. For a block of one code, the label is in
    its middle.
    """
    name = domain.attributes[axis]
    count = len(edges) - 1
    most = _TICKS if which == "x" else 2 * _TICKS
    chosen = np.arange(0, count, _round_step(count, most))
    texts = [_short(x) for x in domain.decode(name, edges[chosen])]
    single = edges[1] - edges[0] == 1
    places = edges[chosen] + (0.5 if single else 0)
    turned: dict[str, Any] = {}
    if which == "x" and sum(map(len, texts)) > 40:
        turned = dict(rotation=45, ha="right", rotation_mode="anchor")
    getattr(ax, f"set_{which}ticks")(places, texts, **turned)
    ax.set(**{f"{which}label": _short(name)})


def _short(x: Any) -> str:
    """Return a short form of a label, without characters that start mathematics or break the line."""
    text = "".join(c if c.isprintable() else " " for c in cell(x)).replace("$", r"\$")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
