"""Fan & Jin 2015, Table 4: the statistics of four datasets.

Paper   Fan & Jin, WWW 2015: section 6 and Table 4.
Read    the printed numbers, flattened in our copy: users and records are pinned by the printed means,
        items and the most of a user follow the order of print.
Open    Foursquare's collection is not published; of the others, files that are at hand are used. Where
        they are not, twins have users, items, records, and the most and least records of a user by
        construction, so that those cannot be tested; whether the printed mean follows from the printed
        counts can be, without any data. Real data beside them has no printed number.
Words   agrees = within 1 % for counts (Netflix' are printed in round numbers); a mean = records / users
        within 0.1, its last digit.
"""

from __future__ import annotations

import pandas as pd

from experiments.fan2015_data import cases, dataset_columns
from workbench.claims import Claim, Finding, Printed, all_of

TITLE = "Statistics of the datasets"
PAGE = "Fan & Jin, WWW 2015, section 6, Table 4"
COUNTS = ("users", "items", "records", "max", "min")
TABLE = {  # users, items, records, max, min; mean
    "Gowalla": (12_579, 15_200, 739_600, 14_380, 1, 58.8),
    "Foursquare": (45_289, 17_967, 1_276_988, 1_303, 1, 60.2),
    "Netflix": (480_189, 17_700, 100_480_507, 17_000, 1, 209.2),
    "MovieLens": (6_040, 3_706, 1_000_209, 2_314, 20, 165.6),
}
PAPER = {
    of: Printed(f"{mean}", mean - 0.1, mean + 0.1, value=mean)
    for of, (*_, mean) in TABLE.items()
}


def rows(profile: str, store) -> pd.DataFrame:
    """One row a dataset and statistic; nothing is random."""
    found = []
    for case in cases(profile).values():
        data = case.dataset.load()
        sizes = data.records_per_user()
        values = (
            len(sizes),
            (data.item_counts() > 0).sum(),
            len(data),
            sizes.max(),
            sizes.min(),
        )
        told = dict(zip(COUNTS, map(int, values), strict=True)) | {"mean": sizes.mean()}
        one = dataset_columns(case) | {"of": case.of, "twin": case.twin, "seed": 0}
        found += [one | {"metric": m, "value": float(v)} for m, v in told.items()]
    return pd.DataFrame(found)


def printed(rows: pd.DataFrame, metric: str) -> list[Printed]:
    """What the paper prints of a statistic, at the panel of its dataset."""
    place, own = (*COUNTS, "mean").index(metric), rows[rows.of != ""].drop_duplicates("panel")
    known = ((name, TABLE[of][place]) for name, of in zip(own.panel, own.of, strict=True))
    return [Printed(f"{x:,}", 0.99 * x, 1.01 * x, at=name, value=x) for name, x in known]


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """A line a dataset and, below the paper's four, what is printed."""
    told = []
    for name, some in rows.groupby("panel", sort=False):
        ours, of = some.set_index("metric").value, some.of.iloc[0]
        told.append({"dataset": name} | {m: _number(x) for m, x in ours.items()})
        if of:
            known = dict(zip((*COUNTS, "mean"), TABLE[of], strict=True))
            words = {"dataset": f"{of}, printed"}
            told.append(words | {m: _number(x) for m, x in known.items()})
    return pd.DataFrame(told).set_index("dataset")


def _number(x: float) -> str:
    return f"{x:,.1f}".removesuffix(".0")


def _statistics(rows) -> Finding:
    parts = {}
    for of, (*counts, _) in TABLE.items():
        some = rows[(rows.of == of) & ~rows.twin].set_index("metric").value
        if len(some):
            off = max(abs(some[m] / x - 1) for m, x in zip(COUNTS, counts, strict=True))
            parts[f"{of}: the file has these counts"] = Finding(
                off <= 0.01, f"off by {off:.2%}"
            )
        mean = counts[2] / counts[0]
        words = f"{counts[2]:,} / {counts[0]:,} = {mean:.1f}, printed {PAPER[of].value}"
        parts[f"{of}: the mean is records over users"] = Finding(PAPER[of].covers(mean), words)
    return all_of(parts)


CLAIMS = (
    Claim(
        "f-t4",
        "The four datasets have the users, items, records, and the most, mean and least records of a "
        "user that Table 4 prints.",
        _statistics,
        "1,276,988 records of 45,289 users are 28.2 each, not 60.2: the table contradicts itself.",
    ),
)
