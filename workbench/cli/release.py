"""`workbench release`: publish a private summary of a table in a file."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from workbench.cli import screen, show

if TYPE_CHECKING:
    from workbench.domain import Domain
    from workbench.table import Bound, SparseTable

_DOMAIN = """\
The domain says which cells there can be. It is public knowledge and is never learnt from the data.
Write it as a JSON file and name it with --domain, for instance:

  {
    "home": {"file": "counties.txt"},
    "age": {"from": 0, "to": 99},
    "sex": ["F", "M"],
    "hour": 24
  }

an attribute (a column of the table) to a file with one label a line, to whole numbers from … to …,
to a list of labels, or to a number of values 0, 1, 2, …

--domain-from-data takes the values that occur in the file instead. That tells everyone which values
occur, which voids the guarantee: the release then promises nothing."""

_BOUND = """\
The bound says how far one unit (usually one person) can move the table: it adds to at most L0 cells
and at most LINF to each of them. Noise is made to hide that much and no more, so it must be true; it
is never learnt from the data. Somebody with one home and one workplace: --bound 1,1. Up to ten trips,
all of which may be the same: --bound 10,10; with a third number, at most so much in all cells
together: --bound 10,10,10."""


_AGAIN = "every release of the same data adds its ε, also one that replaces another"


class Command(TyperCommand):
    """The command, which also takes the options of every mechanism."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Set the mechanisms' options aside, wherever they stand; the rest is the command's."""
        theirs = {_option(f) for cls in mechanisms(True).values() for f in _options(cls)}
        ctx.meta[__name__], mine, words = (aside := []), [], iter(args)
        for word in words:
            option, equals, text = word.partition("=")
            if option in theirs:
                text = text if equals else next(words, "")
                if text.startswith("--"):
                    raise ValueError(f"{option} needs a value, and {text} stands there")
                aside.append((option, text))
            else:
                mine.append(word)
        return super().parse_args(ctx, mine)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The usual help, then the mechanisms."""
        super().format_help(ctx, formatter)
        screen.say(" Mechanisms, and their options:")
        for name, cls in mechanisms().items():
            screen.say(f"\n {name}: {(cls.__doc__ or '').splitlines()[0]}")
            for f in _options(cls):
                screen.say(f"   {_option(f):10} {_allowed(f)}: {f.metadata['doc']}")


def release(
    ctx: typer.Context,
    table: Annotated[Path, typer.Argument(help="A row a cell: CSV, CSV.gz or Parquet.")],
    out: Annotated[Path, typer.Option(help="The release file to write (Parquet).")],
    epsilon: Annotated[float, typer.Option(help="Privacy loss ε.")],
    mechanism: Annotated[str, typer.Option(help="One of those below.")],
    count: Annotated[
        str | None, typer.Option(help="The column of counts; without it each row counts one.")
    ] = None,
    domain: Annotated[
        Path | None, typer.Option(help="Which cells there can be (JSON); required.")
    ] = None,
    bound: Annotated[
        str | None,
        typer.Option(
            metavar="L0,LINF[,L1]", help="How far one unit moves the table; required."
        ),
    ] = None,
    delta: Annotated[float, typer.Option(help="Failure probability δ.")] = 0.0,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Replayable noise; needs --simulated.")
    ] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Save a release that is not for publication.")
    ] = False,
    domain_from_data: Annotated[
        bool, typer.Option("--domain-from-data", help="Voids the guarantee.")
    ] = False,
) -> None:
    """Release a table of counts under differential privacy.

    Nothing is written, and no noise is drawn, before everything that was asked for has been checked.
    """
    import numpy as np

    from workbench import noise
    from workbench.domain import Domain
    from workbench.labelled_rows import observed_domain
    from workbench.mechanism import refuse_existing
    from workbench.privacy import DP

    if out.exists() and not force:
        raise ValueError(f"{out} exists: choose another name, or --force to overwrite it")
    refuse_existing(out, force)
    if seed is not None and not simulated:
        raise ValueError(
            "--seed makes noise that can be replayed and taken off: leave it out to publish, or add "
            "--simulated to save a release that says so"
        )
    limits = stated_bound(bound)
    chosen = _mechanism(mechanism, DP(epsilon, delta), ctx.meta[__name__])
    if not table.is_file():
        raise FileNotFoundError(f"{table}: no such file")
    if domain_from_data and domain is None:
        space = observed_domain(table, count)
    elif domain is None:
        raise ValueError(f"--domain is missing\n\n{_DOMAIN}")
    elif domain_from_data:
        raise ValueError("--domain and --domain-from-data: need one of them, not both")
    else:
        space = Domain.read(domain)
    private = _read(table, space, count, limits)
    if count:
        screen.say("The counts of rows that name the same cell are summed.")

    made = chosen(private, None if seed is None else np.random.default_rng(seed))
    if domain_from_data:
        receipt = noise.unprotected("domain read off the data")
        made = replace(made, ledger=(receipt, *made.ledger))
    made.save(out, simulated=simulated, force=force)

    told = show.guarantee(made), show.stated(limits), show.sizes(made, out)
    screen.say("\n  ".join(filter(None, (str(out), *told, show.from_nothing(made), _AGAIN))))
    for warning in show.warnings(made):
        screen.warn(f"  {warning}")


def mechanisms(idealised: bool = False) -> dict[str, type]:
    """The mechanisms that can be asked for by name: they take a table and plain parameters.

    Without those that are `idealised`, whose releases are never saved.
    """
    from workbench.mechanisms import ALL
    from workbench.table import SparseTable

    def plain(cls: type) -> bool:
        if getattr(cls, "idealised", False) and not idealised:
            return False
        return cls.takes is SparseTable and all("doc" in f.metadata for f in fields(cls))

    return {cls.__name__: cls for cls in ALL if plain(cls)}


def _options(cls: type) -> list[Field]:
    return [f for f in fields(cls) if f.name != "budget"]


def _option(f: Field) -> str:
    return f"--{f.name.replace('_', '-')}"


def _allowed(f: Field) -> str:
    """What an option takes, and what it is where it is not given."""
    told = f.metadata
    if told["choices"]:
        words = " or ".join(map(_word, told["choices"]))
    elif told["check"]:
        words = (told["check"]("") or "").removeprefix("need a ")
    else:
        words = "whole number" if told["integer"] else "number"
        words += (
            "" if told["low"] is None else f" {'>' if told['strict'] else '>='} {told['low']}"
        )
    words += f" {told['unit']}" * bool(told["unit"])
    if f.default is MISSING:
        return words + ", required"
    return words + ("" if f.default is None else f" [{f.default}]")


def _word(choice: Any) -> str:
    """A choice as it is typed: `dyadic` for Dyadic()."""
    return str(choice).lower().removesuffix("()").replace(" ", "")


def _mechanism(name: str, budget: Any, told: list[tuple[str, str]]) -> Any:
    """The mechanism with its own options."""
    known = mechanisms()
    name = {n.lower(): n for n in mechanisms(True)}.get(name.lower(), name)
    if name not in known and name in mechanisms(True):
        raise ValueError(f"{name} is drawn with floating point: idealised, and never saved")
    if name not in known:
        raise ValueError(f"no mechanism {name!r}; there are: {', '.join(known)}")
    cls, given = known[name], {}
    options = {_option(f): f for f in _options(cls)}
    for option, text in told:
        if option not in options:
            raise ValueError(f"{name} has no option {option}; it has {', '.join(options)}")
        f = options[option]
        words = {_word(c): c for c in f.metadata["choices"]}
        given[f.name] = words.get(text.lower().replace(" ", ""), text)
        if not words:
            plain = f.metadata["check"] is None or text.strip("0123456789.+-e") == ""
            given[f.name] = number(f"{name}.{f.name}", text) if plain else text
    for option, f in options.items():
        if f.default is MISSING and f.name not in given:
            raise ValueError(f"{name} needs {option}: {f.metadata['doc']} ({_allowed(f)})")
    return cls(budget, **given)


def number(what: str, text: str) -> int | float:
    """A number as it is typed."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    raise ValueError(f"{what} = {text!r} is not allowed: need a number")


def stated_bound(text: str | None) -> Bound:
    """A bound as it is typed: L0,LINF or L0,LINF,L1."""
    from workbench.table import Bound

    if text is None:
        raise ValueError(f"--bound is missing\n\n{_BOUND}")
    parts = text.split(",")
    if len(parts) not in (2, 3):
        raise ValueError(f"--bound {text!r}: need L0,LINF or L0,LINF,L1\n\n{_BOUND}")
    return Bound(*(number("--bound", part.strip()) for part in parts))


def _read(path: Path, domain: Domain, count: str | None, bound: Bound) -> SparseTable:
    """The table; rows of the same cell add up.

    A cell outside the domain, or a count that is none, is named by file and line.
    """
    import numpy as np

    from workbench.labelled_rows import read_table_file
    from workbench.table import SparseTable

    if count in domain.attributes:
        raise ValueError(
            f"--count {count!r} is an attribute of the domain: need another column"
        )
    rows = read_table_file(path, [*domain.attributes, *([count] if count else [])])
    keys = domain.keys(rows.domain_codes(domain))
    counts = rows.counts(count) if count else np.ones(len(keys), np.int64)
    return SparseTable.from_keys(domain, keys, counts, bound)
