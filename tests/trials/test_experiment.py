"""Resume, order-independence, and a repr that is a configuration."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from workbench import (
    DP,
    Bound,
    Domain,
    Dyadic,
    RandomRanges,
    SparseTable,
    Sweep,
    Trial,
    datasets,
    run,
    trials,
)
from workbench.mechanisms import (
    FPA,
    GeometricHistogram,
    HighPassFilter,
    Laborious,
    PrioritySampling,
)
from workbench.trials import inputs, metrics, running
from workbench.value import value

DATA = datasets.GaussianSparse(m=2000, density=0.05)
A, B = GeometricHistogram(DP(0.5)), PrioritySampling(DP(0.5), 50, theta=10)
METRIC = metrics.MeanAbsoluteError(RandomRanges(100, 20))


def sweep(*mechanisms, seeds=2, **more):
    return Sweep([DATA], mechanisms, [METRIC], seeds=seeds, **more)


def test_the_first_dataset_whose_files_are_here_is_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    missing = datasets.NetTrace()
    assert trials.first_available(missing, DATA, missing) is DATA
    assert trials.first_available(missing, None) is None


def test_resumes_without_running_again(tmp_path):
    first = run(sweep(A), tmp_path)
    assert run(sweep(A), tmp_path).equals(first)  # `seconds` too, so nothing was rerun


def test_adding_and_reordering_moves_no_other_number(tmp_path):
    alone = run(sweep(B), tmp_path / "alone").value.tolist()
    rows = run(sweep(A, B, seeds=3), tmp_path / "both")
    assert rows[rows.mechanism == "PrioritySampling"].value.tolist()[:2] == alone


def test_a_trials_text_is_its_configuration_and_its_stream():
    trial = Trial(DATA, B, 0)
    names = {"Trial": Trial, "DP": DP, "GaussianSparse": datasets.GaussianSparse}
    pasted = eval(repr(trial), names | {"PrioritySampling": PrioritySampling})
    assert pasted == trial
    data = DATA.load()
    one, two, three = (
        t.release(data).estimate.values for t in (trial, pasted, Trial(DATA, B, 1))
    )
    assert (one == two).all() and not np.array_equal(one, three)
    assert trial.release(data).simulated


def test_a_new_metric_is_measured_on_old_trials(tmp_path):
    run(sweep(A), tmp_path)
    more = Sweep(
        [DATA], [A], [METRIC, metrics.MedianRelativeError(RandomRanges(100, 20))], seeds=2
    )
    assert set(run(more, tmp_path).metric) == {"MeanAbsoluteError", "MedianRelativeError"}


def test_rows_say_everything(tmp_path):
    row = run(sweep(B), tmp_path).iloc[0]
    assert (row.dataset, row.mechanism, row.epsilon, row.theta) == (
        repr(DATA),
        "PrioritySampling",
        0.5,
        10,
    )
    assert row.released == 50 and row.query_size == 100 and row.seconds > 0 and row.truth_public
    nested = run(sweep(Laborious(B)), tmp_path).iloc[0]
    assert nested.mechanism == "Laborious(PrioritySampling)" and nested.theta == 10
    tree = PrioritySampling(DP(0.5), 50, theta=10, transform=Dyadic())
    basis = run(sweep(B, tree), tmp_path)["transform"]
    assert basis.tolist()[2:] == ["Dyadic()"] * 2 and basis.isna().sum() == 2


def test_rows_say_what_a_metric_counts(tmp_path):
    twin = datasets.InteractionsTwin(40, 12, 400, 30, contexts="check-in week")
    of = [metrics.MeanSquaredCountError("items"), metrics.KLDivergence("edges")]
    mechanisms = [FPA(DP(1.0), 30, k=5), FPA(DP(1.0), 30, k=7)]
    rows = run(Sweep([twin], mechanisms, [*of, metrics.TopPrecision(3)], 2), tmp_path)
    assert rows.of.tolist() == ["items", "edges", "items"] * 4
    directed = rows[rows.direction == "released_given_original"]
    assert set(directed.metric) == {"KLDivergence"} and len(directed) == 4
    assert rows.top.dropna().tolist() == [3] * 4 and rows.top.isna().sum() == 8
    assert rows.k.tolist() == [5] * 6 + [7] * 6


def test_workers_change_nothing_but_the_time(tmp_path):
    one = run(sweep(A, B), tmp_path / "one")
    two = run(sweep(A, B), tmp_path / "two", workers=2)
    assert one.drop(columns="seconds").equals(two.drop(columns="seconds"))


def test_what_a_notebook_defines_is_not_cached_and_says_so(tmp_path):
    def released(truth, estimate):
        return float(len(estimate))

    with pytest.warns(UserWarning, match="not cached"):
        rows = run(Sweep([DATA], [A], [released], seeds=1), tmp_path)
    assert rows.value.tolist() == [2000.0] and not list(tmp_path.iterdir())


def test_sources_are_followed_through_imports():
    seen = [str(path) for path in inputs.sources(frozenset({HighPassFilter.__module__}))]
    needed = "mechanisms/summaries noise/__init__ noise/laws noise/kernels estimates/summary"
    for name in [*needed.split(), "workbench/queries"]:
        assert any(name in s for s in seen), name
    assert not any("mechanisms/histograms" in s or "datasets" in s for s in seen)


def test_a_damaged_row_is_measured_again(tmp_path):
    first = run(sweep(A, seeds=1), tmp_path)
    (kept,) = tmp_path.iterdir()
    kept.write_text(kept.read_text()[:-20])
    assert run(sweep(A, seeds=1), tmp_path).value.equals(first.value)
    assert json.loads(kept.read_text())


@pytest.mark.slow
def test_a_killed_run_continues(tmp_path):
    code = f"""
        from workbench import *
        from workbench import datasets, mechanisms, metrics
        data = datasets.GaussianSparse(m=200_000)
        s = Sweep([data], [mechanisms.GeometricHistogram(DP(0.1))],
                  [metrics.MeanAbsoluteError(RandomRanges(10, 10))], seeds=400)
        run(s, {str(tmp_path)!r})
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stderr=subprocess.DEVNULL
    )
    while child.poll() is None and len(list(tmp_path.glob("*.json"))) < 5:
        pass
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    kept = list(tmp_path.glob("*.json"))
    assert 5 <= len(kept) < 400 and all(json.loads(p.read_text()) for p in kept)


def test_a_sweep_needs_a_seed():
    with pytest.raises(ValueError, match="seeds"):
        sweep(A, seeds=0)


def test_estimators_are_scored_beside_the_release(tmp_path):
    with pytest.warns(UserWarning, match="not cached"):
        rows = run(sweep(A, seeds=1, estimators=[_same]), tmp_path)
    assert len(rows) == 2 and rows.value.nunique() == 1


def _same(estimate):
    return estimate


def test_another_file_under_the_same_name_is_measured_again(tmp_path, monkeypatch):
    folder = tmp_path / "adult"
    folder.mkdir()
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    (folder / "adult.data").write_text("a")
    place = lambda: running.row_file(Trial(datasets.Adult(), B, 0), sweep(B), tmp_path)
    before = place()
    assert place() == before
    (folder / "adult.data").write_text("ab")
    assert place() != before


DECIDE = "mechanisms/summaries mechanisms/straw_men noise/priorities noise/kernels".split()
DECIDE += "datasets/synthetic trials/metrics/answers queries/ranges".split()
DECIDE += "estimates/summary trials/sweep trials/running".split()


@pytest.mark.parametrize("room", DECIDE)
def test_a_row_is_renamed_when_a_source_that_decides_it_changes(tmp_path, monkeypatch, room):
    sources, read = inputs.source_hash.__wrapped__, Path.read_text
    monkeypatch.setattr(inputs, "source_hash", sources)  # without what it remembers
    laborious = Laborious(B)
    place = lambda: running.row_file(Trial(DATA, laborious, 0), sweep(laborious), tmp_path)  # noqa: E731
    before, changed = place(), f"workbench/{room}.py"
    edited = lambda self, *a, **k: read(self, *a, **k) + "#" * str(self).endswith(changed)  # noqa: E731
    assert place() == before
    monkeypatch.setattr(Path, "read_text", edited)
    assert place() != before


class _Cut:
    __module__ = "workbench.inference"  # as one of ours

    def __init__(self, theta):
        self.theta = theta

    def __repr__(self):
        return f"Cut({self.theta})"


def test_rows_of_another_estimator_are_other_rows(tmp_path):
    names = {
        running.row_file(Trial(DATA, B, 0), sweep(B, estimators=some), tmp_path)
        for some in ([], [_Cut(3)], [_Cut(4)], [_Cut(4), _Cut(3)])
    }
    assert len(names) == 4


def test_trials_of_one_seed_share_no_noise():
    """Seeded: never by chance; sees half of the noise shared."""
    data, other = DATA.load(), datasets.GaussianSparse(m=2000, density=0.05, seed=1)
    wide = GeometricHistogram(DP(0.5), memory=2**31)
    values = [
        t.release(data).estimate.values
        for t in (Trial(DATA, A, 0), Trial(DATA, wide, 0), Trial(other, A, 0))
    ]
    assert all(
        np.mean(x == y) < 0.5 for x, y in zip(values, values[1:] + values[:1], strict=True)
    )


def test_code_edited_in_a_running_process_is_not_cached(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "STARTED", 0.0)
    with pytest.warns(UserWarning, match="changed since it was imported"):
        run(sweep(A, seeds=1), tmp_path)
    assert not list(tmp_path.iterdir())


def test_trials_that_are_equal_but_written_differently_are_two(tmp_path):
    pair = HighPassFilter(DP(1.0), theta=20), HighPassFilter(DP(1), theta=20.0)
    assert len(run(sweep(*pair), tmp_path)) == 4


@value
class Cells:
    """A metric that needs no truth."""

    def __call__(self, data, estimate):
        return float(len(estimate))


@value
class Three:
    """A dataset of three cells."""

    truth_public: bool

    def load(self):
        domain = Domain(("axis0",), (3,))
        keys, counts = np.array([0, 2]), np.array([3, 5])
        return SparseTable.from_keys(
            domain, keys, counts, Bound(1), truth_public=self.truth_public
        )


def test_rows_say_whether_their_truth_is_public(tmp_path):
    for public in (True, False):
        data = Three(public)
        rows = run(Sweep([data], [A], [Cells()], seeds=1), tmp_path / str(public))
        assert rows.truth_public.eq(public).all()
