"""The README, and the pages that follow from what stands elsewhere, say what is so."""

import re
from pathlib import Path

import pandas as pd
import pytest

from experiments import verdicts
from workbench.estimates import files
from workbench.figures.saved import row_digest
from workbench.trials.claims import DEPENDS, DIFFERS, HOLDS, UNDECIDED, UNTESTABLE

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGE = verdicts.PAGE.read_text()
REFERENCE = (ROOT / "docs" / "api.md").read_text()
PAPERS = sorted(path.stem for path in (ROOT / "experiments" / "verdicts").glob("*.csv"))
SAID = ({HOLDS}, {DIFFERS, DEPENDS}, {UNDECIDED, UNTESTABLE})


def test_the_python_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.S)
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    asked = names["Ranges"]([0, 4001], [4001, 9_100_000])
    assert abs(names["release"].answer(asked) - [250, 1275]).max() < 100  # e^-50 by chance
    assert (tmp_path / "commuters.parquet").exists()


def test_the_picture_is_drawn_from_the_recorded_rows_of_the_quick_run():
    record = files.read(ROOT / "experiments" / "verdicts" / "cormode2012_fig2.png")
    assert record["command"] in README.replace("\n", " ")
    rows = pd.read_csv(ROOT / "tests" / "rows" / f"{record['id']}.csv.xz")
    assert record["rows"] == row_digest(rows)


def test_the_counts_of_verdicts_are_those_of_the_committed_ones():
    assert verdicts.with_counts(PAGE) == PAGE, "python -m experiments.verdicts PAPER"
    shown = {line[2] for line in verdicts.FIGURE_LINE.finditer(PAGE)}
    assert shown == {figure for paper in PAPERS for figure in verdicts.committed(paper).figure}
    assert {line[1] for line in verdicts.PAPER_LINE.finditer(PAGE)} == set(PAPERS)


def test_the_sums_of_verdicts_are_those_of_the_committed_ones():
    assert verdicts.with_sums(README) == README, "python -m experiments.verdicts PAPER"
    assert {line[2] for line in verdicts.README_LINE.finditer(README)} == set(PAPERS)


@pytest.mark.parametrize("paper", PAPERS)
def test_what_is_said_of_a_paper_is_what_was_found(paper):
    """Each part of its line names statements, by id, that ended so."""
    found = verdicts.committed(paper)
    if not (found.claim != "").any():
        pytest.skip("not judged by statement yet")
    outcomes = dict(zip(found.id, found.outcome, strict=True))
    (line,) = re.findall(rf"^- \*\*{paper}\*\* (.*(?:\n  .*)*)", PAGE, re.M)
    parts = re.fullmatch(r"(?s)Reproduces: (.*) Does not: (.*) Cannot be known: (.*)", line)
    for part, allowed in zip(parts.groups(), SAID, strict=True):
        ids = re.findall(r"\b[a-z]-[\w-]+\.\w+", part)
        assert ids or part.startswith("nothing")
        assert {id: outcomes[id] for id in ids if outcomes[id] not in allowed} == {}
        assert not re.search(r"\d", re.sub(r"\([^)]*\)", "", part)), "numbers are in the table"


def test_it_fits_one_screen():
    assert len(README.splitlines()) <= 80


def test_every_package_is_on_the_map():
    shown = " ".join(re.findall(r"^\| (`.*?) \|", REFERENCE, re.M))
    for path in (ROOT / "workbench").iterdir():
        package = path.stem
        if package.startswith("_") or path.suffix not in ("", ".py"):
            continue
        assert f"`{package}" in shown, package
