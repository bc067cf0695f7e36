"""`workbench domain`: drafts know nothing of values, and a check says all that a release would refuse."""

import json
import sqlite3
import subprocess
import sys
from datetime import date, datetime, time
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from tests.cli.commands import run_command
from workbench import DP, Bound, Domain, Release, SparseTable
from workbench.data import check_table, draft_domain
from workbench.mechanisms import HighPassFilter

TRIPS = """\
person,town,start,age,price,n
a,Bern,2025-03-01 07:30,30,2.5,1
b,Thun,2025-03-02 23:59,31.0,0,2
c,Genf,,x,12,1
d,,2025-02-30,200,-1,0
d,Bern,2025-03-01 07:59,30,2.9,4
"""
DOMAIN = {
    "canton": {"map": {"Bern": "BE", "Thun": "BE"}, "column": "town", "other": "label"},
    "hour": {
        "time": "hour",
        "column": "start",
        "format": "%Y-%m-%d %H:%M",
        "missing": "label",
        "other": "label",
    },
    "age": {"from": 0, "to": 120, "other": "drop"},
    "price": {"low": 0, "high": 10, "width": 2.5, "above": "clamp"},
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in a folder that holds a table and its domain."""
    monkeypatch.chdir(tmp_path)
    Path("domain.json").write_text(json.dumps(DOMAIN))
    Path("trips.csv").write_text(TRIPS)
    return run_command


def typed_rows(seed):
    """Rows of one schema, with values, and numbers of them, that follow from a seed."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 50))
    moment = datetime(2020 + seed, 1, 1 + seed, 3)
    return pa.table(
        {
            "town": [f"town {x}" for x in rng.integers(0, 9, n)],
            "start": pa.array([moment] * n, pa.timestamp("us")),
            "seen": pa.array([moment] * n, pa.timestamp("us", "UTC")),
            "day": pa.array([date(2020 + seed, 1, 1)] * n),
            "clock": pa.array([time(seed)] * n),
            "age": pa.array(rng.integers(0, 90, n), pa.int16()),
            "price": rng.normal(seed, 1, n),
            "paid": pa.array(rng.integers(0, 2, n).astype(bool)),
            "kind": pa.array([f"kind {seed}"] * n).dictionary_encode(),
            "count": rng.integers(0, 9, n),
        }
    )


def write_csv(path, table):
    table.to_pandas().to_csv(path, index=False)


def write_sqlite(path, table):
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    table.to_pandas().astype({"clock": str}).to_sql("trips", connection, index=False)
    connection.close()


def write_duckdb(path, rows):
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE trips AS SELECT * FROM rows")


@pytest.mark.parametrize(
    ("name", "write", "known"),
    [
        ("t.parquet", lambda path, table: parquet.write_table(table, path), 9),
        ("t.csv", write_csv, 0),
        ("t.sqlite", write_sqlite, 7),
        ("t.duckdb", write_duckdb, 9),
    ],
)
def test_a_draft_is_the_same_whatever_the_values_are(run, name, write, known):
    drafts = []
    table = "" if name in ("t.parquet", "t.csv") else "--table trips"
    for seed in (1, 2):
        write(Path(name), typed_rows(seed))
        printed = run(f"domain new --from {name} {table}").stdout
        run(f"domain new --from {name} {table} --out draft{seed}.json")
        drafts.append(Path(f"draft{seed}.json").read_bytes())
        assert printed.encode() == drafts[-1]
    assert drafts[0] == drafts[1]
    draft = json.loads(drafts[0])
    assert list(draft) == [*typed_rows(1).column_names[:-1], "count_"]
    assert sum(x != "FILL IN" for x in draft.values()) >= known
    for attribute in draft:  # each blank is refused by name, by all that read a domain
        others = {x: 2 for x in draft if x != attribute}
        Path("blank.json").write_text(json.dumps(others | {attribute: draft[attribute]}))
        if "FILL IN" in json.dumps(draft[attribute]):
            refused = run(f"domain check blank.json {name} {table}", code=2).stderr
            assert f"attribute '{attribute}' of the domain" in refused
            with pytest.raises(ValueError, match="filled in"):
                Domain.read("blank.json")
        else:
            Domain.read("blank.json")
    assert "exists" in run(f"domain new --from {name} {table} --out draft1.json", code=2).stderr


def test_nothing_follows_a_command_that_reads_duckdb(tmp_path):
    write_duckdb(tmp_path / "t.duckdb", typed_rows(1))
    command = [sys.executable, "-m", "workbench", "domain", "new", "--from", "t.duckdb"]
    for table, printed in (("trips", b""), ("none", b"Error: t.duckdb has no table")):
        made = subprocess.run([*command, "--table", table], cwd=tmp_path, capture_output=True)
        assert made.stderr.startswith(printed) and made.stderr.count(b"\n") <= 1


def test_frames_are_drafted_from_their_types():
    tables = [typed_rows(1), typed_rows(2)]
    assert draft_domain(tables[0]) == draft_domain(tables[1])
    assert draft_domain(tables[0].to_pandas())["age"]["from"] == "FILL IN"
    one, two = (draft_domain(pl.from_arrow(table).drop("kind")) for table in tables)
    assert one == two and one["start"] == {
        "time": "FILL IN",
        "other": "refuse",
        "missing": "refuse",
    }
    with pytest.raises(ValueError, match="more than one column is called 'a'"):
        draft_domain(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_a_check_says_what_a_release_would_refuse(run):
    before = sorted(path.name for path in Path().iterdir())
    text = run("domain check domain.json trips.csv --user person --count n").stdout
    assert sorted(path.name for path in Path().iterdir()) == before
    assert "5 rows, 2 rows left out as the domain says" in text
    assert (
        "Column 'town'" not in text and "Column 'price'" not in text
    )  # left out with their rows
    Path("domain.json").write_text(json.dumps(DOMAIN | {"age": {"from": 0, "to": 120}}))
    text = run("domain check domain.json trips.csv", code=1).stdout
    assert "make the domain private" in text and '"other": "label"' in text
    for line in (
        "Column 'town': 1 row is refused; need a value of the map (Bern, Thun)",
        "Column 'age': 2 rows are refused; need an integer from 0 to 120",
        "  trips.csv, row 3: 'x'",
        "  trips.csv, row 4: '200'",
        "Column 'price': 1 row is refused; need a number from 0",
    ):
        assert line in text


def test_a_check_without_findings_says_so(run):
    Path("trips.csv").write_text("".join(TRIPS.splitlines(keepends=True)[:3]))
    text = run("domain check domain.json trips.csv --user person --count n").stdout
    assert "2 rows, none left out" in text and text.endswith("Nothing would be refused.\n")


BAD = {
    "domain check none.json trips.csv": "none.json: no such file",
    "domain check domain.json none.csv": "none.csv: no such file",
    "domain check domain.json trips.csv --user who": "no column who",
    "domain check domain.json trips.csv --table trips": "no database",
    "domain check trips.csv trips.csv": "line 1: not JSON",
    "domain new --from none.csv": "none.csv: no such file",
    "domain new --from trips.csv --out no/such/folder.json": "no such folder",
    "domain new": "--from",
}


@pytest.mark.parametrize("line", BAD)
def test_a_bad_line_is_one_line(run, line):
    result = run(line, code=2)
    assert BAD[line] in result.stderr and "Traceback" not in result.output


def test_missing_users_and_counts_are_checked_too():
    frame = pd.DataFrame(
        {"x": [0, 1, 5, None], "n": [1, -1, 2, 0.5], "who": ["a", None, "b", "c"]}
    )
    check = check_table(frame, Domain(("x",), (3,)), count="n", user="who")
    found = {column.column: (column.rows, column.examples) for column in check.refused}
    assert check.rows == 4 and check.left_out == 0
    assert found == {
        "x": (2, {"5.0": "the table, row 2", "nothing": "the table, row 3"}),
        "n": (2, {"-1.0": "the table, row 1", "0.5": "the table, row 3"}),
        "who": (1, {"nothing": "the table, row 1"}),
    }


def test_a_prepared_table_is_released_with_its_preparation(run):
    Path("domain.json").write_text(
        json.dumps(DOMAIN | {"canton": DOMAIN["canton"] | {"missing": "label"}})
    )
    domain = Domain.read("domain.json")
    private = SparseTable.read("trips.csv", domain, Bound())
    HighPassFilter(DP(50.0), theta=1)(private).save("r.parquet")
    release = Release.load("r.parquet")
    assert release.estimate.domain == domain and len(release.to_frame())
    frame = pl.read_csv("trips.csv")
    for table in (
        SparseTable.read("trips.csv", domain, Bound()),
        SparseTable.from_frame(frame, domain, Bound()),
        SparseTable.from_frame(frame.to_pandas(), domain, Bound()),
    ):
        assert table.domain == domain and table.total == 3
        cells = table.to_frame().to_numpy().tolist()
        assert cells == [
            ["BE", "7", 30, "2.5 to under 5", 2],
            ["BE", "23", 31, "0 to under 2.5", 1],
        ]
    assert table.project(["hour"]).domain.rules["hour"] == domain.rules["hour"]


def test_check_shows_attributes_and_counts_on_request_alone(run):
    ages = {"low": 0, "high": 50, "width": 10, "above": "clamp", "missing": "label"}
    Path("ages.json").write_text(json.dumps({"age": ages, "hour": 24}))
    said = run("domain check ages.json").stdout
    for words in (
        "144 cells",
        "0 to under 10, 10 to under 20",
        "40 or more, missing",
        "0, 1, 2, …, 23",
    ):
        assert words in said, words
    Path("ages.csv").write_text("who,age,hour\na,3,1\na,3,1\nb,71,2\n")
    said = run("domain check ages.json ages.csv --user who").stdout
    assert "3 rows, none left out" in said and "publication" not in said
    said = run("domain check ages.json ages.csv --user who --look").stdout
    assert "Not for publication: the table has 3 rows, 2 cells that hold any, 2 users." in said
