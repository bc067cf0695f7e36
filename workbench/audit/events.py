"""Events that tell neighbours apart: chosen on one half of the outputs, judged on the other.

A lower bound on ε follows from one event A: ln((Pr[A | D] − δ) / Pr[A | D′]), with Clopper–Pearson
bounds in place of the probabilities. Events are unions of outputs: those with some number above or
below a value, those of some form, and those whose likelihood ratio is above a value. What is likely is
learnt on a quarter of the outputs, and where to cut on another, so that nothing learnt by heart is chosen.

Source  Clopper & Pearson, Biometrika 1934; bounds from events chosen on other data: Jagielski, Ullman &
        Oprea, NeurIPS 2020; Bichsel, Gehr, Drachsler-Cohen, Tsankov & Vechev, CCS 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from workbench.arrays import Bool, Float
from workbench.audit.outputs import Output
from workbench.audit.scores import Sample, Score, scores_of

_TESTED = 4  # events of each audit that are judged; the false-alarm rate is shared among them


@dataclass(frozen=True)
class Evidence:
    """The event that shows the largest ε, and how often it happened.

    Parameters
    ----------
    bound : float
        ε is at least this, but for the false-alarm rate.
    words : str
        The event.
    likelier, rarer : float
        How often it happened under the two inputs, of the runs it was judged on.
    swapped : bool
        Whether it is likelier under the other input.
    """

    bound: float
    words: str
    likelier: float
    rarer: float
    swapped: bool


def clopper_pearson(hits: int, runs: int, level: float) -> tuple[float, float]:
    """Bounds below and above a probability, each wrong with probability `level` at most.

    >>> low, high = clopper_pearson(500, 1000, 0.025)
    >>> round(low, 3), round(high, 3)
    (0.469, 0.531)
    """
    from scipy.stats import beta

    low = float(beta.ppf(level, hits, runs - hits + 1)) if hits else 0.0
    high = float(beta.isf(level, hits + 1, runs - hits)) if hits < runs else 1.0
    return low, high


def bound_of_event(
    likelier: int, rarer: int, runs: tuple[int, int], delta: float, level: float
) -> float:
    """A lower bound on ε from an event's hits among the runs of both inputs; 0 if it shows nothing."""
    low, _ = clopper_pearson(likelier, runs[0], level / 2)
    _, high = clopper_pearson(rarer, runs[1], level / 2)
    return max(0.0, log((low - delta) / high)) if low > delta else 0.0


def strongest_evidence(
    one: Sequence[Output], other: Sequence[Output], delta: float, level: float
) -> Evidence:
    """The largest lower bound on ε that outputs of two neighbours show.

    Parameters
    ----------
    one, other : outputs of either input, the order of drawing.
    delta : the stated failure probability.
    level : the false-alarm rate: the bound exceeds the true ε with this probability at most.

    Returns
    -------
    Evidence
    """
    learn = [Sample(outputs[0::4]) for outputs in (one, other)]
    choose = [Sample(outputs[2::4]) for outputs in (one, other)]
    judge = [Sample(outputs[1::2]) for outputs in (one, other)]
    events = _best_events(scores_of(*learn), choose[0], choose[1], delta, level)
    best = Evidence(0.0, "no event tells them apart", 0.0, 0.0, False)
    runs = [len(outputs) for outputs in judge]
    for event in events:
        hits = [int(event.happens(outputs).sum()) for outputs in judge]
        first, second = (1, 0) if event.swapped else (0, 1)
        bound = bound_of_event(
            hits[first],
            hits[second],
            (runs[first], runs[second]),
            delta,
            level / max(1, len(events)),
        )
        if bound > best.bound:
            frequencies = [h / n for h, n in zip(hits, runs, strict=True)]
            best = Evidence(
                bound,
                event.words(),
                frequencies[first],
                frequencies[second],
                event.swapped,
            )
    return best


@dataclass(frozen=True)
class _Event:
    """A score of at least `least`, or, if it is swapped, of at most that."""

    score: Score
    least: float
    swapped: bool
    learnt: float

    def happens(self, outputs: Sample) -> Bool[np.ndarray, " n"]:
        scores = self.score.values(outputs)
        return scores <= self.least if self.swapped else scores >= self.least

    def words(self) -> str:
        side = "<=" if self.swapped else ">="
        return f"{self.score.words()} {side} {self.least:.4g}"


def _best_events(
    scores: Sequence[Score],
    one: Sample,
    other: Sample,
    delta: float,
    level: float,
) -> list[_Event]:
    """The events of the largest bounds, on outputs that their scores were not learnt on."""
    events = []
    for score in scores:
        values = [score.values(outputs) for outputs in (one, other)]
        for swapped in (False, True):
            event = _best_cut(score, values, swapped, delta, level)
            if event is not None:
                events.append(event)
    events.sort(key=lambda event: -event.learnt)
    return events[:_TESTED]


def _best_cut(
    score: Score,
    values: list[Float[np.ndarray, " outputs"]],
    swapped: bool,
    delta: float,
    level: float,
) -> _Event | None:
    """Where a score is cut; by normal bounds, which only choose."""
    sign = -1.0 if swapped else 1.0
    likelier, rarer = (np.sort(sign * x) for x in (values[::-1] if swapped else values))
    cuts = np.unique(np.concatenate([likelier, rarer]))
    if len(cuts) > 400:
        cuts = cuts[np.linspace(0, len(cuts) - 1, 400).astype(int)]
    wide = _normal_quantile(level / _TESTED / 2)
    bounds = []
    for ordered, side in ((likelier, -1), (rarer, 1)):
        n = len(ordered)
        hits = n - np.searchsorted(ordered, cuts)
        bounds.append(_wilson(hits, n, wide, side))
    low, high = bounds
    with np.errstate(divide="ignore", invalid="ignore"):
        epsilon = np.where(low > delta, np.log((low - delta) / high), -np.inf)
    best = int(epsilon.argmax())
    if not epsilon[best] > 0:
        return None
    return _Event(score, float(sign * cuts[best]), swapped, float(epsilon[best]))


def _normal_quantile(level: float) -> float:
    from scipy.stats import norm

    return float(norm.isf(level))


def _wilson(hits: np.ndarray, runs: int, z: float, side: int) -> Float[np.ndarray, " cuts"]:
    p = hits / runs
    middle = p + z * z / (2 * runs)
    width = z * np.sqrt(p * (1 - p) / runs + (z / (2 * runs)) ** 2)
    return np.maximum(middle + side * width, 0) / (1 + z * z / runs)
