"""All laws on one class, each with what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from workbench.laws import releases, values
from workbench.laws.subject import Broken, Subject

LAWS: tuple[Callable[[Subject], None], ...] = (
    values.frozen_value,
    values.refuses_budgets,
    values.refuses_numbers,
    values.states_promises,
    releases.costs_its_budget,
    releases.receipts_are_kept,
    releases.price_is_fixed,
    releases.randomness_is_the_rngs,
    releases.fit_to_publish,
    releases.estimate_is_public,
    releases.cells_are_released_once,
    releases.empty_tables_are_tables,
    releases.public_tables_are_refused,
    releases.recipes_are_their_queries,
    releases.saved_is_loaded,
    releases.error_vanishes,
    releases.error_bars_fit,
    releases.neighbours_are_alike,
)


@dataclass(frozen=True)
class Outcome:
    """What came of one law: `broken` says how it does not hold, and is empty where it does."""

    law: str
    broken: str = ""


def check_laws(cls: Any) -> Iterator[Outcome]:
    """Run every law on a class of mechanisms; each outcome comes as soon as it is there.

    Parameters
    ----------
    cls : type
        A class with `takes` and `example`, of a mechanism that takes a table, records or interactions.
    """
    subject = Subject(cls)
    for law in LAWS:
        sentence = (law.__doc__ or law.__name__).splitlines()[0]
        try:
            law(subject)
            yield Outcome(sentence)
        except Broken as e:
            yield Outcome(sentence, str(e))
        except Exception as e:  # somebody else's mechanism may raise anything
            yield Outcome(sentence, f"{type(e).__name__}: {e}")
