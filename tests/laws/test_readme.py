"""The README says what is so."""

import csv
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_python_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.S)
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    asked = names["Ranges"]([0, 4001], [4001, 9_100_000])
    assert abs(names["release"].answer(asked) - [250, 1275]).max() < 100  # e^-50 by chance
    assert (tmp_path / "commuters.parquet").exists()


def test_the_table_of_verdicts_is_the_committed_one():
    committed = defaultdict(lambda: defaultdict(set))
    for path in (ROOT / "experiments" / "verdicts").glob("*.csv"):
        for row in csv.DictReader(path.open(newline="")):
            committed[row["figure"]][row["outcome"]].add(row["id"])
    told = {}
    for line in README.splitlines():
        if m := re.match(r"\| \[(\w+)\]\(notebooks/\w+/\w+\.ipynb\) \|", line):
            _, _, holds, differs, other = (c.strip() for c in line.strip("|").split("|"))
            ids = [set(re.findall(r"\b[a-z]-[\w-]+", cell)) for cell in (holds, differs, other)]
            told[m[1]] = dict(zip(("holds", "differs", "not testable here"), ids, strict=True))
    assert set(told) == set(committed)
    for figure, outcomes in committed.items():
        assert {k: v for k, v in told[figure].items() if v} == dict(outcomes), figure


@pytest.mark.parametrize("path", re.findall(r"\]\((?!http)([^)#]+)\)", README))
def test_what_is_linked_exists(path):
    assert (ROOT / path).exists()


def test_every_room_is_on_the_map():
    shown = " ".join(re.findall(r"^\| (`.*?) \|", README, re.M))
    for path in (ROOT / "workbench").iterdir():
        room = path.stem
        if (
            room.startswith("_")
            or path.suffix not in ("", ".py")
            or room in ("value", "arrays", "libraries", "compiled")
        ):
            continue
        assert f"`{room}" in shown, room
