"""Rows out of core: the same cells, the same cut, the same law and price, however they are spread."""

import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from joblib.externals.loky import ProcessPoolExecutor

from tests.agreement import seeded
from workbench import DP, Bound, Domain, SparseTable
from workbench.data import UNBOUNDED, Interactions
from workbench.estimates.release_files import write_release
from workbench.mechanisms import (
    HPA,
    LPA,
    SRA,
    HighPassFilter,
    LaplaceHistogram,
    LaplaceQueries,
    PrioritySampling,
    PrivTree,
    StabilityHistogram,
    ThresholdSampling,
)
from workbench.owner import scale
from workbench.owner.scale import Rows, counting, release
from workbench.queries import Dyadic, Haar, Marginals, TableQueries

DOMAIN = Domain(("a", "b"), (37, 50))
BOUND = Bound(4, 2, 6)
KEY = bytes(range(32))
SURE = 1e6  # ε without noise that anybody sees
FILTER = HighPassFilter(DP(1.0), theta=5)
EVERY_CELL = HighPassFilter(DP(SURE), theta=1)
EXACT = [
    EVERY_CELL,
    ThresholdSampling(DP(SURE), tau=1),
    PrioritySampling(DP(SURE), size=1850),
    PrioritySampling(DP(SURE), size=1800, theta=1),
    HighPassFilter(DP(SURE), theta=1, transform=Dyadic()),
    HighPassFilter(DP(SURE), theta=1, transform=Dyadic(split="geometric")),
    HighPassFilter(DP(SURE), theta=1, transform=Haar()),
    HighPassFilter(DP(SURE), theta=2, transform=Dyadic(), consistent=True),
    PrioritySampling(DP(SURE), size=3000, theta=2, transform=Dyadic(), consistent=True),
    StabilityHistogram(DP(SURE, 1e-9)),
    LaplaceQueries(DP(SURE), Marginals(1)),
]


def made_up_rows(n=1500, seed=1):
    rng = seeded(seed)
    users = rng.integers(0, 200, n)
    return pl.DataFrame(
        {
            "a": np.minimum(rng.geometric(0.2, n) - 1, 36),
            "b": rng.integers(0, 50, n),
            "n": rng.integers(0, 4, n),
            "user": users - 100,
            "name": [f"user {x}" for x in users],
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    rows = made_up_rows()
    for i, (low, high) in enumerate([(0, 100), (100, 100), (100, 900), (900, 1500)]):
        rows[low:high].write_parquet(folder / f"{i}.parquet", row_group_size=150)
    return folder


@pytest.fixture
def scratch(tmp_path):
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def assert_equal(one, other):
    assert one.estimate.metadata() == other.estimate.metadata()
    assert one.estimate.to_arrow().equals(other.estimate.to_arrow())
    assert one.ledger == other.ledger and one.bound == other.bound


@pytest.mark.parametrize("ranges", [None, 5, 64])
@pytest.mark.parametrize("mechanism", EXACT, ids=str)
def test_cells_of_ranges_are_the_cells_of_the_table(mechanism, ranges, folder):
    table = SparseTable.read(folder, DOMAIN, BOUND, count="n")
    rows = Rows.read(folder, DOMAIN, BOUND, count="n")
    made = release(mechanism, rows, ranges=ranges, rng=seeded())
    assert_equal(made, mechanism(table, seeded()))


def test_answers_are_limited_once_and_not_in_each_range(folder):
    # Each half of the cells alone exceeds 2⁶² steps of the grid, and their difference is small.
    halves = np.repeat([0.5, -0.5], 925).reshape(DOMAIN.shape)
    queries = TableQueries.of(DOMAIN, [(DOMAIN.attributes, halves)])
    mechanism = LaplaceQueries(DP(1.0), queries)
    cells = DOMAIN.frame(np.array([0, DOMAIN.size - 1]))
    path = folder.parent / "large.parquet"
    for more in (0, 1000):
        counts = np.array([2**40 + more, 2**40])
        cells.assign(n=counts).to_parquet(path)
        rows = Rows.read(path, DOMAIN, Bound(1, 1), count="n")
        made = release(mechanism, rows, ranges=2, rng=seeded())
        assert abs(made.estimate.values[0] - more / 2) < 20


@pytest.mark.parametrize("count", [None, "n"])
@pytest.mark.parametrize("user", ["user", "name"])
def test_the_same_key_cuts_alike_however_rows_are_spread(user, count, folder, tmp_path):
    how = {"user": user, "count": count, "key": KEY}
    expected = EVERY_CELL(SparseTable.read(folder, DOMAIN, BOUND, **how), seeded())
    shuffled = made_up_rows().sample(fraction=1, shuffle=True, seed=3)
    shuffled[:40].write_csv(tmp_path / "0.csv")
    shuffled[40:].write_csv(tmp_path / "1.csv")
    with closing(sqlite3.connect(tmp_path / "rows.sqlite")) as database, database:
        names = shuffled.columns
        columns = ", ".join(
            f"{name} {'TEXT' if name == 'name' else 'INTEGER'}" for name in names
        )
        database.execute(f"CREATE TABLE trips ({columns})")
        marks = ", ".join("?" * len(names))
        database.executemany(f"INSERT INTO trips VALUES ({marks})", shuffled.rows())
    spread = [Rows.read(folder, DOMAIN, BOUND, **how)]
    if user == "name":  # numbers are text in these, and other users
        spread.append(Rows.read(tmp_path / "rows.sqlite", DOMAIN, BOUND, table="trips", **how))
        spread.append(Rows.read(f"{tmp_path}/*.csv", DOMAIN, BOUND, **how))
    for rows in spread:
        for ranges in (1, 7):
            assert_equal(release(EVERY_CELL, rows, ranges=ranges, rng=seeded()), expected)


def test_users_of_many_ranges_are_cut_alike(folder, monkeypatch):
    monkeypatch.setattr(counting, "user_bits", lambda rows: 4)
    for user in ("user", "name"):
        how = {"user": user, "key": KEY}
        table = SparseTable.read(folder, DOMAIN, BOUND, **how)
        made = release(
            EVERY_CELL, Rows.read(folder, DOMAIN, BOUND, **how), rng=seeded(), report_cut=SURE
        )
        assert made.users_cut == table.users_cut > 0
        assert made.estimate.to_arrow().equals(EVERY_CELL(table, seeded()).estimate.to_arrow())


def test_rows_of_one_person_are_cut_to_one_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(counting, "user_bits", lambda rows: 4)
    path = tmp_path / "rows.parquet"
    for user in (7, "solo"):
        made_up_rows().with_columns(user=pl.lit(user)).write_parquet(path, row_group_size=150)
        how = {"user": "user", "key": KEY}
        table = SparseTable.read(path, DOMAIN, BOUND, **how)
        made = release(EVERY_CELL, Rows.read(path, DOMAIN, BOUND, **how), rng=seeded())
        assert_equal(made, EVERY_CELL(table, seeded()))
        assert len(table) == BOUND.l0


@pytest.mark.parametrize("transform", [None, Dyadic(), Haar()])
def test_ranges_with_too_many_rows_are_split(transform, folder, monkeypatch):
    monkeypatch.setattr(counting, "ROWS", 16)
    monkeypatch.setattr(counting, "MOST_ROWS", 50)
    monkeypatch.setattr(counting, "_LEAST_BITS", 2)
    monkeypatch.setattr(counting, "_SPLIT", 2)
    mechanism = HighPassFilter(DP(SURE), theta=1, transform=transform)
    table = SparseTable.read(folder, DOMAIN, BOUND)
    made = release(mechanism, Rows.read(folder, DOMAIN, BOUND), ranges=2, rng=seeded())
    assert_equal(made, mechanism(table, seeded()))


@pytest.mark.parametrize(
    "mechanism", [SRA(DP(SURE), 3), HPA(DP(SURE), 3, 1), LPA(DP(SURE), 50)], ids=str
)
def test_records_of_users_are_sampled_in_ranges(mechanism, folder, monkeypatch):
    monkeypatch.setattr(counting, "user_bits", lambda rows: 3)
    rows = Rows.read(folder, DOMAIN, UNBOUNDED, user="name")
    made = release(mechanism, rows, report_cut=SURE)
    data = Interactions.read(folder, user="name", domain=DOMAIN, bound=UNBOUNDED)
    whole = mechanism(data).with_users_cut(data, SURE)
    assert made.users_cut == whole.users_cut
    edges = made.estimate.edges.values
    assert made.ledger == whole.ledger and made.bound == whole.bound
    assert edges.sum() == whole.estimate.edges.values.sum()
    assert (edges <= data.edge_counts().ravel()).all()


@pytest.mark.parametrize("user", ["user", "name"])
def test_what_stays_of_a_user_depends_on_nobody_in_the_same_range(user, folder, monkeypatch):
    edges = []
    for bits in (0, 3):
        monkeypatch.setattr(counting, "user_bits", lambda rows, bits=bits: bits)
        rows = Rows.read(folder, DOMAIN, UNBOUNDED, user=user)
        made = release(SRA(DP(SURE), 3), rows, rng=seeded())
        edges.append(made.estimate.edges.values)
    assert (edges[0] == edges[1]).all()


def test_hpa_in_ranges_is_hpa_where_nothing_is_drawn(folder, monkeypatch):
    monkeypatch.setattr(counting, "user_bits", lambda rows: 3)
    score = tuple(range(37))
    mechanism = HPA(DP(SURE), 50, None, score=score)
    data = Interactions.read(folder, user="user", domain=DOMAIN, bound=UNBOUNDED)
    made = release(mechanism, Rows.read(folder, DOMAIN, UNBOUNDED, user="user"), rng=seeded())
    assert_equal(made, mechanism(data, seeded()))


@pytest.mark.parametrize("ranges", [1, 2, 7])
def test_threads_draw_what_one_draws(ranges, folder):
    for mechanism in (
        PrioritySampling(DP(0.5), size=40, theta=2),
        HighPassFilter(DP(0.5), size=60, transform=Dyadic()),
        StabilityHistogram(DP(0.5, 0.01)),
    ):
        rows = Rows.read(folder, DOMAIN, BOUND, user="user", key=KEY)
        one = release(mechanism, rows, ranges=ranges, rng=seeded())
        other = release(mechanism, rows, ranges=ranges, rng=seeded(), workers=3)
        assert_equal(one, other)
        assert one.simulated and not release(mechanism, rows, ranges=ranges).simulated


@pytest.mark.slow
def test_processes_draw_what_one_draws(folder, scratch):
    rows = Rows.read(folder, DOMAIN, BOUND, user="name", key=KEY)
    with ProcessPoolExecutor(2) as executor:
        for ranges in (1, 2, 7):
            mechanism = PrioritySampling(DP(0.5), size=40, transform=Haar())
            how = {"ranges": ranges, "scratch": scratch}
            one = release(mechanism, rows, rng=seeded(), **how)
            assert_equal(one, release(mechanism, rows, rng=seeded(), executor=executor, **how))
    assert not any(scratch.iterdir())


@pytest.mark.parametrize(
    "mechanism",
    [
        HighPassFilter(DP(0.3), theta=8),
        PrioritySampling(DP(0.7), size=9, transform=Dyadic(split="geometric")),
        HighPassFilter(DP(0.3), theta=8, transform=Dyadic(), consistent=True),
        StabilityHistogram(DP(0.5, 0.01)),
    ],
    ids=str,
)
def test_parts_cost_what_the_whole_costs(mechanism, folder):
    table = SparseTable.read(folder, DOMAIN, BOUND)
    made = release(mechanism, Rows.read(folder, DOMAIN, BOUND), ranges=13)
    assert made.ledger == mechanism(table).ledger
    assert made.privacy.epsilon <= mechanism.budget.epsilon


@pytest.mark.parametrize(
    "mechanism",
    [HighPassFilter(DP(1.0), theta=2), StabilityHistogram(DP(9.0, 0.1))],
    ids=str,
)
def test_layout_of_a_saved_file_is_the_same_however_many_ranges(mechanism, folder, tmp_path):
    """Arrow chunks end pages of a Parquet file, so that chunks by range would tell how many there are."""
    made = release(mechanism, Rows.read(folder, DOMAIN, BOUND), ranges=7)
    made.save(tmp_path / "made.parquet")
    again = replace(made.estimate, keys=made.estimate.keys.copy())
    write_release(again.to_arrow(), made._record(), tmp_path / "again.parquet", False)
    assert (tmp_path / "made.parquet").read_bytes() == (tmp_path / "again.parquet").read_bytes()
    columns = made.estimate.to_arrow().columns
    assert len(made.estimate) and {column.num_chunks for column in columns} == {1}
    assert not hasattr(scale, "release_to_file")


def test_progress_tells_shares_of_bytes_and_of_the_domain(folder):
    told = {}
    for rows in (made_up_rows(), made_up_rows()[:-1]):
        path = folder.parent / "progress.parquet"
        rows.write_parquet(path)
        shares = []
        release(
            FILTER,
            Rows.read(path, DOMAIN, BOUND, user="user"),
            ranges=4,
            progress=lambda *share, shares=shares: shares.append(share),
        )
        told[len(rows)] = shares
    one, other = told.values()
    assert one == other  # of neighbours
    assert [stage for stage, _ in one] == ["reading", "users", *["cells"] * 4]
    assert one[-1] == ("cells", 1.0)


def test_progress_does_not_tell_where_cells_lie(tmp_path, monkeypatch):
    """A range of many rows is split, which nobody but the split sees."""
    monkeypatch.setattr(counting, "ROWS", 2**5)
    monkeypatch.setattr(counting, "_LEAST_BITS", 4)
    split = counting.split
    splits = []
    monkeypatch.setattr(counting, "split", lambda *of: splits.append(of) or split(*of))
    domain = Domain(("a",), (2**14,))
    path = tmp_path / "rows.parquet"
    told = []
    for keys in (np.arange(2**9) * 2**5, np.arange(2**9)):
        pl.DataFrame({"a": keys}).write_parquet(path)
        shares = []
        release(
            FILTER,
            Rows.read(path, domain, Bound()),
            progress=lambda *share, shares=shares: shares.append(share),
        )
        told.append((len(splits), shares))
    assert told[0][0] == 0 < told[1][0]
    assert told[0][1] == told[1][1] and told[0][1][-1] == ("cells", 1.0)


@pytest.mark.parametrize("mode", [0o777, 0o702])
def test_scratch_where_anybody_may_rename_is_refused(folder, scratch, mode):
    scratch.chmod(mode)
    said = refused(folder, scratch=scratch)
    assert "others could replace" in said and "chmod +t" in said
    scratch.chmod(mode | 0o1000)
    release(FILTER, Rows.read(folder, DOMAIN, BOUND), scratch=scratch)


def refused(path, domain=DOMAIN, mechanism=None, *, scratch=None, executor=None, **how):
    with pytest.raises((ValueError, OSError)) as error:
        rows = Rows.read(path, domain, BOUND, **how)
        release(mechanism or FILTER, rows, scratch=scratch, executor=executor)
    return str(error.value)


def test_bad_rows_are_named_and_leave_no_scratch(tmp_path, scratch):
    path = tmp_path / "rows"
    path.mkdir()
    good = made_up_rows(300)
    good.write_parquet(path / "0.parquet", row_group_size=50)
    bad = good.with_columns(b=pl.when(pl.int_range(300) == 217).then(99).otherwise("b"))
    bad.write_parquet(path / "1.parquet", row_group_size=50)
    spent = []
    with ThreadPoolExecutor(2) as executor:
        for own in (None, executor):
            said = refused(path, scratch=scratch, executor=own)
            assert "1.parquet, row 218, column 'b': found 99" in said
            with pytest.raises(ValueError, match="row 218"):
                rows = Rows.read(path, DOMAIN, BOUND)
                release(FILTER, rows, executor=own, ready=lambda: spent.append(1))
    assert not spent and not any(scratch.iterdir())


def test_other_input_that_is_refused(tmp_path, scratch):
    path = tmp_path / "rows"
    path.mkdir()
    assert "the folder is empty" in refused(path)
    good = made_up_rows(300)
    good.write_parquet(path / "0.parquet")
    good.drop("user").write_parquet(path / "1.parquet")
    assert "need the same in all files" in refused(path, user="user")
    whole = (path / "0.parquet").read_bytes()
    (path / "1.parquet").write_bytes(whole[:-9])
    assert "it cannot be read" in refused(path)
    good.with_columns(user=pl.col("user").cast(pl.String)).write_parquet(path / "1.parquet")
    said = refused(path, user="user", scratch=scratch)
    assert "some users are" in said and "need one kind" in said
    (path / "1.parquet").unlink()
    good.with_columns(name=pl.Series(["7", "07"] * 150)).write_parquet(path / "0.parquet")
    said = refused(path, user="name", scratch=scratch)
    assert "row 2, column 'name': found '07'" in said and "--user-type text" in said
    assert not any(scratch.iterdir())
    assert "no such folder" in refused(path, scratch=tmp_path / "nowhere")


def test_a_file_that_changes_is_noticed(tmp_path):
    path = tmp_path / "rows.parquet"
    made_up_rows(300).write_parquet(path)
    rows = Rows.read(path, DOMAIN, BOUND)
    made_up_rows(301).write_parquet(path)
    with pytest.raises(ValueError, match="changed while it was read"):
        release(FILTER, rows)

    def change(stage, share):
        made_up_rows(302).write_parquet(path)

    rows = Rows.read(path, DOMAIN, BOUND)
    with pytest.raises(ValueError, match="changed while it was read"):
        release(FILTER, rows, progress=change)


def test_scratch_is_private_and_empty_after_ctrl_c(folder, scratch):
    def stop(stage, share):
        (own,) = scratch.iterdir()
        assert own.stat().st_mode & 0o777 == 0o700
        assert all(file.stat().st_mode & 0o777 == 0o600 for file in own.iterdir())
        raise KeyboardInterrupt

    rows = Rows.read(folder, DOMAIN, BOUND)
    with ThreadPoolExecutor(2) as executor:
        for own in (None, executor):
            with pytest.raises(KeyboardInterrupt):
                release(FILTER, rows, scratch=scratch, executor=own, progress=stop)
    assert not any(scratch.iterdir())


KILLED = """
import os, sys
from tests.owner.test_scale import BOUND, DOMAIN, FILTER, Rows, release

def stop(stage, share):
    os.kill(os.getpid(), 9)

rows = Rows.read(sys.argv[1], DOMAIN, BOUND, user="user")
release(FILTER, rows, scratch=sys.argv[2], workers=2, progress=stop)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_what_a_killed_coordinator_leaves_the_next_run_removes(folder, scratch):
    words = [sys.executable, "-c", KILLED, str(folder), str(scratch)]
    home = Path(__file__).parents[2]
    run = subprocess.Popen(words, cwd=home, stdout=subprocess.PIPE, start_new_session=True)
    try:
        run.communicate(timeout=60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode == -signal.SIGKILL
    assert len(list(scratch.iterdir())) == 1
    rows = Rows.read(folder, DOMAIN, BOUND)
    release(FILTER, rows, scratch=scratch)
    assert not any(scratch.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="needs Linux's list of children"
)
@pytest.mark.parametrize("stage", ["reading", "users", "cells", "second round"])
def test_a_worker_that_is_killed_is_said_and_leaves_nothing(stage, tmp_path, scratch):
    for i in range(60):
        made_up_rows(1000, i).write_parquet(tmp_path / f"{i}.parquet")
    rows = Rows.read(f"{tmp_path}/*.parquet", DOMAIN, BOUND, user="user")
    killed = []
    others = set(workers_of_this_process())  # a panel's pool of another test may still wait

    shares = [0.0]  # of the cells, which begin anew in the second round of priorities

    def kill(what, share):
        if what == "cells":
            what = "second round" if share < shares[-1] else what
            shares.append(share)
        if what == stage and not killed:
            for pid in set(workers_of_this_process()) - others:
                killed.append(os.kill(pid, signal.SIGKILL))

    mechanism = PrioritySampling(DP(1.0), size=60)
    how = {"scratch": scratch, "ranges": 200}
    with (
        ProcessPoolExecutor(1) as executor,
        pytest.raises(ChildProcessError, match="was killed.*nothing was released"),
    ):
        release(mechanism, rows, progress=kill, executor=executor, **how)
    assert len(killed) == 1 and not any(scratch.iterdir())
    release(mechanism, rows, **how)


def workers_of_this_process():
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"popen_loky" in words:
                yield int(pid)


def test_scratch_that_takes_nothing_is_said(folder, scratch, monkeypatch):
    from workbench.owner.scale import spill, work

    rows = Rows.read(folder, DOMAIN, BOUND)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(spill, "_write", full)
        with pytest.raises(OSError, match="has no room for the scratch files: No space left"):
            release(FILTER, rows, scratch=scratch)
    with monkeypatch.context() as patch:
        patch.setattr(work, "temporary_folder", full)
        with pytest.raises(OSError, match="has no room for the scratch files: No space left"):
            release(FILTER, rows, scratch=scratch)
    assert not any(scratch.iterdir())
    release(FILTER, rows, scratch=scratch)


FULL = """
import resource, sys
from tests.owner.test_scale import BOUND, DOMAIN, FILTER, Rows, release

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
    user = sys.argv[3] or None
    rows = Rows.read(sys.argv[1], DOMAIN, BOUND, user=user)
    release(FILTER, rows, scratch=sys.argv[2], workers=2)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a limit on the sizes of files")
@pytest.mark.parametrize("user", ["", "user"])
def test_a_disk_that_is_full_for_workers_is_said_once(user, tmp_path, scratch):
    for i in range(4):
        made_up_rows(40_000, i).write_parquet(tmp_path / f"{i}.parquet")
    run = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "*.parquet"), str(scratch), user],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1 and "has no room for the scratch files" in run.stderr
    assert "Exception ignored" not in run.stderr
    assert not any(scratch.iterdir())


def test_what_is_not_released_in_parts_says_why(folder):
    rows = Rows.read(folder, DOMAIN, BOUND)
    for mechanism, why in (
        (PrivTree(DP(1.0)), "or the records of all users, at once"),
        (LaplaceHistogram(DP(1.0)), "needs all cells"),
        (SRA(DP(1.0), 3), "UNBOUNDED"),
        (HighPassFilter(DP(1.0), theta=5, transform=Dyadic(2)), "cross all ranges"),
        (HighPassFilter(DP(1e-9), theta=1), "would already release"),
    ):
        if "already" in why:
            rows = Rows.read(folder, Domain(("a", "b"), (10**9, 10**9)), BOUND)
        with pytest.raises(ValueError, match=why):
            release(mechanism, rows)
    with pytest.raises(ValueError, match="need rows with user="):
        release(FILTER, rows, report_cut=1.0)
    of_users = Rows.read(folder, DOMAIN, BOUND, user="name")
    for cut, why in (
        (0.0, "report_cut = 0.0"),
        (float("inf"), "report_cut = inf"),
        ("a", "report_cut = 'a'"),
        (1e-300, "too small"),
    ):
        with pytest.raises(ValueError, match=why):  # before rows are read, or a budget is spent
            release(FILTER, of_users, report_cut=cut, ready=lambda: pytest.fail("booked"))
