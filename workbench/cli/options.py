"""Conversion of Python functions to commands, and the options that several commands share."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, is_dataclass
from inspect import Parameter, Signature, cleandoc, signature
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from workbench.mechanisms.options import parse_box, parse_numbers
from workbench.privacy import DP, ZCDP
from workbench.privacy.budgets import LARGE, LARGE_EPSILON, as_epsilon

if TYPE_CHECKING:
    from workbench.owner.scale.dask import Cluster
    from workbench.spaces import Hierarchy


# Commands


def command(
    run: Callable[..., None], without: str = "", more: Sequence[Parameter] = (), **fixed: Any
) -> Callable[..., None]:
    """Convert a function to a command. The function's docstring becomes the help of the command.

    Positional parameters of the function become arguments, and keyword-only parameters become options. The
    docstring explains each of them. After the name of a parameter and a colon, it can give a placeholder for
    the value, or another name for the option. Sections of the docstring become sections of the help. If the
    first parameter is a dataclass, each field of this class becomes an option of the command.

    Parameters
    ----------
    run : callable
        Function that does the work of the command.
    without : str
        Names of fields of the dataclass that do not become options.
    more : sequence of Parameter
        Further options, which the function takes as `**given`.
    **fixed
        Fixed arguments of the function, which do not become options.
    """
    hints = get_type_hints(run, include_extras=True)
    stated = signature(run).parameters.values()
    own = [p for p in stated if p.kind is not p.VAR_KEYWORD and hints[p.name] is not type]
    help, told = _described(run.__doc__)
    record: Any = hints[own[0].name] if own else None
    is_record = is_dataclass(record)
    fields = []
    if is_record:
        fields = [
            p for p in signature(record).parameters.values() if p.name not in without.split()
        ]
        own[:1] = fields
        hints |= get_type_hints(record, include_extras=True)
        for cls in record.__mro__:
            told |= _described(cls.__doc__)[1]

    def command(**given: Any) -> None:
        if is_record:
            run(record(**{p.name: given.pop(p.name) for p in fields}), **given, **fixed)
        else:
            run(**given)

    command.__signature__ = Signature(  # type: ignore[attr-defined]
        [*(_parameter(p, hints[p.name], *told.get(p.name, ())) for p in own), *more]
    )
    command.__name__ = run.__name__
    command.__doc__ = help
    return command


def option_of(name: str) -> str:
    """Return the name of the option for a parameter, for example --with-replacement for with_replacement."""
    return f"--{name.replace('_', '-')}"


def _described(doc: str | None) -> tuple[str, dict[str, tuple[str, str, str]]]:
    """Split a docstring. Return its text, and a dictionary of its parameters. For each parameter, the
    dictionary contains the section, the words after the name, and the explanation.
    """
    text, *sections = re.split(r"\n\n(.+)\n-+\n", cleandoc(doc or ""))
    help = "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
    found = {}
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        for name, how, words in re.findall(r"^(\w+)(?: : (.+))?\n((?:    .+\n?)+)", body, re.M):
            found[name] = title, how, " ".join(words.split())
    return help, found


def _parameter(p: Parameter, kind: Any, title: str = "", how: str = "", help: str = "") -> Any:
    """Return a parameter in the form that the library typer uses."""
    if kind is typer.Context:
        return p.replace(kind=Parameter.KEYWORD_ONLY, annotation=kind)
    words = how.split(" ")
    names = [word for word in words if word.startswith("-")]
    kind, *notes = get_args(kind) if hasattr(kind, "__metadata__") else [kind]
    make = typer.Option if p.kind is Parameter.KEYWORD_ONLY else typer.Argument
    note: Any = copy(notes[0]) if notes else make()
    if p.default is False:
        names = names or [option_of(p.name)]
    if note.parser is not None:
        note.parser = parser(note.parser, names[0] if names else option_of(p.name))
    note.param_decls = names or note.param_decls
    note.metavar = " ".join(word for word in words if word not in names) or note.metavar
    note.help = help or note.help
    if title not in ("", "Parameters"):
        note.rich_help_panel = title
    return p.replace(kind=Parameter.KEYWORD_ONLY, annotation=Annotated[kind, note])


def take(option: str, args: list[str]) -> tuple[list[str], list[str]]:
    """Find an option anywhere in a command line. Return the values of the option, and the other words of the
    line.
    """
    values, rest = [], []
    words = iter(args)
    for word in words:
        name, equals, text = word.partition("=")
        if name == option:
            values.append(text if equals else next(words, ""))
        else:
            rest.append(word)
    if "" in values:
        raise ValueError(f"{option} needs a name")
    return values, rest


UsageError: Any = typer.BadParameter.__base__


def parser(parse: Callable[..., Any], *about: Any) -> Callable[[str], Any]:
    """Return a parser for the value of an option. If the value is invalid, the command prints only the error
    message.
    """

    def parsed(text: str) -> Any:
        try:
            return parse(*about, text)
        except ValueError as e:
            raise UsageError(str(e)) from None

    return parsed


Port = Annotated[
    int,
    typer.Option(min=1, max=65535, help="Port. If it is in use, the next free port is used."),
]
Positive = Annotated[int | None, typer.Option(min=1)]
Seed = Annotated[int | None, typer.Option(min=0)]
File = Annotated[Path, typer.Argument(exists=True, dir_okay=False)]
Folder = Annotated[Path | None, typer.Option(exists=True, file_okay=False, resolve_path=True)]
Numbers = Annotated[Any, typer.Option(parser=parse_numbers)]  # separated by commas


def connected(scheduler: str, insecure: bool) -> Cluster:
    """Connect to a cluster, and return its executor. If Dask is not installed, raise a ValueError that says
    how to install it.
    """
    try:
        from workbench.owner.scale.dask import connect
    except ImportError:
        raise ValueError("--scheduler needs Dask: pip install 'dp-workbench[dask]'") from None
    return connect(scheduler, insecure=insecure)


@dataclass(frozen=True, kw_only=True)
class StatedSpace:
    """Options that describe a space of points, strings or codes. At most one of box, strings and taxonomy may
    be given.

    Points, strings or codes
    ------------------------
    box : X=LOW..HIGH,Y=…
        Columns with the coordinates of points, and the range of values of each column.
    levels
        Number of times that the box of points may be halved in each dimension.
    strings : COLUMN
        Column that contains strings.
    length
        Largest allowed length of a string, in symbols.
    alphabet : SYMBOLS
        Symbols that strings may contain, in order. By default a–z, 0–9, full stop and space.
    taxonomy : FILE
        CSV file that lists all codes. Next to each code is the code of its group, or nothing for the largest
        groups.
    code : COLUMN
        Column of the table that contains codes from --taxonomy.
    """

    box: str | None = None
    levels: Annotated[int, typer.Option(min=1, max=52)] = 20
    strings: str | None = None
    length: Annotated[int, typer.Option(min=1, max=128)] = 20
    alphabet: str | None = None
    taxonomy: Path | None = None
    code: str = "code"

    def __post_init__(self) -> None:
        stated = {"--box": self.box, "--strings": self.strings, "--taxonomy": self.taxonomy}
        need_one(stated, least=0)

    @property
    def has_space(self) -> bool:
        """Whether the options describe points, strings or codes."""
        return (self.box, self.strings, self.taxonomy) != (None, None, None)

    def hierarchy(self) -> Hierarchy:
        """Return the hierarchy of points, strings or codes that the options describe."""
        from workbench.spaces import SYMBOLS, Prefixes, Quadtree, Taxonomy

        if self.box is not None:
            sides = parse_box(self.box)
            low, high = zip(*sides.values(), strict=True)
            return Quadtree(len(sides), self.levels, low, high, tuple(sides))
        if self.strings is not None:
            alphabet = SYMBOLS if self.alphabet is None else self.alphabet
            return Prefixes(alphabet, self.length, self.strings)
        taxonomy: Any = self.taxonomy  # the one that is left
        return Taxonomy.read(taxonomy, self.code)


def taken(run: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the given options that are parameters of a function."""
    return {name: x for name, x in given.items() if name in signature(run).parameters}


PRICE = ". --rho is for mechanisms with Gaussian noise"


def need_one(given: Mapping[str, Any], hint: str = "", least: int = 1) -> None:
    """Raise a ValueError unless exactly one of some options is given. If `least` is 0, it is also allowed to
    give none of them.
    """
    names = [name for name, x in given.items() if x is not None and x is not False]
    if not least <= len(names) <= 1:
        raise ValueError(f"{' or '.join(names or given)}: need exactly one of them{hint}")


def refuse_unmeant(cost: DP | ZCDP, beside: float, meant: bool) -> None:
    """Raise a ValueError if ε is above 10 and the user did not confirm this.

    Parameters
    ----------
    cost : DP or ZCDP
        Largest cost of a release or a budget. A ρ is converted to its ε at δ = 10⁻⁶.
    beside : float
        Sum of the ε of everything that is released in addition.
    meant : bool
        Whether the user gave the option --epsilon-is-meant.
    """
    from workbench.value import stated

    epsilon = as_epsilon(cost) + beside
    if not LARGE_EPSILON < epsilon < inf:
        return
    if meant:
        warnings.filterwarnings("ignore", re.escape(LARGE))
        return
    rho = "" if hasattr(cost, "epsilon") else f", at δ = 0.000001 for ρ = {stated(cost.rho)},"
    raise ValueError(
        f"ε = {stated(epsilon)}{rho} protects little: an observer's odds about one person can grow by a "
        "factor of e^ε, which at ε = 10 is 22,026. Choose at most ε = 10 or, if you mean it, add "
        "--epsilon-is-meant"
    )
