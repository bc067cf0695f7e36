"""What a process would run: the sources of this package and the versions of its libraries, by name."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import workbench

_LIBRARIES = (
    "numpy",
    "scipy",
    "numba",
    "cryptography",
    "pyarrow",
    "polars",
    "dask",
    "distributed",
)
_NAMED = 3  # differences in one message


@cache
def fingerprint() -> dict[str, str]:
    """The versions of what computes, and a hash of each source file."""
    home = Path(workbench.__file__).parent
    prints = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for name in _LIBRARIES:
        try:
            prints[name] = version(name)
        except PackageNotFoundError:
            prints[name] = "missing"
    for path in sorted(home.rglob("*.py")):
        source = path.relative_to(home.parent).as_posix()
        prints[source] = hashlib.sha256(path.read_bytes()).hexdigest()
    return prints


@cache
def digest() -> str:
    """All of it as one word."""
    return hashlib.sha256(json.dumps(fingerprint()).encode()).hexdigest()


def refuse_different(who: str, theirs: Mapping[str, str] | Exception) -> None:
    """A ValueError that names what differs from what this process would run."""
    if isinstance(theirs, Exception):
        raise ValueError(f"{who} cannot run this package: {theirs}")
    ours = fingerprint()
    names = [name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]
    if names:
        shown = [n if n.endswith(".py") else f"{n} {theirs.get(n)}" for n in names[:_NAMED]]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise ValueError(f"{who} has other sources or libraries: {', '.join(shown)}{more}")


def run_alike(expected: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """A task of a caller with that digest; where it is another, an error."""
    if digest() != expected:
        raise RuntimeError(
            "a worker that joined has other sources or libraries than the caller"
        )
    return function(*arguments)
