"""Hay et al. 2010, Figure 5: error of unattributed histograms, and Theorem 2.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: sections 3 and 5.1, Figure 5; Theorem 2.
Read    from the text; the plot is not in our copy, and no number is printed but the factor of ten.
Open    One friendship moves two degrees: graphs have l1 = 2 here. The paper adds noise as for l1 = 1,
        which promises 2ε; "as printed" is that noise, asked for by its true price, DP(2ε), and drawn
        at the printed ε. It is judged; the true price stands beside it.
        S̄ is not rounded, S̃ᵣ is sorted and rounded to integers >= 0, as in the text.
        Theorem 2 gives no constants. Made-up sequences of n counts with d different values, equally
        frequent and at equal steps; a step is in units of 1/ε, which is all that matters, and is swept.
        Not in the paper, and not judged: coauthors and surnames.
"""

from __future__ import annotations

from itertools import compress
from math import ceil

from experiments.hay2010.compared import panel_of
from experiments.hay2010.data import (
    INFERRED,
    NOISY,
    SORTED,
    TWIN,
    EqualSteps,
    at_hand,
    datasets,
)
from experiments.hay2010.fig5_checks import ALL_DIFFERENT, ONE, PRINTED, SOCIAL, SOME
from workbench import DP, Sweep
from workbench.compiled import pd
from workbench.datasets import Ranked
from workbench.figures import UNPRINTED, Figure
from workbench.figures.fields import epsilons, number, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import UnattributedHistogram
from workbench.trials.claims import mean_curve
from workbench.trials.metrics import SquaredError
from workbench.value import format_number, value

NOISE = ", noise"  # is the same at every step
ESTIMATORS = {"noisy": NOISY, "sorted": SORTED, "isotonic": INFERRED}
OF_PAPER = (SOCIAL + PRINTED, "NetTrace", "keywords")
DRAWN = 3  # steps: at larger ones lines cover each other


def _title(name: str) -> str:
    """The dataset; of a graph's degrees also the scale of the noise, as printed or at its true price."""
    dataset = name.removesuffix(PRINTED)
    if not name.startswith(SOCIAL):
        return dataset
    return f"{dataset}, scale {2 - (dataset != name)}/ε"


@value
class Fig5(Figure):
    """Bars of S̃, S̃ᵣ and S̄, a panel a dataset; then Theorem 2, over n and over d."""

    title = "Error of unattributed histograms"
    headline = "On NetTrace and the social network, consistency cuts the error at least tenfold"
    rests_on = ("h-5-1.1", "h-5-1.2")
    sharey = True
    page = "Hay et al., PVLDB 2010, section 5.1, Figure 5; Theorem 2"
    quick = {"seeds": 5}
    columns = 3

    data: tuple[str, ...] = datasets(SOCIAL, "coauthors", "NetTrace", "keywords", "surnames")
    epsilons: tuple[float, ...] = epsilons((1.0, 0.1, 0.01))
    epsilon: float = number(0.1, "ε of Theorem 2", 1e-6, 1000, kind=UNPRINTED)
    lengths: tuple[int, ...] = whole(
        tuple(4**i for i in range(3, 9)),
        "n of Theorem 2; d are the powers of 4 below",
        4,
        2**24,
        unit="counts",
        kind=UNPRINTED,
    )
    steps: tuple[float, ...] = number(
        (0.1, 1.0, 10.0, 1000.0),
        "between the values of Theorem 2",
        1e-6,
        1e6,
        unit="1/ε",
        kind=UNPRINTED,
    )
    seeds: int = seeds(400)

    def sequences(self) -> dict[str, dict[EqualSteps, float]]:
        """Those of Theorem 2 with their steps, by panel."""
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
        """A panel a dataset, one as printed, and the sequences."""
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
        """`promised` is what was paid for; `epsilon` is as printed."""
        rows = super().rows(store)
        printed = rows.panel.str.endswith(PRINTED)
        rows = rows.assign(series=rows.estimator.map(ESTIMATORS), promised=rows.epsilon)
        rows["panel"] = rows.panel.str.removesuffix(NOISE)
        rows["epsilon"] = rows.epsilon.mask(printed, rows.epsilon / 2)
        made_up = {
            repr(x): (x, step) for own in self.sequences().values() for x, step in own.items()
        }
        rows["cells"] = rows.dataset.map({text: x.cells for text, (x, _) in made_up.items()})
        rows["distinct"] = rows.dataset.map(
            {text: x.distinct for text, (x, _) in made_up.items()}
        )
        rows["step"] = rows.dataset.map({text: step for text, (_, step) in made_up.items()})
        drawn = rows.step.map("{:g}/ε".format).where(rows.series == INFERRED)
        rows["line"] = rows.series.where(
            drawn.isna(), rows.series + ", step " + drawn.fillna("")
        )
        return rows

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """One panel per dataset of the paper, then Theorem 2, then the other datasets."""
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
        """The smaller steps of Theorem 2, whose numbers are values in the names of lines."""
        stepped = (rows.series == INFERRED) & rows.step.notna()
        named = INFERRED + rows.step.map(", step·ε = {:g}".format)
        rows = rows.assign(line=rows.line.mask(stepped, named))
        return rows[~stepped | rows.step.isin(sorted(self.steps)[:DRAWN])]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """How many times the error of S̄ the others have: a row a dataset and ε."""
        lines = []
        for name in at_hand(self.data):
            for suffix in ("", PRINTED) if name.startswith(SOCIAL) else ("",):
                own = panel_of(rows, name, suffix)
                series = ESTIMATORS.values()
                noisy, rounded, ours = (
                    mean_curve(own, "epsilon", series=s)["mean"] for s in series
                )
                for epsilon in self.epsilons:
                    line = {"dataset": name + suffix, "ε": epsilon}
                    line["error(S̄)"] = format_number(ours[epsilon])
                    line["S̃/S̄"] = format_number(noisy[epsilon] / ours[epsilon])
                    line["S̃ᵣ/S̄"] = format_number(rounded[epsilon] / ours[epsilon])
                    lines.append(line)
        return pd.DataFrame(lines).set_index(["dataset", "ε"])
