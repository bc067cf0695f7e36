"""The laws of noise as choices: an `rng` that takes, run by run, every way in which draws can fall.

What is made of the noise is the mechanism's own code. Draws by other laws than stand here cannot be
replayed, nor records that are cut at random. Hash functions and the like, which do not depend on data, are
fixed; a release holds them, or nothing is claimed to follow from their secrecy.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

import numpy as np

from workbench import noise
from workbench.data import Interactions
from workbench.noise import (
    discrete_gaussian,
    empty_cells,
    exponential,
    hashes,
    laws,
    measurement,
    parts,
    priorities,
    response,
    stability,
)
from workbench.noise.parts import cells_of_runs
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
from workbench.value import Int, Num

_ONE_AT_A_TIME = threading.RLock()
_DRAWS = {x for x in dir(np.random.Generator) if not x.startswith("__")} - {"integers", "bytes"}


class Replay(np.random.Generator):
    """An `rng` whose draws are choices: each run takes the next way that they can fall."""

    def __init__(self, pair: Pair) -> None:
        super().__init__(np.random.default_rng(0).bit_generator)
        self.alike = all(map(_alike, (pair.one, pair.other)))
        self.any_word = False
        self.options: list[int] = []
        self.taken: list[int] = []
        self.begin()

    def begin(self) -> None:
        """Start a run."""
        self.depth = 0
        self.probability = 1.0
        self.calls = 0

    def choose(self, weights: Sequence[float]) -> int:
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

    def __getattribute__(self, name: Any) -> Any:
        """Nothing of a generator but what stands here."""
        if name in _DRAWS:
            raise NotEnumerable(f"it draws by {name}, which is not enumerated")
        return super().__getattribute__(name)

    def integers(self, low: Any, high: Any = None, size: Any = None, **options: Any) -> Any:  # type: ignore[override]
        """Words for a law that is not enumerated: none but no words at all."""
        if size == 0 or self.any_word:
            return np.full(size, 2**62, options.get("dtype", np.int64))
        raise NotEnumerable("it draws by a law that is not enumerated")

    def bytes(self, length: Any) -> Any:
        """A seed of a fast generator, which is not enumerated unless all that it picks from is the same."""
        if self.alike:
            return bytes(length)
        raise NotEnumerable("it cuts records at random")


@contextlib.contextmanager
def replayed(replay: Replay, cuts: Cuts, code_bits: int) -> Iterator[Replay]:
    """The laws of noise as choices of `replay`, and nothing else changed.

    `code_bits` is how many bits a report of randomised response has.
    """

    def choose(out: Any, weights: Any) -> Any:
        call = replay.calls
        replay.calls += 1
        for i in range(len(out)):
            lowest = cuts.of(call, i, len(out))
            if not lowest:
                out[i] = cuts.constant(call, i)
                continue
            chosen = replay.choose(weights(int(out[i]), lowest))
            out[i] = lowest[chosen - 1] if chosen else lowest[0] - 1

    def geometric_parts(law: Any) -> Any:
        rate = rate_of(law.alpha(192))

        def weights(x: Any, lowest: Any) -> Any:
            below = upper_tail(x - lowest[0] + 1, rate)
            inner = [between(a - x, b - x, rate) for a, b in itertools.pairwise(lowest)]
            return [below, *inner, upper_tail(lowest[-1] - x, rate)]

        return weights

    def gaussian_parts_of(law: Any) -> Any:
        rate = float(law.rate)
        return lambda x, lowest: gaussian_parts(rate, tuple(a - x for a in lowest))

    def add(law: Any, out: Any, words: Any) -> Any:
        if cuts.is_recording:
            cuts.record(out)
            return
        choose(out, geometric_parts(law))

    def add_gaussian(law: Any, out: Any, words: Any) -> Any:
        if cuts.is_recording:
            cuts.record(out, float(law.rate))
            return
        choose(out, gaussian_parts_of(law))

    def draw_survivors(
        part: Any, keys: Int[np.ndarray, " n"], counts: Num[np.ndarray, " n"], streams: Any
    ) -> Any:
        if not part.everything:
            for (start, block), inside in zip(
                part.runs, cells_of_runs(keys, part.runs), strict=True
            ):
                cells = (keys[inside], counts[inside])
                cuts.runs.append(
                    Run(start, block.size, *cells, part.theta, part.tau, part.sides)
                )
        return original_draw_survivors(part, keys, counts, streams)

    def entering_cells(chance: Any, weights: Any) -> Any:
        call = replay.calls - 1  # noise on the occupied cells of the same run was the last
        run = cuts.runs[call]
        return entering(run, cuts.of_cells[call], chance, weights, replay.choose, cuts.others)

    def survivors(cell: Any, empty: Any, words: Any) -> Any:
        if not cuts.of_cells:
            return original_survivors(cell, empty, words)
        return entering_cells(float(cell.survival(192)), geometric_parts(cell))

    def gaussian_survivors(cell: Any, empty: Any, words: Any) -> Any:
        if cell.above is not None:
            raise NotEnumerable("it draws empty cells again, at a lower threshold")
        if cuts.of_cells:
            return entering_cells(cell.chance, gaussian_parts_of(cell))
        ranks = survivor_ranks(empty, lambda bits: cell.chance, words)
        return ranks, np.full(len(ranks), max(1, cell.theta), np.int64)

    def survivor_ranks(empty: Any, p: Any, words: Any) -> Any:
        if cuts.is_recording:
            cuts.shapes.append(("empty", int(empty)))
        if cuts.is_recording or not empty:
            return np.empty(0, np.int64)
        chance = float(p(192))
        if chance >= 1:
            return np.arange(empty)
        if empty > 4:  # all stay empty, or exactly one of few does not: told no finer
            none = (1 - chance) ** empty
            stays = replay.choose([none, 1 - none])
            return np.array([0] if stays else [], np.int64)
        ranks = [i for i in range(empty) if replay.choose([1 - chance, chance])]
        return np.array(ranks, np.int64)

    def values(law: Any, n: Any, words: Any) -> Any:
        values = np.full(n, max(1, law.theta), np.int64)
        for i in range(n if law.sides == 2 else 0):
            if replay.choose([0.5, 0.5]):
                values[i] *= -1
        return values

    def accept(chance: Any, exactly: Any, words: Any) -> Any:
        if cuts.is_recording:
            return np.asarray(chance) >= 0.5
        heads = np.empty(len(chance), bool)
        for i in range(len(chance)):
            p = float(exactly(i, 192))
            heads[i] = p >= 1 or (p > 0 and replay.choose([1 - p, p]))
        return heads

    def sample_candidates(scores: Any, available: Any, decay: Any, words: Any) -> Any:
        chosen = np.empty(len(scores), np.int64)
        for row in range(len(scores)):
            among = np.flatnonzero(available[row])
            behind = float(decay) * (scores[row][among] - scores[row][among].max())
            weights = np.exp(behind.astype(float))
            first = cuts.is_recording
            place = 0 if first else replay.choose((weights / weights.sum()).tolist())
            chosen[row] = among[place]
        return chosen

    def any_priorities(*args: Any, **kwargs: Any) -> Any:
        replay.any_word = True  # all that pass are released, whatever their priorities
        try:
            return original_candidates(*args, **kwargs)
        finally:
            replay.any_word = False

    def retain_or_replace(codes: Any, size: Any, keep: Any, words: Any) -> Any:
        if cuts.is_recording:
            return codes
        p = float(keep(192))
        each = (1 - p) / size
        reports = [
            replay.choose([each + p * (c == code) for c in range(size)])
            for code in codes.tolist()
        ]
        return np.array(reports, np.int64)

    def biased_bits(count: Any, chance: Any, words: Any) -> Any:
        if cuts.is_recording:
            return np.zeros(count, np.uint64)
        p = float(chance(192))
        flipped = [
            sum(replay.choose([1 - p, p]) << bit for bit in range(code_bits))
            for _ in range(count)
        ]
        return np.array(flipped, np.uint64)

    def set_bits(keys: Int[np.ndarray, " n"], levels: Any, parameters: Any, bits: Any) -> Any:
        if cuts.is_recording:
            every = np.zeros_like(bits)
            original_set_bits(keys, np.full(len(keys), len(parameters)), parameters, every)
            cuts.written |= set(np.flatnonzero(np.unpackbits(every.view(np.uint8))).tolist())
        original_set_bits(keys, levels, parameters, bits)

    def flip_bits(bits: Any, alpha: Any, words: Any) -> Any:
        p = float(1 / (alpha + 2))
        as_bits = np.unpackbits(bits.view(np.uint8))
        for place in sorted(cuts.written) if not cuts.is_recording else ():
            as_bits[place] ^= replay.choose([1 - p, p])
        bits[:] = np.packbits(as_bits).view(np.uint64)

    def dirichlet_multinomial(
        keys: Int[np.ndarray, " n"],
        counts: Num[np.ndarray, " n"],
        size: Any,
        *,
        alpha: Any,
        records: Any,
        cost: Any,
        rng: np.random.Generator | None = None,
    ) -> Any:
        seeded = np.random.default_rng(0)
        drawn = exponential.dirichlet_multinomial(
            keys, counts, size, alpha=alpha, records=records, cost=cost, rng=seeded
        )
        if cuts.is_recording:
            return drawn
        weights = np.full(size, alpha)
        weights[keys] += counts
        synthetic = np.zeros(size, np.int64)
        for _ in range(records):
            chosen = replay.choose((weights / weights.sum()).tolist())
            synthetic[chosen] += 1
            weights[chosen] += 1
        cells = np.flatnonzero(synthetic)
        return drawn._replace(keys=cells, counts=synthetic[cells])

    def random_words(n: Any, *, rng: np.random.Generator | None = None) -> Any:
        return np.random.default_rng(n).integers(0, 2**64, n, dtype=np.uint64)

    def uniform_keys(size: Any, cells: Any, *, rng: np.random.Generator | None = None) -> Any:
        return np.sort(np.random.default_rng(size).choice(cells, size, replace=False))

    patches: list[tuple[Any, str, Any]] = [
        (laws.TwoSidedGeometric, "add", add),
        (discrete_gaussian.DiscreteGaussian, "add", add_gaussian),
        (empty_cells.GaussianCell, "survivors", gaussian_survivors),
        (empty_cells.EmptyCell, "survivors", survivors),
        *((room, "draw_survivors", draw_survivors) for room in (parts, measurement)),
        (empty_cells.EmptyCell, "values", values),
        *(
            (room, "survivor_ranks", survivor_ranks)
            for room in (empty_cells, stability, response)
        ),
        *((room, "accept", accept) for room in (parts, response, empty_cells, laws)),
        (exponential, "sample_candidates", sample_candidates),
        (hashes, "set_bits", set_bits),
        (response, "flip_bits", flip_bits),
        (priorities, "Candidates", any_priorities),
        (response, "retain_or_replace", retain_or_replace),
        (response, "biased_bits", biased_bits),
        (noise, "dirichlet_multinomial", dirichlet_multinomial),
        (noise, "random_words", random_words),
        (noise, "uniform_keys", uniform_keys),
    ]
    with _ONE_AT_A_TIME:
        originals = [getattr(owner, name) for owner, name, _ in patches]
        original_set_bits = hashes.set_bits
        original_candidates = priorities.Candidates
        original_survivors = empty_cells.EmptyCell.survivors
        original_draw_survivors = parts.draw_survivors
        for (owner, name, instead), original in zip(patches, originals, strict=True):
            setattr(owner, name, _in_this_thread(instead, original))
        try:
            yield replay
        finally:
            for (owner, name, _), original in zip(patches, originals, strict=True):
                setattr(owner, name, original)


def _in_this_thread(
    instead: Callable[..., Any], original: Callable[..., Any]
) -> Callable[..., Any]:
    """Others, who may be releasing something at this moment, have the law itself."""
    here = threading.get_ident()

    @wraps(original)
    def law(*args: Any, **kwargs: Any) -> Any:
        drawn = instead if threading.get_ident() == here else original
        return drawn(*args, **kwargs)

    return law


def _alike(data: Any) -> bool:
    """Whether all records of each user are the same, so that it says nothing which are kept."""
    if not isinstance(data, Interactions):
        return False
    rows = np.stack([data.users, data.items, data.contexts], axis=1).astype(np.int64)
    return len(np.unique(rows, axis=0)) == len(np.unique(data.users))
