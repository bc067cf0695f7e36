"""Options that commands share: spaces, clusters, and what of private data is published."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from workbench.owner.scale.dask import Cluster
    from workbench.privacy import DP, ZCDP
    from workbench.spaces import Hierarchy


# Cluster

Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS|FILE",
        help="A Dask cluster that does the work: its scheduler's address, or the file that it wrote.",
        rich_help_panel="Many machines",
    ),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure",
        help="Accept a tcp:// scheduler on another machine: private rows then cross the network in the "
        "clear.",
        rich_help_panel="Many machines",
    ),
]


def connected(scheduler: str, insecure: bool) -> Cluster:
    """The executor of a cluster, or a ValueError that says what to install."""
    try:
        from workbench.owner.scale.dask import connect
    except ImportError:
        raise ValueError("--scheduler needs Dask: pip install 'dp-workbench[dask]'") from None
    return connect(scheduler, insecure=insecure)


# Options

Tables = Annotated[
    list[Path],
    typer.Argument(
        metavar="TABLE...",
        help="CSV (also .gz, .zst), Parquet, folders or globs of them, or a DuckDB or SQLite file.",
    ),
]
TableName = Annotated[
    str | None,
    typer.Option("--table", metavar="NAME", help="The table of a DuckDB or SQLite file."),
]
Out = Annotated[
    Path,
    typer.Option(
        help="The file to write: x.parquet, or x.csv, with its guarantee in x.csv.json."
    ),
]
Epsilon = Annotated[float, typer.Option(help="Privacy loss ε.")]
EpsilonOrRho = Annotated[
    float | None, typer.Option(help="Privacy loss ε; this or --rho is required.")
]
Rho = Annotated[
    float | None,
    typer.Option(
        help="Privacy loss ρ of zero-concentrated privacy, for mechanisms that then draw Gaussian noise; "
        "with --delta it is also said as an ε."
    ),
]
EpsilonIsMeant = Annotated[
    bool, typer.Option("--epsilon-is-meant", help="Allow ε above 10, which protects little.")
]
Delta = Annotated[float, typer.Option(help="Failure probability δ.")]
DeltaOrNone = Annotated[
    float | None, typer.Option(help="Failure probability δ.", show_default="0")
]
Budget = Annotated[
    Path | None,
    typer.Option(
        "--budget", metavar="FILE", help="Spend from this file of `workbench budget new`."
    ),
]
Count = Annotated[
    str | None, typer.Option(help="The column of counts; without it each row counts one.")
]
DomainFile = Annotated[
    Path | None, typer.Option("--domain", help="Which cells there can be (JSON); required.")
]
BoundText = Annotated[
    str | None,
    typer.Option(
        "--bound", metavar="L0,LINF[,L1]", help="How far one unit moves the table; required."
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Replayable noise; needs --simulated.")]
Simulated = Annotated[
    bool, typer.Option("--simulated", help="Save a release that is not for publication.")
]
DomainFromData = Annotated[
    bool, typer.Option("--domain-from-data", help="Voids the guarantee.")
]

PEOPLE = "Rows with their users (SRA, HPA, LPA, FPA, GS)"
SPACE = "Points, strings or codes (DirectSynthesis, PrivTree, adaptive histograms)"
User = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Whose each row is: each user is cut to the bound, at random."
    ),
]
UserType = Annotated[
    Literal["text"] | None,
    typer.Option(
        help="Read users as text: 7 and 007 are then two people. By default 007 is refused.",
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="What is protected, as 'a trip'; needed without --user, and then the bound is believed.",
    ),
]
ReportCut = Annotated[
    float | None,
    typer.Option(
        metavar="EPS",
        help="Also release how many users lost anything to the bound, for this ε more.",
    ),
]
_LARGE = "Tables larger than memory"
Workers = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Deal rows out to scratch files, and work on so many processes.",
        rich_help_panel=_LARGE,
    ),
]
Scratch = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Deal rows out to scratch files here: a private folder that is removed in any case.",
        rich_help_panel=_LARGE,
    ),
]
Item = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN[,…]",
        help="An attribute of the domain, or several, which are crossed.",
        show_default="its first",
        rich_help_panel=PEOPLE,
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN[,…]",
        help="Another attribute of the domain, or several.",
        show_default="its second",
        rich_help_panel=PEOPLE,
    ),
]
Choose = Annotated[
    str | None,
    typer.Option(
        metavar="l=N,N,…",
        help="Numbers that you state, of which the data choose one: l of SRA and HPA, bound of LPA, theta "
        "of HighPassFilter.",
    ),
]
ChooseEpsilon = Annotated[
    float | None,
    typer.Option(help="What the choice costs, beside --epsilon."),
]
Box = Annotated[
    str | None,
    typer.Option(
        metavar="X=LOW..HIGH,Y=…",
        help="Columns of coordinates, and the box that they lie in.",
        rich_help_panel=SPACE,
    ),
]
Levels = Annotated[
    int, typer.Option(min=1, max=52, help="How often a box is halved.", rich_help_panel=SPACE)
]
Strings = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="A column of strings.", rich_help_panel=SPACE),
]
Length = Annotated[
    int,
    typer.Option(min=1, max=128, help="The longest string, in symbols.", rich_help_panel=SPACE),
]
Alphabet = Annotated[
    str | None,
    typer.Option(
        metavar="SYMBOLS",
        help="Of the strings, in order.",
        show_default="a–z, 0–9, full stop and space",
        rich_help_panel=SPACE,
    ),
]
Taxonomy = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Codes, each with the code that it belongs to: CSV of two columns, the second empty at the "
        "top.",
        rich_help_panel=SPACE,
    ),
]
Code = Annotated[
    str,
    typer.Option(
        metavar="COLUMN", help="The column of codes of a taxonomy.", rich_help_panel=SPACE
    ),
]


@dataclass(frozen=True, kw_only=True)
class StatedSpace:
    """Points, strings or codes that a person typed; at most one of box, strings and taxonomy."""

    box: Box = None
    levels: Levels = 20
    strings: Strings = None
    length: Length = 20
    alphabet: Alphabet = None
    taxonomy: Taxonomy = None
    code: Code = "code"

    def __post_init__(self) -> None:
        stated = {"--box": self.box, "--strings": self.strings, "--taxonomy": self.taxonomy}
        given = [name for name, x in stated.items() if x is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)}: need one of them")

    @property
    def has_space(self) -> bool:
        """Whether there is one."""
        return (self.box, self.strings, self.taxonomy) != (None, None, None)

    def hierarchy(self) -> Hierarchy:
        """The space that is meant; a ValueError for what is none."""
        from workbench.mechanisms.options import parse_box
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


def refuse_unmeant(cost: DP | ZCDP, beside: float, meant: bool) -> None:
    """A ValueError for more than ε = 10 that nobody says is meant.

    Parameters
    ----------
    cost : what a release or all of a budget may cost; a ρ counts as its ε at δ = 10⁻⁶.
    beside : ε of what is released with it.
    meant : whether the option says so.
    """
    from workbench.privacy.budgets import LARGE, LARGE_EPSILON, as_epsilon
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
