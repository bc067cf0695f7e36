"""Numbers to bins whose edges are stated."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from workbench.arrays import Float, Int
from workbench.libraries import pl
from workbench.preparation.matching import MISSING, OUTSIDE
from workbench.preparation.rule import MAX_LABELS, Rule, is_list
from workbench.value import not_allowed, parameter, shown, value

_LARGEST = 1e300
_ENDS = ("other", "clamp")


def _edge(doc: str) -> Any:
    return parameter(None, -_LARGEST, _LARGEST, doc=doc)


@value
class Bins(Rule):
    """Bins of numbers, by all edges, or from `low` to `high` by width or number.

    Edges are exact: those of low=0, high=1, width=0.1 are 0, 0.1, 0.2, 0.3, … as they are written.

    Parameters
    ----------
    edges : numbers, optional
        Ascending, one more than bins. In its place:
    low, high : number
        The first and the last edge, with
    width : number
        of each bin, a whole number of times from low to high, or
    bins : int
        how many of equal width.
    closed : "left" or "right"
        Which edge belongs to a bin: [0, 10) or (0, 10].
    below, above : "other" or "clamp"
        Numbers before the first and after the last bin are what `other` says, or belong to that bin.
    labels : texts, optional
        One a bin; without them "0 to under 10", "over 0 to 10" and the like.

    Raises
    ------
    ValueError
        Edges that do not ascend, are not finite or not stated in one way; more than a million bins.

    Examples
    --------
    >>> Bins(low=0, high=100, width=50, above="clamp").labels
    ('0 to under 50', '50 or more')
    >>> Bins((0, 18, 65), closed="right").labels
    ('over 0 to 18', 'over 18 to 65')
    """

    edges: tuple[float, ...] | None = parameter(None, check=is_list, doc="of all bins")
    low: float | None = _edge("the first edge")
    high: float | None = _edge("the last edge")
    width: float | None = parameter(None, 0, _LARGEST, strict=True, doc="of each bin")
    bins: int | None = parameter(None, 1, MAX_LABELS, integer=True, doc="how many")
    closed: str = parameter("left", choices=("left", "right"), doc="edge that is in the bin")
    below: str = parameter("other", choices=_ENDS, doc="what numbers before the first bin are")
    above: str = parameter("other", choices=_ENDS, doc="what numbers after the last bin are")
    labels: tuple[str, ...] | None = parameter(None, check=is_list, doc="one a bin")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.edges is not None:
            object.__setattr__(self, "edges", tuple(self.edges))
        n = len(self._edges) - 1
        labels = tuple(map(str, self.labels or self._default_labels()))
        object.__setattr__(self, "labels", labels)
        if len(labels) != n:
            raise not_allowed(self, "labels", f"need {n}, one a bin")

    @cached_property
    def _edges(self) -> Float[np.ndarray, " edges"]:
        stated = [getattr(self, name) is not None for name in ("low", "high", "width", "bins")]
        if self.edges is not None:
            if any(stated):
                raise not_allowed(self, "edges", "need edges, or low and high: not both")
            kinds = {type(x) for x in self.edges}
            if not kinds <= {int, float} or not all(abs(x) <= _LARGEST for x in self.edges):
                raise ValueError("Bins.edges must be finite numbers")
            edges = np.array(self.edges, float)
        elif stated[:2] != [True, True] or stated[2] == stated[3]:
            raise ValueError("Bins needs edges, or low and high with width or bins")
        else:
            edges = self._even_edges()
        falls = np.flatnonzero(edges[1:] <= edges[:-1])
        if len(edges) < 2 or len(falls):
            at = (
                f": {edges[falls[0]]:.17g} and {edges[falls[0] + 1]:.17g}" if len(falls) else ""
            )
            raise ValueError(f"Bins.edges must be at least two, in ascending order{at}")
        return edges

    def _even_edges(self) -> Float[np.ndarray, " edges"]:
        """Numbers are taken as they are written: 0.1 is a tenth."""
        low = Fraction(repr(self.low))
        length = Fraction(repr(self.high)) - low
        if length <= 0:
            raise not_allowed(self, "high", f"need a number above low = {self.low}")
        n = self.bins or length / Fraction(repr(self.width))
        if n != int(n):
            need = f"need a width that divides {self.low} … {self.high} into whole bins"
            raise not_allowed(self, "width", need)
        if n > MAX_LABELS:
            raise not_allowed(self, "width", f"it makes more than {MAX_LABELS} bins")
        return np.array([float(low + length * i / n) for i in range(int(n) + 1)])

    def _default_labels(self) -> list[str]:
        edges = [repr(x).removesuffix(".0") for x in self._edges.tolist()]
        pairs = zip(edges[:-1], edges[1:], strict=True)
        left = self.closed == "left"
        labels = [f"{a} to under {b}" if left else f"over {a} to {b}" for a, b in pairs]
        if self.below == "clamp":
            labels[0] = f"under {edges[1]}" if left else f"{edges[1]} or less"
        if self.above == "clamp":
            labels[-1] = f"{edges[-2]} or more" if left else f"over {edges[-2]}"
        if len(labels) == 1 and self.below == self.above == "clamp":
            labels = ["any number"]
        return labels

    @property
    def needs_numbers(self) -> bool:
        """Bins are of numbers."""
        return True

    @property
    def need(self) -> str:
        """The interval of numbers."""
        left = self.closed == "left"
        low = f"{'from' if left else 'over'} {self._edges[0]:.17g}"
        high = f"{'under' if left else 'at most'} {self._edges[-1]:.17g}"
        limits = [low] * (self.below == "other") + [high] * (self.above == "other")
        return " ".join(["a number", " and ".join(limits)]).strip()

    def places(self, values: pl.Series) -> Int[np.ndarray, " rows"]:
        """Places of bins; text that is no number is outside, and infinity is beyond all bins."""
        is_text = values.dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null)
        if not is_text and not values.dtype.is_numeric():
            raise ValueError(
                f"column {shown(values.name)} holds {values.dtype}: bins need numbers"
            )
        numbers = values.cast(pl.String) if is_text else values
        x = numbers.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        no_number = np.isnan(x)
        side: Literal["left", "right"] = "right" if self.closed == "left" else "left"
        places = np.searchsorted(self._edges, x, side=side) - 1
        n = len(self._edges) - 1
        ends = {"other": (OUTSIDE, OUTSIDE), "clamp": (0, n - 1)}
        is_above = places >= n
        if places.size and places.min() < 0:
            places[places < 0] = ends[self.below][0]
        places[is_above] = ends[self.above][1]
        if no_number.any():
            places[no_number] = OUTSIDE if is_text else MISSING
            places[values.is_null().to_numpy()] = MISSING
        return places
