"""Tables larger than memory on the command line: the same release, paid for when all rows were read."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.commands import run_command
from workbench.estimates.release import Release
from workbench.owner import Budget


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    Path("trips").mkdir()
    Path("scratch").mkdir()
    for i in range(3):
        trips = pd.DataFrame({"zone": rng.integers(0, 5, 90), "hour": rng.integers(0, 24, 90)})
        trips["user"] = rng.integers(0, 20, 90)
        trips.to_parquet(f"trips/{i}.parquet")
    Path("domain.json").write_text('{"zone": 5, "hour": 24}')
    return run_command


ASK = "release trips --domain domain.json --user user --force"
FILTER = "--bound 99,99 --mechanism HighPassFilter --theta 1 --epsilon 1e6 --epsilon-is-meant"


def test_a_folder_in_parts_is_the_folder(run):
    run(f"{ASK} {FILTER} --out whole.parquet")
    said = run(f"{ASK} {FILTER} --scratch scratch --out parts.csv --report-cut 1e6").stdout
    whole, parts = (Release.load(name) for name in ("whole.parquet", "parts.csv"))
    assert whole.estimate.to_arrow().equals(parts.estimate.to_arrow())
    assert whole.bound == parts.bound and whole.bound.unit == parts.bound.unit
    assert parts.users_cut == 0 and "a user (column user)" in said
    assert not any(Path("scratch").iterdir())


def test_interactions_in_parts(run):
    how = "--mechanism SRA --l 200 --item zone --context hour --epsilon 1e6 --epsilon-is-meant"
    run(f"{ASK} {how} --out whole.parquet")
    run(f"{ASK} {how} --out parts.parquet --workers 1")
    whole, parts = (Release.load(f"{name}.parquet") for name in ("whole", "parts"))
    assert whole.estimate.to_arrow().equals(parts.estimate.to_arrow())


def test_a_budget_is_spent_when_all_rows_were_read(run):
    run("budget new b.json --people them --unit 'a user' --epsilon 2e6 --epsilon-is-meant")
    paid = f"{ASK} {FILTER} --out o.parquet --budget b.json --scratch scratch"
    whole = Path("trips/2.parquet").read_bytes()
    pd.read_parquet("trips/2.parquet").assign(zone=7).to_parquet("trips/2.parquet")
    assert "2.parquet, row 1, column 'zone': found 7" in run(paid, code=2).stderr
    assert not len(Budget("b.json").ledger)
    Path("trips/2.parquet").write_bytes(whole)
    run(paid)
    assert Budget("b.json").remaining == 1e6
    assert not any(Path("scratch").iterdir())
