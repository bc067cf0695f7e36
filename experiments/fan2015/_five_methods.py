"""Fan & Jin 2015: what Figures 7 to 9 and Table 5 run, five methods and others for comparison.

ε is of a whole release, or of its items and of its edges each, with 0.1 ε or 0.2 ε for popularity: all
three readings are run. All methods enforce
their M, as the paper's do not need to. Beside the five, and never judged, stands what a user would try
next: `consistent` (items and edges reconciled), `total` (all counts scaled to the published number of
records), HPA with half of its l records at random, and the l that the corrected formula suggests, from the
published numbers of users and records (M their mean) and a guess of popularity as 1/rank; then rivals on
fair terms: DFT and GS from l records of each user, as SRA has (of LPA that makes SRA itself), DFT with few
coefficients, GS where a user counts once an item. Last a table in which each count is the mean.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from experiments.fan2015.data import Case
from experiments.fan2015.unreleased import EqualCounts
from workbench import DP
from workbench.compiled import pd
from workbench.mechanisms import FPA, GS, HPA, LPA, SRA

OURS = ("SRA", "HPA")
OTHERS = ("LPA", "DFT", "GS")
METHODS = (*OURS, *OTHERS)
SQUARED = "MeanSquaredCountError"
DIVERGENCE = "KLDivergence"
PRECISION = "TopPrecision"
JUDGED = (
    "original_given_released"  # as the axes of Figures 7(b) and 8(b) have it, which end at 9
)
REVERSED = "released_given_original"
TEN = 10
FEW = 21  # coefficients of DFT
# ε of a whole release, or of its items and of its edges each; HPA learns popularity with 0.1 ε, or
# in the last reading with a tenth of 2 ε, as all its shares are doubled
READINGS = ("total", "each", "each, and popularity")
DRAWN = READINGS[:2]
IN_TITLES = dict(zip(READINGS, ("ε in total", "ε each", "ε each, popularity too"), strict=True))
POPULARITY = 0.1  # of ε
PUBLISHED = {  # users and records, where the dataset does not say them itself
    "Gowalla (LGLMF)": (5628, 620_683),
    "Gowalla": (12_579, 739_600),
    "Online Retail": (4372, 406_829),
    "Foursquare New York": (1083, 227_428),
    "Foursquare Tokyo": (2293, 573_703),
    "Netflix": (480_189, 100_480_507),
    "MovieLens": (6040, 1_000_209),
}


def all_methods(
    case: Case, budget: DP, k: int | None = None, width: int | None = None
) -> dict[str, Any]:
    """The paper's five, and what a user would try next, by the names of series."""
    twin = case.dataset
    users, records = (twin.users, twin.records) if case.twin else PUBLISHED[case.name]
    public = dict(n=users, bound=round(records / users), popularity=1.0)
    simple = partial(SRA, budget, case.l)
    picked = partial(HPA, budget, case.l, case.d)
    return {
        "SRA": simple(),
        "HPA": picked(),
        "LPA": LPA(budget, case.most),
        "DFT": FPA(budget, case.most, k),
        "GS": GS(budget, case.most, width),
        "SRA, consistent": simple(consistent=True),
        "SRA, total = N": simple(total=records),
        "SRA, suggested l": SRA(budget, "suggested", **public),
        "HPA, consistent": picked(consistent=True),
        "HPA, total = N": picked(total=records),
        "HPA, half random": picked(random_share=0.5),
    }


def five_methods(
    case: Case, epsilon: float, reading: str, k: int | None = None, width: int | None = None
) -> dict[str, Any]:
    """The paper's five where ε is of all, or of items and of edges each (HPA: 0.9 ε each).

    What popularity costs is not printed: 0.1 ε, or 0.2 ε where all shares are doubled.
    """
    budget = DP(epsilon)
    picked = DP(epsilon)
    share = POPULARITY
    if reading == "each":
        spent = POPULARITY + 2 * (1 - POPULARITY)
        budget = DP(2 * epsilon)
        picked = DP(spent * epsilon)
        share = POPULARITY / spent
    elif reading == READINGS[2]:
        budget = picked = DP(2 * epsilon)
    return {
        "SRA": SRA(budget, case.l),
        "HPA": HPA(picked, case.l, case.d, popularity_share=share),
        "LPA": LPA(budget, case.most),
        "DFT": FPA(budget, case.most, k),
        "GS": GS(budget, case.most, width),
    }


def beside_methods(
    case: Case, budget: DP, k: int | None = None, width: int | None = None
) -> dict[str, Any]:
    """Further methods for comparison, by the names of series."""
    usual = all_methods(case, budget, k, width)
    fair = {
        "DFT, l records": FPA(budget, case.l, k),
        "GS, l records": GS(budget, case.l, width),
        f"DFT, {FEW} coefficients": FPA(budget, case.most, FEW),
        "GS, once an item": GS(budget, case.most, width, once=True),
        EqualCounts.series: EqualCounts(),
    }
    return {name: usual[name] for name in usual if name not in METHODS} | fair


def mechanism_of_trials(rows: pd.DataFrame) -> pd.Series:
    """What each row's trial ran, as it is written."""
    return rows.trial.str.extract(", mechanism=(.*), seed=", expand=False)
