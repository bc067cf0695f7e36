"""What is booked before anything is drawn, and held against the receipts before anything leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.enclosures import round_down
from workbench.interactions import Interactions
from workbench.mechanism import Release
from workbench.privacy import ADD_REMOVE, DP, Receipt, exact_cost
from workbench.records import Records
from workbench.table import SparseTable
from workbench.wording import stated

if TYPE_CHECKING:
    from workbench.session.spending import Spending


@dataclass(frozen=True)
class Booking:
    """A spend that is on disk, and what may be drawn for it.

    Parameters
    ----------
    session : whose budget was spent from.
    questions : the numbers of its rows in the ledger.
    epsilon, delta : what they cost together, exactly.
    relation : which neighbours that is about.
    """

    session: Spending
    questions: tuple[int, ...]
    epsilon: Fraction
    delta: Fraction
    relation: str

    def check(self, release: Release | Iterable[Receipt]) -> None:
        """Refuse a release that cost more than was booked, or promises something else.

        Parameters
        ----------
        release : what was drawn, or its receipts.

        Raises
        ------
        ValueError
            If it must be withheld. What was booked stays spent.
        """
        receipts = release.ledger if isinstance(release, Release) else tuple(release)
        wrong = _unfit(receipts, self.relation)
        if not wrong:
            epsilon, delta = exact_cost(receipts)
            if epsilon > self.epsilon or delta > self.delta:
                cost = DP(float(epsilon), min(1.0, float(delta)))
                booked = DP(round_down(self.epsilon), min(1.0, round_down(self.delta)))
                wrong = f"its receipts say {cost}, and {booked} was booked"
        if wrong:
            raise ValueError(
                f"the release is withheld, and what was booked stays spent: {wrong}"
            )

    def confirm(self) -> None:
        """Write down that what was paid for is there; until then the ledger takes it for lost."""
        self.session._confirm(self.questions)


def refuse_unpayable(mechanism: Any, data: Any, relation: str) -> None:
    """A ValueError for what no budget of this relation pays for, at no cost: no private data is used.

    If data are given, the mechanism is run, up to its first draw, on others of the same kind, domain
    and bound without a record: what it refuses by then is refused before anything is booked. Where the
    number of units is public, as between neighbours that replace one, there are no such data.
    """
    name = type(mechanism).__name__
    budget = getattr(mechanism, "budget", None)
    if not isinstance(budget, DP):
        raise ValueError(f"{name} has no budget: need a mechanism that states what it may cost")
    about = getattr(mechanism, "relation", ADD_REMOVE)
    if about != relation:
        raise ValueError(
            f"{name} promises something about neighbours of another relation, {about}; this budget is "
            f"about {relation}, and the two do not add up"
        )
    if getattr(mechanism, "idealised", False):
        raise ValueError(f"{name} is drawn with floating point: idealised, and never released")
    if getattr(mechanism, "withdrawn", False):
        raise ValueError(
            f"{name} promises nothing as it is printed: its guarantee is withdrawn"
        )
    if data is None:
        return
    takes = getattr(mechanism, "takes", None)
    if isinstance(takes, type) and not isinstance(data, takes):
        raise ValueError(f"{name} takes {takes.__name__}, not {type(data).__name__}")
    if about == ADD_REMOVE and isinstance(data, SparseTable | Records | Interactions):
        with suppress(_FirstDraw):
            mechanism(_without_records(data), _Undrawn())


class _FirstDraw(Exception):
    """Somebody wants a random bit."""


class _Undrawn(np.random.Generator):
    """A generator that stops whoever draws from it."""

    def __init__(self) -> None:
        super().__init__(np.random.default_rng(0).bit_generator)

    def __getattribute__(self, name: str) -> Any:
        raise _FirstDraw


def _without_records(data: Any) -> Any:
    """The same with no record: each array, whose last axis is over records or cells, is empty."""
    arrays = {
        f.name: x[..., :0]
        for f in fields(data)
        if isinstance(x := getattr(data, f.name), np.ndarray)
    }
    return replace(data, **arrays)


def _unfit(receipts: tuple[Receipt, ...], relation: str) -> str:
    """Why what cost this must not leave; "" if it may."""
    if not receipts:
        return "it has no receipt"
    for receipt in receipts:
        if receipt.cost.epsilon == inf:
            return f"it promises nothing: {receipt.description}"
        if receipt.simulated or receipt.idealised:
            return f"its noise can be replayed, or is idealised: {receipt.description}"
        if receipt.relation != relation:
            return f"a receipt is about {receipt.relation}, and the budget about {relation}"
    return ""


def refuse_unpaid(asked: DP, left: tuple[Fraction, Fraction], budget: DP) -> None:
    """A ValueError if what is left of the budget does not pay for what is asked."""
    if not isinstance(asked, DP) or not 0 < asked.epsilon < inf or asked.delta >= 1:
        raise ValueError(
            f"cost = {asked!r} is not allowed: need DP(0 < epsilon < inf, 0 <= delta < 1); what promises "
            "nothing is never booked"
        )
    for name, remaining in zip(("epsilon", "delta"), left, strict=True):
        wanted = getattr(asked, name)
        if Fraction(wanted) > remaining:
            rounded = round_down(remaining)
            words: Callable[[float], str] = stated
            if float(stated(rounded)) >= float(stated(wanted)):
                words = repr  # all digits: the usual ones would say that it is enough
            raise ValueError(
                f"{name} = {words(wanted)} is more than the {words(rounded)} that remain of "
                f"{budget}: nothing was spent"
            )


def description(mechanism: Any) -> str:
    """A mechanism as the ledger names it, where its budget has columns of its own."""
    budget = f"budget={mechanism.budget!r}"
    return repr(mechanism).replace(f"{budget}, ", "").replace(budget, "")
