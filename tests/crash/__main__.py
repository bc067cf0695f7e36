"""`python -m tests.crash [--kills 200] [--reproduce 50]`: every kill and every disk, and what was seen."""

import argparse
import tempfile
import time
from pathlib import Path

from tests.crash.disks import FULL, small_disk, unwritable, vanished
from tests.crash.killed import FIGURE, KINDS, kills_of_reproduce

_PART = 10


def main() -> None:
    """Runs all, one after another; an AssertionError is a loss."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200, help="of each kind")
    parser.add_argument("--reproduce", type=int, default=50, help=f"of `reproduce {FIGURE}`")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    jobs = [(name, kind, asked.kills) for name, kind in KINDS.items()]
    for first in range(0, asked.reproduce, _PART):  # a line for each part, since it takes long
        part = min(_PART, asked.reproduce - first)
        jobs.append((f"reproduce {FIGURE}", kills_of_reproduce, part))
    for number, (name, kind, kills) in enumerate(jobs):
        if not kills:
            continue
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            seen = kind(Path(folder), kills, asked.seed + number)
        counts = ", ".join(f"{count} {what}" for what, count in seen.items() if count)
        print(
            f"{name}: {kills} kills in {time.perf_counter() - start:.0f} s: {counts}",
            flush=True,
        )
    for name, full in FULL.items():
        with small_disk() as (folder, kind):
            said = full(folder)
        print(f"{name} on {kind}: {said}", flush=True)
    for name, gone in (("not writable", unwritable), ("vanished", vanished)):
        with tempfile.TemporaryDirectory() as folder:
            said = gone(Path(folder))
        print(f"folder {name}: {said}", flush=True)
    print("nothing was lost")


if __name__ == "__main__":
    main()
