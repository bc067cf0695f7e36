"""Events that distinguish neighbours, and the scores of outputs they are made of.

Scores: A score looks at one number of the output, at likelihood ratios of what it holds, or at a weighted sum.

Events: A lower bound on ε follows from one event A: ln((Pr[A | D] − δ) / Pr[A | D′]), with Clopper–Pearson
bounds in place of the probabilities. Events are unions of outputs: those with some number above or
below a value, those of some form, and those whose likelihood ratio is above a value. What is likely is
learnt on a quarter of the outputs, and where to cut on another, so that nothing learnt by heart is chosen.

Source  Clopper & Pearson, Biometrika 1934; bounds from events chosen on other data: Jagielski, Ullman &
        Oprea, NeurIPS 2020; Bichsel, Gehr, Drachsler-Cohen, Tsankov & Vechev, CCS 2018.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, log
from typing import Any

import numpy as np

from workbench.owner.audit.outputs import Output
from workbench.value import Bool, Float

# Scores

_BINS = 12  # of one number
_MOST_FEATURES = 40
_SINGLES = 3


class Sample:
    """Outputs, and any of their numbers as an array with NaN where it is absent."""

    def __init__(self, outputs: Sequence[Output]):
        self.outputs = outputs
        self._columns: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.outputs)

    def __iter__(self) -> Iterator[Output]:
        return iter(self.outputs)

    def column(self, name: str) -> Float[np.ndarray, " n"]:
        """One number of each output."""
        if name not in self._columns:
            self._columns[name] = np.array([o.numbers.get(name, np.nan) for o in self.outputs])
        return self._columns[name]


class Score:
    """A number for each output, the larger the likelier under the first input."""

    def values(self, outputs: Sample) -> Float[np.ndarray, " n"]:
        """The scores."""
        raise NotImplementedError

    def words(self) -> str:
        """What it looks at."""
        raise NotImplementedError


class _Single(Score):
    """One number, absent where it is not there."""

    def __init__(self, name: str, sign: float, absent: float):
        self.name = name
        self.sign = sign
        self.absent = absent

    def values(self, outputs: Sample) -> Float[np.ndarray, " n"]:
        given = outputs.column(self.name)
        return np.where(np.isnan(given), self.absent, self.sign * given)

    def words(self) -> str:
        return self.name if self.sign > 0 else f"−({self.name})"


class _Likelihood(Score):
    """The logarithm of the likelihood ratio of labels, one a feature, learnt and added up."""

    def __init__(self, features: Sequence[_Feature]):
        self.features = features

    def values(self, outputs: Sample) -> Float[np.ndarray, " n"]:
        total = np.zeros(len(outputs))
        for feature in self.features:
            total += feature.ratios(outputs)
        return total

    def words(self) -> str:
        shown = [feature.words() for feature in self.features[:4]]
        more = f" and {len(self.features) - 4} more" if len(self.features) > 4 else ""
        return f"learnt log-likelihood ratio ({'; '.join(shown)}{more})"


class _Regression(Score):
    """Logistic regression on numbers, cut to where most of them lie, and on whether they are there."""

    def __init__(self, names: Sequence[str], one: Sample, other: Sample):
        self.names = names
        raw = np.vstack([self._raw(one), self._raw(other)])
        present = ~np.isnan(raw)
        self.low, self.high, self.mean = np.zeros((3, len(names)))
        for j in range(len(names)):
            x = raw[present[:, j], j]
            if len(x):
                self.low[j], self.high[j] = np.quantile(x, [0.01, 0.99])
                self.mean[j] = np.clip(x, self.low[j], self.high[j]).mean()
        self.scale = np.maximum(self.high - self.low, 1e-12) / 4
        x = self._matrix(raw)
        y = np.repeat([1.0, 0.0], [len(one), len(other)])
        self.weights = _logistic(x, y)

    def _raw(self, outputs: Sample) -> Float[np.ndarray, "n k"]:
        return np.stack([outputs.column(name) for name in self.names], axis=1)

    def _matrix(self, raw: Float[np.ndarray, "n k"]) -> Float[np.ndarray, "n 2k"]:
        absent = np.isnan(raw)
        x = (np.clip(raw, self.low, self.high) - self.mean) / self.scale
        return np.hstack([np.where(absent, 0, x), absent])

    def values(self, outputs: Sample) -> Float[np.ndarray, " n"]:
        return self._matrix(self._raw(outputs)) @ self.weights

    def words(self) -> str:
        return (
            f"learnt weighted sum of {len(self.names)} numbers ({', '.join(self.names[:3])}, …)"
        )


def _logistic(x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, " k"]:
    """Weights by Newton's method, held together by a small ridge; an intercept moves no order."""
    x1 = np.hstack([x, np.ones((len(x), 1))])
    weights = np.zeros(x1.shape[1])
    ridge = np.eye(len(weights)) * 1e-3 * len(x) / max(1, len(weights))
    for _ in range(8):
        p = 1 / (1 + np.exp(-np.clip(x1 @ weights, -30, 30)))
        gradient = x1.T @ (y - p) - ridge @ weights
        curvature = (x1 * (p * (1 - p))[:, None]).T @ x1 + ridge
        step = np.linalg.solve(curvature, gradient)
        weights += step
        if np.abs(step).max() < 1e-6:
            break
    return weights[:-1]


class _Feature:
    """Labels of outputs, and the learnt log-likelihood ratio of each."""

    def __init__(self, one: Sample, other: Sample):
        counts = [Counter(self.labels(outputs)) for outputs in (one, other)]
        labels = set(counts[0]) | set(counts[1])
        sizes = [len(outputs) + 0.5 * len(labels) for outputs in (one, other)]
        self.table = {}
        self.evidence = 0.0  # of a G² test of independence, less what chance gives
        for label in labels:
            p, q = ((c[label] + 0.5) / n for c, n in zip(counts, sizes, strict=True))
            self.table[label] = log(p / q)
            self.evidence += (len(one) * p - len(other) * q) * log(p / q)
        freedom = len(labels) - 1
        self.evidence -= freedom + 4 * (2 * freedom) ** 0.5

    def labels(self, outputs: Sample) -> list[Any]:
        """What this feature sees of each output."""
        raise NotImplementedError

    def ratios(self, outputs: Sample) -> Float[np.ndarray, " n"]:
        """The learnt log-likelihood ratio of each."""
        return np.array([self.table.get(label, 0.0) for label in self.labels(outputs)])

    def words(self) -> str:
        """What it looks at."""
        raise NotImplementedError


class _Number(_Feature):
    """In which bin one number lies, or that it is not there."""

    def __init__(self, name: str, one: Sample, other: Sample):
        self.name = name
        seen = np.concatenate([one.column(name), other.column(name)])
        self.edges = np.unique(seen[~np.isnan(seen)])
        if len(self.edges) > _BINS:
            middle = np.linspace(0, 1, _BINS + 1)[1:-1]
            self.edges = np.unique(np.quantile(seen[~np.isnan(seen)], middle))
        super().__init__(one, other)

    def labels(self, outputs: Sample) -> list[Any]:
        given = outputs.column(self.name)
        bins = np.searchsorted(self.edges, given)
        return np.where(np.isnan(given), -1, bins).tolist()

    def words(self) -> str:
        best = max(self.table, key=lambda label: abs(self.table[label]))
        if best < 0:
            return f"{self.name} is absent"
        if best < len(self.edges):
            return f"{self.name} about {self.edges[best]:.4g}"
        return f"{self.name} above {self.edges[-1]:.4g}"


class _Form(_Feature):
    """Types, text and order."""

    def labels(self, outputs: Sample) -> list[Any]:
        return [output.form for output in outputs]

    def words(self) -> str:
        common = set.intersection(*(set(form) for form in self.table))
        ends = [some(self.table, key=lambda form: self.table[form]) for some in (max, min)]
        special = [[part for part in form if part not in common] for form in ends]
        shown = [", ".join(parts) or "nothing special" for parts in special]
        return " against ".join(shown)


class _Order(_Feature):
    """In which order the numbers come."""

    def labels(self, outputs: Sample) -> list[Any]:
        return [tuple(output.numbers) for output in outputs]

    def words(self) -> str:
        return "the order and presence of numbers"


class _Whole(_Feature):
    """The whole output."""

    def labels(self, outputs: Sample) -> list[Any]:
        return [output.whole for output in outputs]

    def words(self) -> str:
        return "the whole output"


def scores_of(one: Sample, other: Sample) -> list[Score]:
    """What events are made of, from the half that is learnt on."""
    runs = len(one) + len(other)
    features: list[_Feature] = [_Form(one, other)]
    for feature in (_Order, _Whole):
        learnt = feature(one, other)
        if len(learnt.table) < runs / 8:  # rarer ones are not learnt
            features.append(learnt)
    named = Counter(name for outputs in (one, other) for o in outputs for name in o.numbers)
    changing = [name for name in named if _changes(name, named[name] < runs, one, other)]
    numbers = [_Number(name, one, other) for name in changing]
    numbers.sort(key=lambda feature: -feature.evidence)
    numbers = [feature for feature in numbers if feature.evidence > 0][:_MOST_FEATURES]
    scores: list[Score] = [_Likelihood([f]) for f in features if f.evidence > 0]
    scores += [_Likelihood([number]) for number in numbers[:_SINGLES]]
    for number in numbers[:_SINGLES]:
        low, high = -inf, inf
        scores += [_Single(number.name, 1.0, x) for x in (low, high)]
    if numbers:
        scores.append(_Likelihood(numbers))
        scores.append(_Regression([n.name for n in numbers[:20]], one, other))
    return scores


def _changes(name: str, sometimes_absent: bool, one: Sample, other: Sample) -> bool:
    if sometimes_absent:
        return True
    first = one.column(name)[0]
    return any((outputs.column(name) != first).any() for outputs in (one, other))


# Events

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
