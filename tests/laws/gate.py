"""`python -m tests.laws.gate`: what the tests see, recorded, so that they can shrink without seeing less.

`gate.csv` has the branch coverage of each package in the quick suite, in per cent, and the mistakes and changes
that some test catches, as `docs/planted.inc` and `tests/mutation/tried.csv` list them. Bodies of compiled loops
do not count, because nobody sees numba run them, and neither does what runs in a process of its own.
With `--check` nothing is written: a package that lost more than 0.3 points is an error, and so is a mistake
that is no longer caught, or was caught by a test that is gone.
"""

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.mutation.table import read_rows
from tests.planted.planting import ROOT

GATE = Path(__file__).with_name("gate.csv")
LOSS = 0.3  # points
QUICK = ["-q", "-n", "0", "--hypothesis-profile=ci", "-m", "not slow and not long"]


def main():
    """Record, or compare."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws.gate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with what is recorded")
    parser.add_argument("--data", type=Path, help="of a coverage run of the quick suite")
    asked = parser.parse_args()
    seen = {"coverage": coverage(asked.data), "planted": planted(), "drawn": drawn()}
    if not asked.check:
        rows = (
            (kind, name, value)
            for kind, values in seen.items()
            for name, value in values.items()
        )
        with open(GATE, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        return
    with open(GATE, newline="", encoding="utf-8") as file:
        losses = [*compare(csv.reader(file), seen)]
    print("\n".join(losses) or "The tests see what they saw.")
    sys.exit(bool(losses))


def coverage(data):
    """Per cent of the lines and branches of each package."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "coverage"]
        if data is None:
            data = Path(folder) / "data"
            run = [*command, "run", f"--data-file={data}", "-m", "pytest", *QUICK]
            subprocess.run(run, cwd=ROOT, check=True)
        report = Path(folder) / "report.json"
        told = [f"--data-file={data.resolve()}", "-q", "-o", str(report)]
        subprocess.run([*command, "json", *told], cwd=ROOT, check=True)
        files = json.loads(report.read_text(encoding="utf-8"))["files"]
    ran, all_there = Counter(), Counter()
    for name, file in files.items():
        package, *inside = Path(name).parts[1:]
        package, summary = package if inside else "loose files", file["summary"]
        ran[package] += summary["covered_lines"] + summary["covered_branches"]
        all_there[package] += summary["num_statements"] + summary["num_branches"]
    return {package: round(100 * ran[package] / n, 1) for package, n in all_there.items()}


def planted():
    """Planted mistakes, and the test that catches each."""
    rows = (ROOT / "docs" / "planted.inc").read_text("utf-8").splitlines()[2:]
    cells = [row.strip("| ").split(" | ") for row in rows]
    return {name: test.strip("`") for name, *_, test, seconds in cells if seconds != "not"}


def drawn():
    """Drawn changes, and what catches each."""
    return {row["change"]: row["killed by"] for row in read_rows() if row["killed by"]}


def compare(recorded, seen):
    """What was seen and is not seen now, in words."""
    for kind, name, was in recorded:
        now = seen[kind].get(name)
        if now is None:
            yield f"{kind}, {name}: no longer seen"
        elif kind == "coverage" and now < float(was) - LOSS:
            yield f"{name}: {now} % of lines and branches are run, {was} % were"
        elif kind != "coverage" and "::" in now:
            file, _, test = now.partition("::")
            path = ROOT / (file if file.startswith("workbench") else f"tests/{file}")
            if not (
                path.exists() and f"def {test.partition('[')[0]}(" in path.read_text("utf-8")
            ):
                yield f"{kind}, {name}: the test that saw it is gone, {now}"


if __name__ == "__main__":
    main()
