"""What Figures 8 to 10 of adaptive2009 share: corpora of strings, and techniques."""

from __future__ import annotations

from typing import Any

from experiments.adaptive2009._unprinted import drawn_of, settings_field, unpacked
from workbench.compiled import pd
from workbench.data import Records
from workbench.datasets import QueryLogTwin, Surnames
from workbench.figures import EFFORT
from workbench.figures.fields import choice, number, whole
from workbench.trials import first_available
from workbench.trials.claims import MissingPoints
from workbench.value import value

NAMES = "surnames"
LOG = "query log twin"
LONGEST = 20  # symbols, of the tree of surnames, none of which is left out
SYMBOLS = 38  # of the paper: children of a node that can be split further


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

    data: tuple[str, ...] = choice(
        (NAMES, LOG), (NAMES, LOG), "corpora; the twin where files are missing", kind=EFFORT
    )
    people: float = number(
        1.0, "share of the people of the list of surnames", 0, 1, kind=EFFORT, strict=True
    )
    depth: int = whole(20, "longest string of basic and direct", 1, 24, unit="symbols")
    settings: tuple[str, ...] = settings_field()

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

    def settings_of(self, name: str) -> tuple[str, ...]:
        """All for the twin, which decides; beside it what is drawn."""
        return self.settings if name == LOG else (self.drawn(),)

    def drawn(self) -> str:
        """The setting of the histograms that are drawn."""
        return drawn_of(self.settings)

    def rows(self, store) -> pd.DataFrame:
        """Of all sweeps, under the names of their corpora."""
        return unpacked(super().rows(store))


def of_log(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the log's twin, which decides what counts against noise do."""
    own = rows[rows.panel == LOG]
    if own.empty:
        raise MissingPoints(f"the {LOG} decides, which was not run")
    return own
