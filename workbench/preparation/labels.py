"""Values to labels: as they are, many to one, and of two columns together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from itertools import product
from math import isfinite, prod
from typing import Any

import numpy as np

from workbench.arrays import Int
from workbench.libraries import pl
from workbench.preparation.matching import Texts, places_in_range
from workbench.preparation.rule import MAX_LABELS, Rule, is_list, is_text, some, why_no_unicode
from workbench.value import not_allowed, parameter, value


def of_one_kind(labels: Sequence[Any]) -> tuple[Any, ...]:
    """Labels as Python's own values, or a ValueError if they are not all of one kind."""
    labels = tuple(label.item() if hasattr(label, "item") else label for label in labels)
    kinds = {type(label) for label in labels}
    allowed = len(kinds) <= 1 and kinds <= {str, int, float, bool}
    no_number = kinds == {float} and not all(map(isfinite, labels))
    if not allowed or no_number or (kinds == {int} and max(map(abs, labels)) >= 2**63):
        raise ValueError(
            "labels must be all text, all whole numbers (64 bits), all finite numbers, or all true or "
            "false"
        )
    if kinds == {str}:
        if need := why_no_unicode("".join(labels)):
            raise ValueError(f"labels: {need}")
    return labels


@value
class Labels(Rule):
    """Labels that are values of the column, whatever its type: 3, 3.0, "3" and "3.00" are one label.

    Parameters
    ----------
    labels : sequence or range
        What `Domain.labels` takes. A text is a number if it is a decimal without a plus sign or leading
        zeros, so "007" is not 7.
    """

    labels: tuple[Any, ...] | range = parameter(check=is_list, doc="values of the column")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.labels, range):
            object.__setattr__(self, "labels", of_one_kind(self.labels))

    @property
    def is_plain(self) -> bool:
        """Whether it says nothing beside the labels, so that the domain's labels say it all."""
        return all(getattr(self, f.name) == f.default for f in fields(Rule))

    @property
    def needs_numbers(self) -> bool:
        """Ranges are of numbers."""
        return isinstance(self.labels, range)

    @property
    def need(self) -> str:
        """Which labels."""
        labels = self.labels
        if not isinstance(labels, range):
            return f"a value of the domain ({some(labels)})"
        steps = f" in steps of {labels.step}" if labels.step != 1 else ""
        return f"a whole number from {labels[0]} to {labels[-1]}{steps}"

    @cached_property
    def _texts(self) -> Texts:
        texts = {str(label): place for place, label in enumerate(self.labels)}
        if self.labels and isinstance(self.labels[0], bool):
            texts |= {text.lower(): place for text, place in texts.items()}
        return Texts(texts)

    def places(self, values: pl.Series) -> Int[np.ndarray, " rows"]:
        """Places of labels."""
        if not isinstance(self.labels, range):
            return self._texts.places(values)
        return places_in_range(values, self.labels)


@value
class Map(Rule):
    """Labels that a list gives to values, many to one.

    Parameters
    ----------
    map : mapping, or pairs of value and label
        Values are compared as text, as `Labels` compares them.
    labels : texts, optional
        The labels in the order of codes; without them as they first occur in the map.

    Examples
    --------
    >>> Map({"Bern": "BE", "Thun": "BE", "Chur": "GR"}).labels
    ('BE', 'GR')
    """

    map: tuple[tuple[str, str], ...] = parameter(
        check=lambda x: None if isinstance(x, Mapping | list | tuple) and x else "need a map",
        doc="from values to labels",
    )
    labels: tuple[str, ...] | None = parameter(None, check=is_list, doc="in the order of codes")

    def __post_init__(self) -> None:
        super().__post_init__()
        pairs = self.map.items() if isinstance(self.map, Mapping) else self.map
        if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
            raise ValueError("Map.map must be pairs of a value and a label")
        plain = {type(x) for pair in pairs for x in pair}
        if not plain <= {str, int}:
            raise ValueError("Map.map must lead from text, or whole numbers, to text")
        pairs = tuple((str(source), str(label)) for source, label in pairs)
        if need := why_no_unicode("".join(text for pair in pairs for text in pair)):
            raise ValueError(f"Map.map: {need}")
        sources = dict(pairs)
        if len(sources) < len(pairs):
            raise ValueError("Map.map must give one label to each value")
        targets = dict.fromkeys(sources.values())
        labels = tuple(targets) if self.labels is None else tuple(map(str, self.labels))
        if unknown := [label for label in targets if label not in set(labels)]:
            raise ValueError(f"Map.map leads to {some(unknown)}: need one of {some(labels)}")
        object.__setattr__(self, "map", pairs)
        object.__setattr__(self, "labels", labels)

    @property
    def need(self) -> str:
        """Which values."""
        return f"a value of the map ({some([source for source, _ in self.map])})"

    @cached_property
    def _texts(self) -> Texts:
        assert self.labels is not None  # those that the map leads to, unless others were given
        places = {label: place for place, label in enumerate(self.labels)}
        return Texts({source: places[label] for source, label in self.map})

    def places(self, values: pl.Series) -> Int[np.ndarray, " rows"]:
        """Places of the labels that values lead to."""
        return self._texts.places(values)


@value
class Cross(Rule):
    """All combinations of the labels of several rules as one list of labels, the last rule fastest.

    Each rule names its column and says what happens to its other and missing values.

    Parameters
    ----------
    cross : rules
        At least two, none of them crossed itself.
    separator : str
        What stands between two labels.

    Examples
    --------
    >>> sex = Labels(("F", "M"), column="sex")
    >>> Cross((sex, Labels(range(2), column="car"))).labels
    ('F / 0', 'F / 1', 'M / 0', 'M / 1')
    """

    cross: tuple[Rule, ...] = parameter(check=is_list, doc="rules, each of one column")
    separator: str = parameter(" / ", check=is_text, doc="between two labels")
    labels: tuple[str, ...] | None = parameter(None, check=is_list, doc="of all combinations")

    def __post_init__(self) -> None:
        super().__post_init__()
        rules = tuple(self.cross)
        good = len(rules) > 1 and all(isinstance(rule, Rule) for rule in rules)
        if not good or any(isinstance(rule, Cross) or rule.column is None for rule in rules):
            raise ValueError("Cross.cross must be two rules or more, each with its column")
        stated = {f.name for f in fields(Rule) if getattr(self, f.name) != f.default}
        if stated:
            raise not_allowed(self, min(stated), "each of the crossed rules says it for itself")
        if self.size > MAX_LABELS:
            raise ValueError(
                f"Cross.cross makes {self.size} labels, at most {MAX_LABELS} are possible: make "
                "each an attribute"
            )
        rows = product(*(rule.all_labels for rule in rules))
        default = tuple(self.separator.join(map(str, row)) for row in rows)
        labels = tuple(map(str, self.labels or default))
        if len(labels) != len(default):
            raise not_allowed(self, "labels", f"need {len(default)}, one a combination")
        object.__setattr__(self, "cross", rules)
        object.__setattr__(self, "labels", labels)

    @property
    def size(self) -> int:
        """How many combinations there are."""
        return prod(len(rule.all_labels) for rule in self.cross)

    @property
    def leaves(self) -> tuple[Rule, ...]:
        """The rules that are crossed."""
        return self.cross

    def combined(self, codes: Sequence[Int[np.ndarray, " rows"]]) -> Int[np.ndarray, " rows"]:
        """Codes of combinations."""
        combined = codes[0]
        for rule, more in zip(self.cross[1:], codes[1:], strict=True):
            combined = combined * len(rule.all_labels) + more
        return combined
