"""Source of noise for exact audits. This source draws nothing at random. Instead, each run of a mechanism gets
another combination of outcomes, until all combinations have occurred.

The mechanism's own code runs with this source. The source can go through the distributions that the class
`Source` offers. The source cannot go through other distributions, or through the random truncation of users. It
uses fixed values for hash functions and other random numbers that do not depend on the data. Fixed values are
valid because such numbers are part of the release, or because the guarantee also holds if they are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import combinations, count
from math import ceil
from statistics import NormalDist
from typing import Any

import numpy as np

from workbench.noise import hashes, response
from workbench.noise.empty_cells import GaussianCell
from workbench.noise.laws import two_sided
from workbench.noise.misra_gries import sketch
from workbench.noise.parts import EmptyKeys
from workbench.noise.replay import Replay
from workbench.noise.source import Source
from workbench.owner.audit.cuts import (
    MOST_RUNS,
    Call,
    Cuts,
    NotEnumerable,
    between,
    chances_of_parts,
    kept,
    upper_tail,
)

_FAR = 12  # parts above a threshold that are told apart


class Enumeration(Source):
    """Source of noise that goes through all combinations of outcomes, one in each run of a mechanism.

    Parameters
    ----------
    alike : bool
        Whether all records of each user are equal, so that the choice of kept records makes no difference.
    cuts : Cuts, optional
        Cut values that divide the noise into parts. If None, values get no noise, and the source records the
        exact values.
    """

    def __init__(self, alike: bool, cuts: Cuts | None = None) -> None:
        super().__init__(bytes(32))
        self.alike = alike
        self.cuts = cuts or Cuts()
        self.is_recording = cuts is None
        self.calls: list[Call] = []  # without noise
        self.followed: list[Call] = []  # of the other input, whose values the path follows
        self.empty: list[int] = []
        self.choices = 1
        self.bits: set[int] = set()
        self.options: list[int] = []
        self.taken: list[int] = []
        self.begin()

    def begin(self) -> None:
        """Start a run of the mechanism from its first draw. If you call this method during a run, the run
        starts again with the same outcomes.
        """
        self.depth = 0
        self.probability = 1.0
        self.call = -1
        self.public_calls = 0

    def ways(self) -> Iterator[None]:
        """Yield once for each combination of outcomes. In each step of this loop, the caller runs the
        mechanism.
        """
        while True:
            self.begin()
            yield
            del self.taken[self.depth :], self.options[self.depth :]
            while self.taken and self.taken[-1] == self.options[-1] - 1:
                self.taken.pop()
                self.options.pop()
            if not self.taken:
                return
            self.taken[-1] += 1

    def one_of(self, weights: Sequence[float]) -> int:
        """Return the number of the outcome that the current run takes, out of several outcomes. The weights
        are the probabilities of the outcomes.
        """
        if len(weights) == 1 or self.is_recording:
            return 0
        if self.depth == len(self.taken):
            self.taken.append(0)
            self.options.append(len(weights))
        elif self.options[self.depth] != len(weights):
            raise NotEnumerable("its draws differ between runs with the same outcomes")
        chosen = self.taken[self.depth]
        self.depth += 1
        self.probability *= weights[chosen]
        return chosen

    def measurement(self) -> Source:
        """Return the source itself, because draws are numbered across measurements."""
        return self

    def step(self, number: int) -> Source:
        """Return the source itself, because all draws of a run are numbered together."""
        return self

    # what is not enumerated

    @property
    def words(self) -> Any:
        """Raise NotEnumerable, because a mechanism that needs random words or floats uses a distribution that
        cannot be enumerated.
        """
        raise NotEnumerable("it draws from a distribution that is not enumerated")

    floats = words
    __getattr__ = Replay.__getattr__

    def bytes(self, length: int) -> bytes:
        """Return a fixed key, which determines the rows of each user that are kept. If a user's records
        differ, raise NotEnumerable.
        """
        if self.alike:
            return bytes(length)
        raise NotEnumerable("it truncates users at random")

    def public_words(self, count: int, names: Any = None) -> Any:
        """Return fixed words instead of random ones. Raise NotEnumerable if the words are used to sample
        rows, because the guarantee then relies on their secrecy.
        """
        if names is not None:
            raise NotEnumerable("it relies on a random choice of users or records")
        self.public_calls += 1
        rng = np.random.default_rng([count, self.public_calls])
        return rng.integers(0, 2**64, count, dtype=np.uint64)

    def places(self, values: Any, names: Any, tau: float = 0.0, above: float = np.inf) -> Any:
        """Return a function that gives fixed words instead of random priorities of cells. In the mechanisms
        that can be enumerated, all cells that pass the filter are released, so their priorities make no
        difference.
        """
        return lambda n: np.full(n, 2**62, np.uint64)

    # verbs

    def add(self, law: Any, values: Any, *, moved: Any, names: Any = None) -> None:
        """Choose an outcome of the noise for each value. An outcome is one of the parts into which the cut
        values divide the noise.
        """
        if getattr(law, "idealised", False):
            raise NotEnumerable("it draws in floating point, which is not enumerated")
        is_named = isinstance(names, np.ndarray) and names.ndim == 1
        exact = dict(zip(names.tolist() if is_named else count(), values.tolist()))  # noqa: B905
        self.call += 1
        if self.is_recording:
            self.calls.append(Call(exact, law))
            known = self.followed[self.call : self.call + 1]
            values[:] = [known[0].exact.get(n, x) if known else x for n, x in exact.items()]
            return
        self.law = law
        cuts, constants = self._recorded
        if not is_named and len(cuts) != len(values):  # of another path: other values
            cuts = {}
        for i, (name, x) in enumerate(exact.items()):
            lowest = cuts.get(name, self.cuts.others)
            if not lowest:
                values[i] = constants.get(name, x)
                continue
            chosen = self.one_of(chances_of_parts(law, x, lowest))
            values[i] = lowest[chosen - 1] if chosen else lowest[0] - 1

    def survive(self, law: Any, empty: int, names: Any = None) -> tuple[Any, Any]:
        """Choose which empty cells pass the filter, which releases only cells with large noisy counts. To
        save time, only the cells that are empty for just one of the two inputs are considered, and one other
        cell.
        """
        if isinstance(law, GaussianCell):
            if law.above is not None:
                raise NotEnumerable("it draws empty cells again at a lower threshold")
            chance = law.chance
        else:
            chance = float(law.survival(192))
        if not isinstance(names, EmptyKeys):
            ranks = self._ranks(empty, chance)
            return ranks, np.full(len(ranks), max(1, law.theta), np.int64)
        if self.is_recording:
            self.calls[-1] = self.calls[-1]._replace(empty=law)
        cuts, _ = self._recorded  # of the noise on the occupied cells of the same run
        occupied = set(names.occupied.tolist())
        survivors: dict[int, int] = {}
        for cell in sorted(cuts.keys() - occupied):
            values = [cuts[cell][0] - 1, *cuts[cell]]
            chances = chances_of_parts(self.law, 0, cuts[cell])
            odds = [p * kept(law, v) for p, v in zip(chances, values, strict=True)]
            ways = [(v, chance * x / sum(odds)) for v, x in zip(values, odds, strict=True) if x]
            chosen = self.one_of([1 - chance, *(x for _, x in ways)])
            if chosen:
                survivors[cell] = ways[chosen - 1][0]
        known = cuts.keys() | occupied
        if self.cuts.empty_cells and len(known) < names.size:  # all stay empty, or one does not
            none = (1 - chance) ** (names.size - len(known))
            if self.one_of([none, 1 - none]):
                first = next(x for x in count(names.start) if x not in known)
                survivors[first] = max(1, law.theta)
        cells = np.array(sorted(survivors), np.int64)
        ranks = cells - names.start - np.searchsorted(names.occupied, cells)
        return ranks, np.array([survivors[x] for x in cells.tolist()], np.int64)

    @property
    def _recorded(self) -> tuple[dict[int, list[int]], dict[int, int]]:
        """Cut values for the values of this call, and constants that represent values without cut values."""
        if self.call >= len(self.cuts.calls):
            return {}, {}
        return self.cuts.calls[self.call], self.cuts.constants[self.call].exact

    def _ranks(self, empty: int, chance: float) -> Any:
        survive: list[int] = []
        if self.is_recording:
            self.empty.append(int(empty))
        elif empty > 4:  # all stay empty, or exactly one of few does not: told no finer
            none = (1 - chance) ** empty
            survive = [0] * self.one_of([none, 1 - none])
        else:
            survive = [i for i in range(empty) if self.one_of([1 - chance, chance])]
        return np.array(survive, np.int64)

    def toss(self, chance: Any, exact: Any, names: Any = None) -> Any:
        """Choose heads or tails for each coin."""
        odds = [float(exact(i, 192)) for i in range(len(chance))]
        return np.array([p >= 1 or (p > 0 and self.one_of([1 - p, p])) for p in odds], bool)

    def choose(self, draw: Any, *arguments: Any, reads: Any, idealised: bool = False) -> Any:
        """Choose one outcome of a draw that is not added noise, for example of the exponential mechanism. If
        the probabilities of the outcomes are not known here, raise NotEnumerable.
        """
        outcomes = getattr(self, f"_{draw.__name__}", None)
        if outcomes is None:
            raise NotEnumerable(f"it chooses by {draw.__name__}, which is not enumerated")
        return outcomes(*arguments)

    def _draw_blanket(
        self, keys: Any, counts: Any, cells: int, size: int, threshold: int, rate: Any
    ) -> Any:
        """Choose which non-empty cells are kept. Then choose the other cells, which fill up the release to
        `size` cells.
        """
        odds = [upper_tail(threshold - x, float(rate)) for x in counts.tolist()]
        kept = [x for x, p in zip(keys.tolist(), odds, strict=True) if self.one_of([1 - p, p])]
        others = [x for x in range(cells) if x not in kept]
        sets = [*combinations(others, size - len(kept))]
        drawn = sets[self.one_of([1 / len(sets)] * len(sets))]
        return np.array(sorted([*kept, *drawn]), np.int64)

    def _draw_misra_gries(
        self, keys: Any, counts: Any, size: int, threshold: int, rate: Any
    ) -> Any:
        kept, counters = sketch(keys, counts, size)
        law, decay = two_sided(rate), float(rate)
        lowest = range(threshold, threshold + _FAR)
        far = range(-ceil(40 / decay), ceil(40 / decay) + 1)
        shared = {x: between(x, x + 1, decay) for x in far}
        return self._shown(
            kept, counters, lowest, shared, lambda x: chances_of_parts(law, x, lowest)
        )

    def _draw_correlated(
        self, keys: Any, counts: Any, shared: float, own: float, threshold: float
    ) -> Any:
        lowest = [threshold, *np.rint(threshold + own / 4 * np.arange(1, _FAR)).tolist()]
        grid = np.linspace(-8, 8, 401)
        density = np.exp(-(grid**2) / 2)
        chances = dict(zip(shared * grid, density / density.sum(), strict=True))

        def parts(x: float) -> Any:
            above = [NormalDist().cdf((x - low) / own) for low in lowest]
            return -np.diff([1.0, *above, 0.0])

        return self._shown(keys, counts, np.rint(lowest).astype(np.int64), chances, parts)

    def _shown(self, keys: Any, exact: Any, lowest: Any, shared: Any, parts: Any) -> Any:
        """Choose outcomes for values whose noise contains a shared draw. First choose the values that reach
        their lowest cut value. Then choose the highest cut value that each of them reaches.
        """
        if (_FAR + 1) ** len(keys) > MOST_RUNS:
            raise NotEnumerable("it has more values than can be enumerated")
        ways = np.zeros((_FAR + 1,) * len(keys))
        for draw, chance in shared.items():
            odds = [parts(x + draw) for x in exact.tolist()]
            ways += chance * reduce(np.multiply.outer, odds, 1.0)
        place = self.one_of(ways.ravel().tolist())
        chosen = np.array(np.unravel_index(place, ways.shape), np.int64)
        shown = chosen > 0
        return keys[shown], np.array(lowest)[chosen[shown] - 1]

    def _sample_candidates(self, scores: Any, available: Any, decay: Any) -> Any:
        chosen = np.empty(len(scores), np.int64)
        for row in range(len(scores)):
            among = np.flatnonzero(available[row])
            self.choices *= len(among) if self.is_recording else 1
            behind = float(decay) * (scores[row][among] - scores[row][among].max())
            weights = np.exp(behind.astype(float))
            chosen[row] = among[self.one_of((weights / weights.sum()).tolist())]
        return chosen

    def _retain_or_replace(self, codes: Any, size: Any, keep: Any) -> Any:
        p = float(keep(192))
        odds = (1 - p) / size + p * np.eye(size)[codes]
        return np.array([self.one_of(row) for row in odds.tolist()], np.int64)

    def _flipped_codes(self, codes: Any, starts: Any, size: int, flip: Any) -> Any:
        bits = np.zeros((len(codes), -(-size // 64)), np.uint64)
        p = float(flip(192))
        for row in bits:
            for i in range(size):
                row[i // 64] |= np.uint64(self.one_of([1 - p, p]) << i % 64)
        response.flip_code_bits(bits, codes, starts)
        return bits

    def _unary_bits(self, keys: Any, levels: Any, functions: Any, size: int, alpha: Any) -> Any:
        bits = np.zeros(size // 64, np.uint64)
        if self.is_recording:
            hashes.set_bits(keys, np.full(len(keys), len(functions)), functions, bits)
            self.bits |= set(np.flatnonzero(np.unpackbits(bits.view(np.uint8))).tolist())
            return bits
        hashes.set_bits(keys, levels, functions, bits)
        p = float(1 / (alpha + 2))
        as_bits = np.unpackbits(bits.view(np.uint8))
        for place in self.cuts.bits:
            as_bits[place] ^= self.one_of([1 - p, p])
        return np.packbits(as_bits).view(np.uint64)

    def _posterior_counts(
        self, keys: Any, counts: Any, size: int, alpha: Any, records: int
    ) -> Any:
        synthetic = np.zeros(size, np.int64)
        weights = np.full(size, alpha)
        weights[keys] += counts
        for _ in range(records):
            chosen = self.one_of((weights / weights.sum()).tolist())
            synthetic[chosen] += 1
            weights[chosen] += 1
        cells = np.flatnonzero(synthetic)
        return cells, synthetic[cells]
