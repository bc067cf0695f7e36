"""Advice: it follows from beliefs alone, and its errors are those that releases have."""

import json
from time import perf_counter

import numpy as np
import pytest

from tests.agreement import seeded
from tests.cli.commands import run_command
from workbench import DP, Beliefs, Domain, Prefixes, Quadtree, advise
from workbench.mechanisms import GeometricHistogram, HighPassFilter, PrioritySampling
from workbench.owner.advice import choose_bound, records_of_people
from workbench.owner.advice.simulation import questions
from workbench.value import value

LINE = Domain(("x",), (10_000,))
GRID = Domain(("home", "work"), (60, 50))
FULL = Beliefs.of_counts(LINE, 0.1, 100, 20)
LONG = dict(seconds=120.0)  # so that every candidate runs, however busy the machine is


@pytest.mark.parametrize(
    "density, mean, spread",
    [(0.1, 100, 20), (0.01, 2, 3), (0.5, 10, 0), (1, 5, 5), (0.1, 1, 0)],
)
def test_simulated_tables_are_as_believed(density, mean, spread):
    table = Beliefs.of_counts(LINE, density, mean, spread).load()
    assert len(table) == round(density * LINE.size) and table.counts.min() >= 1
    assert table.counts.mean() == pytest.approx(mean, rel=0.35)
    assert table.counts.std() == pytest.approx(spread, rel=0.6, abs=0.01)
    again = Beliefs.of_counts(LINE, density, mean, spread)._load()
    assert (table.keys == again.keys).all() and (table.counts == again.counts).all()


def test_what_cannot_answer_is_not_the_most_accurate():
    """LaplaceQueries here answers no cell, and everything else errs by more than a cell holds."""
    few = Beliefs.of_counts(Domain(("a", "b"), (30, 30)), 0.1, 2, 3)
    told = advise(few, 0.01, seconds=20)
    errors = {row.name: row.errors["cell"] for row in told.rows}
    least = min(errors, key=lambda name: np.nan_to_num(errors[name], nan=np.inf))
    assert np.isnan([*errors.values()]).any() and f"even with {least}, " in told.recommendation


def test_popular_labels_have_more_records():
    for popularity, least, most in ((0.0, 1, 3), (1.0, 3, 100)):
        table = Beliefs(GRID, 6_000, 600, popularity=popularity).load()
        rows = np.bincount(table.keys // 50, table.counts, minlength=60)
        assert least < rows.max() / rows.mean() < most


def test_large_data_are_simulated_in_part():
    vast = Beliefs(Domain(("a", "b"), (10**5, 10**5)), 10**8, 10**7)
    small, part = vast.simulated()
    assert small.cells <= 50_000 and small.mean == pytest.approx(10)
    assert small.cells / small.domain.size == pytest.approx(
        vast.cells / vast.domain.size, rel=0.1
    )
    assert part == pytest.approx(small.cells / vast.cells, rel=0.01)
    told = advise(vast, 1.0, task="cells", size=10**7, **LONG)
    assert "covers 0.049 %" in " ".join(told.notes) and told.mechanism.size > 10**5
    assert told.rows[0].cells > 10**6


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Beliefs(LINE, 10, 100), "10 records contradict 100 non-empty cells"),
        (lambda: Beliefs(LINE, 10**6, 10**5), "contradict a domain of 10,000 cells"),
        (lambda: Beliefs(LINE, 50, 50, spread=3.0), "contradicts a mean count of 1"),
        (lambda: Beliefs(LINE, 10, users=11), "11 people cannot have 10 records"),
        (lambda: Beliefs.of_counts(LINE, 0.0, 2, 3), "density = 0.0"),
        (lambda: Beliefs.of_counts(LINE, 0.1, 0.5, 3), "mean = 0.5"),
        (lambda: Beliefs("x", 10), "need a Domain"),
        (lambda: advise(FULL), "give either epsilon or error"),
        (lambda: advise(FULL, 1.0, error=3.0), "give either epsilon or error"),
        (lambda: advise(FULL, 0.0), "epsilon = 0.0"),
        (lambda: advise(FULL, float("nan")), "epsilon = nan"),
        (lambda: advise(FULL, 1.0, delta=1.0), "delta = 1.0"),
        (lambda: advise(FULL, 1.0, task="range"), "Did you mean ranges"),
        (lambda: advise(FULL, 1.0, size=0), "size = 0"),
        (lambda: advise(FULL, 1.0, queries=[10**5]), "does not fit the domain"),
        (lambda: advise(FULL, 1.0, task="boxes", shape=[1, 1]), "does not fit a domain"),
        (lambda: advise(FULL, 1.0, task="rows", order=3), "order = 3"),
        (lambda: advise(FULL, 1.0, task="users"), "number of people"),
        (lambda: advise(FULL, 1.0, task="records"), "does not fit Domain"),
        (lambda: advise(Beliefs(LINE, 10), 1.0), "number of non-empty cells"),
        (lambda: advise(FULL, error=500.0), "an empty release has no larger error"),
    ],
)
def test_beliefs_and_arguments_that_contradict_are_refused(make, words):
    with pytest.raises(ValueError) as refused:
        make()
    assert words in str(refused.value)


def test_errors_are_those_of_releases_where_people_are():
    """Seeded: never by chance; sees an error that is off by 20 %."""
    told = advise(FULL, 0.5, task="all", size=1_000, queries=[500], **LONG)
    table = FULL.load()
    cell, long = questions(FULL, "all", [500], None, 2)
    for mechanism in (HighPassFilter(DP(0.5), size=1_000), GeometricHistogram(DP(0.5))):
        (row,) = (row for row in told.rows if row.mechanism == mechanism)
        for each in (cell, long):
            errors = [
                np.abs(mechanism(table, seeded(s)).answer(each.workload) - each.answers).mean()
                for s in range(20)
            ]
            assert row.errors[each.kind] == pytest.approx(np.mean(errors), rel=0.2)
    plain = (row for row in told.rows if "," not in row.name)
    (geometric,) = (row for row in plain if type(row.mechanism) is GeometricHistogram)
    assert (geometric.cells, geometric.noise_cells) == (10_000, 9_000)
    assert told.truths["cell"] > 100 and geometric.cost == "ε = 0.5"
    scores = [row.score for row in told.rows if row.cells <= 2_000]
    assert np.diff(scores).min() > -0.001


def test_the_score_is_error_where_people_are():
    """With density 0.1, mean 2 and spread 3, a mean over all cells prefers a release of nothing."""
    few = Beliefs.of_counts(LINE, 0.1, 2, 3)
    shown = advise(few, 1.0, task="cells", **LONG)
    assert shown.shows and shown.rows[0].score < 0.5 and shown.rows[0].cells > 100
    hidden = advise(few, 0.1, task="cells", **LONG)
    assert not hidden.shows and "no mechanism can show anything" in hidden.recommendation
    assert hidden.coarser.size < 1_000
    assert f"table of {hidden.coarser.size} cells" in hidden.recommendation
    coarse = Beliefs(hidden.coarser, few.records, hidden.coarser.size)
    assert advise(coarse, 0.1, task="cells", **LONG).shows


def test_nothing_works_for_a_handful_of_people_at_a_tiny_epsilon():
    told = advise(Beliefs(GRID, 5, 5), 0.001, task="cells", **LONG)
    assert not told.shows and told.coarser is None and "use a larger ε" in told.recommendation


def test_the_least_epsilon_for_an_error():
    """Seeded: never by chance. Geometric noise has a mean absolute error of about 1/ε."""
    told = advise(FULL, error=20.0, task="cells", **LONG)
    assert 0.03 < told.epsilon < 0.07
    assert told.rows[0].errors["cell"] <= 20
    assert "least ε for an error of 20" in told.recommendation
    assert told.mechanism.budget.epsilon == told.epsilon
    half = advise(FULL, error=10.0, task="cells", **LONG)
    assert half.epsilon > 1.5 * told.epsilon


def test_a_delta_adds_gaussian_noise_and_stability():
    told = advise(FULL, 1.0, task="cells", delta=1e-6, **LONG)
    costs = {row.cost for row in told.rows}
    assert "ε = 1, δ = 1e-06" in costs and any(cost.startswith("ρ = ") for cost in costs)
    assert any("stability" in row.name for row in told.rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    "beliefs, task, best",
    [
        (Beliefs(GRID, 6_000, 600), "marginals", "LaplaceQueries"),
        (Beliefs(GRID, 6_000, 600), "degrees", "UnattributedHistogram"),
        (Beliefs(GRID, 6_000, 600), "rows", "MaximumEntropySynthesis"),
        (Beliefs(GRID, 6_000, 600), "boxes", None),
        (Beliefs(GRID, 21_000, users=3_000), "users", None),
        (Beliefs(Quadtree(2, 10), 300_000), "records", None),
        (Beliefs(Prefixes("abc", 6), 5_000), "records", None),
    ],
)
def test_each_task_has_rows_of_its_kinds(beliefs, task, best):
    told = advise(beliefs, 1.0, task=task, order=1, **LONG)
    assert told.shows and len(told.truths) >= 1
    assert told.recommendation.startswith("At ε = 1 take ")
    assert best is None or type(told.mechanism).__name__ == best
    assert all(np.isfinite(row.errors[next(iter(told.truths))]) for row in told.rows[:1])
    for row in told.rows:
        assert row.mechanism.budget == DP(1.0)


@value
class Oracle(HighPassFilter):
    """A plug-in."""

    series = "oracle"


def test_plug_ins_take_part(monkeypatch):
    monkeypatch.setattr("workbench.owner.advice.simulation.other_mechanisms", lambda: [Oracle])
    told = advise(FULL, 1.0, task="cells", **LONG)
    assert any(type(row.mechanism) is Oracle for row in told.rows)


def test_the_time_is_kept_and_progress_is_shown():
    shown = []
    start = perf_counter()
    told = advise(FULL, 1.0, seconds=0.0, progress=lambda text, share: shown.append(share))
    assert "The time ended before" in " ".join(told.notes)
    compared = {type(row.mechanism) for row in told.rows}
    # One setting of each runs.
    assert {GeometricHistogram, HighPassFilter, PrioritySampling} <= compared
    assert shown and 0 <= min(shown) <= max(shown) <= 1 and perf_counter() - start < 60


# Command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.setattr("workbench.owner.advice.advice._SECONDS", 120.0)
    (tmp_path / "domain.json").write_text(json.dumps({"home": 60, "work": 50}))
    (tmp_path / "YOUR.csv").write_text("home,work\n1,2\n3,4\n")
    return tmp_path


BELIEVED = "--domain domain.json --records 6000 --cells 600"


def test_the_command_prints_a_table_a_sentence_and_a_release_that_runs(folder):
    out = run_command(f"advise {BELIEVED} --epsilon 1 --bound 2,1").output
    assert "pure noise" in out and "At ε = 1 take " in out
    line = out.strip().splitlines()[-1]
    assert line.startswith("workbench release YOUR.csv --domain domain.json --bound 2,1 --unit")
    run_command(line.removeprefix("workbench "))
    assert (folder / "release.parquet").exists()


def test_the_command_finds_the_least_epsilon(folder):
    out = run_command(
        "advise --domain domain.json --density 0.2 --mean 100 --spread 20 --error 20 --task cells"
    ).output
    assert "The least ε for an error of 20 is about 0.0" in out


def test_the_command_prints_no_release_where_nothing_can_be_shown(folder):
    out = run_command(
        "advise --domain domain.json --records 800 --cells 700 --epsilon 0.05 --task cells"
    ).output
    assert "no mechanism can show anything" in out and "workbench release" not in out
    assert "merge" in out


@pytest.mark.parametrize(
    "line, words",
    [
        ("--domain domain.json --epsilon 1", "--cells or --density: need exactly one of them"),
        (f"{BELIEVED} --density 0.1 --epsilon 1", "--cells or --density: need exactly one"),
        ("--domain domain.json --records 5 --cells 600 --epsilon 1", "5 records contradict"),
        (
            "--domain domain.json --density 2 --mean 3 --epsilon 1",
            "'--density': Input should be",
        ),
        (
            "--domain domain.json --density 0.2 --mean 0.3 --epsilon 1",
            "'--mean': Input should be",
        ),
        (f"{BELIEVED} --epsilon 1 --error 3", "either epsilon or error"),
        (f"{BELIEVED} --epsilon 1 --task cell", "Did you mean cells"),
        (f"{BELIEVED} --epsilon 1 --users 5", "--users does not apply to all"),
        (f"{BELIEVED} --epsilon 1 --task cells --shape 3,4", "--shape does not apply to cells"),
        ("--domain domain.json --task users --epsilon 1", "--users and --per-user are missing"),
        ("--task points --epsilon 1", "--box is missing"),
        ("--records 6000 --cells 600 --epsilon 1", "--domain is missing"),
        ("--domain domain.json --bounds 1,2 --users 9 --per-user 2", "--epsilon is missing"),
    ],
)
def test_lines_that_contradict_are_refused(folder, line, words):
    assert words in run_command(f"advise {line}", 2).output


# A bound that the table chooses


def test_a_table_chooses_a_bound_for_a_price(tmp_path, monkeypatch):
    """40 cells at epsilon 1: the 40th of 400 users has 8 records, and candidates are ranked around it."""
    monkeypatch.chdir(tmp_path)
    records = [1] * 200 + [3] * 160 + [8] * 30 + [50] * 10
    lines = [f"u{u},{i % 40}" for u, n in enumerate(records) for i in range(n)]
    (tmp_path / "t.csv").write_text("\n".join(["user,x", *lines]))
    (tmp_path / "d.json").write_text(json.dumps({"x": 40}))
    found = records_of_people("t.csv", Domain(("x",), (40,)), "user")
    assert sorted(found) == records
    drawn = {
        choose_bound(found, (1, 8, 60), 40, epsilon=5.0, rng=seeded(s))[0] for s in range(20)
    }
    assert drawn == {8}
    bound, receipt = choose_bound(found, (1, 8, 60), 40, epsilon=0.25)
    assert receipt.cost == DP(0.25) and bound in (1, 8, 60) and not receipt.simulated
    asked = "advise --domain d.json --bounds 1,8,60 --epsilon 1 --choose-from t.csv --user user"
    run_command("budget new b.budget --people us --unit 'a user' --epsilon 5")
    printed = run_command(f"{asked} --choose-epsilon 4 --choose-budget b.budget").output
    assert "at a cost of ε = 4" in printed and "--bound 8,8,8 --user user" in printed
    refused = run_command(f"{asked} --choose-epsilon 4 --choose-budget b.budget", 2).output
    assert "nothing was spent" in refused
    for line in (asked, "advise --domain d.json --bounds 1,2 --epsilon 1 --choose-epsilon 1"):
        assert "--choose-from needs" in run_command(line, 2).output
    with pytest.raises(ValueError, match="need integers >= 1"):
        choose_bound(found, (1, 0), 40, epsilon=1.0)
