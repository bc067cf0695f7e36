"""Everything that a call lets out, as numbers and text that can be compared: the output of an audit.

That is not the estimate alone: keys, values and their order, how many there are, metadata, receipts,
types, what is printed or warned, and exceptions with their text.
"""

from __future__ import annotations

import contextlib
import io
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.data import Bound
from workbench.estimates import Projection, Sketch
from workbench.privacy import Receipt
from workbench.queries import Ranges
from workbench.spaces import Domain

_MOST_ELEMENTS = (
    64  # of one array that are named; of longer ones the others are in `whole` alone
)
_MOST_LEVELS = 16


@dataclass(frozen=True)
class Output:
    """One output: its numbers by name, what is no number, and all of it as one hash.

    Parameters
    ----------
    numbers : dict[str, float]
        Values, presence and sizes, by name.
    form : tuple of str
        Types, text, order: whatever is no number.
    whole : int
        Equal for equal outputs.
    """

    numbers: dict[str, float]
    form: tuple[str, ...]
    whole: int


class NoAnswer(Exception):
    """A call that took longer than its limit."""


def observe(call: Callable[[], Any], seconds: float) -> Output:
    """What one call lets out, exceptions among it.

    Parameters
    ----------
    call : without arguments.
    seconds : the limit of the call, held where signals are (the main thread, not on Windows); what is
        printed and warned is seen in the main thread alone.

    Returns
    -------
    Output

    Raises
    ------
    NoAnswer
        After the limit.
    """
    with _said() as (printed, warned):
        try:
            with _limited(seconds):
                returned = call()
        except NoAnswer:
            raise
        except Exception as e:  # what a stranger's callable raises is part of what it tells
            returned = _Raised(type(e).__name__, str(e))
    walk = _Walk()
    walk.visit("", returned)
    if printed.getvalue():
        walk.form.append(f"prints {printed.getvalue()!r}")
    walk.form += [f"warns {w.category.__name__}: {w.message}" for w in warned]
    form = tuple(walk.form)
    whole = hash((form, tuple(walk.numbers.items()), tuple(walk.rest)))
    return Output(walk.numbers, form, whole)


@contextlib.contextmanager
def _said() -> Iterator[tuple[io.StringIO, list[warnings.WarningMessage]]]:
    """What is printed, and warned; of other threads nobody could say whose words they are."""
    printed = io.StringIO()
    if not _in_main_thread():
        yield printed, []
        return
    with (
        warnings.catch_warnings(record=True) as warned,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        warnings.simplefilter("always")
        yield printed, warned


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """NoAnswer after so many seconds, where a signal can say so."""
    if not (hasattr(signal, "setitimer") and _in_main_thread()):
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise NoAnswer

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@lru_cache(1000)
def _receipt_text(receipt: Receipt) -> str:
    return repr(receipt)


@dataclass(frozen=True)
class _Raised:
    type: str
    text: str


class _Walk:
    """Visits an output and names what is in it."""

    _texts: dict[int, tuple[Any, str]] = {}  # of objects that come again and again  # noqa: RUF012

    def __init__(self) -> None:
        self.numbers: dict[str, float] = {}
        self.form: list[str] = []
        self.rest: list[bytes] = []

    def visit(self, name: str, x: Any) -> None:
        """Take in one part and what is below it."""
        if isinstance(x, _Raised):
            self.form.append(f"raises {x.type}: {x.text}")
        elif x is None or isinstance(x, str | bytes):
            self.form.append(f"{name} = {x!r}")
        elif isinstance(x, bool | int | float | np.generic) and not isinstance(x, np.void):
            self._number(name, x)
        elif isinstance(x, np.ndarray):
            self._array(name, x)
        elif isinstance(x, Receipt):
            self.form.append(f"{name} = {_receipt_text(x)}")
        elif isinstance(x, dict):
            self.form.append(f"{name}: {type(x).__name__} of {list(map(str, x))}")
            for key, part in x.items():
                self.visit(f"{name}[{key!r}]", part)
        elif isinstance(x, list | tuple | set | frozenset):
            self.form.append(f"{name}: {type(x).__name__}")
            self.numbers[f"size of {name}"] = len(x)
            for i, part in enumerate(x):
                self.visit(f"{name}[{i}]", part)
        elif hasattr(x, "to_numpy") and hasattr(x, "columns"):
            self.form.append(f"{name}: {type(x).__name__} of {list(map(str, x.columns))}")
            for column in x.columns:
                self._array(f"{name}.{column}", np.asarray(x[column]))
        elif is_dataclass(x) and not self._is_constant(x):
            self._parts(name, x)
        elif hasattr(x, "__dict__") and not self._is_constant(x):
            self.form.append(f"{name}: {type(x).__name__}")
            for key, part in vars(x).items():
                self.visit(f"{name}.{key}", part)
        else:
            self.form.append(f"{name} = {self._text(x)}")

    @staticmethod
    def _is_constant(x: Any) -> bool:
        """Public things whose text says all, and which most releases share."""
        return isinstance(x, Domain | Bound) or hasattr(x, "budget") or hasattr(x, "digits")

    def _text(self, x: Any) -> str:
        known = self._texts.get(id(x))
        if known is not None and known[0] is x:
            return known[1]
        text = repr(x)
        if len(self._texts) < 1000:
            self._texts[id(x)] = (x, text)
        return text

    def _number(self, name: str, x: Any) -> None:
        self.form.append(f"{name}: {type(x).__name__}")
        if isinstance(x, complex):
            self.form.append(f"{name} = {x!r}")
            return
        try:
            self.numbers[name] = float(x)
        except (TypeError, ValueError, OverflowError):
            self.form.append(f"{name} = {x!r}")

    def _array(self, name: str, x: np.ndarray) -> None:
        self.form.append(f"{name}: {x.dtype}, {x.ndim} axes")
        self.numbers[f"size of {name}"] = x.size
        if x.dtype.kind not in "biuf":
            self.form.append(f"{name} = {x.tolist()!r}")
            return
        self.rest.append(x.tobytes())
        for i, element in enumerate(x.ravel()[:_MOST_ELEMENTS].tolist()):
            self.numbers[f"{name}[{i}]"] = float(element)

    def _parts(self, name: str, x: Any) -> None:
        """The fields of a dataclass; arrays that go with keys are named by these."""
        self.form.append(f"{name}: {type(x).__name__}")
        parts = {f.name: getattr(x, f.name) for f in fields(x)} | vars(x)
        keys = parts.get("keys")
        if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu":
            self._keyed(name, parts, keys)
        bits = parts.get("bits")
        if isinstance(bits, np.ndarray) and bits.ndim == 2:
            self._counted(f"{name} reports", ["/".join(map(hex, row)) for row in bits.tolist()])
        if isinstance(x, Sketch):
            self._rows_of_sketch(name, x)
        if isinstance(x, Projection):
            self._levels_of_projection(name, x)
        for part, inside in parts.items():
            self.visit(f"{name}.{part}" if name else part, inside)

    def _keyed(self, name: str, parts: dict[str, Any], keys: np.ndarray) -> None:
        rows = keys if keys.ndim == 2 else keys[None]
        labels = ["/".join(map(str, column)) for column in rows.T.tolist()]
        levels = parts.get("levels")
        if isinstance(levels, np.ndarray) and levels.shape == (len(labels),):
            labels = [f"{x}@{level}" for x, level in zip(labels, levels.tolist(), strict=True)]
        values = parts.get("values")
        if not isinstance(values, np.ndarray) or values.shape != (len(labels),):
            return self._counted(f"{name} keys", labels)
        for label, noisy in zip(labels, values.tolist(), strict=True):
            self.numbers[f"{name} at {label}"] = float(noisy)
        return None

    def _counted(self, name: str, labels: list[str]) -> None:
        for label in labels:
            of = f"{name} {label}"
            self.numbers[of] = self.numbers.get(of, 0.0) + 1

    def _rows_of_sketch(self, name: str, sketch: Sketch) -> None:
        """What each row says of each cell; where buckets are is public, and different every time."""
        for row in range(len(sketch.values)):
            one = slice(row, row + 1)
            single = replace(
                sketch, hash_parameters=sketch.hash_parameters[one], values=sketch.values[one]
            )
            for cell, x in enumerate(single.answer(_first_cells(sketch.domain)).tolist()):
                self.numbers[f"{name} row {row} at {cell}"] = x

    def _levels_of_projection(self, name: str, projection: Projection) -> None:
        """The bit of each level of each cell."""
        for level in range(min(len(projection.hash_parameters), _MOST_LEVELS)):
            functions = projection.hash_parameters[level : level + 1]
            single = replace(projection, hash_parameters=functions)
            bits = single.answer(_first_cells(projection.domain)) > single.step / 4
            for cell, bit in enumerate(bits.tolist()):
                self.numbers[f"{name} level {level} at {cell}"] = float(bit)


def _first_cells(domain: Domain) -> Ranges:
    """The first four cells, among them those in which pairs differ."""
    cells = np.arange(min(4, domain.size))
    return Ranges(cells, cells + 1)
