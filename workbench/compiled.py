"""Loops that cannot be arrays: compiled when first called, and kept with the virtual environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import update_wrapper
from pathlib import Path
from threading import RLock
from typing import Any

_LOCK = RLock()

if sys.prefix != sys.base_prefix:  # numba reads it when imported
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(sys.prefix) / "var" / "numba"))


def njit(**options: Any) -> Callable[[Callable[..., Any]], Compiled]:
    """As `numba.njit`, except that numba is loaded at the first call."""
    return lambda function: Compiled(function, options)


def prange(*bounds: int) -> range:
    """As `numba.prange`, which takes its place before a function that uses it is compiled."""
    return range(*bounds)


class Compiled:
    """A function that numba compiles at its first call."""

    __wrapped__: Any

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]):
        update_wrapper(self, function)
        self._options = options
        self._dispatcher: Any = None

    def __call__(self, *args: Any) -> Any:
        """Call the compiled function."""
        return self.dispatcher()(*args)

    def dispatcher(self) -> Callable[..., Any]:
        """Numba's function; those that it may call are replaced by numba's too, which it needs."""
        with _LOCK:
            if self._dispatcher is None:
                import numba

                self._dispatcher = numba.njit(**self._options)(self.__wrapped__)
                names = self.__wrapped__.__globals__
                for name, x in list(names.items()):
                    if isinstance(x, Compiled):
                        names[name] = x.dispatcher()
                    elif x is prange:
                        names[name] = numba.prange
            dispatcher: Callable[..., Any] = self._dispatcher
            return dispatcher
