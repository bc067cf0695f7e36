"""Datasets for the figures of Fan & Jin (2015), with the numbers that are stated as public for each.

If the paper's own files are missing, synthetic stand-ins are used. They have the numbers of the paper's Table
4. There are also real datasets of the same kind. For each dataset, M is the largest number of records of a
user (for LPA, DFT and GS), and d is the smallest (for the popularity of HPA). Both are stated as its
publication prints them, and for the paper's four datasets as in Table 4. As in section 6, l is 10 records per
user, or 30 for MovieLens. The domain of MovieLens consists of its 3,706 rated films, as in Table 4. The
popularity of a stand-in's items is invented. So a stand-in can be run under several *laws*, which multiply
its exponent of popularity by different factors. The stand-in for Netflix can be reduced to some of its users,
but no statement is tested on such a part.
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
    """MovieLens over the films that somebody has rated. Their number is 3,706, and the publisher
    numbers films from 1 to 3952.
    """

    dataset: MovieLens = parameter(check=check_dataset, doc="ratings by group")

    @cached_property
    def domain(self) -> Domain:
        """Domain of the rated films, by their published numbers, and of the contexts."""
        return self.load().domain

    def load(self) -> Interactions:
        """Return the records, which are those of the whole dataset."""
        data = self.dataset.load()
        films, contexts = data.domain.labels
        rated = np.flatnonzero(data.item_counts())
        labels = (tuple(films[film] for film in rated), contexts)
        domain = Domain(data.domain.attributes, (len(rated), len(contexts)), labels)
        items = sealed(np.searchsorted(rated, data.items))
        columns = (data.users, items, data.contexts)
        return Interactions(domain, *columns, data.bound, data.truth_public, data.distinct)

    def titles(self) -> dict[int, str]:
        """Return the titles of films by their numbers."""
        return self.dataset.titles()


@dataclass(frozen=True)
class Case:
    """Dataset with the name of its panel, and with the paper's parameters for it.

    `of` is the dataset's name in Table 4 of Fan & Jin (2015), or "" if the paper does not have it. `most` is
    M, the bound on the records of a user.
    """

    name: str
    dataset: Any
    of: str
    most: int
    l: int = 10  # noqa: E741
    d: int = 1

    @property
    def twin(self) -> bool:
        """Whether the dataset is a synthetic stand-in."""
        return isinstance(self.dataset, InteractionsTwin)

    def laws(self, factors: Sequence[float]) -> dict[str, Any]:
        """Return the dataset under each assumed law of popularity. A published file has only its own law."""
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
    """Return the declaration of a figure's parameter `data`. Datasets in `without` are left out."""
    usual = tuple(name for name in DATASETS if name not in without)
    twins = tuple(of + TWIN for of in _TWINS if of not in without)
    doc = "datasets (stand-ins for the paper's four if files are missing)"
    return fields.datasets(usual, usual + twins, doc)


def users_of_netflix() -> Any:
    """Return the declaration of a figure's parameter `netflix_users`."""
    return effort(_TWINS["Netflix"].users, "users of Netflix' stand-in", 1000)


def records_for_popularity() -> Any:
    """Return the declaration of the field `d` of figures with the mechanism HPA."""
    return whole(None, "records of each user for popularity (none: the fewest of a user)")


def popularities() -> Any:
    """Return the declaration of a figure's parameter `popularities`."""
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
    """Return the datasets to run, by the names of their panels. If d and M are not given, they are the
    published numbers.

    Raises
    ------
    ValueError
        If none of the datasets is available.
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
    """Return a dataset of another package. The largest and the smallest number of records per user are
    public, because the whole dataset is.
    """
    dataset = other_dataset(name)
    data = dataset.load()
    if not isinstance(data, Interactions):
        raise ValueError(f"data = {name} is not allowed here: need records of users")
    per_user = data.records_per_user()
    return Case(name, dataset, "", int(per_user.max()), d=int(per_user.min()))


def _paper_case(name: str, netflix_users: int) -> Case | None:
    """Return one of the paper's four datasets. The synthetic stand-in is used if it is named, or if the
    paper's own files are missing.
    """
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
    """Return the paper's two mechanisms, SRA and HPA, with the l of the dataset."""
    return [SRA(budget, case.l), HPA(budget, case.l, case.d)]


def one_law(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the results in which synthetic stand-ins have their own assumed law of popularity."""
    return rows[rows.law.isin((AS_BUILT, FILE))]


def panel_of(rows: pd.DataFrame, of: str) -> str:
    """Return the panel of one of the paper's four datasets, its file or its synthetic stand-in. Return "" if
    it was not run.
    """
    return next((name for name in rows.panel.unique() if name.split(TWIN)[0] == of), "")


# What its figures share: the statements, and the panels that decide them.
#
# Statements are decided on the paper's four datasets: on the file of each if there is one, otherwise on its
# twin. Panels have the name of the dataset, with " twin" after it for a twin. Other datasets decide nothing.


def rows_of(rows: pd.DataFrame, of: str) -> pd.DataFrame:
    """Return the results on one of the paper's four datasets, on its file or its stand-in.

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
    """Return the panels in the results: those in `first`, then the paper's other datasets, then all others."""
    order = [panel_of(rows, of) for of in dict.fromkeys([*first, *FILES.values()])]
    return list(dict.fromkeys([*filter(None, order), *rows.panel.unique()]))


def in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the same results, with the paper's datasets first."""
    return rows.iloc[rows.panel.map(paper_first(rows).index).argsort(kind="stable")]


class FanFigure:
    """Base class of the figures of Fan & Jin (2015), with the datasets in `data` and some users of Netflix'
    synthetic stand-in.
    """

    def cases(self) -> dict[str, Case]:
        """Return the datasets by panel, with the parameters of the figure."""
        own = self.parameters().keys() & {"l", "movielens_l", "d", "most"}
        given = {name: getattr(self, name) for name in own}
        return cases(self.data, self.netflix_users, **given)

    def sweep_all(self, mechanisms, metrics, seeds: int = 1) -> dict[str, Sweep]:
        """Return one sweep (plan of runs) per dataset. `mechanisms` and `metrics` are functions of the
        dataset's `Case`.
        """
        return {
            name: Sweep([case.dataset], mechanisms(case), metrics(case), seeds)
            for name, case in self.cases().items()
        }

    def has_file(self, name: str, rows: pd.DataFrame) -> bool:
        """Return whether the paper's own data were run. In this case, a panel has the name of the file, and
        not that of a synthetic stand-in.
        """
        if name in FILES:
            return bool((rows.panel == FILES[name]).any())
        return super().has_file(name, rows)
