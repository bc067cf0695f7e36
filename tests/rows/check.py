"""Do the rows of every figure's quick run stand as they were recorded? (`workbench.figures.recorded`)

    python tests/rows/check.py RESULTS                          # compare a finished run
    python tests/rows/check.py RESULTS --accept FIGURE 'why'    # record that figure's rows anew

RESULTS is the folder of `workbench reproduce --results RESULTS`. The exit code is 1 if a row moved. Figures on
real files have a second record, of a run without the files: accept its rows with `--synthetic`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from workbench.figures.recorded import (
    NOT_RUN,
    OTHER_DATA,
    SAME,
    WITHIN,
    compare,
    machine,
    read,
    recorded_folder,
    sentence,
)

RECORD = recorded_folder() / "recorded.json"


def accept(results: Path, figure: str, why: str, synthetic: bool = False) -> None:
    """Record the rows of a figure anew, or those of its run on synthetic data."""
    rows = read(results / "quick" / figure / "rows.csv")
    rows.to_csv(
        recorded_folder() / ("synthetic" if synthetic else "") / f"{figure}.csv.xz",
        index=False,
        compression={"method": "xz", "preset": 9},
    )
    record = json.loads(RECORD.read_text())
    kind = "synthetic" if synthetic else "figures"
    record[kind][figure] = {"why": why, "machine": machine()}
    record[kind] = dict(sorted(record[kind].items()))
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "results", type=Path, help="the folder of `workbench reproduce --results`"
    )
    parser.add_argument("--accept", nargs=2, metavar=("FIGURE", "WHY"), help="record it anew")
    parser.add_argument("--synthetic", action="store_true", help="rows of a run without files")
    words = parser.parse_args()
    if words.accept:
        accept(words.results, *words.accept, words.synthetic)
        return 0
    outcomes = compare(words.results)
    for figure, outcome in outcomes.items():
        print(f"{figure}: {outcome}")
    print(sentence(outcomes))
    return int(any(x not in (SAME, WITHIN, NOT_RUN, OTHER_DATA) for x in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
