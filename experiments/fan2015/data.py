"""Fan & Jin 2015: which data its figures are run on, and what is stated of them as public.

The paper's own files are used where they are at hand, else twins stand in, built to the numbers of its
Table 4; beside them stand real datasets of the kind. Of each, M (the most records of a user, for LPA,
DFT and GS) and d (the least, for the popularity of HPA) are stated as its publication prints them,
Table 4 for the paper's four; l = 10 records a user, 30 for MovieLens, as in section 6.

MovieLens' domain is its 3,706 rated films, as in that table. How popular a twin's items are is its maker's
choice, so that a twin may be taken with its exponent of popularity times some factors: its *laws*.

Netflix' twin may be cut to some of its users, which settles no statement.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from experiments._fields import effort, unprinted_number
from workbench import DP, Domain, Sweep
from workbench.compiled import pd
from workbench.data import Interactions
from workbench.datasets import (
    Foursquare,
    Gowalla,
    InteractionsTwin,
    MovieLens,
    NetflixPrize,
    OnlineRetail,
)
from workbench.datasets.synthetic import OfDataset, check_dataset
from workbench.figures import fields
from workbench.figures.fields import whole
from workbench.figures.figure import other_dataset
from workbench.mechanisms import HPA, SRA
from workbench.trials import first_available
from workbench.trials.claims import MissingPoints
from workbench.value import parameter, sealed, value

BUDGET = DP(1.0)
TWIN = " twin"
CUT = " users"  # how the name of a cut twin ends
CALIBRATED = 0.66  # Foursquare's exponent, as figure 5 then has the printed 40 % of the top 100
AS_BUILT = "×1"  # the law of a twin's popularity
FILE = "file"  # what stands in its place where the data is real
FILES = {  # what statements need, by the panel that has it
    "GowallaAustin": "Gowalla",
    "Foursquare": "Foursquare",
    "NetflixPrize": "Netflix",
    "MovieLens": "MovieLens",
}


@value
class RatedFilms(OfDataset):
    """MovieLens over the films that somebody has rated: of the numbers 1 to 3952 there are 3,706."""

    dataset: MovieLens = parameter(check=check_dataset, doc="ratings by group")

    @cached_property
    def domain(self) -> Domain:
        """Films by their published numbers, and contexts as they are."""
        return self.load().domain

    def load(self) -> Interactions:
        """The same records."""
        data = self.dataset.load()
        films, contexts = data.domain.labels
        rated = np.flatnonzero(data.item_counts())
        labels = (tuple(films[film] for film in rated), contexts)
        domain = Domain(data.domain.attributes, (len(rated), len(contexts)), labels)
        items = sealed(np.searchsorted(rated, data.items))
        columns = (data.users, items, data.contexts)
        return Interactions(domain, *columns, data.bound, data.truth_public, data.distinct)

    def titles(self) -> dict[int, str]:
        """What the films are called, by their numbers."""
        return self.dataset.titles()


@dataclass(frozen=True)
class Case:
    """One dataset by the name of its panel, and the paper's parameters for it.

    `of` is its column of Table 4, "" where it has none; `most` is M.
    """

    name: str
    dataset: Any
    of: str
    most: int
    l: int = 10  # noqa: E741
    d: int = 1

    @property
    def twin(self) -> bool:
        """Whether it is made up."""
        return isinstance(self.dataset, InteractionsTwin)

    def laws(self, factors: Sequence[float]) -> dict[str, Any]:
        """The dataset by the law of its popularity: a twin under each, a file under its own."""
        if not self.twin:
            return {FILE: self.dataset}
        popularity = self.dataset.popularity
        return {
            f"×{factor:g}": replace(self.dataset, popularity=factor * popularity)
            for factor in sorted({1.0, *factors})
        }


_BESIDE = {  # real data, which the paper does not have
    "Gowalla (LGLMF)": Case("Gowalla (LGLMF)", Gowalla(), "", 1624, d=15),
    "Online Retail": Case("Online Retail", OnlineRetail(), "", 7983),
    "Foursquare New York": Case("Foursquare New York", Foursquare("nyc"), "", 1303),
    "Foursquare Tokyo": Case("Foursquare Tokyo", Foursquare("tky"), "", 1303),
}
_TWINS = {
    "Gowalla": InteractionsTwin.gowalla(),
    "Foursquare": InteractionsTwin.foursquare(),  # nobody publishes the paper's
    "Netflix": InteractionsTwin.netflix(),
    "MovieLens": InteractionsTwin.movielens(),
}
_FILES = {
    "Gowalla": Gowalla("austin"),
    "Netflix": NetflixPrize(),
    "MovieLens": RatedFilms(MovieLens()),
}
DATASETS = (*_BESIDE, *_TWINS)


def datasets(without: Collection[str] = ()) -> Any:
    """The parameter `data` of a figure, which some datasets may not fit."""
    usual = tuple(name for name in DATASETS if name not in without)
    twins = tuple(of + TWIN for of in _TWINS if of not in without)
    doc = "datasets (stand-ins for the paper's four if files are missing)"
    return fields.datasets(usual, usual + twins, doc)


def users_of_netflix() -> Any:
    """The parameter `netflix_users` of a figure."""
    return effort(_TWINS["Netflix"].users, "users of Netflix' stand-in", 1000)


def records_for_popularity() -> Any:
    """The field d of figures with HPA."""
    return whole(None, "records of each user for popularity (none: the fewest of a user)")


def popularities() -> Any:
    """The parameter `popularities` of a figure."""
    doc = "factors on the stand-ins' exponent of popularity"
    return unprinted_number((0.5, 1.0, 2.0), doc, 0, 4)


def cases(
    names: Sequence[str] = DATASETS,
    netflix_users: int = 480_189,
    *,
    l: int = 10,  # noqa: E741
    movielens_l: int = 30,
    d: int | None = None,
    most: int | None = None,
) -> dict[str, Case]:
    """What is run, by the names of panels; d and M as published where they are not given.

    Raises
    ------
    ValueError
        If none of the datasets is at hand.
    """
    chosen = {}
    for name in names:
        case = _BESIDE.get(name) or _paper_case(name, netflix_users) or _other_case(name)
        if first_available(case.dataset, None):
            own_l = movielens_l if case.of == "MovieLens" else l
            chosen[case.name] = replace(case, l=own_l, d=d or case.d, most=most or case.most)
    if not chosen:
        raise ValueError(f"data = {', '.join(names)}: no file of these is at hand")
    return chosen


def _other_case(name: str) -> Case:
    """A dataset of another package; how many records its users have is public, as all of it."""
    dataset = other_dataset(name)
    data = dataset.load()
    if not isinstance(data, Interactions):
        raise ValueError(f"data = {name} is not allowed here: need records of users")
    per_user = data.records_per_user()
    return Case(name, dataset, "", int(per_user.max()), d=int(per_user.min()))


def _paper_case(name: str, netflix_users: int) -> Case | None:
    """One of the paper's four: its own data where they are at hand and not the twin is named."""
    of = name.removesuffix(TWIN)
    if of not in _TWINS:
        return None
    whole_twin = _TWINS[of]
    twin = whole_twin.slice(netflix_users) if of == "Netflix" else whole_twin
    dataset = first_available(_FILES.get(name, twin), twin)
    if dataset is twin:
        name = of + TWIN
        if twin != whole_twin:
            name += f", {twin.users:,}{CUT}"
    return Case(name, dataset, of, whole_twin.max_per_user, d=whole_twin.min_per_user)


def sampling_mechanisms(case: Case, budget: DP = BUDGET) -> list:
    """The paper's two: SRA and HPA, with the case's l."""
    return [SRA(budget, case.l), HPA(budget, case.l, case.d)]


def one_law(rows: pd.DataFrame) -> pd.DataFrame:
    """Of twins those as built."""
    return rows[rows.law.isin((AS_BUILT, FILE))]


def panel_of(rows: pd.DataFrame, of: str) -> str:
    """The panel of one of the paper's four, its own file or the twin; "" if it is not run."""
    return next((name for name in rows.panel.unique() if name.split(TWIN)[0] == of), "")


# What its figures share: the statements, and the panels that decide them.
#
# Statements are decided on the paper's four datasets: on the file of each if there is one, otherwise on its
# twin. Panels have the name of the dataset, with " twin" after it for a twin. Other datasets decide nothing.


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


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """The same rows, the paper's datasets first."""
    return rows.iloc[rows.panel.map(paper_first(rows).index).argsort(kind="stable")]


class FanFigure:
    """A figure of this paper, on `data` and some users of Netflix' twin."""

    def cases(self) -> dict[str, Case]:
        """The datasets, by panel, with the parameters that the figure has."""
        own = self.parameters().keys() & {"l", "movielens_l", "d", "most"}
        given = {name: getattr(self, name) for name in own}
        return cases(self.data, self.netflix_users, **given)

    def sweep_all(self, mechanisms, metrics, seeds: int = 1) -> dict[str, Sweep]:
        """A sweep a dataset; its mechanisms and metrics are functions of the case."""
        return {
            name: Sweep([case.dataset], mechanisms(case), metrics(case), seeds)
            for name, case in self.cases().items()
        }

    def has_file(self, name: str, rows: pd.DataFrame) -> bool:
        """Whether the paper's own data was run: a panel has its name, and not a twin's."""
        if name in FILES:
            return bool((rows.panel == FILES[name]).any())
        return super().has_file(name, rows)
