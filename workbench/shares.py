"""What mechanisms share: fields that declare a budget, ε split among measurements, and refusals."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isfinite
from typing import Any

from workbench import noise
from workbench.enclosures import round_down
from workbench.privacy import DP, ZCDP
from workbench.table import Bound
from workbench.transform import TRANSFORMS, Basis, Cells
from workbench.value import parameter


def pure_budget(
    *, zcdp: bool = False, refused: str = "its guarantee is not proven for it"
) -> Any:
    """The budget field of a mechanism that spends no δ.

    Parameters
    ----------
    zcdp : whether it takes a `ZCDP` as well, and then draws noise whose price is a ρ.
    refused : why it does not.

    Returns
    -------
    field
        Of a `value` class; it refuses what is no `DP` of finite ε > 0 and δ = 0.
    """

    def wrong(x: Any) -> str | None:
        if isinstance(x, ZCDP):
            return _wrong_zcdp(x, zcdp, refused)
        pure = "this mechanism is pure: it spends no delta, so ask for none"
        return _no_finite_budget(x) or (pure if x.delta else None)

    return parameter(check=wrong, doc="what the release may cost")


def approximate_budget(
    *,
    pure: bool = False,
    zcdp: bool = False,
    refused: str = "its guarantee is not proven for it",
) -> Any:
    """The budget field of a mechanism that spends δ.

    Parameters
    ----------
    pure : whether the mechanism may also do without.
    zcdp, refused : as for `pure_budget`; its δ is spent as that of a `DP` is.

    Returns
    -------
    field
        Of a `value` class; it refuses what is no `DP` of finite ε > 0 and 0 < δ < 1.
    """

    def wrong(x: Any) -> str | None:
        fails = "this mechanism can fail with probability delta: need 0 < delta < 1"
        if isinstance(x, ZCDP):
            missing = None if x.delta or pure else fails
            return _wrong_zcdp(x, zcdp, refused, spends_delta=True) or missing
        return _no_finite_budget(x) or (
            fails if x.delta == 1 or not (x.delta or pure) else None
        )

    return parameter(check=wrong, doc="what the release may cost, δ included")


def _wrong_zcdp(
    x: ZCDP, accepted: bool, refused: str, spends_delta: bool = False
) -> str | None:
    if not accepted:
        return f"this mechanism takes no ZCDP, {refused}: need a DP"
    return (
        "this mechanism spends no delta, so ask for none"
        if x.delta and not spends_delta
        else None
    )


def _no_finite_budget(x: Any) -> str | None:
    if not isinstance(x, DP):
        return "need a DP"
    if not (isfinite(x.epsilon) and x.epsilon > 0):
        return "need a finite epsilon > 0"
    return None


def noise_law_field() -> Any:
    """The field of a mechanism that adds one of two kinds of noise."""
    return parameter("laplace", choices=("laplace", "geometric"), doc="geometric: whole counts")


def memory_field() -> Any:
    """The field of a mechanism that holds every cell of its domain."""
    return parameter(2**32, 1, integer=True, unit="bytes", doc="refuse larger domains")


def transform_field() -> Any:
    """The field of a mechanism that can work in another basis."""
    return parameter(None, choices=(None, *TRANSFORMS), doc="of the table, before noise")


def consistent_field() -> Any:
    """The field of a mechanism that can drop nodes below absent ones."""
    return parameter(False, choices=(False, True), doc="drop nodes below absent ones (Dyadic)")


def sensitivity(table: Any, takes: type | None = None) -> float:
    """The l1 bound of a private table.

    Parameters
    ----------
    table : private data with a `bound`.
    takes : the class that it must have, if given.

    Returns
    -------
    float
        How far one unit moves all counts together.

    Raises
    ------
    ValueError
        If the table is public, or of another class.
    """
    if takes and not isinstance(table, takes):
        raise ValueError(f"{table!r} is not what this mechanism takes: need {takes.__name__}")
    if not isinstance(table.bound, Bound):
        raise ValueError(
            "the table is PUBLIC: it can be shown as it is, and cannot be spent on (a private table "
            "states a Bound)"
        )
    return table.bound.l1


def split_epsilon(epsilon: float, shares: Sequence[Fraction]) -> list[float]:
    """ε divided among measurements, rounded so that together they are never more.

    Parameters
    ----------
    epsilon : what all measurements may cost together.
    shares : of each of them; the last one gets what is left.

    Returns
    -------
    list of float
        ε of each.
    """
    parts = []
    rest = Fraction(epsilon)
    for share in shares[:-1]:
        parts.append(round_down(Fraction(epsilon) * share))
        rest -= Fraction(parts[-1])
    return [*parts, round_down(rest)]


def noise_blocks(
    basis: Basis, *, l1: float, epsilon: float, linf: float | None = None
) -> list[noise.Block]:
    """What noise is put on: sizes, sensitivities, and shares of ε that add up to it.

    `linf` is how far a unit moves a cell; any node that is a sum of cells, or a difference of two such
    sums, moves by l1 at most.
    """
    most = linf if isinstance(basis, Cells) else l1
    budgets = split_epsilon(epsilon, [nodes.share for nodes in basis.noise_blocks])
    return [
        noise.Block(nodes.size, Fraction(l1) * nodes.nodes_per_count, budget, most)
        for nodes, budget in zip(basis.noise_blocks, budgets, strict=True)
    ]
