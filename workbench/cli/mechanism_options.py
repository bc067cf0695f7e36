"""The options of mechanisms on a command line: which there are, and the mechanism that they make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from itertools import islice
from typing import Any

from typer.core import TyperCommand

from workbench.cli import screen


class Command(TyperCommand):
    """A command which also takes the options of every mechanism; all of these take a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Set aside what is no option of the command, wherever it stands, with its value.

        Whether a mechanism has it is asked when mechanisms are loaded.
        """
        takes_value = {
            name: not getattr(param, "is_flag", False)
            for param in self.get_params(ctx)
            for name in (*param.opts, *param.secondary_opts)
            if name.startswith("-")
        }
        options: list[tuple[str, str]] = []
        rest = []
        words = iter(args)
        for word in words:
            name, equals, text = word.partition("=")
            if name in takes_value or not name.removeprefix("--") or not name.startswith("--"):
                rest.append(word)
                if takes_value.get(name, False) and not equals:
                    rest += islice(words, 1)
                continue
            if not equals:
                text = next(words, "")
            options.append((name, text))
        ctx.meta[__name__] = options
        for name, text in options:
            if text.startswith("--"):
                self.refuse_unknown_options(ctx)
                raise ValueError(f"{name} needs a value, and {text} stands there")
        try:
            return super().parse_args(ctx, rest)
        except Exception:  # a missing option is perhaps one that is misspelt
            self.refuse_unknown_options(ctx)
            raise

    def refuse_unknown_options(self, ctx: Any, chosen: type | None = None) -> None:
        """The parser's own error for the first option that no mechanism has either."""
        from workbench.option_grammar import mechanism_fields, option_name

        unknown = [name for name, _ in ctx.meta[__name__]]
        first = [] if chosen is None else [chosen]
        for classes in (first, each_mechanism()):
            for cls in classes:
                if not unknown:
                    return
                options = {option_name(f) for f in mechanism_fields(cls)}
                unknown = [name for name in unknown if name not in options]
        if unknown:
            super().parse_args(ctx, unknown[:1])

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The usual help, then the mechanisms."""
        from workbench.option_grammar import mechanism_fields, option_help, option_name

        super().format_help(ctx, formatter)
        screen.say(" Mechanisms, and their options:")
        for cls in each_mechanism():
            if not getattr(cls, "idealised", False):
                screen.say(f"\n {cls.__name__}: {(cls.__doc__ or '').splitlines()[0]}")
                for f in mechanism_fields(cls):
                    doc = f.metadata["doc"]
                    screen.say(f"   {option_name(f):10} {option_help(f)}: {doc}")


def chosen_mechanism(ctx: Any, name: str, budget: Any) -> Any:
    """The mechanism of a name, with the options that stand on the command line.

    Parameters
    ----------
    ctx : typer.Context
        Of a `Command`, which has set the options aside.
    name : str
        Of the mechanism, in any capitals.
    budget : DP
        What it may spend.

    Returns
    -------
    Mechanism

    Raises
    ------
    ValueError
        No such mechanism, or options that do not fit it.
    """
    cls = _class_of(name)
    ctx.command.refuse_unknown_options(ctx, cls)
    return _mechanism(cls, budget, ctx.meta[__name__])


def each_mechanism() -> Iterator[type]:
    """The mechanisms that can be asked for, those that are never saved included, as they load."""
    from workbench import mechanisms
    from workbench.plugins import stated_modules

    for name in mechanisms.__all__:
        cls = getattr(mechanisms, name)
        if _takes_a_table(cls):
            yield cls
    for module in stated_modules():
        for x in vars(module).values():
            if _takes_a_table(x) and getattr(mechanisms, x.__name__, None) is not x:
                yield x


def _takes_a_table(x: Any) -> bool:
    """Whether it is a class of mechanisms that take a table, with plain parameters."""
    from workbench.table import SparseTable

    if not isinstance(x, type) or getattr(x, "takes", None) is not SparseTable:
        return False
    return is_dataclass(x) and all("doc" in f.metadata for f in fields(x))


def _class_of(name: str) -> type:
    """The mechanism of a name: ours, or one of another package."""
    from workbench import plugins

    classes = {cls.__name__.lower(): cls for cls in each_mechanism()}
    cls = classes.get(name.lower()) or plugins.find("mechanisms", name)
    if cls is None:
        saved = [c.__name__ for c in classes.values() if not getattr(c, "idealised", False)]
        raise ValueError(f"no mechanism {name!r}; there are: {', '.join(saved)}")
    if not _takes_a_table(cls):
        raise ValueError(
            f"{name} cannot be asked for here: need a mechanism that takes a table of counts, whose "
            "fields are each a parameter(…)"
        )
    return cls


def _mechanism(cls: type, budget: Any, options: list[tuple[str, str]]) -> Any:
    """The mechanism with its own options."""
    from workbench.option_grammar import (
        mechanism_fields,
        option_help,
        option_name,
        parse_option,
    )

    name = cls.__name__
    if getattr(cls, "idealised", False):
        raise ValueError(f"{name} is drawn with floating point: idealised, and never saved")
    declared = {option_name(f): f for f in mechanism_fields(cls)}
    values = {}
    for option, text in options:
        if option not in declared:
            raise ValueError(f"{name} has no option {option}; it has {', '.join(declared)}")
        f = declared[option]
        values[f.name] = parse_option(f"{name}.{f.name}", f, text)
    for option, f in declared.items():
        if f.default is MISSING and f.name not in values:
            raise ValueError(f"{name} needs {option}: {f.metadata['doc']} ({option_help(f)})")
    return cls(budget, **values)
