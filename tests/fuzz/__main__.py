"""`python -m tests.fuzz [FORMAT…] [--minutes 10]`: damaged files of each format, and what came of them.

Each format has a process of its own, which says how many files were read and how many refused, every kind
of exception that no reader may raise, the longest that a file took, and by how much memory grew for one.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.formats import FORMATS
from tests.fuzz.run import Hangs, emptied, limited, looked_for_in

_EXAMPLES = 200  # between two looks at the clock


def main() -> None:
    """Fuzzes the formats one after another, each in a process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("formats", nargs="*", choices=[[], *FORMATS], default=[])
    parser.add_argument("--minutes", type=float, default=10, help="of processor time a format")
    parser.add_argument("--keep", type=Path, help="a folder for files that no reader may mind")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here:
        (name,) = asked.formats
        print(fuzzed(name, 60 * asked.minutes, asked.keep), flush=True)
        return
    for name in asked.formats or FORMATS:
        given_on = ["--minutes", str(asked.minutes), "--here"]
        given_on += [] if asked.keep is None else ["--keep", str(asked.keep)]
        subprocess.run([sys.executable, "-m", "tests.fuzz", name, *given_on])


def fuzzed(name: str, seconds: float, keep: Path | None) -> str:
    """What came of damaged files of one format, for so long a processor time."""
    warnings.simplefilter("ignore")
    kind = FORMATS[name]
    came: Counter[str] = Counter()
    faults: set[str] = set()
    longest = 0.0
    grown = 0
    with pytest.MonkeyPatch.context() as monkeypatch, tempfile.TemporaryDirectory() as folder:
        place = looked_for_in(Path(folder), monkeypatch)
        kind.patch(monkeypatch)

        @settings(
            max_examples=_EXAMPLES,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=[*HealthCheck],
        )
        @given(st.data())
        def some(data):
            nonlocal longest, grown
            emptied(place)
            kind.write(place, data.draw)
            before = _peak(anew=True)
            start = time.process_time()
            try:
                with limited():
                    kind.use(place)
                came["read"] += 1
            except (ValueError, OSError):  # FileNotFoundError is one
                came["refused"] += 1
            except (Hangs, Exception) as e:
                came["faults"] += 1
                _note(faults, e, place, keep)
            longest = max(longest, time.process_time() - start)
            if sum(came.values()) > _EXAMPLES:  # all that is loaded when used has been
                grown = max(grown, _peak() - before)

        start = time.process_time()
        while time.process_time() - start < seconds:
            seed(int.from_bytes(os.urandom(6)))(some)()
        spent = time.process_time() - start
    counts = ", ".join(f"{number:,} {what}" for what, number in came.items())
    return (
        f"{name}: {spent / 60:.1f} min, {sum(came.values()):,} files ({counts}), longest {longest:.2f} s, "
        f"memory grew by at most {grown / 2**20:.1f} MB, to {_peak_of_all() / 2**20:.0f} MB"
    )


def _note(faults: set[str], error: BaseException, place: Path, keep: Path | None) -> None:
    """Prints one of each fault, by its kind and where it rose, and keeps its files."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "workbench" in f.filename and "tests" not in f.filename]
    where = f"{ours[-1].filename.rpartition('workbench/')[2]}:{ours[-1].lineno}" if ours else ""
    named = f"{type(error).__name__} {where}"
    if named in faults:
        return
    faults.add(named)
    print(f"{named}\n{''.join(traceback.format_exception(error)[-8:])}", flush=True)
    if keep is not None:
        shutil.copytree(place, keep / f"{place.name}{len(list(keep.glob('*')))}")


def _peak(anew: bool = False) -> int:
    """The most memory that this process has had, in bytes, since it was last asked `anew`."""
    if anew:
        Path("/proc/self/clear_refs").write_text("5")
    (line,) = (x for x in Path("/proc/self/status").open() if x.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def _peak_of_all() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
