"""The options of a mechanism on the command line: what they are, and what they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from inspect import Parameter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench import compiled, mechanisms
from workbench.compiled import stated_modules
from workbench.mechanisms.options import (
    mechanism_fields,
    option_help,
    option_name,
    option_need,
    parse_numbers,
    parse_option,
)
from workbench.value import did_you_mean

if TYPE_CHECKING:
    from workbench.cli.request import Request


_QUERIES = {
    "--workload": "FILE, of queries by label, one a line",
    "--marginals": "ORDER|FILE, all marginals on so many attributes, or a file of one a line",
}  # that are stated in one of two ways
_MARGINALS = {"--initial": "--marginals"}  # stated in the same way
_ONLY = {
    "Interactions": "item context",
    "Records": "box levels strings length alphabet taxonomy code",
}  # options of the mechanisms that take such data


def left_out(cls: type) -> str:
    """Return the names of options that only mechanisms of other data have."""
    takes: Any = cls.takes  # type: ignore[attr-defined]
    return " ".join(names for kind, names in _ONLY.items() if kind != takes.__name__)


def overview(command: str) -> str:
    """Return every mechanism that can be saved, by family, one line each."""
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


def own_parameters(cls: type) -> list[Parameter]:
    """Return the options that a mechanism adds, as the parser takes them."""
    parameters = []
    for option, f in _own_options(cls).items():
        what = f"{f.metadata['doc'][:1].upper()}{f.metadata['doc'][1:]}"
        note = typer.Option(
            option,
            metavar="VALUE",
            help=_QUERIES.get(_MARGINALS.get(option, option)) or f"{what}: {option_need(f)}.",
            show_default=False if f.default in (MISSING, None) else str(f.default),
            rich_help_panel=f"Of {cls.__name__}",
        )
        kind = Annotated[str | None, note]
        name = _python_name(option)
        parameters.append(
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        )
    return parameters


def _python_name(option: str) -> str:
    return "own_" + option.removeprefix("--").replace("-", "_")


def _own_options(cls: type) -> dict[str, Field[Any]]:
    """Return the options of a mechanism that are not those of every one."""
    return {option: f for option, f in declared_options(cls).items() if option != "--bound"}


def refuse_options_of_others(cls: type, words: list[str], known: list[str]) -> None:
    """Raise a ValueError for the first option that only other mechanisms have, or none."""
    for word in words:
        option = word.partition("=")[0]
        if option.startswith("--") and option not in {*known, "--", "--help"}:
            others = [c.__name__ for c in each_mechanism() if option in _all_options(c)]
            if not others:
                raise ValueError(f"No such option: {option}{did_you_mean(option, known)}")
            own = ", ".join(_own_options(cls)) or "none of its own"
            raise ValueError(
                f"{cls.__name__} has no option {option}; it has {own}; {option} is for "
                f"{', '.join(others)}"
            )


def _all_options(cls: Any) -> list[str]:
    only = _ONLY.get(cls.takes.__name__, "")
    return [*declared_options(cls), *(f"--{name}" for name in only.split())]


def find_mechanism(name: str) -> type | None:
    """Return the mechanism of a name: ours, one of a module that --with names, or another package's."""
    ours = {ours.lower(): ours for ours in mechanisms.__all__}.get(name.lower())
    cls = getattr(mechanisms, ours) if ours else None
    return cls if _can_be_asked_for(cls) else compiled.find("mechanisms", name)


def mechanism_class(name: str) -> type:
    """Return the mechanism of a name, in any capitals, or raise a ValueError if none can be asked for by it."""
    cls = find_mechanism(name)
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


def _stated_choice(
    name: str, request: Request, typed: Mapping[str, str]
) -> tuple[str, list[Any]]:
    """Return the option to choose from the data and its candidates.

    A ValueError if no score is proven for it.
    """
    if request.choose is None or request.choose_epsilon is None:
        raise ValueError(
            "--choose and --choose-epsilon need each other: candidates that you state, and what it may "
            "cost to choose one by the data"
        )
    field, equals, numbers = request.choose.partition("=")
    option = f"--{field.strip()}"
    if not (field and equals):
        raise ValueError(
            f"--choose {request.choose!r}: need an option and candidates, as l=1,3,10,30"
        )
    if option in typed:
        raise ValueError(f"{option} is stated and to be chosen: need one of the two")
    if option != f"--{_CHOSEN.get(name)}" or "--transform" in typed:
        others = ", ".join(f"{x} of {cls}" for cls, x in _CHOSEN.items())
        raise ValueError(
            f"--choose {field}: nobody has proven how far a user moves a score of it for {name}. The data "
            f"choose {others} (without a transform); state all else"
        )
    return option, parse_numbers("--choose", numbers)


def stated_mechanism(cls: Any, request: Request, own: Mapping[str, str | None]) -> Any:
    """Return the mechanism with the options that stand on the command line, and the request's budget.

    Parameters
    ----------
    cls : type
        Of the mechanism.
    request : Request
        Whose `--bound` is the mechanism's own where it limits the records of a user.
    own : mapping
        What was typed of the options of `own_parameters`.

    Returns
    -------
    Mechanism

    Raises
    ------
    ValueError
        Options that do not fit it.
    """
    name = cls.__name__
    declared = declared_options(cls)
    given = {x: own.get(_python_name(x)) for x in declared}
    if "--bound" in declared:
        given["--bound"] = request.bound_text
    typed = {x: text for x, text in given.items() if text is not None}
    is_chosen = (request.choose, request.choose_epsilon) != (None, None)
    if is_chosen:
        option, candidates = _stated_choice(name, request, typed)
        typed[option] = str(candidates[0])
    if {*_QUERIES} <= {*typed}:
        raise ValueError(f"{' and '.join(_QUERIES)} are both given: need one of them")
    values: dict[str, Any] = {}
    for option, text in typed.items():
        f = declared[option]
        stated_as = _MARGINALS.get(option, option)
        if stated_as in _QUERIES:
            values[f.name] = request.workload(stated_as, text)
        else:
            values[f.name] = parse_option(f"{name}.{f.name}", f, text)
    for option, f in declared.items():
        if f.default is MISSING and f.name not in values:
            if f.name == "workload":
                ways = "; ".join(f"{x} {what}" for x, what in _QUERIES.items())
                raise ValueError(f"{name} needs queries: {ways}")
            raise ValueError(f"{name} needs {option}: {f.metadata['doc']} ({option_help(f)})")
    mechanism = cls(request.budget_for(cls), **values)
    if not is_chosen:
        return mechanism
    from workbench.mechanisms import ChosenContributions, ChosenThreshold

    chosen: Any = ChosenThreshold if name == "HighPassFilter" else ChosenContributions
    return chosen(mechanism, tuple(candidates), request.choose_epsilon)


def each_mechanism() -> Iterator[type]:
    """Yield the mechanisms that can be asked for, those that are never saved included, as they load."""
    for name in mechanisms.__all__:
        if _can_be_asked_for(cls := getattr(mechanisms, name)):
            yield cls
    for module in stated_modules():
        for x in vars(module).values():
            if _can_be_asked_for(x) and not x.__module__.startswith("workbench.mechanisms."):
                yield x


def _can_be_asked_for(x: Any) -> bool:
    """Return whether it is a class of mechanisms with plain parameters, whose data a command can read."""
    from workbench.data import Interactions, Records, SparseTable, UnlistedValues

    takes = getattr(x, "takes", None)
    kinds = (SparseTable, Records, Interactions, UnlistedValues)
    if not isinstance(x, type) or takes not in kinds:
        return False
    return is_dataclass(x) and all(
        "doc" in f.metadata and f.name != "mechanism" for f in fields(x)
    )


def declared_options(cls: type) -> dict[str, Field[Any]]:
    """Return the fields of a mechanism by their options; a workload may also be stated as marginals."""
    declared = {option_name(f): f for f in mechanism_fields(cls)}
    if "--workload" in declared:
        declared["--marginals"] = declared["--workload"]
    return declared
