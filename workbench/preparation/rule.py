"""What all rules of preparation say alike: a column, and what happens to values outside and missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.arrays import Int
from workbench.libraries import pl
from workbench.preparation.matching import MISSING, Texts
from workbench.value import parameter, plain, shown, value

REFUSED = -1  # codes
DROPPED = -2
MAX_LABELS = 10**6  # that a rule makes by itself
_ACTIONS = ("refuse", "drop", "label")
_SHOWN = 60  # characters of a list of labels in an error


def is_text(x: Any) -> str | None:
    """A check for `parameter`."""
    return "need text" if not isinstance(x, str) or not x else why_no_unicode(x)


def why_no_unicode(text: str) -> str | None:
    """A need, if text holds half of a surrogate pair, which no file can."""
    try:
        text.encode()
    except UnicodeEncodeError as e:
        return f"need valid Unicode ({e.reason})"
    return None


def is_list(x: Any) -> str | None:
    """A check for `parameter`: the owner checks what is in the list."""
    return None if isinstance(x, list | tuple | range) and len(x) else "need a list"


def _are_texts(x: Any) -> str | None:
    is_list = isinstance(x, list | tuple)
    good = is_list and all(type(text) in (str, int) for text in x)
    return (
        why_no_unicode("".join(map(str, x)))
        if good
        else "need a list of texts, or whole numbers"
    )


@value
class Rule:
    """How the codes of one attribute follow from a column, row by row.

    Nothing but the rule and the row decides a code, or that a row is dropped: a unit's rows move
    what they would move alone, so a bound on the rows of a unit still holds.

    Parameters
    ----------
    column : str, optional
        The column's name; without it the attribute's.
    other : "refuse", "drop" or "label"
        What happens to a value that the rule has no label for: an error, the row is left out, or it
        gets the label `other_label`.
    missing : "refuse", "drop" or "label"
        The same for a value that is missing (null, an empty field, NaN), with `missing_label`.
    missing_values : texts, optional
        Values that mean missing too, as "NA" or "999", compared as `Labels` compares them.
    """

    _: KW_ONLY
    column: str | None = parameter(None, check=is_text, doc="if it is not the attribute's name")
    other: str = parameter("refuse", choices=_ACTIONS, doc="what happens to values outside")
    missing: str = parameter("refuse", choices=_ACTIONS, doc="what happens to missing values")
    missing_values: tuple[str, ...] = parameter((), check=_are_texts, doc="that mean missing")
    other_label: str = parameter("other", check=is_text, doc="of values outside")
    missing_label: str = parameter("missing", check=is_text, doc="of missing values")

    def __post_init__(self) -> None:
        texts = tuple(dict.fromkeys(map(str, self.missing_values)))
        object.__setattr__(self, "missing_values", texts)

    if TYPE_CHECKING:  # a field of some, a property of others

        @property
        def labels(self) -> Any:
            """What values become, in the order of codes."""

    @property
    def all_labels(self) -> tuple[Any, ...] | range:
        """The labels of the attribute: the rule's, then those of other and of missing values."""
        labels: tuple[Any, ...] | range = self.labels
        added = [self.other_label] * (self.other == "label")
        added += [self.missing_label] * (self.missing == "label")
        return (*map(str, labels), *added) if added else labels

    @property
    def leaves(self) -> tuple[Rule, ...]:
        """The rules of single columns; the rule itself, if it has one."""
        return (self,)

    @property
    def needs_numbers(self) -> bool:
        """Whether values are compared as numbers, so that texts which are numbers may come as these."""
        return False

    @property
    def need(self) -> str:
        """What a value has to be, for an error."""
        raise NotImplementedError

    def places(self, values: pl.Series) -> Int[np.ndarray, " rows"]:
        """Places in `labels`, OUTSIDE or MISSING."""
        raise NotImplementedError

    def codes(self, values: pl.Series) -> Int[np.ndarray, " rows"]:
        """Places in `all_labels`, REFUSED or DROPPED."""
        places = self.places(values)
        if self.missing_values:
            places = np.where(self._missing_texts.places(values) >= 0, MISSING, places)
        if not len(places) or places.min() >= 0:
            return places
        size = len(self.labels)
        codes = {"refuse": REFUSED, "drop": DROPPED, "label": size}
        other = codes[self.other]
        if self.other == "label":
            codes["label"] += 1
        actions = np.array([other, codes[self.missing]])
        return np.where(places < 0, actions[np.minimum(places, -1) * -1 - 1], places)

    @cached_property
    def _missing_texts(self) -> Texts:
        return Texts(dict.fromkeys(self.missing_values, 0))

    def combined(self, codes: Sequence[Int[np.ndarray, " rows"]]) -> Int[np.ndarray, " rows"]:
        """The attribute's codes of those of its leaves, none of which is refused or dropped."""
        return codes[0]


def some(labels: Sequence[Any]) -> str:
    """The first labels of a list, for an error."""
    text = ""
    for i, label in enumerate(labels):
        if i and len(text) > _SHOWN:
            return f"{text}, …"
        text += f"{', ' if i else ''}{plain(label) if len(str(label)) <= _SHOWN else shown(str(label))}"
    return text
