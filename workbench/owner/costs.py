"""Cost of a mechanism, computed without private data before anything is booked."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import numpy as np

from workbench.data import Interactions, Records, SparseTable, UnlistedValues, WideTable
from workbench.mechanisms.protocol import refuse_other_data
from workbench.noise.source import Source
from workbench.privacy import ADD_REMOVE, DP, ZCDP, exact_rho
from workbench.privacy.enclosures import round_up


def refuse_unpayable(mechanism: Any, data: Any, relation: str) -> None:
    """Raise a ValueError if a budget cannot pay for a mechanism. This check costs nothing, because it uses
    no private data.

    If you pass data, the function also tries the mechanism on data without any record, up to the first
    draw. These have the same kind, domain and bound. So errors occur before anything is booked. This step
    is skipped if the number of units is public, because such data then do not exist.
    """
    name = type(mechanism).__name__
    budget = getattr(mechanism, "budget", None)
    if not isinstance(budget, DP | ZCDP):
        raise ValueError(f"{name} has no budget: need a mechanism with a budget")
    about = getattr(mechanism, "relation", ADD_REMOVE)
    if about != relation:
        raise ValueError(
            f"{name} has a guarantee for neighbours of another relation, {about}. This budget is for "
            f"{relation}, and the two do not add up"
        )
    if getattr(mechanism, "idealised", False):
        raise ValueError(
            f"{name} is idealised (drawn with floating point), so it is never released"
        )
    if getattr(mechanism, "withdrawn", False):
        raise ValueError(
            f"{name} promises nothing, because its printed guarantee is wrong and withdrawn"
        )
    if data is None:
        return
    refuse_other_data(mechanism, data)
    if about == ADD_REMOVE and isinstance(
        data, SparseTable | WideTable | Records | Interactions | UnlistedValues
    ):
        with suppress(_FirstDraw):
            mechanism(_without_records(data), _Undrawn())


def in_rho_for_less(mechanism: Any, budget: DP | ZCDP) -> bool:
    """Return whether a budget in zCDP may pay less for a mechanism than the ρ that follows from its ε."""
    is_fixed = getattr(mechanism, "fixed_price", False)
    return is_fixed and isinstance(budget, ZCDP) and isinstance(mechanism.budget, DP)


def rho_of_receipts(mechanism: Any, data: Any) -> ZCDP:
    """Return the ρ of a mechanism's receipts. These are the same for all data with this domain and bound.

    The function makes a seeded release of data without records, and discards it.
    """
    rho, delta = exact_rho(mechanism(_without_records(data), np.random.default_rng(0)).ledger)
    return ZCDP(round_up(rho), round_up(delta))


class _FirstDraw(Exception):
    """Signal that a mechanism asks for random bits."""


class _Undrawn(Source):
    """Source that stops a mechanism at its first draw."""

    def __init__(self) -> None:
        super().__init__(None)

    def measurement(self) -> Source:
        """Return the source itself."""
        return self

    @property
    def words(self) -> Any:
        """Stop before anything is drawn."""
        raise _FirstDraw

    @property
    def floats(self) -> Any:
        """Stop before anything is drawn."""
        raise _FirstDraw

    def __getattr__(self, name: str) -> Any:
        raise _FirstDraw


def _without_records(data: Any) -> Any:
    """Return the same object without records. Each array has an empty last axis, which is over records
    or cells.
    """
    arrays = {
        f.name: x[..., :0]
        for f in fields(data)
        if isinstance(x := getattr(data, f.name), np.ndarray)
    }
    return replace(data, **arrays)


def description(mechanism: Any, spent_from: DP | ZCDP) -> str:
    """Describe a mechanism for the ledger. The budget is left out if it is in a column of the ledger."""
    if not isinstance(mechanism.budget, type(spent_from)):
        return repr(mechanism)
    budget = f"budget={mechanism.budget!r}"
    return repr(mechanism).replace(f"{budget}, ", "").replace(budget, "")
