"""Rows of every source, cut into batches anywhere, are counted as a loop over the rows counts them."""

import csv
import gzip
import io
import sqlite3
from collections import Counter
from concurrent.futures import thread as executors
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread, _DummyThread, current_thread

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench import Bound, Domain, SparseTable
from workbench.data import database, sources
from workbench.data.reading import _read_ahead, row_batches

LABELS = ("Bern", 'the "Hub", north', "Zürich", "東京", "two\nlines", "-1", "50", "x" * 300)
DOMAIN = Domain(("place", "age", "day"), (len(LABELS), 100, 3), (LABELS, None, (1, 5, 50)))
ROWS = st.lists(
    st.tuples(
        st.sampled_from(LABELS),
        st.integers(0, 99),
        st.sampled_from([1, 5, 50]),
        st.integers(0, 9) | st.just(2**40),
    ),
    min_size=1,
    max_size=40,
)
NAMES = ("place", "age", "day", "n")


def counted(rows, has_counts):
    """The table by a loop."""
    cells = Counter()
    for place, age, day, n in rows:
        key = (LABELS.index(place) * 100 + age) * 3 + [1, 5, 50].index(day)
        cells[key] += n if has_counts else 1
    return {key: n for key, n in cells.items() if n}


def as_dict(table):
    return dict(zip(table.keys.tolist(), table.counts.tolist(), strict=True))


def columns_of(rows):
    return dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))


def text_of(rows):
    text = io.StringIO()
    csv.writer(text).writerows([NAMES, *rows])
    return text.getvalue().encode()


def as_csv(folder, rows):
    (folder / "t.csv").write_bytes(text_of(rows))
    return folder / "t.csv"


def as_gzip(folder, rows):
    halves = text_of(rows)[:50], text_of(rows)[50:]  # two members, as `cat` joins them
    (folder / "t.csv.gz").write_bytes(b"".join(map(gzip.compress, halves)))
    return folder / "t.csv.gz"


def as_zstandard(folder, rows):
    (folder / "t.csv.zst").write_bytes(pa.compress(text_of(rows), "zstd", asbytes=True))
    return folder / "t.csv.zst"


def as_parquet(folder, rows):
    pq.write_table(pa.table(columns_of(rows)), folder / "t.parquet", row_group_size=7)
    return folder / "t.parquet"


def as_folder(folder, rows):
    inside = folder / "parts"
    inside.mkdir(exist_ok=True)
    for name in ("a", "b"):
        (inside / f"{name}.csv").write_bytes(text_of(rows[name == "b" :: 2]))
    return inside


def as_glob(folder, rows):
    as_folder(folder, rows)
    return str(folder / "parts" / "?.csv")


def as_sqlite(folder, rows):
    (folder / "t.db").unlink(missing_ok=True)
    with closing(sqlite3.connect(folder / "t.db")) as connection, connection:
        connection.execute('CREATE TABLE "odd "" name" (place, age, day, n)')
        connection.executemany('INSERT INTO "odd "" name" VALUES (?, ?, ?, ?)', rows)
    connection.close()
    return folder / "t.db"


def as_duckdb(folder, rows):
    import duckdb

    (folder / "t.duckdb").unlink(missing_ok=True)
    table = pa.table(columns_of(rows))
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("rows", table)
        connection.execute('CREATE TABLE "odd "" name" AS SELECT * FROM rows')
    return folder / "t.duckdb"


FILES = [as_csv, as_gzip, as_zstandard, as_parquet, as_folder, as_glob, as_sqlite, as_duckdb]
TABLES = {as_sqlite: 'odd " name', as_duckdb: 'odd " name'}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Batches of a few rows, so that their borders fall everywhere."""
    monkeypatch.setattr(sources, "_BLOCK", 2048)
    monkeypatch.setattr(sources, "BATCH", 3)
    monkeypatch.setattr(sources, "_ROWS", 3)
    monkeypatch.setattr(database, "_ROWS", 3)


@pytest.mark.parametrize("write", FILES)
@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=ROWS, has_counts=st.booleans())
def test_every_file_is_counted_as_a_loop_counts_it(write, rows, has_counts, tmp_path):
    path = write(tmp_path, rows)
    count = "n" if has_counts else None
    read = SparseTable.read(path, DOMAIN, Bound(), count=count, table=TABLES.get(write))
    assert as_dict(read) == counted(rows, has_counts)


@given(rows=ROWS, has_counts=st.booleans())
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_every_frame_is_counted_as_a_loop_counts_it(rows, has_counts):
    columns = columns_of(rows)
    table = pa.table(columns)
    categories = pd.DataFrame(columns).astype({"place": "category", "day": "category"})
    all_frames = [
        pd.DataFrame(columns),
        pd.DataFrame(columns, dtype=object),
        pd.DataFrame(columns).astype(
            {"age": float, "day": float, "n": float}
        ),  # as gaps make it
        categories,
        pl.DataFrame(columns),
        pl.DataFrame(columns).with_columns(pl.col("place").cast(pl.Categorical)),
        table,
        pa.concat_tables([table.slice(0, 1), table.slice(1)]),
        table.to_batches()[0],
    ]
    for frame in all_frames:
        count = "n" if has_counts else None
        read = SparseTable.from_frame(frame, DOMAIN, Bound(), count=count)
        assert as_dict(read) == counted(rows, has_counts)


def test_batches_of_csv_may_end_anywhere(tmp_path, monkeypatch):
    """Wherever a block ends: in a quoted field, between the two bytes of a line's end, in a letter."""
    rows = [("東京", 7, 50, 1), ("two\nlines", 8, 5, 2), ('the "Hub", north', 9, 1, 3)] * 3
    path = as_csv(tmp_path, rows)
    for block in range(40, 85):
        monkeypatch.setattr(sources, "_BLOCK", block)
        read = SparseTable.read(path, DOMAIN, Bound(), count="n")
        assert as_dict(read) == counted(rows, True)


FIELDS = ("plain", '5" pipe', '"two\nlines"', '"a ""b"", c"', '"q"tail"', '""', "\ufeffx")


@given(
    rows=st.lists(st.tuples(*[st.sampled_from(FIELDS)] * 2), max_size=9),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    block=st.integers(40, 80),
)
@settings(max_examples=100, deadline=None)
def test_rows_of_small_blocks_are_those_of_a_large_one(rows, end, block):
    """Arrow reads a large one, in which quotes within a field are text."""
    found = []
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as monkeypatch:
        path = Path(folder) / "t.csv"
        path.write_bytes(
            "".join(f"{','.join(row)}{end}" for row in [("a", "b"), *rows]).encode()
        )
        for size in (2**20, block):
            monkeypatch.setattr(sources, "_BLOCK", size)
            found.append([row for batch in row_batches(path) for row in batch.frame.rows()])
    assert found[0] == found[1] and len(found[0]) == sum(row != ('""',) * 2 for row in rows)


@pytest.mark.parametrize("write", [as_csv, as_gzip, as_zstandard])
def test_no_thread_of_a_library_reads_a_file(write, tmp_path, monkeypatch):
    """It would take the interpreter's lock while that ends, which aborts the process."""
    threads = []

    class Watched(sources.CountedFile):
        def read(self, size=-1):
            threads.append(current_thread())
            return super().read(size)

    monkeypatch.setattr(sources, "CountedFile", Watched)
    SparseTable.read(write(tmp_path, [("Bern", 1, 1, 1)] * 500), DOMAIN, Bound())
    assert threads and not [x for x in threads if isinstance(x, _DummyThread)]


@pytest.mark.parametrize("write", FILES)
def test_rows_left_unread_are_closed_within_the_start_of_a_thread(write, tmp_path, monkeypatch):
    """The garbage collector may close them there, in the thread that holds the lock of all executors."""
    rows = row_batches(write(tmp_path, [("Bern", 1, 1, 1)] * 500), table=TABLES.get(write))
    next(rows)

    def collected():
        with executors._global_shutdown_lock:
            rows.close()

    ends = Thread(target=collected, daemon=True)
    ends.start()
    ends.join(30)
    assert not ends.is_alive()


@pytest.mark.parametrize("write", [as_csv, as_gzip, as_zstandard, as_parquet, as_folder])
def test_progress_is_told_in_bytes_and_ends_where_the_files_end(tmp_path, write):
    path = write(tmp_path, [("Bern", age % 100, 5, 1) for age in range(400)])
    size = sum(file.stat().st_size for file in ([path] if path.is_file() else path.iterdir()))
    seen = []
    SparseTable.read(
        path, DOMAIN, Bound(), progress=lambda read, whole: seen.append((read, whole))
    )
    assert seen[-1] == (size, size)
    assert {whole for _, whole in seen} == {size}
    done = [read for read, _ in seen]
    assert done == sorted(done) and len(done) > 1


EMPTY = ["\n", ",,\n", ' ,"",\u00a0 \n']


@pytest.mark.parametrize("end", ["", *EMPTY, "1,2,\n"])
@pytest.mark.parametrize("empty", EMPTY)
def test_a_row_is_skipped_if_all_columns_of_the_file_are_empty(
    tmp_path, monkeypatch, empty, end
):
    monkeypatch.setattr(sources, "_BLOCK", 80)
    domain = Domain.from_dict({"x": {"from": 0, "to": 8, "missing": "label"}})
    path = tmp_path / "t.csv"
    noted = ",,note\n"  # x is missing in this row, and the row is none of the empty ones
    rows = "1,2,a\n" + empty * 9 + noted + empty * 9 + noted
    path.write_text("x,y,note\n" + rows + end, encoding="utf-8")
    table = SparseTable.read(path, domain, Bound())
    assert as_dict(table) == {1: 2 if end == "1,2,\n" else 1, 9: 2}
    refusing = Domain(("x",), (9,))
    with pytest.raises(ValueError, match="row 2, column 'x': found nothing"):
        SparseTable.read(path, refusing, Bound())


def test_a_row_more_never_counts_rows_before_it(tmp_path):
    """1,000 trips without an age are counted, whether or not a trip follows them."""
    domain = Domain.from_dict({"age": {"labels": ["young", "old"], "missing": "label"}})
    path = tmp_path / "t.csv"
    rows = "trip,age,fare\n" + "1,young,5\n" * 5 + "2,,7\n" * 1000
    for more, cells in (("", {0: 5, 2: 1000}), ("3,old,7\n", {0: 5, 1: 1, 2: 1000})):
        path.write_text(rows + more)
        assert as_dict(SparseTable.read(path, domain, Bound())) == cells


def test_a_blank_line_of_a_single_column_is_a_missing_value(tmp_path):
    path = tmp_path / "t.csv"
    for text, missing in (("x\n1\n1\n\n\n", 2), ("\n\nx\n1\n\n1\n", 1), ("x\n1\n1", 0)):
        path.write_text(text)
        labelled = Domain.from_dict({"x": {"from": 0, "to": 8, "missing": "label"}})
        cells = {1: 2, 9: missing} if missing else {1: 2}
        assert as_dict(SparseTable.read(path, labelled, Bound())) == cells
    path.write_text("x\n1\n\n1\n")
    with pytest.raises(ValueError, match="row 2, column 'x': found nothing"):
        SparseTable.read(path, Domain(("x",), (9,)), Bound())


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("1,2", "Expected 3 columns, got 2: 1,2"),
        (" ", "Expected 3 columns, got 1:  "),
        ("1,2,a,b", "Expected 3 columns, got 4: 1,2,a,b"),
        (",,,", "Expected 3 columns, got 4: ,,,"),
    ],
)
def test_a_row_of_another_width_is_refused(tmp_path, row, why):
    path = tmp_path / "t.csv"
    for after in ("", "1,2,c\n", ",,\n" * 9):
        path.write_text("x,y,note\n1,2,a\n\n" + row + "\n" + after)
        with pytest.raises(ValueError, match=f"t.csv: .*{why}.*need in each row"):
            SparseTable.read(path, Domain(("x",), (9,)), Bound())


@pytest.mark.parametrize("block", [40, 2**24])
def test_a_row_of_another_width_is_named_in_each_block(tmp_path, monkeypatch, block):
    monkeypatch.setattr(sources, "_BLOCK", block)
    path = tmp_path / "t.csv"
    path.write_text("\n\nx,note\n" + '1,a\n\n2,"b\nc"\n' * 25 + "1\n")
    with pytest.raises(ValueError, match="row 51: Expected 2 columns, got 1: 1"):
        SparseTable.read(path, Domain(("x",), (9,)), Bound())


def test_very_many_empty_lines_are_no_rows(tmp_path):
    path = tmp_path / "t.csv.gz"
    for lines in (b"\n" * 2**10, b"\n" * 2**25):
        path.write_bytes(gzip.compress(b"x,y\n1,1\n" + lines + b"2,2\n"))
        assert as_dict(SparseTable.read(path, Domain(("x",), (9,)), Bound())) == {1: 1, 2: 1}
    path.write_bytes(gzip.compress(b"\n" * 2**25 + b"x,y\n"))
    with pytest.raises(ValueError, match="it is empty. Need the names of the columns"):
        SparseTable.read(path, Domain(("x",), (9,)), Bound())


def test_a_table_without_rows_is_empty(tmp_path):
    domain = Domain(("x",), (9,))
    (tmp_path / "t.csv").write_text("x\n")
    (tmp_path / "u.csv").write_text("x,y")
    pq.write_table(pa.table({"x": pa.array([], pa.int64())}), tmp_path / "t.parquet")
    for name in ("t.csv", "u.csv", "t.parquet"):
        assert len(SparseTable.read(tmp_path / name, domain, Bound())) == 0
    assert len(SparseTable.from_frame(pd.DataFrame({"x": []}), domain, Bound())) == 0


def test_a_reader_is_closed_without_waiting_for_the_next_batch():
    going, ended = Event(), []

    def batches():
        yield pl.DataFrame()
        going.wait(5)
        ended.append(True)

    ahead = _read_ahead(batches())
    next(ahead)
    ahead.close()
    assert not ended
    going.set()
