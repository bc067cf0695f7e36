"""Disks that are full, read-only or gone: what is said, and what is left."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from tests.crash.killed import EPSILON, METRICS, TABLE, hidden
from workbench import (
    DP,
    Bound,
    Budget,
    Domain,
    Marginals,
    Release,
    Session,
    SparseTable,
    Sweep,
    datasets,
    run,
)
from workbench.mechanisms import GeometricHistogram

SIZE = 64 << 10
LARGE = SparseTable.from_dense(
    Domain(("x",), (100_000,)), np.random.default_rng(0).integers(0, 9, 100_000), Bound()
)
HISTOGRAM = GeometricHistogram(DP(EPSILON))


@contextlib.contextmanager
def small_disk() -> Iterator[tuple[Path, str]]:
    """A file system of 64 kB where one may be mounted; elsewhere files of at most 64 kB."""
    folder = Path(tempfile.mkdtemp(prefix="wb-disk-"))
    try:
        if _mount(folder, f"size={SIZE}"):
            try:
                yield folder, "a tmpfs of 64 kB"
            finally:
                subprocess.run(["umount", "-l", str(folder)], check=True)
        else:
            limits = resource.getrlimit(resource.RLIMIT_FSIZE)
            before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE, limits[1]))
            try:
                yield folder, "files of at most 64 kB (RLIMIT_FSIZE)"
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
                signal.signal(signal.SIGXFSZ, before)
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[str]:
    """The folder is not writable: mounted so, or, for who is not root, by its mode."""
    mounted = _mount(folder, "bind", str(folder)) and _mount(folder, "remount,bind,ro")
    if not mounted:
        folder.chmod(0o500)
    try:
        yield "mounted read-only" if mounted else "of mode 0500"
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.chmod(0o700)


def _mount(folder: Path, options: str, what: str = "tmpfs") -> bool:
    if os.geteuid() or shutil.which("mount") is None:
        return False
    kind = ["-t", "tmpfs"] if what == "tmpfs" and "remount" not in options else []
    source = [] if "remount" in options else [what]
    command = ["mount", *kind, "-o", options, *source, str(folder)]
    return subprocess.run(command, capture_output=True).returncode == 0


def refusal(call: Callable[[], object]) -> str:
    """What is said of a call that cannot be done; it must name the place."""
    try:
        call()
    except OSError as e:
        return f"{type(e).__name__}: {e}"
    raise AssertionError("it was done")


def full_save(folder: Path) -> list[str]:
    """A release that is too large is not saved, and the one that was there stays."""
    small = GeometricHistogram(DP(1.0))(TABLE)
    large = GeometricHistogram(DP(1.0))(LARGE)
    said = []
    for name in ("x.parquet", "x.csv"):
        if name == "x.parquet":
            small.save(folder / name)
        said.append(refusal(lambda name=name: large.save(folder / name, force=True)))
    assert (Release.load(folder / "x.parquet").estimate.values == small.estimate.values).all()
    assert {path.name for path in folder.iterdir()} == {"x.parquet"}, list(folder.iterdir())
    return said


def full_store(folder: Path) -> list[str]:
    """A sweep stops; the rows that are there are whole."""
    (folder / "filler").write_bytes(bytes(SIZE - (12 << 10)))
    data = datasets.GaussianSparse(m=200, density=0.1)
    (folder / "store").mkdir()

    def sweep(seeds: int) -> None:
        run(
            Sweep([data], [GeometricHistogram(DP(1.0))], METRICS, seeds=seeds), folder / "store"
        )

    said = [refusal(lambda: sweep(100))]
    kept = len(list((folder / "store").glob("*.json")))
    assert kept and not hidden(folder)
    (folder / "filler").unlink()
    sweep(kept)
    assert len(list((folder / "store").glob("*.json"))) == kept
    return said


def full_session(folder: Path) -> list[str]:
    """Questions are asked until the disk is full; no spend is forgotten, and no answer is half there."""
    path = folder / "questions.session"
    session = Session.open(path, TABLE, DP(1024.0))

    def ask() -> None:
        for _ in range(1000):
            session.ask(Marginals(1), EPSILON)

    said = [refusal(ask)]
    ledger = session.budget.ledger
    assert len(ledger) and ledger.answered.all()
    assert session.budget.remaining == float(1024 - len(ledger) * Fraction(EPSILON))
    session.bank.recall(Marginals(1))
    return said


def full_budget(folder: Path) -> list[str]:
    """A release that does not fit is refused before it is booked."""
    path = folder / "people.budget"
    budget = Budget.create(path, DP(1024.0), people="all", unit="a user")
    said = [refusal(lambda: budget.release(HISTOGRAM, LARGE, out=folder / "x.parquet"))]
    assert not (folder / "x.parquet").exists() and not hidden(folder)
    assert Budget(path).remaining == 1024
    return said


@contextlib.contextmanager
def vanished(folder: Path) -> Iterator[None]:
    """The folder is removed while it is used."""
    shutil.rmtree(folder)
    yield


def lost(folder: Path, away: Callable) -> list[str]:
    """Where nothing can be written any more nothing is spent or saved, and nothing is begun anew."""
    budget = Budget.create(folder / "a.budget", DP(1024.0), people="all", unit="a user")
    session = Session.open(folder / "questions.session", TABLE, DP(1024.0))
    release = GeometricHistogram(DP(1.0))(TABLE)
    before = sorted(os.listdir(folder))
    with away(folder):
        said = [
            refusal(lambda: release.save(folder / "x.parquet")),
            refusal(lambda: release.save(folder / "x.csv")),
            refusal(lambda: session.ask(Marginals(1), EPSILON)),
            refusal(lambda: budget.release(HISTOGRAM, TABLE)),
        ]
    if away is vanished:
        assert not folder.exists()
    else:
        assert sorted(os.listdir(folder)) == before
        assert session.budget.remaining == budget.remaining == 1024.0
    return said


FULL = {
    "save": full_save,
    "sweep store": full_store,
    "session": full_session,
    "budget": full_budget,
}
