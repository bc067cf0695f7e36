"""What a mechanism is, and, under one import, all that its author needs.

`mechanisms/laplace_histogram.py` is the shortest to copy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from workbench import noise
from workbench.estimates.histogram import Histogram
from workbench.estimates.summary import Summary
from workbench.mechanism_fields import (
    approximate_budget,
    consistent_field,
    gaussian_budget,
    memory_field,
    noise_law_field,
    pure_budget,
    settle_noise,
    transform_field,
)
from workbench.privacy import ADD_REMOVE, DP, ZCDP
from workbench.release import Release
from workbench.release_files import read_release, refuse_place
from workbench.shares import (
    add_noise,
    amount,
    as_bound,
    blocks_within,
    gaussian_law,
    inverse_scale,
    law_within,
    noise_blocks,
    part_of,
    private_bound,
    sensitivity,
    split_epsilon,
)
from workbench.table import Bound, SparseTable
from workbench.value import not_allowed, parameter, sealed, value

_MAKERS = ("read", "from_frame", "from_table", "from_values")


class Mechanism(Protocol):
    """A frozen value: fields are the paper's parameters, calling it spends the budget.

    House rules, held by tests/laws/test_laws.py for every class in `workbench.mechanisms`: the ledger stays
    within the budget; all randomness comes from `rng`, or from the operating system when it is None;
    the estimate is public and on the domain it declares; the error vanishes as ε grows, unless the
    class says `converges = False` and why.

    One that `accepts_zcdp` takes a `ZCDP` as its budget too, and then draws Gaussian noise; its budget
    field (`pure_budget(zcdp=True)`) says so as well, or why it refuses.

    Where `fixed_price`, its receipts say the same of any data of one domain and bound, so that a session
    that spends ρ books what they will say, in place of the ρ that its ε implies.

    Figures, panels and advice call it by its `series`, a class variable or a property of the fields
    that its name depends on; by its class where it has none. One that puts geometric noise on the nodes of
    a basis and then a threshold may have `release_rule(domain, bound)`, from which its errors are foreseen.
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
    cite: ClassVar[str]
    accepts_zcdp: ClassVar[bool] = False
    accepts_dp: ClassVar[bool] = True
    fixed_price: ClassVar[bool] = False
    converges: ClassVar[bool] = True
    spends_delta: ClassVar[bool] = False
    relation: ClassVar[str] = ADD_REMOVE
    idealised: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Add what its file promises to its help, and refuse data of another class when it is called."""
        super().__init_subclass__(**kwargs)
        if "__call__" in vars(cls):
            type.__setattr__(cls, "__call__", _refusing_other_data(vars(cls)["__call__"]))
        promises = promises_of(cls)
        if promises and "__doc__" in vars(cls):
            cls.__doc__ = f"{cleandoc(cls.__doc__ or '')}\n\n{promises}"

    def __call__(self, data: Any, rng: np.random.Generator | None = None) -> Release:
        """Release a private estimate.

        Parameters
        ----------
        data : private data of the class `takes`, with a bound.
        rng : a seeded generator for a release that can be replayed, or None to publish.

        Returns
        -------
        Release
            The estimate, with receipts that cost no more than the budget.
        """

    @classmethod
    def example(cls, budget: Any) -> Self:
        """One sensible instance, for laws, audits and widgets; unless said otherwise its defaults.

        Its budget is of the class's kind: a class that takes a `DP` alone says so where it overrides this.
        """
        make: Any = cls
        return make(budget)

    def dense_counts(self, table: SparseTable, each: int = 40) -> np.ndarray:
        """Every count of the domain, int64[cells], unless `refuse_dense`."""
        self.refuse_dense(table.domain.size, each)
        return table.dense().ravel()

    def refuse_dense(self: Any, cells: int, each: int = 40) -> None:
        """A ValueError if the cells, of `each` bytes, exceed `memory`.

        A cell is a count, a noisy count, and what is made of them.
        """
        need = each * cells
        if need > self.memory:
            raise ValueError(
                f"{type(self).__name__}.memory = {self.memory} is too little: {cells} cells need "
                f"some {need} bytes"
            )

    def refuse_size_above(self: Any, cells: int) -> None:
        """A ValueError if `size` asks for more cells than there are."""
        if self.size > cells:
            raise not_allowed(self, "size", f"need at most {cells}, all that there are")

    def refuse_several_tuples_per_unit(self, table: SparseTable) -> None:
        """A ValueError for a table of which a unit may have more than one tuple."""
        if sensitivity(table) != 1:
            raise ValueError(
                f"a table of bound {table.bound!r} is not allowed: {type(self).__name__} protects "
                "each tuple by itself, so need one tuple a unit, l1 = 1"
            )


def refuse_other_data(mechanism: Any, data: Any) -> None:
    """A ValueError for data of another class than a mechanism `takes`, which says how to make them."""
    takes = getattr(mechanism, "takes", None)
    if not isinstance(takes, type) or isinstance(data, takes):
        return
    if getattr(data, "stands_for", None) is takes:  # rows beyond memory
        return
    makers = [f"{takes.__name__}.{name}" for name in _MAKERS if hasattr(takes, name)]
    how = f": make them with {' or '.join(makers)}" if makers else ""
    raise ValueError(
        f"{type(mechanism).__name__} takes {takes.__name__}, not {type(data).__name__}{how}"
    )


def _refusing_other_data(call: Callable[..., Release]) -> Callable[..., Release]:
    """The call of a mechanism, which first checks the class of its data."""

    @wraps(call)
    def checked(self: Any, data: Any, *args: Any, **kwargs: Any) -> Release:
        refuse_other_data(self, data)
        return call(self, data, *args, **kwargs)

    return checked


def promises_of(cls: type) -> str:
    """The docstring of the file of a mechanism, from its guarantee on; empty where it has none."""
    doc = cleandoc(getattr(sys.modules.get(cls.__module__), "__doc__", None) or "")
    start = doc.find("Guarantee  ")
    return doc[start:] if start >= 0 else ""


def series_name(mechanism: Any) -> str:
    """What figures call a mechanism: its `series`, or its class; its transform, and "consistent" if it is.

    Of a ρ, where another budget would buy other noise, "Gaussian" too.

    >>> from workbench.mechanisms import HighPassFilter
    >>> from workbench.transform import Dyadic
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
