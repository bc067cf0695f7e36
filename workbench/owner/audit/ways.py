"""A source whose draws are choices: run by run it takes every way in which noise can fall.

What is made of the noise is the mechanism's own code. Draws by other laws than those of `Source` cannot be
enumerated, nor records that are truncated at random. Hash functions and other words that do not depend on data
are fixed. A release holds them, or nothing is claimed to follow from their secrecy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from workbench.data import Interactions
from workbench.noise import hashes, response
from workbench.noise.discrete_gaussian import DiscreteGaussian
from workbench.noise.empty_cells import GaussianCell
from workbench.noise.parts import EmptyKeys
from workbench.noise.source import Source
from workbench.owner.audit.cuts import (
    Cuts,
    NotEnumerable,
    Run,
    between,
    entering,
    gaussian_parts,
    rate_of,
    upper_tail,
)
from workbench.owner.audit.pairs import Pair

Parts = Callable[[Any, list[int]], list[float]]  # chances of noise on a value, between cuts


class Enumeration(Source):
    """A source whose draws are choices: each run takes the next way that they can fall.

    Parameters
    ----------
    pair : the neighbours.
    cuts : at which values noise is told apart.
    """

    def __init__(self, pair: Pair, cuts: Cuts) -> None:
        super().__init__(bytes(32))
        self.cuts = cuts
        self.alike = all(map(_alike, (pair.one, pair.other)))
        self.options: list[int] = []
        self.taken: list[int] = []
        self.begin()

    def begin(self) -> None:
        """Start a run."""
        self.depth = 0
        self.probability = 1.0
        self.calls = 0
        self.public_calls = 0
        self.cuts.runs = []

    def one_of(self, weights: Sequence[float]) -> int:
        """One of some ways, of which each has a probability."""
        if len(weights) == 1:
            return 0
        if self.depth == len(self.taken):
            self.taken.append(0)
            self.options.append(len(weights))
        elif self.options[self.depth] != len(weights):
            raise NotEnumerable("what it draws differs between runs of the same draws")
        chosen = self.taken[self.depth]
        self.depth += 1
        self.probability *= weights[chosen]
        return chosen

    def advance(self) -> bool:
        """Take the next way; False where all have been taken."""
        del self.taken[self.depth :], self.options[self.depth :]
        while self.taken and self.taken[-1] == self.options[-1] - 1:
            self.taken.pop()
            self.options.pop()
        if not self.taken:
            return False
        self.taken[-1] += 1
        return True

    def measurement(self) -> Source:
        """Itself: draws are numbered through."""
        return self

    def step(self, number: int) -> Source:
        """Itself."""
        return self

    # what is not enumerated

    @property
    def words(self) -> Any:
        """Refused: whoever asks for them draws by a law that is not enumerated."""
        raise NotEnumerable("it draws by a law that is not enumerated")

    @property
    def floats(self) -> Any:
        """Refused as well."""
        raise NotEnumerable("it draws with floating point, which is not enumerated")

    def __getattr__(self, name: str) -> NoReturn:
        if hasattr(np.random.Generator, name):
            raise NotEnumerable(f"it draws by {name}, which is not enumerated")
        raise AttributeError(name)

    def bytes(self, length: int) -> bytes:
        """A key that truncates users, which is not enumerated unless all that it picks from is the same."""
        if self.alike:
            return bytes(length)
        raise NotEnumerable("it cuts records at random")

    def public_words(self, count: int, names: Any = None) -> Any:
        """Fixed words."""
        self.public_calls += 1
        rng = np.random.default_rng([count, self.public_calls])
        return rng.integers(0, 2**64, count, dtype=np.uint64)

    def places(self, values: Any, names: Any, tau: float = 0.0, above: float = np.inf) -> Any:
        """Any words: all that pass are released, whatever their priorities."""
        return lambda n: np.full(n, 2**62, np.uint64)

    # verbs

    def add(self, law: Any, values: Any, *, moved: Any, names: Any = None) -> None:
        """One of the parts that the cuts make of each value's noise."""
        if getattr(law, "idealised", False):
            raise NotEnumerable("it draws with floating point, which is not enumerated")
        self.occupied, self.exact = names, values.copy()
        cuts = self.cuts
        if cuts.is_recording:
            gaussian = isinstance(law, DiscreteGaussian)
            cuts.record(values, float(law.rate) if gaussian else 0.0)
            return
        call = self.calls
        self.calls += 1
        weights = _parts_of(law)
        for i, x in enumerate(values.tolist()):
            lowest = cuts.of(call, i, names, len(values))
            if not lowest:
                values[i] = cuts.constant(call, i, x)
                continue
            chosen = self.one_of(weights(x, lowest))
            values[i] = lowest[chosen - 1] if chosen else lowest[0] - 1

    def survive(self, law: Any, empty: int, names: Any = None) -> tuple[Any, Any]:
        """Which of the empty cells survive; of those that are empty under one neighbour alone, each."""
        cuts = self.cuts
        gaussian = isinstance(law, GaussianCell)
        if gaussian and law.above is not None:
            raise NotEnumerable("it draws empty cells again, at a lower threshold")
        if isinstance(names, EmptyKeys):
            cells = (self.occupied, self.exact)
            run = Run(names.start, names.size, *cells, law.theta, float(law.tau), law.sides)
            cuts.runs.append(run)
            if cuts.of_cells:
                call = (
                    self.calls - 1
                )  # noise on the occupied cells of the same run was the last
                run = cuts.runs[call]
                chance = law.chance if gaussian else float(law.survival(192))
                own = cuts.of_cells[call]
                return entering(run, own, chance, _parts_of(law), self.one_of, cuts.others)
        ranks = self._ranks(empty, law.chance if gaussian else float(law.survival(192)))
        values = np.full(len(ranks), max(1, law.theta), np.int64)
        for i in range(len(ranks) if law.sides == 2 and not gaussian else 0):
            if self.one_of([0.5, 0.5]):
                values[i] *= -1
        return ranks, values

    def _ranks(self, empty: int, chance: float) -> Any:
        if self.cuts.is_recording:
            self.cuts.shapes.append(("empty", int(empty)))
        if self.cuts.is_recording or not empty:
            return np.empty(0, np.int64)
        if chance >= 1:
            return np.arange(empty)
        if empty > 4:  # all stay empty, or exactly one of few does not: told no finer
            none = (1 - chance) ** empty
            return np.array([0] if self.one_of([none, 1 - none]) else [], np.int64)
        return np.array(
            [i for i in range(empty) if self.one_of([1 - chance, chance])], np.int64
        )

    def toss(self, chance: Any, exact: Any, names: Any = None) -> Any:
        """Heads or tails of each coin."""
        if self.cuts.is_recording:
            return np.asarray(chance) >= 0.5
        heads = np.empty(len(chance), bool)
        for i in range(len(chance)):
            p = float(exact(i, 192))
            heads[i] = p >= 1 or (p > 0 and self.one_of([1 - p, p]))
        return heads

    def choose(
        self, draw: Callable[..., Any], *arguments: Any, reads: Any, idealised: bool = False
    ) -> Any:
        """One of the outcomes, if it is known how likely each is."""
        outcomes = getattr(self, f"_{draw.__name__}", None)
        if outcomes is None:
            raise NotEnumerable(f"it chooses by {draw.__name__}, which is not enumerated")
        return outcomes(*arguments)

    def _sample_candidates(self, scores: Any, available: Any, decay: Any) -> Any:
        chosen = np.empty(len(scores), np.int64)
        for row in range(len(scores)):
            among = np.flatnonzero(available[row])
            behind = float(decay) * (scores[row][among] - scores[row][among].max())
            weights = np.exp(behind.astype(float))
            first = self.cuts.is_recording
            place = 0 if first else self.one_of((weights / weights.sum()).tolist())
            chosen[row] = among[place]
        return chosen

    def _retain_or_replace(self, codes: Any, size: Any, keep: Any) -> Any:
        if self.cuts.is_recording:
            return codes
        p = float(keep(192))
        each = (1 - p) / size
        reports = [
            self.one_of([each + p * (c == code) for c in range(size)])
            for code in codes.tolist()
        ]
        return np.array(reports, np.int64)

    def _flipped_codes(self, codes: Any, starts: Any, size: int, flip: Any) -> Any:
        bits = np.zeros((len(codes), -(-size // 64)), np.uint64)
        p = float(flip(192))
        for row in bits if not self.cuts.is_recording else ():
            for i in range(size):
                row[i // 64] |= np.uint64(self.one_of([1 - p, p]) << i % 64)
        response.flip_code_bits(bits, codes, starts)
        return bits

    def _unary_bits(self, keys: Any, levels: Any, functions: Any, size: int, alpha: Any) -> Any:
        bits = np.zeros(size // 64, np.uint64)
        cuts = self.cuts
        if cuts.is_recording:
            every = np.zeros_like(bits)
            hashes.set_bits(keys, np.full(len(keys), len(functions)), functions, every)
            cuts.written |= set(np.flatnonzero(np.unpackbits(every.view(np.uint8))).tolist())
        hashes.set_bits(keys, levels, functions, bits)
        p = float(1 / (alpha + 2))
        as_bits = np.unpackbits(bits.view(np.uint8))
        for place in sorted(cuts.written) if not cuts.is_recording else ():
            as_bits[place] ^= self.one_of([1 - p, p])
        return np.packbits(as_bits).view(np.uint64)

    def _posterior_counts(
        self, keys: Any, counts: Any, size: int, alpha: Any, records: int
    ) -> Any:
        synthetic = np.zeros(size, np.int64)
        weights = np.full(size, alpha)
        weights[keys] += counts
        for _ in range(records):
            odds = (weights / weights.sum()).tolist()
            chosen = 0 if self.cuts.is_recording else self.one_of(odds)
            synthetic[chosen] += 1
            weights[chosen] += 1
        cells = np.flatnonzero(synthetic)
        return cells, synthetic[cells]


def _parts_of(law: Any) -> Parts:
    """The chances of a value's noise below, between and above cuts."""
    if isinstance(law, DiscreteGaussian | GaussianCell):
        rate = float(law.rate)
        return lambda x, lowest: gaussian_parts(rate, tuple(a - x for a in lowest))
    decay = rate_of(law.alpha(192))

    def weights(x: Any, lowest: list[int]) -> list[float]:
        below = upper_tail(x - lowest[0] + 1, decay)
        inner = [between(a - x, b - x, decay) for a, b in itertools.pairwise(lowest)]
        return [below, *inner, upper_tail(lowest[-1] - x, decay)]

    return weights


def _alike(data: Any) -> bool:
    """Whether all records of each user are the same, so that it says nothing which are kept."""
    if not isinstance(data, Interactions):
        return False
    rows = np.stack([data.users, data.items, data.contexts], axis=1).astype(np.int64)
    return len(np.unique(rows, axis=0)) == len(np.unique(data.users))
