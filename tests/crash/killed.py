"""Processes that are killed at any moment, and what they leave.

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
from collections.abc import Callable, Iterable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

from tqdm import tqdm

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
DATA = datasets.GaussianSparse(m=200, density=0.1)
METRICS = (metrics.MeanAbsoluteError(RandomRanges(10, 5)),)
FIGURE = "hay2010_thm4"
PROJECT = Path(__file__).parents[2]
Say = Callable[[object], None]


def killed_work(work: Callable[[Say], None], after: float) -> list[str]:
    """What a child had finished when it was killed `after` so many seconds."""
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
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with open(read, "rb") as file:
        *done, torn = file.read().decode().split("\n")
    assert not any(line.startswith("failed") for line in done) and not torn, done
    return done


def moments(kills: int, seed: int, longest: float = 0.3) -> Iterable[float]:
    """After how many seconds children are killed: in their first work, or in a later one."""
    draw = random.Random(seed)
    return (draw.uniform(0, longest) for _ in range(kills))


def hidden(folder: Path) -> list[str]:
    """Names that no user sees."""
    return sorted(path.name for path in folder.rglob(".*"))


def drafts(folder: Path) -> list[str]:
    """Hidden files that somebody was writing."""
    return [name for name in hidden(folder) if name.endswith(".draft")]


def kills_of_save(folder: Path, kills: int, seed: int = 0) -> None:
    """Releases are saved under new names, and over old ones, as Parquet and as CSV."""
    release = GeometricHistogram(DP(1.0))(TABLE)
    values = release.estimate.values
    for name in ("old.csv", "old.parquet"):  # what saves is loaded before children are forked
        release.save(folder / name)
    for i, after in enumerate(moments(kills, seed)):

        def save(say: Say, i: int = i) -> None:
            for k in range(10_000):
                for name, force in ((f"{i}-{k}.csv", False), ("old.parquet", True)):
                    release.save(folder / name, force=force)
                    say(name)
                with suppress(ValueError):  # as refused after a kill between its two files
                    release.save(folder / "old.csv", force=True)

        done = killed_work(save, after)
        there = {path.name for path in folder.iterdir() if path.suffix != ".json"}
        assert set(done) <= there, set(done) - there
        for name in sorted(there - set(hidden(folder))):
            try:
                assert (Release.load(folder / name).estimate.values == values).all()
            except ValueError:
                assert name == "old.csv", name
            if name[0] != "o":
                (folder / name).unlink()
                (folder / f"{name}.json").unlink()
        for alone in folder.glob("*-*.csv.json"):
            alone.unlink()
    release.save(folder / "last.parquet")
    assert not hidden(folder), hidden(folder)


def kills_of_store(folder: Path, kills: int, seed: int = 0) -> None:
    """A sweep of ever more seeds keeps the rows of each trial in a file."""

    def sweep(seeds: int) -> Sweep:
        return Sweep([DATA], [GeometricHistogram(DP(1.0))], METRICS, seeds=seeds)

    finished = 1
    run(sweep(finished), folder)
    columns = set(json.loads(next(folder.glob("*.json")).read_text())[0])
    for after in moments(kills, seed):
        before = finished

        def measure(say: Say, before: int = before) -> None:
            for seeds in range(before, 100_000):
                run(sweep(seeds), folder)
                say(seeds)

        finished = max([finished, *map(int, killed_work(measure, after))])
        files = list(folder.glob("*.json"))
        assert len(files) >= finished, (len(files), finished)
        for file in files:
            assert set(json.loads(file.read_text())[0]) == columns, file
    kept = run(sweep(finished), folder)
    again = run(sweep(finished), folder / "again")
    assert kept.value.equals(again.value)
    following = NEXT.format(module=__name__, folder=str(folder), n=finished + 9)
    command = [sys.executable, "-c", following]  # the next process that uses the store
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    assert not hidden(folder), hidden(folder)


NEXT = """
from pathlib import Path
from {module} import *
run(Sweep([DATA], [GeometricHistogram(DP(1.0))], METRICS, seeds={n}), Path({folder!r}))
"""


def kills_of_session(folder: Path, kills: int, seed: int = 0) -> None:
    """Questions are asked of a session: what was answered is in its bank, and nothing is given back."""
    path = folder / "questions.session"
    session = Session.open(path, TABLE, DP(1024.0))
    question = Marginals(1)
    session.ask(question, EPSILON)
    answered = 1
    for after in moments(kills, seed):

        def ask(say: Say) -> None:
            mine = Session.open(path, TABLE)
            while True:
                mine.ask(question, EPSILON)
                say("answered")

        answered += len(killed_work(ask, after))
        ledger = Budget(path).ledger
        assert answered <= ledger.answered.sum() <= len(ledger), (answered, ledger)
        spent = sum(map(Fraction, ledger.epsilon))
        assert spent == len(ledger) * Fraction(EPSILON)
        assert Budget(path).remaining == float(1024 - spent)
    assert len(session.bank.answers) == ledger.answered.sum() * len(question.on(TABLE.domain))
    session.bank.recall(question)
    session.ask(question, EPSILON)  # SQLite removes an empty journal with the next spend
    assert os.listdir(folder) == [path.name], os.listdir(folder)


def kills_of_budget(folder: Path, kills: int, seed: int = 0) -> None:
    """Releases are paid from a budget file: none leaves that is not booked, and none is given back."""
    path = folder / "people.budget"
    Budget.create(path, DP(1024.0), people="all", unit="a user")
    released = 0
    for i, after in enumerate(moments(kills, seed)):

        def release(say: Say, i: int = i) -> None:
            budget = Budget(path)
            for k in range(10_000):
                budget.release(
                    GeometricHistogram(DP(EPSILON)), TABLE, out=folder / f"{i}-{k}.parquet"
                )
                say("released")

        released += len(killed_work(release, after))
        budget = Budget(path)
        ledger = budget.ledger
        files = {str(file) for file in folder.glob("*.parquet")}
        assert files <= set(ledger.file)
        assert released <= ledger.answered.sum() <= len(files) <= len(ledger)
        assert budget.remaining == float(1024 - len(ledger) * Fraction(EPSILON))
    for file in files:
        assert Release.load(file).privacy == DP(EPSILON)
    Budget(path).release(GeometricHistogram(DP(EPSILON)), TABLE, out=folder / "last.parquet")
    assert not hidden(folder), hidden(folder)


def kills_of_reproduce(folder: Path, kills: int, seed: int = 0) -> None:
    """One figure is reproduced, and the command is killed; what it says is done is done."""
    code = "from workbench.cli import main; main()"
    command = [sys.executable, "-c", code, "reproduce", FIGURE, "--results", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(PROJECT)}
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    start = time.perf_counter()
    subprocess.run(command, check=True, cwd=PROJECT, **quiet)
    whole_run = time.perf_counter() - start
    (results,) = folder.rglob("manifest.json")
    results = results.parent
    rows = load(results).rows.drop(columns="seconds")
    for after in moments(kills, seed, 1.2 * whole_run):
        for file in folder.rglob("status.json"):
            file.unlink()  # so that it runs again
        process = subprocess.Popen(command, cwd=PROJECT, start_new_session=True, **quiet)
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
    subprocess.run([*command, "--force"], check=True, cwd=PROJECT, **quiet)
    assert load(results).rows.drop(columns="seconds").equals(rows)
    assert not drafts(folder), drafts(folder)


def killed_audit(rows: Path) -> None:
    """`workbench audit` is killed once a worker has audited something: no process stays that it started."""
    code = "from workbench.cli import main; main()"
    line = "audit GeometricHistogram --thorough --runs 80 --workers 2 --out".split()
    process = subprocess.Popen(
        [sys.executable, "-c", code, *line, str(rows)],
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
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


KINDS = {
    "save": kills_of_save,
    "sweep store": kills_of_store,
    "session": kills_of_session,
    "budget": kills_of_budget,
}
