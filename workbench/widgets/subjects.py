"""Subjects of a panel: each has controls, draws at their settings, and says how to draw again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
        Name in commands and links, heading, and a sentence that says what there is to see.
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
        """Text on what there is to see."""
        return ""

    def controls(self, values: Values) -> tuple[Control, ...]:
        """Return what can be moved, at settings of some controls."""
        raise NotImplementedError

    def check(self, values: Values) -> None:
        """Raise a ValueError if nothing can be drawn at these settings."""

    def draw(self, values: Values, seed: int, exact: bool, progress: Path | None) -> Drawn:
        """Draw roughly while a slider moves, exactly when it rests."""
        raise NotImplementedError

    def saved(self, values: Values) -> Drawn:
        """Return the picture before anything is drawn, of a slow subject."""
        raise NotImplementedError

    def save(self, values: Values) -> str:
        """Write the folder of a slow subject, and return it."""
        raise NotImplementedError

    def panels(self, values: Values, rows: pd.DataFrame) -> list[Panel]:
        """Return how the rows are drawn."""
        return []

    def code(self, values: Values, seed: int, exact: bool) -> str:
        """Return the lines of Python that make it again."""
        raise NotImplementedError

    def command(self, values: Values, words: Sequence[str]) -> str:
        """Return the command line that makes its files; empty if there is none."""
        return ""

    def more_commands(self, values: Values) -> list[str]:
        """Command lines to go on with."""
        return []


@lru_cache(8)
def loaded(dataset: Any) -> Any:
    """Return a dataset's table, or raise a ValueError unless both state that their truth is public."""
    declared = getattr(dataset, "truth_public", False) is True
    if not declared and getattr(dataset, "bound", None) is not PUBLIC:
        raise ValueError(
            f"{type(dataset).__name__} does not state truth_public. A panel compares with the truth, and "
            "every error is an exact function of private data. `widgets.advice(domain, bound)` needs "
            "public numbers alone. Try records and interactions on a synthetic stand-in"
        )
    data = dataset.load()
    refuse_private(data)
    return data
