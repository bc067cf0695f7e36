"""Inputs on which the results of a trial depend. These are source files, versions of imported packages, and
the content of data files.

Each input has a name, for example the path of a file, and a state, for example a hash of its content. If the
state of an input changes, stored results are no longer valid. The mapping `seen` collects the inputs outside
the project that this process has used, with their states. So a later process can detect changes.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import json
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from time import time
from typing import Any

from workbench.estimates.files import file_sha256

STARTED = time()
HASHES = (
    "hashes"  # a folder of the store: the hash of each large file, while it has not changed
)
_LARGE = 10_000_000  # bytes
_DISTRIBUTION = "version of "
_MADE = ("twin", "generator")  # kinds of data that no file decides
_INSTALLED = {"site-packages", "dist-packages"}
_STANDARD = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
seen: dict[str, str] = {}


# ---- sources


def modules_of(values: Iterable[Any]) -> frozenset[str]:
    """Return the modules that define the classes of the given values, and of the values in their fields. The
    modules that define base classes of these classes are included.

    Modules of other installed packages, for example numpy, are left out.
    """
    modules: set[str] = set()
    remaining = [*values]
    while remaining:
        x = remaining.pop()
        if isinstance(x, tuple | list):
            remaining += x
            continue
        cls = _class_of(x)
        top = _top(cls.__module__)
        bases = [base.__module__ for base in getattr(cls, "__mro__", ())]
        modules |= {cls.__module__, *(name for name in bases if _is_near(name, top))}
        if is_dataclass(x) and not isinstance(x, type):
            inside = [getattr(x, f.name, None) for f in fields(x)]
        else:  # a value that another one wraps
            inside = [getattr(x, name, None) for name in ("dataset", "mechanism", "workload")]
        remaining += [
            y
            for y in inside
            if isinstance(y, tuple | list)
            or is_dataclass(y)
            or _is_near(_class_of(y).__module__, top)
        ]
    return frozenset(name for name in modules if _top(name) not in sys.stdlib_module_names)


def _class_of(x: Any) -> Any:
    """Return x itself if it is a function or a class. Otherwise return its class."""
    return x if hasattr(x, "__qualname__") and x.__module__ else type(x)


def _is_near(name: str, top: str) -> bool:
    """Return whether a module belongs to the package `top`, to the workbench, or to code of the user that is
    not installed.
    """
    other = _top(name)
    return other not in sys.stdlib_module_names and (other == top or not _is_installed(other))


@cache
def sources(modules: frozenset[str]) -> tuple[Path, ...]:
    """Return the source files of the given modules and of this package. Also return the source files of all
    modules that they import, directly or indirectly.
    """
    return tuple(path for _, path in sorted(_reached(modules)[0].items()))


@cache
def versions(modules: frozenset[str]) -> tuple[str, ...]:
    """Return the names and versions of the packages that source files outside the workbench import."""
    names = _reached(modules)[1]
    return tuple(sorted({f"{name} {x}" for name in names for x in [_version(name)] if x}))


@cache
def source_hash(modules: frozenset[str]) -> str:
    """Return a hash of the source files of the given modules and of all that they import."""
    text = "".join(_text(path) for path in sources(modules))
    return hashlib.sha256(text.encode()).hexdigest()


def edited(modules: frozenset[str]) -> str:
    """Return the name of a source file that changed after this process started, or "" if there is none. For
    such a file, nobody knows which version of its code is running.
    """
    young = (path.name for path in sources(modules) if _is_young(path))
    return next(young, "")


def has_source(name: str) -> bool:
    """Return whether the module comes from a source file, and not, for example, from an interactive session."""
    return name != "__main__" and _source(name) is not None


@cache
def note_sources(modules: frozenset[str]) -> None:
    """Add all files and packages that the given modules import to `seen`. Files of the workbench and of the
    project's experiments are left out.
    """
    for name, path in _reached(modules)[0].items():
        if _top(name) not in ("workbench", "experiments"):
            seen[str(path)] = "edited" if _is_young(path) else state(str(path))
    for name in _reached(modules)[1]:
        seen[_DISTRIBUTION + name] = _version(name)


@cache
def _reached(modules: frozenset[str]) -> tuple[dict[str, Path], frozenset[str]]:
    """Follow the imports of the given modules. Return the source files by module, and the packages that
    modules outside the workbench import.

    Imports are followed into the workbench, into the installed distributions that contain the given modules,
    and into modules that are not installed, which belong to the user.
    """
    tops = {_top(name) for name in modules}
    own = tops | _same_distribution(tops)
    files: dict[str, Path] = {}
    others: set[str] = set()
    remaining = [*modules, __package__]
    while remaining:
        name = remaining.pop()
        top = _top(name)
        if name in files or name == "workbench" or top in sys.stdlib_module_names:
            continue
        if top not in own and top != "workbench" and _is_installed(top):
            others.add(top)
            continue
        path = _source(name)
        if path is None:
            remaining += _home(name)
            continue
        files[name] = path
        imports = _imports(path, name)
        if top != "workbench":
            if "." in name:
                imports = [*imports, name.rpartition(".")[0]]
        else:
            imports = [each for each in imports if _top(each) == "workbench"]
        remaining += imports
    return files, frozenset(others)


def _same_distribution(tops: set[str]) -> set[str]:
    """Return all packages that belong to the same installed distributions as the given ones."""
    installed = {top for top in tops - {"workbench"} if _is_installed(top)}
    if not installed:
        return set()
    distributions = _distributions()
    own = {d for top in installed for d in distributions.get(top, ())}
    return {top for top, theirs in distributions.items() if own & set(theirs)}


@cache
def _is_installed(top: str) -> bool:
    """Return whether a package is in a folder of installed packages. Also return True if the package cannot
    be found.
    """
    spec = _spec(top)
    if top in ("workbench", "__main__"):
        return False
    if spec is None:
        return True
    places = [spec.origin] if spec.has_location else spec.submodule_search_locations or []
    return all(_INSTALLED & {*Path(x).parts} or x.startswith(_STANDARD) for x in places)


def _top(name: str) -> str:
    return name.partition(".")[0]


@cache
def _version(top: str) -> str:
    """Return the version of the distribution that provides a package, or "" if there is none."""
    with suppress(PackageNotFoundError):
        return version(top)
    for name in _distributions().get(top, ()):
        return version(name)
    return ""


_distributions = cache(packages_distributions)  # it reads every package's files


@cache
def _imports(path: Path, name: str) -> list[str]:
    """Return the names of the modules that a source file imports. For `from a import b`, both a and a.b are
    returned, because b may be a module.
    """
    if path.suffix != ".py":
        return []
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    names = []
    try:
        tree = ast.parse(_text(path))
    except SyntaxError:
        return []
    for node in _statements(tree.body):
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return list(filter(None, names))


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield all statements, also in nested blocks, because imports may be anywhere."""
    for statement in body:
        yield statement
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from _statements(getattr(statement, block, ()))


@cache
def _source(name: str) -> Path | None:
    """Return the source file of a module. Return None if there is no such module, or if the module has no
    file.
    """
    spec = _spec(name)
    if spec is None or not spec.has_location:
        return None
    return Path(str(spec.origin))


def _home(name: str) -> list[str]:
    """Return the module from which a package of the workbench loads a name, for example the name of a class."""
    package, _, member = name.rpartition(".")
    if package not in ("workbench", "workbench.mechanisms", "workbench.datasets"):
        return []
    found = getattr(import_module(package), member, None)
    if inspect.ismodule(found):
        return [found.__name__]
    return [found.__module__] if hasattr(found, "__module__") else []


def _spec(name: str) -> Any:
    try:
        return importlib.util.find_spec(name)
    except Exception:  # whatever the package above it raises when it is imported
        return None


def _text(path: Path) -> str:
    """Return the text of a source file. For a compiled module, return the hash of its file."""
    if path.suffix == ".py":
        return path.read_text(encoding="utf-8", errors="replace")
    return file_sha256(path)


def _is_young(path: Path) -> bool:
    return path.stat().st_mtime > STARTED


# ---- data


def data_states(dataset: Any, store: Path) -> list[str]:
    """Return texts that identify the content of a dataset's files, one per file. If the dataset has no files,
    return a text that identifies its loaded data.

    A copy of a file in another folder gives the same text. Loading may take long, so the function loads the
    data only if nothing else identifies them. This is the case if the dataset's class is from another
    package, has no method `files`, and is not marked as a stand-in or a generator.
    """
    files = dataset.files() if hasattr(dataset, "files") else ()
    states = [_file_state(file, store) for file in files]
    if hasattr(dataset, "dataset"):
        return [*states, *data_states(dataset.dataset, store)]
    ours = _top(type(dataset).__module__) == "workbench"
    if ours or hasattr(dataset, "files") or getattr(dataset, "kind", "") in _MADE:
        return states
    import joblib

    digest = joblib.hash(dataset.load(), hash_name="sha1")
    seen[f"data of {dataset!r}"] = digest  # nobody else can say what it is now
    return [digest]


def located(file: Any) -> Path:
    """Return the path of a dataset's file. If the file is in an archive, return the path of the archive.

    Raise a FileNotFoundError if the file was not found.
    """
    path = Path(file.find() if hasattr(file, "find") else file)
    for place in (path, *path.parents):
        if place.is_file():
            return place
    raise FileNotFoundError(f"no {path}")


def _file_state(file: Any, store: Path) -> str:
    """Return the name of a file and a hash of its content. If the file is in an archive, the hash is that of
    the archive.
    """
    name = getattr(file, "name", file)
    try:
        path = str(located(file).resolve())
    except FileNotFoundError:
        return f"{name} missing"
    seen[path] = state(path, store)
    return f"{name} {seen[path]}"


def state(name: str, store: Path | None = None) -> str:
    """Return the current state of an input. This is the hash of a file's content, or the version of a
    package.

    A large file is hashed again only if its size or modification time has changed. The hashes are stored in
    the folder `store`.
    """
    if name.startswith(_DISTRIBUTION):
        return _version(name.removeprefix(_DISTRIBUTION))
    path = Path(name)
    try:
        stat = path.stat()
    except OSError:
        return "missing"
    if store is None or stat.st_size < _LARGE:
        return file_sha256(path)
    kept = store / HASHES / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"
    now = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
    with suppress(OSError, ValueError):
        *then, digest = json.loads(kept.read_text())
        if then == now:
            return str(digest)
    digest = file_sha256(path)
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = kept.with_name(f".{kept.name}")
        draft.write_text(json.dumps([*now, digest]))
        draft.replace(kept)
    return digest
