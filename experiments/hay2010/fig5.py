"""Figure 5 of Hay et al. (2010): errors of unattributed histograms, which are sorted lists of counts without
labels. The module also tests Theorem 2 of the paper.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: sections 3 and 5.1, Figure 5, and Theorem 2.
Read    The plot is not in our copy, and the text prints no number except the factor of ten.
Open    One friendship changes two degrees, so l1 = 2 for graphs. The paper adds the noise for l1 = 1, which
        promises only 2ε. The curves "as printed" have this noise. Their runs spend the true price, DP(2ε),
        and are drawn at the printed ε. The statements are tested on these curves, and the results at the true
        price are shown for comparison. S̄ is not rounded. S̃ᵣ is sorted and rounded to integers >= 0, as in
        the text. Theorem 2 gives no constants. For this theorem, we use synthetic sequences of n counts with
        d different values, which are equally frequent and at equal steps. A step is in units of 1/ε, because
        only these units matter, and we run several steps. The coauthors and surnames are not in the paper,
        and no statement is tested on them.
"""

from __future__ import annotations

from itertools import compress
from math import ceil, log

from experiments._fields import unprinted, unprinted_number
from experiments.hay2010.data import (
    INFERRED,
    NOISY,
    SORTED,
    TWIN,
    EqualSteps,
    at_hand,
    attributes,
    beside,
    datasets,
    panel_of,
    ratios_by_seed,
)
from workbench import DP, Sweep
from workbench.compiled import pd
from workbench.datasets import Ranked
from workbench.figures import Figure
from workbench.figures.fields import epsilons, seeds
from workbench.figures.plots import Panel
from workbench.mechanisms import UnattributedHistogram
from workbench.trials import claims
from workbench.trials.claims import (
    EVERYWHERE,
    ORDERS,
    SOMEWHERE,
    Finding,
    Intervals,
    check_between,
    check_lower,
    check_similar,
    paired_ratios,
)
from workbench.trials.metrics import SquaredError
from workbench.value import format_number, value

SOCIAL = "Social Network"
PRINTED = ", as printed"
ONE = "d = 1"
ALL_DIFFERENT = "d = n"
SOME = "d from 1 to n/2"
MADE_UP = (ONE, ALL_DIFFERENT, SOME)
NOISE = ", noise"  # is the same at every step
ESTIMATORS = {"noisy": NOISY, "sorted": SORTED, "isotonic": INFERRED}
OF_PAPER = (SOCIAL + PRINTED, "NetTrace", "keywords")
DRAWN = 3  # steps: at larger ones lines cover each other


# What decides each statement.


def _rows_of(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the results on a dataset with which its statements are tested."""
    return panel_of(rows, name, PRINTED if name == SOCIAL else "")


def _true_price(rows: pd.DataFrame, name: str, finding: Finding, other: str) -> Finding:
    """Return the finding. For the social network, it also contains the ratios of errors at the true price of
    a friendship, with which no statement is tested.
    """
    if name != SOCIAL:
        return finding
    table = paired_ratios(panel_of(rows, name), INFERRED, other, "epsilon").at(0.95)
    return beside(finding, f"{_by_epsilon(table.estimate)} at a friendship's true price")


def _by_epsilon(numbers: pd.Series) -> str:
    return ", ".join(
        f"{format_number(x)}× at ε = {epsilon:g}" for epsilon, x in numbers[::-1].items()
    )


def check_below_noise(rows, level: float, name: str, share: float = EVERYWHERE) -> Finding:
    """Check whether the isotonic sequence S̄ has at most a tenth of the error of the noisy sequence S̃."""
    ratios = paired_ratios(_rows_of(rows, name), INFERRED, NOISY, "epsilon")
    finding = check_lower(ratios, level, share, times=ORDERS)
    return _true_price(rows, name, finding, NOISY)


def check_below_sorted(rows, level: float, name: str) -> Finding:
    """Check whether the isotonic sequence S̄ has a smaller error than the sorted and rounded sequence S̃ᵣ. On
    the social network, the largest ε is left out.
    """
    own = _rows_of(rows, name)
    if name == SOCIAL:
        own = own[own.epsilon < own.epsilon.max()]
    return check_lower(paired_ratios(own, INFERRED, SORTED, "epsilon"), level)


def check_comparable(rows, level: float) -> Finding:
    """Check whether the isotonic sequence S̄ and the sorted and rounded sequence S̃ᵣ have similar errors, on
    the social network at the largest ε.
    """
    own = _rows_of(rows, SOCIAL)
    own = own[own.epsilon == own.epsilon.max()]
    finding = check_similar(paired_ratios(own, INFERRED, SORTED, "epsilon"), level, EVERYWHERE)
    return _true_price(rows, SOCIAL, finding, SORTED)


def check_improves(rows, level: float, name: str) -> Finding:
    """Check whether the error of the isotonic sequence S̄, divided by that of the noisy sequence S̃, becomes
    smaller with each smaller ε.
    """
    own = _rows_of(rows, name)
    finding = check_lower(_steps_of_share(own, NOISY), level)
    shares = paired_ratios(own, INFERRED, NOISY, "epsilon").at(0.95).estimate
    against = _steps_of_share(own, SORTED).at(0.95).estimate
    steps = " and ".join(f"{format_number(x)}×" for x in against)
    words = f"S̄ over S̃ is {_by_epsilon(shares)}; its steps against S̃ᵣ are {steps}"
    return beside(finding, words)


def _steps_of_share(rows: pd.DataFrame, other: str) -> Intervals:
    """Return how the error of the isotonic sequence S̄, divided by another error, changes from each ε to the
    next smaller one.
    """
    shares = ratios_by_seed(rows, INFERRED, other, "epsilon").assign(series="share")
    return claims.steps(shares.assign(noise=1 / shares.epsilon), "share", "noise")


def check_somewhere(rows, level: float) -> Finding:
    """Check whether the isotonic sequence S̄ has at most a tenth of the error of the noisy sequence S̃, at
    some ε on NetTrace. The finding also mentions the other datasets.
    """
    finding = check_below_noise(rows, level, "NetTrace", SOMEWHERE)
    for name in (SOCIAL, "keywords"):
        best = paired_ratios(_rows_of(rows, name), INFERRED, NOISY, "epsilon").at(0.95).estimate
        finding = beside(finding, f"{name} {format_number(best.min())}× at best")
    return finding


def check_never_hurts(rows, level: float) -> Finding:
    """Check whether the isotonic sequence S̄ never has a larger error than the noisy sequence S̃."""
    own = rows[~rows.panel.isin(MADE_UP)]
    ratios = paired_ratios(own, INFERRED, NOISY, ["panel", "epsilon"])
    return check_between(ratios, level, high=1, words="no higher")


def check_one_value(rows, level: float) -> Finding:
    """Check whether the error of the isotonic sequence S̄ grows at most as fast as log³n if all n counts are
    equal.
    """
    own = rows[rows.panel == ONE]
    allowed = (log(own.cells.max()) / log(own.cells.min())) ** 3
    growth = claims.ends(own, INFERRED, "cells")
    finding = check_between(growth, level, high=allowed)
    n = f"n from {own.cells.min():,.0f} to {own.cells.max():,.0f}"
    return beside(finding, f"log³n grows {format_number(allowed)}×, for {n}")


def check_noise(rows, level: float) -> Finding:
    """Check whether the error of the noisy sequence S̃ is 2n/ε² for all synthetic sequences of n counts."""
    own = rows[rows.panel.isin(MADE_UP)]
    own = own.assign(value=own.value * own.epsilon**2 / (2 * own.cells))
    measured = claims.means(own, NOISY, ["panel", "cells", "distinct", "step"])
    return check_similar(measured.over(1.0), level, EVERYWHERE)


def check_linear(rows, level: float, step: float) -> Finding:
    """Check whether the errors of the isotonic sequence S̄ and the noisy sequence S̃ grow in proportion to n
    if all n counts are different.
    """
    own = rows[rows.panel == ALL_DIFFERENT]
    own = own.assign(value=own.value / own.cells)
    key = ["series", "step", "seed"]
    ours = own[(own.step == step) | (own.series == NOISY)]
    first = ours[ours.cells == own.cells.min()]
    longer = ours[ours.cells > own.cells.min()]
    start = longer[[*key, "cells", "estimator"]].merge(first[[*key, "value"]], on=key)
    ratios = claims.ratios(longer, start, ["estimator", "cells"])
    return check_similar(ratios, level, EVERYWHERE)


def check_grows(rows, level: float) -> Finding:
    """Check whether, for each number of counts, the error of the isotonic sequence S̄ is smaller if there are
    fewer different counts.
    """
    ours = rows[(rows.panel == SOME) & (rows.series == INFERRED)]
    more = ours.assign(distinct=ours.distinct / 4)
    return check_lower(claims.ratios(ours, more, ["cells", "distinct"]), level)


def _title(name: str) -> str:
    """Return the title of a panel, the name of the dataset. For the degrees of a graph, it also contains the
    scale of the noise.
    """
    dataset = name.removesuffix(PRINTED)
    if not name.startswith(SOCIAL):
        return dataset
    return f"{dataset}, scale {2 - (dataset != name)}/ε"


@value
class Fig5(Figure):
    """Errors of the noisy sequence S̃, the sorted sequence S̃ᵣ and the isotonic sequence S̄, as bars with one
    panel per dataset. Further panels test Theorem 2 of Hay et al. (2010), by the numbers of counts n and of
    different counts d.
    """

    title = "Error of unattributed histograms"
    headline = "On NetTrace and the social network, consistency cuts the error at least tenfold"
    rests_on = ("h-5-1.1", "h-5-1.2")
    sharey = True
    page = "Hay et al., PVLDB 2010, section 5.1, Figure 5; Theorem 2"
    quick = {"seeds": 5}
    columns = 3

    data: tuple[str, ...] = datasets(SOCIAL, "coauthors", "NetTrace", "keywords", "surnames")
    epsilons: tuple[float, ...] = epsilons((1.0, 0.1, 0.01))
    epsilon: float = unprinted_number(0.1, "ε of Theorem 2", 1e-6, 1000)
    lengths: tuple[int, ...] = unprinted(
        tuple(4**i for i in range(3, 9)),
        "n of Theorem 2; d are the powers of 4 below",
        4,
        2**24,
        unit="counts",
    )
    steps: tuple[float, ...] = unprinted_number(
        (0.1, 1.0, 10.0, 1000.0), "distance of values in Theorem 2", 1e-6, 1e6, unit="1/ε"
    )
    seeds: int = seeds(400)

    def sequences(self) -> dict[str, dict[EqualSteps, float]]:
        """Return the sequences for Theorem 2 of Hay et al. (2010) by panel, as dictionaries from a sequence
        to its step.
        """
        least = self.steps[0]
        ones = {EqualSteps(n, 1, ceil(least / self.epsilon)): least for n in self.lengths}
        made = {ONE: ones, ALL_DIFFERENT: {}, SOME: {}}
        for step in self.steps:
            gap = ceil(step / self.epsilon)
            for n in self.lengths:
                made[ALL_DIFFERENT][EqualSteps(n, n, gap)] = step
                powers = (4**i for i in range(n.bit_length()))
                made[SOME] |= {EqualSteps(n, d, gap): step for d in powers if 2 * d <= n}
        return made

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs: one panel per dataset, the social network with the printed noise, and the
        sequences for Theorem 2 of Hay et al. (2010).
        """
        sweeps = {}
        for name, dataset in at_hand(self.data).items():
            sweeps[name] = self._sweep([Ranked(dataset)], self.epsilons)
            if name.startswith(SOCIAL):
                doubled = [2 * epsilon for epsilon in self.epsilons]
                sweeps[name + PRINTED] = self._sweep([Ranked(dataset)], doubled)
        for name, sequences in self.sequences().items():
            sweeps[name] = self._sweep([*sequences], [self.epsilon], ["isotonic"])
            plain = [x for x, step in sequences.items() if step == self.steps[0]]
            sweeps[name + NOISE] = self._sweep(plain, [self.epsilon], ["noisy"])
        return sweeps

    def _sweep(self, tables, budgets, estimators=tuple(ESTIMATORS)) -> Sweep:
        mechanisms = [UnattributedHistogram(DP(x), how) for x in budgets for how in estimators]
        return Sweep(tables, mechanisms, [SquaredError()], self.seeds)

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results. The column `promised` contains the ε that a run spends, and `epsilon`
        the ε that the paper prints.
        """
        rows = super().rows(store)
        printed = rows.panel.str.endswith(PRINTED)
        rows = rows.assign(series=rows.estimator.map(ESTIMATORS), promised=rows.epsilon)
        rows["panel"] = rows.panel.str.removesuffix(NOISE)
        rows["epsilon"] = rows.epsilon.mask(printed, rows.epsilon / 2)
        steps = {x: step for own in self.sequences().values() for x, step in own.items()}
        rows = rows.assign(**attributes(rows, steps, "cells", "distinct"))
        rows["step"] = rows.dataset.map({repr(x): step for x, step in steps.items()})
        drawn = rows.step.map("{:g}/ε".format).where(rows.series == INFERRED)
        rows["line"] = rows.series.where(
            drawn.isna(), rows.series + ", step " + drawn.fillna("")
        )
        return rows

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels: one per dataset of the paper, then those for Theorem 2 of Hay et al.
        (2010), and then the other datasets.
        """
        names = [x for x in rows.panel.unique() if x not in (ONE, ALL_DIFFERENT, SOME)]
        longest = {"panel": SOME, "cells": max(self.lengths)}
        bars = [Panel(_title(name), {"panel": name}, "epsilon", bars=True) for name in names]
        of_paper = [name.replace(TWIN, "") in OF_PAPER for name in names]
        return [
            *compress(bars, of_paper),
            Panel(f"{ONE}: all counts equal", {"panel": ONE}, "cells"),
            Panel(f"{ALL_DIFFERENT}: all different", {"panel": ALL_DIFFERENT}, "cells", "line"),
            Panel(f"n = {max(self.lengths):,}", longest, "distinct", "line"),
            *compress(bars, (not own for own in of_paper)),
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results that the figure draws. It draws only those sequences for Theorem 2
        of Hay et al. (2010) that have the smaller steps.
        """
        stepped = (rows.series == INFERRED) & rows.step.notna()
        named = INFERRED + rows.step.map(", step·ε = {:g}".format)
        rows = rows.assign(line=rows.line.mask(stepped, named))
        return rows[~stepped | rows.step.isin(sorted(self.steps)[:DRAWN])]
