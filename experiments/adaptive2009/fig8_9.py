"""Synthetic data via differential privacy (2009), Figures 8 and 9: recovered strings by frequency.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): section 5.2, Figures 8 and 9.
Read    from the text; the plots are not in our copy, and the text prints no number.
Open    The 90 million searches are not public. Real first: the surnames of 266 million people, whose
        letters are the symbols. Then a made-up log of searches, a tenth as many as the paper's, so that
        noise is ten times as large beside the counts.
        ε is the whole budget, where the paper's may be that of one noisy count (methods.md 7.1). Basic
        and direct stop at 20 symbols, as printed; improved at the hierarchy's 24. Direct synthesis is
        given the number of records, which is public here. No name has more than 15 letters. Three seeds
        are enough: sums over thousands of strings hardly differ from one to the next.
        Thresholds and discounts are not printed, nor what the counts of the leaves cost: half of ε, and
        b = 36/ε for improved. Figure 10 has a beginning, "abc good morning ameri", 832 times at ε = 1:
        a node is left unsplit with so many records only if b + 22t comes to as much; 36 is the least
        that does with t = ⌈b + ln 2⌉, of Theorem 3. It is 9 scales of the noise on a decision here;
        basic has 9 scales of its own noise too, 360/ε. An empty node then spawns 0.002 others.
        PrivTree, of later years, has its authors' threshold; it is not in the paper, and not judged.
        The paper has no end-of-string symbol and prints beginnings among its strings: what a leaf
        stands for is found if the corpus has such a string, whether it is known to end there or not.
        That is judged ("as printed"). Where only strings known to end count ("ended") is told beside
        it: there a string of 20 symbols is out of reach for basic and direct.
Words   recovered = Σ min(true, synthetic) over strings, each copy once. Frequent = at least 500/ε
        times: Figure 10 takes 500 at ε = 1, and what can be seen goes with 1/ε. Near perfect = at least
        95 % of the records of frequent strings, for each of the three techniques, at each ε where there
        are frequent strings; of those of at most 20 symbols, since longer ones are a-8-2's matter.
        Break point = the frequency at which half of the records are recovered, for good, of strings of
        at most 20 symbols; frequencies in powers of two. Set by ε more than by technique = at no ε are
        the techniques' break points as far apart, as a ratio, as those of any one technique at
        neighbouring ε's; those that lie beyond the frequencies there are, are left out.
        On the truth = cumulated from the most frequent string down, at least 95 % of the data; longest
        = at every ε improved stays down to a frequency more than 1.25× lower than each other's.
        Because = of what improved has recovered more than the next best where it leaves the truth, at
        the power of two below, at least half is of strings longer than 20 symbols. Judged on the twin,
        which alone has such strings.
"""

from __future__ import annotations

from math import ceil, floor

import numpy as np
import pandas as pd

from experiments.adaptive2009._recovery import (
    EACH,
    ENDED,
    OFTEN,
    PRINTED,
    RARE,
    RecoveredStrings,
    break_point,
    frequency_text,
    frequent,
    lowest_true_frequency,
    percent,
    select,
    with_ended,
)
from experiments.adaptive2009._strings import LOG, NEAR, Strings
from experiments.adaptive2009._techniques import BASIC, DIRECT, IMPROVED, TREE, Source
from workbench import DP, Sweep
from workbench.claims import ALIKE, Finding, decide, format_number
from workbench.claims.old import Claim, all_of
from workbench.figures import EFFORT, UNPRINTED, Figure
from workbench.figures.parameters import epsilons, seeds, whole
from workbench.mechanisms import PrivTree
from workbench.plots import Panel
from workbench.value import value

EPSILONS = (10.0, 1.0, 0.1)
JUDGED = (IMPROVED, DIRECT, BASIC)


def _near_perfect(rows, corpus: str, epsilon: float, reading: str) -> Finding | None:
    shares = {way: frequent(rows, corpus, epsilon, way, reading) for way in JUDGED}
    table = pd.DataFrame(shares).T
    if table["mean"].isna().any():
        return None
    measured = ", ".join(f"{way} {percent(share)}" for way, share in shares.items())
    holds = decide((table.low >= NEAR).all(), (table.high < NEAR).any())
    return Finding(holds, measured, if_unsettled=bool((table["mean"] >= NEAR).all()))


def _set_by_epsilon(rows, corpus: str, reading: str) -> Finding | None:
    """Whether techniques differ less at one ε than one technique at neighbouring ε's."""
    points = pd.DataFrame(index=JUDGED, columns=EPSILONS, dtype=float)
    for epsilon in EPSILONS:
        for way in JUDGED:
            points.loc[way, epsilon] = break_point(rows, corpus, epsilon, way, reading)
    inside = points[(points > 0) & np.isfinite(points)]
    apart = inside.max() / inside.min()
    steps = (inside.shift(-1, axis=1) / inside).stack()
    if inside.notna().sum().max() < 2 or steps.empty:
        return None
    texts = []
    for epsilon in EPSILONS:
        ways = ", ".join(f"{way} {frequency_text(points.loc[way, epsilon])}" for way in JUDGED)
        texts.append(f"ε = {epsilon:g}: {ways}")
    measured = "; ".join(texts) + f"; techniques up to {format_number(apart.max())}× apart"
    measured += f", ε's {format_number(steps.min())}× or more"
    return Finding(bool(apart.max() < steps.min()), measured)


def _recovered(rows, reading: str = PRINTED) -> Finding:
    parts = {}
    for name in rows.corpus.unique():
        for epsilon in EPSILONS:
            parts[f"{name}, ε = {epsilon:g}"] = _near_perfect(rows, name, epsilon, reading)
        parts[f"{name}, break point set by ε"] = _set_by_epsilon(rows, name, reading)
    parts = {label: finding for label, finding in parts.items() if finding}
    if not parts:
        return Finding(None, "", "no string is so frequent", testable=False)
    return all_of(parts)


def _longest(rows, reading: str = PRINTED) -> Finding:
    if LOG not in set(rows.corpus):
        return Finding(None, "", "the twin alone has strings so long", testable=False)
    parts = {}
    for epsilon in EPSILONS:
        lowest = {
            way: lowest_true_frequency(rows, LOG, epsilon, way, reading) for way in JUDGED
        }
        if not np.isfinite([*lowest.values()]).any() or not any(lowest.values()):
            continue
        ours = lowest[IMPROVED]
        longest = np.isfinite(ours) and all(lowest[way] > ALIKE * ours for way in JUDGED[1:])
        texts = (f"{way} {frequency_text(x)}" for way, x in lowest.items())
        measured = "down to " + ", ".join(texts)
        parts[f"ε = {epsilon:g}: longest"] = Finding(bool(longest), measured)
        parts[f"ε = {epsilon:g}: because of long strings"] = _because(rows, epsilon, reading)
    if not parts:
        return Finding(None, "", "no technique is on the truth, or all are", testable=False)
    return all_of(parts)


def _because(rows, epsilon: float, reading: str) -> Finding:
    """Where improved leaves the truth: how much more it has than the next best, and of what."""
    lowest = lowest_true_frequency(rows, LOG, epsilon, IMPROVED, reading)
    if not np.isfinite(lowest):
        return Finding(False, "improved is never on the truth")
    frequency = 2 ** floor(np.log2(max(lowest, 1)))

    def recovered(way, part):
        curve = select(rows, LOG, epsilon, way, reading, adding=OFTEN, part=part)
        return curve[curve.frequency == frequency].value.mean()

    best = max(JUDGED[1:], key=lambda way: recovered(way, "all"))
    more = recovered(IMPROVED, "all") - recovered(best, "all")
    long = recovered(IMPROVED, "long") - recovered(best, "long")
    measured = f"from {frequency:,} on {100 * more:.2g} % of the searches more than {best}"
    measured += f", of long strings {100 * long:.2g} %"
    return Finding(bool(more > 0 and long >= more / 2), measured.replace("-", "−"))


CLAIMS = (
    Claim(
        "a-8-1",
        "Recovery is near perfect for frequent strings; the break point is set by ε more than by "
        "technique.",
        with_ended(_recovered),
    ),
    Claim(
        "a-8-2",
        "Improved histograms stay on the truth longest, because their depth is not capped.",
        with_ended(_longest),
        "They stay longest, at every ε. But of what they recover more than the next best 29 % or less "
        "is of strings longer than 20 symbols: above all, a decision has a quarter of their ε, and a "
        "40th of basic's. The twin has 6 % of its searches in such strings, and few frequent ones.",
    ),
)


@value
class Fig8_9(Strings, Figure):  # noqa: N801
    """A line of panels a corpus: Figure 8, Figure 9, and what breaks down where."""

    title = "Recovered strings by frequency"
    page = "adaptive2009, section 5.2, Figures 8 and 9"
    quick = {"people": 1 / 2560, "searches": 100_000, "seeds": 5}
    claims = CLAIMS
    columns = 3

    epsilons: tuple[float, ...] = epsilons(EPSILONS, "ε of a whole release")
    frequent: int = whole(500, "frequent strings, times ε", unit="times", kind=UNPRINTED)
    searches: int = whole(9_000_000, "searches of the twin", 1000, 10**8, kind=EFFORT)
    seeds: int = seeds(3)

    def sweeps(self) -> dict[str, Sweep]:
        """The techniques at each ε, and the source."""
        sweeps = {}
        often = tuple(dict.fromkeys(ceil(self.frequent / epsilon) for epsilon in self.epsilons))
        for name, corpus in self.corpora().items():
            mechanisms = []
            for epsilon in self.epsilons:
                mechanisms += [self.improved(epsilon), self.direct(epsilon, name, corpus)]
                mechanisms += [self.basic(epsilon), PrivTree(DP(epsilon))]
            mechanisms.append(Source())
            metrics = [RecoveredStrings(self.depth, often)]
            sweeps[name] = Sweep([corpus], mechanisms, metrics, self.seeds)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """A panel a corpus and way of adding up; frequent strings are those of a release's own ε."""
        rows = super().rows(store)
        source = np.isinf(rows.epsilon)
        rows = rows[~source | ((rows.seed == 0) & rows.frequent.isna())]
        own = np.ceil(self.frequent / rows.epsilon)
        rows = rows[rows.frequent.isna() | (rows.frequent == own)]
        name = rows.mechanism_name
        series = name.mask(
            np.isfinite(rows.epsilon), name + rows.epsilon.map(", ε = {:g}".format)
        )
        panel = rows.panel + ", " + rows.adding
        return rows.assign(corpus=rows.panel, panel=panel, name=name, series=series)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Beginnings count, as printed."""
        grid = []
        for name in rows.corpus.unique():
            for adding, x in ((RARE, "log"), (OFTEN, "rest"), (EACH, "frequency")):
                part = "short" if adding == EACH else "all"
                where = dict(corpus=name, adding=adding, reading=PRINTED, part=part)
                log = "x" if adding == EACH else ""
                grid.append(Panel(f"{name},\n{adding}", where, x, log=log, mark_every=3))
        return grid

    def plot(self, rows: pd.DataFrame):
        """Panels whose titles have two lines."""
        from workbench import plots

        return plots.grid(rows, self.panels(rows), self.columns, height=2.4)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """What is read off the curves, beginnings counted as printed; the paper prints no number."""
        lines = []
        for name in rows.corpus.unique():
            for epsilon in EPSILONS:
                for way in (*JUDGED, TREE):
                    place = (name, epsilon, way)
                    line = {"corpus": name, "ε": epsilon, "technique": way}
                    for reading in (PRINTED, ENDED):
                        line[f"frequent, {reading}"] = percent(frequent(rows, *place, reading))
                    line["half is recovered from"] = frequency_text(break_point(rows, *place))
                    lowest = lowest_true_frequency(rows, *place)
                    line["on the truth down to"] = frequency_text(lowest)
                    lines.append(line)
        return pd.DataFrame(lines).set_index(["corpus", "ε", "technique"])
