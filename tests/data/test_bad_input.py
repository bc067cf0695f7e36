"""What is wrong with a file or frame is one clear ValueError: which file, line, column and value."""

import gzip
import os
import sqlite3
from contextlib import closing
from decimal import Decimal

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fuzz.run import limited
from workbench import Bound, Domain, Interactions, SparseTable
from workbench.data import draft_domain, sources

LONG = "x" * 200_000
DOMAIN = Domain(("place", "age"), (4, 100), (("Bern", "a,b", "東京", LONG), None))
GOOD = b"place,age,n,who\nBern,5,1,7\n"

ROWS = {  # after a good one, and what the error says
    b"Bern,5": "row 2: Expected 4 columns, got 2: Bern,5",
    b"Bern,5,1,1,1": "row 2: Expected 4 columns, got 5: Bern,5,1,1,1",
    b"Bern,5,9007199254740993,7": "row 2, column 'n': found '9007199254740993'",
    b"Bern,5,9007199254740993.0,7": "column 'n': found '9007199254740993.0'",
    b"Bern,5,1e400,7": "row 2, column 'n': found '1e400', need an integer",
    b"Bern,5,%s,7" % (b"9" * 5000): "column 'n': found '99",
    b"Bern,5,1_0,7": "row 2, column 'n': found '1_0'",
    b"Bern,5,,7": "row 2, column 'n': found nothing",
    b"Bern,5,1.5,7": "row 2, column 'n': found '1.5', need an integer >= 0",
    b"Bern,5,-1,7": "row 2, column 'n': found '-1'",
    b"Bern,5,NaN,7": "row 2, column 'n': found 'NaN'",
    b"Bern,5,inf,7": "row 2, column 'n': found 'inf'",
    b",5,1,7": "row 2, column 'place': found nothing",
    b"Bern,100,1,7": "row 2, column 'age': found '100', need an integer from 0 to 99",
    b"Bern,5,1, ": "row 2, column 'who': found nothing, need a user",
    b'"a,c",5,1,7': "row 2, column 'place': found 'a,c', need a value of",
    b'"a\n""b""",5,1,7': """row 2, column 'place': found 'a\\n"b"'""",
    "Zürich,5,1,7".encode(): "row 2, column 'place': found 'Zürich'",
    b"y%s,5,1,7" % LONG.encode(): "(200,001 characters)",
    b"Bern,5.5,1,7": "row 2, column 'age': found '5.5', need an integer from",
    b"Bern,x,1,7": "row 2, column 'age': found 'x'",
    b"B\xe9rn,5,1,7": "save it as UTF-8",
    b'"Bern,5,1,7\n' + GOOD * 9: "t.csv: a quote is left open",
    b'"Bern,5,1,7\n' + GOOD * 2**20: "t.csv: a row is longer than 16,777,216 bytes",
    b'Bern,5,1,"7\nBern,5,1,8\nBern,5,1,9': "a quote is left open, so that rows went into a",
}
TEXTS = {
    b"place,age,place,n,who\nBern,1,Bern,1,1\n": "more than one column is called 'place'",
    GOOD.replace(b",", b";"): "need commas between fields, not ';': 'place;age;n;who'",
    b"PK\x03\x04" + bytes(40): "its content is no text in UTF-8: need CSV (.csv",
    GOOD.decode().encode("utf-16"): "its content is no text in UTF-8",
    b'[{"place": "Bern"}]': "its content is JSON: need CSV (.csv, .csv.gz",
    b"Trips of 2026\n" + GOOD: "has no column place, age, n, who. It has ['Trips of 2026']",
    b"": "it is empty",
    b"\n\n": "it is empty",
    b"a;b;n\n1;2;3\n": "need commas between fields, not ';'",
}
DAMAGED = [
    ("t.parquet", GOOD),
    ("t.parquet", b"PAR1" + bytes(40)),
    ("t.csv.gz", gzip.compress(GOOD * 99, mtime=0)[:-9]),
    ("t.csv.gz", gzip.compress(GOOD, mtime=0)[:12]),
    ("t.csv.zst", pa.compress(GOOD * 99, "zstd", asbytes=True)[:-3]),
]
FILES = {
    **{("t.csv", GOOD + row + b"\n"): said for row, said in ROWS.items()},
    **{("t.csv", text): said for text, said in TEXTS.items()},
    **{(name, content): f"{name}: it cannot be read" for name, content in DAMAGED},
}


@pytest.mark.parametrize("file", FILES, ids=range(len(FILES)))
def test_a_file_that_is_wrong_is_refused_with_its_place(tmp_path, file):
    name, content = file
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError) as refused:
        SparseTable.read(tmp_path / name, DOMAIN, Bound(), count="n", user="who")
    said = str(refused.value)
    assert FILES[file] in said and str(tmp_path / name) in said
    assert len(said) < 900 and "\n" not in said


def test_a_header_without_rows_is_an_empty_table_with_a_warning(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("place,age\n")
    with pytest.warns(UserWarning, match="t.csv has no row below the names of its columns"):
        assert SparseTable.read(path, DOMAIN, Bound()).total == 0


def test_a_draft_needs_names_that_are_text():
    with pytest.raises(ValueError, match="need text as the name of a column; got 5"):
        draft_domain(pd.DataFrame({"place": ["Bern"], 5: [1]}))


def test_labels_that_are_long_or_of_other_scripts_are_labels(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f'place,age\n"a,b",1\n東京,2\n{LONG},3\n Bern ,4.0\n', encoding="utf-8")
    assert SparseTable.read(path, DOMAIN, Bound()).keys.tolist() == [4, 101, 202, 303]


def test_a_row_that_is_longer_than_a_block_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_BLOCK", 1000)
    (tmp_path / "t.csv").write_text(f"place,age\nBern,1\n{LONG},2\n")
    with pytest.raises(ValueError, match="t.csv: a row is longer than 1,000 bytes"):
        SparseTable.read(tmp_path / "t.csv", DOMAIN, Bound())


def test_text_of_a_parquet_file_is_utf_8(tmp_path):
    """A refused value is shown by polars, which panics where text is not."""
    ends = pa.py_buffer(np.array([0, 1, 3], np.int32))
    text = pa.StringArray.from_buffers(2, ends, pa.py_buffer(b"a\xff\xfe"))
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"place": text, "age": [1, 2], "who": text}), path)
    with pytest.raises(ValueError, match="t.parquet: .*Invalid UTF8"):
        SparseTable.read(path, DOMAIN, Bound())
    named = dict(user="who", item="place", context="age", domain=DOMAIN, bound=Bound(2, 1))
    with pytest.raises(ValueError, match="t.parquet: .*Invalid UTF8"):
        Interactions.read(path, **named)


def test_a_parquet_file_that_claims_more_rows_than_it_has_is_refused(tmp_path):
    """Arrow gives the rows that there are; places for the others would stay unfilled."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"place": [1] * 50, "age": [2] * 50, "who": [3] * 50}), path)
    whole = path.read_bytes()
    size = int.from_bytes(whole[-8:-4], "little")
    footer = whole[-8 - size : -8]
    counts = b"\x16\x64"  # 50 as Thrift writes it: of the file, its group and columns
    assert footer.count(counts) >= 5
    path.write_bytes(whole[: -8 - size] + footer.replace(counts, b"\x16\x7c") + whole[-8:])
    assert pq.read_metadata(path).num_rows == 62
    domain = Domain(("place", "age"), (4, 4))
    named = dict(user="who", item="place", context="age", domain=domain, bound=Bound(2, 1))
    with pytest.raises(ValueError, match="t.parquet: 12 of its rows are missing"):
        Interactions.read(path, **named)
    with pytest.raises(ValueError, match="t.parquet: 12 of its rows are missing"):
        SparseTable.read(path, domain, Bound())


def test_a_whole_parquet_file_is_read_and_a_part_of_it_is_not(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"place": ["Bern"] * 999, "age": list(range(99)) * 10 + [1] * 9}), path
    )
    whole = path.read_bytes()
    for end in (len(whole) // 2, len(whole) - 1, 5):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="t.parquet: it cannot be read"):
            SparseTable.read(path, DOMAIN, Bound())
    path.write_bytes(
        whole[:40] + b"\xff" * 60 + whole[100:]
    )  # the footer is whole, a page is not
    with pytest.raises(ValueError, match="t.parquet"):
        SparseTable.read(path, DOMAIN, Bound())
    pq.write_table(pa.table({"place": [["Bern"]], "age": [1]}), path)
    with pytest.raises(ValueError, match="column 'place' holds List.*need text, numbers"):
        SparseTable.read(path, DOMAIN, Bound())
    table = pa.table(
        [pa.array([1]), pa.array([2]), pa.array(["Bern"])], ["age", "age", "place"]
    )
    pq.write_table(table, path)
    with pytest.raises(ValueError, match="more than one column is called 'age'"):
        SparseTable.read(path, DOMAIN, Bound())


def test_folders_and_globs_mean_whole_tables(tmp_path):
    folder = tmp_path / "trips"
    folder.mkdir()

    def read(*paths):
        return SparseTable.read(paths, DOMAIN, Bound())

    with pytest.raises(ValueError, match="trips: the folder is empty"):
        read(folder)
    (folder / "a.csv").write_bytes(GOOD)
    (folder / "b.csv").write_bytes(b"age,place,n\n5,Bern,1\n")
    with pytest.raises(ValueError, match=r"b.csv has the columns \['age'.*a.csv has"):
        read(folder)
    (folder / "b.csv").write_bytes(b"who,age,place,n\nx,5,Bern,1\n")
    (folder / "_SUCCESS").touch()
    (folder / ".hidden").write_bytes(b"\0")
    assert read(folder).counts.tolist() == [2]
    with pytest.raises(ValueError, match="a.csv is named twice"):
        read(folder, folder / ".." / "trips" / "a.csv")
    os.link(folder / "a.csv", tmp_path / "same.csv")
    with pytest.raises(ValueError, match="same.csv is named twice, also as .*a.csv"):
        read(folder, tmp_path / "same.csv")
    with pytest.raises(FileNotFoundError, match="c.csv: no such file"):
        read(folder / "c.csv")
    with pytest.raises(FileNotFoundError, match="no file is called so"):
        read(folder / "2*.csv")
    with pytest.raises(ValueError, match="no file is named"):
        read()
    (folder / "deeper").mkdir()
    with pytest.raises(ValueError, match="holds the folder deeper"):
        read(folder)
    (folder / "b.csv").write_bytes(b"who,age,place,n\nx,5,Bern,1\nx,5,Rome,1\n")
    with pytest.raises(ValueError, match="b.csv, row 2, column 'place': found 'Rome'"):
        read(folder / "a.csv", folder / "b.csv")


FRAMES = {
    "more than one column is called 'age'": pd.DataFrame(
        [["Bern", 1, 2]], columns=["place", "age", "age"]
    ),
    "the table has no column age. It has ['place']": pd.DataFrame({"place": ["Bern"]}),
    "row 1, column 'age': found nothing, need an integer from 0 to 99": pd.DataFrame(
        {"place": "Bern", "age": [50.0, None]}
    ),
    "row 1, column 'age': found 50.5, need": pd.DataFrame(
        {"place": "Bern", "age": [50.0, 50.5]}
    ),
    "row 1, column 'age': found 'x', need": pd.DataFrame({"place": "Bern", "age": ["50", "x"]}),
    "row 1, column 'place': found '7', need": pd.DataFrame({"place": ["Bern", 7], "age": 1}),
    "column 'place' holds list: need text, numbers, truth values, dates or times. Convert": pd.DataFrame(
        {"place": ["Bern", [7]], "age": 1}
    ),
    "column 'place' holds bytes: need text, numbers, truth values, dates or times. Store it as text": (
        pa.table({"place": [b"Bern"], "age": [1]})
    ),
    "column 'age' holds decimal256(50, 2): need": pa.table(
        {"place": ["Bern"], "age": pa.array([Decimal(3)], pa.decimal256(50, 2))}
    ),
    "characters), need a value of the domain": pd.DataFrame({"place": [LONG + "y"], "age": 1}),
}


@pytest.mark.parametrize("said", FRAMES)
def test_a_frame_that_is_wrong_is_refused_with_its_row(said):
    with pytest.raises(ValueError) as refused:
        SparseTable.from_frame(FRAMES[said], DOMAIN, Bound())
    assert said in str(refused.value) and len(str(refused.value)) < 900


@pytest.mark.parametrize(
    "count", [2**53 + 1, -1, 1.5, 1e300, float("nan"), "three", None, 2**70]
)
def test_a_count_in_a_frame_is_a_whole_number_that_a_float_holds(count):
    counts = ["2", count] if count == "three" else [2, count]
    frame = pd.DataFrame({"place": "Bern", "age": 1, "n": counts})
    with pytest.raises(ValueError, match="row 1, column 'n'"):
        SparseTable.from_frame(frame, DOMAIN, Bound(), count="n")


@pytest.mark.parametrize(
    "data", [None, 5, {"place": ["Bern"]}, [], b"t.csv", "", pl.LazyFrame()]
)
def test_what_is_no_table_is_refused(data):
    for read in (SparseTable.read, SparseTable.from_frame):
        with pytest.raises(ValueError, match="no table|no file|need frame.collect"):
            read(data, DOMAIN, Bound())


def test_users_of_several_kinds_are_not_made_one_by_writing_them_out(tmp_path):
    frame = pd.DataFrame({"place": "Bern", "age": 1, "who": [7, "7"]})
    assert SparseTable.from_frame(frame, DOMAIN, Bound(), user="who").total == 1
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
        connection.execute("CREATE TABLE t (place, age, who)")
        connection.executemany("INSERT INTO t VALUES ('Bern', 1, ?)", [(7,), ("7",), ("x",)])
    connection.close()
    table = SparseTable.read(tmp_path / "t.db", DOMAIN, Bound(1, 1), user="who", table="t")
    assert table.counts.tolist() == [2]  # SQLite's 7 and '7' are one person
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
        connection.execute("INSERT INTO t VALUES ('Bern', 1, x'07')")
    connection.close()
    with pytest.raises(ValueError, match="t.db, table t, column 'who' holds bytes: need text"):
        SparseTable.read(tmp_path / "t.db", DOMAIN, Bound(), user="who", table="t")


def test_a_database_is_read_by_the_name_of_a_table_alone(tmp_path):
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE t (place, age)")
        connection.execute("INSERT INTO t VALUES ('Bern', 'x')")
        connection.execute("CREATE VIEW everybody AS SELECT * FROM t")
    connection.close()

    def read(table):
        return SparseTable.read(path, DOMAIN, Bound(), table=table)

    for name in ("everybody", "t; DROP TABLE t", "(SELECT 1)", "sqlite_master", "T", ""):
        with pytest.raises(ValueError, match="a table is needed .*it has .'t'"):
            read(name)
    with pytest.raises(ValueError, match="t.db: a table is needed"):
        read(None)
    with pytest.raises(ValueError, match="t.db, table t, row 1, column 'age': found 'x'"):
        read("t")
    path.write_bytes(path.read_bytes()[:100] + bytes(300))
    with pytest.raises(ValueError, match="t.db"):
        read("t")
    (tmp_path / "t.csv").write_bytes(GOOD)
    with pytest.raises(ValueError, match="is no database"):
        SparseTable.read(tmp_path / "t.csv", DOMAIN, Bound(), table="t")


SMALL = Domain(("home", "hour"), (3, 24), (("Bern", "Genf", "Chur"), None))


@pytest.mark.parametrize(
    ("text", "need"),
    [
        (
            b"home,hour\n" + b'"\n",' * 2**23,
            "a row is longer than 16,777,216 bytes",
        ),
        (b'"\n",' * 2**23, "the row of names does not end within 4,194,304 characters"),
        (b"a," * 2**16 + b"a\n", "its first row names 65,537 columns, need at most 16,384"),
    ],
    ids=["row", "header", "names"],
)
def test_a_row_that_no_table_has_is_refused(tmp_path, text, need):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(text, 1))
    with limited(), pytest.raises(ValueError, match=need):
        SparseTable.read(path, SMALL, Bound())


def test_computed_columns_are_not_read(tmp_path):
    """Two rows of them would be read as 180 MB."""
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE t (home, hour AS (zeroblob(90000000)))")
        db.execute("CREATE TABLE u (home, hour)")
        db.execute("INSERT INTO t (home) VALUES ('Bern'), ('Genf')")
        db.execute("INSERT INTO u VALUES ('Bern', zeroblob(?))", (2**24 + 1,))
        db.commit()
    with pytest.raises(ValueError, match=r"has no table 't': .* computed .*; it has \['u'\]"):
        SparseTable.read(path, SMALL, Bound(), table="t")
    with pytest.raises(ValueError, match="table u: it cannot be read .*too big"):
        SparseTable.read(path, SMALL, Bound(), table="u")
    with duckdb.connect(tmp_path / "a.duckdb") as db:
        db.execute(
            "CREATE TABLE t (home TEXT, hour TEXT GENERATED ALWAYS AS (repeat(home, 9)))"
        )
    with pytest.raises(ValueError, match=r"has no table 't': .* computed .*"):
        SparseTable.read(tmp_path / "a.duckdb", SMALL, Bound(), table="t")
