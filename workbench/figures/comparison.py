"""One figure at several settings, side by side: small multiples with one scale."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from workbench import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ margin: 0 auto; padding: 1.5rem; max-width: 110rem; font: 16px/1.5 system-ui, sans-serif; }}
main {{ display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fill, minmax(min(34rem, 100%), 1fr)); }}
figure {{ margin: 0; padding: .8rem; background: #fff; color: #1c2024; border: 1px solid #d5dae0; }}
img {{ display: block; width: 100%; height: auto; }}
figcaption {{ font-weight: 600; }}
code {{ font-size: .85em; overflow-wrap: anywhere; font-weight: 400; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{sentence}</p>
<main>
"""
_FIGURE = """<figure>
<figcaption>{caption}<br><code>{command}</code></figcaption>
{picture}
</figure>
"""


def write_comparison(results: str | Path, profile: str, id: str, names: Sequence[str]) -> Path:
    """Write a page that sets runs of one figure side by side.

    Parameters
    ----------
    results : path
        The folder of all results.
    profile : str
        "quick" or "paper".
    id : str
        The figure's.
    names : sequence of str
        The runs' folders, in the order in which they are shown; those that did not finish are left out.

    Returns
    -------
    Path
        The page, beside the folders.
    """
    folders = [figures.figure_folder(results, profile, name) for name in names]
    saved = [figures.load(f) for f in folders if (f / "manifest.json").exists()]
    page = figures.figure_folder(results, profile, id).parent / f"{id},compared.html"
    title = f"{id}: {saved[0].manifest['title']}" if saved else id
    sentence = "Panels in the same place have the same axes."
    text = _HEAD.format(title=escape(title), sentence=sentence)
    for figure, picture in zip(saved, _pictures(id, saved), strict=True):
        caption = figures.describe(figure.manifest["setting"])
        text += _FIGURE.format(
            caption=escape(caption or figures.find_figure(id).usual),
            command=escape(figure.manifest["command"]),
            picture=picture,
        )
    text += "</main>\n</body>\n</html>\n"
    figures.write_atomically(page, lambda draft: draft.write_text(text, encoding="utf-8"))
    return page


def _pictures(id: str, saved: Sequence[figures.SavedFigure]) -> list[str]:
    """The drawings with common limits, as images; a table where there is no drawing."""
    cls = figures.find_figure(id)
    drawings = []
    for one in saved:
        figure = cls.at("paper", **one.manifest["parameters"])
        drawings.append(figure.plot(one.rows))
    drawn = [drawing for drawing in drawings if drawing is not None]
    if drawn:
        _share_limits(drawn)
    return [_image(d) if d is not None else "<p>a table; see its folder</p>" for d in drawings]


def _share_limits(drawings: Sequence[Drawing]) -> None:
    """Give the panels in one place the widest limits of all, where the drawings have as many panels."""
    if len({len(drawing.axes) for drawing in drawings}) > 1:
        return
    for axes in zip(*(drawing.axes for drawing in drawings), strict=True):
        for ax in axes:
            ax.autoscale(False)
        _widen(axes, "x")
        _widen(axes, "y")


def _widen(axes: Sequence[Axes], which: str) -> None:
    limits = [getattr(ax, f"get_{which}lim")() for ax in axes]
    low = min(min(pair) for pair in limits)
    high = max(max(pair) for pair in limits)
    for ax, pair in zip(axes, limits, strict=True):
        ends = (low, high) if pair[0] <= pair[1] else (high, low)
        getattr(ax, f"set_{which}lim")(*ends)


def _image(drawing: Drawing) -> str:
    from workbench.figures import plots

    file = BytesIO()
    drawing.savefig(file, format="png", dpi=150)
    plots.close(drawing)
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="" src="data:image/png;base64,{data}">'
