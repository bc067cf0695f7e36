"""Search for an event that is much more frequent for one input than for its neighbour. The event is chosen on
one half of the outputs, and measured on the other half.

A lower bound on ε follows from an event A: ln((Pr[A | D] − δ) / Pr[A | D′]), where D and D′ are the two inputs.
The probabilities are unknown, so the audit uses confidence bounds (Clopper–Pearson) from the counted outputs.
An event happens if a score exceeds a cut value. The score is a number in the output, or an estimated likelihood
ratio. One quarter of the outputs is used to estimate the likelihood ratios. A second quarter is used to choose
the score and the cut value, which avoids overfitting. The bound is computed from the other half.

Source  Clopper & Pearson, Biometrika 1934, for the confidence bounds. Jagielski, Ullman & Oprea, NeurIPS
        2020, and Bichsel, Gehr, Drachsler-Cohen, Tsankov & Vechev, CCS 2018, for bounds from events that
        were chosen on other data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from workbench.owner.audit.outputs import Output
from workbench.value import Bool, Float

_BINS = 12  # of one number
_MOST_NUMBERS = 40
_SINGLES = 3
_MOST_CUTS = 400
_TESTED = 4  # events of each audit that are judged; the false-alarm rate is shared among them

Score = tuple[str, Float[np.ndarray, " outputs"]]  # in words, and of each output


class Evidence(NamedTuple):
    """Event from which the largest lower bound on ε follows, with its frequencies for the two inputs.

    Parameters
    ----------
    bound : float
        Lower bound on ε. The probability that this bound exceeds the true ε is at most `level` (an argument of
        `strongest_evidence`).
    event : str
        Description of the event.
    likelier, rarer : float
        Frequencies of the event. `likelier` is the frequency for the input with which the event is more
        frequent. `rarer` is the frequency for the other input. Only the runs that were not used to choose the
        event are counted.
    """

    bound: float = 0.0
    event: str = "no event tells them apart"
    likelier: float = 0.0
    rarer: float = 0.0


def strongest_evidence(
    one: Sequence[Output], other: Sequence[Output], delta: float, level: float
) -> Evidence:
    """Return the largest lower bound on ε that follows from outputs for two neighbouring inputs.

    Parameters
    ----------
    one, other : Outputs for each of the two inputs, in the order in which they were drawn.
    delta : Stated failure probability δ.
    level : Largest probability that the bound exceeds the true ε (a false alarm).

    Returns
    -------
    Evidence
    """
    first = np.repeat([True, False], [len(one), len(other)])
    place = np.concatenate([np.arange(len(one)), np.arange(len(other))]) % 4
    level /= _TESTED
    events = []
    for words, score in _scores([*one, *other], first, place == 0):
        for likelier, sign, sides in ((first, 1, ">="), (~first, -1, "<=")):
            values = sign * score
            cuts = np.unique(values[place == 2])
            cuts = cuts[np.linspace(0, len(cuts) - 1, min(len(cuts), _MOST_CUTS)).astype(int)]
            hits, runs = _hits(values, cuts, likelier, place == 2)
            bounds = bound_of_event(hits, runs, delta, level)
            best = int(bounds.argmax())
            if bounds[best] > 0:
                named = f"{words} {sides} {sign * cuts[best]:.4g}"
                events.append((bounds[best], named, values, cuts[best], likelier))
    events.sort(key=lambda event: -event[0])
    found = [Evidence()]
    for _, named, values, cut, likelier in events[:_TESTED]:
        hits, runs = _hits(values, cut, likelier, place % 2 == 1)
        bound = float(bound_of_event(hits, runs, delta, level))
        found.append(Evidence(bound, named, *(h / n for h, n in zip(hits, runs, strict=True))))
    return max(found, key=lambda evidence: evidence.bound)


def _hits(values: Any, cuts: Any, likelier: Any, chosen: Any) -> tuple[list[Any], list[int]]:
    """Count the selected outputs whose value is at or above each cut value. Return the counts for the input
    that makes the event likelier and for the other input, and the numbers of selected outputs.
    """
    ordered = [np.sort(values[chosen & side]) for side in (likelier, ~likelier)]
    return [len(x) - np.searchsorted(x, cuts) for x in ordered], [*map(len, ordered)]


def clopper_pearson(hits: Any, runs: int, level: float) -> tuple[Any, Any]:
    """Return a lower and an upper confidence bound on the probability of an event. `hits` is the number of
    runs in which the event happened. Each bound is wrong with probability at most `level`.

    >>> low, high = clopper_pearson(500, 1000, 0.025)
    >>> round(float(low), 3), round(float(high), 3)
    (0.469, 0.531)
    """
    from scipy.stats import beta

    misses = runs - hits
    low = np.where(hits > 0, beta.ppf(level, np.maximum(hits, 1), misses + 1), 0.0)
    return low, np.where(misses > 0, beta.isf(level, hits + 1, np.maximum(misses, 1)), 1.0)


def bound_of_event(hits: Any, runs: Any, delta: float, level: float) -> Any:
    """Return a lower bound on ε from the number of runs in which an event happened, for each input. The bound
    is at least 0.
    """
    low, _ = clopper_pearson(hits[0], runs[0], level / 2)
    _, high = clopper_pearson(hits[1], runs[1], level / 2)
    return np.log(np.maximum((low - delta) / high, 1))


# Scores


def _scores(
    outputs: Sequence[Output], first: Bool[np.ndarray, " n"], learn: Bool[np.ndarray, " n"]
) -> Iterator[Score]:
    """Yield scores. A score gives each output a number, and an event is that this number exceeds a cut value.
    The scores are estimated from the outputs that `learn` selects.
    """
    forms, evidence = _ratios([hash(o.form) for o in outputs], first, learn)
    if evidence > 0:
        ends = [set(outputs[int(i)].form) for i in (forms.argmax(), forms.argmin())]
        special = [", ".join(x - y) or "nothing special" for x, y in (ends, ends[::-1])]
        yield _ratio_of(" against ".join(special)), forms
    for words, labels in (
        ("the order and presence of numbers", [hash(tuple(o.numbers)) for o in outputs]),
        ("the whole output", [o.whole for o in outputs]),
    ):
        if len(set(np.array(labels)[learn])) < learn.sum() / 8:  # rarer ones are not learnt
            ratios, evidence = _ratios(labels, first, learn)
            if evidence > 0:
                yield _ratio_of(words), ratios
    found = []
    taught = [o for o, chosen in zip(outputs, learn, strict=True) if chosen]
    for name in Counter(name for o in taught for name in o.numbers):
        values = np.array([o.numbers.get(name, np.nan) for o in outputs])
        ratios, evidence, words = _of_number(name, values, first, learn)
        if evidence > 0:
            found.append((evidence, name, values, ratios, words))
    found = sorted(found, key=lambda number: -number[0])[:_MOST_NUMBERS]
    for _, name, values, ratios, words in found[:_SINGLES]:
        yield _ratio_of(words), ratios
        for absent in (-np.inf, np.inf):
            yield name, np.nan_to_num(values, nan=absent)
    if found:
        total = np.sum([ratios for *_, ratios, _ in found], axis=0)
        yield _ratio_of(*(words for *_, words in found)), total


def _ratio_of(*words: str) -> str:
    more = f" and {len(words) - 4} more" if len(words) > 4 else ""
    return f"learnt log-likelihood ratio ({'; '.join(words[:4])}{more})"


def _ratios(labels: Any, first: Any, learn: Any) -> tuple[Float[np.ndarray, " n"], float]:
    """Return the estimated log-likelihood ratio of each output's label. Also return how much the G² statistic
    of the labels exceeds the values that occur by chance.
    """
    _, codes = np.unique(labels, return_inverse=True)
    counts = np.array(
        [
            np.bincount(codes[learn & side], minlength=codes.max() + 1)
            for side in (first, ~first)
        ]
    )
    seen = counts.any(axis=0)
    sizes = counts.sum(axis=1)[:, None]
    p, q = (counts + 0.5) / (sizes + 0.5 * seen.sum())
    ratios = np.where(seen, np.log(p / q), 0)
    freedom = seen.sum() - 1
    evidence = ((sizes[0] * p - sizes[1] * q) * ratios).sum() - freedom
    return ratios[codes], evidence - 4 * sqrt(2 * freedom)


def _of_number(
    name: str, values: Any, first: Any, learn: Any
) -> tuple[Float[np.ndarray, " n"], float, str]:
    """Divide the values that one number has in the outputs into bins. Return the log-likelihood ratio of each
    output's bin, the excess of the G² statistic (as in `_ratios`), and a description of the bin with the
    largest ratio.
    """
    seen = values[learn & ~np.isnan(values)]
    edges = np.unique(seen)
    if len(edges) > _BINS:
        edges = np.unique(np.quantile(seen, np.linspace(0, 1, _BINS + 1)[1:-1]))
    bins = np.where(np.isnan(values), -1, np.searchsorted(edges, values))
    ratios, evidence = _ratios(bins, first, learn)
    best = bins[np.abs(ratios).argmax()]
    if best < 0:
        return ratios, evidence, f"{name} is absent"
    where = f"about {edges[best]:.4g}" if best < len(edges) else f"above {edges[-1]:.4g}"
    return ratios, evidence, f"{name} {where}"
