"""`answer` and `show` on files of both kinds: labels, error bars in two parts, and what is noise alone."""

import json
from math import ceil
from pathlib import Path

import pytest

from tests.cli.commands import run_command
from workbench import Release

DOMAIN = {"origin": ["Bern", "St. Gallen"], "hour": 24}
OPTIONS = "--domain d.json --count n --unit row --bound 1,1 --epsilon 0.1"

SEED = "--seed 1 --simulated"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Releases of one table: filtered, with every cell, and almost nothing but noise."""
    folder = tmp_path_factory.mktemp("releases")
    (folder / "d.json").write_text(json.dumps(DOMAIN))
    rows = [f"{town},{hour},{100 * hour}" for town in DOMAIN["origin"] for hour in range(24)]
    (folder / "t.csv").write_text("\n".join(["origin,hour,n", *rows]))
    return folder


@pytest.fixture
def run(folder, monkeypatch):
    monkeypatch.chdir(folder)

    def run(*words, code=0):
        result = run_command(words[0].split() if len(words) == 1 else words, code)
        return " ".join((result.stdout if code == 0 else result.stderr).split())

    return run


def released(run, out, mechanism):
    return run(f"release t.csv {OPTIONS} --mechanism {mechanism} --out {out} --force {SEED}")


def test_release_prints_what_show_prints_of_the_file(run):
    for out in ("x.csv", "x.parquet"):
        said = released(run, out, "HighPassFilter --theta 60")
        assert said.startswith(run(f"show {out}")) and "every release of the same data" in said
        assert "± 14.1 on each of the cells" in said and "θ = 60 plus three" in said
        assert "would release about" in said and "Most of it may be noise" not in said


def test_show_says_why_sampled_counts_are_all_the_same(run):
    said = released(run, "y.parquet", "ThresholdSampling --tau 500")
    assert "below τ = 500. Each of them counts as τ" in said and "τ = 500 plus three" in said


def test_answers_are_those_of_the_release(run):
    released(run, "x.csv", "HighPassFilter --theta 60")
    release = Release.load("x.csv")
    query = "origin='St. Gallen' hour=7..9"
    told = run("answer", "x.csv", query, "*", "--error")
    answers = release.answer([query, {}], error=True)
    assert all(f"{int(x):,}" in told for x in answers.values)
    absent = int(answers.absent_cells[1])
    assert f"{absent} at most {ceil(answers.absent[1])}" in told.replace(",", "")
    believed = run("answer", "x.csv", query, "--error", "--belief", "empty")
    assert "absent: 0 if absent cells are empty (believed)" in believed
    assert "noise" not in run("answer", "x.csv", query)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["origin=Bren"], "the nearest is Bern"),
        (["hour=9..7"], "selects nothing"),
        (["hour=7", "orig=Bern"], "the nearest is origin"),
        ([""], "'*' counts everything"),
        (["hour=7", "--belief", "empty"], "add --error"),
        (["hour=7", "--error", "--belief", "x"], "need one of ['empty']"),
        ([], "Missing argument 'QUERY'"),
    ],
)
def test_what_selects_nothing_is_refused(run, words, why):
    released(run, "x.csv", "HighPassFilter --theta 60")
    assert why in run("answer", "x.csv", *words, code=2)


def test_show_warns_of_noise_alone(run):
    noise = "Most of it may be noise"
    for mechanism in ("StabilityHistogram --delta 1e-9", "LaplaceHistogram"):
        assert noise not in released(run, "y.csv", mechanism)
    none = released(run, "y.csv", "StabilityHistogram --delta 1e-9")
    assert "would release no cells" in none
    assert "would release as many cells" in released(run, "y.csv", "LaplaceHistogram")
    small = OPTIONS.replace("0.1", "0.0001")
    for mechanism in ("LaplaceHistogram", "PrioritySampling --size 20"):
        line = f"release t.csv {small} --mechanism {mechanism} --out y.csv --force {SEED}"
        assert noise in run(line)


def test_another_ending_costs_nothing(run):
    line = f"release t.csv {OPTIONS} --mechanism HighPassFilter --theta 9 --out x.xlsx"
    assert "x.parquet" in run(line, code=2) and not Path("x.xlsx").exists()
    Path("new.csv.json").write_text("precious")
    assert "new.csv.json exists" in run(line.replace("x.xlsx", "new.csv"), code=2)
    assert not Path("new.csv").exists()


def test_show_draws_a_picture_of_the_file(run):
    released(run, "x.csv", "HighPassFilter --theta 60")
    for ending, begins in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        path = Path(f"x{ending}")
        run(f"show x.csv --picture {path}")
        assert path.read_bytes().startswith(begins)
        assert "HighPassFilter" in run(f"whereis {path}")
    assert "exists" in run("show x.csv --picture x.png", code=2)
    run("show x.csv --picture x.png --force")
    assert ".png or .svg or .pdf" in run("show x.csv --picture x.gif", code=2)
    assert "no such folder" in run("show x.csv --picture no/x.png", code=2)
    assert not list(Path().glob(".x*"))
