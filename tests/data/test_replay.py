"""One user more in a file moves what is read, prepared and truncated by the bound, and no more.

Noise is recorded on one file and replayed on the other (`workbench.noise.replay`), so that a fault shows
whatever its size is. The files differ by the rows of one user, who has more of them than the bound allows.
"""

import csv
import sqlite3
from contextlib import closing
from functools import partial

import numpy as np
import polars as pl
import pytest

from workbench import (
    DP,
    ZCDP,
    Bound,
    Domain,
    Interactions,
    Records,
    SparseTable,
    mechanisms,
)
from workbench.data import UNBOUNDED, database, sources
from workbench.mechanisms.laws import differences_in_replay
from workbench.spaces import Bins, Labels, Quadtree, TimePart

COLUMNS = ["user", "shop", "hour", "spent", "x", "y"]
SCHEMA = {name: pl.Float64 if name in "xy" else pl.String for name in COLUMNS}
SHOPS = [f"shop {i}" for i in range(12)]
BOUND = Bound(3, 2, 5)
LABEL = {"other": "label", "missing": "label"}
SHOP = Labels(tuple(SHOPS[:10]), column="shop", **LABEL)
SPENT = Bins(range(0, 60, 5), column="spent", **LABEL)
HOUR = TimePart("hour", "%H:%M", column="hour", missing="drop", other="drop")


def rows(seed, users, low=0.1, high=0.9):
    """What some users bought; some fields hold nothing, or what no label stands for."""
    rng = np.random.default_rng(seed)
    for user, count in users.items():
        for _ in range(count):
            shop = rng.choice([*SHOPS, "", " shop 1 ", "SHOP 2"])
            hour = rng.choice(["07:30", "12:00", "23:59", "24:00", ""])
            spent = rng.choice([*map(str, rng.integers(0, 70, 9)), "4.999", "", "inf"])
            yield [user, shop, hour, spent, *rng.uniform(low, high, 2).round(3).tolist()]


OTHERS = [*rows(1, {f"user {i}": 1 + i % 9 for i in range(400)})]
UNIT = [*rows(2, {"zoë": 60}, 0.0, 0.999)]  # beyond all others
AMONG_OTHERS = [row for pair in zip(OTHERS, UNIT, strict=False) for row in pair]
WITH_UNIT = UNIT + OTHERS, OTHERS + UNIT, AMONG_OTHERS + OTHERS[len(UNIT) :]


def write(folder, name, kind, lines):
    """A file of these rows."""
    path = folder / f"{name}.{kind}"
    if kind == "csv":
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *lines])
        return path
    lines = [[x or None for x in row[:4]] + row[4:] for row in lines]
    frame = pl.DataFrame(lines, schema=SCHEMA, orient="row")
    if kind == "parquet":
        frame.write_parquet(path)
        return path
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table t (user, shop, hour, spent, x, y)")
        connection.executemany("insert into t values (?, ?, ?, ?, ?, ?)", lines)
        connection.commit()
    return path


TABLE = Domain.from_dict({"shop": SHOP, "spent": SPENT})
ITEMS = Domain.from_dict({"shop": SHOP, "hour": HOUR})


def table(path, rng, **options):
    return SparseTable.read(path, TABLE, BOUND, user="user", rng=rng, **options)


def records(path, rng, **options):
    space = Quadtree(2, 4, attributes=("x", "y"))
    return Records.read(path, space, BOUND, user="user", rng=rng, **options)


def interactions(path, rng, **options):
    return Interactions.read(path, user="user", domain=ITEMS, bound=UNBOUNDED, **options)


def released(read, mechanism, path, rng):
    named = {"table": "t"} if path.suffix == ".db" else {}
    return mechanism(read(path, rng, **named), rng)


RELEASES = {
    "histogram": (table, mechanisms.GeometricHistogram(DP(1.0))),
    "Gaussian": (table, mechanisms.GaussianHistogram(ZCDP(0.1))),
    "filter": (table, mechanisms.HighPassFilter(DP(1.0), size=20)),
    "stability": (table, mechanisms.StabilityHistogram(DP(1.0, 1e-6))),
    "tree": (records, mechanisms.BasicAdaptiveHistogram(DP(1.0), threshold=30, depth=3)),
    "synthesis": (records, mechanisms.DirectSynthesis(DP(1.0), depth=3)),
    "users": (interactions, mechanisms.LPA(DP(1.0), bound=3)),
    "sampled users": (interactions, mechanisms.SRA(DP(1.0), l=3)),
}


CASES = [(name, "csv") for name in RELEASES]
CASES += [
    (name, kind) for kind in ("parquet", "db") for name in ("filter", "synthesis", "users")
]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """The rows of a user come in several batches."""
    for module in (sources, database):
        monkeypatch.setattr(module, "BATCH", 300)
    monkeypatch.setattr(sources, "_BLOCK", 5000)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_one_user_more_in_a_file_moves_what_noise_hides(name, kind, tmp_path):
    with_unit = WITH_UNIT[list(RELEASES).index(name) % 3]
    assert differences(name, kind, tmp_path, OTHERS, with_unit) == []
    assert differences(name, kind, tmp_path, with_unit, OTHERS) == []


@pytest.mark.parametrize("name", RELEASES)
def test_one_user_more_among_few_or_none_moves_what_noise_hides(name, tmp_path):
    for others in (OTHERS[:200], OTHERS[:80], OTHERS[:40], []):
        assert differences(name, "csv", tmp_path, others, others[:6] + UNIT + others[6:]) == []


def differences(name, kind, folder, *files):
    paths = [write(folder, str(i), kind, lines) for i, lines in enumerate(files)]
    found = differences_in_replay(partial(released, *RELEASES[name]), *paths)
    for path in paths:
        path.unlink()
    return found
