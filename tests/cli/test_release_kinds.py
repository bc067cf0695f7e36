"""Releases of every kind of data from the command line: users' records, points, strings, codes, queries."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.commands import last_options, run_command
from workbench import DP, Domain, Marginals, NamedMarginals, Taxonomy
from workbench.estimates.release import Release
from workbench.queries import stated

DOMAIN = {"film": 6, "day": ["mon", "tue"]}
HEAD = "user_id,film,day,x,y,word,icd"
CODES = "A,\nA1,A\nA2,A\nB,\nB1,B\n"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in a folder with rows of users, and all that says what they may be."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [
        f"u{rng.integers(20)},{rng.integers(6)},{rng.choice(['mon', 'tue'])},{rng.random() * 10:.3f},"
        f"{rng.random() * 5:.3f},{rng.choice(['abc', 'abd', 'x'])},{rng.choice(['A1', 'B1'])}"
        for _ in range(300)
    ]
    Path("t.csv").write_text("\n".join([HEAD, *rows]))
    Path("domain.json").write_text(json.dumps(DOMAIN))
    Path("codes.csv").write_text(CODES)
    return run_command


TABLE = "--domain domain.json --bound 1,1 --unit row"
KINDS = {
    "SRA": "--user user_id --domain domain.json --l 5",
    "HPA": "--user user_id --item film --context day --domain domain.json --l 5 --d 2 --split 0.3,0.7",
    "LPA": "--user user_id --domain domain.json --bound 10",
    "FPA": "--user user_id --domain domain.json --bound 10",
    "GS": "--user user_id --domain domain.json --bound 10",
    "PrivTree": "--box x=0..10,y=0..5 --levels 6 --bound 1,1 --unit row",
    "DirectSynthesis": "--strings word --length 4 --depth 4 --bound 1,1 --unit row",
    "ImprovedAdaptiveHistogram": "--threshold 30 --taxonomy codes.csv --code icd --bound 1,1 "
    "--unit row",
    "BasicAdaptiveHistogram": f"--threshold 30 --depth 2 {TABLE}",
    "LaplaceQueries": f"--marginals 1 {TABLE}",
    "AIM": f"--marginals 2 --initial 1 --rounds 5 --delta 1e-9 {TABLE}",
}


@pytest.mark.parametrize("name", KINDS)
def test_every_mechanism_can_be_asked_for(run, name):
    run(
        f"release t.csv --mechanism {name} {KINDS[name]} --epsilon 1000 --epsilon-is-meant --out o.parquet"
    )
    release = Release.load("o.parquet")
    assert release.mechanism.startswith(f"{name}(") and not release.simulated
    spent = release.privacy
    epsilon = spent.epsilon if isinstance(spent, DP) else spent.at(1e-9).epsilon
    assert epsilon <= 1000 * (1 + 1e-9)


def test_a_csv_of_nodes_has_counts_and_errors(run):
    """Which `to_frame` has not: it is of the synthetic records that are drawn from them."""
    run(f"release PrivTree t.csv {KINDS['PrivTree']} --epsilon 1 --out o.csv")
    frame = pd.read_csv("o.csv")
    assert list(frame.columns[:5]) == ["x_from", "x_to", "y_from", "y_to", "level"]
    assert (frame["count"] == frame.noisy).all() and (frame.sd > 0).all()
    assert np.allclose(frame.high - frame.low, 4 * frame.sd)
    assert Release.load("o.csv").estimate.values.tolist() == frame.noisy.tolist()


def test_a_release_says_in_words_that_it_has_no_picture_or_answer(run):
    run(
        f"release t.csv --mechanism LaplaceQueries {KINDS['LaplaceQueries']} --epsilon 1 --out q.csv"
    )
    said = run("show q.csv --picture q.png", code=2).stderr
    assert "there is no picture of queries: need a release of cells" in said
    assert "<" not in said and not Path("q.png").exists()
    said = run("answer q.csv film=2 'film=2 day=mon'", code=2).stderr
    assert "1 of 2 queries were never asked, first query 2 (film=2 day=mon)" in " ".join(
        said.split()
    )
    run(f"release t.csv --mechanism PrivTree {KINDS['PrivTree']} --epsilon 1 --out o.csv")
    said = " ".join(run("answer o.csv x=3", code=2).stderr.split())
    assert "it answers no typed queries. Read the leaves in the release file" in said
    assert "<" not in said


def test_what_is_released_is_what_the_columns_hold(run):
    """At an ε of thousands the noise is gone: each user's records, points, strings and codes are there."""
    huge = "--epsilon 100000 --epsilon-is-meant --out o.parquet --force"
    run(f"release t.csv --mechanism LPA {KINDS['LPA'].replace('10', '300')} {huge}")
    rows = [line.split(",") for line in Path("t.csv").read_text().splitlines()[1:]]
    items = Release.load("o.parquet").estimate.items
    films = np.bincount([int(row[1]) for row in rows], minlength=6)
    assert items.values.tolist() == films.tolist()
    run(f"release t.csv --mechanism DirectSynthesis {KINDS['DirectSynthesis']} {huge}")
    frame = Release.load("o.parquet").to_frame()
    words = [row[5] for row in rows]
    assert dict(zip(frame.word, frame["count"], strict=True)) == {
        word: words.count(word) for word in set(words)
    }
    run(f"release t.csv --mechanism PrivTree {KINDS['PrivTree']} {huge}")
    points = Release.load("o.parquet").to_frame()
    left = sum(float(row[3]) < 5 for row in rows)
    assert (points.x < 5).sum() == left and points.y.between(0, 5).all()


def test_a_user_is_one_unit_however_many_records(run):
    """All records of a user move items and edges by l together, which is what noise is made for."""
    run(
        f"release t.csv --mechanism SRA {KINDS['SRA']} --epsilon 100000 --epsilon-is-meant "
        "--out o.parquet --force"
    )
    release = Release.load("o.parquet")
    assert release.estimate.items.values.sum() == 20 * 5
    assert release.bound.l1 == 5


def test_the_data_choose_among_stated_candidates(run):
    people = "--user user_id --domain domain.json --epsilon 1 --out o.parquet --force"
    chosen = "--choose l=1,3,10 --choose-epsilon 0.5"
    said = run(f"release t.csv --mechanism SRA {people} {chosen}").stdout
    assert "1.5-DP: if the records of a user" in said
    release = Release.load("o.parquet")
    assert release.ledger[0].name == "choice" and release.privacy.epsilon == 1.5
    assert release.mechanism in {f"SRA(budget=DP(epsilon=1.0), l={k})" for k in (1, 3, 10)}
    run(f"release t.csv --mechanism LPA {people} {chosen.replace('l=', 'bound=')}")
    assert "LPA(" in Release.load("o.parquet").mechanism
    table = (
        "--bound 1,1 --user user_id --domain domain.json --epsilon 1 --out o.parquet --force"
    )
    chosen_theta = "--choose theta=2,9 --choose-epsilon 0.5"
    run(f"release t.csv --mechanism HighPassFilter {table} {chosen_theta}")
    filtered = Release.load("o.parquet")
    assert filtered.privacy.epsilon == 1.5 and filtered.estimate.theta in (2, 9)
    line = f"release HighPassFilter t.csv --transform dyadic {table} {chosen_theta}"
    assert "without a transform" in run(line, code=2).stderr.splitlines()[0]
    for wrong, says in {
        f"SRA {chosen} --l 3": "--l is stated and to be chosen",
        "SRA --choose l=1,3": "--choose and --choose-epsilon need each other",
        "SRA --choose 1,3 --choose-epsilon 1": "need l of SRA and candidates",
        "SRA --choose l=1,x --choose-epsilon 1": "--choose = 'x' is not allowed",
        "SRA --choose l=1,1 --choose-epsilon 1": "two or more different",
        "SRA --choose l=1,3 --choose-epsilon 0": "epsilon = 0",
        "SRA --choose theta=1,3 --choose-epsilon 1": "need l of SRA and candidates",
        "GS --choose bound=1,3 --choose-epsilon 1": "--choose is for HighPassFilter, HPA, LPA, SRA",
    }.items():
        line = f"release t.csv --mechanism {wrong} {people}"
        assert says in run(line, code=2).stderr.splitlines()[0]


def test_microdata_are_synthesised(run):
    words = (
        "--domain domain.json --bound 1,1 --unit row --epsilon 4 --marginals 2 --out m.parquet "
        "--force"
    )
    said = run(f"synthesize t.csv --rows 250 {words}").stdout
    assert "4-DP: if the records of row" in said and "250 records" in said
    release = Release.load("m.parquet")
    assert (
        release.to_frame().columns.tolist() == ["film", "day"]
        and len(release.to_frame()) == 250
    )
    run(f"synthesize t.csv --rows paid {words}")
    assert len(Release.load("m.parquet").ledger) == 2
    for wrong, says in {
        "--rows 0": "--rows = 0",
        "--rows many": "--rows = 'many' is not allowed",
        "--rows 5 --marginals 7": "need 1 to 2",
        "--rows 5 --out m.txt": "for example m.parquet",
    }.items():
        line = last_options(f"synthesize t.csv {words} --rows 5 {wrong}")
        assert says in run(line, code=2).stderr


REST = "--unit row --epsilon 1 --out o.parquet"
BAD = {
    f"SRA --domain domain.json --l 5 {REST}": "SRA needs --user COLUMN, the column of users",
    f"SRA --user user_id --domain domain.json {REST}": "SRA needs --l",
    f"SRA --user film --domain domain.json --l 5 {REST}": "cannot be the user and what the user has",
    f"SRA --user nobody --domain domain.json --l 5 {REST}": "has no column nobody",
    f"SRA --user user_id --l 5 --domain domain.json --count x {REST}": "SRA has no option --count",
    f"LPA --user user_id --domain domain.json --bound 5,1 {REST}": "--bound = '5,1' is not allowed",
    f"LPA --user user_id --domain domain.json {REST}": "--bound is missing",
    f"HighPassFilter --theta 3 --item film {TABLE} {REST}": "HighPassFilter has no option --item",
    f"HighPassFilter --theta 3 --strings word --bound 1,1 {REST}": "--strings is for BasicAdaptiveHistogram",
    f"PrivTree --box x=0..10 {TABLE} {REST}": "--domain or a space of points",
    f"PrivTree --box x=0..10 --strings word --bound 1,1 {REST}": "--box or --strings: need exactly one",
    f"PrivTree --box x=0:10 --bound 1,1 {REST}": "need COLUMN=LOW..HIGH",
    f"PrivTree --box x=0..1_0 --bound 1,1 {REST}": "--box = '1_0' is not allowed: need a number",
    f"PrivTree --box x=10..0 --bound 1,1 {REST}": "must lie below high",
    f"PrivTree --box word=0..10 --bound 1,1 {REST}": "row 1, column 'word': found",
    f"PrivTree --bound 1,1 {REST}": "--domain is missing",
    f"PrivTree --taxonomy no.csv --bound 1,1 {REST}": "no.csv: no such file",
    f"PrivTree --taxonomy t.csv --bound 1,1 {REST}": "t.csv: need lines of a code and the code",
    f"LaplaceQueries --marginals 3 {TABLE} {REST}": "need 1 to 2",
    f"LaplaceQueries --marginals no.txt {TABLE} {REST}": "no.txt: no such file",
    f"LaplaceQueries --marginals t.csv {TABLE} {REST}": "attribute 'user_id' is not in",
    f"HighPassFilter --theta 1_0 {TABLE} {REST}": "--theta = '1_0' is not allowed",
    f"HighPassFilter --theta 3 --epsilon 1_0 {TABLE}": "--epsilon = '1_0' is not allowed",
    f"HighPassFilter --tau 3 {TABLE} {REST}": "--tau is for ThresholdSampling",
    f"PrioritySamplng --size 3 {TABLE} {REST}": "no mechanism 'PrioritySamplng'. Did you mean PrioritySampl",
    f"DirichletSynthesis {TABLE} {REST}": "noise drawn in floating point cannot be saved",
}


@pytest.mark.parametrize("line", BAD)
def test_what_does_not_fit_is_refused_in_a_line(run, line):
    before = {p.name for p in Path().iterdir()}
    said = run(last_options(f"release t.csv --mechanism {line}"), code=2).stderr
    assert BAD[line] in said.splitlines()[0]
    assert {p.name for p in Path().iterdir()} == before


@pytest.mark.parametrize(
    "again", ["--theta 4", "--out p.parquet", "--bound=2,1", "--epsilon 1"]
)
def test_what_is_stated_twice_is_refused(run, again):
    line = f"release t.csv --domain domain.json --bound 1,1 --theta 3 {REST} --mechanism HighPassFilter"
    name = again.split("=")[0].split()[0]
    assert f"Error: {name} is given twice" in run(f"{line} {again}", code=2).stderr
    assert not Path("o.parquet").exists()


def test_marginals_are_stated_by_order_or_by_name(run):
    domain = Domain.from_dict(DOMAIN)
    assert stated.read_marginals("2", domain) == Marginals(2)
    Path("m.txt").write_text("film\nday, film\n")
    Path("m.json").write_text('[["film"], ["day", "film"]]')
    named = NamedMarginals((("film",), ("day", "film")))
    assert stated.read_marginals("m.txt", domain) == named
    assert stated.read_marginals("m.json", domain) == named
    cells = named.on(domain)
    assert len(cells) == 6 + 12
    keys = np.array([3, 4])  # film 1 on tue, film 2 on mon
    sums = cells.sums(domain, keys, np.array([5, 7]))
    by_hand = np.zeros(18)
    by_hand[[1, 2]] = 5, 7
    by_hand[[6 + 1 * 6 + 1, 6 + 0 * 6 + 2]] = 5, 7  # in the order of the attributes as named
    assert sums.tolist() == by_hand.tolist()


def test_a_csv_of_marginals_has_a_table_each(run):
    said = run(
        f"release LaplaceQueries t.csv {TABLE} --marginals 1 --epsilon 1 --out m.csv"
    ).stdout
    assert "m.csv.tables has one table per marginal" in said
    days = pd.read_csv("m.csv.tables/day.csv")
    assert list(days.columns) == ["day", "count", "sd", "low", "high"]
    assert days.day.tolist() == ["mon", "tue"]


def test_queries_are_stated_in_a_file(run):
    domain = Domain.from_dict(DOMAIN)
    Path("q.txt").write_text("# two\nfilm=1..3 day=mon\n\nfilm=0|5\n")
    Path("q.json").write_text(
        '[{"film": {"from": 1, "to": 3}, "day": "mon"}, {"film": [0, 5]}]'
    )
    keys = np.arange(12)
    values = np.arange(12) + 1
    expected = [3 + 5 + 7, 1 + 2 + 11 + 12]
    for file in ("q.txt", "q.json"):
        assert stated.read_queries(file, domain).sums(domain, keys, values).tolist() == expected
    asked = f"release t.csv --mechanism LaplaceQueries {TABLE} --out o.parquet"
    asked += " --epsilon 100000 --epsilon-is-meant"
    run(f"{asked} --workload q.txt")
    release = Release.load("o.parquet")
    rows = [line.split(",") for line in Path("t.csv").read_text().splitlines()[1:]]
    first = sum(row[1] in "123" and row[2] == "mon" for row in rows)
    assert release.estimate.values.round().tolist() == [
        first,
        sum(row[1] in "05" for row in rows),
    ]
    wrong = {
        "film=9": "q.txt, line 1: film = '9' is not in the domain",
        "film": "q.txt, line 1: ",
        "": "q.txt contains no query",
    }
    for content, says in wrong.items():
        Path("q.txt").write_text(content)
        assert says in run(f"{asked} --force --workload q.txt", code=2).stderr


def test_a_taxonomy_is_a_file_of_codes(run):
    tree = Taxonomy.read("codes.csv", "icd")
    pairs = (("A", None), ("A1", "A"), ("A2", "A"), ("B", None), ("B1", "B"))
    assert tree == Taxonomy(pairs, "icd")
