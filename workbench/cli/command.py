"""What all commands refuse alike: numbers that nobody means."""

from __future__ import annotations

from contextvars import ContextVar
from inspect import cleandoc
from typing import Any

import typer
from typer.core import TyperCommand

GIVEN = f"{__name__}.given"  # in the context: the words of a command

_running: ContextVar[dict[str, Any]] = ContextVar("running")


class Command(TyperCommand):
    """A command that reads what people write, and never one of two things that they say."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse numbers like 1_0, which Python would read as 10, and options that are given twice."""
        ctx.meta.setdefault(GIVEN, [ctx.info_name, *args])
        _running.set(ctx.meta)
        params = {name: param for param in self.get_params(ctx) for name in param.opts}
        given = set()
        words = iter(args)
        for word in words:
            name, equals, text = word.partition("=")
            param = params.get(name) if name.startswith("-") else None
            if word == "--":
                break
            if param is None or getattr(param, "is_flag", False):
                continue
            if param.name in given and not param.multiple:
                raise ValueError(f"{name} is given twice: need it once")
            given.add(param.name)
            if not equals:
                text = next(words, "")
            if "_" in text and _is_number(param):
                raise ValueError(f"{name} = {text!r} is not allowed: need a number")
        return super().parse_args(ctx, args)


def given() -> list[str]:
    """The words of the command that runs, its own name first; `--with` is not among them."""
    return [*_running.get()[GIVEN]]


def use_for_all(app: typer.Typer) -> None:
    """Make every command of an app, and of the apps in it, one of these."""
    for info in app.registered_commands:
        if not issubclass(info.cls or TyperCommand, Command):
            info.cls = Command
        paragraphs = cleandoc(info.callback.__doc__ or "").split("\n\n")
        info.help = "\n\n".join(p.replace("\n", " ") for p in paragraphs)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            use_for_all(group.typer_instance)


def _is_number(param: Any) -> bool:
    """Whether an option is declared as one."""
    return getattr(param, "type_descriptor", param).annotation in (int, float)
