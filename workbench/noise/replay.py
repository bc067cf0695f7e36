"""Test tool that repeats the noise of a mechanism on a second table. The tool checks that the mechanism uses
private data only through its noisy measurements.

In the first run of the mechanism, on one table, the tool records each random draw: the private numbers that
the draw used, and its outcome. The second run, on a neighbouring table, gets the same outcomes. The check
passes if three conditions hold: the second run makes the same draws, the private numbers of each draw differ
by at most the stated sensitivity, and both runs release the same result. A passed check verifies the
guarantee for these two tables and this noise, if each draw has its stated distribution. Noise is stored by
the name of its cell. So the noise is also repeated if the cell is empty in only one of the two tables.

Source     Cebere et al., Privacy in Theory, Bugs in Practice, PETS 2026.
Differs    We record single draws, and not the results of the functions that mechanisms call. So filters,
           coins, priorities and the selection of empty cells are computed again on the neighbouring table.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from fractions import Fraction
from math import log
from typing import Any, NamedTuple

import numpy as np

from workbench.noise.discrete_gaussian import DiscreteGaussian
from workbench.noise.empty_cells import GaussianCell
from workbench.noise.source import Names, Reads, Source
from workbench.privacy import DP, ZCDP, Receipt
from workbench.randomness import Words
from workbench.value import Bool, Float, Int, Num, UInt64

_SLACK = 1 + 1e-9  # distances are added up in floats
_GAUSSIAN = (DiscreteGaussian, GaussianCell)


class NoSensitivity(Exception):
    """Error for a mechanism that draws random numbers directly from the generator, without a stated
    sensitivity.
    """


class Added(NamedTuple):
    """Record of one call of `Source.add`: the names of the values, the exact values, the stated sensitivity,
    the distribution of the noise, and whether the mechanism gave the names itself.
    """

    names: UInt64[np.ndarray, " n"]
    exact: Num[np.ndarray, " n"]
    moved: float | Fraction
    law: tuple[str, Fraction]
    is_named: bool


class Chosen(NamedTuple):
    """Record of one call of `Source.choose`: the name of the function that chose, its public numbers, the
    private numbers that it used, and the outcome.
    """

    draw: str
    numbers: tuple[Any, ...]
    reads: Reads
    outcome: Any


class Replay(Source):
    """Source of random draws that records the first run of a mechanism and gives later runs the same
    outcomes. Pass this object to the mechanism as `rng`.

    Parameters
    ----------
    seed : Seed of the noise in the first run. Default 0.

    Examples
    --------
    >>> import numpy as np
    >>> from workbench import noise
    >>> from workbench.noise.replay import Replay
    >>> replay = Replay()
    >>> first, _ = noise.geometric(np.array([3, 1]), l1=1, epsilon=1.0, rng=replay)
    >>> replay.again()
    >>> second, _ = noise.geometric(np.array([5, 1]), l1=1, epsilon=1.0, rng=replay)
    >>> (first == second).all()
    np.True_
    >>> replay.differences()
    ['measurement 1: values move by 2, and its noise is for 1', ...]
    """

    def __init__(self, seed: int = 0):
        super().__init__(hashlib.sha256(f"workbench.noise.Replay {seed}".encode()).digest())
        self._recorded: list[_Recorded] | None = None
        self._run: list[_Recorded] = []

    def again(self) -> None:
        """Begin another run, which gets the same random outcomes as the first run."""
        if self._run and self._recorded is None:
            self._recorded = self._run
        self._run = []

    def measurement(self) -> Source:
        """Return the source of random draws for the next measurement of this run."""
        place = len(self._run)
        recorded = self._recorded or []
        earlier = recorded[place] if place < len(recorded) else None
        self._run.append(
            _Recorded(hashlib.sha256(self.key + place.to_bytes(8)).digest(), earlier)
        )
        return self._run[-1]

    @property
    def key(self) -> bytes:
        """Key from which all noise is computed."""
        assert isinstance(self._rng, bytes)
        return self._rng

    def bytes(self, length: int) -> bytes:
        """Return random bytes for the key that decides which rows are kept if a user has too many. The bytes
        are the same in every run.
        """
        return Source(self.key).step(1).bytes(length)

    def differences(self) -> list[str]:
        """Return a list of texts, one for each difference between the last and the first run that is larger
        than one unit may cause. An empty list means that the check passes.
        """
        found = []
        recorded = self._recorded or []
        if len(self._run) != len(recorded):
            found.append(
                f"the number of its draws depends on data: {len(recorded)} measurements of one "
                f"neighbour, {len(self._run)} of the other"
            )
        for place, (other, one) in enumerate(zip(self._run, recorded, strict=False), 1):
            found += [f"measurement {place}: {words}" for words in one.differences(other)]
        return found

    def __getattr__(self, name: str) -> Any:
        if hasattr(np.random.Generator, name):
            raise NoSensitivity(
                f"it draws by rng.{name}, which states no sensitivity: use the functions of "
                "workbench.noise"
            )
        raise AttributeError(name)


class _Recorded(Source):
    """Source of random draws for one measurement. If the measurement was recorded in the first run, its
    outcomes are repeated.
    """

    def __init__(self, key: bytes, earlier: _Recorded | None):
        super().__init__(key)
        self._salt = int.from_bytes(key[:8])
        self._earlier = earlier
        self._noisy: dict[int, float] = {}  # by name, of cells with noise of their own
        self._places = 0
        self.added: list[Added] = []
        self.chosen: list[Chosen] = []
        self.receipts: list[Receipt] = []

    def measurement(self) -> Source:
        """Return this source itself, because each source is for a single measurement."""
        return self

    def step(self, number: int) -> Source:
        """Return this source itself, because its noise belongs to cells and not to steps."""
        return self

    # verbs

    def add(
        self,
        law: Any,
        values: Num[np.ndarray, " n"],
        *,
        moved: float | Fraction,
        names: Names = None,
    ) -> None:
        """Set the values to the noisy values that were recorded for the same cells. A cell without a recorded
        value gets new noise.
        """
        named = self._named(names, len(values))
        exact = values.copy()
        drawn = self._noise(law, named)
        if self._earlier is None:
            values += drawn.astype(values.dtype)
            self._noisy.update(zip(named.tolist(), values.tolist(), strict=True))
        else:
            values[:] = self._earlier.noisy(named, drawn)
        kind = (type(law).__name__, law.rate)
        self.added.append(Added(named, exact, moved, kind, names is not None))

    def survive(
        self, law: Any, empty: int, names: Names = None
    ) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
        """Draw the noise of each empty cell, and return the ranks and values of those that survive."""
        named = self._named(names, empty)
        values = self._noise(law, named).astype(np.int64)
        if self._earlier is not None:
            values = self._earlier.noisy(named, values).astype(np.int64)
        size = values if law.sides == 1 else np.abs(values)
        kept = size >= law.theta
        if law.sampled:
            coins = self._uniform(named, "coin")
            kept &= coins < size / float(law.tau)
            if law.above is not None:
                kept &= coins >= size / float(law.above)
        ranks = np.flatnonzero(kept)
        return ranks, values[ranks]

    def choose(
        self, draw: Callable[..., Any], *arguments: Any, reads: Reads, idealised: bool = False
    ) -> Any:
        """Return the recorded outcome of the choice. In the first run, make the choice and record it."""
        place = len(self.chosen)
        if self._earlier is not None and place < len(self._earlier.chosen):
            outcome = copy.deepcopy(self._earlier.chosen[place].outcome)
            self._idealised |= idealised
        else:
            outcome = super().choose(draw, *arguments, reads=reads, idealised=idealised)
        numbers = tuple(x for x in arguments if isinstance(x, int | float | Fraction))
        self.chosen.append(Chosen(draw.__name__, numbers, reads, copy.deepcopy(outcome)))
        return outcome

    def toss(
        self, chance: Float[np.ndarray, " n"], exact: Any, names: Names = None
    ) -> Bool[np.ndarray, " n"]:
        """Toss coins. A coin with the same name gets the same random number in every run."""
        return self._uniform(self._named(names, len(chance)), "coin") < chance

    def places(
        self,
        values: Int[np.ndarray, " n"],
        names: Names,
        tau: float = 0.0,
        above: float = np.inf,
    ) -> Words:
        """Return random words that give each cell the same priority in every run, even if the cell is empty
        in only one of the runs.
        """
        size = np.maximum(np.abs(values), 1).astype(float)
        inverse = self._uniform(self._named(names, len(values)), "coin") / size
        low = np.minimum(1 / above, 1 / size)
        high = np.minimum(1 / tau if tau else np.inf, 1 / size)
        part = np.clip((inverse - low) / (high - low), 0, 1 - 2.0**-53)
        drawn = (part * 2.0**64).astype(np.uint64)
        first, further = iter(drawn), self.words
        return lambda n: np.fromiter(
            (next(first, None) or further(1)[0] for _ in range(n)), np.uint64, n
        )

    def public_words(self, count: int, names: Names = None) -> UInt64[np.ndarray, " count"]:
        """Return random words. A word with the same name is the same in every run."""
        return self._mixed(self._named(names, count), "words")

    def receipt(self, *arguments: Any, **options: Any) -> Receipt:
        """Write a receipt, and record it for the comparison of runs."""
        self.receipts.append(super().receipt(*arguments, **options))
        return self.receipts[-1]

    # names

    def _named(self, names: Names, count: int) -> UInt64[np.ndarray, " count"]:
        """Return a 64-bit number for each name. If a name occurs again, it gets another number."""
        if names is None:
            start = self._places
            self._places += count
            return np.arange(start, start + count, dtype=np.uint64)
        columns = np.atleast_2d(names() if callable(names) else names)
        assert columns.shape[1] == count, "a name for each value"
        named = np.zeros(count, np.uint64)
        for column in columns:
            named = _mix(named + column.astype(np.uint64))
        _, which, times = np.unique(named, return_inverse=True, return_counts=True)
        if len(times) < count:
            order = np.argsort(which, kind="stable")
            before = np.arange(count) - np.repeat(np.cumsum(times) - times, times)
            nth = np.empty(count, np.uint64)
            nth[order] = before
            named = _mix(named + nth)
        return named

    def _mixed(self, named: UInt64[np.ndarray, " n"], about: str) -> UInt64[np.ndarray, " n"]:
        salt = np.uint64(self._salt ^ int.from_bytes(about.encode()))
        return _mix(_mix(named) ^ salt)

    def _uniform(self, named: UInt64[np.ndarray, " n"], about: str) -> Float[np.ndarray, " n"]:
        """Return a pseudo-random number between 0 and 1 for each name. `about` says what the number is for."""
        return ((self._mixed(named, about) >> np.uint64(11)) + 0.5) * 2.0**-53

    def _noise(self, law: Any, named: UInt64[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return noise for each name. The noise has about the width of the distribution `law`, which is exact
        enough for a test.
        """
        u = self._uniform(named, "noise")
        if isinstance(law, _GAUSSIAN):
            from scipy.special import ndtri

            return np.rint(ndtri(u) / (2 * float(law.rate)) ** 0.5)
        if getattr(law, "idealised", False):
            return np.sign(u - 0.5) * -np.log(2 * np.minimum(u, 1 - u)) / float(law.rate)
        rate = -log(max(float(law.alpha(192)), 1e-300))
        return np.trunc(np.sign(u - 0.5) * -np.log(2 * np.minimum(u, 1 - u)) / rate)

    def noisy(self, named: UInt64[np.ndarray, " n"], otherwise: Any) -> np.ndarray:
        """Return the recorded noisy value of each name. For a name without a recorded value, return the entry
        of `otherwise`.
        """
        pairs = zip(named.tolist(), otherwise.tolist(), strict=True)
        return np.array([self._noisy.get(name, x) for name, x in pairs], otherwise.dtype)

    # comparison

    def differences(self, other: _Recorded) -> list[str]:
        """Compare this measurement with the same measurement of another run. Return a list of texts, one for
        each difference that is larger than the stated sensitivity.
        """
        found = []
        costs = [[receipt.name, receipt.cost, receipt.relation] for receipt in self.receipts]
        if costs != [[r.name, r.cost, r.relation] for r in other.receipts]:
            found.append("its receipts depend on data")
        if len(self.added) != len(other.added) or len(self.chosen) != len(other.chosen):
            return [*found, "the number of its draws depends on data"]
        epsilon = rho = 0.0
        for one, two in zip(self.added, other.added, strict=True):
            if one.law != two.law or one.moved != two.moved:
                found.append("the scale of its noise depends on data")
            if not one.is_named and len(one.exact) != len(two.exact):
                found.append(
                    f"how many values get noise depends on data: {len(one.exact)} and "
                    f"{len(two.exact)}"
                )
                continue
            gaussian = one.law[0] == DiscreteGaussian.__name__
            distance = _distance(one.names, one.exact, two.names, two.exact, 1 + gaussian)
            if distance > float(one.moved) * _SLACK:
                found.append(f"values move by {distance:.6g}, and its noise is for {one.moved}")
            epsilon += 0 if gaussian else distance * float(one.law[1])
            rho += distance * float(one.law[1]) if gaussian else 0
        paid = [receipt.cost for receipt in self.receipts]
        rhos = [r.cost.rho if isinstance(r.cost, ZCDP) else r.rho or 0 for r in self.receipts]
        for what, spent, cost in (
            ("ε", epsilon, sum(x.epsilon for x in paid if isinstance(x, DP))),
            ("ρ", rho, sum(rhos)),
        ):
            if spent > cost * _SLACK:
                found.append(
                    f"its noise costs {what} = {spent:.6g}, and its receipts say {cost:.6g}"
                )
        for chosen in zip(self.chosen, other.chosen, strict=True):
            found += _differences_of_choices(*chosen)
        return found


def _differences_of_choices(one: Chosen, two: Chosen) -> list[str]:
    """Compare the private numbers that two choices used. Return a list with a text if they differ by more
    than the stated sensitivity, and otherwise an empty list.
    """
    if (one.draw, one.numbers, one.reads.moved) != (two.draw, two.numbers, two.reads.moved):
        return ["what it chooses by depends on data"]
    a, b = one.reads, two.reads
    if a.distance is not None:
        distance = a.distance(a.values, b.values)
    else:
        distance = _distance(_mix(a.names), a.values, _mix(b.names), b.values, 1)
    if distance > float(a.moved) * _SLACK:
        return [f"what it chooses by moves by {distance:.6g}, and is paid for {a.moved}"]
    return []


def _distance(
    names: np.ndarray,
    values: np.ndarray,
    other_names: np.ndarray,
    others: np.ndarray,
    power: int,
) -> float:
    """Return the sum of |a − b|^power over all names, where a and b are the two values of a name. A missing
    value counts as 0.
    """
    every = np.unique(np.concatenate([names, other_names]))
    difference = np.zeros(len(every), np.result_type(values, others))
    np.add.at(difference, np.searchsorted(every, names), values)
    np.subtract.at(difference, np.searchsorted(every, other_names), others)
    return float((np.abs(difference).astype(float) ** power).sum())


def _mix(x: np.ndarray) -> UInt64[np.ndarray, " n"]:
    """Apply a permutation of all 64-bit words to each word: the last step of the random number generator
    SplitMix64.
    """
    x = x.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
