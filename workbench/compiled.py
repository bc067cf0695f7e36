"""Functions that are compiled on first use, libraries that are loaded on first use, threads, plug-ins, and
the project folder.

Plug-ins are mechanisms, datasets and figures from other packages, which you use by name. If the workbench
itself has an object with the same name, the name always means this object. Otherwise, the workbench searches
the modules that you list with the option `--with`. Then it searches the entry points `workbench.mechanisms`,
`workbench.datasets` and `workbench.figures` of installed packages. If a name comes from a release file, the
workbench never loads code for this name.
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
from threading import RLock, Thread
from time import sleep
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
    """Return a decorator that you use in place of `numba.njit`. The decorator loads numba only when you call
    the decorated function for the first time.
    """
    return lambda function: Compiled(function, options)


def prange(*bounds: int) -> range:
    """Return the range of a loop that may run in parallel. When numba compiles code that calls `prange`, it
    uses `numba.prange` instead.
    """
    return range(*bounds)


class Compiled:
    """Function that numba compiles when it is called for the first time."""

    __wrapped__: Any

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]):
        update_wrapper(self, function)
        self._options = options
        self._dispatcher: Any = None

    def __call__(self, *args: Any) -> Any:
        """Compile the function if it was not compiled before, and call it."""
        return self.dispatcher()(*args)

    def dispatcher(self) -> Callable[..., Any]:
        """Return the version of this function that numba compiled. Compiled code can call only compiled
        functions. So the method also replaces other objects of this class in the function's module by their
        compiled versions.
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
    """Make sure that only one process at a time compiles a function. The other processes wait, and then load
    the result from numba's cache.

    Numba's cache has no lock. Without this function, two processes that write to the cache at the same time
    may lose or swap entries. Within a process, a thread first takes numba's own lock and then the lock on the
    file. This order avoids a deadlock with threads that already hold numba's lock.
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
    """Hold a lock on `file` during the `with` block, so that other processes wait. On Windows, which lacks
    this kind of lock, do nothing.
    """
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
    """Load and return `nbformat`, the library that reads notebooks. Call this function before papermill or
    nbconvert imports the library.

    The library `nbformat` loads jsonschema, which spends two seconds on a grammar for checking web addresses.
    Notebooks need no such check. So the function hides the grammar from jsonschema, which saves the two
    seconds.
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
    """Return the number of threads to use.

    The function returns the first of these numbers that is set: the argument, the limit from
    `limited_threads`, and the environment variable WORKBENCH_THREADS. If none is set, it returns the number
    of cores that this process may use.

    Parameters
    ----------
    threads : int, optional
        Number of threads that the caller asks for. Default None.

    Returns
    -------
    int
        Number of threads, at least 1.

    Raises
    ------
    ValueError
        If the number or the environment variable is not an integer >= 1.

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
    """Limit the number of threads that the code inside the `with` block uses.

    Parameters
    ----------
    threads : int
        Largest number of threads, at least 1.
    """
    token = _limit.set(thread_count(threads))
    try:
        yield
    finally:
        _limit.reset(token)


def end_after(parent: int) -> None:
    """End this worker process when its parent process has ended, even if the parent was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            sleep(0.5)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def on_threads(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> list[Result]:
    """Apply a function to each item on several threads. Return the results as a list in the order of the
    items.

    The threads run in parallel only while they are in compiled code that releases Python's global lock.
    """
    items = list(items)
    threads = min(threads, len(items))
    if threads <= 1:
        return list(map(function, items))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def slices(size: int, parts: int) -> list[slice]:
    """Divide the indices from 0 to `size` − 1 into `parts` consecutive ranges of nearly equal length. Return
    one slice for each range.

    >>> slices(5, 2)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    return [slice(size * i // parts, size * (i + 1) // parts) for i in range(parts)]


def in_slices(function: Callable[[slice], object], size: int, least: int | None = None) -> None:
    """Call a function with slices that together cover the indices from 0 to `size` − 1. With several threads,
    each thread calls the function with one slice, and the slices are of nearly equal length. With one thread,
    a single slice covers all indices.

    Parameters
    ----------
    function : Function that takes a slice, for example to fill this part of an array.
    size : Number of indices.
    least : Smallest number of indices for which several threads are used. Default 262,144
    (`PLACES_FOR_THREADS`).
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
    """Return the mechanism, dataset or figure with this name from a plug-in, which is a module or package
    outside the workbench. Return None if there is no such plug-in.

    Parameters
    ----------
    kind : str
        Kind of object: "mechanisms", "datasets" or "figures".
    name : str
        Name of a class, a figure or an entry point. If you write `module:Name`, the object `Name` is taken
        from this module.

    Raises
    ------
    ValueError
        If the module cannot be imported, or does not contain the name after the colon.
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
    """List the datasets that come from plug-ins, as pairs of a name and the module that contains the dataset.

    In the modules that you name with `--with`, the list contains each class that has a method `load` and an
    attribute `truth_public`. For installed packages, the list contains their entry points in the group
    `workbench.datasets`, without loading the packages.
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
    """Make the modules in the current folder importable, and return the path of this folder. With `python
    -m`, Python itself makes them importable. With an installed command, Python does not.
    """
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    return here


def stated_modules() -> list[ModuleType]:
    """Import and return the modules that you named with the option `--with`."""
    return [load_module(name) for name in filter(None, os.environ.get(WITH, "").split(","))]


def load_module(name: str) -> ModuleType:
    """Import a module by name. If this fails, a ValueError gives the reason."""
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
    """Return the path of your project: the nearest folder that contains the subfolders `notebooks` and
    `experiments`.

    The search begins in the current folder and continues with the folders above it. If none of these folders
    has both subfolders, the function tries the source folder that contains the workbench. If that folder does
    not have both subfolders either, the function returns the current folder.
    """
    here = Path.cwd()
    checkout = Path(__file__).resolve().parents[1]
    for folder in (here, *here.parents, checkout):
        if (folder / "notebooks").is_dir() and (folder / "experiments").is_dir():
            return folder
    return here


def template_folder() -> Path:
    """Return the folder with the files that are copied into a new project.

    If the workbench was installed, the template folder is part of the installed package. Otherwise it is the
    source folder that contains the package.
    """
    installed = Path(__file__).resolve().parent / "_project"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[1]
