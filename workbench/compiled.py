"""Loops that cannot be arrays: compiled when first called, and kept with the virtual environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from pathlib import Path
from threading import RLock
from typing import Any

try:
    import fcntl

    _LOCKS = True
except ImportError:  # Windows: each process compiles for itself
    _LOCKS = False

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
                if self._options.get("cache"):
                    _compile_in_one_process(self._dispatcher)
                names = self.__wrapped__.__globals__
                for name, x in list(names.items()):
                    if isinstance(x, Compiled):
                        names[name] = x.dispatcher()
                    elif x is prange:
                        names[name] = numba.prange
            dispatcher: Callable[..., Any] = self._dispatcher
            return dispatcher


def _compile_in_one_process(dispatcher: Any) -> None:
    """Let one process at a time compile a function, so that others wait and load what it stored.

    Numba's store takes no lock itself: two processes that write to it at once may lose an entry, or
    swap two. A thread takes numba's own lock first, as a thread that compiles a caller of this
    function holds that one already.
    """
    from numba.core.compiler_lock import global_compiler_lock

    compile = dispatcher.compile
    file = Path(dispatcher._cache.cache_path, f"{dispatcher.py_func.__qualname__}.lock")

    def compile_alone(signature: Any) -> Any:
        with global_compiler_lock, _locked(file):
            return compile(signature)

    dispatcher.compile = compile_alone


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    """Hold a lock that other processes wait for, where the system has locks."""
    if not _LOCKS:
        yield
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(held, fcntl.LOCK_UN)  # a child forked meanwhile has the file open too
