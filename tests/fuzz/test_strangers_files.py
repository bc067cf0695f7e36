"""Files of strangers: whatever they hold, they are read, or refused in words; nothing else happens."""

import gzip
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

from tests.fuzz.banks import session_files
from tests.fuzz.damage import as_text
from tests.fuzz.format import DOMAIN
from tests.fuzz.formats import FORMATS
from tests.fuzz.run import emptied, limited, looked_for_in
from tests.fuzz.saved import parquet_bytes, releases
from tests.fuzz.stated import pack_zstd
from workbench import DP, Bound, Domain, Release, SparseTable, estimates, mechanisms
from workbench.data import sources
from workbench.estimates.release_files import read_release
from workbench.mechanisms.laws import seeded
from workbench.owner import Session, ledger
from workbench.queries.stated import read_queries

QUICK = {"release": 30, "release-csv": 15, "session": 6}


@pytest.fixture
def place(tmp_path, monkeypatch):
    return looked_for_in(tmp_path, monkeypatch)


def fuzz(kind, place, monkeypatch, examples, number=None):
    """Damaged files of a kind, each of them used."""
    kind.patch(monkeypatch)

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=[*HealthCheck],
    )
    @given(st.data())
    def every(data):
        emptied(place)
        kind.write(place, data.draw)
        try:
            with limited():
                kind.use(place)
        except (ValueError, OSError):  # FileNotFoundError is one
            pass

    (every if number is None else seed(number)(every))()


@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_read_or_refused(name, place, monkeypatch):
    fuzz(FORMATS[name], place, monkeypatch, QUICK.get(name, 25))


def test_a_file_of_very_many_rows_is_refused_before_they_are_read(tmp_path):
    """Sixteen million zeros are half a kilobyte of Parquet."""
    table, record = releases()[0]
    rows = pa.table({name: pa.array(np.zeros(2**24, np.int8)) for name in table.column_names})
    rows = rows.replace_schema_metadata({"workbench": as_text(record)})
    path = tmp_path / "a.parquet"
    pq.write_table(
        rows, path, row_group_size=2**24, max_rows_per_page=2**30, write_batch_size=2**24
    )
    with pytest.raises(ValueError, match="values are too many for a packed file"):
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
        packs = {"csv": bytes, "csv.gz": gzip.compress, "csv.zst": pack_zstd}
        path.write_bytes(packs[ending](b"a\n" + b"1\n" * rows))
    assert SparseTable.read(path, domain, Bound()).total == rows
    monkeypatch.setitem(sources._FEW, "bytes", 2**20)
    monkeypatch.setitem(sources._FEW, "rows", 2**19)
    monkeypatch.setattr(sources, "_TIMES", 4)
    if ending == "csv":
        assert SparseTable.read(path, domain, Bound()).total == rows
        return
    with pytest.raises(ValueError, match="are too many for a packed file of"):
        SparseTable.read(path, domain, Bound())


@pytest.mark.parametrize(("column", "text"), [("a", "x"), ("u", "x")])
def test_a_long_text_in_very_many_rows_is_held_once(tmp_path, column, text):
    """Some kilobytes of Parquet, as others write it, are ten gigabytes of rows."""
    rows = 2**20
    places = pa.array(np.zeros(rows, np.int32))
    columns = {"a": np.zeros(rows, np.int8), "u": np.zeros(rows, np.int8)}
    columns[column] = pa.DictionaryArray.from_arrays(places, [text * 10_000])
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns), path, store_schema=False)
    assert path.stat().st_size < 2**20
    with limited():
        if column == "u":
            table = SparseTable.read(path, Domain(("a",), (3,)), Bound(1, 1), user="u")
            assert table.total == 1
        else:
            with pytest.raises(ValueError, match="10,000 characters"):
                SparseTable.read(path, Domain(("a",), (3,)), Bound(1, 1), user="u")


def release_of_rows(path, rows, **how):
    """A release file of these rows, as another program writes it, with the record of one of ours."""
    record = as_text(releases()[0][1]).decode()
    with pq.ParquetWriter(path, rows.schema, store_schema=False, **how) as writer:
        writer.write_table(rows, row_group_size=len(rows))
        writer.add_key_value_metadata({"workbench": record})
    return path


def test_a_release_of_a_long_text_in_very_many_rows_is_refused(tmp_path):
    places = pa.array(np.zeros(2**20, np.int32))
    for texts in (["x" * 10_000], pa.array(["x" * 10_000], pa.large_string())):
        text = pa.DictionaryArray.from_arrays(places, texts)
        path = release_of_rows(tmp_path / "a.parquet", pa.table({"a": text}))
        with limited(), pytest.raises(ValueError, match="bytes are too many for a packed"):
            Release.load(path)


def test_a_release_of_endless_pages_is_refused_before_they_are_unpacked(tmp_path):
    rows = pa.table({"a": ["x" * 2**24] * 17})
    path = release_of_rows(
        tmp_path / "a.parquet", rows, use_dictionary=False, compression="zstd"
    )
    assert path.stat().st_size < 2**16
    for read in (Release.load, lambda path: SparseTable.read(path, DOMAIN, Bound())):
        with limited(), pytest.raises(ValueError, match="bytes are too many for a packed file"):
            read(path)


@pytest.mark.parametrize("columns", [1, 64])
def test_a_release_of_one_endless_row_group_is_refused(tmp_path, monkeypatch, columns):
    rows = 2**22 if columns == 1 else 2**19
    zeros = np.zeros(rows, bool)
    table = pa.table({f"a{i}": zeros for i in range(columns)})
    path = release_of_rows(tmp_path / "a.parquet", table, compression="zstd")
    monkeypatch.setitem(sources._FEW, "values", 2**20)
    monkeypatch.setattr(sources, "_TIMES", 4)
    with pytest.raises(ValueError, match="values are too many for a packed file"):
        read_release(path)


@pytest.mark.parametrize("kind", [pa.binary(), pa.list_(pa.int8()), pa.decimal128(9)])
def test_a_release_has_no_columns_of_other_kinds(tmp_path, kind):
    path = release_of_rows(tmp_path / "a.parquet", pa.table({"a": pa.nulls(3, kind)}))
    with pytest.raises(ValueError, match="column 'a' holds .*, which no release has"):
        Release.load(path)


@pytest.mark.parametrize("text", [b"a," * 2**22, b"a" * 2**23], ids=["fields", "field"])
def test_a_line_that_no_table_has_is_refused_before_it_is_read(tmp_path, text):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(text, 1))
    with pytest.raises(ValueError, match="more than 4,194,304 characters a line"):
        SparseTable.read(path, DOMAIN, Bound())


@pytest.mark.parametrize("name", ["/dev/zero", "labels.txt"])
def test_a_release_names_no_file_to_read(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels.txt").write_text("a\nb\n")
    table, record = releases()[0]
    domain = {"home": {"file": name}}
    record = record | {"estimate": record["estimate"] | {"domain": domain}}
    refused(tmp_path, table, record, "is not read: need its labels")


@pytest.mark.parametrize("kind", ["sketch", "projection"])
def test_a_release_whose_hashed_places_are_none_is_refused(tmp_path, kind):
    """Compiled loops would read beyond it."""
    table, record = first_of(kind)
    refused(tmp_path, table.slice(0, 0), record, "not allowed: need")


def _constant(number):
    return lambda column: pa.array([number] * len(column), column.type)


def _of_type(dtype):
    return lambda column: pa.array(column.to_numpy().astype(dtype))


def refused(tmp_path, table, record, need):
    """A release of these rows, with this record, is refused with these words."""
    (tmp_path / "a.parquet").write_bytes(parquet_bytes(table, record))
    with limited(), pytest.raises(ValueError, match=need):
        Release.load(tmp_path / "a.parquet")


def first_of(kind):
    """A release of this kind."""
    return next(each for each in releases() if each[1]["kind"] == kind)


@pytest.mark.parametrize(
    ("kind", "column", "change", "need"),
    [
        ("summary", "noisy", _constant(2**63 - 1), "integers up to 2\\^62"),
        ("summary", "noisy", _of_type(np.uint64), "numbers that may be below 0"),
        ("tree", "node", _constant(7), "sorted ones, each once"),
        ("tree", "node", lambda x: pa.array(np.arange(len(x)) + 10**6), "numbers from 0 to"),
        ("leaves", "level", _constant(99), "those of nodes of the hierarchy"),
        ("leaves", "level", _constant(-1), "those of nodes of the hierarchy"),
        ("leaves", "level", _constant(0), "those of nodes|disjoint nodes"),
        ("leaves", "key0", _of_type(float), "integers"),
        ("leaves", "key0", lambda x: pa.array(x.to_numpy()[::-1]), "those of nodes|disjoint"),
        ("model", "potential", _constant(math.inf), "finite numbers up to"),
        ("model", "potential", _constant(math.nan), "finite numbers up to"),
        ("model", "share", _constant(1e308), "numbers from 0 to 1"),
        ("partition", "hi0", _constant(0), "boxes of at least one cell"),
        ("partition", "hi0", _constant(99), "boxes of at least one cell"),
        ("reports", "noisy", _constant(2**40), "together at most 67,108,864"),
        ("reports", "noisy", _constant(0), "numbers above 0"),
        ("sequence", "noisy", _constant(1e300), "finite numbers up to 10\\^100"),
    ],
)
def test_rows_that_no_release_has_are_refused(tmp_path, kind, column, change, need):
    of_kind = [each for each in releases() if each[1]["kind"] == kind and len(each[0]) > 1]
    for table, record in of_kind:
        at = table.column_names.index(column)
        changed = change(table[column].combine_chunks())
        refused(tmp_path, table.set_column(at, column, changed), record, need)


@pytest.mark.parametrize(
    ("kind", "field", "strange", "need"),
    [
        ("summary", "tau", 2**64, r"\$.estimate.tau: expected an integer <= 46116860"),
        ("summary", "decay", 5e-324, "need a finite rate of at least"),
        ("summary", "decay", math.inf, "Infinity is not a number that JSON has"),
        ("answers", "domain", {"home": 2**31}, "factors of 2,147,483,648 values are too many"),
        (
            "sequence",
            "variance",
            1e200,
            r"a.parquet: \$.estimate.variance: expected a number <= 1e",
        ),
        (
            "model",
            "prior",
            [[None, 0.5, 0.5], [1 / 24] * 24],
            r"prior\[\d\]\[\d\]: expected a number",
        ),
        (
            "model",
            "prior",
            [[2, 0.5, 0.5], [1 / 24] * 24],
            r"prior\[\d\]\[\d\]: expected a number <= 1",
        ),
        ("reports", "kept", [], "a chance above 0 of each attribute"),
        ("reports", "kept", [0.5, 0.0], r"kept\[\d\]: expected a number > 0"),
        ("reports", "kept", [0.5, "a"], r"kept\[\d\]: expected a number, got text"),
        ("summary", "decay", 10**400, "a number of 401 digits"),
        ("sequence", "variance", -(10**400), "a number of 402 digits"),
        ("tree", "transform", {}, r"\$.estimate.transform: 'name' is missing or unknown"),
        ("tree", "transform", {"name": "x"}, r"transform: 'x' is missing or unknown"),
        (
            "tree",
            "colour",
            1,
            r"a.parquet: \$.estimate: Object contains unknown field `colour`",
        ),
        ("tree", "decay", None, "decay: expected a number or an object, got null"),
    ],
)
def test_a_field_out_of_its_range_is_refused(tmp_path, kind, field, strange, need):
    table, record = first_of(kind)
    record = record | {"estimate": record["estimate"] | {field: strange}}
    refused(tmp_path, table, record, need)


@pytest.mark.parametrize("bound", [{}, [], False, "", {"l0": 1}])
def test_a_release_whose_bound_is_none_is_refused(tmp_path, bound):
    table, record = releases()[0]
    refused(tmp_path, table, record | {"bound": bound}, r"a.parquet: \$.bound")


@pytest.mark.parametrize(
    ("text", "twice", "said"),
    [
        ('"simulated": ', '"simulated": false, "simulated": ', "'simulated' stands twice"),
        ('"epsilon": ', '"epsilon": 0.1, "epsilon": ', "'epsilon' stands twice"),
        (
            '"delta": 0.0',
            '"delta": false',
            r"\$.ledger\[\d\].cost.delta: expected a number, got true or false",
        ),
        ('"linf": 1', '"linf": true', r"\$.bound.linf: expected a number, got true or false"),
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
        changed = {"workbench": content.replace(text, twice)}
        pq.write_table(pq.read_table(path).replace_schema_metadata(changed), path)
    assert text in content
    with pytest.raises(ValueError, match=said):
        Release.load(path)


@pytest.mark.parametrize("total", [[-1], -0.0, "9", True, 1e-300, 1e300, 10**400])
def test_a_session_whose_total_is_none_is_refused(tmp_path, total):
    for name, content in session_files().items():
        (tmp_path / name).write_bytes(content)
    with closing(sqlite3.connect(tmp_path / "a.session")) as db:
        texts = dict(db.execute("SELECT name, value FROM about WHERE name <> 'checksum'"))
        db.execute("DELETE FROM about")
        about = {n: json.loads(text) for n, text in texts.items()}
        ledger._write_about(db, about | {"total": total})
        db.commit()
    with pytest.raises(ValueError, match=r"total = |\$\.total"):
        Session.open(tmp_path / "a.session")


def test_releases_of_every_kind_are_damaged(tmp_path):
    assert {record["kind"] for _, record in releases()} == {
        *(cls.kind for cls in estimates.ALL),
        "model",
    }


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
    with pytest.raises(ValueError) as raised:
        SparseTable.read(_csv_of(tmp_path, domain), domain, Bound())
    shown.append(str(raised.value))
    assert "\\x1b[2J" in shown[0] and not [text for text in shown if "\x1b" in text]


def _csv_of(folder, domain):
    path = folder / "rows.csv"
    pl.DataFrame({name: ["none"] for name in domain.attributes}).write_csv(path)
    return path


def test_what_leads_to_no_file_is_not_read(tmp_path):
    (tmp_path / "d.json").symlink_to("/dev/zero")
    with limited(), pytest.raises(FileNotFoundError, match="no such domain file"):
        Domain.read(tmp_path / "d.json")
    with limited(), pytest.raises(FileNotFoundError, match="no such file of queries"):
        read_queries(str(tmp_path / "d.json"), DOMAIN)


def test_a_domain_reads_labels_from_files_alone(tmp_path):
    (tmp_path / "d.json").write_text('{"home": {"file": "/dev/zero"}}')
    with pytest.raises(ValueError, match="no such file"):
        Domain.read(tmp_path / "d.json")


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_many_damaged_files_are_read_or_refused(name, place, monkeypatch):
    fuzz(FORMATS[name], place, monkeypatch, 10 * QUICK.get(name, 25), 1)


@pytest.mark.long
@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_for_ten_minutes(name, place, monkeypatch):
    """Under seeds of the system; FUZZ_MINUTES of processor time, if not ten."""
    end = time.process_time() + 60 * float(os.environ.get("FUZZ_MINUTES", "10"))
    while time.process_time() < end:
        fuzz(FORMATS[name], place, monkeypatch, 200, secrets.randbits(48))


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
