"""How one damaged file is used: in a folder of its own, and within limits of time and memory."""

import resource
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.datasets import published

LIMIT = 30  # seconds of processor time, after which a file is said to hang the reader
MEMORY = 2**31  # bytes more than before: who asks for them gets a MemoryError


class Hangs(BaseException):
    """A file that is never read to its end."""


def looked_for_in(folder: Path, monkeypatch) -> Path:
    """A folder that published files are looked for in, and nowhere else."""
    monkeypatch.setenv("WORKBENCH_DATA", str(folder / "data"))
    monkeypatch.setattr(published, "raw", lambda: folder / "raw")
    monkeypatch.chdir(folder)
    return folder / "data"


def emptied(place: Path) -> None:
    """The folder, with nothing in it."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()


@contextmanager
def limited() -> Iterator[None]:
    """Whatever takes more time is stopped by `Hangs`, and what asks for more memory does not get it."""
    before = signal.signal(signal.SIGVTALRM, _hangs)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, limits[1]))
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGVTALRM, before)


def _hangs(*_):
    raise Hangs(f"more than {LIMIT} s")
