"""Rules that compute the label of a row: from a list, from a map, from bins of numbers, or from several
columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import isfinite, prod
from typing import Any

import numpy as np

from workbench.compiled import pl
from workbench.spaces.rules import (
    MAX_LABELS,
    OTHERWISE,
    Rule,
    Texts,
    canonical,
    check_texts,
    is_list,
    is_text,
    only,
    places_in_range,
    some,
)
from workbench.value import Float, not_allowed, parameter, shown, value

# Labels


def of_one_kind(labels: Sequence[Any]) -> tuple[Any, ...]:
    """Return labels as Python values. Raise a ValueError if the labels are not all of one type, for example all
    text.
    """
    labels = tuple(label.item() if hasattr(label, "item") else label for label in labels)
    kinds = {type(label) for label in labels}
    allowed = len(kinds) <= 1 and kinds <= {str, int, float, bool}
    no_number = kinds == {float} and not all(map(isfinite, labels))
    if not allowed or no_number or (kinds == {int} and max(map(abs, labels)) >= 2**63):
        raise ValueError(
            "labels must be all text, all integers (64 bits), all finite numbers, or all true or "
            "false"
        )
    if kinds == {str}:
        "".join(
            labels
        ).encode()  # a ValueError for half of a surrogate pair, which no file can hold
    return labels


@value
class Labels(Rule):
    """Rule for a column that already contains the labels (names of values) of an attribute. You give a public
    list of the allowed labels.

    Different spellings of a number are the same label, for example 3, 3.0, "3" and "3.00".

    Parameters
    ----------
    labels : sequence or range
        List of the labels (all of them text, integers, floats or booleans), or a range of integers. A text
        counts as a number if it is a decimal without a plus sign or leading zeros. So "007" is not the number
        7.
    """

    labels: tuple[Any, ...] | range = parameter(check=is_list)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.labels, range):
            object.__setattr__(self, "labels", of_one_kind(self.labels))
            _ = self._texts  # refuses labels that differ only in their spelling

    @property
    def need(self) -> str:
        """Text for an error message that says which labels are allowed."""
        labels = self.labels
        if not isinstance(labels, range):
            return f"a value of the domain ({some(labels)})"
        steps = f" in steps of {labels.step}" if labels.step != 1 else ""
        return f"an integer from {labels[0]} to {labels[-1]}{steps}"

    @cached_property
    def _texts(self) -> Texts:
        texts = {str(label): place for place, label in enumerate(self.labels)}
        if self.labels and isinstance(self.labels[0], bool):
            texts |= {text.lower(): place for text, place in texts.items()}
        return Texts(texts)

    def places(self, values: pl.Series) -> pl.Series:
        """Return the position of each value in the list of labels, counted from 0. The position is null if
        the value is not in the list.
        """
        if isinstance(self.labels, range):
            return places_in_range(values, self.labels)
        return super().places(values)


@value
class Map(Rule):
    """Rule that looks up the label of each value in a column of a table. You give a public map from values to
    labels (names). Several values may have the same label.

    Parameters
    ----------
    map : mapping, or pairs of value and label
        Label of each value that may occur in the column. Different spellings of a number are the same value,
        for example "3" and "3.00".
    labels : texts, optional
        All labels, in the order that you want for the attribute. By default, the labels are in the order of
        their first occurrence in the map.

    Examples
    --------
    >>> Map({"Bern": "BE", "Thun": "BE", "Chur": "GR"}).labels
    ('BE', 'GR')
    """

    map: tuple[tuple[str, str], ...] = parameter(
        check=lambda x: None if isinstance(x, Mapping | list | tuple) and x else "need a map"
    )
    labels: tuple[str, ...] | None = parameter(None, check=is_list)

    def __post_init__(self) -> None:
        super().__post_init__()
        pairs = self.map.items() if isinstance(self.map, Mapping) else self.map
        for pair in pairs:
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise ValueError(f"Map.map must be pairs of value,label; got {shown(pair)}")
        if need := check_texts([x for pair in pairs for x in pair]):
            raise ValueError(f"Map.map: {need}")
        pairs = tuple((str(source), str(label)) for source, label in pairs)
        sources: dict[str, str] = {}
        for source, label in pairs:
            if sources.setdefault(source, label) != label:
                raise ValueError(f"Map.map gives {shown(source)} more than one label")
        targets = dict.fromkeys(sources.values())
        labels = tuple(targets) if self.labels is None else tuple(map(str, self.labels))
        if unknown := [label for label in targets if label not in set(labels)]:
            raise ValueError(f"Map.map leads to {some(unknown)}: need one of {some(labels)}")
        object.__setattr__(self, "map", tuple(sources.items()))
        object.__setattr__(self, "labels", labels)
        _ = self._texts  # refuses values that differ only in their spelling

    @property
    def need(self) -> str:
        """Text for an error message that says which values are allowed."""
        return f"a value of the map ({some([source for source, _ in self.map])})"

    @cached_property
    def _texts(self) -> Texts:
        assert self.labels is not None  # those that the map leads to, unless others were given
        places = {label: place for place, label in enumerate(self.labels)}
        return Texts({source: places[label] for source, label in self.map})


@value
class Cross(Rule):
    """Rule that combines several columns of a table into one attribute. The labels (names of values) of this
    attribute are all combinations of the labels of the columns.

    You give one rule per column. Each rule contains the name of its column, and determines what happens to
    missing values and to values without a label. So the combined rule has no settings for such values.

    The combinations are in the order of a nested loop, with the last column in the innermost loop.

    Parameters
    ----------
    cross : rules
        Two or more rules, one per column. A rule in this list may not be a `Cross` itself.
    separator : str
        Text between the labels in a combination. Default " / ".

    Examples
    --------
    >>> sex = Labels(("F", "M"), column="sex")
    >>> Cross((sex, Labels(range(2), column="car"))).labels
    ('F / 0', 'F / 1', 'M / 0', 'M / 1')
    """

    cross: tuple[Rule, ...] = parameter(check=is_list)
    separator: str = parameter(" / ", check=is_text)
    labels: tuple[str, ...] | None = parameter(None, check=is_list)

    def __post_init__(self) -> None:
        super().__post_init__()
        rules = tuple(self.cross)
        good = len(rules) > 1 and all(isinstance(rule, Rule) for rule in rules)
        if not good or any(isinstance(rule, Cross) or rule.column is None for rule in rules):
            raise ValueError("Cross.cross must be two rules or more, each with its column")
        stated = {f.name for f in fields(Rule) if getattr(self, f.name) != f.default}
        if stated:
            raise not_allowed(self, min(stated), "each of the crossed rules says it for itself")
        size = prod(len(rule.all_labels) for rule in rules)
        if size > MAX_LABELS:
            raise ValueError(
                f"Cross.cross makes {size} labels, at most {MAX_LABELS} are possible: make "
                "each an attribute"
            )
        rows = product(*(rule.all_labels for rule in rules))
        object.__setattr__(self, "cross", rules)
        usual = tuple(self.separator.join(map(str, row)) for row in rows)
        self._name(usual, self.labels and map(str, self.labels))

    @property
    def leaves(self) -> tuple[Rule, ...]:
        """Rules of the single columns, whose labels are combined."""
        return self.cross


@value
class Unlisted(Rule):
    """Rule for a column of texts without a public list of values, for example search terms. Every text
    stays private unless a mechanism selects it for publication.

    Different spellings of a number are the same value, for example "3.00" and 3.
    """

    labels: str = parameter("unlisted", choices=("unlisted",))

    @property
    def all_labels(self) -> Any:
        """Raise a ValueError, because this attribute has no list of labels."""
        raise ValueError(
            "nobody has listed these values, so that there are no cells. GeometricSelection and "
            "WeightedSelection release them, from a domain file with this one attribute"
        )

    def texts(self, values: pl.Series) -> pl.Series:
        """Return each value as text in a standard spelling, for example 3 for "3.00". A missing value becomes
        the label for missing values, or null if the rule has no such label.
        """
        missing = values.is_null()
        if values.dtype.is_float():
            missing |= values.is_nan().fill_null(True)
        missing |= self._missing_texts.have(values)
        texts = values.cast(pl.String)
        if values.dtype == pl.Boolean:
            texts = texts.str.to_titlecase()
        others = texts.filter(texts.str.contains(OTHERWISE).fill_null(False)).unique()
        texts = texts.replace(others, [canonical(x) for x in others])
        return texts.set(missing, self.missing_label if self.missing == "label" else None)


# Bins

_LARGEST = 1e300
_ENDS = ("other", "clamp")


@value
class Bins(Rule):
    """Rule that sorts the numbers in a column of a table into bins. Give all edges of the bins, or give `low`
    and `high` together with `width` or `bins`.

    Edges are computed in exact decimals. For example, low=0, high=1 and width=0.1 give the edges 0, 0.1, 0.2,
    0.3, and so on.

    Parameters
    ----------
    edges : numbers, optional
        All edges in ascending order. For n bins, give n + 1 edges.
    low, high : number
        First and last edge, if the bins have equal width.
    width : number
        Width of each bin. The distance from `low` to `high` must be a multiple of the width.
    bins : int
        Number of bins of equal width between `low` and `high`.
    closed : "left" or "right"
        Side on which a bin contains its edge. With "left", a bin from 0 to 10 contains 0 and not 10. With
        "right", the same bin contains 10 and not 0. Default "left".
    below, above : "other" or "clamp"
        Treatment of numbers below the first bin and above the last bin. With "clamp", such a number is put into
        the first or last bin. With "other", such a number has no label, and the parameter `other` determines
        what happens to the row. Default "other".
    labels : texts, optional
        One label per bin. By default, a label names the edges, for example "0 to under 10".

    Raises
    ------
    ValueError
        If an edge is infinite, or if the edges do not ascend. The error is also raised if you give both `edges`
        and other settings of the bins, or if there are more than a million bins.

    Examples
    --------
    >>> Bins(low=0, high=100, width=50, above="clamp").labels
    ('0 to under 50', '50 or more')
    >>> Bins((0, 18, 65), closed="right").labels
    ('over 0 to 18', 'over 18 to 65')
    """

    edges: tuple[float, ...] | None = parameter(None, check=is_list)
    low: float | None = parameter(None, -_LARGEST, _LARGEST)
    high: float | None = parameter(None, -_LARGEST, _LARGEST)
    width: float | None = parameter(None, 0, _LARGEST, strict=True)
    bins: int | None = parameter(None, 1, MAX_LABELS, integer=True)
    closed: str = parameter("left", choices=("left", "right"))
    below: str = parameter("other", choices=_ENDS)
    above: str = parameter("other", choices=_ENDS)
    labels: tuple[str, ...] | None = parameter(None, check=is_list)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.edges is not None:
            object.__setattr__(self, "edges", tuple(self.edges))
        self._name(self._usual_labels(), self.labels and map(str, self.labels))

    @cached_property
    def _edges(self) -> Float[np.ndarray, " edges"]:
        ends = sum(x is not None for x in (self.low, self.high))
        steps = sum(x is not None for x in (self.width, self.bins))
        if (ends, steps) != ((2, 1) if self.edges is None else (0, 0)):
            raise ValueError("Bins needs edges alone, or low and high with width or bins")
        if self.edges is None:
            edges = self._even_edges()
        else:
            kinds = {type(x) for x in self.edges}
            if not kinds <= {int, float} or not all(abs(x) <= _LARGEST for x in self.edges):
                raise ValueError("Bins.edges must be finite numbers")
            edges = np.array(self.edges, float)
        falls = np.flatnonzero(np.diff(edges) <= 0)[:1]
        at = " and ".join(f"{x:.17g}" for i in falls for x in edges[i : i + 2])
        if len(edges) < 2 or at:
            raise ValueError(f"Bins.edges must be at least two, in ascending order: {at}")
        return edges

    def _even_edges(self) -> Float[np.ndarray, " edges"]:
        """Return the edges of bins of equal width. They are computed with fractions, so 0.1 is exactly one
        tenth.
        """
        low = Fraction(repr(self.low))
        length = Fraction(repr(self.high)) - low
        n = self.bins or length / Fraction(repr(self.width))
        if n != int(n):
            need = f"need a width that divides {self.low} … {self.high} into whole bins"
            raise not_allowed(self, "width", need)
        if n > MAX_LABELS:
            raise not_allowed(self, "width", f"it makes more than {MAX_LABELS} bins")
        return np.array([float(low + length * i / n) for i in range(int(n) + 1)])

    def _usual_labels(self) -> tuple[str, ...]:
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
        return tuple(labels)

    @property
    def need(self) -> str:
        """Text for an error message that says which numbers are allowed."""
        left = self.closed == "left"
        low = f"{'from' if left else 'over'} {self._edges[0]:.17g}"
        high = f"{'under' if left else 'at most'} {self._edges[-1]:.17g}"
        limits = [low] * (self.below == "other") + [high] * (self.above == "other")
        return " ".join(["a number", " and ".join(limits)]).strip()

    def places(self, values: pl.Series) -> pl.Series:
        """Return the number of the bin that contains each value, counted from 0. The result is null if no bin
        contains the value.

        Infinity is treated as a number above the last bin. A text that is not a number is in no bin.
        """
        if values.dtype not in (pl.String, pl.Null) and not values.dtype.is_numeric():
            raise ValueError(
                f"column {shown(values.name)} holds {values.dtype}: bins need numbers"
            )
        x = values.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        edges = self._edges
        left = self.closed == "left"
        places = np.searchsorted(edges[1:-1], x, side="right" if left else "left")
        outside = np.isnan(x)
        if self.below == "other":
            outside |= x < edges[0] if left else x <= edges[0]
        if self.above == "other":
            outside |= x >= edges[-1] if left else x > edges[-1]
        return only(pl.Series(places), pl.Series(~outside))
