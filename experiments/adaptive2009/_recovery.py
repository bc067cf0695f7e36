"""Figures 8 and 9's metric, and what is read off its curves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from experiments.adaptive2009._strings import NEAR
from workbench.claims import Finding, confidence_intervals, format_number
from workbench.metrics import RecoveredFraction, match_strings, recovered_by_frequency
from workbench.records import Records
from workbench.table import PUBLIC
from workbench.value import value

RECOVERED = "Recovered"
FREQUENTLY = "RecoveredFrequent"
PRINTED = "as printed"
ENDED = "ended"
RARE = "from the rarest"
OFTEN = "from the most frequent"
EACH = "of each frequency"


@value
class RecoveredStrings:
    """What is recovered of strings by how often they occur; how strings are counted is in `reading`.

    `adding` "from the rarest", a row has what is recovered of strings that occur fewer than `frequency`
    times, of the whole corpus; "from the most frequent", of those that occur at least so often; "of each
    frequency", which part of the records is recovered that occur `frequency` times up to twice that.
    `part` says of which strings: all, or those of more than `depth` symbols, or the others. Of the latter
    a row each has what is recovered of those that occur as often as `frequent` says.
    """

    depth: int
    frequent: tuple[int, ...]

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """The curves in both readings, and the frequent strings."""
        parts = corpus_parts(truth, self.depth)
        frames = []
        for reading in (PRINTED, ENDED):
            real = _real(truth, estimate, prefixes=reading == PRINTED)
            frames.append(_curves(parts, real).assign(reading=reading))
            for least in self.frequent:
                row = dict(metric=FREQUENTLY, adding="frequent", reading=reading, part="short")
                share = RecoveredFraction(least)(parts["short"], real)
                frames.append(pd.DataFrame([row | dict(frequent=least, value=share)]))
        return pd.concat(frames, ignore_index=True)


@lru_cache(maxsize=1)  # of the corpus itself: all trials ask for the same
def corpus_parts(corpus: Records, depth: int) -> dict[str, Records]:
    """All strings, those of at most `depth` symbols, and the others."""
    tree = corpus.hierarchy
    is_long = np.zeros(len(corpus), bool)
    if tree.depth > depth:
        is_long = tree.digits.digit(depth, corpus.keys) > 0
    parts = {"all": corpus}
    for name, chosen in (("short", ~is_long), ("long", is_long)):
        some = (corpus.keys[:, chosen], corpus.counts[chosen])
        parts[name] = Records.from_keys(tree, *some, corpus.bound, corpus.truth_public)
    return parts


def _real(corpus: Records, estimate: Any, prefixes: bool) -> Records:
    """Those synthetic strings that the corpus has: all that matters to what is recovered."""
    keys, counts, true_counts = match_strings(corpus, estimate, prefixes)
    real = true_counts > 0
    return Records.from_keys(corpus.hierarchy, keys[:, real], counts[real], PUBLIC)


def _curves(parts: dict[str, Records], synthetic: Records) -> pd.DataFrame:
    """Recovered parts at powers of two: of the whole corpus, and of each class of frequencies."""
    whole = parts["all"]
    powers = 2 ** np.arange(int(whole.counts.max()).bit_length() + 1)
    logs = np.log2(powers)
    frames = []
    for part, records in parts.items():
        curve = recovered_by_frequency(records, synthetic)
        at = np.searchsorted(curve.frequency, powers)
        share = records.total / whole.total
        data = share * np.append(0, curve["data"])[at]
        below = share * np.append(0, curve["recovered"])[at]
        columns = dict(metric=RECOVERED, part=part)
        rare = pd.DataFrame({"frequency": powers, "log": logs, "value": below, "data": data})
        frames.append(rare.assign(adding=RARE, **columns))
        above = dict(frequency=powers, rest=20 - logs, value=below[-1] - below)
        above = pd.DataFrame(above | dict(data=data[-1] - data))
        frames.append(above.iloc[:-1].assign(adding=OFTEN, **columns))
        held = np.diff(data) > 0
        each = np.diff(below) / np.where(held, np.diff(data), 1)
        each = pd.DataFrame({"frequency": powers[:-1], "value": each})
        frames.append(each[held].assign(adding=EACH, **columns))
    return pd.concat(frames, ignore_index=True)


def select(rows, corpus: str, epsilon: float, way: str, reading: str, **where) -> pd.DataFrame:
    """The rows of one curve."""
    where |= dict(corpus=corpus, epsilon=epsilon, name=way, reading=reading)
    return rows[np.logical_and.reduce([rows[column] == v for column, v in where.items()])]


def frequent(rows, *place) -> pd.Series:
    """Which part of the records of frequent strings is recovered: mean, low, high."""
    return confidence_intervals(select(rows, *place, metric=FREQUENTLY), "metric").iloc[0]


def break_point(
    rows: pd.DataFrame, corpus: str, epsilon: float, way: str, reading: str = PRINTED
) -> float:
    """The frequency from which half of the records of each class are recovered, for good.

    0 where it is below the rarest, infinity where it is above the most frequent.
    """
    each = select(rows, corpus, epsilon, way, reading, adding=EACH, part="short")
    return crossed(each.groupby("frequency").value.mean(), 0.5, 0.5)


def lowest_true_frequency(
    rows: pd.DataFrame, corpus: str, epsilon: float, way: str, reading: str = PRINTED
) -> float:
    """Down to which frequency at least 95 % are recovered, from the most frequent; 0 or infinity."""
    curve = select(rows, corpus, epsilon, way, reading, adding=OFTEN, part="all")
    means = curve.groupby("frequency")[["value", "data"]].mean()
    return crossed(means.value / means.data, NEAR, 0)


def crossed(curve: pd.Series, level: float, shift: float) -> float:
    """Where a curve over powers of two, read from its upper end, first falls below a level.

    Between two powers along the logarithm; `shift` is how far above it a power's value belongs.
    """
    low = np.flatnonzero(curve.to_numpy() < level)
    if not len(low):
        return 0.0
    if low[-1] == len(curve) - 1:
        return np.inf
    pair = curve.iloc[low[-1] : low[-1] + 2]
    logs = np.log2(pair.index.to_numpy(float))
    return float(2 ** (shift + np.interp(level, pair, logs)))


def frequency_text(frequency: float) -> str:
    ends = {0.0: "below the rarest", np.inf: "above the most frequent", np.nan: "–"}
    return ends.get(frequency) or format_number(frequency)


def percent(share: pd.Series) -> str:
    return "none so frequent" if np.isnan(share["mean"]) else f"{100 * share['mean']:.1f} %"


def with_ended(check: Callable) -> Callable:
    """The check, with what the other reading would make of it."""

    def both(rows) -> Finding:
        finding = check(rows)
        other = check(rows, ENDED)
        marks = {True: "yes", False: "no", None: "not settled"}
        measured = f"{finding.measured}. Only what is known to end: {marks[other.holds]}"
        return replace(finding, measured=f"{measured} ({other.measured})")

    return both
