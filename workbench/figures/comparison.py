"""One figure at several settings, side by side: small multiples with one scale."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Template

from workbench import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{{ title }}</title><link rel="stylesheet" href="report/style.css"></head>
<body class="front"><main class="frame">
<h1>{{ title }}</h1>
<p>Panels in the same place have the same axes.</p>
<ul class="figures wide">
{% for setting, command, picture in runs %}<li class="card"><b>{{ setting }}</b><br><code>{{ command }}</code>
{% if picture %}<img class="drawing" alt="" src="data:image/png;base64,{{ picture }}">{% else %}
<p>a table; see its folder</p>{% endif %}</li>
{% endfor %}
</ul>
</main></body>
</html>
"""


def write_comparison(results: str | Path, profile: str, id: str, names: Sequence[str]) -> Path:
    """Write a page that sets runs of one figure side by side, in the style of the report.

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
    cls = figures.find_figure(id)
    drawings = [cls.at("paper", **one.manifest["parameters"]).plot(one.rows) for one in saved]
    drawn = [drawing for drawing in drawings if drawing is not None]
    if len({len(drawing.axes) for drawing in drawn}) == 1:
        for axes in zip(*(drawing.axes for drawing in drawn), strict=True):
            _share_limits(axes)
    runs = [
        (
            figures.describe(one.manifest["setting"]) or cls.usual,
            one.manifest["command"],
            _image(drawing) if drawing is not None else "",
        )
        for one, drawing in zip(saved, drawings, strict=True)
    ]
    text = Template(_PAGE, autoescape=True).render(title=f"{id}: {cls.title}", runs=runs)
    page = figures.figure_folder(results, profile, id).parent / f"{id},compared.html"
    figures.write_atomically(page, lambda draft: draft.write_text(text, encoding="utf-8"))
    return page


def _share_limits(axes: Sequence[Axes]) -> None:
    """Give panels the widest limits of all."""
    for which in "xy":
        limits = [sorted(getattr(ax, f"get_{which}lim")()) for ax in axes]
        ends = (min(low for low, _ in limits), max(high for _, high in limits))
        for ax in axes:
            turned = getattr(ax, f"{which}axis_inverted")()
            getattr(ax, f"set_{which}lim")(ends[::-1] if turned else ends)


def _image(drawing: Drawing) -> str:
    from workbench.figures import plots

    file = BytesIO()
    drawing.savefig(file, format="png", dpi=150)
    plots.close(drawing)
    return base64.b64encode(file.getvalue()).decode()
