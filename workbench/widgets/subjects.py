"""Subjects of panels. A subject is what a panel shows, for example a mechanism. It defines controls, draws a
picture for their settings, and states the code that draws the picture again.
"""

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
    """One picture with its facts and texts.

    Parameters
    ----------
    rows : DataFrame
        Numbers for the charts of `Subject.panels`.
    facts : sequence of (str, str)
        Facts, each with a name and a text.
    releases : tuple of Release
        Releases from which the numbers come. Their noise is simulated.
    lead : str
        Sentence above the picture.
    image : bytes
        PNG picture, which replaces the charts.
    table : str
        HTML table, which replaces the picture.
    exact : bool
        Whether the picture is final. Otherwise, a better picture for the same settings follows.
    old : bool
        Whether the picture shows other settings or is empty, so that the picture for the current settings
        must follow.
    """

    rows: pd.DataFrame
    facts: Sequence[tuple[str, str]] = ()
    releases: tuple[Release, ...] = ()
    lead: str = ""
    image: bytes = b""
    table: str = ""
    exact: bool = False
    old: bool = False


class Subject:
    """Base class of subjects. A subject is what a panel shows, for example a mechanism or a figure. It is a
    frozen value that can be sent to another process.

    Attributes
    ----------
    name, title, words : str
        Name in commands and links, heading, and a sentence that explains the picture.
    noise_note : str
        Text that explains which noise stays the same when a slider moves. The text is empty if there is no
        noise.
    slow : bool
        Whether every picture is drawn in a separate process, and only after a slider stops moving.
    """

    noise_note: ClassVar[str] = ""
    slow: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """Name in commands and links."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """Heading of the panel."""
        return self.name

    @property
    def words(self) -> str:
        """Text that explains the picture."""
        return ""

    def controls(self, values: Values) -> tuple[Control, ...]:
        """Return the controls of the panel, which may depend on the present settings `values`."""
        raise NotImplementedError

    def check(self, values: Values) -> None:
        """Raise a ValueError if nothing can be drawn at these settings."""

    def each(self, values: Values) -> list[Values]:
        """Return a list of settings, one per drawing. The drawings of a panel differ in their seeds."""
        return [values]

    def draw(self, values: Values, exact: bool, progress: Path | None) -> Drawn:
        """Draw a picture: a rough one while a slider moves, and an exact one afterwards."""
        raise NotImplementedError

    def saved(self, values: Values) -> Drawn:
        """Return the picture that a slow subject shows before the first drawing. Nothing is computed for this
        picture.
        """
        raise NotImplementedError

    def save(self, values: Values) -> str:
        """Write the files of a slow subject to a folder, and return the folder."""
        raise NotImplementedError

    def panels(self, values: Values, rows: pd.DataFrame) -> list[Panel]:
        """Return the descriptions of the charts in which the rows are drawn."""
        return []

    def code(self, values: Values) -> str:
        """Return lines of Python that make the picture again."""
        raise NotImplementedError

    def commands(self, values: Values, words: Sequence[str]) -> list[str]:
        """Return the command that makes the files of the picture, or "" if there is none, and further
        commands that may be useful next.
        """
        raise NotImplementedError


@lru_cache(8)
def loaded(dataset: Any) -> Any:
    """Load the data of a dataset, and return them. Raise a ValueError unless the dataset and its data are
    marked as public.
    """
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
