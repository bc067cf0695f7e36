"""Hay et al. 2010, Figure 7: where along the sorted sequence the error of isotonic inference sits.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: Appendix C, Figure 7.
Read    from the text; the plot is not in our copy, and prints no number.
Open    ε is lost in our copy: 1. The stretch that is shown is not printed: positions 20 to 1000 of the
        descending sequence. The insets are panels of their own: the beginning, 20 to 60, and around two
        changes of the count between long runs, which in the twin are those from 3 to 2 and from 2 to 1
        (found from the truth, which is public). 200 samples as printed, in five batches.
Words   a run = equal counts, 64 or more, none of them 0 (whose run, 63,000 long, would hide the rest);
        its ends = the two positions at either end, its inside = its middle half. Vanishes = inside,
        the mean error of S̄ is at most 1/100 of that of S̃, 2/ε², at every run; concentrates = at the
        ends it is at least 10× that inside. Where each count occurs once or a few times = up to 3
        times: there, S̄ has at least a third of the error of S̃.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.hay2010.data import (
    INFERRED,
    NAMES,
    SQUARED,
    PositionErrors,
    Samples,
    at_hand,
)
from workbench import DP, Sweep
from workbench.claims import MUCH, ORDERS, Finding, Printed, format_number
from workbench.claims.old import Claim, all_of
from workbench.datasets import Ranked
from workbench.figures import EFFORT, UNPRINTED, Figure
from workbench.figures.parameters import choice, epsilon, seeds, whole, wholes
from workbench.mechanisms import UnattributedHistogram
from workbench.noise import variance
from workbench.plots import Panel
from workbench.value import value

LONG = 64
FEW = 3
COUNT = "Count"
PAPER = {"vanishes": Printed("reduced to zero in the middle of uniform runs", 0, 0.01)}


def runs(rows: pd.DataFrame) -> pd.DataFrame:
    """Each run of equal counts: count, length, and mean error, inside and at its ends, over S̃'s."""
    rows = rows[rows.panel == "all"]
    counts = rows[rows.metric == COUNT].set_index("position").value
    error = rows[rows.metric == SQUARED].groupby("position").value.mean()
    error /= variance(1, rows.epsilon.iloc[0], "laplace")
    lines = []
    for count, run in error.groupby(counts):
        values = run.to_numpy()
        quarter = len(run) // 4
        ends = np.concatenate([values[:2], values[-2:]]) if len(run) >= LONG else values
        line = {"count": int(count), "length": len(run)}
        line["inside"] = values[quarter : len(run) - quarter].mean()
        lines.append(line | {"ends": ends.mean(), "mean": values.mean()})
    return pd.DataFrame(lines[::-1])


def _where(rows) -> Finding:
    by_run = runs(rows)
    long = by_run[by_run.length >= LONG]
    few = by_run[by_run.length <= FEW]
    ratio = long.ends / long.inside
    alone = (few["mean"] * few.length).sum() / few.length.sum()
    inside = f"{format_number(long.inside.min())}–{format_number(long.inside.max())} of S̃'s"
    inside += f" in {len(long)} runs of {long.length.min()} and more"
    ends = f"{format_number(ratio.min())}–{format_number(ratio.max())}× inside"
    vanishes = bool(long.inside.map(PAPER["vanishes"].covers).all())
    return all_of(
        {
            "vanishes inside runs": Finding(vanishes, inside),
            "concentrates at their ends": Finding(bool((ratio >= ORDERS).all()), ends),
            "stays where counts are few": Finding(
                bool(alone >= 1 / MUCH), f"{alone:.0%} of S̃'s"
            ),
        }
    )


CLAIMS = (
    Claim(
        "h-7",
        "The error vanishes inside uniform runs and concentrates where the count changes.",
        _where,
        "Inside, the error falls with the run's length, to 0.12 % of S̃'s in a run of 1210, but "
        "only to 1–2 % in runs of 66–149; the ends keep 12–13 % whatever the length. The hundredth "
        "and the tenfold are our numbers; the paper's plot has no scale in our copy.",
    ),
)


@value
class Fig7(Figure):
    """Counts in descending order and the squared error of each position, stretch by stretch."""

    title = "Where the error of isotonic inference sits"
    page = "Hay et al., PVLDB 2010, Appendix C, Figure 7"
    quick = {"samples": 10}
    claims = CLAIMS

    data: str = choice(
        "NetTrace", NAMES, "the counts, or their twin where they are not at hand"
    )
    epsilon: float = epsilon(1.0)
    first: int = whole(20, "first position shown", kind=UNPRINTED)
    last: int = whole(1000, "last position shown", kind=UNPRINTED)
    last_of_start: int = whole(60, "last position of the beginning", kind=UNPRINTED)
    changes: tuple[int, ...] = wholes(
        (2, 1), "counts to which it falls in insets", kind=UNPRINTED
    )
    around: int = whole(60, "positions on either side of such a change", kind=UNPRINTED)
    samples: int = whole(40, "releases of a batch", kind=EFFORT)
    seeds: int = seeds(5, "batches")

    def sweeps(self) -> dict[str, Sweep]:
        """One."""
        (dataset,) = at_hand([self.data]).values()
        samples = Samples(UnattributedHistogram(DP(self.epsilon), "noisy"), self.samples)
        return {"all": Sweep([Ranked(dataset)], [samples], [PositionErrors()], self.seeds)}

    def rows(self, store) -> pd.DataFrame:
        """All positions, and once more those of the stretches that are drawn, in their panels."""
        rows = super().rows(store)
        rows = rows[rows.estimate == INFERRED]
        rows = rows.assign(series=INFERRED, position=rows["rank"].max() + 1 - rows["rank"])
        counts = rows[rows.seed == 0].assign(metric=COUNT, series="truth")
        rows = pd.concat([counts.assign(value=counts["count"]), rows], ignore_index=True)
        stretches = self.stretches(counts.set_index("position")["count"])
        drawn = [
            rows[rows.position.between(*ends)].assign(panel=panel)
            for panel, ends in stretches.items()
        ]
        rows = pd.concat([*drawn, rows], ignore_index=True)
        return rows.drop(columns=["estimate", "rank", "count", "sample", "unchanged"])

    def stretches(self, counts: pd.Series) -> dict[str, tuple[int, int]]:
        """The first and the last position of each, by the title of its panel."""
        ends = {"the middle": (self.first, self.last)}
        ends["its beginning"] = (self.first, self.last_of_start)
        for count in self.changes:
            change = counts.index[counts > count].max()
            ends[f"down to {count}"] = (change - self.around, change + self.around)
        return ends

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Each stretch twice: the counts, and the errors below them with what S̃ has everywhere."""
        (dataset,) = at_hand([self.data]).values()
        expected = variance(dataset.load().bound.l1, self.epsilon, "laplace")
        flat = ("S̃, expected", lambda x: expected + 0 * x)
        names = [name for name in rows.panel.unique() if name != "all"]
        grid = []
        for pair in (names[:2], names[2:]):
            log = "y" if pair == names[:2] else ""
            for name in pair:
                where = {"panel": name, "metric": COUNT}
                grid.append(Panel(f"{name}: counts", where, "position", log=log))
            for name in pair:
                where = {"panel": name, "metric": SQUARED}
                title = f"{name}: error"
                grid.append(Panel(title, where, "position", log="y", theory=flat))
        return grid

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The long runs: error over S̃'s, inside and at the ends."""
        table = runs(rows)
        table = table[table.length >= LONG].set_index("count")
        errors = ["inside", "ends", "mean"]
        return table.assign(**{column: table[column].map(format_number) for column in errors})
