"""The reference: one page per package, with what of it is public."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

from docs.pages import mechanisms as mechanism_pages
from docs.pages import text
from workbench import mechanisms
from workbench.cli import app
from workbench.mechanisms.options import parameter_help

PACKAGES = (
    "privacy spaces queries data noise estimates inference mechanisms mechanisms.protocol "
    "mechanisms.laws datasets trials trials.metrics trials.claims figures figures.plots owner "
    "owner.advice owner.audit owner.publication owner.scale widgets"
).split()
FORMULA = re.compile(r"([*|\\]|(?<=\w)_(?!\w))")


def write(folder: Path) -> None:
    """Write `<package>.md` for each package, and the page of the command line."""
    for package in PACKAGES:
        (folder / f"{package}.md").write_text(
            page(import_module(f"workbench.{package}")), "utf-8"
        )
    (folder / "command_line.md").write_text(command_line(), "utf-8")


def page(package: ModuleType) -> str:
    """What a package is for, and its public names."""
    parts = [f"# {package.__name__}", text.markdown(package.__doc__ or "")]
    members = public(package)
    if package is mechanisms:
        parts.append(
            "Each has [a page of its own](/mechanisms.md), except those composed of others."
        )
        members = (
            (cls.__name__, cls)
            for cls in mechanisms.COMPOSED
            if cls not in mechanism_pages.PAGES
        )
    directives = [f".. currentmodule:: {package.__name__}"]
    for name, member in members:
        kind = "class" if inspect.isclass(member) else "function"
        options = ["   :members:"] if kind == "class" else []
        if kind == "class" and any(is_private(base, package) for base in member.__mro__[1:]):
            options.append("   :inherited-members:")
        directives.append("\n".join([f".. auto{kind}:: {name}", *options]))
    return "\n\n".join([*parts, "```{eval-rst}", *directives, "```"]) + "\n"


def public(package: ModuleType) -> Iterator[tuple[str, Any]]:
    """The classes and functions that are at home in a package."""
    for name in sorted(dir(package), key=str.lower):
        member = getattr(package, name)
        documented = inspect.isclass(member) or inspect.isfunction(inspect.unwrap(member))
        if documented and not name.startswith("_") and at_home(member, package):
            yield name, member


def at_home(member: Any, package: ModuleType) -> bool:
    """Whether a class or function is defined in the package's file, or in its folder."""
    return f"{member.__module__}.".startswith(f"{package.__name__}.")


def is_private(base: type, package: ModuleType) -> bool:
    """Whether a base class is at home in a package that does not show it: its methods are shown below."""
    return at_home(base, package) and not hasattr(package, base.__name__)


def command_line() -> str:
    """All commands, with their arguments and options."""
    parts = ["# Command line", "`workbench COMMAND --help` says the same."]
    for name, command in commands(typer.main.get_command(app), "workbench"):
        parts += [f"## {name}", described(command.help or ""), options(command)]
    return "\n\n".join(parts) + "\n"


def commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every command of a group and of the groups in it, by its full name."""
    for each, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {each}")
        else:
            yield f"{name} {each}", command


def options(command: Any) -> str:
    """The arguments and options of a command, a line each."""
    lines = ["| option | meaning | default |", "|---|---|---|"]
    for each in command.params:
        names = ", ".join(f"`{name}`" for name in each.opts)
        if each.param_type_name == "argument":
            names = f"`{each.name}`"
        default = getattr(each, "show_default", None)
        if not isinstance(default, str):
            default = "required" if each.required else each.default
        meaning = described(getattr(each, "help", "") or "")
        shown = "" if default in (None, False, (), []) else str(default)
        lines.append(f"| {names} | {text.cell(meaning)} | {text.cell(text.escape(shown))} |")
    return "\n".join(lines)


def described(words: str) -> str:
    """The help of a command or option as Markdown."""
    return text.markdown(words.replace("\b", "").replace("\f", ""))


def plain_text(app, what: str, name: str, member: Any, options, lines: list[str]) -> None:
    """Escape what is no markup in a docstring, and add the fields of a value (a Sphinx event)."""
    promises = [i for i, line in enumerate(lines) if line.startswith("Guarantee  ")]
    del lines[min(promises, default=len(lines)) :]  # the page of the mechanism has them
    example = False
    for i, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example and not re.match(r"\s*\*{1,2}\w+\b", line):
            parts = line.split("`")
            parts[::2] = [FORMULA.sub(r"\\\1", part) for part in parts[::2]]
            lines[i] = "`".join(parts)
    if what == "class" and is_dataclass(member) and "Parameters" not in lines:
        declared = [f for f in fields(member) if f.metadata.get("doc")]
        if declared:
            lines += ["", "Parameters", "----------"]
        for f in declared:
            lines += [f.name, "    " + FORMULA.sub(r"\\\1", parameter_help(f))]
