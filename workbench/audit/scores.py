"""Numbers made of outputs, the larger the likelier under the first of two neighbours, as some outputs show.

A score looks at one number of the output, at likelihood ratios of what it holds, or at a weighted sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf, log
from typing import Any

import numpy as np

from workbench.arrays import Float
from workbench.audit.outputs import Output

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
