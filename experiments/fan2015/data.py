"""Fan & Jin 2015: which data its figures are run on, and what is stated of them as public.

The paper's own files are used where they are at hand, else twins stand in, built to the numbers of its
Table 4; beside them stand two real datasets of the kind. Of each, M (the most records of a user, for
LPA, DFT and GS) and d (the least, for the popularity of HPA) are stated as its publication prints
them, Table 4 for the paper's four; l = 10 records a user, 30 for MovieLens, as in section 6.

At the quick profile Netflix' twin is cut to 20,000 of its users, which settles no claim; everything
else is whole at both profiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from workbench import DP
from workbench.claims import Finding
from workbench.datasets import (
    Foursquare,
    Gowalla,
    InteractionsTwin,
    MovieLens,
    NetflixPrize,
    OnlineRetail,
)
from workbench.experiment import first_available
from workbench.mechanisms import FPA, GS, HPA, LPA, SRA

BUDGET = DP(1.0)
SEEDS = {"quick": 3, "paper": 20}
NETFLIX = 20_000  # users, at the quick profile
SLICED = f", {NETFLIX:,} users"
TWIN = " twin"


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


def cases(profile: str) -> dict[str, Case]:
    """What is run, by the names of panels: real data first."""
    netflix = InteractionsTwin.netflix()
    if profile == "quick":
        netflix = netflix.slice(NETFLIX)
    real = [
        Case("Gowalla (LGLMF)", Gowalla(), "", 1624, d=15),
        Case("Online Retail", OnlineRetail(), "", 7983),
        Case("Foursquare New York", Foursquare("nyc"), "", 1303),
        Case("Foursquare Tokyo", Foursquare("tky"), "", 1303),
    ]
    foursquare = InteractionsTwin.foursquare()  # nobody publishes the paper's
    paper = [
        _paper_case("Gowalla", Gowalla("austin"), InteractionsTwin.gowalla(), 14_380),
        Case("Foursquare" + TWIN, foursquare, "Foursquare", 1303),
        _paper_case("Netflix", NetflixPrize(), netflix, 17_000),
        _paper_case("MovieLens", MovieLens(), InteractionsTwin.movielens(), 2314, 30, 20),
    ]
    available = [case for case in real if first_available(case.dataset, None)]
    return {case.name: case for case in available + paper}


def _paper_case(of: str, real, twin: InteractionsTwin, *parameters: int) -> Case:
    """The paper's own data, or its twin."""
    dataset = first_available(real, twin)
    name = of
    if dataset is twin:
        name += TWIN
        if twin.users == NETFLIX:
            name += SLICED
    return Case(name, dataset, of, *parameters)


def sampling_mechanisms(case: Case, budget: DP = BUDGET, l: int | None = None) -> list:  # noqa: E741
    """The paper's two: SRA and HPA, with the case's l unless another is given."""
    l = l or case.l  # noqa: E741
    return [SRA(budget, l), HPA(budget, l, case.d)]


def five_methods(case: Case, budget: DP = BUDGET) -> list:
    """The five of Figures 7 to 9; DFT's k and GS's width, not printed, are chosen privately."""
    others = [LPA(budget, case.most), FPA(budget, case.most), GS(budget, case.most)]
    return [*sampling_mechanisms(case, budget), *others]


def undecided_on_slice(name: str, finding: Finding) -> Finding:
    """The finding; of a slice it is only which way it leans."""
    if not name.endswith(SLICED):
        return finding
    return Finding(None, finding.measured, finding.why, bool(finding.holds))


def with_metric_columns(rows: pd.DataFrame, metrics: Sequence) -> pd.DataFrame:
    """The rows of a sweep with these metrics, whose parameters stand in columns of their own.

    They are `of`, `direction` and, for the k of a precision (DFT has a k too), `top`.
    """
    parameters = [
        {f.name: getattr(metric, f.name) for f in fields(metric)} for metric in metrics
    ]
    repeats = len(rows) // len(metrics)
    for field, column in {"of": "of", "direction": "direction", "k": "top"}.items():
        values = [parameter.get(field) for parameter in parameters]
        if any(value is not None for value in values):
            rows = rows.assign(**{column: values * repeats})
    return rows


def dataset_columns(case: Case) -> dict[str, Any]:
    """The columns of every row that is of this dataset."""
    dataset = case.dataset
    return {"panel": case.name, "dataset": repr(dataset), "truth_public": dataset.truth_public}


def panel_of(rows: pd.DataFrame, of: str) -> str:
    """The panel of one of the paper's four: its own file, or the twin."""
    return next(name for name in rows.panel.unique() if name.split(TWIN)[0] == of)
