"""No command overwrites one of its inputs, whatever is forced and by whatever name it goes."""

import os
from pathlib import Path

import pytest

from tests.cli.commands import last_options, run_command

STATED = "--domain domain.json --bound 1,1 --unit x --epsilon 1 --force --out"
RELEASE = f"--mechanism GeometricHistogram {STATED}"
SYNTHESIS = f"--rows 5 --marginals 1 {STATED}"
LINES = {
    "the table": f"release t.csv {RELEASE} t.csv",
    "another spelling": f"release t.csv {RELEASE} ../inputs/t.csv",
    "a link": f"release t.csv {RELEASE} link.csv",
    "an input by a link": f"release link.csv {RELEASE} t.csv",
    "a hard link": f"release t.csv {RELEASE} hard.csv",
    "a file of a folder": f"release folder {RELEASE} folder/part.csv",
    "a file of a glob": f"release fold*/*.csv {RELEASE} folder/part.csv",
    "the file next to the release": f"release t.csv {RELEASE} side.csv --domain side.csv.json",
    "labels of the domain": f"release t.csv {RELEASE} labels.csv --domain other.json",
    "a budget": f"release t.csv {RELEASE} paid.csv --budget paid.csv",
    "a taxonomy": "release t.csv --mechanism PrivTree --bound 1,1 --unit x --epsilon 1 --force "
    "--taxonomy tree.csv --out tree.csv",
    "a workload": "release t.csv --mechanism LaplaceQueries --workload asked.csv "
    f"{STATED} asked.csv",
    "a table of synthesis": f"synthesize t.csv {SYNTHESIS} t.csv",
    "marginals": f"synthesize t.csv {SYNTHESIS} asked.csv --marginals asked.csv",
    "a table that is drafted from": "domain new --from t.csv --out t.csv --force",
    "a link to it": "domain new --from t.csv --out link.csv --force",
    "a release that is drawn": "show release.parquet --picture drawn.png --force",
}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in a folder of inputs, links to them among these."""
    folder = tmp_path / "inputs"
    (folder / "folder").mkdir(parents=True)
    monkeypatch.chdir(folder)
    for name in ("t.csv", "folder/part.csv"):
        Path(name).write_text("home\nkent\n")
    for name in ("domain.json", "side.csv.json"):
        Path(name).write_text('{"home": ["kent"]}')
    Path("other.json").write_text('{"home": {"file": "labels.csv", "other": "drop"}}')
    for name in ("labels.csv", "asked.csv", "tree.csv", "paid.csv"):
        Path(name).write_text("home\n")
    Path("link.csv").symlink_to("t.csv")
    os.link("t.csv", "hard.csv")
    return lambda line, code=0: run_command(last_options(line), code)


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_an_output_that_is_an_input_is_refused(run, line):
    run(f"release t.csv {RELEASE} release.parquet")
    os.link("release.parquet", "drawn.png")
    before = {p: p.read_bytes() for p in Path().rglob("*") if p.is_file()}
    said = run(line, code=2).stderr
    assert "is an input of this command" in said and "--force" not in said, said
    assert {p: p.read_bytes() for p in Path().rglob("*") if p.is_file()} == before


def test_another_file_is_overwritten_if_forced(run):
    Path("out.csv").write_text("old")
    run(f"release t.csv {RELEASE} out.csv")
    assert Path("out.csv").read_text() != "old" and Path("out.csv.json").exists()
