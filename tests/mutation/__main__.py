"""`python -m tests.mutation`: small changes at drawn places of the code, and which test sees each.

Rows go to the table as they come; what stands there, of a place that is the same, is not tried again.
What survives is listed with the reason why no test can see it, from `equivalent.toml`.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.mutation import places
from tests.mutation.choice import Reach
from tests.mutation.table import COLUMNS, TABLE, read_rows, write_page
from tests.mutation.trial import try_change
from tests.planted.judge import load_libraries
from tests.planted.planting import ROOT

SEED = 19
SIZE = 200
_TESTS = ("noise", "mechanisms", "laws/test_laws.py", "owner/test_audit.py")


def main():
    """Try what is not in the table yet."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--size", type=int, default=SIZE, help="how many places are drawn")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument(
        "--reach", type=Path, action="append", default=[], help="written before, and to be read"
    )
    asked = parser.parse_args()
    drawn = places.drawn(SEED, asked.size)
    rows = {row["change"]: row for row in read_rows()}
    left = [place for place in drawn if place.name not in rows]
    if left:
        _try(left, asked.reach or [_reached()], asked.workers)
    survived = write_page([place.name for place in drawn])
    sys.exit(bool(survived))


def _try(left, reach_files, workers):
    reach = Reach(*reach_files)
    load_libraries()

    def outcome(place):
        return try_change(place, reach.tests_of(place))

    is_new = not TABLE.exists()
    with (
        open(TABLE, "a", newline="", encoding="utf-8") as file,
        ThreadPoolExecutor(workers) as threads,  # each waits for a process
    ):
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        futures = {threads.submit(outcome, place): place for place in left}
        for future in as_completed(futures):
            place = futures[future]
            tried = future.result()
            writer.writerow([place.name, place.file, place.kind, *tried])
            file.flush()
            print("✓" if tried.killed_by else "✗", place.name, tried.killed_by, flush=True)


def _reached():
    """Run the quick tests once, to see which lines each runs."""
    file = Path(tempfile.mkdtemp()) / "reach.json"
    options = (
        "-q -n 0 -p no:cacheprovider -p tests.mutation.reach --hypothesis-profile=ci".split()
    )
    command = [sys.executable, "-m", "pytest", *options, "-m", "not slow and not long"]
    environment = os.environ | {"WORKBENCH_REACH": str(file)}
    paths = [f"tests/{name}" for name in _TESTS]
    subprocess.run([*command, *paths], cwd=ROOT, env=environment, check=True)
    return file


if __name__ == "__main__":
    main()
