"""Files of strangers: whatever they hold, they are read, or refused in words; nothing else happens."""

import os
import shutil
import signal
import time

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.formats import FORMATS
from workbench.datasets import published

QUICK = {"release": 40, "release-csv": 15, "session": 6}
LIMIT = 30  # seconds, after which a file is said to hang the reader


class Hangs(Exception):
    """A file that is never read to its end."""


def _hangs(*_):
    raise Hangs(f"more than {LIMIT} s")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder that published files are looked for in, and nowhere else."""
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(published, "raw", lambda: tmp_path / "raw")
    monkeypatch.chdir(tmp_path)
    before = signal.signal(signal.SIGALRM, _hangs)
    yield tmp_path / "data"
    signal.signal(signal.SIGALRM, before)


def fuzz(kind, place, monkeypatch, examples, number=None):
    """Damaged files of a kind, each of them used."""
    kind.patch(monkeypatch)

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=[*HealthCheck],
    )
    @given(st.data())
    def every(data):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        kind.write(place, data.draw)
        signal.alarm(LIMIT)
        try:
            kind.use(place)
        except (ValueError, OSError):  # FileNotFoundError is one
            pass
        finally:
            signal.alarm(0)

    (every if number is None else seed(number)(every))()


@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_read_or_refused(name, place, monkeypatch):
    fuzz(FORMATS[name], place, monkeypatch, QUICK.get(name, 25))


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_many_damaged_files_are_read_or_refused(name, place, monkeypatch):
    fuzz(FORMATS[name], place, monkeypatch, 10 * QUICK.get(name, 25), 1)


@pytest.mark.long
@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_for_ten_minutes(name, place, monkeypatch):
    """Under a seed of the system; FUZZ_MINUTES says how long, if not ten."""
    end = time.monotonic() + 60 * float(os.environ.get("FUZZ_MINUTES", 10))
    while time.monotonic() < end:
        fuzz(FORMATS[name], place, monkeypatch, 300, int.from_bytes(os.urandom(6)))
