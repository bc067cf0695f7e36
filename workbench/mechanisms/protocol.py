"""Base class of mechanisms, and all helpers that the author of a mechanism needs to import."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import Field, field
from fractions import Fraction
from functools import wraps
from inspect import cleandoc
from math import inf, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from workbench import noise
from workbench.data import Bound, SparseTable, WideTable
from workbench.estimates import Histogram, Summary
from workbench.estimates.release import Release
from workbench.estimates.release_files import read_release, refuse_place
from workbench.noise.additive import NoisyValues
from workbench.noise.law import GAUSSIAN, GEOMETRIC, Law
from workbench.privacy import ADD_REMOVE, DP, ZCDP
from workbench.privacy.enclosures import round_down
from workbench.queries import TRANSFORMS, Basis, Cells
from workbench.value import Int, not_allowed, parameter, sealed, value

# Shares


def private_bound(table: Any) -> Bound:
    """Return the bound of a private table.

    Parameters
    ----------
    table : Private data with a `bound`.

    Returns
    -------
    Bound
        Largest change of the counts by one unit.

    Raises
    ------
    ValueError
        If the table is public.
    """
    if not isinstance(table.bound, Bound):
        raise ValueError(
            "the table is PUBLIC: publish it unchanged, without a mechanism (a private table has a "
            "Bound)"
        )
    return table.bound


def sensitivity(table: Any) -> float:
    """Return the most that one unit can change all counts together."""
    return private_bound(table).l1


def split_epsilon(epsilon: float, shares: Sequence[Fraction]) -> list[float]:
    """Divide ε among measurements. The parts never add up to more than ε, despite rounding.

    Parameters
    ----------
    epsilon : Cost of all measurements together.
    shares : Share of each measurement. The last one gets the rest.

    Returns
    -------
    list of float
        ε of each measurement.
    """
    parts = []
    rest = Fraction(epsilon)
    for share in shares[:-1]:
        parts.append(round_down(Fraction(epsilon) * share))
        rest -= Fraction(parts[-1])
    return [*parts, round_down(rest)]


def amount(budget: DP | ZCDP) -> float:
    """Return the ε of a `DP`, or the ρ of a `ZCDP`.

    Parameters
    ----------
    budget : A `DP` or a `ZCDP`.

    Returns
    -------
    float
        ε or ρ.
    """
    return budget.rho if isinstance(budget, ZCDP) else budget.epsilon


def inverse_scale(budget: DP | ZCDP) -> float:
    """Return the inverse of the noise's scale, for a sensitivity of 1.

    Parameters
    ----------
    budget : A `DP` or a `ZCDP`.

    Returns
    -------
    float
        ε, or √(2ρ).
    """
    return sqrt(2 * budget.rho) if isinstance(budget, ZCDP) else budget.epsilon


def part_of(budget: DP | ZCDP, share: float) -> DP | ZCDP:
    """Return a budget of the same class with another ε or ρ, and without a δ.

    Parameters
    ----------
    budget : A `DP` or a `ZCDP`.
    share : ε or ρ of the result.

    Returns
    -------
    DP or ZCDP
        The same class as `budget`.
    """
    return ZCDP(share) if isinstance(budget, ZCDP) else DP(share)


def add_noise(
    values: Int[np.ndarray, " n"],
    budget: DP | ZCDP,
    *,
    l1: Fraction | float,
    l2_squared: Fraction,
    linf: float | None = None,
    law: str = "geometric",
    rng: np.random.Generator | None = None,
) -> NoisyValues:
    """Add noise to integers. A budget in ρ (zCDP) gives Gaussian noise, and a budget in ε gives geometric or
    Laplace noise.

    Parameters
    ----------
    values : Integers, int[n].
    budget : A `DP` pays for noise from the distribution `law`, a `ZCDP` for Gaussian noise.
    l1, l2_squared : Largest change of all values by one unit, in the l1 norm and as a squared l2 norm.
    linf : Largest change of any one value by one unit. Default `l1`.
    law : "geometric" or "laplace", as for `noise.add_noise`.
    rng : Seeded generator for noise that can be replayed. None to publish.

    Returns
    -------
    NoisyValues
        Noisy values, the variance of their noise, and a receipt.
    """
    if isinstance(budget, ZCDP):
        noisy, receipt = noise.gaussian(values, l2_squared=l2_squared, rho=budget.rho, rng=rng)
        return NoisyValues(noisy, gaussian_law(l2_squared, budget).variance, receipt)
    return noise.add_noise(values, l1=l1, epsilon=budget.epsilon, law=law, linf=linf, rng=rng)


def gaussian_law(l2_squared: Fraction | float, budget: ZCDP) -> Law:
    """Return the distribution of Gaussian noise for a budget in ρ.

    Parameters
    ----------
    l2_squared : Square of the largest change of the values by one unit, in the l2 norm.
    budget : Cost of the noise.

    Returns
    -------
    Law
        Gaussian distribution with rate ρ/l2².
    """
    return Law(GAUSSIAN, float(Fraction(budget.rho) / Fraction(l2_squared)))


def as_bound(bound: Bound | float) -> Bound:
    """Return the widest `Bound` with the given l1. If a `Bound` is given, return it unchanged.

    Parameters
    ----------
    bound : A `Bound`, or the largest change of a table by one unit in the l1 norm.

    Returns
    -------
    Bound
        Bound with this l1.
    """
    return bound if isinstance(bound, Bound) else Bound(1, bound)


def blocks_within(
    basis: Basis, bound: Bound, budget: DP | ZCDP
) -> list[noise.Block] | list[noise.GaussianBlock]:
    """Return the blocks of nodes that get noise, with the cost of each block.

    Parameters
    ----------
    basis : Transform on a domain.
    bound : Largest change of the table by one unit.
    budget : Cost of all blocks together.

    Returns
    -------
    list of Block or GaussianBlock
        Blocks whose ε, or ρ, add up to the budget.
    """
    if isinstance(budget, DP):
        return noise_blocks(basis, l1=bound.l1, epsilon=budget.epsilon, linf=bound.linf)
    moved = [nodes.l2_squared(bound) for nodes in basis.noise_blocks]
    costs = [x * nodes.weight for x, nodes in zip(moved, basis.noise_blocks, strict=True)]
    rhos = split_epsilon(budget.rho, [cost / sum(costs) for cost in costs])
    return [
        noise.GaussianBlock(nodes.size, x, rho)
        for nodes, x, rho in zip(basis.noise_blocks, moved, rhos, strict=True)
    ]


def law_within(basis: Basis, bound: Bound, budget: DP | ZCDP) -> Law:
    """Return the distribution of the noise in a release. `Law.of_nodes` converts it to the distribution for
    one block of nodes.

    Parameters
    ----------
    basis, bound, budget : The same as for `blocks_within`.

    Returns
    -------
    Law
        Distribution with rate ε/l1, or with rate ρ/l2² where l2² weights the blocks.
    """
    if isinstance(budget, DP):
        return Law(GEOMETRIC, budget.epsilon / bound.l1)
    moved = sum(nodes.l2_squared(bound) * nodes.weight for nodes in basis.noise_blocks)
    return gaussian_law(moved, budget)


def noise_blocks(
    basis: Basis, *, l1: float, epsilon: float, linf: float | None = None
) -> list[noise.Block]:
    """Return the blocks of nodes that get noise. Each has a size, a sensitivity, and a share of ε. The
    shares add up to ε.

    `linf` is the largest change of a cell by one unit. A node that is a sum of cells, or a difference
    between two such sums, changes by at most l1.
    """
    most = linf if isinstance(basis, Cells) else l1
    budgets = split_epsilon(epsilon, [nodes.share for nodes in basis.noise_blocks])
    return [
        noise.Block(nodes.size, Fraction(l1) * nodes.nodes_per_count, budget, most)
        for nodes, budget in zip(basis.noise_blocks, budgets, strict=True)
    ]


# Mechanism fields


def budget_field(
    *,
    dp: bool = True,
    zcdp: bool = False,
    delta: str = "none",
    refused: str = "its guarantee is not proven for it",
) -> Any:
    """Return the field `budget` of a mechanism. It states which kinds of budget the class takes.

    Parameters
    ----------
    dp : Whether the mechanism takes a `DP`, with a finite ε > 0.
    zcdp : Whether it takes a `ZCDP`, for which it draws noise priced in ρ.
    delta : "none" if it spends no δ, "some" if it needs 0 < δ < 1, and "any" if it works with and without.
    refused : Reason, shown in the error message, why the mechanism takes no `ZCDP`.

    Returns
    -------
    field
        Field of a `value` class.
    """

    def wrong(x: Any) -> str | None:
        if isinstance(x, ZCDP) and not zcdp:
            return f"this mechanism takes no ZCDP, {refused}: need a DP"
        if not isinstance(x, (DP, ZCDP) if dp else ZCDP):
            gaussian = "its noise is Gaussian: need a ZCDP, such as ZCDP.within(DP(1.0, 1e-9))"
            return "need a DP" if dp else gaussian
        if isinstance(x, DP) and not 0 < x.epsilon < inf:
            return "need a finite epsilon > 0"
        if x.delta and delta == "none":
            return "this mechanism spends no delta: need delta = 0"
        if x.delta == 1 or delta == "some" and not x.delta:
            return "this mechanism can fail with probability delta: need 0 < delta < 1"
        return None

    doc = "privacy budget of the release" + (", with δ" if delta != "none" else "")
    taken = dict(accepts_dp=dp, accepts_zcdp=zcdp, spends_delta=delta != "none")
    return field(metadata={**parameter(check=wrong, doc=doc).metadata, "taken": taken})


class _Unstated(str):
    """Default value that can be distinguished from a stated value with the same text."""


_LAPLACE = _Unstated("laplace")


def noise_law_field(*, zcdp: bool = False) -> Any:
    """Return the field `noise` of a mechanism that adds geometric or Laplace noise.

    Parameters
    ----------
    zcdp : Whether the mechanism also takes a `ZCDP`, for which it draws Gaussian noise (see
        `settle_noise`).

    Returns
    -------
    field
        Field of a `value` class.
    """
    choices = ("laplace", "geometric")
    if not zcdp:
        return parameter(
            "laplace",
            choices=choices,
            doc="distribution of the noise (geometric gives integers)",
        )
    doc = "noise with ε: geometric gives integers; with ρ it is Gaussian"
    return parameter(
        _LAPLACE,
        choices=choices,
        check=lambda x: None if isinstance(x, _Unstated) or x == GAUSSIAN else "another",
        doc=doc,
    )


def settle_noise(mechanism: Any) -> None:
    """Check that the field `noise` fits the budget: Gaussian noise for a ρ, geometric or Laplace noise for
    an ε.

    Parameters
    ----------
    mechanism : Mechanism whose field `noise` was made by `noise_law_field(zcdp=True)`.

    Raises
    ------
    ValueError
        If the stated noise does not fit the budget.
    """
    of_rho = isinstance(mechanism.budget, ZCDP)
    given = f" with {mechanism.budget!r}"
    if of_rho and not isinstance(mechanism.noise, _Unstated) and mechanism.noise != GAUSSIAN:
        why = "what a rho buys is Gaussian noise: need 'gaussian', or leave it out"
        raise not_allowed(mechanism, "noise", why, given)
    if not of_rho and mechanism.noise == GAUSSIAN:
        why = "need 'laplace' or 'geometric', or a ZCDP, which buys Gaussian noise"
        raise not_allowed(mechanism, "noise", why, given)
    if not of_rho and mechanism.noise == _LAPLACE:
        object.__setattr__(mechanism, "noise", _LAPLACE)  # so that its text leaves it out


def memory_field() -> Any:
    """Return the field `memory` of a mechanism that keeps every cell of its domain in memory."""
    return parameter(
        2**32,
        1,
        integer=True,
        unit="bytes",
        doc="largest memory to use (larger domains are refused)",
    )


def transform_field() -> Any:
    """Return the field `transform` of a mechanism that can work in another basis."""
    return parameter(
        None, choices=(None, *TRANSFORMS), doc="transform of the table before noise is added"
    )


def consistent_field() -> Any:
    """Return the field `consistent` of a mechanism that can drop nodes below absent ones."""
    return parameter(
        False, choices=(False, True), doc="drop nodes below absent nodes (dyadic transform)"
    )


# Mechanism

_MAKERS = ("read", "from_frame", "from_table", "from_values")


class Mechanism(Protocol):
    """Base class of mechanisms. A mechanism is a frozen value whose fields are the parameters of a paper.
    Calling it on data makes a release and spends its budget.

    Every class in `workbench.mechanisms` obeys these rules, and tests/laws/test_laws.py checks them. The
    receipts cost at most the budget. All randomness comes from `rng`, or from the operating system if it is
    None. The estimate is public and has the declared domain. The error vanishes as ε grows, unless the
    class sets `converges = False` and explains why.

    `accepts_dp`, `accepts_zcdp` and `spends_delta` say which budgets the class takes. They follow from the
    field `budget`. A class without this field must state them, for example a class that runs another
    mechanism.

    If a class sets `fixed_price`, its receipts are the same for all data with the same domain and bound. A
    session with a budget in ρ then books the ρ of these receipts in advance. Otherwise it would book the
    larger ρ that ε implies.

    Figures, panels and advice show the name in `series`, which is a class variable or a property. If there
    is none, they show the name of the class.
    """

    if TYPE_CHECKING:  # fields, or properties

        @property
        def budget(self) -> DP | ZCDP: ...  # noqa: D102

        @property
        def withdrawn(self) -> bool:  # noqa: D102
            return False
    else:
        budget: DP | ZCDP
        withdrawn = False

    takes: ClassVar[type] = SparseTable
    takes_wide: ClassVar[bool] = False  # also a WideTable
    cite: ClassVar[str]
    accepts_zcdp: ClassVar[bool] = False
    accepts_dp: ClassVar[bool] = True
    fixed_price: ClassVar[bool] = False
    converges: ClassVar[bool] = True
    spends_delta: ClassVar[bool] = False
    relation: ClassVar[str] = ADD_REMOVE
    idealised: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Set which budgets the class takes, and refuse calls with data of another class than `takes`."""
        super().__init_subclass__(**kwargs)
        declared = vars(cls).get("budget")
        if isinstance(declared, Field):
            for name, taken in declared.metadata.get("taken", {}).items():
                setattr(cls, name, taken)
        if "__call__" in vars(cls):
            type.__setattr__(cls, "__call__", _refusing_other_data(vars(cls)["__call__"]))

    def __call__(self, data: Any, rng: np.random.Generator | None = None) -> Release:
        """Release a private estimate.

        Parameters
        ----------
        data : Private data of the class `takes`, with a bound.
        rng : Seeded generator for a release that can be replayed. None to publish.

        Returns
        -------
        Release
            Estimate, with receipts that cost at most the budget.
        """

    @classmethod
    def example(cls, budget: Any) -> Self:
        """Return an example of the mechanism, which tests and audits run. Unless a class overrides this, all
        parameters have their defaults.

        The class of `budget` must be one that the mechanism takes.
        """
        make: Any = cls
        return make(budget)

    def dense_counts(self, table: SparseTable, each: int = 40) -> np.ndarray:
        """Return the counts of all cells, int64[cells]. If they do not fit in memory, raise the error of
        `refuse_dense`.
        """
        self.refuse_dense(table.domain.size, each)
        return table.dense().ravel()

    def refuse_dense(self: Any, cells: int, each: int = 40) -> None:
        """Raise a ValueError if an array of all cells takes more memory than is allowed. A cell takes `each`
        bytes.

        A cell needs bytes for its count, its noisy count and intermediate results.
        """
        need = each * cells
        if need > self.memory:
            raise ValueError(
                f"{type(self).__name__}.memory = {self.memory} is too little: {cells} cells need about "
                f"{need} bytes"
            )

    def refuse_size_above(self: Any, cells: int) -> None:
        """Raise a ValueError if `size` asks for more cells than there are."""
        if self.size > cells:
            raise not_allowed(self, "size", f"need at most {cells}, the number of cells")

    def refuse_several_tuples_per_unit(self, table: SparseTable) -> None:
        """Raise a ValueError for a table in which a unit may have more than one tuple."""
        if sensitivity(table) != 1:
            raise ValueError(
                f"a table with the bound {table.bound!r} is not allowed: {type(self).__name__} protects "
                "each tuple separately, so need one tuple per unit, l1 = 1"
            )


def refuse_other_data(mechanism: Any, data: Any) -> None:
    """Raise a ValueError for data of a class that the mechanism does not take. The message explains how to
    make data of the right class.
    """
    takes = getattr(mechanism, "takes", None)
    if isinstance(data, WideTable) and takes is SparseTable:
        if not mechanism.takes_wide:
            data.domain.refuse_wide()
        return
    beyond_memory = getattr(data, "stands_for", None)
    if not isinstance(takes, type) or isinstance(data, takes) or beyond_memory is takes:
        return
    makers = [f"{takes.__name__}.{name}" for name in _MAKERS if hasattr(takes, name)]
    how = f": make them with {' or '.join(makers)}" if makers else ""
    raise ValueError(
        f"{type(mechanism).__name__} takes {takes.__name__}, not {type(data).__name__}{how}"
    )


def _refusing_other_data(call: Callable[..., Release]) -> Callable[..., Release]:
    """Wrap the call of a mechanism, to check the class of its data first."""

    @wraps(call)
    def checked(self: Any, data: Any, *args: Any, **kwargs: Any) -> Release:
        refuse_other_data(self, data)
        return call(self, data, *args, **kwargs)

    return checked


def promises_of(cls: type) -> str:
    """Return the part of a mechanism's docstring that starts with the section Guarantee. Without this
    section, return "".
    """
    doc = cleandoc(cls.__doc__ or "")
    start = doc.find("Guarantee  ")
    return doc[start:] if start >= 0 else ""


def series_name(mechanism: Any) -> str:
    """Return the name of a mechanism in figures. It consists of `series` or the class name, the transform,
    and the word "consistent" if that is set.

    If the budget is a ρ, and the mechanism draws other noise for an ε, the name also says "Gaussian".

    >>> from workbench.mechanisms import HighPassFilter
    >>> from workbench.queries import Dyadic
    >>> series_name(HighPassFilter(DP(1.0), theta=5, transform=Dyadic()))
    'filter, dyadic'
    """
    parts = [getattr(mechanism, "series", type(mechanism).__name__)]
    transform = getattr(mechanism, "transform", None)
    if transform is not None:
        parts.append(getattr(transform, "series", repr(transform)))
    if getattr(mechanism, "consistent", False):
        parts.append("consistent")
    if isinstance(mechanism.budget, ZCDP) and getattr(mechanism, "accepts_dp", True):
        parts.append("Gaussian")
    return ", ".join(parts)
