"""`workbench release`: publish a private summary of a table in a file."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from workbench.cli import release_text, screen

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
    """The command, which also takes the options of every mechanism; all of these take a value."""

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

        classes = _all_mechanisms() if chosen is None else [*_all_mechanisms(), chosen]
        known = {option_name(f) for cls in classes for f in mechanism_fields(cls)}
        for name, _ in ctx.meta[__name__]:
            if name not in known:
                super().parse_args(ctx, [name])

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The usual help, then the mechanisms."""
        from workbench.option_grammar import mechanism_fields, option_help, option_name

        super().format_help(ctx, formatter)
        screen.say(" Mechanisms, and their options:")
        for cls in _all_mechanisms():
            if not getattr(cls, "idealised", False):
                screen.say(f"\n {cls.__name__}: {(cls.__doc__ or '').splitlines()[0]}")
                for f in mechanism_fields(cls):
                    doc = f.metadata["doc"]
                    screen.say(f"   {option_name(f):10} {option_help(f)}: {doc}")


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
    if out.exists() and not force:
        raise ValueError(f"{out} exists: choose another name, or --force to overwrite it")
    if not out.absolute().parent.is_dir():
        raise FileNotFoundError(f"{out.absolute().parent}: no such folder")
    if seed is not None and not simulated:
        raise ValueError(
            "--seed makes noise that can be replayed and taken off: leave it out to publish, or add "
            "--simulated to save a release that says so"
        )
    if bound is None:
        raise ValueError(f"--bound is missing\n\n{_BOUND}")
    if domain is None and not domain_from_data:
        raise ValueError(f"--domain is missing\n\n{_DOMAIN}")
    if domain is not None and domain_from_data:
        raise ValueError("--domain and --domain-from-data: need one of them, not both")
    if not table.is_file():
        raise FileNotFoundError(f"{table}: no such file")

    import numpy as np

    from workbench import noise
    from workbench.domain import Domain
    from workbench.labelled_rows import observed_domain
    from workbench.privacy import DP

    stated = stated_bound(bound)
    budget = DP(epsilon, delta)
    space = None if domain is None else Domain.read(domain)
    cls = _class_of(mechanism)
    ctx.command.refuse_unknown_options(ctx, cls)
    chosen = _mechanism(cls, budget, ctx.meta[__name__])
    if space is None:
        space = observed_domain(table, count)
    private = _read(table, space, count, stated)
    if count:
        screen.say("The counts of rows that name the same cell are summed.")

    made = chosen(private, None if seed is None else np.random.default_rng(seed))
    if domain_from_data:
        receipt = noise.unprotected("domain read off the data")
        made = replace(made, ledger=(receipt, *made.ledger))
    made.save(out, simulated=simulated, force=force)

    lines = [
        str(out),
        release_text.guarantee(made),
        release_text.bound_in_words(stated),
        release_text.sizes(made, out),
        release_text.cells_from_nothing(made),
        _AGAIN,
    ]
    screen.say("\n  ".join(line for line in lines if line))
    for warning in release_text.warnings(made):
        screen.warn(f"  {warning}")


def _all_mechanisms() -> list[type]:
    """The mechanisms that take a table and plain parameters, those that are never saved included."""
    from workbench.mechanisms import ALL
    from workbench.plugins import stated_modules

    stated = [x for module in stated_modules() for x in vars(module).values()]
    return [cls for cls in ALL if _takes_a_table(cls)] + [
        x for x in stated if _takes_a_table(x) and x not in ALL
    ]


def _takes_a_table(x: Any) -> bool:
    """Whether it is a class of mechanisms that take a table, with plain parameters."""
    from workbench.table import SparseTable

    if not isinstance(x, type) or getattr(x, "takes", None) is not SparseTable:
        return False
    return is_dataclass(x) and all("doc" in f.metadata for f in fields(x))


def _class_of(name: str) -> type:
    """The mechanism of a name: ours, or one of another package."""
    from workbench import plugins

    classes = {cls.__name__.lower(): cls for cls in _all_mechanisms()}
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


def stated_bound(text: str) -> Bound:
    """A bound as it is typed; a ValueError that explains what it is."""
    from workbench.option_grammar import parse_bound

    try:
        return parse_bound(text)
    except ValueError as e:
        raise ValueError(f"{e}\n\n{_BOUND}") from None


def _read(path: Path, domain: Domain, count: str | None, bound: Bound) -> SparseTable:
    """The table; rows of the same cell add up.

    A cell outside the domain, or a count that is none, is named by file and line.
    """
    from workbench.table import SparseTable

    if count in domain.attributes:
        raise ValueError(
            f"--count {count!r} is an attribute of the domain: need another column"
        )
    return SparseTable.read(path, domain, bound, count=count)
