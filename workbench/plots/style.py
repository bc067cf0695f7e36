"""How plots look: sizes, fonts, and what is drawn how; on the page that they are drawn for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from math import isfinite, sqrt
from typing import Any, ParamSpec, TypeVar

from workbench.libraries import mpl

COLUMN_WIDTH = 3.4  # inches: one column of a paper
PAGE_WIDTH = 7.0  # and both
WIDTHS = {
    "column": COLUMN_WIDTH,
    "page": PAGE_WIDTH,
    "slide": 5.5,
}  # a slide is Beamer's, of 16:9
FONTS = {  # of each kind all come with matplotlib, so that every machine draws the same
    "sans": ("DejaVu Sans", "sans-serif"),
    "serif": ("STIXGeneral", "DejaVu Serif", "DejaVu Sans", "serif"),
}

RC_PARAMS = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "figure.constrained_layout.use": True,
    "figure.dpi": 150,
    "pdf.fonttype": 42,
}

COLORMAP = "cividis_r"  # of cells

MAX_MARKERS = 60  # points of a curve, from which marks would hide it

THEORY_DASHES = ((5, 2), (1.5, 1.5), (8, 2, 1.5, 2), (3, 4))

_NARROW = 1.65  # inches that a panel needs
LOW = 1.4  # inches of height
_CM = 2.54

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Page:
    """What figures are drawn for: a width and a height in inches, None where figures have their own."""

    width: float | None = None
    height: float = 8.2
    font: str = "sans"

    @property
    def narrow(self) -> bool:
        """Whether a legend beside panels leaves room for one of them a line."""
        return self.width is not None and self.width < PAGE_WIDTH / 1.5

    def arrange(
        self, lines: int, columns: int, width: float, height: float
    ) -> tuple[int, int, float, float]:
        """Lines and columns of panels, the figure's width, and a panel's height.

        On a page that is narrower than the figure's own fewer panels stand side by side, on a slide as
        many as have room; heights follow widths, as far as all of them stay on the page.
        """
        if self.width is None:
            return lines, columns, width, height
        count = lines * columns
        side_by_side = max(1, min(columns, int(self.width / _NARROW)))
        most = min(count, int(self.width / _NARROW)) if self.height < Page.height else 0
        while side_by_side < most and -(-count // side_by_side) * LOW > self.height:
            side_by_side += 1
        under = -(-count // side_by_side)
        wider = (self.width / side_by_side) / (width / columns)
        height = min(height * min(sqrt(wider), 1.3), self.height / under - 0.1)
        return under, side_by_side, self.width, max(height, LOW)


_page: ContextVar[Page] = ContextVar("page", default=Page())  # noqa: B039 (frozen)


@contextmanager
def on_page(width: str | float, font: str = "sans") -> Iterator[None]:
    """Have figures drawn inside the block for a page.

    Parameters
    ----------
    width : str or float
        "column", "page", "slide", or a number of centimetres.
    font : str
        "sans" or "serif".

    Raises
    ------
    ValueError
        If there is no such width or font.
    """
    if font not in FONTS:
        raise ValueError(f"font = {font!r} is not allowed: need one of {', '.join(FONTS)}")
    height = 2.9 if width == "slide" else Page.height
    token = _page.set(Page(_inches(width), height, font))
    try:
        yield
    finally:
        _page.reset(token)


def _inches(width: str | float) -> float:
    if width in WIDTHS:
        return WIDTHS[width]
    try:
        inches = float(width) / _CM
    except ValueError:
        inches = 0
    if not (isfinite(inches) and 4 <= inches * _CM <= 60):
        raise ValueError(
            f"width = {str(width)!r} is not allowed: need {', '.join(WIDTHS)}, or a number of "
            "centimetres from 4 to 60"
        )
    return inches


def page() -> Page:
    """What figures are drawn for just now."""
    return _page.get()


def rc_params() -> dict[str, Any]:
    """How figures are drawn just now, in matplotlib's words."""
    font = page().font
    math = "stix" if font == "serif" else "dejavusans"
    legend = {"legend.fontsize": 6.5} if page().narrow else {}
    return RC_PARAMS | legend | {"font.family": [*FONTS[font]], "mathtext.fontset": math}


def with_style(draw: Callable[P, R]) -> Callable[P, R]:
    """A function that draws, in our style."""

    @wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> R:
        with mpl.rc_context(rc_params()):
            return draw(*args, **kwargs)

    return styled
