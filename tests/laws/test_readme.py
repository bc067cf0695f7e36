"""The README, and the pages that follow from what stands elsewhere, say what is so."""

import re
from pathlib import Path

import pandas as pd
import pytest

from experiments import verdicts
from workbench.estimates import files
from workbench.figures.saved import row_digest
from workbench.trials.claims import DIFFERS, HOLDS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
REFERENCE = (ROOT / "docs" / "api.md").read_text()
PAPERS = sorted(path.stem for path in (ROOT / "experiments" / "verdicts").glob("*.csv"))


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


def test_the_table_is_that_of_the_committed_verdicts():
    assert verdicts.with_table(README) == README, "python -m experiments.verdicts"
    assert sorted(verdicts.PAPERS) == PAPERS


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_has_five_to_nine_findings_that_follow_from_its_statements(paper):
    found = verdicts.findings(paper)
    assert 5 <= len(found) <= 9
    outcomes = dict(
        zip(verdicts.committed(paper).id, verdicts.committed(paper).outcome, strict=True)
    )
    for each, end in found:
        ends = {outcomes[id] for id in each.statements}
        assert (end == "reproduces") == (ends == {HOLDS}), each.says
        assert (end == "does not reproduce") == (DIFFERS in ends), each.says
        assert not end.startswith("needs data") or each.needs, each.says


def test_it_fits_one_screen():
    assert len(README.splitlines()) <= 80


def test_every_package_is_on_the_map():
    shown = " ".join(re.findall(r"^\| (`.*?) \|", REFERENCE, re.M))
    for path in (ROOT / "workbench").iterdir():
        package = path.stem
        if package.startswith("_") or path.suffix not in ("", ".py"):
            continue
        assert f"`{package}" in shown, package
