import importlib
import pkgutil
import time
from pathlib import Path

import pytest

from experiments import benchmarks
from experiments.benchmarks import _timing, recall, rivals

NAMES = [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name[0] != "_"]


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_can_be_imported(name):
    assert callable(importlib.import_module(f"experiments.benchmarks.{name}").main)


def test_times_are_by_the_clock_and_not_of_processors():
    assert _timing.median_seconds(lambda: time.sleep(0.01), repeat=1)[0] >= 0.01


def test_limits_of_time_are_numbers_of_sorts_in_the_same_run(monkeypatch):
    monkeypatch.setattr(_timing, "_seconds_of_a_sort", lambda: 0.5)
    assert _timing.at_most_sorts(1.0, 2) == dict(limit="≤ 2 sorts of 10⁶", met=True)
    assert not _timing.at_most_sorts(1.1, 2)["met"]


def test_a_table_whose_files_are_missing_is_left_out(monkeypatch):
    monkeypatch.setattr(recall, "first_available", lambda x: x if x == recall.TWIN else None)
    monkeypatch.setattr(recall, "rows_of", lambda name, *_: [_timing.row(f"{name}: measured")])
    assert [row["what"] for row in recall.errors()] == [
        "Adult, 7 attributes: left out, its files are missing",
        "Adult, 16 yes-or-no: left out, its files are missing",
        "simulated people: measured",
        "Census Income: left out, its files are missing",
    ]


def test_the_table_of_rivals_has_the_numbers_of_its_script():
    """Those of the table that needs no file; times are another machine's."""
    recorded = (Path(__file__).parents[2] / "docs/rivals.inc").read_text().splitlines()
    name, table = "simulated people", recall.TWIN.load()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in recorded]
    at = rows[0].index(name)
    found = rivals.column(table)
    assert [(row[1], row[at]) for row in rows[2:]] == [
        (line.split("|")[2].strip(), x.text)
        for line, x in zip(rivals.lines({name: found})[2:], found, strict=True)
    ]
    assert rows[0][3:-1] == [name for name, *_ in recall.TABLES]
