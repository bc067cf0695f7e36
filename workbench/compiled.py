"""Code that is loaded, compiled or run in threads on first use, plug-ins, and the project folder.

A name of the workbench's own mechanisms, datasets and figures always means ours. Any other name is
searched first in the modules that `--with` names, and then among the entry points
`workbench.mechanisms`, `workbench.datasets` and `workbench.figures` of installed packages. Release
files never name code to load.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import update_wrapper
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

# Compiled

try:
    import fcntl

    _LOCKS = True
except ImportError:  # Windows: each process compiles for itself
    _LOCKS = False

_LOCK = RLock()

if sys.prefix != sys.base_prefix:  # numba reads it when imported
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(sys.prefix) / "var" / "numba"))


def njit(**options: Any) -> Callable[[Callable[..., Any]], Compiled]:
    """Replacement for `numba.njit` that loads numba at the first call."""
    return lambda function: Compiled(function, options)


def prange(*bounds: int) -> range:
    """Replacement for `numba.prange`. When numba compiles a function, its own `prange` takes over."""
    return range(*bounds)


class Compiled:
    """Function that numba compiles at its first call."""

    __wrapped__: Any

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]):
        update_wrapper(self, function)
        self._options = options
        self._dispatcher: Any = None

    def __call__(self, *args: Any) -> Any:
        """Call the compiled function."""
        return self.dispatcher()(*args)

    def dispatcher(self) -> Callable[..., Any]:
        """Compiled function of numba. Functions that it calls are replaced by compiled ones too, as
        numba requires.
        """
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
    """Let one process at a time compile a function. Others wait, and then load the stored result.

    Numba's cache has no lock, so two processes that write to it at once may lose or swap entries. A
    thread takes numba's own lock first, because a thread that compiles a caller of this function
    already holds it.
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
    """Hold a lock that other processes wait for, on systems that have locks."""
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


# Libraries

if TYPE_CHECKING:
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet
else:

    class _Library:
        def __init__(self, name: str):
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            return getattr(import_module(self._name), attribute)

    mpl = _Library("matplotlib")
    plt = _Library("matplotlib.pyplot")
    pd = _Library("pandas")
    pl = _Library("polars")
    pa = _Library("pyarrow")
    pc = _Library("pyarrow.compute")
    csv = _Library("pyarrow.csv")
    parquet = _Library("pyarrow.parquet")


def load_nbformat() -> Any:
    """Load `nbformat`, the library of notebooks. Call this before papermill or nbconvert imports it.

    Loading takes two seconds less in this way. `nbformat` uses jsonschema, which would compile a grammar of
    links. The function hides this grammar, because notebooks have no links to check.
    """
    grammar = "rfc3987_syntax"
    if "jsonschema" not in sys.modules and grammar not in sys.modules:
        vars(sys)["modules"][grammar] = (
            None  # who imports it meanwhile is told that it is not there
        )
        try:
            import_module("jsonschema")
        finally:
            del sys.modules[grammar]
    return import_module("nbformat")


# Threads

VARIABLE = "WORKBENCH_THREADS"
PLACES_FOR_THREADS = 2**18

Item = TypeVar("Item")
Result = TypeVar("Result")

_limit: ContextVar[int | None] = ContextVar("threads", default=None)


def thread_count(threads: int | None = None) -> int:
    """Return the number of threads. It is the given number, or the limit that `limited_threads` set, or
    WORKBENCH_THREADS, or the number of cores, whichever comes first.

    Parameters
    ----------
    threads : int, optional
        Number that the caller asks for.

    Returns
    -------
    int
        At least 1. By default, the number of cores that this process may use.

    Raises
    ------
    ValueError
        If the number is below 1, or the environment variable is not a number.

    Examples
    --------
    >>> with limited_threads(1):
    ...     thread_count()
    1
    """
    if threads is None:
        threads = _limit.get()
    if threads is not None:
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise ValueError(f"threads = {threads!r} is not allowed: need an integer >= 1")
        return threads
    stated = os.environ.get(VARIABLE)
    if not stated:
        return _cores()
    if not stated.isdecimal() or int(stated) < 1:
        raise ValueError(f"{VARIABLE} = {stated!r} is not allowed: need an integer >= 1")
    return int(stated)


@contextmanager
def limited_threads(threads: int) -> Iterator[None]:
    """Limit the number of threads that code inside the `with` block uses.

    Parameters
    ----------
    threads : int
        At least 1.
    """
    token = _limit.set(thread_count(threads))
    try:
        yield
    finally:
        _limit.reset(token)


def on_threads(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> list[Result]:
    """Apply a function to each item on several threads. Results are in the order of items.

    Compiled loops that release the lock run in parallel.
    """
    items = list(items)
    threads = min(threads, len(items))
    if threads <= 1:
        return list(map(function, items))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def slices(size: int, parts: int) -> list[slice]:
    """Divide `size` places into `parts` runs of nearly equal length, and return them as slices.

    >>> slices(5, 2)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    return [slice(size * i // parts, size * (i + 1) // parts) for i in range(parts)]


def in_slices(function: Callable[[slice], object], size: int, least: int | None = None) -> None:
    """Call a function for all places at once. With several threads, call it for one part of the places on
    each thread.

    Parameters
    ----------
    function : Function of a slice of places.
    size : Number of places.
    least : Smallest number of places for which several threads are used. Default `PLACES_FOR_THREADS`.
    """
    least = PLACES_FOR_THREADS if least is None else least
    threads = thread_count() if size >= least else 1
    on_threads(function, slices(size, threads), threads)


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "process_cpu_count"):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# Plugins

WITH = "WORKBENCH_WITH"  # modules that `--with` named, for the processes that a command starts
KINDS = ("mechanisms", "datasets", "figures")
found: list[Any] = []  # what this process has asked for and got


def find(kind: str, name: str) -> Any:
    """Return the object with a name, or None.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    name : str
        Name of a class, of a figure or of an entry point, or `module:Name`.

    Raises
    ------
    ValueError
        If a module cannot be imported, or lacks the name after the colon.
    """
    x = _find(kind, name)
    if x is not None and x not in found:
        found.append(x)
    return x


def _find(kind: str, name: str) -> Any:
    module_name, colon, member = name.partition(":")
    if colon:
        module = load_module(module_name)
        if not hasattr(module, member):
            raise ValueError(f"{name}: module {module_name} has no {member}")
        return getattr(module, member)
    for module in stated_modules():
        for x in vars(module).values():
            if isinstance(x, type) and name in (x.__name__, getattr(x, "id", None)):
                return x
    for entry in entry_points(group=f"workbench.{kind}"):
        if entry.name == name:
            try:
                return entry.load()
            except (ImportError, AttributeError) as e:
                raise ValueError(f"{name}: its package does not load it: {e}") from None
    return None


def other_datasets() -> list[tuple[str, str]]:
    """Return the names of datasets from other packages, with the modules that define them.

    For modules that `--with` names, these are the classes that state whether their truth is public. For
    installed packages, these are the entry points, which are not loaded.
    """
    stated = [
        (x.__name__, module.__name__)
        for module in stated_modules()
        for x in vars(module).values()
        if isinstance(x, type) and hasattr(x, "load") and hasattr(x, "truth_public")
        if not x.__module__.startswith("workbench.")
    ]
    entries = entry_points(group="workbench.datasets")
    return stated + [(entry.name, entry.module) for entry in entries]


def use_current_folder() -> str:
    """Make modules of the current folder importable, and return the folder. Python does not do this for a
    console script.
    """
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    return here


def stated_modules() -> list[ModuleType]:
    """Return the modules that `--with` names."""
    return [load_module(name) for name in filter(None, os.environ.get(WITH, "").split(","))]


def load_module(name: str) -> ModuleType:
    """Import a module by name. A ValueError gives the reason if it cannot be imported."""
    try:
        return import_module(name)
    except ModuleNotFoundError as e:
        if e.name is not None and name.startswith(e.name):
            raise ValueError(f"--with {name}: there is no such module") from None
        raise ValueError(f"--with {name}: {e}") from None
    except Exception as e:  # another author's module may raise anything
        raise ValueError(f"--with {name}: {type(e).__name__}: {e}") from None


# Project


def project_folder() -> Path:
    """Return the project's folder, the nearest one that contains notebooks and figures. The search begins in
    the current folder and goes up.

    If there is none, return the checkout that contains this package, or else the current folder.
    """
    here = Path.cwd()
    checkout = Path(__file__).resolve().parents[1]
    for folder in (here, *here.parents, checkout):
        if (folder / "notebooks").is_dir() and (folder / "experiments").is_dir():
            return folder
    return here


def template_folder() -> Path:
    """Return the folder from which a new project is copied. It is part of the installed package, or it is
    the checkout.
    """
    installed = Path(__file__).resolve().parent / "_project"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[1]
