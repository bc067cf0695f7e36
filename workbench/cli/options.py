"""Options that commands share: spaces, clusters, and what of private data is published."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from functools import partial
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
        help="Dask cluster to run on: the address of its scheduler, or its scheduler file.",
        rich_help_panel="Many machines",
    ),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure",
        help="Accept a tcp:// scheduler on another machine, although private rows then cross the network "
        "unencrypted.",
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

TableName = Annotated[
    str | None,
    typer.Option("--table", metavar="NAME", help="Table of a DuckDB or SQLite file."),
]
EpsilonIsMeant = Annotated[
    bool,
    typer.Option("--epsilon-is-meant", help="Allow ε above 10, although it protects little."),
]
Count = Annotated[
    str | None, typer.Option(help="Column of counts. By default each row counts one.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file.")]

PEOPLE = "Rows with their users (SRA, HPA, LPA, FPA, GS)"
SPACE = "Points, strings or codes (DirectSynthesis, PrivTree, adaptive histograms)"
UserType = Annotated[
    Literal["text"] | None,
    typer.Option(
        help="Read user identifiers as text, so that 7 and 007 are two people. By default 007 is refused."
    ),
]

_of_space = partial(typer.Option, rich_help_panel=SPACE)


@dataclass(frozen=True, kw_only=True)
class StatedSpace:
    """Points, strings or codes that a person typed; at most one of box, strings and taxonomy."""

    box: Annotated[
        str | None,
        _of_space(
            metavar="X=LOW..HIGH,Y=…",
            help="Columns of coordinates and the range of each.",
        ),
    ] = None
    levels: Annotated[
        int, _of_space(min=1, max=52, help="Number of times a box is halved.")
    ] = 20
    strings: Annotated[str | None, _of_space(metavar="COLUMN", help="Column of strings.")] = (
        None
    )
    length: Annotated[
        int, _of_space(min=1, max=128, help="Largest length of a string, in symbols.")
    ] = 20
    alphabet: Annotated[
        str | None,
        _of_space(
            metavar="SYMBOLS",
            help="Symbols of the strings, in order.",
            show_default="a–z, 0–9, full stop and space",
        ),
    ] = None
    taxonomy: Annotated[
        Path | None,
        _of_space(
            metavar="FILE",
            help="CSV file of codes, each with the code that it belongs to (empty at the top).",
        ),
    ] = None
    code: Annotated[
        str,
        _of_space(
            metavar="COLUMN", help="Column of the table that holds codes of the taxonomy."
        ),
    ] = "code"

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
