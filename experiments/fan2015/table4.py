"""Table 4 of Fan & Jin (2015): statistics of four datasets.

Paper   Fan & Jin, WWW 2015: section 6 and Table 4.
Read    We read the printed numbers, whose columns are mixed in our copy. The printed means determine which
        numbers are users and records. We assign items and the largest numbers of records in the printed
        order.
Open    Foursquare's collection is not published. For the others, we use available files. If files are
        missing, stand-ins have the printed users, items, records, and the largest and smallest number of
        records of a user, so these numbers cannot be tested. Without any data, we can test whether the
        printed mean follows from the printed counts. Other real datasets are shown for comparison, and have
        no printed numbers.
"""

from __future__ import annotations

from experiments.fan2015.data import FanFigure, datasets, rows_of, users_of_netflix
from experiments.fan2015.unreleased import AllRecords
from workbench import Sweep
from workbench.compiled import pd
from workbench.data import Interactions
from workbench.figures import Figure, plots
from workbench.trials.claims import Finding, Printed
from workbench.value import value

COUNTS = ("users", "items", "records", "max", "min")
STATISTICS = (*COUNTS, "mean")
TABLE = {  # users, items, records, max, min; mean
    "Gowalla": (12_579, 15_200, 739_600, 14_380, 1, 58.8),
    "Foursquare": (45_289, 17_967, 1_276_988, 1_303, 1, 60.2),
    "Netflix": (480_189, 17_700, 100_480_507, 17_000, 1, 209.2),
    "MovieLens": (6_040, 3_706, 1_000_209, 2_314, 20, 165.6),
}
PUBLIC = {
    "Netflix": {"users": 480_189, "items": 17_770}
}  # as the README of the contest has them


@value
class DataStatistics:
    """Metric: the six statistics of a dataset in Table 4 of Fan & Jin (2015)."""

    def __call__(self, truth: Interactions, estimate: Interactions) -> pd.DataFrame:
        """Return the metric's values, with one row per statistic."""
        sizes = truth.records_per_user()
        items = (truth.item_counts() > 0).sum()
        values = [len(sizes), items, len(truth), sizes.max(), sizes.min(), sizes.mean()]
        return pd.DataFrame({"metric": STATISTICS, "value": [*map(float, values)]})


def _texts(names, values) -> dict[str, str]:
    pairs = zip(names, values, strict=True)
    return {name: f"{value:,.1f}".removesuffix(".0") for name, value in pairs}


def check_counts(rows, level, of: str) -> Finding:
    """Check whether a dataset has the printed counts. Netflix' largest number of records is printed in
    thousands.

    If the data are not available, the numbers that their publisher states decide.
    """
    own = rows_of(rows, of)
    public = {} if own.panel.iloc[0] == of else PUBLIC.get(of, {})
    ours = public or own.set_index("metric").value
    differences = []
    for metric, count in zip(COUNTS, TABLE[of], strict=False):
        error = 1000 if (of, metric) == ("Netflix", "max") else 0
        if metric in ours and abs(ours[metric] - count) > error:
            differences.append(f"{metric} {ours[metric]:,.0f}, printed {count:,}")
    measured = "; ".join(differences) or "all five as printed"
    return Finding(not differences, measured, "as its publisher counts" * bool(public))


def check_mean(rows, level, of: str) -> Finding:
    """Check whether the printed mean is the printed number of records divided by the printed number of users,
    rounded.
    """
    users, _, records, *_, printed = TABLE[of]
    mean = records / users
    measured = f"{records:,} / {users:,} = {mean:.2f}, printed {printed}"
    cut_off = int(10 * mean) / 10 == printed != round(mean, 1)
    return Finding(round(mean, 1) == printed, measured, "cut off, not rounded" * cut_off)


@value
class Table4(FanFigure, Figure):
    """Six statistics of each dataset, and the printed numbers."""

    title = "Statistics of the datasets"
    headline = "Foursquare's printed mean is not its printed records over its users"
    rests_on = ("not f-t4.6",)
    page = "Fan & Jin, WWW 2015, section 6, Table 4"
    quick = {"netflix_users": 20_000}
    rough = {"netflix_users": 2000}

    data: tuple[str, ...] = datasets()
    netflix_users: int = users_of_netflix()

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs. Nothing in this table is random."""
        return self.sweep_all(lambda case: [AllRecords()], lambda case: [DataStatistics()])

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results. The column `of` is the paper's name of the dataset, or "" if the paper
        does not have it. The column `twin` says whether it is a synthetic stand-in.
        """
        rows = super().rows(store)
        columns = {name: case.of for name, case in self.cases().items()}
        twins = {name: case.twin for name, case in self.cases().items()}
        return rows.assign(of=rows.panel.map(columns), twin=rows.panel.map(twins))

    def plot(self, rows: pd.DataFrame):
        """Draw two statistics. Crosses show the printed numbers."""
        fig, axes = plots.panels(1, 2, sharey=True)
        for ax, metric, label in zip(axes, ("mean", "max"), ("mean", "most"), strict=True):
            ours = rows[rows.metric == metric]
            name = f"{label} records of a user"
            plots.marks(ours, "panel", ax, printed=self.printed(rows, metric), label=name)
        return plots.legend(fig)

    def printed(self, rows: pd.DataFrame, metric: str) -> list[Printed]:
        """Return the printed numbers of a statistic, at the panels of their datasets."""
        place = STATISTICS.index(metric)
        points = []
        for row in rows[rows.of.isin(TABLE)].drop_duplicates("panel").itertuples():
            x = TABLE[row.of][place]
            points.append(Printed(f"{x:,}", 0.99 * x, 1.01 * x, at=row.panel, value=x))
        return points

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table with one row per dataset. For the paper's four datasets, a second row contains the
        printed numbers.
        """
        lines = []
        for (name, of), statistics in rows.groupby(["panel", "of"], sort=False):
            lines.append({"dataset": name} | _texts(statistics.metric, statistics.value))
            if of:
                lines.append({"dataset": f"{of}, printed"} | _texts(STATISTICS, TABLE[of]))
        return pd.DataFrame(lines).set_index("dataset")
