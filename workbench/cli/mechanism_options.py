"""`release` has the options of the mechanism that it is asked for: these, their help, and what they make."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import MISSING, Field, fields, is_dataclass
from inspect import Parameter, Signature
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from workbench.cli import options, screen
from workbench.value import did_you_mean

if TYPE_CHECKING:
    from workbench.cli.request import Request


_QUERIES = {
    "--workload": "FILE, of queries by label, one a line",
    "--marginals": "ORDER|FILE, all marginals on so many attributes, or a file of one a line",
}  # that are stated in one of two ways
_MECHANISM = f"{__name__}.mechanism"  # in the context: its class,
_OWN = f"{__name__}.own"  # and what was typed of its own options, by their names
_HELP = {"-h", "--help"}


class Command(screen.Command):
    """A command whose first word is a mechanism, and which has that mechanism's options too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Find the mechanism before anything else is asked; its own options are set aside."""
        ctx.meta[screen.GIVEN] = [ctx.info_name, *args]
        name, rest = self._named(ctx, args)
        if name is None:
            return super().parse_args(ctx, ["--help"])
        cls = mechanism_class(name)
        ctx.meta[_MECHANISM] = cls
        ctx.info_name = f"{ctx.info_name} {cls.__name__}"
        _refuse_options_of_others(cls, rest, [x for p in self.get_params(ctx) for x in p.opts])
        left = super().parse_args(ctx, rest)
        own = {option: ctx.params.pop(_python_name(option)) for option in _added_options(cls)}
        ctx.meta[_OWN] = {option: text for option, text in own.items() if text is not None}
        return left

    def _named(self, ctx: Any, args: list[str]) -> tuple[str | None, list[str]]:
        """The mechanism that the words name, and the other words; None where help is asked of all."""
        params = self.get_params(ctx)
        flags = {x for p in params if getattr(p, "is_flag", False) for x in p.opts}
        named, rest = [], []
        first = None  # place of the first word that is no option, nor the value of one
        words = iter(args)
        for word in words:
            option, equals, text = word.partition("=")
            if option == "--mechanism":
                named.append(text if equals else next(words, ""))
                continue
            rest.append(word)
            if not word.startswith("-"):
                first = len(rest) - 1 if first is None else first
            elif not equals and option not in flags | _HELP:
                rest += islice(words, 1)
        if len(named) > 1:
            raise ValueError("--mechanism is given twice: need it once")
        word = "" if first is None else rest[first]
        if named:
            if word and not Path(word).exists() and _found(word):
                raise ValueError(f"{word} and --mechanism {named[0]}: need one mechanism")
            return named[0], rest
        if word and (_found(word) or not Path(word).exists()):
            assert first is not None
            return word, rest[:first] + rest[first + 1 :]
        if _HELP & {*args}:
            return None, rest
        raise ValueError(
            "which mechanism? Name it first: workbench release MECHANISM TABLE… --out FILE\n"
            f"See: {ctx.command_path} --help"
        )

    def get_params(self, ctx: Any) -> list[Any]:
        """Those of all mechanisms, and those of the one that is asked for."""
        cls = ctx.meta.get(_MECHANISM)
        return super().get_params(ctx) + ([] if cls is None else _click_options(cls))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The options of a mechanism; before one is named, which there are."""
        from workbench.data import Interactions, Records

        cls = ctx.meta.get(_MECHANISM)
        if cls is None:
            screen.say(_overview(ctx.command_path))
            return
        takes: dict[Any, type] = {options.PEOPLE: Interactions, options.SPACE: Records}
        shown: Any = copy(self)
        shown.help = (cls.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        shown.get_params = lambda ctx: [
            p
            for p in self.get_params(ctx)
            if takes.get(getattr(p, "rich_help_panel", None), cls.takes) is cls.takes
        ]
        screen.Command.format_help(shown, ctx, formatter)


def _overview(command: str) -> str:
    """Every mechanism that can be saved, by family, a line each."""
    from workbench import mechanisms

    lines = [
        f"Usage: {command} MECHANISM TABLE... --out FILE [OPTIONS]",
        "",
        "Release a table of counts, records or interactions under differential privacy.",
        "For the options of a mechanism, name it, for example:",
        f"  {command} HighPassFilter --help",
        "",
    ]
    families = dict(mechanisms.FAMILIES)
    ours = [*each_mechanism()]
    others = [cls.__name__ for cls in ours if cls.__name__ not in mechanisms.__all__]
    if others:
        families["of --with"] = others
    by_name = {cls.__name__: cls for cls in ours if not getattr(cls, "idealised", False)}
    for name in (name for names in families.values() for name in names if name in by_name):
        lines.append(f" {name:26}{(by_name[name].__doc__ or '').splitlines()[0]}")
    lines += [
        "",
        "Use --with MODULE to add the mechanisms of your own module.",
        "Write ./NAME for a file that has the name of a mechanism.",
    ]
    return "\n".join(lines)


def _click_options(cls: type) -> list[Any]:
    """The options that a mechanism adds, as the parser knows them."""
    from workbench.mechanisms.options import option_need

    parameters = []
    for option, f in _added_options(cls).items():
        what = f"{f.metadata['doc'][:1].upper()}{f.metadata['doc'][1:]}"
        what = _QUERIES.get(option) or f"{what}: {option_need(f)}."
        default = None if f.default in (MISSING, None) else str(f.default)
        note = typer.Option(option, metavar="VALUE", help=what, show_default=default or False)
        note.rich_help_panel = f"Of {cls.__name__}"
        kind = Annotated[str | None, note]
        named = _python_name(option)
        parameters.append(
            Parameter(named, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        )

    def added(**given: str | None) -> None: ...

    added.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    app = typer.Typer(add_completion=False)
    app.command()(added)
    command: Any = typer.main.get_command(app)
    return [param for param in command.params if param.name.startswith("own_")]


def _python_name(option: str) -> str:
    return "own_" + option.removeprefix("--").replace("-", "_")


def _added_options(cls: type) -> dict[str, Field[Any]]:
    """The options of a mechanism that are not those of every one."""
    return {option: f for option, f in declared_options(cls).items() if option != "--bound"}


def _refuse_options_of_others(cls: type, words: list[str], known: list[str]) -> None:
    """A ValueError for the first option that only other mechanisms have, or none."""
    for word in words:
        option = word.partition("=")[0]
        if option.startswith("--") and option != "--" and option not in {*known, *_HELP}:
            others = [c.__name__ for c in each_mechanism() if option in declared_options(c)]
            if not others:
                raise ValueError(f"No such option: {option}{did_you_mean(option, known)}")
            own = ", ".join(_added_options(cls)) or "none of its own"
            raise ValueError(
                f"{cls.__name__} has no option {option}; it has {own}; {option} is for "
                f"{', '.join(others)}"
            )


def _found(name: str) -> type | None:
    """The mechanism of a name: ours, one of a module that --with names, or another package's."""
    from workbench import compiled, mechanisms

    ours = {ours.lower(): ours for ours in mechanisms.__all__}.get(name.lower())
    cls = getattr(mechanisms, ours) if ours else None
    if cls is not None and _can_be_asked_for(cls):
        return cls
    stated = {cls.__name__.lower(): cls for cls in _stated_mechanisms()}
    return stated.get(name.lower()) or compiled.find("mechanisms", name)


def mechanism_class(name: str) -> type:
    """The mechanism of a name, in any capitals; a ValueError if none can be asked for by it."""
    cls = _found(name)
    if cls is None:
        saved = [c.__name__ for c in each_mechanism() if not getattr(c, "idealised", False)]
        raise ValueError(f"no mechanism {name!r}{did_you_mean(name, saved)}")
    if not _can_be_asked_for(cls):
        raise ValueError(
            f"{name} cannot be asked for here: need a mechanism that takes a table of counts, records or "
            "interactions, whose fields are each a parameter(…)"
        )
    if getattr(cls, "idealised", False):
        raise ValueError(
            f"{cls.__name__} is drawn with floating point: idealised, and never saved"
        )
    return cls


_CHOSEN = {"SRA": "l", "HPA": "l", "LPA": "bound", "HighPassFilter": "theta"}  # by the data


class Choice(NamedTuple):
    """Candidates for an option of a mechanism, and what choosing among them costs."""

    option: str
    candidates: tuple[Any, ...]
    epsilon: float


def stated_choice(text: str | None, epsilon: float | None) -> Choice | None:
    """What `--choose` and `--choose-epsilon` say together; a ValueError if one says nothing."""
    from workbench.mechanisms.options import parse_numbers

    if text is None and epsilon is None:
        return None
    if text is None or epsilon is None:
        raise ValueError(
            "--choose and --choose-epsilon need each other: candidates that you state, and what it may "
            "cost to choose one by the data"
        )
    name, equals, numbers = text.partition("=")
    if not (name and equals):
        raise ValueError(f"--choose {text!r}: need an option and candidates, as l=1,3,10,30")
    return Choice(f"--{name.strip()}", tuple(parse_numbers("--choose", numbers)), epsilon)


def stated_mechanism(ctx: Any, request: Request, choice: Choice | None) -> Any:
    """The mechanism with the options that stand on the command line, and the request's budget.

    Parameters
    ----------
    ctx : typer.Context
        Of a `Command`, which has set the options aside.
    request : Request
        Whose `--bound` is the mechanism's own where it limits the records of a user.
    choice : Choice, optional
        What of it the data choose.

    Returns
    -------
    Mechanism

    Raises
    ------
    ValueError
        Options that do not fit it.
    """
    from workbench.mechanisms.options import option_help, parse_option

    cls = asked_mechanism(ctx)
    name = cls.__name__
    declared = declared_options(cls)
    typed = dict(ctx.meta[_OWN])
    if "--bound" in declared and request.bound_text is not None:
        typed["--bound"] = request.bound_text
    if choice is not None:
        if choice.option not in declared:
            raise ValueError(
                f"{name} has no option {choice.option}; it has {', '.join(declared)}"
            )
        if choice.option in typed:
            raise ValueError(f"{choice.option} is stated and to be chosen: need one of the two")
        typed[choice.option] = str(choice.candidates[0])
    if {*_QUERIES} <= {*typed}:
        raise ValueError(f"{' and '.join(_QUERIES)} are both given: need one of them")
    values: dict[str, Any] = {}
    for option, text in typed.items():
        f = declared[option]
        if f.name == "workload":
            values[f.name] = request.workload(option, text)
        else:
            values[f.name] = parse_option(f"{name}.{f.name}", f, text)
    for option, f in declared.items():
        if f.default is MISSING and f.name not in values:
            if f.name == "workload":
                ways = "; ".join(f"{x} {what}" for x, what in _QUERIES.items())
                raise ValueError(f"{name} needs queries: {ways}")
            raise ValueError(f"{name} needs {option}: {f.metadata['doc']} ({option_help(f)})")
    mechanism = cls(request.budget_for(cls), **values)
    return mechanism if choice is None else _chosen(mechanism, choice)


def asked_mechanism(ctx: Any) -> Any:
    """The class that the command names."""
    return ctx.meta[_MECHANISM]


def _chosen(mechanism: Any, choice: Choice) -> Any:
    """The mechanism of which the data choose a field; a ValueError where no score is proven for it."""
    from workbench.mechanisms import ChosenContributions, ChosenThreshold

    name = type(mechanism).__name__
    chosen = {"HighPassFilter": ChosenThreshold}.get(name, ChosenContributions)
    field = _CHOSEN.get(name)
    if choice.option != f"--{field}" or getattr(mechanism, "transform", None) is not None:
        others = ", ".join(f"{x} of {cls}" for cls, x in _CHOSEN.items())
        raise ValueError(
            f"--choose {choice.option[2:]}: nobody has proven how far a user moves a score of it for "
            f"{name}. The data choose {others} (without a transform); state all else"
        )
    return chosen(mechanism, choice.candidates, choice.epsilon)


def each_mechanism() -> Iterator[type]:
    """The mechanisms that can be asked for, those that are never saved included, as they load."""
    from workbench import mechanisms

    ours = (getattr(mechanisms, name) for name in mechanisms.__all__)
    yield from filter(_can_be_asked_for, ours)
    yield from _stated_mechanisms()


def _stated_mechanisms() -> Iterator[type]:
    """Those of the modules that `--with` names."""
    from workbench.compiled import stated_modules

    for module in stated_modules():
        for x in vars(module).values():
            if _can_be_asked_for(x) and not x.__module__.startswith("workbench.mechanisms."):
                yield x


def _can_be_asked_for(x: Any) -> bool:
    """Whether it is a class of mechanisms with plain parameters, whose data a command can read."""
    from workbench.data import Interactions, Records, SparseTable

    takes = getattr(x, "takes", None)
    if not isinstance(x, type) or takes not in (SparseTable, Records, Interactions):
        return False
    return is_dataclass(x) and all("doc" in f.metadata for f in fields(x))


def declared_options(cls: type) -> dict[str, Field[Any]]:
    """The fields of a mechanism by their options; a workload may also be stated as marginals."""
    from workbench.mechanisms.options import mechanism_fields, option_name

    declared = {option_name(f): f for f in mechanism_fields(cls)}
    if "--workload" in declared:
        declared["--marginals"] = declared["--workload"]
    return declared
