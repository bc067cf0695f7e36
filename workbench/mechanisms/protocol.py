"""Base class of mechanisms, and functions that help you to write a mechanism of your own."""

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
    """Return the bound of a private table. The bound limits how much one protected unit can change the
    table's counts.

    Parameters
    ----------
    table : Private table, or other private data with the attribute `bound`.

    Returns
    -------
    Bound
        Largest change of the counts that one protected unit can cause.

    Raises
    ------
    ValueError
        If the table is public, because public data need no mechanism.
    """
    if not isinstance(table.bound, Bound):
        raise ValueError(
            "the table is PUBLIC: publish it unchanged, without a mechanism (a private table has a "
            "Bound)"
        )
    return table.bound


def sensitivity(table: Any) -> float:
    """Return the l1 sensitivity of a private table. One protected unit can change several counts of the table.
    The l1 sensitivity is the largest possible sum of these absolute changes.
    """
    return private_bound(table).l1


def split_epsilon(epsilon: float, shares: Sequence[Fraction]) -> list[float]:
    """Divide ε among measurements. The parts are rounded down, so they never add up to more than ε.

    Parameters
    ----------
    epsilon : ε that all measurements together cost.
    shares : Share of ε for each measurement. The last measurement gets the rest.

    Returns
    -------
    list of float
        The ε of each measurement, in the order of `shares`.
    """
    parts = []
    rest = Fraction(epsilon)
    for share in shares[:-1]:
        parts.append(round_down(Fraction(epsilon) * share))
        rest -= Fraction(parts[-1])
    return [*parts, round_down(rest)]


def amount(budget: DP | ZCDP) -> float:
    """Return the number in a budget: the ε of a `DP`, or the ρ of a `ZCDP`.

    Parameters
    ----------
    budget : Budget, which is a `DP` or a `ZCDP`.

    Returns
    -------
    float
        The ε or the ρ.
    """
    return budget.rho if isinstance(budget, ZCDP) else budget.epsilon


def inverse_scale(budget: DP | ZCDP) -> float:
    """Return the inverse scale of the noise that a budget pays for, if the sensitivity is 1. For a `DP`, the
    function returns 1 divided by the scale of Laplace noise. For a `ZCDP`, it returns 1 divided by the standard
    deviation of Gaussian noise.

    Parameters
    ----------
    budget : Budget, which is a `DP` or a `ZCDP`.

    Returns
    -------
    float
        The ε of a `DP`, or √(2ρ) for a `ZCDP`.
    """
    return sqrt(2 * budget.rho) if isinstance(budget, ZCDP) else budget.epsilon


def part_of(budget: DP | ZCDP, share: float) -> DP | ZCDP:
    """Return a budget of the same class as `budget`, with the given ε or ρ and with δ = 0.

    Parameters
    ----------
    budget : Budget, which is a `DP` or a `ZCDP`.
    share : The ε or the ρ of the new budget.

    Returns
    -------
    DP or ZCDP
        New budget, of the class of `budget`.
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
    """Add noise to integers. The noise is Gaussian if the budget is a ρ (zCDP), and geometric or Laplace
    noise if the budget is an ε.

    Parameters
    ----------
    values : Integers to which noise is added, int[n].
    budget : Budget that pays for the noise. With a `DP`, the noise has the distribution `law`. With a `ZCDP`,
    the noise is Gaussian.
    l1, l2_squared : Largest change of all values together that one protected unit can cause. `l1` is the l1
    norm of this change, and `l2_squared` is the square of its l2 norm.
    linf : Largest change of a single value that one protected unit can cause. The default is `l1`.
    law : Distribution of the noise if the budget is an ε, "geometric" or "laplace".
    rng : Seeded generator, which makes the noise reproducible. Pass None (the default) if you want to publish
    the result.

    Returns
    -------
    NoisyValues
        Noisy values, the variance of their noise, and the receipt that records their privacy cost.
    """
    if isinstance(budget, ZCDP):
        noisy, receipt = noise.gaussian(values, l2_squared=l2_squared, rho=budget.rho, rng=rng)
        return NoisyValues(noisy, gaussian_law(l2_squared, budget).variance, receipt)
    return noise.add_noise(values, l1=l1, epsilon=budget.epsilon, law=law, linf=linf, rng=rng)


def gaussian_law(l2_squared: Fraction | float, budget: ZCDP) -> Law:
    """Return the distribution of the Gaussian noise that a budget in ρ pays for.

    Parameters
    ----------
    l2_squared : Square of the l2 sensitivity. The l2 sensitivity is the largest l2 norm of a change that one
    protected unit can cause.
    budget : Budget that pays for the noise.

    Returns
    -------
    Law
        Gaussian distribution with the rate ρ/`l2_squared`. The variance is about l2_squared/(2ρ).
    """
    return Law(GAUSSIAN, float(Fraction(budget.rho) / Fraction(l2_squared)))


def as_bound(bound: Bound | float) -> Bound:
    """Convert the number l1 to a `Bound` that lets one protected unit change a single count by l1. If the
    argument is already a `Bound`, return this `Bound` unchanged.

    Parameters
    ----------
    bound : A `Bound`, or the number l1, which is the largest total change of the counts that one protected
    unit can cause.

    Returns
    -------
    Bound
        The given bound, or a bound with the given l1.
    """
    return bound if isinstance(bound, Bound) else Bound(1, bound)


def blocks_within(
    basis: Basis, bound: Bound, budget: DP | ZCDP
) -> list[noise.Block] | list[noise.GaussianBlock]:
    """Divide the nodes of a transform into blocks, and divide a budget among these blocks. A node is a
    transformed count, for example a sum of cells. A block is a group of nodes whose noise has the same
    distribution, for example one level of a tree.

    Parameters
    ----------
    basis : Transform of the counts on a domain.
    bound : Largest change of the counts that one protected unit can cause.
    budget : Cost of all blocks together.

    Returns
    -------
    list of Block or GaussianBlock
        Blocks of nodes. The costs of all blocks, in ε or ρ, add up to at most the budget.
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
    """Return a distribution that determines the noise of all nodes (transformed counts) of a release. A block
    is a group of nodes whose noise has the same distribution. The method `Law.of_nodes` converts the returned
    distribution to the distribution of the noise in one block.

    Parameters
    ----------
    basis, bound, budget : The same as for `blocks_within`.

    Returns
    -------
    Law
        For a budget in ε, a geometric distribution with rate ε/l1. For a budget in ρ, a Gaussian distribution
        with rate ρ/l2². To get l2², the function multiplies the squared l2 sensitivity of each block by the
        block's weight, and adds up the products.
    """
    if isinstance(budget, DP):
        return Law(GEOMETRIC, budget.epsilon / bound.l1)
    moved = sum(nodes.l2_squared(bound) * nodes.weight for nodes in basis.noise_blocks)
    return gaussian_law(moved, budget)


def noise_blocks(
    basis: Basis, *, l1: float, epsilon: float, linf: float | None = None
) -> list[noise.Block]:
    """Divide the nodes (transformed counts) of a transform into blocks, and divide ε among these blocks. All
    nodes of a block get noise of the same distribution. The costs of all blocks add up to at most `epsilon`.

    `l1` is the largest total change of the cells that one protected unit can cause. `linf` is the largest
    change of a single cell. If nodes are sums of cells, or differences of such sums, a node can change by up to
    `l1`. For such nodes, the function does not use `linf`.
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
    """Return the field `budget` for a mechanism's class. The field determines which kinds of budget the class
    accepts.

    Parameters
    ----------
    dp : Whether the mechanism accepts a `DP` with a finite ε > 0.
    zcdp : Whether the mechanism accepts a `ZCDP`. Set `zcdp` to True only if the cost of the noise is known as
    a ρ.
    delta : "none" if the mechanism spends no δ, "some" if the mechanism needs 0 < δ < 1, and "any" if a δ is
    optional.
    refused : Reason why the mechanism does not accept a `ZCDP`. The error message shows this reason.

    Returns
    -------
    field
        Field for a class with the decorator `value`.
    """

    def wrong(x: Any) -> str | None:
        if isinstance(x, ZCDP) and not zcdp:
            return f"this mechanism takes no ZCDP ({refused}): need a DP"
        if not isinstance(x, (DP, ZCDP) if dp else ZCDP):
            gaussian = "its noise is Gaussian: need a ZCDP, such as ZCDP.within(DP(1.0, 1e-9))"
            return "need a DP" if dp else gaussian
        if isinstance(x, DP) and not 0 < x.epsilon < inf:
            return "need a finite epsilon > 0"
        if x.delta and delta == "none":
            return "this mechanism spends no delta: need delta = 0"
        if x.delta == 1 or delta == "some" and not x.delta:
            return "this mechanism can fail with a probability delta: need 0 < delta < 1"
        return None

    doc = "privacy budget of the release" + (", with δ" if delta != "none" else "")
    taken = dict(accepts_dp=dp, accepts_zcdp=zcdp, spends_delta=delta != "none")
    return field(metadata={**parameter(check=wrong, doc=doc).metadata, "taken": taken})


class _Unstated(str):
    """Default text of a field, which can be distinguished from an equal text that a user gave."""


_LAPLACE = _Unstated("laplace")


def noise_law_field(*, zcdp: bool = False) -> Any:
    """Return the field `noise` for a mechanism's class that adds geometric or Laplace noise.

    Parameters
    ----------
    zcdp : Whether the mechanism also accepts a `ZCDP`. With a `ZCDP`, the mechanism adds Gaussian noise (see
    `settle_noise`).

    Returns
    -------
    field
        Field for a class with the decorator `value`.
    """
    choices = ("laplace", "geometric")
    if not zcdp:
        return parameter(
            "laplace",
            choices=choices,
            doc="distribution of the noise (geometric gives integers)",
        )
    doc = "distribution of the noise for an ε (geometric gives integers)"
    return parameter(
        _LAPLACE,
        choices=choices,
        check=lambda x: None if isinstance(x, _Unstated) or x == GAUSSIAN else "another",
        doc=doc,
    )


def settle_noise(mechanism: Any) -> None:
    """Check that the field `noise` fits the budget. For a budget in ρ, the noise must be Gaussian. For a budget
    in ε, the noise must be geometric or Laplace noise.

    Parameters
    ----------
    mechanism : Mechanism to check. The field `noise` must come from `noise_law_field(zcdp=True)`.

    Raises
    ------
    ValueError
        If the chosen noise does not fit the budget.
    """
    of_rho = isinstance(mechanism.budget, ZCDP)
    given = f" with {mechanism.budget!r}"
    if of_rho and not isinstance(mechanism.noise, _Unstated) and mechanism.noise != GAUSSIAN:
        why = "a rho pays for Gaussian noise: need 'gaussian', or leave it out"
        raise not_allowed(mechanism, "noise", why, given)
    if not of_rho and mechanism.noise == GAUSSIAN:
        why = "need 'laplace' or 'geometric', or a ZCDP, which pays for Gaussian noise"
        raise not_allowed(mechanism, "noise", why, given)
    if not of_rho and mechanism.noise == _LAPLACE:
        object.__setattr__(mechanism, "noise", _LAPLACE)  # so that its text leaves it out


def memory_field() -> Any:
    """Return the field `memory` for a mechanism's class that keeps every cell of the domain in memory. The
    field is the largest number of bytes that the mechanism may use, by default 2³². The mechanism refuses
    larger domains.
    """
    return parameter(
        2**32,
        1,
        integer=True,
        unit="bytes",
        doc="largest memory to use (larger domains raise an error)",
    )


def transform_field() -> Any:
    """Return the field `transform` for a mechanism's class. Such a mechanism can add noise to a transform of
    the table, for example to wavelet coefficients.
    """
    return parameter(
        None, choices=(None, *TRANSFORMS), doc="transform before the noise (haar: wavelets)"
    )


def consistent_field() -> Any:
    """Return the field `consistent` for the class of a mechanism that releases nodes of a tree. The count of a
    node is the sum of the counts of its children. If the field is True, the mechanism releases a node only if
    all nodes above this node are also released.
    """
    return parameter(
        False, choices=(False, True), doc="release a node only if all nodes above are released"
    )


# Mechanism

_MAKERS = ("read", "from_frame", "from_table", "from_values")


class Mechanism(Protocol):
    """Base class of mechanisms. A mechanism is an object whose fields are the parameters of an algorithm from a
    paper. The fields cannot be changed. If you call the mechanism with private data, it spends its budget and
    returns a release.

    Every class in `workbench.mechanisms` obeys the following rules, which tests/laws/test_laws.py checks. A
    release contains receipts, which record what the release cost. The costs of all receipts add up to at most
    the budget. All random numbers come from `rng`. If `rng` is None, the random numbers come from the operating
    system. The estimate is public, and has the declared domain. As ε grows, the error goes to 0. If the error
    of a class does not go to 0, the class sets `converges = False` and explains why.

    The class variables `accepts_dp`, `accepts_zcdp` and `spends_delta` determine which budgets the class
    accepts. The function `budget_field` makes the field `budget` and sets the three variables. A class without
    this field has to set the three variables itself, for example a class that runs another mechanism.

    If a class sets `fixed_price = True`, its releases have the same receipts for all data with the same domain
    and bound. A session may have a budget in ρ that several releases share. For a mechanism with a fixed price,
    the session then pays only the ρ of the receipts. For other mechanisms with a budget in ε, the session pays
    the larger ρ that ε implies.

    Figures, panels and advice show the text in `series` as the name of the mechanism. `series` is a class
    variable or a property. If a class has no `series`, they show the name of the class.
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
        """Set the class variables that determine which budgets the class accepts. Also make calls raise an
        error if the data are not of the class `takes`.
        """
        super().__init_subclass__(**kwargs)
        declared = vars(cls).get("budget")
        if isinstance(declared, Field):
            for name, taken in declared.metadata.get("taken", {}).items():
                setattr(cls, name, taken)
        if "__call__" in vars(cls):
            type.__setattr__(cls, "__call__", _refusing_other_data(vars(cls)["__call__"]))

    def __call__(self, data: Any, rng: np.random.Generator | None = None) -> Release:
        """Spend the budget and return a release.

        Parameters
        ----------
        data : Private data of the class `takes`. The data must have a bound on the changes that one protected
        unit can cause.
        rng : Seeded generator, which makes the release reproducible. Pass None (the default) if you want to
        publish the release.

        Returns
        -------
        Release
            Public estimate, with receipts that record what the release cost. The cost is at most the budget.
        """

    @classmethod
    def example(cls, budget: Any) -> Self:
        """Return an example of the mechanism for tests and for audits, which measure the privacy loss. Unless a
        class defines its own example, all parameters except the budget have their defaults.

        The example spends `budget`, which is a `DP` or a `ZCDP`. The mechanism must accept this kind of budget.
        """
        make: Any = cls
        return make(budget)

    def dense_counts(self, table: SparseTable, each: int = 40) -> np.ndarray:
        """Return the counts of all cells of the domain, as int64[cells]. If these cells need more memory than
        the field `memory` allows, raise a ValueError. Each cell needs `each` bytes.
        """
        self.refuse_dense(table.domain.size, each)
        return table.dense().ravel()

    def refuse_dense(self: Any, cells: int, each: int = 40) -> None:
        """Raise a ValueError if `cells` cells need more memory than the field `memory` allows. Each cell
        needs `each` bytes.

        These bytes are for the count of a cell, the noisy count, and intermediate results.
        """
        need = each * cells
        if need > self.memory:
            raise ValueError(
                f"{type(self).__name__}.memory = {self.memory} is too little: {cells} cells need about "
                f"{need} bytes"
            )

    def refuse_size_above(self: Any, cells: int) -> None:
        """Raise a ValueError if the field `size` is larger than the number of cells."""
        if self.size > cells:
            raise not_allowed(self, "size", f"need at most {cells}, the number of cells")

    def refuse_lost_records(self, table: SparseTable) -> None:
        """Raise a ValueError if records may have been left out of the table because of their values. Call this
        method if the mechanism publishes the number of records. This number would then reveal something about
        the values of a record.
        """
        if table.may_lack_rows:
            raise ValueError(
                f"{type(self).__name__} publishes the number of records, which reveals values whose rows are "
                'left out. In the domain, need "label" or "refuse" in place of "drop". If you name users, do '
                "not name a column of counts"
            )

    def refuse_several_tuples_per_unit(self, table: SparseTable) -> None:
        """Raise a ValueError if the table's bound allows a unit to have more than one record, or if records
        may have been left out because of their values.
        """
        self.refuse_lost_records(table)
        if sensitivity(table) != 1:
            raise ValueError(
                f"a table with the bound {table.bound!r} is not allowed: {type(self).__name__} protects "
                "each tuple separately, so need one tuple per unit, l1 = 1"
            )


def refuse_other_data(mechanism: Any, data: Any) -> None:
    """Raise a ValueError if the mechanism does not accept data of this class. The message explains how to make
    data of the right class.
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
    """Return a function that first checks the class of the data, and then calls the mechanism."""

    @wraps(call)
    def checked(self: Any, data: Any, *args: Any, **kwargs: Any) -> Release:
        refuse_other_data(self, data)
        return call(self, data, *args, **kwargs)

    return checked


def promises_of(cls: type) -> str:
    """Return the part of a mechanism's docstring from the section Guarantee to the end. If there is no such
    section, return "".
    """
    doc = cleandoc(cls.__doc__ or "")
    start = doc.find("Guarantee  ")
    return doc[start:] if start >= 0 else ""


def series_name(mechanism: Any) -> str:
    """Return the name of a mechanism in figures. The name begins with the text in `series`, or with the name of
    the class. Then the name contains the transform, and the word "consistent" if the field `consistent` is
    True.

    If the budget is a ρ, and the mechanism also accepts an ε, the name ends with "Gaussian".

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
