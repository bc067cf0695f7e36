"""Figures 8 and 9 of "Synthetic Data via Differential Privacy" (2009): share of strings that synthetic data
recover, by frequency.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): section 5.2, Figures 8 and 9.
Read    The plots are not in our copy, and the text prints no number.
Open    The 90 million searches are not public. We use a synthetic log of 1.5 million searches. At a given ε,
        only a string's own count matters compared with the noise. So each frequency can be compared, whatever
        the number of searches. With many more searches, a threshold of one record, which we also run, would
        need more memory than there is. With a million searches, no string occurs 5000/ε times at ε = 0.1. For
        comparison, we use the surnames of 266 million people, whose symbols are letters. The paper does not
        say whether ε is that of a whole release or of one level, and prints no thresholds. We run several
        settings, which the module `shared` defines. The figure draws ε for a whole release, and the threshold
        b = k times the scale of the noise of a split. The surnames have only this setting. The discount is
        the one of Theorem 3. As printed, basic histograms and direct synthesis stop at 20 symbols. Improved
        histograms stop at 24, the depth of the hierarchy. Direct synthesis is given the number of records,
        which is public here. PrivTree is a later method with its authors' threshold. It is not in the paper,
        and no statement is tested on it. The paper has no symbol for the end of a string, and its list
        contains beginnings of strings. So a leaf counts as recovered if the true data have its string,
        whether or not the string is known to end there. Statements are tested in this reading ("as printed").
        In the other reading ("ended"), only strings that are known to end count. Basic histograms and direct
        synthesis then cannot recover strings of 20 symbols.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from math import ceil, floor, inf, log2
from typing import Any

import numpy as np

from experiments._fields import effort, unprinted
from experiments.adaptive2009.shared import (
    BASIC,
    DIRECT,
    IMPROVED,
    LOG,
    SYMBOLS,
    Source,
    Strings,
    basic,
    direct,
    improved,
    of_log,
    whose_epsilon,
)
from workbench import DP, Sweep
from workbench.compiled import pd
from workbench.data import PUBLIC, Records
from workbench.figures import Figure
from workbench.figures.fields import epsilons, seeds
from workbench.figures.plots import Panel
from workbench.mechanisms import PrivTree
from workbench.mechanisms.protocol import Mechanism
from workbench.trials.claims import (
    ALIKE,
    OFTEN,
    Finding,
    all_of,
    check_between,
    check_lower,
    means,
    paired_ratios,
)
from workbench.trials.metrics import RecoveredFraction, match_strings, recovered_by_frequency
from workbench.value import format_number, value

RECOVERED = "Recovered"
SHARE = "RecoveredShare"
PRINTED = "as printed"
ENDED = "ended"
FROM_RAREST = "from the rarest"
FROM_MOST_FREQUENT = "from the most frequent"
OF_EACH = "of each frequency"
FREQUENT = "of frequent strings"
OTHERS = "of the others"
EPSILONS = (10.0, 1.0, 0.1)
TECHNIQUES = (IMPROVED, DIRECT, BASIC)
TIMES = (50, 500, 5000)  # a string is frequent from so many occurrences on, times 1/ε
ABOVE_ZERO = float(np.nextafter(0, 1))
WORDS = {
    FROM_MOST_FREQUENT: "most frequent first",
    OF_EACH: "each frequency",
    FROM_RAREST: "rarest first",
}


# Figures 8 and 9's metric, and what is read off its curves.


@value
class RecoveredStrings:
    """Metric: share of the true strings that synthetic data recover, by their frequency. The column `reading`
    says how strings are counted.

    The column `adding` has three values. For "from the rarest", a row is the recovered share of the whole
    corpus from strings with fewer than `frequency` occurrences. For "from the most frequent", it is the share
    from strings with at least `frequency` occurrences. For "of each frequency", it is the recovered share of
    the records whose strings occur between `frequency` and twice as many times. The column `part` says which
    strings are counted: all, those with more than `depth` symbols, or the others. For the others, two more
    rows contain the recovered shares of strings with at least `frequent` occurrences, and of the rarer ones.
    """

    depth: int
    frequent: tuple[int, ...]

    def __call__(self, truth: Records, estimate: Any) -> pd.DataFrame:
        """Return the curves in both readings, and the recovered shares of frequent and of other strings."""
        parts = corpus_parts(truth, self.depth)
        frames = []
        for reading in (PRINTED, ENDED):
            real = _real(truth, estimate, prefixes=reading == PRINTED)
            frames.append(_curves(parts, real).assign(reading=reading))
            for least in self.frequent:
                frames.append(self._shares(parts["short"], real, least).assign(reading=reading))
        return pd.concat(frames, ignore_index=True)

    def _shares(self, corpus: Records, real: Records, least: int) -> pd.DataFrame:
        """Return the recovered share of strings with at least `least` occurrences, and that of the rarer
        strings.
        """
        parts = {FREQUENT: RecoveredFraction(least)}
        if least > 1:
            parts[OTHERS] = RecoveredFraction(1, least - 1)
        shares = [share(corpus, real) for share in parts.values()]
        frame = pd.DataFrame({"adding": [*parts], "value": shares})
        return frame.assign(metric=SHARE, part="short", frequent=least)


@lru_cache(maxsize=1)  # of the corpus itself: all trials ask for the same
def corpus_parts(corpus: Records, depth: int) -> dict[str, Records]:
    """Return three parts of a corpus: all strings, those with at most `depth` symbols, and the others."""
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
    """Return the synthetic strings that the true corpus contains. Only these strings are recovered."""
    keys, counts, true_counts = match_strings(corpus, estimate, prefixes)
    real = true_counts > 0
    return Records.from_keys(corpus.hierarchy, keys[:, real], counts[real], PUBLIC)


def _curves(parts: dict[str, Records], synthetic: Records) -> pd.DataFrame:
    """Return the recovered shares at frequencies that are powers of two: cumulative shares of the whole
    corpus, and shares of each class of frequencies.
    """
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
        frames.append(rare.assign(adding=FROM_RAREST, **columns))
        above = dict(frequency=powers, rest=20 - logs, value=below[-1] - below)
        above = pd.DataFrame(above | dict(data=data[-1] - data))
        frames.append(above.iloc[:-1].assign(adding=FROM_MOST_FREQUENT, **columns))
        held = np.diff(data) > 0
        each = np.diff(below) / np.where(held, np.diff(data), 1)
        each = pd.DataFrame({"frequency": powers[:-1], "value": each})
        frames.append(each[held].assign(adding=OF_EACH, **columns))
    return pd.concat(frames, ignore_index=True)


def break_points(rows: pd.DataFrame) -> pd.DataFrame:
    """Return, for each curve, the frequency below which less than half of the records of each class of
    frequencies are recovered.
    """
    return _crossed(rows[(rows.adding == OF_EACH) & (rows.part == "short")], 0.5, shift=0.5)


def departures(rows: pd.DataFrame, tight: float, part: str = "all") -> pd.DataFrame:
    """Return, for each curve, the frequency below which less than the share `tight` of the true records is
    recovered, if strings are added from the most frequent on.
    """
    own = rows[(rows.adding == FROM_MOST_FREQUENT) & (rows.part == part) & (rows.data > 0)]
    return _crossed(own.assign(value=own.value / own.data), tight, shift=0)


def _crossed(rows: pd.DataFrame, height: float, shift: float) -> pd.DataFrame:
    """Return the frequency at which each curve crosses a height, with one row per method, ε and seed."""
    curves = rows.sort_values("frequency").set_index("frequency")
    by_curve = curves.groupby(["series", "epsilon", "seed"]).value
    return by_curve.agg(lambda curve: crossed(curve, height, shift)).reset_index()


def crossed(curve: pd.Series, height: float, shift: float) -> float:
    """Return the frequency below which a curve is lower than `height`.

    The curve has values at powers of two, and is interpolated on a logarithmic axis. The result is 0 if the
    curve is never lower, and infinity if it is always lower. `shift` says where the value of a class of
    frequencies belongs, in powers of two above the lower end of the class.
    """
    there = np.flatnonzero(curve.to_numpy() >= height)
    if not len(there):
        return np.inf
    if there[0] == 0:
        return 0.0
    pair = curve.iloc[there[0] - 1 : there[0] + 1]
    logs = np.log2(pair.index.to_numpy(float))
    return float(2 ** (shift + np.interp(height, pair, logs)))


def frequency_text(frequency: float) -> str:
    """Return a frequency as text.

    >>> [frequency_text(x) for x in (0.0, float("inf"), 30.4)]
    ['below the rarest', 'above the most frequent', '30.4']
    """
    ends = {0.0: "below the rarest", np.inf: "above the most frequent"}
    return ends.get(frequency) or format_number(frequency)


def _judged(rows) -> pd.DataFrame:
    """Return the results of the paper's three methods on the synthetic log, where beginnings count as
    strings, as printed.
    """
    own = of_log(rows)
    return own[(own.reading == PRINTED) & own.series.isin(TECHNIQUES)]


def _from_most_frequent(rows) -> pd.DataFrame:
    own = _judged(rows)
    return own[(own.adding == FROM_MOST_FREQUENT) & (own.part == "all")]


def check_comparable(rows, level, other: str) -> Finding:
    """Check whether a histogram recovers at most 1.25 times as much as direct synthesis."""
    own = _from_most_frequent(rows)
    ratios = paired_ratios(own, other, DIRECT, ["epsilon", "frequency"])
    words = "no more than 1.25×"
    return check_between(ratios, level, high=ALIKE, share=OFTEN, words=words)


def check_ahead(rows, level, ours: str, others: tuple[str, ...] = (BASIC,)) -> Finding:
    """Check whether, at each ε, a method recovers more of the whole log than each of the others."""
    own = _from_most_frequent(rows)
    more = dict(low=float(np.nextafter(1, 2)), words="more in all")
    parts = {}
    for epsilon, other in product(EPSILONS, others):
        at = own[own.epsilon == epsilon]
        total = at[at.frequency == at.frequency.min()]  # down to the least that there is
        ratios = paired_ratios(total, ours, other, "frequency")
        parts[f"ε = {epsilon:g}, against {other}"] = partial(check_between, ratios, **more)
    return all_of(parts, level)


def check_fidelity(rows, level, value: int) -> Finding:
    """Check whether a larger share of the frequent strings is recovered than of the other strings."""
    own = _judged(rows)
    own = own[(own.metric == SHARE) & np.isclose(own.frequent * own.epsilon, value)]
    places = own.set_index(["series", "epsilon", "seed", "adding"])
    wide = places.value.unstack("adding").dropna()
    if wide.empty:
        return Finding(None, "no string is so frequent")
    more = (wide[FREQUENT] - wide[OTHERS]).rename("value").reset_index()
    more = more.rename(columns={"series": "technique"}).assign(series="more")
    numbers = means(more, "more", ["technique", "epsilon"])
    finding = check_between(numbers, level, low=ABOVE_ZERO, words="more")
    if finding.holds and set(wide.index.unique("epsilon")) != set(EPSILONS):
        finding = replace(finding, holds=None, why="no string is so frequent at every ε")
    mean = wide.groupby(["series", "epsilon"]).mean()
    ends = [f"{kind} {mean[kind].min():.1%}–{mean[kind].max():.1%}" for kind in mean]
    return replace(finding, measured=f"{', '.join(ends)}; {finding.measured}")


def check_breaks(rows, level) -> Finding:
    """Check whether the frequencies at which different methods break down are closer together than those of
    one method at neighbouring ε.
    """
    points = break_points(_judged(rows)).set_index(["seed", "series", "epsilon"]).value
    inside = (points > 0) & np.isfinite(points)  # of the frequencies there are
    table = points.where(inside).unstack("epsilon").reindex(columns=EPSILONS)
    releases = table.groupby("seed")
    apart = (releases.max() / releases.min())[releases.count() > 1].max(axis=1)
    steps = (table.shift(-1, axis=1) / table).groupby("seed").min().min(axis=1)
    if not (apart.notna() & steps.notna()).any():
        return Finding(None, "too few break points are among the frequencies there are")
    finding = _check_lower_by_seed(apart, steps, level)
    mean = np.exp(np.log(table).groupby("series").mean())
    texts = [f"ε = {e:g}: {', '.join(map(_point_text, mean[e].items()))}" for e in EPSILONS]
    both = f"techniques {apart.mean():.3g}× apart, ε's {steps.mean():.3g}× or more"
    return replace(finding, measured=f"{'; '.join(texts)}; {both}")


def _point_text(place) -> str:
    name, frequency = place
    return f"{name} {'left out' if np.isnan(frequency) else frequency_text(frequency)}"


def _check_lower_by_seed(ours: pd.Series, other: pd.Series, level) -> Finding:
    both = pd.concat({"ours": ours, "other": other}, names=["series"]).rename("value")
    return check_lower(
        paired_ratios(both.reset_index().assign(at=0), "ours", "other", "at"), level
    )


def check_longest(rows, level, value: float) -> Finding:
    """Check whether, at each ε, the improved histogram recovers nearly all records down to a lower frequency
    than the other methods.
    """
    left = departures(_judged(rows), value / 100)
    ratios = {x: paired_ratios(left, IMPROVED, x, "epsilon") for x in (DIRECT, BASIC)}
    parts = {f"against {x}": partial(check_lower, own) for x, own in ratios.items()}
    return all_of(parts, level)


def check_long_strings(rows, level, value: float) -> Finding:
    """Check whether most of the records that the improved histogram recovers in addition to the next best
    method are long strings.
    """
    own = _judged(rows)
    left = departures(own, value / 100)
    short = departures(own, value / 100, part="short")
    parts = {}
    for epsilon in EPSILONS:
        mean = left[left.epsilon == epsilon].groupby("series").value.mean()
        best = mean.drop(IMPROVED).idxmin()
        if not 0 < mean[best] < inf:
            parts[f"ε = {epsilon:g}"] = lambda at: Finding(None, "none leaves the truth")
            continue
        at = 2 ** floor(log2(mean[best]))
        curves = own[(own.frequency == at) & (own.epsilon == epsilon)]
        parts[f"ε = {epsilon:g}, of long strings"] = partial(_mostly_long, curves, best)
        alone = paired_ratios(short[short.epsilon == epsilon], best, IMPROVED, "epsilon")
        name = f"ε = {epsilon:g}, short strings alone, {best} over improved"
        parts[name] = partial(check_between, alone, high=ALIKE)
    return all_of(parts, level)


def _mostly_long(rows, best: str, level) -> Finding:
    rows = rows[rows.adding == FROM_MOST_FREQUENT]
    wide = rows.set_index(["seed", "part", "series"]).value.unstack("series")
    more = (wide[IMPROVED] - wide[best]).unstack("part")
    beyond = (more["long"] - more["all"].abs() / 2).rename("value").reset_index()
    numbers = means(beyond.assign(series="beyond half", at=0), "beyond half", "at")
    finding = check_between(numbers, level, low=ABOVE_ZERO)
    surplus = f"{more['all'].mean():.2%} of the searches more than {best}"
    return replace(finding, measured=f"{surplus}, {more['long'].mean():.2%} of long strings")


def check_disparity(rows, level) -> Finding:
    """Check whether the nine curves differ most in the lower half of the logarithmic axis of frequencies."""
    own = _from_most_frequent(rows)
    places = own.set_index(["seed", "frequency", "series", "epsilon"]).value
    curves = places.unstack(["series", "epsilon"]).sort_index()
    classes = curves - curves.groupby("seed").shift(-1).fillna(0)
    spread = classes.max(axis=1) - classes.min(axis=1)
    logs = np.log2(spread.index.get_level_values("frequency").to_numpy(float))
    low = logs < logs.max() / 2
    lower, upper = (spread[half].groupby("seed").max() for half in (low, ~low))
    finding = _check_lower_by_seed(upper, lower, level)
    ends = f"{lower.mean():.2%} in the lower half, {upper.mean():.2%} in the upper"
    return replace(finding, measured=f"up to {ends}")


@value
class Fig8_9(Strings, Figure):  # noqa: N801
    """Recovered strings by frequency, for Figures 8 and 9 of the 2009 paper. There is one group of panels per
    corpus, which also shows the recovered share of each class of frequencies.
    """

    title = "Recovered strings by frequency"
    headline = "On searches, every technique recovers frequent strings better than rare ones"
    rests_on = ("a-8-1.1",)
    page = "adaptive2009, section 5.2, Figures 8 and 9"
    quick = {
        "people": 1 / 2560,
        "searches": 100_000,
        "settings": ("total 3 ln k", "total k"),
        "seeds": 3,
    }
    sized_by = ("searches",)
    columns = 3
    sharey = True

    epsilons: tuple[float, ...] = epsilons(EPSILONS, "values of ε")
    frequent: tuple[int, ...] = unprinted(
        TIMES, "least count of a frequent string, times ε", unit="times"
    )
    searches: int = effort(1_500_000, "searches of the stand-in", 1000, 10**8)
    seeds: int = seeds(10)

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs: the methods at each setting and ε, PrivTree with the drawn setting, and
        the source.
        """
        sweeps = {}
        for name, corpus in self.corpora().items():
            for epsilon in self.epsilons:
                often = tuple(ceil(times / epsilon) for times in self.frequent)
                metrics = [RecoveredStrings(self.depth, often)]
                for setting, made in self._techniques(name, corpus, epsilon).items():
                    sweep = Sweep([corpus], made, metrics, self.seeds)
                    sweeps[f"{name}|{setting}|{epsilon}"] = sweep
            metrics = [RecoveredStrings(self.depth, ())]
            sweeps[f"{name}||"] = Sweep([corpus], [Source()], metrics, seeds=1)
        return sweeps

    def _techniques(self, name: str, corpus: Any, epsilon: float) -> dict[str, list[Mechanism]]:
        """Return the methods by setting. Direct synthesis has no threshold, so its key only says whether ε is
        that of the whole release or of one noisy count.
        """
        records = self.searches if name == LOG else corpus.load().total
        settings = self.settings_of(name)
        made: dict[str, list[Mechanism]] = {}
        for whose in dict.fromkeys(map(whose_epsilon, settings)):
            made[whose] = [direct(epsilon, whose, self.depth, records)]
        for setting in settings:
            made[setting] = [
                improved(epsilon, setting, SYMBOLS),
                basic(epsilon, setting, SYMBOLS, self.depth),
            ]
        made[self.drawn()].append(PrivTree(DP(epsilon)))
        return made

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels, with one row per way to add up strings and one column per ε. Beginnings
        count as strings, as printed.
        """
        grid = []
        ways = {FROM_MOST_FREQUENT: "rest", OF_EACH: "frequency", FROM_RAREST: "log"}
        names = sorted(rows.panel.unique(), key=LOG.__ne__)
        for name, adding, epsilon in product(names, ways, sorted(self.epsilons)):
            part = "short" if adding == OF_EACH else "all"
            where = dict(panel=name, adding=adding, reading=PRINTED, part=part, shown=epsilon)
            log = "x" if adding == OF_EACH else ""
            title = f"{name}, ε = {epsilon:g},\n{WORDS[adding]}"
            grid.append(Panel(title, where, ways[adding], log=log))
        return grid

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results to draw at each ε, with the source in each panel."""
        drawn = [self.drawn(), whose_epsilon(self.drawn())]
        own = rows[rows.setting.isin(drawn) | rows.setting.isna()]
        return pd.concat(
            own[(own.epsilon == epsilon) | ~np.isfinite(own.epsilon)].assign(shown=epsilon)
            for epsilon in self.epsilons
        )
