"""What a panel shows: its controls, what they set up, and the rows that are measured and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from workbench.compiled import pd
from workbench.data import PUBLIC
from workbench.estimates.release import Release
from workbench.figures.plots import Panel
from workbench.privacy import Receipt
from workbench.trials.metrics.answers import refuse_private
from workbench.widgets.controls import Control

if TYPE_CHECKING:
    from workbench.widgets.view import Setting


Values = Mapping[str, Any]  # a setting of every control, by its name


class Setup(NamedTuple):
    """What a setting of the controls means: text that can be pasted, and run by anybody."""

    dataset: Any
    mechanism: Any


class Picture(NamedTuple):
    """What one release shows: tidy rows with the columns that the panels know, and facts in words.

    `ledger` holds receipts of measurements beside the release's. Where nothing is released, also the
    code that makes the rows, and commands to go on with.
    """

    rows: pd.DataFrame
    facts: Sequence[tuple[str, str]] = ()
    code: str = ""
    commands: Sequence[str] = ()
    ledger: Sequence[Receipt] = ()


class Scene(Protocol):
    """One panel of the explorer, a frozen value.

    A scene without `noise_note` draws nothing at random; one that says `by_name = False` is not exported
    by its name. One that has `after(setting, seed)` says with it which lines of code follow the release;
    one that has `release(setting, seed)` makes the mechanism's release in less time, from what it worked
    out for other settings.
    """

    @property
    def name(self) -> str:
        """By which it is exported."""

    @property
    def title(self) -> str:
        """Over it."""

    @property
    def words(self) -> str:
        """What it shows."""

    @property
    def noise_note(self) -> str:
        """What is said of its noise."""

    @property
    def controls(self) -> tuple[Control, ...]:
        """What can be moved."""

    def setup(self, values: Values) -> Setup | None:
        """The dataset and the mechanism; a ValueError, in the mechanism's words, if there is none.

        None where there is nothing to release: `picture` then gets neither data nor release.
        """

    def picture(
        self, setting: Setting, data: Any, release: Any, seed: int, exact: bool
    ) -> Picture:
        """Measure one release, roughly while somebody drags and else exactly."""

    def panels(self, setting: Setting, rows: pd.DataFrame) -> list[Panel]:
        """How the rows are drawn."""


@lru_cache(8)
def loaded(dataset: Any) -> Any:
    """A dataset's table; a ValueError unless both say that their truth may stand beside a release."""
    if not public(dataset):
        raise ValueError(
            f"{type(dataset).__name__} does not say truth_public: a panel compares with the truth, "
            "which would leave by a side door; `widgets.advice` works from public numbers alone"
        )
    data = dataset.load()
    refuse_private(data)
    return data


def public(data: Any) -> bool:
    """Whether a dataset or a table says that its truth is public; nothing else counts as saying so."""
    declared = getattr(data, "truth_public", False) is True
    return declared or getattr(data, "bound", None) is PUBLIC


def joined_lines(lines: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Lines of charts as rows: each maps columns to one number or word, or to an array like its `value`.

    >>> joined_lines([dict(series="a", value=[1.0, 2.0]), dict(series="b", value=[3.0])]).series.tolist()
    ['a', 'a', 'b']
    """
    names = dict.fromkeys(name for line in lines for name in line)
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for line in lines:
        count = len(line["value"])
        for name, column in columns.items():
            x = line.get(name, np.nan)
            column += (
                [x] * count if isinstance(x, str) or np.ndim(x) == 0 else np.asarray(x).tolist()
            )
    return pd.DataFrame(columns)
