"""Where the parts of a figure stand: decided once, since a layout takes longer than a drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def lay_out(fig: Figure) -> None:
    """Lay a figure out and keep it so: later drawings of it move nothing.

    Whoever changes its size or labels afterwards asks for a layout again:
    `fig.set_layout_engine("constrained")`.
    """
    engine = fig.get_layout_engine()
    if engine is None:
        return
    engine.execute(fig)
    with mpl.rc_context({"figure.autolayout": False, "figure.constrained_layout.use": False}):
        fig.set_layout_engine(None)  # which would else ask them
