"""A way to do a task, and the ways to do it, the best first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from workbench.advice.options import three_digits
from workbench.domain import Domain
from workbench.libraries import pd

EXACT = "exact"  # how a number is known
_MOST_CELLS = 2**22  # of a full table that is tried


@dataclass(frozen=True)
class TaskOption:
    """One way to do it: the mechanism, what of it is measured, the number, and how that is known."""

    name: str
    mechanism: Any
    what: str
    value: float
    how: str

    def __str__(self) -> str:
        return f"{self.name}: {self.what} {three_digits(self.value)} ({self.how})"


@dataclass(frozen=True, repr=False)
class TaskAdvice:
    """Ways to do a task, the best first where they can be compared, and what is to be said of them."""

    task: str
    options: tuple[TaskOption, ...]
    notes: tuple[str, ...] = ()

    @property
    def mechanism(self) -> Any:
        """The one to take."""
        return self.options[0].mechanism

    def to_frame(self) -> pd.DataFrame:
        """One row an option, in the order of the advice.

        Returns
        -------
        pandas.DataFrame
            `option`, `what` is measured, its `value` in counts, `how` it is known, and the `mechanism`.
        """
        rows = [(o.name, o.what, o.value, o.how, repr(o.mechanism)) for o in self.options]
        return pd.DataFrame(rows, columns=["option", "what", "value", "how", "mechanism"])

    def display_table(self) -> pd.DataFrame:
        """The same in few digits, without the mechanisms' text."""
        frame = self.to_frame().drop(columns="mechanism")
        return frame.assign(value=[three_digits(o.value) for o in self.options])

    def __repr__(self) -> str:
        table = self.display_table().to_string(index=False, max_colwidth=None)
        return "\n".join([table, *self.notes, repr(self.mechanism)])


def refuse_large(domain: Domain, task: str) -> None:
    """A ValueError for a domain whose full table is not tried."""
    if domain.size > _MOST_CELLS:
        raise ValueError(
            f"a domain of {domain.size:,} cells is too large for {task}, which need every cell: need at "
            f"most {_MOST_CELLS:,}, with fewer attributes or coarser labels"
        )


def refuse_outside(name: str, number: int, most: int) -> None:
    """A ValueError unless it is a whole number from 1 to `most`."""
    if not (isinstance(number, int) and 1 <= number <= most):
        raise ValueError(
            f"{name} = {number!r} is not allowed: need a whole number from 1 to {most}"
        )


def ranked(task: str, options: list[TaskOption], notes: Sequence[str]) -> TaskAdvice:
    """Advice with the least value first."""
    return TaskAdvice(task, tuple(sorted(options, key=lambda o: o.value)), tuple(notes))
