"""`python -m tests.mutation`: small changes at drawn places of the code, and which test sees each.

Rows go to the table as they come; what stands there, of a place that is the same, is not tried again.
What survives is listed with the reason why no test can see it, from `equivalent.toml`.
"""

import argparse
import csv
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.mutation import places
from tests.mutation.choice import QUICK, Reach
from tests.mutation.table import TABLE, read_rows, write_page
from tests.planted.judge import load_libraries, run

# A test that takes longer has no end: its process ends without its name.
_LIMIT = "-o faulthandler_exit_on_timeout=true -o faulthandler_timeout=120".split()


def main():
    """Try what is not in the table yet."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--size", type=int, default=200, help="how many places are drawn")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    drawn = places.drawn(19, asked.size)
    known = {row["change"] for row in read_rows()}
    if left := [place for place in drawn if place.name not in known]:
        reach = Reach()
        load_libraries()
        with (
            open(TABLE, "a", newline="", encoding="utf-8") as file,
            ThreadPoolExecutor(asked.workers) as threads,  # each waits for a process
        ):
            tried = [threads.submit(row, place, reach.tests_of(place)) for place in left]
            for future in as_completed(tried):
                csv.writer(file, lineterminator="\n").writerow(future.result())
                file.flush()
                print(*future.result(), flush=True)
    sys.exit(bool(write_page([place.name for place in drawn])))


def row(place, tests):
    """What becomes of the tests, in a process of its own, until the first that fails."""
    module = ".".join(place.file.with_suffix("").parts).removesuffix(".__init__")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if not child:
            run(module, places.changed_text(place), [*_LIMIT, *QUICK, *tests], Path(folder))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        text = (Path(folder) / "output").read_text(errors="replace")
    seconds = round(time.perf_counter() - start, 1)
    return place.name, place.file, place.kind, killer(code, text), len(tests), seconds


def killer(code, text):
    """Which test failed, or how else it ended; empty if all tests pass."""
    if code <= 0:
        return f"signal {-code}" if code else ""
    failed = re.search(r"^(?:FAILED|ERROR) (?:tests/)?(.*?)(?: - |$)", text, re.M)
    return failed[1] if failed else "no end"


if __name__ == "__main__":
    main()
