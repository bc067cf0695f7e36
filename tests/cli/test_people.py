"""Releases that protect users, enforced, and what is said where a bound is only believed."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.commands import run_command
from workbench.estimates.describing import USERS_CUT
from workbench.estimates.release import Release

HERD = 400  # trips of one user, from zone 0 to hour 0


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in a folder with trips of 60 users, of whom one has most."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    trips = pd.DataFrame(
        {
            "user_id": [*rng.integers(100, 160, 300), *[7] * HERD],
            "zone": [*rng.integers(0, 5, 300), *[0] * HERD],
            "hour": [*rng.integers(0, 24, 300), *[0] * HERD],
        }
    )
    trips.assign(x=trips.zone + 0.5, word="w").to_csv("t.csv", index=False)
    trips.to_parquet("t.parquet")
    Path("domain.json").write_text('{"zone": 5, "hour": 24}')

    return run_command


ASK = "--domain domain.json --out o.parquet --force --epsilon"
FILTER = "--mechanism HighPassFilter --theta 1"


def largest(release):
    return release.estimate.weights().max()


def test_a_user_with_most_trips_moves_the_table_by_the_bound_and_no_more(run):
    """At an ε of a million the noise is gone: what stays of the herd is what the bound says."""
    for file in ("t.csv", "t.parquet"):
        said = run(
            f"release {file} --user user_id --bound 2,3 {FILTER} {ASK} 1e6 --epsilon-is-meant"
        ).stdout
        release = Release.load("o.parquet")
        assert largest(release) <= 3 + 60 * 3 and release.bound.status == "enforced"
        assert release.bound.unit == "a user (column user_id)"
        assert "Enforced: each user (column user_id) adds at most 3 to each of 2 cells" in said
        assert "if the records of a user (column user_id) are added or removed" in said
        assert release.estimate.weights().sum() <= 61 * 6
    for told in ("show o.parquet", "answer o.parquet '*'", "answer o.parquet '*' --error"):
        said = " ".join(run(told).stdout.split())
        assert "Enforced: each user (column user_id)" in said
        assert "error bars are about what was kept" in said


@pytest.mark.parametrize(
    "more",
    [
        "--mechanism PrioritySampling --size 50",
        "--mechanism LaplaceQueries --marginals 1",
        "--mechanism StabilityHistogram --delta 1e-6",
        "--mechanism BasicAdaptiveHistogram --threshold 3 --depth 2",
        "--mechanism GeometricHistogram",
    ],
)
def test_every_mechanism_of_tables_is_given_users_that_are_cut(run, more):
    run(f"release t.csv --user user_id --bound 2,1 {more} {ASK} 3")
    release = Release.load("o.parquet")
    assert release.bound.status == "enforced" and release.bound.l1 == 2


def test_points_and_strings_are_cut_by_user_too(run):
    """5 zones; 61 users, of whom each keeps one point."""
    space = "--box x=0..5 --levels 3 --user user_id --bound 1,1 --out o.parquet --force"
    run(f"release t.csv {space} --mechanism PrivTree --epsilon 1e5 --epsilon-is-meant")
    release = Release.load("o.parquet")
    assert release.bound.unit == "a user (column user_id)" and len(release.to_frame()) == 61


def test_rows_without_users_are_believed_and_that_is_written(run):
    said = run(f"release t.csv --unit 'a trip' --bound 10,10 {FILTER} {ASK} 1").stdout
    release = Release.load("o.parquet")
    assert (release.bound.status, release.bound.unit) == ("believed, not enforced", "a trip")
    for text in (said, run("show o.parquet").stdout):
        assert "Believed, not enforced: one unit (a trip) adds at most 10" in text
    said = run(f"release t.csv --unit 'a trip' --bound 1,1 {FILTER} {ASK} 1").stdout
    assert "As stated, one unit (a trip) adds at most 1 to one cell." in said
    assert Release.load("o.parquet").bound.status == "as stated"


def test_the_column_may_name_another_unit_than_a_user(run):
    run(f"release t.csv --user user_id --unit 'a household' --bound 2,1 {FILTER} {ASK} 1")
    assert Release.load("o.parquet").bound.unit == "a household (column user_id)"


def test_how_many_users_were_cut_is_told_for_a_receipt_and_nothing_else_is(run):
    command = f"release t.csv --user user_id --bound 2,1 --report-cut 1e6 {FILTER} {ASK} 1"
    command += " --epsilon-is-meant"
    said = run(command).stdout
    release = Release.load("o.parquet")
    trips = pd.read_csv("t.csv")
    rows = trips.groupby("user_id").size()
    cells = trips.drop_duplicates().groupby("user_id").size()
    lost = int(((cells > 2) | (rows > cells)).sum())
    assert release.users_cut == lost
    assert [r.cost.epsilon for r in release.ledger if r.name == USERS_CUT] == [1e6]
    assert release.privacy.epsilon == 1e6 + 1
    assert f"{lost} users lost something to the bound (within ± 0 in 95 of 100 cases)." in said
    without = [run(command.replace("--report-cut 1e6", "")).stdout for _ in range(3)]
    assert "lost anything" not in without[0] and Release.load("o.parquet").users_cut is None
    numbers = set.intersection(*(set(re.findall(r"\d+", text)) for text in without))
    assert not numbers & {str(len(trips)), str(len(rows)), str(lost), str(HERD)}


@pytest.mark.parametrize(
    "options",
    ["SRA --l 3", "HPA --l 3 --d 1", "LPA --bound 3"]
    + ["GS --bound 3 --width 4", "FPA --bound 3 --k 5 --once true"],
)
def test_how_many_users_a_mechanism_cut_is_told_too(run, options):
    line = "release t.csv --user user_id --report-cut 1e6 --domain domain.json --epsilon 1"
    line += " --epsilon-is-meant"
    run(f"{line} --out o.parquet --mechanism {options}")
    release = Release.load("o.parquet")
    trips = pd.read_csv("t.csv")
    rows = trips.groupby("user_id").size()
    items = trips.drop_duplicates(["user_id", release.estimate.domain.attributes[0]])
    items = items.groupby("user_id").size()
    lost = (items > 3) | (items < rows) if "once" in options else rows > 3
    assert release.users_cut == lost.sum() and 0 < lost.sum() < len(lost)
    assert release.privacy.epsilon == 1e6 + 1


def test_a_seed_repeats_the_cut_as_well_as_the_noise(run):
    command = f"release t.csv --user user_id --bound 2,1 --report-cut 1 {FILTER} {ASK} 1"
    frames = []
    for seed in (1, 1, 2):
        run(f"{command} --simulated --seed {seed}")
        release = Release.load("o.parquet")
        frames.append(release.to_frame().assign(cut=release.users_cut))
        assert release.simulated
    assert frames[0].equals(frames[1]) and not frames[0].equals(frames[2])


def test_items_and_contexts_may_be_several_columns_each(run):
    Path("wide.json").write_text('{"zone": 5, "hour": 24, "word": ["v", "w"]}')
    asked = "--mechanism SRA --l 3 --user user_id --domain wide.json --out o.parquet --force"
    run(
        f"release t.csv --item zone,hour --context word {asked} --epsilon 1e6 --epsilon-is-meant"
    )
    estimate = Release.load("o.parquet").estimate
    assert estimate.domain.attributes == ("zone × hour", "word")
    assert estimate.items.values[0] >= 3  # of the herd, which starts in zone 0 at hour 0
    for wrong, says in {
        "--item zone,hour --context hour": "different attributes",
        "--item zone,hour,word": "no attribute left",
        "--item zone,day --context word": "'day' is not in",
    }.items():
        assert says in run(f"release t.csv {wrong} {asked} --epsilon 1", code=2).stderr


BAD = {
    f"--bound 2,1 {FILTER} {ASK} 1": "--user or --unit is missing",
    f"--bound 2,1 --report-cut 1 --unit 'a trip' {FILTER} {ASK} 1": "--user does not take --report-cut",
    f"--user user_id --bound 2,1 --report-cut 0 {FILTER} {ASK} 1": "need a finite ε > 0",
    f"--user user_id --bound 2,1 --report-cut nan {FILTER} {ASK} 1": "need a finite ε > 0",
    f"--user nobody --bound 2,1 {FILTER} {ASK} 1": "no column nobody",
    f"--user user_id --bound 2,0.5 {FILTER} {ASK} 1": "linf = 0.5 is not allowed",
    f"--unit 'a trip' --bound 1,0.001 {FILTER} {ASK} 1": "a unit moves a count by 1 or not at all",
    f"--unit 'a trip' --bound 4,1,0.5 {FILTER} {ASK} 1": "l1 = 0.5 is not allowed",
    f"--user user_id --bound 2 {FILTER} {ASK} 1": "need L0,LINF",
    f"--user user_id {FILTER} {ASK} 1": "--bound is missing",
    f"--user user_id --bound 2,1 --report-cut 1e-99 {FILTER} {ASK} 1": "too small",
    f"--user user_id --user-type int --bound 2,1 {FILTER} {ASK} 1": "'int' is not one of 'text'",
    f"--user-type text --unit 'a trip' --bound 1,1 {FILTER} {ASK} 1": "--user does not take --user-type",
    f"--user '' --bound 2,1 {FILTER} {ASK} 1": "has no column",
    f"--user user_id --unit {'x' * 400} --bound 1,1 {FILTER} {ASK} 1": "at most 300 characters",
    f"--unit '' --bound 1,1 {FILTER} {ASK} 1": "need words",
    f"--unit 'a\nb' --bound 1,1 {FILTER} {ASK} 1": "on one line",
}


@pytest.mark.parametrize("options", BAD)
def test_what_does_not_say_who_is_protected_is_refused(run, options):
    said = run(f"release t.csv {options}", code=2).stderr
    assert BAD[options] in said and not Path("o.parquet").exists()


def test_the_refusal_shows_both_ways(run):
    said = run(f"release t.csv --bound 2,1 {FILTER} {ASK} 1", code=2).stderr
    assert "--user user_id --bound 10,1" in said and "--unit 'a trip' --bound 1,1" in said


def test_a_domain_read_off_the_data_is_not_that_of_users(run):
    Path("t.csv").write_text("user_id,zone\nann,1\nben,2\nann,2\n")
    more = "--out o.parquet --epsilon 1 --domain-from-data --mechanism HighPassFilter --theta 1"
    run(f"release t.csv --user user_id --bound 1,1 {more}")
    assert Release.load("o.parquet").estimate.domain.attributes == ("zone",)
