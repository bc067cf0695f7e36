"""What is booked before anything is drawn, and held against the receipts before anything leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.enclosures import round_down, round_up
from workbench.interactions import Interactions
from workbench.mechanism import Release, refuse_other_data
from workbench.privacy import (
    ADD_REMOVE,
    DP,
    ZCDP,
    Receipt,
    compose,
    exact_cost,
    exact_rho,
    rho_above,
)
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
    spent, delta : what they cost together, exactly: ε, or ρ where the budget is one of zCDP; and δ.
    relation : which neighbours that is about.
    """

    session: Spending
    questions: tuple[int, ...]
    spent: Fraction
    delta: Fraction
    relation: str
    _unused: list[bool] = field(
        default_factory=lambda: [True], init=False, repr=False, compare=False
    )

    def check(self, release: Release | Iterable[Receipt]) -> None:
        """Refuse a release that cost more than was booked, or promises something else.

        A booking pays for one release. Once a release has passed, every other one is refused.

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
            wrong = self._too_dear(receipts)
        if wrong:
            raise ValueError(
                f"the release is withheld, and what was booked stays spent: {wrong}"
            )
        try:
            self._unused.pop()  # atomic, so that only one of several threads passes
        except IndexError:
            raise ValueError(
                "the release is withheld: this booking has already paid for another release. Book again "
                "for each release"
            ) from None

    def _too_dear(self, receipts: tuple[Receipt, ...]) -> str:
        """Why it costs more than was booked; "" if it does not."""
        in_rho = isinstance(self.session.budget, ZCDP)
        if not in_rho and any(isinstance(r.cost, ZCDP) for r in receipts):
            return f"its receipts say {compose(receipts)}, of which a budget of ε pays nothing"
        spent, delta = exact_rho(receipts) if in_rho else exact_cost(receipts)
        if spent <= self.spent and delta <= self.delta:
            return ""
        cost = type(self.session.budget)(float(spent), min(1.0, float(delta)))
        return f"its receipts say {cost}, and {self.booked} was booked"

    @property
    def booked(self) -> DP | ZCDP:
        """The whole spend, rounded down."""
        kind = type(self.session.budget)
        return kind(round_down(self.spent), min(1.0, round_down(self.delta)))

    @contextmanager
    def saving(self) -> Iterator[None]:
        """Say in an error of the disk what was spent on the release that could not be saved."""
        try:
            yield
        except OSError as e:
            text = stays_spent([self.booked], self.session.budget)
            raise OSError(f"{e}. {text}") from None

    def confirm(self) -> None:
        """Write down that what was paid for is there; until then the ledger takes it for lost."""
        self.session._confirm(self.questions)


def stays_spent(costs: Iterable[DP | ZCDP], budget: DP | ZCDP) -> str:
    """What to say where nothing came of a spend."""
    return (
        f"{' and '.join(map(str, costs))} of the budget of {budget} was spent and stays spent"
    )


def refuse_unpayable(mechanism: Any, data: Any, relation: str) -> None:
    """A ValueError for what no budget of this relation pays for, at no cost: no private data is used.

    If data are given, the mechanism is run, up to its first draw, on others of the same kind, domain
    and bound without a record: what it refuses by then is refused before anything is booked. Where the
    number of units is public, as between neighbours that replace one, there are no such data.
    """
    name = type(mechanism).__name__
    budget = getattr(mechanism, "budget", None)
    if not isinstance(budget, DP | ZCDP):
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
    refuse_other_data(mechanism, data)
    if about == ADD_REMOVE and isinstance(data, SparseTable | Records | Interactions):
        with suppress(_FirstDraw):
            mechanism(_without_records(data), _Undrawn())


def in_rho_for_less(mechanism: Any, budget: DP | ZCDP) -> bool:
    """Whether a budget of zCDP may pay less for it than the ρ that its ε implies."""
    is_fixed = getattr(mechanism, "fixed_price", False)
    return is_fixed and isinstance(budget, ZCDP) and isinstance(mechanism.budget, DP)


def rho_of_receipts(mechanism: Any, data: Any) -> ZCDP:
    """What its receipts say of any data of this domain and bound: those without a record are released.

    From a seed, and thrown away.
    """
    rho, delta = exact_rho(mechanism(_without_records(data), np.random.default_rng(0)).ledger)
    return ZCDP(round_up(rho), round_up(delta))


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
        if isinstance(receipt.cost, DP) and receipt.cost.epsilon == inf:
            return f"it promises nothing: {receipt.description}"
        if receipt.simulated or receipt.idealised:
            return f"its noise can be replayed, or is idealised: {receipt.description}"
        if receipt.relation != relation:
            return f"a receipt is about {receipt.relation}, and the budget about {relation}"
    return ""


def exact_price(cost: DP | ZCDP, budget: DP | ZCDP) -> tuple[Fraction, Fraction]:
    """What a cost takes from a budget, and δ: of one of zCDP an ε takes the ρ that it implies.

    A ValueError for what is never booked: what promises nothing, or zCDP from a budget of ε.
    """
    if isinstance(cost, ZCDP) and isinstance(budget, ZCDP):
        return Fraction(cost.rho), Fraction(cost.delta)
    if isinstance(cost, ZCDP):
        raise ValueError(
            f"{cost} promises no epsilon without a delta, and {budget} is a budget of epsilon: begin one "
            "of rho, or spend on noise that costs an epsilon"
        )
    if not isinstance(cost, DP) or not 0 < cost.epsilon < inf or cost.delta >= 1:
        raise ValueError(
            f"cost = {cost!r} is not allowed: need DP(0 < epsilon < inf, 0 <= delta < 1); what promises "
            "nothing is never booked"
        )
    price = rho_above(cost.epsilon) if isinstance(budget, ZCDP) else cost.epsilon
    return Fraction(price), Fraction(cost.delta)


def refuse_unpaid(
    asked: DP | ZCDP, left: tuple[Fraction, Fraction], budget: DP | ZCDP
) -> tuple[Fraction, Fraction]:
    """What is asked takes from the budget, exactly; a ValueError if what is left does not pay for it."""
    price = exact_price(asked, budget)
    names = ("rho" if isinstance(budget, ZCDP) else "epsilon", "delta")
    for name, wanted, remaining in zip(names, price, left, strict=True):
        if wanted > remaining:
            rounded = round_down(remaining)
            words: Callable[[float], str] = stated
            if float(stated(rounded)) >= float(stated(float(wanted))):
                words = repr  # all digits: the usual ones would say that it is enough
            raise ValueError(
                f"{name} = {words(float(wanted))} is more than the {words(rounded)} that remain of "
                f"{budget}: nothing was spent"
            )
    return price


def description(mechanism: Any, spent_from: DP | ZCDP) -> str:
    """A mechanism as the ledger names it: its own budget is left out if columns hold the same."""
    if not isinstance(mechanism.budget, type(spent_from)):
        return repr(mechanism)
    budget = f"budget={mechanism.budget!r}"
    return repr(mechanism).replace(f"{budget}, ", "").replace(budget, "")
