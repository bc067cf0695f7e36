"""What Figures 8 to 10 of adaptive2009 share: corpora of strings, and techniques."""

from __future__ import annotations

from math import ceil
from typing import Any

from workbench import DP
from workbench.datasets import QueryLogTwin, Surnames
from workbench.experiment import first_available
from workbench.figures import EFFORT, UNPRINTED
from workbench.figures.parameters import number, selection, whole
from workbench.mechanisms import (
    BasicAdaptiveHistogram,
    DirectSynthesis,
    ImprovedAdaptiveHistogram,
)
from workbench.records import Records
from workbench.value import value

NAMES = "surnames"
LOG = "query log twin"
NEAR = 0.95
LONGEST = 20  # symbols, of the tree of surnames, none of which is left out


@value
class Thinned:
    """A dataset of strings with one record in `every`: their counts, divided, rounded down."""

    dataset: Any
    every: int

    @property
    def truth_public(self) -> bool:
        """As the whole."""
        return self.dataset.truth_public

    def files(self) -> tuple:
        """As the whole."""
        return self.dataset.files()

    def load(self) -> Records:
        """What is left."""
        whole = self.dataset.load()
        counts = whole.counts // self.every
        bound = (whole.bound, whole.truth_public)
        return Records.from_keys(whole.hierarchy, whole.keys, counts, *bound)


@value
class Strings:
    """The parameters of both figures, but for ε, searches and seeds."""

    data: tuple[str, ...] = selection(
        (NAMES, LOG), (NAMES, LOG), "corpora; the twin where files are missing", kind=EFFORT
    )
    people: float = number(
        1.0, "share of the people of the list of surnames", 0, 1, kind=EFFORT, strict=True
    )
    depth: int = whole(20, "longest string of basic and direct", 1, 24, unit="symbols")
    split: float = number(
        36.0, "threshold b of improved, times 1/ε", 0, 10**6, kind=UNPRINTED, strict=True
    )
    scales: float = number(
        9.0,
        "threshold of basic, in scales of a decision's noise",
        0,
        1000,
        kind=UNPRINTED,
        strict=True,
    )

    def corpora(self) -> dict[str, Any]:
        """Those of `data` that are at hand, by name: people by their surname, and the twin."""
        names = first_available(Surnames(2010).strings(max(LONGEST, self.depth)), None)
        every = round(1 / self.people)
        there = {}
        if NAMES in self.data and names is not None:
            there[NAMES] = Thinned(names, every) if every > 1 else names
        if LOG in self.data or not there:
            there[LOG] = QueryLogTwin(self.searches)
        return there

    def improved(self, epsilon: float) -> ImprovedAdaptiveHistogram:
        """b = 36/ε, which is 9 scales of the noise on a decision.

        >>> [Strings().improved(epsilon).threshold for epsilon in (10.0, 1.0, 0.1)]
        [4, 36, 360]
        """
        return ImprovedAdaptiveHistogram(DP(epsilon), threshold=ceil(self.split / epsilon))

    def basic(self, epsilon: float) -> BasicAdaptiveHistogram:
        """At 20 symbols a decision has the 40th part of ε."""
        threshold = ceil(self.scales * 2 * self.depth / epsilon)
        return BasicAdaptiveHistogram(DP(epsilon), threshold=threshold, depth=self.depth)

    def direct(self, epsilon: float, name: str, corpus: Any) -> DirectSynthesis:
        """Direct synthesis of as many records as there are, which is public here."""
        records = self.searches if name == LOG else corpus.load().total
        return DirectSynthesis(DP(epsilon), depth=self.depth, records=records)
