"""Synthetic data via differential privacy (2009), Figures 8 and 9: recovered strings by frequency.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): section 5.2, Figures 8 and 9.
Read    from the text; the plots are not in our copy, and the text prints no number.
Open    The 90 million searches are not public. A made-up log stands for them, of 1.5 million: at a
        printed ε it is a string's own count that noise is against, frequency by frequency, however many
        searches there are. Of many more, a threshold of one record, which is swept too, would make a tree
        larger than memory; of a million none occurs 5000/ε times at ε = 0.1. Beside it the surnames of 266
        million people, whose letters are the symbols.
        Whose ε it is, and the thresholds, are swept: `_unprinted`; drawn, and run on surnames, is ε of a
        whole release and b = k scales of a decision's noise. The discount is Theorem 3's. Basic and
        direct stop at 20 symbols, as printed; improved at the hierarchy's 24. Direct synthesis is given
        the number of records, which is public here.
        PrivTree, of later years, has its authors' threshold; it is not in the paper, and not judged.
        The paper has no end-of-string symbol and prints beginnings among its strings: what a leaf
        stands for is found if the corpus has such a string, whether it is known to end there or not.
        That is judged ("as printed"). Where only strings known to end count ("ended") is told beside
        it: there a string of 20 symbols is out of reach for basic and direct.
"""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from experiments.adaptive2009._fig8_9_claims import CHECKS, EPSILONS, TECHNIQUES, TIMES
from experiments.adaptive2009._recovery import (
    ENDED,
    FREQUENT,
    FROM_MOST_FREQUENT,
    FROM_RAREST,
    OF_EACH,
    PRINTED,
    SHARE,
    RecoveredStrings,
    break_points,
    departures,
    frequency_text,
)
from experiments.adaptive2009._strings import LOG, SYMBOLS, Strings
from experiments.adaptive2009._techniques import TREE, Source
from experiments.adaptive2009._unprinted import basic, direct, improved, whose_epsilon
from workbench import DP, Sweep
from workbench.compiled import pd
from workbench.figures import EFFORT, UNPRINTED, Figure
from workbench.figures.figure import epsilons, seeds, whole, wholes
from workbench.figures.plots import Panel
from workbench.mechanisms import PrivTree
from workbench.mechanisms.protocol import Mechanism
from workbench.trials import claims
from workbench.value import value

NEAR = 0.95  # of the truth, in the table
USUAL = 500  # times 1/ε, in the table: figure 10 takes 500 at ε = 1


@value
class Fig8_9(Strings, Figure):  # noqa: N801
    """A line of panels a corpus: Figure 8, Figure 9, and what breaks down where."""

    title = "Recovered strings by frequency"
    page = "adaptive2009, section 5.2, Figures 8 and 9"
    quick = {
        "people": 1 / 2560,
        "searches": 100_000,
        "settings": ("total 3 ln k", "total k"),
        "seeds": 3,
    }
    claims = claims.read(
        Path(__file__).with_name("statements.toml"), "adaptive2009_fig8_9", CHECKS
    )
    sized_by = ("searches",)
    columns = 3

    epsilons: tuple[float, ...] = epsilons(EPSILONS, "ε")
    frequent: tuple[int, ...] = wholes(
        TIMES, "frequent strings, times ε", unit="times", kind=UNPRINTED
    )
    searches: int = whole(1_500_000, "searches of the twin", 1000, 10**8, kind=EFFORT)
    seeds: int = seeds(10)

    def sweeps(self) -> dict[str, Sweep]:
        """The techniques at each setting and ε; PrivTree with what is drawn; and the source."""
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
        """By setting; direct synthesis, which has no threshold, by whose ε it is."""
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
        """Beginnings count, as printed."""
        grid = []
        axes = {FROM_RAREST: "log", FROM_MOST_FREQUENT: "rest", OF_EACH: "frequency"}
        for name in rows.panel.unique():
            for adding, x in axes.items():
                part = "short" if adding == OF_EACH else "all"
                where = dict(panel=name, adding=adding, reading=PRINTED, part=part)
                log = "x" if adding == OF_EACH else ""
                grid.append(Panel(f"{name},\n{adding}", where, x, log=log, mark_every=3))
        return grid

    def plot(self, rows: pd.DataFrame):
        """What is drawn, its ε in the names of series; panels whose titles have two lines."""
        from workbench.figures import plots

        own = self._drawn(rows)
        named = own.series + own.epsilon.map(", ε = {:g}".format)
        own = own.assign(series=named.where(np.isfinite(own.epsilon), own.series))
        return plots.grid(own, self.panels(own), self.columns, height=2.4)

    def _drawn(self, rows: pd.DataFrame) -> pd.DataFrame:
        drawn = [self.drawn(), whose_epsilon(self.drawn())]
        return rows[rows.setting.isin(drawn) | rows.setting.isna()]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """What is read off what is drawn, beginnings counted as printed; the paper prints no number."""
        own = self._drawn(rows)
        own = own[own.series.isin([*TECHNIQUES, TREE])]
        usual = own[(own.adding == FREQUENT) & np.isclose(own.frequent * own.epsilon, USUAL)]
        place = ["panel", "epsilon", "series"]
        shares = usual.groupby([*place, "reading"], sort=False).value.mean().unstack("reading")
        table = (
            shares[[PRINTED, ENDED]]
            .map(_percent)
            .add_prefix("frequent, ")
            .rename_axis(columns=None)
        )
        printed = own[(own.reading == PRINTED) & (own.metric != SHARE)]
        corpora = {name: some for name, some in printed.groupby("panel", sort=False)}
        points = {
            "half is recovered from": break_points,
            "on the truth down to": lambda some: departures(some, NEAR),
        }
        for title, read in points.items():
            parts = {
                name: read(some).groupby(place[1:]).value.mean()
                for name, some in corpora.items()
            }
            table[title] = pd.concat(parts, names=["panel"]).map(frequency_text)
        return table.rename_axis(["corpus", "ε", "technique"])


def _percent(share: float) -> str:
    return "none so frequent" if np.isnan(share) else f"{share:.1%}"
