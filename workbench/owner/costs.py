"""Checks of a mechanism's privacy cost before the cost is recorded in a budget. The checks use no private
data.
"""

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
    """Raise a ValueError if the guarantee of a mechanism is of a kind that no budget can pay for. The check
    costs no budget, because it uses no private data.

    If you pass data, the function also runs the mechanism on data that have the same type, domain and bound but
    no records. The function stops the mechanism at the first random draw. If the mechanism raises an error for
    these data, no cost was recorded yet. This step is skipped if the number of units is public, because data
    without records then contradict this number.
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
    """Return whether a mechanism with a cost ε may cost a budget in ρ less than the ρ that follows from this
    ε.
    """
    is_fixed = getattr(mechanism, "fixed_price", False)
    return is_fixed and isinstance(budget, ZCDP) and isinstance(mechanism.budget, DP)


def rho_of_receipts(mechanism: Any, data: Any) -> ZCDP:
    """Return the total ρ of a mechanism's receipts (records of what each measurement costs). Use this function
    only for mechanisms whose receipts are the same for all data with this domain and bound.

    The function makes a release of data without records, reads its receipts and discards it.
    """
    rho, delta = exact_rho(mechanism(_without_records(data), np.random.default_rng(0)).ledger)
    return ZCDP(round_up(rho), round_up(delta))


class _FirstDraw(Exception):
    """Exception that stops a mechanism when it asks for random bits."""


class _Undrawn(Source):
    """Source of noise that raises an exception at the first draw, so that a mechanism runs only up to this
    point.
    """

    def __init__(self) -> None:
        super().__init__(None)

    def measurement(self) -> Source:
        """Return the source itself, which also stops the draws of a single measurement."""
        return self

    @property
    def words(self) -> Any:
        """Raise `_FirstDraw`, which stops the mechanism before anything is drawn."""
        raise _FirstDraw

    floats = words

    def __getattr__(self, name: str) -> Any:
        raise _FirstDraw


def _without_records(data: Any) -> Any:
    """Return a copy of the data without records. The last axis of each array (over records or cells) gets the
    length 0.
    """
    arrays = {
        f.name: x[..., :0]
        for f in fields(data)
        if isinstance(x := getattr(data, f.name), np.ndarray)
    }
    return replace(data, **arrays)


def description(mechanism: Any, spent_from: DP | ZCDP) -> str:
    """Return the text that describes a mechanism in the ledger (the list of all costs). Leave out the
    mechanism's budget if a column of the ledger already shows it.
    """
    if not isinstance(mechanism.budget, type(spent_from)):
        return repr(mechanism)
    budget = f"budget={mechanism.budget!r}"
    return repr(mechanism).replace(f"{budget}, ", "").replace(budget, "")
