"""What a command may be given as its table: files of every kind, folders, globs, tables of databases."""

import gzip
import json
import os
import pty
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from tests.cli.commands import run_command
from workbench.cli import app, screen
from workbench.estimates.release import Release

TRIPS = pd.DataFrame({"zone": [*range(5)] * 40, "who": [*range(100)] * 2})
ASK = "--domain domain.json --bound 1,1 --mechanism HighPassFilter --theta 5 --force"
ASK += " --epsilon 1000 --epsilon-is-meant"


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("domain.json").write_text(json.dumps({"zone": 5}))

    return run_command


def write(name, rows=TRIPS):
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    text = rows.to_csv(index=False).encode()
    if path.suffix == ".parquet":
        rows.to_parquet(path)
    elif path.suffix == ".db":
        with closing(sqlite3.connect(path)) as connection, connection:
            rows.to_sql("trips", connection, index=False)
        connection.close()
    else:
        pack = {".gz": gzip.compress, ".zst": lambda x: pa.compress(x, "zstd", asbytes=True)}
        path.write_bytes(pack.get(path.suffix, bytes)(text))


@pytest.mark.parametrize(
    "table",
    ["t.csv", "t.csv.gz", "t.csv.zst", "t.parquet", "t.db --table trips"],
)
def test_a_table_of_any_kind_is_released(run, table):
    write(table.split()[0])
    run(f"release {table} {ASK} --unit 'a trip' --out o.parquet")
    assert Release.load("o.parquet").to_frame()["count"].sum() == pytest.approx(200, abs=5)


def test_folders_globs_and_several_files_are_one_table(run):
    write("may/a.csv", TRIPS[:80])
    write("may/b.csv", TRIPS[80:])
    write("june.parquet")
    counts = {"may": 200, "'may/*.csv'": 200, "may/a.csv": 80, "may june.parquet": 400}
    for table, count in counts.items():
        run(f"release {table} {ASK} --unit 'a trip' --out o.parquet")
        assert Release.load("o.parquet").to_frame()["count"].sum() == pytest.approx(
            count, abs=5
        )
    said = run(f"release may june.parquet {ASK} --user who --out o.parquet", 2).stderr
    assert "some users are text, others integers" in said, "7 and '7' may be two people"
    run(f"release may june.parquet {ASK} --user who --user-type text --out o.parquet")
    assert Release.load("o.parquet").to_frame()["count"].sum() == pytest.approx(100, abs=5)
    run(f"release may {ASK} --user who --out o.parquet")
    assert Release.load("o.parquet").to_frame()["count"].sum() == pytest.approx(100, abs=5)
    said = run(f"release may may/a.csv {ASK} --unit 'a trip' --out o.parquet", 2).stderr
    assert said.startswith("Error: may/a.csv is named twice")
    assert "400 rows" in run("domain check domain.json may june.parquet").stdout


def test_what_voids_the_guarantee_reads_all_files(run):
    write("a.csv", TRIPS[TRIPS.zone < 3])
    write("b.csv.gz", TRIPS[TRIPS.zone > 2])
    ask = ASK.replace("--domain domain.json", "--domain-from-data --simulated")
    run(f"release a.csv b.csv.gz {ask} --user who --out o.parquet")
    assert Release.load("o.parquet").estimate.domain.labels == (("0", "1", "2", "3", "4"),)


def test_an_interrupt_while_reading_leaves_nothing(run, monkeypatch):
    """Progress is told after a batch: there the key is pressed."""
    write("t.csv")

    class Pressed:
        def __enter__(self):
            return self.press

        def __exit__(self, *_):
            return None

        def press(self, read, whole):
            raise KeyboardInterrupt

    monkeypatch.setattr(screen, "reading_bar", Pressed)
    before = set(Path().iterdir())
    result = CliRunner().invoke(
        app, shlex.split(f"release t.csv {ASK} --unit x --out o.parquet")
    )
    assert result.exit_code == 130 and "Traceback" not in result.output
    assert set(Path().iterdir()) == before


def test_a_bar_of_bytes_is_shown_where_somebody_watches_and_nowhere_else(run, tmp_path):
    write("t.csv")
    line = f"release t.csv {ASK} --unit x --out o.parquet"
    assert "bytes" not in run(line).stderr
    command = [shutil.which("workbench", path=Path(sys.executable).parent), *shlex.split(line)]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, cwd=tmp_path, stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    assert process.wait() == 0
    assert b"bytes" in shown and b"200" not in shown
