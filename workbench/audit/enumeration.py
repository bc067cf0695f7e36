"""The law of a release, computed: the mechanism's own code runs once for every way its noise can fall.

Noise is told apart no finer than it must be: each noisy value only as below, between or above the values
that it has under the two neighbours (and a public threshold), one value standing for each part; where
that are too many ways, values that neither neighbour moves have no noise at all. What is
made of the noise afterwards is the mechanism's own code, on these values. All of it is a function of the
exact noise, so that no loss above ε can come about if the noise pays for what it is charged. Where the
output shows every noisy value the loss is that of the release itself; where later steps merge values, as
least squares does, it says what is paid for, and runs say what is seen.

Of Gaussian noise, whose loss grows with every value, those that a neighbour moves are told apart value by
value, or, where those are too many, in as many ranges as can be run through: what is computed then is a
lower bound, close to the loss.

Draws by other laws than these, coins, survivors and the exponential mechanism cannot be enumerated, nor
records that are cut at random. Hash functions and the like, which do not depend on data,
are fixed; a release holds them, or nothing is claimed to follow from their secrecy.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, wraps
from math import ceil, exp, expm1, fsum, inf, log, log1p, sqrt
from typing import Any, NamedTuple

import numpy as np

from workbench import noise
from workbench.audit.outputs import Output, observe
from workbench.audit.pairs import Pair, public_threshold
from workbench.estimates import hashes
from workbench.interactions import Interactions
from workbench.noise import (
    dirichlet,
    discrete_gaussian,
    empty_cells,
    exact,
    exponential,
    gaussian_cells,
    laws,
    priorities,
    response,
    selection,
    threshold,
    unary,
)
from workbench.privacy import ADD_REMOVE, LOCAL
from workbench.records import Records

_ONE_AT_A_TIME = threading.RLock()
_MOST_RUNS = 3000  # of either input
_SECONDS = 60.0
_COARSEST = 2
_REACH = 8  # standard deviations: beyond lies less than 10⁻¹⁴
_ORDERS = (2, 3, 4)  # of Rényi divergences, beside that of order 1
_SECRET = ("rowsample", "proportional")  # what hides in words that nobody may know


class NotEnumerable(Exception):
    """Why a law cannot be computed by running through all draws."""


@dataclass(frozen=True)
class ExactLoss:
    """The largest |ln P/P′| over outputs (the ε that is spent, given a δ), the δ that is spent at the
    stated ε, where the loss is largest, the ρ that is spent (of orders 1 to 4), and whether values that
    neither input moves had noise too."""

    loss: float
    delta: float
    outputs: int
    words: str
    rho: float
    all_noise: bool = True


class _Replay(np.random.Generator):
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

    def __getattribute__(self, name):
        """Nothing of a generator but what stands here."""
        if not name.startswith("__") and hasattr(np.random.Generator, name):
            if name not in ("integers", "bytes"):
                raise NotEnumerable(f"it draws by {name}, which is not enumerated")
        return super().__getattribute__(name)

    def integers(self, low, high=None, size=None, **options):
        """Words for a law that is not enumerated: none but no words at all."""
        if size == 0 or self.any_word:
            return np.full(size, 2**62, options.get("dtype", np.int64))
        raise NotEnumerable("it draws by a law that is not enumerated")

    def bytes(self, length):
        """A seed of a fast generator, which is not enumerated unless all that it picks from is the same."""
        if self.alike:
            return bytes(length)
        raise NotEnumerable("it cuts records at random")


class _Cuts:
    """At which values each noisy value is told apart, learnt without noise from both inputs.

    The second input follows the noiseless path of the first, so that calls correspond.
    """

    def __init__(self) -> None:
        self.recording: list[np.ndarray] | None = None
        self.rates: list[float] = []  # of the calls that draw Gaussian noise; 0 of others
        self.shapes: list[tuple[str, int]] = []
        self.followed: list[np.ndarray] = []
        self.table: list[list[list[int]]] = []
        self.everywhere: list[int] = []
        self.written: set[int] = set()  # bits that some count may set

    def record(self, out: np.ndarray, gaussian_rate: float = 0.0) -> None:
        """One call of the noiseless run: its exact values, and what the path makes of them."""
        call = len(self.recording)
        self.recording.append(np.array(out))
        if call == len(self.rates):
            self.rates.append(gaussian_rate)
        if call < len(self.followed) and len(self.followed[call]) == len(out):
            out[:] = self.followed[call]

    def learn(
        self, runs: Sequence[list[np.ndarray]], adaptive: bool, extra: int | None, level: int
    ) -> None:
        """From the exact values of every call, of both inputs."""
        one, other = runs
        self.table = []
        moved: set[int] = set()
        calls = [*zip(one, other, self.rates, strict=False)]
        moved_gaussian = sum(np.count_nonzero(x != y) for x, y, rate in calls if rate)
        parts = _MOST_RUNS ** (1 / max(1, moved_gaussian))
        for x, y, rate in calls:
            cuts = [
                _gaussian_cuts(int(a), int(b), rate, parts)
                if rate and a != b
                else _element_cuts(a, b, extra, level)
                for a, b in zip(x, y, strict=True)
            ]
            self.table.append(cuts)
            moved |= {c for a, b, cut in zip(x, y, cuts, strict=True) if a != b for c in cut}
        self.everywhere = sorted(moved)
        if adaptive:  # which nodes a call is about depends on the noise before
            self.table = []

    def constant(self, call: int, element: int) -> int:
        """What stands for a noisy value that neither input moves."""
        return int(self.followed[call][element])

    def of(self, call: int, element: int, size: int) -> list[int]:
        """The lowest values of all parts but the first."""
        if call < len(self.table) and len(self.table[call]) == size:
            return self.table[call][element]
        return self.everywhere


def _element_cuts(a: int, b: int, extra: int | None, level: int) -> list[int]:
    low, high = sorted((int(a), int(b)))
    if low == high:
        return [low + 1] if level >= 1 else []
    cuts = {low + 1, high}
    if level >= 2:
        cuts |= {low, high + 1}
        if extra is not None:
            cuts.add(extra)
    return sorted(cuts)


def _gaussian_cuts(a: int, b: int, rate: float, parts: float) -> list[int]:
    """Each value on which much of either law lies, or as many ranges of them as there may be parts.

    The fewer there are, the closer to the middle they tell most.
    """
    low, high = sorted((a, b))
    reach = ceil(min(_REACH, parts / 5) * sqrt(0.5 / rate))
    cuts = min(high - low + 2 * reach + 1, max(1, int(parts) - 1))
    return np.linspace(low - reach, high + reach, cuts).round().astype(int).tolist()


def exact_loss(
    mechanism: Callable, pair: Pair, epsilon: float, delta: float = 0.0
) -> ExactLoss:
    """The largest loss over all outputs, by enumeration at the finest level that can be run through.

    Parameters
    ----------
    mechanism : called with data and a generator.
    pair : the neighbours.
    epsilon : at which the spent δ is computed.
    delta : for which the loss is computed: the smallest ε at which no more δ is spent.

    Returns
    -------
    ExactLoss

    Raises
    ------
    NotEnumerable
        If it draws by another law, or in too many ways.
    """
    laws_of_output = output_laws(mechanism, pair)
    loss = _loss(laws_of_output.one, laws_of_output.other, epsilon, delta)
    return replace(loss, all_noise=laws_of_output.all_noise)


class OutputLaws(NamedTuple):
    """For both inputs each output's probability, by its hash; whether all values had noise."""

    one: dict[int, tuple[float, Output]]
    other: dict[int, tuple[float, Output]]
    all_noise: bool


def output_laws(mechanism: Callable, pair: Pair) -> OutputLaws:
    """The probabilities of all outputs under both inputs, at the finest level that can be run through.

    Parameters
    ----------
    mechanism, pair : as for `exact_loss`.

    Returns
    -------
    OutputLaws

    Raises
    ------
    NotEnumerable
        As `exact_loss`.
    """
    fields = [getattr(mechanism, name, None) for name in ("grouping", "strategy")]
    if not hasattr(mechanism, "budget") or not _is_ours(mechanism):
        raise NotEnumerable(
            "only the workbench's own draws can be"
        )  # others may draw past `rng`
    if set(fields) & set(_SECRET):
        raise NotEnumerable("it hides by a random choice of users or records")
    if type(mechanism).__name__ == "PrioritySampling" and mechanism.size < pair.one.domain.size:
        raise NotEnumerable("priorities are real numbers, and decide")
    cuts = _Cuts()
    baselines = []
    shapes = []
    local = getattr(mechanism, "relation", ADD_REMOVE) == LOCAL
    code_bits = sum(pair.one.domain.shape) if local else 0
    with _replayed(_Replay(pair), cuts, code_bits) as replay:
        for data in (pair.one, pair.other):
            cuts.recording = []
            cuts.shapes = []
            replay.begin()
            try:
                mechanism(data, replay)
            except ValueError as e:
                raise NotEnumerable(f"it refuses the pair: {e}") from None
            baselines.append(cuts.recording)
            shapes.append([*map(len, cuts.recording), *cuts.shapes])
            cuts.followed = cuts.recording
    cuts.recording = None
    extra = public_threshold(mechanism)
    if shapes[0] != shapes[1]:
        if not getattr(mechanism, "spends_delta", False):
            raise NotEnumerable(
                "other cells are empty under one neighbour than under the other"
            )
        baselines = [[], []]  # an empty cell is never released, nor one below the threshold
        extra = mechanism.threshold(pair.one.bound)
    adaptive = getattr(mechanism, "takes", None) is Records
    for level in range(_COARSEST, -1, -1):
        cuts.learn(baselines, adaptive, extra, level)
        if not baselines[0] and extra is not None:
            cuts.everywhere = [extra]
        laws_of_output = []
        for data in (pair.one, pair.other):
            law = _law(mechanism, data, pair, cuts, code_bits)
            if law is None:
                break
            laws_of_output.append(law)
        if len(laws_of_output) == 2:
            return OutputLaws(*laws_of_output, all_noise=adaptive or level > 0)
    raise NotEnumerable(f"its draws fall in more than {_MOST_RUNS} ways")


def _law(
    mechanism: Callable, data: Any, pair: Pair, cuts: _Cuts, code_bits: int
) -> dict[int, tuple[float, Output]] | None:
    """The probability of every output; None if there are too many ways."""
    probabilities: dict[int, list[float]] = defaultdict(list)
    shown: dict[int, Output] = {}
    with _replayed(_Replay(pair), cuts, code_bits) as replay:
        for run in itertools.count():
            replay.begin()
            output = observe(lambda: mechanism(data, replay), _SECONDS)
            if output.form and output.form[0].startswith("raises NotEnumerable"):
                raise NotEnumerable(output.form[0].partition(": ")[2])
            probabilities[output.whole].append(replay.probability)
            shown.setdefault(output.whole, output)
            ways = np.prod([float(x) for x in replay.options])
            if run > _MOST_RUNS or (run == 0 and ways > _MOST_RUNS):
                return None
            if not replay.advance():
                break
    return {whole: (fsum(p), shown[whole]) for whole, p in probabilities.items()}


def _loss(one: dict, other: dict, epsilon: float, delta: float) -> ExactLoss:
    nothing = (0.0, None)
    wholes = [w for w in {**one, **other} if one.get(w, nothing)[0] or other.get(w, nothing)[0]]
    p = np.array([one.get(w, nothing)[0] for w in wholes])
    q = np.array([other.get(w, nothing)[0] for w in wholes])
    with np.errstate(divide="ignore"):
        losses = np.abs(np.log(p) - np.log(q))

    def spent_delta(at: float) -> float:
        """The hockey-stick divergence."""
        both = (np.maximum(0, a - exp(at) * b) for a, b in ((p, q), (q, p)))
        return max(map(fsum, both))

    worst = int(losses.argmax())
    loss = float(losses[worst])
    if delta:
        loss = 0.0 if spent_delta(0.0) <= delta else _smallest_root(spent_delta, delta, losses)
    rho = max(_renyi_loss(p, q), _renyi_loss(q, p))
    output = (one.get(wholes[worst]) or other[wholes[worst]])[1]
    listed = ", ".join(f"{k} = {v:.6g}" for k, v in list(output.numbers.items())[:6])
    words = (
        f"an output of probability {p[worst]:.4g} under one neighbour and {q[worst]:.4g} under the "
        f"other ({listed}, …)"
    )
    return ExactLoss(loss, spent_delta(epsilon), len(wholes), words, rho)


def _renyi_loss(p: np.ndarray, q: np.ndarray) -> float:
    """The largest of D_α(P‖Q)/α over some orders α, which a ρ promises to exceed."""
    p, q = p[p > 0], q[p > 0]
    if not q.all():
        return inf
    ratios = np.log(p) - np.log(q)
    first = fsum(p * ratios)
    others = (log(fsum(p * np.exp((a - 1) * ratios))) / ((a - 1) * a) for a in _ORDERS)
    return max(first, *others)


def _smallest_root(spent_delta: Callable[[float], float], delta: float, losses) -> float:
    """The smallest ε at which no more than δ is spent; inf if none is."""
    finite = losses[np.isfinite(losses)]
    low = 0.0
    high = float(finite.max(initial=0.0)) + 1e-12
    if spent_delta(high) > delta:
        return inf
    for _ in range(60):
        middle = (low + high) / 2
        if spent_delta(middle) > delta:
            low = middle
        else:
            high = middle
    return high


@contextlib.contextmanager
def _replayed(replay: _Replay, cuts: _Cuts, code_bits: int) -> Iterator[_Replay]:
    """The laws of noise as choices of `replay`, and nothing else changed.

    `code_bits` is how many bits a report of randomised response has.
    """

    def choose(out, weights):
        call = replay.calls
        replay.calls += 1
        for i in range(len(out)):
            lowest = cuts.of(call, i, len(out))
            if not lowest:
                out[i] = cuts.constant(call, i)
                continue
            chosen = replay.choose(weights(int(out[i]), lowest))
            out[i] = lowest[chosen - 1] if chosen else lowest[0] - 1

    def add(law, out, words):
        if cuts.recording is not None:
            cuts.record(out)
            return
        rate = _rate(law.alpha(192))

        def weights(x, lowest):
            below = _upper_tail(x - lowest[0] + 1, rate)
            between = [_between(a - x, b - x, rate) for a, b in itertools.pairwise(lowest)]
            return [below, *between, _upper_tail(lowest[-1] - x, rate)]

        choose(out, weights)

    def add_gaussian(law, out, words):
        rate = float(law.rate)
        if cuts.recording is not None:
            cuts.record(out, rate)
            return
        choose(out, lambda x, lowest: _gaussian_parts(rate, tuple(a - x for a in lowest)))

    def gaussian_survivors(cell, empty, words):
        if cell.above is not None:
            raise NotEnumerable("it draws empty cells again, at a lower threshold")
        ranks = survivor_ranks(empty, lambda bits: cell.chance, words)
        return ranks, np.full(len(ranks), max(1, cell.theta), np.int64)

    def survivor_ranks(empty, p, words):
        if cuts.recording is not None:
            cuts.shapes.append(("empty", int(empty)))
        if cuts.recording is not None or not empty:
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

    def values(law, n, words):
        values = np.full(n, max(1, law.theta), np.int64)
        for i in range(n if law.sides == 2 else 0):
            if replay.choose([0.5, 0.5]):
                values[i] *= -1
        return values

    def accept(chance, exactly, words):
        if cuts.recording is not None:
            return np.asarray(chance) >= 0.5
        heads = np.empty(len(chance), bool)
        for i in range(len(chance)):
            p = float(exactly(i, 192))
            heads[i] = p >= 1 or (p > 0 and replay.choose([1 - p, p]))
        return heads

    def sample_candidates(scores, available, decay, words):
        chosen = np.empty(len(scores), np.int64)
        for row in range(len(scores)):
            among = np.flatnonzero(available[row])
            behind = float(decay) * (scores[row][among] - scores[row][among].max())
            weights = np.exp(behind.astype(float))
            first = cuts.recording is not None
            place = 0 if first else replay.choose((weights / weights.sum()).tolist())
            chosen[row] = among[place]
        return chosen

    def any_priorities(*args, **kwargs):
        replay.any_word = True  # all that pass are released, whatever their priorities
        try:
            return original_candidates(*args, **kwargs)
        finally:
            replay.any_word = False

    def retain_or_replace(codes, size, keep, words):
        if cuts.recording is not None:
            return codes
        p = float(keep(192))
        each = (1 - p) / size
        reports = [
            replay.choose([each + p * (c == code) for c in range(size)])
            for code in codes.tolist()
        ]
        return np.array(reports, np.int64)

    def biased_bits(count, chance, words):
        if cuts.recording is not None:
            return np.zeros(count, np.uint64)
        p = float(chance(192))
        flipped = [
            sum(replay.choose([1 - p, p]) << bit for bit in range(code_bits))
            for _ in range(count)
        ]
        return np.array(flipped, np.uint64)

    def set_bits(keys, levels, parameters, bits):
        if cuts.recording is not None:
            every = np.zeros_like(bits)
            original_set_bits(keys, np.full(len(keys), len(parameters)), parameters, every)
            cuts.written |= set(np.flatnonzero(np.unpackbits(every.view(np.uint8))).tolist())
        original_set_bits(keys, levels, parameters, bits)

    def flip_bits(bits, alpha, words):
        p = float(1 / (alpha + 2))
        as_bits = np.unpackbits(bits.view(np.uint8))
        for place in sorted(cuts.written) if cuts.recording is None else ():
            as_bits[place] ^= replay.choose([1 - p, p])
        bits[:] = np.packbits(as_bits).view(np.uint64)

    def dirichlet_multinomial(keys, counts, size, *, alpha, records, cost, rng=None):
        seeded = np.random.default_rng(0)
        drawn = dirichlet.dirichlet_multinomial(
            keys, counts, size, alpha=alpha, records=records, cost=cost, rng=seeded
        )
        if cuts.recording is not None:
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

    def random_words(n, *, rng=None):
        return np.random.default_rng(n).integers(0, 2**64, n, dtype=np.uint64)

    def uniform_keys(size, cells, *, rng=None):
        return np.sort(np.random.default_rng(size).choice(cells, size, replace=False))

    patches = [
        (laws.TwoSidedGeometric, "add", add),
        (discrete_gaussian.DiscreteGaussian, "add", add_gaussian),
        (gaussian_cells.GaussianCell, "survivors", gaussian_survivors),
        (empty_cells.EmptyCell, "values", values),
        *((room, "survivor_ranks", survivor_ranks) for room in (empty_cells, threshold, unary)),
        *(
            (room, "accept", accept)
            for room in (selection, unary, response, empty_cells, exact)
        ),
        (exponential, "sample_candidates", sample_candidates),
        (hashes, "set_bits", set_bits),
        (unary, "flip_bits", flip_bits),
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
        for (owner, name, instead), original in zip(patches, originals, strict=True):
            setattr(owner, name, _in_this_thread(instead, original))
        try:
            yield replay
        finally:
            for (owner, name, _), original in zip(patches, originals, strict=True):
                setattr(owner, name, original)


def _in_this_thread(instead: Callable, original: Callable) -> Callable:
    """Others, who may be releasing something at this moment, have the law itself."""
    here = threading.get_ident()

    @wraps(original)
    def law(*args: Any, **kwargs: Any) -> Any:
        drawn = instead if threading.get_ident() == here else original
        return drawn(*args, **kwargs)

    return law


def _rate(alpha: exact.Interval) -> float:
    """−ln α, right to rounding for α near 1 too."""
    middle = Fraction(alpha.lo + alpha.hi, 2 << alpha.bits)
    if not alpha.lo:
        raise NotEnumerable("its noise is too small to compute with")
    return -log1p(-float(1 - middle)) if middle > Fraction(1, 2) else -log(float(middle))


def _upper_tail(x: int, rate: float) -> float:
    """Pr[X >= x] of two-sided geometric X, α = exp(−rate)."""
    if x > 0:
        return exp(-rate * x) / (1 + exp(-rate))
    return 1 - exp(-rate * (1 - x)) / (1 + exp(-rate))


def _between(low: int, high: int, rate: float) -> float:
    """Pr[low <= X < high], in a form that does not cancel."""
    if low > 0:
        return _upper_tail(low, rate) * -expm1(-rate * (high - low))
    if high <= 0:
        return _between(1 - high, 1 - low, rate)
    below = -expm1(-rate * (1 - low))
    above = exp(-rate) * -expm1(-rate * (high - 1))
    return (below + above) / (1 + exp(-rate))


@lru_cache(4096)
def _gaussian_parts(rate: float, lowest: tuple[int, ...]) -> list[float]:
    """The chances of noise below, between and above these whole numbers, each summed by itself."""
    reach = ceil(40 * sqrt(0.5 / rate))
    values = np.arange(-reach, reach + 1)
    chances = np.exp(-rate * values.astype(float) ** 2)
    chances /= fsum(chances)
    ends = np.clip(np.array([-reach, *lowest, reach + 1]), -reach, reach + 1) + reach
    return [fsum(chances[low:high]) for low, high in itertools.pairwise(ends.tolist())]


def _alike(data: Any) -> bool:
    """Whether all records of each user are the same, so that it says nothing which are kept."""
    if not isinstance(data, Interactions):
        return False
    rows = np.stack([data.users, data.items, data.contexts], axis=1).astype(np.int64)
    return len(np.unique(rows, axis=0)) == len(np.unique(data.users))


def _is_ours(mechanism: Any) -> bool:
    return type(mechanism).__module__.startswith("workbench.")
