"""Fan & Jin 2015, Figure 10: how many records the sampled databases hold.

Paper   Fan & Jin, WWW 2015: section 6.4 and Figure 10.
Read    from the text; the plot is not in our copy.
Open    SRA and HPA keep equally many: min(l, |T_k|) of each user, whatever the seed, so that one is
        enough. From Table 4 alone it is at most l·users of the records, 4.8 % on Netflix.
Words   far smaller = at least 3 times, on every dataset; Netflix = below 5 %, as printed.
"""

from __future__ import annotations

import pandas as pd

from experiments.fan2015.data import (
    Case,
    cases,
    datasets,
    panel_of,
    sampling_mechanisms,
    undecided_on_slice,
    users_of_netflix,
)
from experiments.fan2015.unreleased import AllRecords, KeptRecords, Sizes
from workbench import Sweep, plots
from workbench.claims import MUCH, Finding, Printed
from workbench.claims.old import Claim, all_of
from workbench.figures import Figure
from workbench.figures.parameters import whole
from workbench.plots import Panel
from workbench.value import value

ORIGINAL = AllRecords.series
PAPER = {"Netflix": Printed("less than 5 %", 0, 0.05)}


def _value(rows, name: str, series: str, metric: str = "SampledSize") -> float:
    chosen = (rows.panel == name) & (rows.series == series) & (rows.metric == metric)
    return float(rows[chosen].value.iloc[0])


def _smaller(rows) -> Finding:
    parts = {}
    for name in rows.panel.unique():
        share = max(_value(rows, name, series) for series in ("SRA", "HPA"))
        smaller = Finding(bool(share <= 1 / MUCH), f"{share:.1%} of the records")
        parts[name] = undecided_on_slice(name, smaller)
        if name == panel_of(rows, "Netflix"):
            below = Finding(bool(share < PAPER["Netflix"].high), f"{share:.2%}")
            parts["Netflix below 5 %"] = undecided_on_slice(name, below)
    return all_of(parts)


CLAIMS = (
    Claim(
        "f-10",
        "The sampled databases are far smaller than the original; Netflix' have less than 5 % of the "
        "records.",
        _smaller,
    ),
)


@value
class Fig10(Figure):
    """Records kept of every dataset."""

    title = "Sampled databases are small"
    page = "Fan & Jin, WWW 2015, section 6.4, Figure 10"
    quick = {"netflix_users": 20_000}
    rough = {"netflix_users": 2000}
    claims = CLAIMS
    shown = ("l", "d")  # each dataset has its own

    data: tuple[str, ...] = datasets()
    l: int = whole(10, "records kept of each user", unit="records")  # noqa: E741
    movielens_l: int = whole(30, "l on MovieLens", unit="records")
    netflix_users: int = users_of_netflix()

    def cases(self) -> dict[str, Case]:
        """The datasets, by panel."""
        return cases(self.data, self.netflix_users, l=self.l, movielens_l=self.movielens_l)

    def sweeps(self) -> dict[str, Sweep]:
        """Nothing is random."""
        sweeps = {}
        for name, case in self.cases().items():
            samples = [KeptRecords(mechanism) for mechanism in sampling_mechanisms(case)]
            sweeps[name] = Sweep([case.dataset], [AllRecords(), *samples], [Sizes(case.l)], 1)
        return sweeps

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Records, as printed, and what is kept of them."""
        return [
            Panel("records", {"metric": "StoredRecords"}, "panel", bars=True),
            Panel("of all records", {"metric": "SampledSize"}, "panel", bars=True, log=""),
        ]

    def plot(self, rows: pd.DataFrame):
        """One below the other."""
        wide = dict(columns=1, width=plots.PAGE_WIDTH, height=1.7)
        return plots.grid(rows, self.panels(rows), **wide)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """A line a dataset: what is kept, and at most."""
        lines = []
        for name in rows.panel.unique():
            line = {"dataset": name}
            line["records"] = f"{_value(rows, name, ORIGINAL, 'StoredRecords'):,.0f}"
            for series in ("SRA", "HPA"):
                line[series] = f"{_value(rows, name, series):.2%}"
            line["l · users"] = f"{_value(rows, name, 'SRA', 'bound'):.2%}"
            netflix = name == panel_of(rows, "Netflix")
            line["the paper prints"] = PAPER["Netflix"].says if netflix else ""
            lines.append(line)
        return pd.DataFrame(lines).set_index("dataset")
