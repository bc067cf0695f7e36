"""Observed output of a call, as numbers and text. Audits compare the outputs for two inputs.

An output contains everything that an observer can see. Besides the noisy numbers, these are keys and their
order, sizes, metadata, receipts, types, printed text, warnings, and exceptions with their messages.
"""

from __future__ import annotations

import contextlib
import io
import signal
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any

import numpy as np

from workbench.data import Bound
from workbench.estimates import Projection, Sketch
from workbench.privacy import Receipt
from workbench.queries import Ranges
from workbench.spaces import Domain

_MOST_ELEMENTS = 64  # of an array that are named: the others are in `whole` alone
_MOST_CELLS = 4


@dataclass(frozen=True)
class Output:
    """Everything that an observer can see of one call.

    Parameters
    ----------
    numbers : dict[str, float]
        All numbers in the output by name, for example values and sizes. If an output lacks a value, the name of
        this value does not occur in the output.
    form : tuple of str
        All other parts, for example types, text and the order of keys.
    whole : int
        Hash of the whole output, which is equal for equal outputs.
    """

    numbers: dict[str, float]
    form: tuple[str, ...]
    whole: int


class NoAnswer(BaseException):
    """Error that is raised if a call takes longer than its time limit. The class is not a subclass of
    `Exception`, so that an `except Exception` in the called function does not catch the error.
    """


def observe(call: Callable[[], Any]) -> Output:
    """Call a function without arguments, and return everything that an observer can see. If the function
    raises an exception, the output contains the exception.
    """
    walk = _Walk()
    printed = io.StringIO()
    with (
        warnings.catch_warnings(record=True, action="always") as warned,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        try:
            returned = call()
        except Exception as e:  # what a stranger's callable raises is part of what it tells
            walk.form.append(f"raises {type(e).__name__}: {e}")
        else:
            walk.visit("", returned)
    if printed.getvalue():
        walk.form.append(f"prints {printed.getvalue()!r}")
    walk.form += [f"warns {w.category.__name__}: {w.message}" for w in warned]
    form = tuple(walk.form)
    whole = hash((form, tuple(walk.numbers.items()), tuple(walk.rest)))
    return Output(walk.numbers, form, whole)


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `NoAnswer` in the `with` block if the block takes longer than the given number of seconds. This
    works only in the main thread, and not on Windows.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not (seconds < inf and hasattr(signal, "setitimer") and in_main_thread):
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


class _Walk:
    """Walker through all parts of an output. It names each part, and records numbers, types and texts."""

    def __init__(self) -> None:
        self.numbers: dict[str, float] = {}
        self.form: list[str] = []
        self.rest: list[bytes] = []

    def visit(self, name: str, x: Any) -> None:
        """Record one part of the output, and then all parts that it contains."""
        kind = type(x).__name__
        parts: dict[str, Any] = {}
        if isinstance(x, Real):
            self._number(name, x)
        elif isinstance(x, np.ndarray):
            self._array(name, x)
        elif isinstance(x, dict):
            self.form.append(f"{name}: {kind} of {list(map(str, x))}")
            parts = {f"{name}[{key!r}]": part for key, part in x.items()}
        elif isinstance(x, list | tuple | set | frozenset):
            self.form.append(f"{name}: {kind}")
            self.numbers[f"size of {name}"] = len(x)
            parts = {f"{name}[{i}]": part for i, part in enumerate(x)}
        elif hasattr(x, "to_numpy") and hasattr(x, "columns"):
            self.form.append(f"{name}: {kind} of {list(map(str, x.columns))}")
            parts = {f"{name}.{column}": np.asarray(x[column]) for column in x.columns}
        elif hasattr(x, "__dict__") and not _is_constant(x):
            self.form.append(f"{name}: {kind}")
            self._named(name, x)
            parts = {f"{name}.{part}" if name else part: y for part, y in vars(x).items()}
        else:
            self.form.append(f"{name} = {x!r}")
        for part, inside in parts.items():
            self.visit(part, inside)

    def _number(self, name: str, x: Any) -> None:
        self.form.append(f"{name}: {type(x).__name__}")
        try:
            self.numbers[name] = float(x)
        except OverflowError:
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

    def _named(self, name: str, x: Any) -> None:
        """Record the arrays of an object by name. Values with keys are named by their keys, not by their
        positions. Equal reports of people (in local privacy) are counted. If cells are hashed into buckets,
        each cell is looked up, because the position of its bucket is random and public.
        """
        keys, values, levels = (getattr(x, part, None) for part in ("keys", "values", "levels"))
        if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu":
            columns = np.atleast_2d(keys)
            if isinstance(levels, np.ndarray) and levels.shape == columns.shape[1:]:
                columns = np.vstack([columns, levels.astype(keys.dtype)])
            labels = ["/".join(map(str, column)) for column in columns.T.tolist()]
            if isinstance(values, np.ndarray) and values.shape == columns.shape[1:]:
                noisy = zip(labels, values.tolist(), strict=True)
                self.numbers |= {f"{name} at {label}": float(v) for label, v in noisy}
            else:
                self.numbers |= Counter(f"{name} keys {label}" for label in labels)
        bits = getattr(x, "bits", None)
        if isinstance(bits, np.ndarray) and bits.ndim == 2:
            reports = ("/".join(map(hex, row)) for row in bits.tolist())
            self.numbers |= Counter(f"{name} reports {report}" for report in reports)
        if isinstance(x, Sketch | Projection):
            cells = np.arange(min(_MOST_CELLS, x.domain.size))  # those in which pairs differ
            answers = x.answer(Ranges(cells, cells + 1)).tolist()
            self.numbers |= {f"{name} at {i}": y for i, y in enumerate(answers)}


def _is_constant(x: Any) -> bool:
    """Return whether a part of an output is a public object, for example a domain, whose printed text
    describes it completely.
    """
    return (
        isinstance(x, Domain | Bound | Receipt) or hasattr(x, "budget") or hasattr(x, "digits")
    )
