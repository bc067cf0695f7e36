"""The randomness of one measurement of private data, and the receipt that says what it cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from math import inf
from typing import Protocol

import numpy as np

from workbench.arrays import Int
from workbench.noise.bits import Words, generator, word_source
from workbench.privacy import ADD_REMOVE, DP, ZCDP, Receipt
from workbench.threads import on_threads, slices, thread_count

# One thread draws fewer. On two virtual cores of one physical core, two threads took 1.2 times the
# processor time of one at 10⁶ cells, so that they gained nothing, and 1.1 times at 4·10⁶.
CELLS_FOR_THREADS = 2**22


class AdditiveLaw(Protocol):
    """A law of noise on whole numbers."""

    def add(self, out: Int[np.ndarray, " n"], words: Words) -> None:
        """Add an independent draw to every element of `out`, in place."""


class Source:
    """What one measurement draws, and what it signs, made from the one `rng` of its caller.

    Its receipts say `simulated` if that `rng` can be replayed, and `idealised` once a law was drawn
    with floating point: no argument of theirs can be forgotten.
    """

    def __init__(self, rng: np.random.Generator | bytes | None):
        self._rng = rng
        self._idealised = False

    @cached_property
    def words(self) -> Words:
        """Uniform 64-bit words, for exact laws."""
        return word_source(self._rng)

    def add_noise(self, law: AdditiveLaw, values: Int[np.ndarray, " n"]) -> None:
        """Noise of the law on each of the values, in place.

        Without a generator many values are several parts, each on a thread and with words of its own:
        draws are independent, so that it makes no difference to their law.
        """
        threads = (
            thread_count() if self._rng is None and values.size >= CELLS_FOR_THREADS else 1
        )
        if threads == 1:
            law.add(values, self.words)
        else:
            parts = slices(values.size, 2 * threads)
            on_threads(lambda part: law.add(values[part], word_source(None)), parts, threads)

    @property
    def floats(self) -> np.random.Generator:
        """A generator, for laws that are drawn with floating point."""
        self._idealised = True
        return generator(self._rng)

    def receipt(
        self,
        name: str,
        epsilon: float,
        delta: float = 0.0,
        relation: str = ADD_REMOVE,
        *,
        rho: float | None = None,
    ) -> Receipt:
        """The receipt of this measurement; `rho` is what follows from its structure."""
        return self._signed(name, DP(epsilon, delta), relation, rho)

    def zcdp_receipt(
        self, name: str, rho: float, delta: float = 0.0, relation: str = ADD_REMOVE
    ) -> Receipt:
        """The receipt of a measurement whose price is a ρ, and no ε."""
        return self._signed(name, ZCDP(rho, delta), relation)

    def _signed(
        self, name: str, cost: DP | ZCDP, relation: str, rho: float | None = None
    ) -> Receipt:
        simulated = self._rng is not None
        return Receipt(name, cost, relation, simulated, self._idealised, rho=rho)


def by_theorem(name: str, cost: DP, theorem: str, *, replaces: Iterable[Receipt]) -> Receipt:
    """The price of a whole procedure where a theorem puts it below the sum of its draws.

    Parameters
    ----------
    name : what was measured.
    cost : what the theorem says that the whole procedure costs.
    theorem : where it stands: authors, year, number.
    replaces : the receipts of the draws, at least one, all of them about one relation.

    Returns
    -------
    Receipt
        One receipt in their place, simulated or idealised if one of them is.

    Raises
    ------
    ValueError
        Without receipts, or if they are about different relations.
    """
    return _in_place_of(replaces, Receipt(name, cost, theorem=theorem))


def withdrawn(name: str, *, replaces: Iterable[Receipt]) -> Receipt:
    """A procedure as a paper prints it, whose guarantee is wrong: it promises nothing.

    Parameters
    ----------
    name : what was measured.
    replaces : the receipts of the draws, at least one, all of them about one relation.

    Returns
    -------
    Receipt
        One receipt of infinite ε in their place; a release that holds it is never saved.

    Raises
    ------
    ValueError
        Without receipts, or if they are about different relations.
    """
    return _in_place_of(replaces, Receipt(name, DP(inf), withdrawn=True))


def unprotected(name: str) -> Receipt:
    """A measurement that no noise protects: the release then promises nothing.

    Parameters
    ----------
    name : what was read off the data.

    Returns
    -------
    Receipt
        Of infinite ε.
    """
    return Receipt(name, DP(inf))


def _in_place_of(receipts: Iterable[Receipt], receipt: Receipt) -> Receipt:
    """The receipt, about the relation and from the randomness of those that it replaces."""
    receipts = tuple(receipts)
    relations = {r.relation for r in receipts}
    if len(relations) != 1:
        raise ValueError(
            f"replaces = {receipts!r} is not allowed: need the receipts of all draws, at least one, "
            "about one relation"
        )
    return replace(
        receipt,
        relation=relations.pop(),
        simulated=any(r.simulated for r in receipts),
        idealised=any(r.idealised for r in receipts),
    )
