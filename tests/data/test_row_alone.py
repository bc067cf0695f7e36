"""Every row is prepared as it would be alone, in each source, for each rule and type of column.

A table whose rows are prepared together equals the rows prepared one by one, so a row more or less never
changes the label of another. This holds for private data because a bound counts on it.
"""

import csv
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import Attributes, Bound, Domain, Records, SparseTable
from workbench.data import UnlistedValues, database, sources
from workbench.spaces import Bins, Cross, Labels, Map, Prefixes, Taxonomy, TimePart

ROWS = 6
INF = float("inf")
BEYOND = 2**53 + 1

# Types of columns: the Arrow type, and values that have been mistaken for others
TYPES = {
    "int": (pa.int64(), [0, 1, 2, 3, -1, 12, 999, BEYOND, 2**63 - 1]),
    "small int": (pa.int8(), [0, 1, 2, 3, -1, 12]),
    "unsigned": (pa.uint64(), [0, 1, 2, 3, 12, 2**64 - 1]),
    "float": (
        pa.float64(),
        [0.0, -0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 12.0, 999.0, 1e300, INF, -INF],
    ),
    "float32": (pa.float32(), [0.5, 1.0, 0.1, 3.0, INF]),
    "decimal": (pa.decimal128(20, 3), list(map(Decimal, "0 1 1.5 1.50 2.125 3 999".split()))),
    "bool": (pa.bool_(), [True, False]),
    "date": (pa.date32(), [date(2025, 3, 1), date(2025, 12, 31)]),
    "datetime": (pa.timestamp("us"), [datetime(2025, 3, 1, 7, 30), datetime(2025, 3, 1, 12)]),
    "zoned": (pa.timestamp("us", "UTC"), [datetime(2025, 3, 1, 23, 30, tzinfo=UTC)]),
    "time": (pa.time64("us"), [time(7, 30), time(12)]),
    "text": (
        pa.string(),
        "0 1 1.0 1.00 01 +1 1e0 0.5 .5 1.5 1.50 3 3.0 12.0 inf -inf nan 1e400 NA 999 True true x "
        "07:30 24:00 9007199254740993 9007199254740993.0 2025-03-01 0x1 1_0".split(),
    ),
}
MIXED = [1, 2, 0.5, 1.0, 1.5, 12.0, INF, "1", "1.0", "01", "inf", "x", "07:30", "999", BEYOND]
TIMES = {
    "date": [
        TimePart("weekday", "%Y-%m-%d"),
        TimePart("day", "%Y-%m-%d"),
        TimePart("week", "%Y-%m-%d", date_only=True),
        TimePart("year-month", "%Y-%m-%d", first="2024-01", last="2024-12"),
        TimePart("date", "%Y-%m-%d", first="2024-01-01", last="2024-12-31"),
    ],
    "datetime": [TimePart("hour", "%Y-%m-%d %H:%M:%S"), TimePart("month", "%Y-%m-%d %H:%M:%S")],
    "zoned": [TimePart("day", "%Y-%m-%d %H:%M:%S%z", zone="Europe/Zurich")],
    "time": [TimePart("hour", "%H:%M:%S")],
    "text": [TimePart("hour", "%H:%M", missing_values=("24:00",))],
}
LABEL = {"other": "label", "missing": "label"}
RULES = [
    Labels(("0.5", "1.0", "x", "07:30", "True", "2025-03-01"), column="x", **LABEL),
    Labels((0.5, 1.0, 1.5, 2.0), column="x", **LABEL),
    Labels((3, 1, 2), column="x", **LABEL, missing_values=("12", 999)),
    Labels((True, False), column="x", **LABEL),
    Labels(range(0, 13, 3), column="x", **LABEL),
    Map({"1": "a", "1.50": "b", "01": "c", "inf": "c"}, column="x", **LABEL),
]
BINS = [
    Bins((0, 1, 2.125), column="x", **LABEL),
    Bins((0, 1.5, 100), column="x", below="clamp", above="clamp", **LABEL),
]


@cache
def domains(kind):
    """Domains of all rules that read a type, with labels for all rows, and with rows that are dropped."""
    has_bins = kind == "text" or kind not in ("bool", *TIMES)
    times = [replace(rule, column="x", **LABEL) for rule in TIMES.get(kind, [])]
    rules = [*RULES, *(BINS if has_bins else []), *times]
    rules.append(Cross((rules[0], rules[-1])))
    all_labels = {f"rule {number}": rule for number, rule in enumerate(rules)}
    dropping = [Labels((0.5, 1.0, 3.0), column="x", other="drop", missing="label")]
    if has_bins:
        dropping.append(Bins((0, 2), column="x", above="clamp", other="drop", missing="drop"))
    dropping += [replace(rule, other="drop", missing="drop") for rule in times]
    rows = {"row": ROWS}
    return [
        Domain.from_dict(rows | more) for more in (all_labels, *({"x": x} for x in dropping))
    ]


def as_csv(folder, kind, values):
    with open(f"{folder}/t.csv", "w", newline="") as file:
        csv.writer(file).writerows([("row", "x"), *enumerate(values)])
    return f"{folder}/t.csv"


def as_arrow(folder, kind, values):
    return pa.table({"row": range(len(values)), "x": pa.array(values, TYPES[kind][0])})


def as_parquet(folder, kind, values):
    pq.write_table(as_arrow(folder, kind, values), f"{folder}/t.parquet", row_group_size=4)
    return f"{folder}/t.parquet"


def as_sqlite(declared):
    def write(folder, kind, values):
        rows = enumerate(map(_sqlite_value, values))
        with closing(sqlite3.connect(f"{folder}/t.db")) as connection, connection:
            connection.execute(f"CREATE TABLE t (row INTEGER, x {declared})")
            connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        return f"{folder}/t.db"

    return write


def _sqlite_value(x):
    is_kept = x is None or isinstance(x, str | float) or (isinstance(x, int) and x < 2**63)
    return x if is_kept else str(x)


def as_duckdb(folder, kind, values):
    with duckdb.connect(f"{folder}/t.duckdb") as connection:
        connection.register("rows", as_arrow(folder, kind, values))
        connection.execute("CREATE TABLE t AS SELECT * FROM rows")
    return f"{folder}/t.duckdb"


def as_pandas(**how):
    return lambda *table: as_arrow(*table).to_pandas(**how)  # integers with a gap become floats


def as_categories(folder, kind, values):
    return as_arrow(folder, kind, values).to_pandas().astype({"x": "category"})


def as_inferred(folder, kind, values):
    return pd.DataFrame({"row": range(len(values)), "x": values})


def as_objects(folder, kind, values):
    return as_inferred(folder, kind, pd.Series(values, dtype=object))


SOURCES = {
    "CSV": as_csv,
    "Parquet": as_parquet,
    "SQLite without a type": as_sqlite(""),
    "SQLite NUMERIC": as_sqlite("NUMERIC"),
    "SQLite TEXT": as_sqlite("TEXT"),
    "SQLite REAL": as_sqlite("REAL"),
    "DuckDB": as_duckdb,
    "pandas": as_pandas(),
    "pandas, Arrow types": as_pandas(types_mapper=pd.ArrowDtype),
    "pandas, categories": as_categories,
    "pandas, inferred": as_inferred,
    "pandas, objects": as_objects,
    "polars": lambda *table: pl.from_arrow(as_arrow(*table)),
    "Arrow": as_arrow,
}
TAKE_MIXED = [
    name for name in SOURCES if "SQLite" in name or name in ("CSV", *list(SOURCES)[10:12])
]


def codes_of_rows(source, kind, number, values):
    """The code of each row in one of the domains of a type; None for a row that is dropped."""
    domain = domains(kind)[number]
    with TemporaryDirectory() as folder:
        data = SOURCES[source](folder, kind, values)
        if isinstance(data, str):
            name = "t" if data.endswith("db") else None
            table = SparseTable.read(data, domain, Bound(), table=name)
        else:
            table = SparseTable.from_frame(data, domain, Bound())
    rows, codes = np.divmod(table.keys, domain.size // ROWS)
    code_of = dict(zip(rows.tolist(), codes.tolist(), strict=True))
    return [code_of.get(row) for row in range(len(values))]


@cache
def code_alone(source, kind, number, written, value):
    """The code of a row alone; `written` keeps 1, 1.0 and True apart."""
    return codes_of_rows(source, kind, number, [value])[0]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Batches of a few rows, so that rows of one table are in several."""
    monkeypatch.setattr(sources, "_BLOCK", 64)
    monkeypatch.setattr(sources, "BATCH", 3)
    monkeypatch.setattr(database, "_ROWS", 3)


@pytest.mark.parametrize("examples", [40, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("source", SOURCES)
def test_a_row_has_the_label_that_it_has_alone(source, examples):
    """Hence a row more changes no label of the rows before it."""
    kinds = [*TYPES, *["mixed"] * len(TYPES)] if source in TAKE_MIXED else [*TYPES]

    @given(data=st.data())
    @settings(
        max_examples=examples // 4 if source == "DuckDB" else examples,
        deadline=None,
        derandomize=True,
    )
    def check(data):
        kind = data.draw(st.sampled_from(kinds))
        known = MIXED if kind == "mixed" else TYPES[kind][1]
        values = data.draw(st.lists(st.sampled_from([None, *known]), min_size=1, max_size=ROWS))
        number = data.draw(st.sampled_from([0, 0, *range(len(domains(kind)))]))
        alone = [code_alone(source, kind, number, repr(x), x) for x in values]
        try:
            together = codes_of_rows(source, kind, number, values)
        except ValueError as e:
            assert kind == "mixed" and "need values of one type" in str(e)
        else:
            assert together == alone

    check()


def test_a_number_has_one_label_in_every_type():
    rule = Labels((0.5, 1.0, 3.0), column="x", **LABEL)
    domain = Domain.from_dict({"x": rule})
    for values in (
        [3, 1],
        [3.0, 1.0],
        ["3", "1"],
        ["3.0", "1.00"],
        list(map(Decimal, ("3.00", "1"))),
    ):
        for frame in (
            pd.DataFrame({"x": values}),
            pl.DataFrame({"x": values}),
            pa.table({"x": values}),
        ):
            assert domain.frame(
                SparseTable.from_frame(frame, domain, Bound()).keys
            ).x.tolist() == ["1.0", "3.0"]


def test_a_long_number_is_the_same_with_a_point():
    labels = Labels((str(BEYOND), "x"))
    texts = [str(BEYOND), f"{BEYOND}.0", f"{BEYOND}.00", "1e5", "-0", "0"]
    for rule, places in (
        (labels, [0, 0, 0, -1, -1, -1]),
        (Labels(range(9)), [-1, -1, -1, -1, 0, 0]),
    ):
        assert rule.codes(pl.Series("x", texts)).tolist() == places


def test_a_label_of_others_is_not_moved_by_the_first_half_star(tmp_path):
    """Stars are declared NUMERIC, so SQLite stores 1.0 as the integer 1."""
    domain = Domain.from_dict({"stars": {"labels": [0.5, 1.0, 1.5, 2.0], "other": "drop"}})
    path = tmp_path / "ratings.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE ratings (user TEXT, stars NUMERIC)")
        rows = [(f"u{number}", 1.0 + number % 2) for number in range(1000)]
        connection.executemany("INSERT INTO ratings VALUES (?, ?)", rows)
    for half_stars in (0, 1):
        table = SparseTable.read(path, domain, Bound(1, 1), user="user", table="ratings")
        cells = dict(zip(table.keys.tolist(), table.counts.tolist(), strict=True))
        assert cells == {0: half_stars, 1: 500, 3: 500} if half_stars else {1: 500, 3: 500}
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("INSERT INTO ratings VALUES ('another', 0.5)")


def test_a_float_that_may_be_a_rounded_integer_is_refused():
    """pandas makes floats of integers as soon as one is missing."""
    for rule in (
        Labels((BEYOND, 1)),
        Labels(range(BEYOND, BEYOND + 9)),
        Labels((float(2**54), 0.5)),
    ):
        domain = Domain.from_dict({"x": replace(rule, other="label", missing="label")})
        whole = SparseTable.from_frame(pd.DataFrame({"x": [BEYOND]}), domain, Bound())
        assert whole.keys.tolist() == [2 if 0.5 in rule.labels else 0]
        frame = pd.DataFrame({"x": [2**54 if 0.5 in rule.labels else BEYOND, None]})
        with pytest.raises(ValueError, match="column 'x' holds .* may be a rounded integer"):
            SparseTable.from_frame(frame, domain, Bound())
        frame = frame.astype({"x": "Int64"})
        assert SparseTable.from_frame(frame, domain, Bound()).total == 2


ODD = [None, 0.5, "x", True, BEYOND, 2**64, date(2025, 3, 1)]


@pytest.mark.parametrize("other", ODD, ids=str)
@pytest.mark.parametrize("values", [[12, 34], [True, 12], ["12", "x"], [BEYOND, 12]], ids=str)
def test_a_value_of_a_list_is_read_as_it_is_alone(values, other):
    """The type that fits all values of a list would change the text of some, and True equals 1."""
    labels = ("12", "34", "True", "x", "1", str(BEYOND))
    domain = Domain(("x",), (len(labels),), (labels,))
    tree = Taxonomy([("all of them", None), *((x, "all of them") for x in labels)])

    def found(values):
        column = pd.Series(values, dtype=object)
        codes = [domain.encode("x", x) for x in (values, tuple(values), column)]
        trees = [tree.encode(values)[1], tree.encode(column)[1]]
        return np.stack([*codes, *trees, Attributes(domain).encode(column.to_frame("x"))[1]])

    def words(values):
        present = [x for x in values if x is not None]
        return {*UnlistedValues.from_values("x", present, Bound()).labels}

    expected = found(values)
    assert (found([*values, other])[:, :-1] == expected).all()
    assert (found([other, *values])[:, 1:] == expected).all()
    assert words(values) <= words([other, *values])


def test_keys_of_records_are_no_function_of_other_rows():
    """A fraction turns a column of integers into floats, whose text would be "12.0"."""
    tree = Prefixes("0123456789.", 4)
    for prefixes in ([12, 34], [12, 34, 0.5]):
        records = Records.read(pd.DataFrame({"string": prefixes}), tree, Bound())
        keys, _ = tree.encode(list(map(str, prefixes)))
        assert sorted(records.keys[0].tolist()) == sorted(keys[0].tolist())
