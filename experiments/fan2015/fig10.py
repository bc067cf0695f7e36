"""Figure 10 of Fan & Jin (2015): number of records in the sampled databases.

Paper   Fan & Jin, WWW 2015: section 6.4 and Figure 10.
Read    We read all numbers from the text, because the plot is not in our copy.
Open    SRA and HPA keep the same number of records of each user k, min(l, |T_k|), where |T_k| is the number
        of the user's records. It does not depend on the seed, so one seed is enough. By Table 4 alone, at
        most l·users records are kept. On Netflix, this is 4.8 %.
"""

from __future__ import annotations

from experiments.fan2015.data import (
    CUT,
    TWIN,
    FanFigure,
    datasets,
    in_order,
    panel_of,
    rows_of,
    users_of_netflix,
)
from experiments.fan2015.table4 import TABLE
from experiments.fan2015.unreleased import AllRecords, Sizes, with_samples
from workbench import Sweep
from workbench.compiled import pd
from workbench.figures import Figure
from workbench.figures.fields import whole
from workbench.figures.plots import Panel
from workbench.trials.claims import Finding, Printed
from workbench.value import value

ORIGINAL = AllRecords.series
NETFLIX_L = 10
LOW_MEAN = ("Gowalla", "Foursquare")
HIGH_MEAN = ("Netflix", "MovieLens")
PAPER = {"Netflix": Printed("less than 5 %", 0, 0.05)}


def _value(rows, name: str, series: str, metric: str = "SampledSize") -> float:
    chosen = (rows.panel == name) & (rows.series == series) & (rows.metric == metric)
    return float(rows[chosen].value.iloc[0])


def _share(rows, of: str) -> float:
    """Return the share of a dataset's records that the mechanisms SRA and HPA keep."""
    own = rows_of(rows, of)
    return max(_value(own, own.panel.iloc[0], series) for series in ("SRA", "HPA"))


def check_smaller(rows, level) -> Finding:
    """Check whether the samples have fewer records than the original data, on each of the four datasets."""
    shares = {of: _share(rows, of) for of in TABLE}
    measured = ", ".join(f"{of} {share:.1%}" for of, share in shares.items())
    return Finding(max(shares.values()) < 1, f"kept: {measured}")


def check_netflix(rows, level) -> Finding:
    """Check the share of Netflix' records that are kept, by arithmetic with the numbers of Table 4 of Fan &
    Jin (2015) and 10 records per user.
    """
    users, _, records, *_ = TABLE["Netflix"]
    most = NETFLIX_L * users / records
    measured = f"at most {most:.2%} by Table 4; {_share(rows, 'Netflix'):.2%} kept"
    return Finding(most < PAPER["Netflix"].high, measured)


def check_loss(rows, level) -> Finding:
    """Check whether a larger share of the records is lost on Netflix and MovieLens than on Gowalla and
    Foursquare.
    """
    lost = {of: 1 - _share(rows, of) for of in TABLE}
    less, more = ([lost[of] for of in pair] for pair in (LOW_MEAN, HIGH_MEAN))
    kept = {of: _value(rows, panel_of(rows, of), "SRA", "bound") for of in TABLE}
    parts = [f"{of} {x:.1%} (at least {1 - kept[of]:.1%})" for of, x in lost.items()]
    return Finding(min(more) > max(less), "lost: " + ", ".join(parts))


def check_means(rows, level) -> Finding:
    """Check whether Netflix and MovieLens have more records per user than the others, by the printed means
    and by records divided by users.
    """
    printed = {of: TABLE[of][-1] for of in TABLE}
    computed = {of: TABLE[of][2] / TABLE[of][0] for of in TABLE}
    holds = all(
        min(means[of] for of in HIGH_MEAN) > max(means[of] for of in LOW_MEAN)
        for means in (printed, computed)
    )
    parts = [f"{of} {printed[of]:.1f} printed, {computed[of]:.1f} computed" for of in TABLE]
    return Finding(holds, "; ".join(parts))


@value
class Fig10(FanFigure, Figure):
    """Number and share of the records that sampling keeps, for every dataset."""

    title = "Sampled databases are small"
    headline = "Sampled databases are much smaller: on Netflix below 5 % of the records"
    rests_on = ("f-10.1", "f-10.2")
    height = 2.6
    page = "Fan & Jin, WWW 2015, section 6.4, Figure 10"
    quick = {"netflix_users": 20_000}
    rough = {"netflix_users": 2000}
    shown = ("l", "d")  # each dataset has its own

    data: tuple[str, ...] = datasets()
    l: int = whole(10, "number of records kept per user", unit="records")  # noqa: E741
    movielens_l: int = whole(30, "records kept per user (l) on MovieLens", unit="records")
    netflix_users: int = users_of_netflix()

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs. Nothing in this figure is random."""
        return self.sweep_all(with_samples, lambda case: [Sizes(case.l)])

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return two panels: the numbers of records, as printed, and the share that is kept."""
        return [
            Panel("number of records", {"metric": "StoredRecords"}, "panel", bars=True),
            Panel("share that is kept", {"metric": "SampledSize"}, "panel", bars=True, log=""),
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results that the figure draws. As printed, there is one bar for both samples, because
        the mechanisms SRA and HPA keep equally many records.
        """
        whole = (rows.series == ORIGINAL) & (rows.metric == "SampledSize")
        drawn = rows[(rows.series != "HPA") & ~whole].replace({"series": {"SRA": "SRA, HPA"}})
        drawn = in_order(drawn)
        names = drawn.panel.str.replace(TWIN, "\nstand-in", regex=False)
        names = names.str.replace(CUT, "\nusers", regex=False)
        return drawn.assign(panel=names)
