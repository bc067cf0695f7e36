"""What a panel shows: a subject has controls, draws at their settings, and says how to draw it again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from workbench.compiled import pd
from workbench.data import PUBLIC
from workbench.estimates.release import Release
from workbench.figures.plots import Panel
from workbench.trials.metrics.answers import refuse_private
from workbench.widgets.controls import Control

Values = Mapping[str, Any]  # the setting of every control, by its name


@dataclass(frozen=True)
class Drawn:
    """One picture and what is said of it.

    Parameters
    ----------
    rows : DataFrame
        The numbers, for the charts of `Subject.panels`.
    facts : sequence of (str, str)
        Names and texts.
    releases : tuple of Release
        The releases behind it, made with simulated noise.
    lead : str
        The sentence above the picture.
    image : bytes
        A PNG in place of charts.
    table : str
        HTML of a table in place of a picture.
    """

    rows: pd.DataFrame
    facts: Sequence[tuple[str, str]] = ()
    releases: tuple[Release, ...] = ()
    lead: str = ""
    image: bytes = b""
    table: str = ""


class Subject:
    """A mechanism, a figure or advice, as a frozen value that a process can be sent.

    Attributes
    ----------
    name, title, words : str
        Its name in commands and links, the heading, and a sentence.
    noise_note : str
        What stays when a slider moves. Without noise it is empty.
    slow : bool
        Whether every picture is drawn in a process of its own, and only after a slider rests.
    """

    noise_note: ClassVar[str] = ""
    slow: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The name in commands and links."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """The heading."""
        return self.name

    @property
    def words(self) -> str:
        """What there is to see."""
        return ""

    def controls(self, values: Values) -> tuple[Control, ...]:
        """What can be moved, at settings of some controls."""
        raise NotImplementedError

    def check(self, values: Values) -> None:
        """Raise a ValueError if nothing can be drawn at these settings."""

    def draw(self, values: Values, seed: int, exact: bool, progress: Path | None) -> Drawn:
        """Draw roughly while a slider moves, exactly when it rests."""
        raise NotImplementedError

    def panels(self, values: Values, rows: pd.DataFrame) -> list[Panel]:
        """How the rows are drawn."""
        return []

    def code(self, values: Values, seed: int, exact: bool) -> str:
        """The lines of Python that make it again."""
        raise NotImplementedError

    def command(self, values: Values, words: Sequence[str]) -> str:
        """The command line that makes its files; empty if there is none."""
        return ""

    def more_commands(self, values: Values) -> list[str]:
        """Command lines to go on with."""
        return []


@lru_cache(8)
def loaded(dataset: Any) -> Any:
    """A dataset's table; a ValueError unless both state that their truth is public."""
    if not public(dataset):
        raise ValueError(
            f"{type(dataset).__name__} does not state truth_public. A panel compares with the truth, so "
            "it opens on public data only. `widgets.advice` needs public numbers alone"
        )
    data = dataset.load()
    refuse_private(data)
    return data


def public(data: Any) -> bool:
    """Whether a dataset or a table states that its truth is public."""
    declared = getattr(data, "truth_public", False) is True
    return declared or getattr(data, "bound", None) is PUBLIC


def qualified_text(x: Any) -> str:
    """The text of a mechanism or dataset, each class with the package in which it is.

    >>> from workbench.datasets import NetTraceTwin, Ranked
    >>> qualified_text(Ranked(NetTraceTwin()))
    'datasets.Ranked(dataset=datasets.NetTraceTwin())'
    """
    packages = dict(_packages(x))
    return re.sub(r"\b\w+(?=\()", lambda name: packages.get(name[0], "") + name[0], repr(x))


def _packages(x: Any) -> Iterator[tuple[str, str]]:
    """Classes of the workbench in a value, and their packages."""
    package, *inside = type(x).__module__.split(".")
    if package == "workbench" and inside[:1] in (["mechanisms"], ["datasets"]):
        yield type(x).__name__, f"{inside[0]}."
    for f in fields(x) if is_dataclass(x) else ():
        yield from _packages(getattr(x, f.name))
