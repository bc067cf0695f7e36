"""One change of the code, and the tests that run its lines: which of them fails."""

import os
import re
import resource
import signal
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.mutation.places import changed_text
from tests.planted.judge import run

SECONDS = 40  # of processor time, for tests that take a fraction of it
_WALL = 15 * SECONDS


class Outcome(NamedTuple):
    """Which test failed, or how else it ended; empty if all tests pass."""

    killed_by: str
    tests: int
    seconds: float


def try_change(place, tests):
    """What becomes of the tests, in a process of its own, until the first that fails."""
    module = ".".join(place.file.with_suffix("").parts).removesuffix(".__init__")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if not child:
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
            run(module, changed_text(place), tests, Path(folder))
        status = _wait(child, start + _WALL)
        text = (Path(folder) / "output").read_text(errors="replace")
    outcome = _killer(os.waitstatus_to_exitcode(status), text)
    return Outcome(outcome, len(tests), round(time.perf_counter() - start, 1))


def _wait(child, end):
    while time.perf_counter() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _killer(code, text):
    if code == 0:
        return ""
    if code < 0:
        return "no end" if -code in (signal.SIGXCPU, signal.SIGKILL) else f"signal {-code}"
    failed = re.search(r"^(?:FAILED|ERROR) (?:tests/)?(.*?)(?: - |$)", text, re.M)
    return failed[1] if failed else f"pytest ends with code {code}"
