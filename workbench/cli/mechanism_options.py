"""The options of mechanisms on a command line: which there are, and the mechanism that they make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from difflib import get_close_matches
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.cli import screen
from workbench.cli import screen as command

if TYPE_CHECKING:
    from workbench.cli.request import Request


_QUERIES = {
    "--workload": "FILE, of queries by label, one a line",
    "--marginals": "ORDER|FILE, all marginals on so many attributes, or a file of one a line",
}  # that are stated in one of two ways


class Command(command.Command):
    """A command which also takes the options of every mechanism; all of these take a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Set aside what is no option of the command, wherever it stands, with its value.

        Whether a mechanism has it is asked when mechanisms are loaded.
        """
        ctx.meta[command.GIVEN] = [ctx.info_name, *args]
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
            self.refuse_unknown_options(ctx, _named_mechanism(rest))
            raise

    def refuse_unknown_options(self, ctx: Any, chosen: type | None = None) -> None:
        """A ValueError for the first option that no mechanism has either, with the nearest."""
        unknown = [name for name, _ in ctx.meta[__name__]]
        known = [name for param in self.get_params(ctx) for name in param.opts]
        first = [] if chosen is None else [chosen]
        for cls in chain(first, each_mechanism()):
            if not unknown:
                return
            known += _declared_options(cls)
            unknown = [name for name in unknown if name not in known]
        if unknown:
            near = get_close_matches(unknown[0], known, n=1)
            perhaps = f", perhaps {near[0]}" if near else ""
            raise ValueError(
                f"No such option: {unknown[0]}{perhaps}\nSee: {ctx.command_path} --help"
            )

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The usual help, then the mechanisms."""
        from workbench.mechanisms.options import option_help

        super().format_help(ctx, formatter)
        screen.say(" Mechanisms, and their options:")
        for cls in each_mechanism():
            if not getattr(cls, "idealised", False):
                screen.say(f"\n {cls.__name__}: {(cls.__doc__ or '').splitlines()[0]}")
                for option, f in _declared_options(cls).items():
                    what = _QUERIES.get(option) or f"{option_help(f)}: {f.metadata['doc']}"
                    screen.say(f"   {option:10} {what}")


def _of_ours(name: str) -> type | None:
    """The mechanism of ours of a name, in any capitals; no other is loaded."""
    from workbench import mechanisms

    ours = {ours.lower(): ours for ours in mechanisms.__all__}.get(name.lower())
    return getattr(mechanisms, ours) if ours else None


def _named_mechanism(words: list[str]) -> type | None:
    """The mechanism of ours that `--mechanism` names among the words of a command line."""
    for i, word in enumerate(words):
        option, equals, text = word.partition("=")
        if option == "--mechanism":
            return _of_ours(text if equals else "".join(words[i + 1 : i + 2]))
    return None


def mechanism_class(ctx: Any, name: str) -> type:
    """The mechanism of a name, ours or one of another package; the options that stand there are known.

    Parameters
    ----------
    ctx : typer.Context
        Of a `Command`, which has set the options aside.
    name : str
        Of the mechanism, in any capitals.

    Returns
    -------
    type

    Raises
    ------
    ValueError
        No such mechanism, or one that cannot be asked for here.
    """
    from workbench import compiled

    cls = _of_ours(name)
    if cls is None or not _can_be_asked_for(cls):
        stated = {cls.__name__.lower(): cls for cls in _stated_mechanisms()}
        cls = stated.get(name.lower()) or compiled.find("mechanisms", name)
    if cls is None:
        raise ValueError(_no_such_mechanism(name))
    if not _can_be_asked_for(cls):
        raise ValueError(
            f"{name} cannot be asked for here: need a mechanism that takes a table of counts, records or "
            "interactions, whose fields are each a parameter(…)"
        )
    if getattr(cls, "idealised", False):
        raise ValueError(
            f"{cls.__name__} is drawn with floating point: idealised, and never saved"
        )
    ctx.command.refuse_unknown_options(ctx, cls)
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


def stated_mechanism(ctx: Any, cls: type, request: Request, choice: Choice | None) -> Any:
    """The mechanism with the options that stand on the command line, and the request's budget.

    Parameters
    ----------
    ctx : typer.Context
        Of a `Command`, which has set the options aside.
    cls : type
        Of the mechanism.
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

    name = cls.__name__
    declared = _declared_options(cls)
    typed = list(ctx.meta[__name__])
    if "--bound" in declared and request.bound_text is not None:
        typed.append(("--bound", request.bound_text))
    if choice is not None:
        if choice.option not in declared:
            raise ValueError(_option_of_others(choice.option, name, list(declared)))
        if choice.option in {option for option, _ in typed}:
            raise ValueError(f"{choice.option} is stated and to be chosen: need one of the two")
        typed.append((choice.option, str(choice.candidates[0])))
    values: dict[str, Any] = {}
    for option, text in typed:
        if option not in declared:
            raise ValueError(_option_of_others(option, name, list(declared)))
        f = declared[option]
        if f.name in values:
            raise ValueError(f"{option} is given twice: need it once")
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
    if choice is None:
        return mechanism

    return _chosen(mechanism, choice)


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


def _no_such_mechanism(name: str) -> str:
    """What to say of a name that nothing has: the nearest, and all that there are."""
    saved = [c.__name__ for c in each_mechanism() if not getattr(c, "idealised", False)]
    by_letters = {cls.lower(): cls for cls in saved}
    near = get_close_matches(name.lower(), by_letters, n=1)
    nearest = f", perhaps {by_letters[near[0]]}" if near else ""
    return (
        f"no mechanism {name!r}{nearest}; there are: {', '.join(saved)}, and those of a module of your "
        "own that --with names"
    )


def _declared_options(cls: type) -> dict[str, Field[Any]]:
    """The fields of a mechanism by their options; a workload may also be stated as marginals."""
    from workbench.mechanisms.options import mechanism_fields, option_name

    declared = {option_name(f): f for f in mechanism_fields(cls)}
    if "--workload" in declared:
        declared["--marginals"] = declared["--workload"]
    return declared


def _option_of_others(option: str, name: str, declared: list[str]) -> str:
    """What to say of an option that only other mechanisms have."""
    others = [c.__name__ for c in each_mechanism() if option in _declared_options(c)]
    said = f"{name} has no option {option}; it has {', '.join(declared)}"
    if len(others) > 3:
        return f"{said}; {', '.join(others[:3])} and others have {option}"
    return f"{said}; {' and '.join(others)} would take {option}" if others else said
