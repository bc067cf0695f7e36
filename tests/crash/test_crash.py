"""Kills at any moment, full disks and folders that are gone; in full: those that are long.

A child works in a loop and says by a pipe what it has finished; it is killed, and its folder is examined:
what was finished is there, what is there is whole, and what was spent is spent.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import zipfile
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest
from tqdm import tqdm

from tests.crash import disks
from workbench import (
    DP,
    Bound,
    Budget,
    Domain,
    Marginals,
    RandomRanges,
    Release,
    Session,
    SparseTable,
    Sweep,
    datasets,
    run,
)
from workbench.figures import load
from workbench.mechanisms import GeometricHistogram
from workbench.trials import metrics

TABLE = SparseTable.from_keys(Domain(("x", "y"), (40, 40)), [1, 5, 900], [5, 2, 9], Bound())
EPSILON = 2.0**-10
HISTOGRAM = GeometricHistogram(DP(EPSILON))
QUESTION = Marginals(1)
FIGURE = "hay2010_thm4"
PROJECT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from workbench.cli import main; main()"]
QUIET = {
    "stdout": subprocess.DEVNULL,
    "stderr": subprocess.DEVNULL,
    "env": os.environ | {"PYTHONPATH": str(PROJECT)},
}
few_or_many = pytest.mark.parametrize(
    "kills",
    [pytest.param(5, marks=pytest.mark.slow), pytest.param(200, marks=pytest.mark.long)],
)


def begun(work):
    """A child that does work(say), and where it says what it has finished."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        tqdm.set_lock(threading.RLock())  # its own one is shared, and would be held for ever
        try:
            work(lambda done: os.write(write, f"{done}\n".encode()))
        except BaseException as e:  # what it dies of is a failure of the test
            os.write(write, f"failed: {e!r}\n".encode())
        finally:
            os._exit(0)
    os.close(write)
    return child, read


def ended(child, read):
    """What a child had finished."""
    os.waitpid(child, 0)
    with open(read, "rb") as file:
        *done, torn = file.read().decode().split("\n")
    assert not any(line.startswith("failed") for line in done) and not torn, done
    return done


def killed(work, after):
    """What a child had finished when it was killed `after` so many seconds."""
    child, read = begun(work)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    return ended(child, read)


def moments(kills, longest=0.3):
    """After how many seconds children are killed: in their first work, or in a later one."""
    draw = random.Random(0)
    return [draw.uniform(0, longest) for _ in range(kills)]


def hidden(folder):
    """Names that no user sees."""
    return sorted(path.name for path in folder.rglob(".*"))


@few_or_many
def test_saves_that_are_killed_leave_whole_files(tmp_path, kills):
    """Under new names, and over old ones, as Parquet and as CSV."""
    release = GeometricHistogram(DP(1.0))(TABLE)
    for name in ("old.csv", "old.parquet"):  # what saves is loaded before children are forked
        release.save(tmp_path / name)
    for i, after in enumerate(moments(kills)):

        def save(say, i=i):
            for k in range(10_000):
                for name, force in ((f"{i}-{k}.csv", False), ("old.parquet", True)):
                    release.save(tmp_path / name, force=force)
                    say(name)
                with suppress(ValueError):  # as refused after a kill between its two files
                    release.save(tmp_path / "old.csv", force=True)

        done = killed(save, after)
        there = {path.name for path in tmp_path.iterdir() if path.suffix != ".json"}
        assert set(done) <= there, set(done) - there
        for name in sorted(there - set(hidden(tmp_path))):
            try:
                loaded = Release.load(tmp_path / name).estimate.values
                assert (loaded == release.estimate.values).all()
            except ValueError:
                assert name == "old.csv", name
        for new in tmp_path.glob("*-*.csv*"):
            new.unlink()
    release.save(tmp_path / "last.parquet")
    assert not hidden(tmp_path), hidden(tmp_path)


ABOUT = {"title": "Counts", "publisher": "City", "contact": "office", "licence": "CC BY 4.0"}


def publish_again_and_again(paid, folder):
    """Publish into the folders 0, 1, …, and print the number of each that is finished."""
    print("begun", flush=True)
    for k in range(10_000):
        Release.load(paid).publish(folder / str(k), ABOUT)
        print(k, flush=True)


def publish_and_stop(paid, folder, finished):
    """A publication whose process is killed before it renames something once more."""
    rename, before = Path.rename, iter(range(finished))

    def stopped(path, to):
        if next(before, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return rename(path, to)

    Path.rename = stopped
    Release.load(paid).publish(folder, ABOUT)


def another_process(call):
    """It is not forked, because libraries that publish have threads."""
    code = f"from pathlib import PosixPath; from tests.crash.test_crash import *; {call}"
    words = [sys.executable, "-c", code]
    return subprocess.Popen(words, cwd=PROJECT, stdout=subprocess.PIPE, text=True)


def completed(paid, folder):
    """A second call where the first was killed: it publishes all, or what is not there yet."""
    archive = folder.with_name(f"{folder.name}.zip")
    if not archive.exists():
        Release.load(paid).publish(folder, ABOUT)
    with zipfile.ZipFile(archive) as zipped:
        there = {f"{folder.name}/{path.name}": path.read_bytes() for path in folder.iterdir()}
        assert {name: zipped.read(name) for name in zipped.namelist()} == there
    assert f"{folder.name}/README.html" in there and len(there) == 9


@few_or_many
def test_publications_that_are_killed_are_completed(tmp_path, kills):
    """At random moments."""
    paid = tmp_path / "paid.parquet"
    GeometricHistogram(DP(1.0))(TABLE).save(paid)
    for i, after in enumerate(moments(kills, 2.0)):
        folder = tmp_path / str(i)
        folder.mkdir()
        process = another_process(f"publish_again_and_again({paid!r}, {folder!r})")
        assert process.stdout.readline() == "begun\n"
        time.sleep(after)
        process.kill()
        done = process.communicate()[0].split()
        for k in range(len(done) + 1):
            assert k == len(done) or (folder / f"{k}.zip").exists()
            completed(paid, folder / str(k))
        Release.load(paid).publish(folder / "last", ABOUT)  # removes what the process could not
        assert not [*folder.glob("wb-*")]


@pytest.mark.slow
@pytest.mark.parametrize("finished", range(5))
def test_a_publication_that_is_killed_before_a_rename_is_completed(tmp_path, finished):
    """Its folder and its zip get their names by one rename each."""
    paid, folder = tmp_path / "paid.parquet", tmp_path / "out"
    GeometricHistogram(DP(1.0))(TABLE).save(paid)
    process = another_process(f"publish_and_stop({paid!r}, {folder!r}, {finished})")
    process.wait()
    assert process.returncode == (0 if finished == 4 else -signal.SIGKILL)
    assert (folder.exists(), (tmp_path / "out.zip").exists()) == (finished > 0, finished > 2)
    completed(paid, folder)
    Release.load(paid).publish(tmp_path / "next", ABOUT)
    assert sorted(os.listdir(tmp_path)) == "next next.zip out out.zip paid.parquet".split()


def sweep(seeds, store):
    """Rows of each trial are in a file of the store."""
    data = datasets.GaussianSparse(m=200, density=0.1)
    error = metrics.MeanAbsoluteError(RandomRanges(10, 5))
    return run(Sweep([data], [GeometricHistogram(DP(1.0))], (error,), seeds=seeds), store)


@few_or_many
def test_sweeps_that_are_killed_keep_whole_rows(tmp_path, kills):
    """Of ever more seeds."""
    finished = 1
    sweep(finished, tmp_path)
    columns = set(json.loads(next(tmp_path.glob("*.json")).read_text())[0])
    for after in moments(kills):

        def measure(say, before=finished):
            for seeds in range(before, 100_000):
                sweep(seeds, tmp_path)
                say(seeds)

        finished = max([finished, *map(int, killed(measure, after))])
        files = list(tmp_path.glob("*.json"))
        assert len(files) >= finished, (len(files), finished)
        for file in files:
            assert set(json.loads(file.read_text())[0]) == columns, file
    kept, again = sweep(finished, tmp_path), sweep(finished, tmp_path / "again")
    assert kept.value.equals(again.value)
    following = (
        f"from tests.crash.test_crash import *; sweep({finished + 9}, Path({str(tmp_path)!r}))"
    )
    command = [sys.executable, "-c", following]  # the next process that uses the store
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    assert not hidden(tmp_path), hidden(tmp_path)


@few_or_many
def test_no_spend_is_forgotten_or_given_back(tmp_path, kills):
    """Questions are asked and releases are made: what was answered is there, and none is not booked."""
    path = tmp_path / "questions.session"
    session = Session.open(path, TABLE, DP(1024.0))
    session.ask(QUESTION, EPSILON)
    finished = 1
    for i, after in enumerate(moments(kills)):

        def spend(say, i=i):
            mine = Session.open(path, TABLE)
            for k in range(10_000):
                mine.ask(QUESTION, EPSILON)
                say("answered")
                mine.budget.release(HISTOGRAM, TABLE, out=tmp_path / f"{i}-{k}.parquet")
                say("released")

        finished += len(killed(spend, after))
        now = Session.open(path)
        ledger = now.budget.ledger
        assert finished <= ledger.answered.sum() <= len(ledger), (finished, ledger)
        assert {str(file) for file in tmp_path.glob("*.parquet")} <= set(ledger.file)
        spent = sum(map(Fraction, ledger.epsilon))
        assert spent == len(ledger) * Fraction(EPSILON) and now.budget.remaining == float(
            1024 - spent
        )
    answered = ledger.answered.astype(bool) & ~ledger.asked.str.startswith("GeometricHistogram")
    assert len(session.bank.answers) == answered.sum() * len(QUESTION.on(TABLE.domain))
    for file in tmp_path.glob("*.parquet"):
        assert Release.load(file).privacy == DP(EPSILON)
        file.unlink()
    session.bank.recall(QUESTION)
    session.ask(QUESTION, EPSILON)  # SQLite removes an empty journal with the next spend
    assert os.listdir(tmp_path) == [path.name], os.listdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["ask", "release"])
def test_spends_that_race_never_give_budget_back(tmp_path, how):
    """Three processes begin a session together, and spend the last of its budget."""
    path = tmp_path / "raced.session"

    def spend(say):
        mine = Session.open(path, TABLE, DP(1.0))
        with suppress(ValueError):  # once no more is left
            while True:
                if how == "ask":
                    mine.ask(QUESTION, 0.07)
                else:
                    mine.budget.release(GeometricHistogram(DP(0.07)), TABLE)
                say(how)

    HISTOGRAM(TABLE)  # loads what a child is to have at once
    racing = [begun(spend) for _ in range(3)]
    finished = sum(len(ended(*one)) for one in racing)
    assert finished == len(Budget(path).ledger) == 14


@pytest.mark.long
def test_nothing_is_lost_when_reproduce_is_killed(tmp_path):
    """What the command says is done is done."""
    command = [*COMMAND, "reproduce", FIGURE, "--results", str(tmp_path)]
    start = time.perf_counter()
    subprocess.run(command, check=True, cwd=PROJECT, **QUIET)
    whole_run = time.perf_counter() - start
    (manifest,) = tmp_path.rglob("manifest.json")
    results = manifest.parent
    rows = load(results).rows.drop(columns="seconds")
    for after in moments(50, 1.2 * whole_run):
        for file in tmp_path.rglob("status.json"):
            file.unlink()  # so that it runs again
        process = subprocess.Popen(command, cwd=PROJECT, start_new_session=True, **QUIET)
        with suppress(subprocess.TimeoutExpired):
            process.wait(after)
        process.kill()
        process.wait()
        if (results / "status.json").exists():
            status = json.loads((results / "status.json").read_text())
            assert status["state"] == "done", status
            assert all((results / name).exists() for name in status["files"])
            load(results)
        for file in results.glob("*.json"):
            json.loads(file.read_text())
    subprocess.run([*command, "--force"], check=True, cwd=PROJECT, **QUIET)
    assert load(results).rows.drop(columns="seconds").equals(rows)
    assert not [name for name in hidden(tmp_path) if name.endswith(".draft")]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads processes from /proc")
def test_workers_of_an_audit_end_with_it(tmp_path):
    """It is killed once a worker has audited something: no process stays that it started."""
    rows = tmp_path / "rows.csv"
    line = "audit GeometricHistogram --thorough --runs 80 --workers 1 --out".split()
    process = subprocess.Popen([*COMMAND, *line, str(rows)], **QUIET)
    while not rows.exists():
        assert process.poll() is None, "the audit ended without a row"
        time.sleep(0.05)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.kill()
    process.wait()
    end = time.monotonic() + 120
    while children and time.monotonic() < end:
        children = [pid for pid in children if Path(f"/proc/{pid}/cmdline").exists()]
        children = [pid for pid in children if Path(f"/proc/{pid}/cmdline").read_bytes()]
        time.sleep(0.05)
    for pid in children:
        os.kill(int(pid), signal.SIGKILL)
    assert not children, children


# Disks that are full, read-only or gone


def refused(folder, call, *arguments, **how):
    """What cannot be done is one line that names the place."""
    with pytest.raises(OSError) as said:
        call(*arguments, **how)
    assert str(folder) in str(said.value) and "\n" not in str(said.value), said.value


@pytest.mark.slow
def test_on_a_full_disk_a_release_is_not_saved_and_the_old_one_stays():
    small, large = (GeometricHistogram(DP(1.0))(table) for table in (TABLE, disks.LARGE))
    with disks.small_disk() as folder:
        small.save(folder / "x.parquet")
        for name in ("x.parquet", "x.csv"):
            refused(folder, large.save, folder / name, force=True)
        loaded = Release.load(folder / "x.parquet").estimate.values
        assert (loaded == small.estimate.values).all()
        assert [path.name for path in folder.iterdir()] == ["x.parquet"]


@pytest.mark.slow
def test_on_a_full_disk_a_sweep_stops_and_its_rows_are_whole():
    with disks.small_disk() as folder:
        (folder / "filler").write_bytes(bytes(disks.SIZE - (12 << 10)))
        store = folder / "store"
        store.mkdir()
        refused(folder, sweep, 100, store)
        kept = len(list(store.glob("*.json")))
        assert kept and not hidden(folder)
        (folder / "filler").unlink()
        sweep(kept, store)
        assert len(list(store.glob("*.json"))) == kept


@pytest.mark.slow
def test_on_a_full_disk_no_spend_is_forgotten_and_no_answer_is_half_there():
    with disks.small_disk() as folder:
        session = Session.open(folder / "questions.session", TABLE, DP(1024.0))

        def ask():
            for _ in range(1000):
                session.ask(QUESTION, EPSILON)

        refused(folder, ask)
        ledger = session.budget.ledger
        assert len(ledger) and ledger.answered.all()
        assert session.budget.remaining == float(1024 - len(ledger) * Fraction(EPSILON))
        session.bank.recall(QUESTION)


@pytest.mark.slow
@pytest.mark.parametrize("away", [disks.read_only, disks.vanished])
def test_where_nothing_can_be_written_nothing_is_spent_or_saved(away, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    budget = Budget.create(folder / "a.budget", DP(1024.0), people="all", unit="a user")
    session = Session.open(folder / "questions.session", TABLE, DP(1024.0))
    release = GeometricHistogram(DP(1.0))(TABLE)
    before = sorted(os.listdir(folder))
    with away(folder):
        refused(folder, release.save, folder / "x.parquet")
        refused(folder, release.save, folder / "x.csv")
        refused(folder, session.ask, QUESTION, EPSILON)
        refused(folder, budget.release, HISTOGRAM, TABLE)
    if away is disks.read_only:
        assert sorted(os.listdir(folder)) == before
        assert session.budget.remaining == budget.remaining == 1024.0
