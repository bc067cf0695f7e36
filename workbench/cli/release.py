"""`workbench release`: publish a private summary of a table in a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import MISSING, Field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from workbench.cli import screen, show

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

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
        space = _domain_of(table, count)
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

    from workbench.table import SparseTable

    if count in domain.attributes:
        raise ValueError(
            f"--count {count!r} is an attribute of the domain: need another column"
        )
    frame = _text(path, [*domain.attributes, *([count] if count else [])])
    codes = [_codes(path, frame[name], domain) for name in domain.attributes]
    keys = domain.keys(np.stack(codes, axis=1))
    counts = _counts(path, frame[count]) if count else np.ones(len(frame), np.int64)
    return SparseTable.from_keys(domain, keys, counts, bound)


def _codes(path: Path, column: pl.Series, domain: Domain) -> np.ndarray:
    """The codes of an attribute's column."""
    import polars as pl

    words = domain.labels and domain.labels[domain.axis(column.name)]
    if words is None or isinstance(words, range):
        span = words or range(domain.shape[domain.axis(column.name)])
        whole = column.cast(pl.Int64, strict=False)
        outside = ~whole.is_between(span.start, span[-1]).fill_null(False)
        _refuse(path, column, outside, f"a whole number from {span.start} to {span[-1]}")
        return domain.encode(column.name, whole.to_numpy())
    found = column.unique()
    codes = domain.encode(column.name, found.to_list())
    codes = column.replace_strict(found, codes, default=-1, return_dtype=pl.Int64)
    some = ", ".join(str(w) for w in words[:8]) + ", …" * (len(words) > 8)
    _refuse(path, column, codes < 0, f"a value of the domain ({some})")
    return codes.to_numpy()


def _counts(path: Path, column: pl.Series) -> np.ndarray:
    """Whole numbers, also where they are written 3.0."""
    import polars as pl

    number = column.cast(pl.Float64, strict=False)
    whole = (number >= 0) & (number <= 2**53) & (number == number.floor())
    _refuse(path, column, ~whole.fill_null(False), "a whole number >= 0")
    return number.cast(pl.Int64).to_numpy()


def _refuse(path: Path, column: pl.Series, bad: pl.Series, need: str) -> None:
    """A ValueError about the first bad row, if there is one."""
    row = bad.arg_max() if bad.any() else None
    if row is not None:
        found = "nothing" if column[row] is None else repr(column[row])
        raise ValueError(
            f"{path}, {_line(path, row)}, column {column.name!r}: found {found}, need {need}"
        )


def _text(path: Path, columns: list[str] | None = None) -> pl.DataFrame:
    """The columns of a file (all, if none are named) as text; empty fields are null."""
    import polars as pl

    try:
        if path.suffix == ".parquet":
            there = list(pl.read_parquet_schema(path))
        else:
            there = pl.read_csv(path, n_rows=0, infer_schema=False).columns
        if absent := [name for name in columns or () if name not in there]:
            raise ValueError(f"{path} has no column {', '.join(absent)}: it has {there}")
        if path.suffix == ".parquet":
            return pl.read_parquet(path, columns=columns).select(pl.all().cast(pl.String))
        frame = pl.read_csv(path, columns=columns, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError) as e:
        why = str(e).splitlines()[0]
        raise ValueError(f"{path}{_ragged(path)}: it cannot be read ({why})") from None
    frame = frame.with_columns(pl.all().str.strip_chars().replace("", None))
    told = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series().arg_true()
    return frame.head(told[-1] + 1 if len(told) else 0)  # without empty lines at the end


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The records of a CSV file with the lines they end on; only for saying where something is."""
    import csv
    import gzip

    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as file:
        records = csv.reader(file)
        for record in records:
            yield records.line_num, record


def _line(path: Path, row: int) -> str:
    """Where the row (from 0) of a file stands."""
    if path.suffix == ".parquet":
        return f"row {row + 1}"
    return f"line {next(line for i, (line, _) in enumerate(_lines(path)) if i == row + 1)}"


def _ragged(path: Path) -> str:
    """Where a CSV file first has more fields than its header names."""
    with suppress(OSError, EOFError, StopIteration, ValueError):
        lines = _lines(path)
        wide = len(next(lines)[1])
        return f", line {next(line for line, record in lines if len(record) > wide)}"
    return ""


def _domain_of(path: Path, count: str | None) -> Domain:
    """The values that occur, which is not public knowledge."""
    from workbench.domain import Domain

    frame = _text(path)
    columns = [frame[name] for name in frame.columns if name != count]
    if not len(frame) or not columns:
        raise ValueError(f"{path} holds nothing to read a domain off")
    for column in columns:
        _refuse(path, column, column.is_null(), "a value")
    return Domain.from_dict({column.name: sorted(column.unique()) for column in columns})
