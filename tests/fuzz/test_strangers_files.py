"""Files of strangers: whatever they hold, they are read, or refused in words; nothing else happens."""

import json
import math
import os
import secrets
import sqlite3
import time
from contextlib import closing

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.damage import PACKS, as_text, parquet_bytes, write_damaged
from tests.fuzz.formats import DOMAIN, FORMATS, saved, session_files
from tests.fuzz.run import emptied, limited, looked_for_in
from workbench import DP, Bound, Domain, Release, SparseTable, estimates, mechanisms
from workbench.data import sources
from workbench.mechanisms.laws import seeded
from workbench.owner import Session, ledger
from workbench.queries.stated import read_queries

# Damage may leave nothing but the names of columns, which is allowed.
NO_ROWS = pytest.mark.filterwarnings("ignore:.*has no row below the names")
QUICK = {"release": 30, "release-csv": 15, "session": 6}


@pytest.fixture
def place(tmp_path, monkeypatch):
    return looked_for_in(tmp_path, monkeypatch)


def fuzz(name, place, monkeypatch, examples, number=None):
    """Damaged files of a kind, each of them used."""
    kind = FORMATS[name]
    kind.patch(monkeypatch)
    wholes = kind.wholes()

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=[*HealthCheck],
    )
    @given(st.data())
    def every(data):
        emptied(place)
        write_damaged(place, wholes, data.draw)
        try:
            with limited():
                kind.use(place)
        except (ValueError, OSError):  # FileNotFoundError is one
            pass

    (every if number is None else seed(number)(every))()


@NO_ROWS
@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_read_or_refused(name, place, monkeypatch):
    fuzz(name, place, monkeypatch, QUICK.get(name, 25))


@NO_ROWS
@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_many_damaged_files_are_read_or_refused(name, place, monkeypatch):
    fuzz(name, place, monkeypatch, 10 * QUICK.get(name, 25), 1)


@NO_ROWS
@pytest.mark.long
@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_for_ten_minutes(name, place, monkeypatch):
    """Under seeds of the system; FUZZ_MINUTES of processor time, if not ten."""
    end = time.process_time() + 60 * float(os.environ.get("FUZZ_MINUTES", "10"))
    while time.process_time() < end:
        fuzz(name, place, monkeypatch, 200, secrets.randbits(48))


def test_releases_of_every_kind_are_damaged():
    kinds = {cls.kind for cls in estimates.ALL}
    assert {record["kind"] for _, record in saved()} == kinds | {"model", "tree-model"}


# Few bytes that hold very much


def long_text(rows, text):
    places = pa.array(np.zeros(rows, np.int32))
    return pa.DictionaryArray.from_arrays(places, text)


ONE = ["x" * 10_000]
PLAIN = {"use_dictionary": False, "compression": "zstd"}
ENDLESS = {
    "long text": (lambda: {"a": long_text(2**20, ONE)}, {}, "bytes"),
    "large text": (
        lambda: {"a": long_text(2**20, pa.array(ONE, pa.large_string()))},
        {},
        "bytes",
    ),
    "pages": (lambda: {"a": ["x" * 2**24] * 17}, PLAIN, "bytes"),
    "values": (lambda: {"a": np.zeros(2**24, np.int8)}, {}, "values"),
    "rows": (lambda: {"a": np.zeros(2**22, bool)}, {"compression": "zstd"}, "values"),
    "columns": (
        lambda: {f"a{i}": np.zeros(2**19, bool) for i in range(64)},
        {"compression": "zstd"},
        "values",
    ),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_small_release_that_holds_very_much_is_refused(tmp_path, monkeypatch, name):
    """As another program writes it, with the record of one of ours, and before it is unpacked."""
    columns, how, what = ENDLESS[name]
    path = release_of(tmp_path, pa.table(columns()), **how)
    assert path.stat().st_size < 2**20
    if what == "values":
        monkeypatch.setitem(sources._FEW, "values", 2**20)
        monkeypatch.setattr(sources, "_TIMES", 4)
    with limited(), pytest.raises(ValueError, match=f"{what} are too many for a packed file"):
        Release.load(path)


def release_of(folder, rows, **how):
    path = folder / "a.parquet"
    with pq.ParquetWriter(path, rows.schema, store_schema=False, **how) as writer:
        writer.write_table(rows, row_group_size=len(rows))
        writer.add_key_value_metadata({"workbench": as_text(saved()[0][1]).decode()})
    return path


def test_a_table_of_endless_pages_is_refused_before_they_are_unpacked(tmp_path):
    path = release_of(tmp_path, pa.table(ENDLESS["pages"][0]()), **PLAIN)
    with limited(), pytest.raises(ValueError, match="bytes are too many for a packed file"):
        SparseTable.read(path, DOMAIN, Bound())


@pytest.mark.parametrize("kind", [pa.binary(), pa.list_(pa.int8()), pa.decimal128(9)])
def test_a_release_has_no_columns_of_other_kinds(tmp_path, kind):
    path = release_of(tmp_path, pa.table({"a": pa.nulls(3, kind)}))
    with pytest.raises(ValueError, match="column 'a' has type .*, which no release has"):
        Release.load(path)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.zst", "parquet"])
def test_a_small_file_of_very_many_rows_is_no_table(tmp_path, monkeypatch, ending):
    """Plain text is as large as it is; of packed rows only so many a byte are read."""
    domain = Domain(("a",), (3,))
    path = tmp_path / f"a.{ending}"
    rows = 2**21
    if ending == "parquet":
        pq.write_table(pa.table({"a": np.zeros(rows, np.int8)}), path)
    else:
        path.write_bytes(PACKS[ending.removeprefix("csv")][0](b"a\n" + b"1\n" * rows))
    assert SparseTable.read(path, domain, Bound()).total == rows
    monkeypatch.setitem(sources._FEW, "bytes", 2**20)
    monkeypatch.setitem(sources._FEW, "rows", 2**19)
    monkeypatch.setattr(sources, "_TIMES", 4)
    if ending == "csv":
        assert SparseTable.read(path, domain, Bound()).total == rows
        return
    with pytest.raises(ValueError, match="are too many for a packed file of"):
        SparseTable.read(path, domain, Bound())


@pytest.mark.parametrize("column", ["a", "u"])
def test_a_long_text_in_very_many_rows_is_held_once(tmp_path, column):
    """Some kilobytes of Parquet, as others write it, are ten gigabytes of rows."""
    columns = {"a": np.zeros(2**20, np.int8), "u": np.zeros(2**20, np.int8)}
    columns[column] = long_text(2**20, ONE)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path, store_schema=False)
    with limited():
        if column == "u":
            table = SparseTable.read(path, Domain(("a",), (3,)), Bound(1, 1), user="u")
            assert table.total == 1
        else:
            with pytest.raises(ValueError, match="10,000 characters"):
                SparseTable.read(path, Domain(("a",), (3,)), Bound(1, 1), user="u")


@pytest.mark.parametrize("text", [b"a," * 2**22, b"a" * 2**23], ids=["fields", "field"])
def test_a_line_that_no_table_has_is_refused_before_it_is_read(tmp_path, text):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(PACKS[".gz"][0](text))
    with pytest.raises(
        ValueError, match="does not end within 4,194,304 characters|field larger"
    ):
        SparseTable.read(path, DOMAIN, Bound())


# Rows and records that no release has


def rows(name, change):
    """A column is another one."""

    def changed(table, record):
        column = change(table[name].combine_chunks())
        return table.set_column(table.column_names.index(name), name, column), record

    return changed


def number(x):
    return lambda column: pa.array([x] * len(column), column.type)


def typed(dtype):
    return lambda column: pa.array(column.to_numpy().astype(dtype))


def field(name, value):
    """A field of the estimate has another value."""
    return lambda table, record: (
        table,
        record | {"estimate": record["estimate"] | {name: value}},
    )


def bound(value):
    return lambda table, record: (table, record | {"bound": value})


def no_rows(table, record):
    return table.slice(0, 0), record


STRANGE = [
    ("summary", rows("noisy", number(2**63 - 1)), "integers up to 2\\^62"),
    ("summary", rows("noisy", typed(np.uint64)), "numbers that may be below 0"),
    ("tree", rows("node", number(7)), "sorted ones, each once"),
    ("tree", rows("node", lambda x: pa.array(np.arange(len(x)) + 10**6)), "numbers from 0 to"),
    ("leaves", rows("level", number(99)), "those of nodes of the hierarchy"),
    ("leaves", rows("level", number(-1)), "those of nodes of the hierarchy"),
    ("leaves", rows("level", number(0)), "those of nodes|disjoint nodes"),
    ("leaves", rows("key0", typed(float)), "integers"),
    ("leaves", rows("key0", lambda x: x.take(pa.array(range(len(x))[::-1]))), "nodes|disjoint"),
    ("model", rows("potential", number(math.inf)), "finite numbers up to"),
    ("model", rows("potential", number(math.nan)), "finite numbers up to"),
    ("model", rows("share", number(1e308)), "numbers from 0 to 1"),
    ("partition", rows("hi0", number(0)), "boxes of at least one cell"),
    ("partition", rows("hi0", number(99)), "boxes of at least one cell"),
    ("reports", rows("noisy", number(2**40)), "together at most 67,108,864"),
    ("reports", rows("noisy", number(0)), "numbers above 0"),
    ("sequence", rows("noisy", number(1e300)), "finite numbers up to 10\\^100"),
    ("sketch", no_rows, "at least one bucket"),  # compiled loops would read beyond it
    ("projection", no_rows, "not allowed: need"),
    ("summary", field("tau", 2**64), r"\$.estimate.tau: Expected `int` <= 46116860"),
    ("summary", field("decay", 5e-324), "need a finite rate of at least"),
    ("summary", field("decay", math.inf), "Infinity is not a number that JSON has"),
    ("summary", field("decay", 10**400), "a number of 401 digits"),
    ("summary", field("domain", {"home": {"file": "/dev/zero"}}), "not read: need its labels"),
    ("summary", field("domain", {"home": {"file": "labels.txt"}}), "not read: need its labels"),
    (
        "answers",
        field("domain", {"home": 2**31}),
        "factors with 2,147,483,648 values are too large",
    ),
    ("sequence", field("variance", 1e200), r"\$.estimate.variance: Expected `float` <= 1e"),
    ("sequence", field("variance", -(10**400)), "a number of 402 digits"),
    (
        "model",
        field("prior", [[None, 1, 1], [1] * 24]),
        r"prior\[\d\]\[\d\]: Expected `float`",
    ),
    ("model", field("prior", [[2, 1, 1], [1] * 24]), r"\[\d\]\[\d\]: Expected `float` <= 1"),
    ("reports", field("kept", []), "a chance above 0 of each attribute"),
    ("reports", field("kept", [0.5, 0.0]), r"kept\[\d\]: Expected `float` > 0"),
    ("reports", field("kept", [0.5, "a"]), r"kept\[\d\]: Expected `float`, got `str`"),
    ("tree", field("transform", {}), r"\$.estimate.transform: 'name' is missing or unknown"),
    ("tree", field("transform", {"name": "x"}), r"transform: 'x' is missing or unknown"),
    ("tree", field("colour", 1), r"\$.estimate: Object contains unknown field `colour`"),
    ("tree", field("decay", None), "decay: Expected `float . object`, got `null`"),
    *(("summary", bound(x), r"a.parquet: \$.bound") for x in ({}, [], False, "", {"l0": 1})),
]


@pytest.mark.parametrize(("kind", "change", "need"), STRANGE)
def test_what_no_release_has_is_refused(tmp_path, monkeypatch, kind, change, need):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.txt").write_text("a\nb\n")
    of_kind = [each for each in saved() if each[1]["kind"] == kind and len(each[0]) > 1]
    for table, record in of_kind if "rows" in repr(change) else of_kind[:1]:
        table, record = change(table, record)
        (tmp_path / "a.parquet").write_bytes(parquet_bytes(table, as_text(record)))
        with limited(), pytest.raises(ValueError, match=need):
            Release.load(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("text", "twice", "said"),
    [
        ('"simulated": ', '"simulated": false, "simulated": ', "'simulated' occurs twice"),
        ('"epsilon": ', '"epsilon": 0.1, "epsilon": ', "'epsilon' occurs twice"),
        (
            '"delta": 0.0',
            '"delta": false',
            r"\$.ledger\[\d\].cost.delta: Expected `float`, got `bool`",
        ),
        ('"linf": 1', '"linf": true', r"\$.bound.linf: Expected `float`, got `bool`"),
    ],
)
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_record_that_can_be_read_in_two_ways_is_refused(tmp_path, ending, text, twice, said):
    table = SparseTable.from_keys(DOMAIN, [1, 30], [40, 90], Bound(2, 1))
    path = tmp_path / f"a.{ending}"
    release = mechanisms.GeometricHistogram(DP(1.0))(table, seeded())
    release.save(path, simulated=True)
    if ending == "csv":
        record = path.with_name("a.csv.json")
        content = json.dumps(json.loads(record.read_text()))
        record.write_text(content.replace(text, twice))
    else:
        content = pq.read_schema(path).metadata[b"workbench"].decode()
        record = content.replace(text, twice).encode()
        path.write_bytes(parquet_bytes(pq.read_table(path), record))
    assert text in content
    with pytest.raises(ValueError, match=said):
        Release.load(path)


@pytest.mark.parametrize("total", [[-1], -0.0, "9", True, 1e-300, 1e300, 10**400])
def test_a_session_whose_total_is_none_is_refused(tmp_path, total):
    for name, content in session_files()[0].items():
        (tmp_path / name).write_bytes(content)
    with closing(sqlite3.connect(tmp_path / "a.session")) as db:
        texts = db.execute("SELECT * FROM about WHERE name <> 'checksum'")
        about = {name: json.loads(text) for name, text in texts}
        ledger._write_about(db, about | {"total": total})
        db.commit()
    with pytest.raises(ValueError, match=r"total = |\$\.total"):
        Session.open(tmp_path / "a.session")


# What is shown, and what is opened


def test_what_is_shown_of_a_release_moves_no_terminal(tmp_path):
    escape = "\x1b[2J\x1b]0;z\x07"
    domain = Domain((f"a{escape}", "b"), (2, 1), ((f"x{escape}", "y"), ("p",)))
    table = SparseTable.from_keys(domain, [0], [50], Bound())
    mechanisms.GeometricHistogram(DP(1.0))(table).save(tmp_path / "a.parquet")
    release = Release.load(tmp_path / "a.parquet")
    shown = [repr(release), repr(release.estimate)]
    for query in ({"c": "x"}, {f"a{escape}": "z"}, {"b": "q"}):
        with pytest.raises(ValueError, match="is not in the domain") as raised:
            release.answer([query])
        shown.append(str(raised.value))
    rows = tmp_path / "rows.csv"
    pl.DataFrame({name: ["none"] for name in domain.attributes}).write_csv(rows)
    with pytest.raises(ValueError) as raised:
        SparseTable.read(rows, domain, Bound())
    shown.append(str(raised.value))
    assert "\\x1b[2J" in shown[0] and not [text for text in shown if "\x1b" in text]


def test_what_leads_to_no_file_is_not_read(tmp_path):
    (tmp_path / "d.json").symlink_to("/dev/zero")
    with limited(), pytest.raises(FileNotFoundError, match="no such file"):
        Domain.read(tmp_path / "d.json")
    with limited(), pytest.raises(FileNotFoundError, match="d.json: no such file"):
        read_queries(str(tmp_path / "d.json"), DOMAIN)
    (tmp_path / "e.json").write_text('{"home": {"file": "/dev/zero"}}')
    with pytest.raises(ValueError, match="no such file"):
        Domain.read(tmp_path / "e.json")


@pytest.mark.parametrize("day", [2_932_896, 2_932_897, -719_162, -719_163, 10**8])
@pytest.mark.parametrize("kind", [pl.Date, pl.Datetime("us"), pl.Datetime("ms", "UTC")])
def test_times_in_years_that_python_has_not_are_refused_by_name(tmp_path, kind, day):
    """Years 1 to 9999 are refused too, as no time is a code here: with the row and the value."""
    ticks = {"us": 86_400 * 10**6, "ms": 86_400 * 10**3}
    ticks_a_day = 1 if kind == pl.Date else ticks[kind.time_unit]
    times = pl.Series("home", [day * ticks_a_day, None], pl.Int64).cast(kind)
    pl.DataFrame([times]).write_parquet(tmp_path / "a.parquet")
    far = not -719_162 <= day <= 2_932_896
    said = "column 'home' holds years outside 1 to 9999" if far else "row"
    with pytest.raises(ValueError, match=said):
        SparseTable.read(tmp_path / "a.parquet", Domain(("home",), (3,)), Bound(1, 1))
