"""Where the parts of a figure stand: decided once, since a layout takes longer than a drawing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from workbench.libraries import mpl
from workbench.plots.style import page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
