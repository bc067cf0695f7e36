"""Fan & Jin 2015: what its figures share: the statements, and the panels that decide them.

Of each of the paper's four datasets the file decides where it is at hand, else the twin. Panels are
named after the paper's dataset, with what marks a twin behind; all others stand beside.
"""

from __future__ import annotations

from experiments.fan2015.data import panel_of
from workbench.compiled import pd
from workbench.figures import Figure
from workbench.trials.claims import MissingPoints
from workbench.value import value

FILES = {  # what statements need, by the panel that has it
    "GowallaAustin": "Gowalla",
    "Foursquare": "Foursquare",
    "NetflixPrize": "Netflix",
    "MovieLens": "MovieLens",
}


def rows_of(rows: pd.DataFrame, of: str) -> pd.DataFrame:
    """Those of one of the paper's four datasets, its file or the twin.

    Raises
    ------
    MissingPoints
        If it was not run.
    """
    name = panel_of(rows, of)
    if not name:
        raise MissingPoints(of)
    return rows[rows.panel == name]


def paper_first(rows: pd.DataFrame, *first: str) -> list[str]:
    """The panels in the rows: those of `first`, then the paper's other datasets, then all others."""
    order = [panel_of(rows, of) for of in dict.fromkeys([*first, *FILES.values()])]
    return list(dict.fromkeys([*filter(None, order), *rows.panel.unique()]))


@value
class FanFigure(Figure):
    """A figure of this paper."""

    def has_file(self, name: str, rows: pd.DataFrame) -> bool:
        """Whether the paper's own data was run: a panel has its name, and not a twin's."""
        if name in FILES:
            return bool((rows.panel == FILES[name]).any())
        return super().has_file(name, rows)
