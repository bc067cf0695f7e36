"""Mechanisms, datasets and figures of other packages, by the names that the command line is given.

A name of ours is ours. Any other is looked for in the modules that `--with` names, then among the entry
points `workbench.mechanisms`, `workbench.datasets` and `workbench.figures` of installed packages, which
are not read before. A release file never names code to load, and nothing here is asked when one is read.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

WITH = "WORKBENCH_WITH"  # modules that `--with` named, for the processes that a command starts
KINDS = ("mechanisms", "datasets", "figures")
found: list[Any] = []  # what this process has asked for and got


def find(kind: str, name: str) -> Any:
    """What has this name, or None.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    name : str
        Of a class, of a figure's id, of an entry point, or `module:Name`.

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
    """Names of datasets that are not ours, and the modules that they are from.

    Of the modules that `--with` names the classes that say whether their truth is public; of installed
    packages the entry points, which are not loaded.
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
    """Let modules of the current folder be found, which a console script leaves out; returns it."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    return here


def stated_modules() -> list[ModuleType]:
    """The modules that `--with` names."""
    return [load_module(name) for name in filter(None, os.environ.get(WITH, "").split(","))]


def load_module(name: str) -> ModuleType:
    """A module by its name; a ValueError says why it is not there."""
    try:
        return import_module(name)
    except ModuleNotFoundError as e:
        if e.name is not None and name.startswith(e.name):
            raise ValueError(f"--with {name}: there is no such module") from None
        raise ValueError(f"--with {name}: {e}") from None
    except Exception as e:  # another author's module may raise anything
        raise ValueError(f"--with {name}: {type(e).__name__}: {e}") from None
