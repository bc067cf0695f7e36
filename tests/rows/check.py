"""Do the rows of every figure's quick run stand as they were recorded?

    python tests/rows/check.py RESULTS                          # compare a finished run
    python tests/rows/check.py RESULTS --accept FIGURE 'why'    # record that figure's rows anew

RESULTS is the folder of `workbench reproduce --results RESULTS`. On the machine that recorded them
rows are compared bit for bit; on another one, and wherever eigenvectors decide (chen2012, the answer
bank), to 10⁻⁹, or to 10⁻⁸ where both hold. On another processor chains of draws part ways where the
last bit of a weight does, so that what maximum entropy makes of them is compared loosely there
(`OF_CHAINS` and `APART`).
Times are left out, and so are those columns of `ADDED` that the record lacks: they came later. A
figure that ran on other data than the recorded one is not compared. The exit code is 1 if a row moved.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd

from workbench.figures.saved import TIMED, TIMES

HERE = Path(__file__).resolve().parent
RECORD = HERE / "recorded.json"
TOLERANCE = 1e-9
ELSEWHERE = {
    "02_your_data": 1e-4
}  # a threshold is searched up to 10⁻⁴: rounding decides where it ends
OF_CHAINS = 0.3  # of rows that have a duality gap, on another processor (0.16 was seen)
APART = {  # such a row may be off by so much anyway, where few people are counted
    "chen2012_fig4": 0.03,  # a gap that is nearly closed (0.017 was seen)
    "chen2012_fig7": 6.0,  # people in boxes on eight and nine attributes (5.6 were seen)
}
EIGENVECTORS = ("chen2012", "03_answer_bank")  # figures that rest on `eigh`
OF_EIGENVECTORS = 1e-8  # of these, on another processor (1.1e-9 was seen)
ADDED = {"mechanism_name"}  # columns that older records lack


def machine() -> dict[str, str]:
    """What decides the last bits of a floating point result."""
    return {
        "processor": _processor(),
        "python": platform.python_version(),
        **{name: __import__(name).__version__ for name in ("numpy", "scipy", "numba")},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    about = dict(line.partition(":")[::2] for line in lines if ":" in line)
    about = {name.strip(): text.strip() for name, text in about.items()}
    names = ("model name", "cpu family", "model", "stepping")
    return " ".join(about[name] for name in names if name in about)


def read(path: Path) -> pd.DataFrame:
    """The rows of a figure as text, without times, columns by name."""
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    if "metric" in rows:
        rows.loc[rows["metric"].isin(TIMED), "value"] = ""
    return rows[sorted(set(rows) - TIMES)]


def difference(
    recorded: pd.DataFrame,
    rows: pd.DataFrame,
    tolerance: float | np.ndarray = 0.0,
    apart: float = TOLERANCE,
) -> str:
    """Where the rows differ first, in words; "" if they do not. A tolerance of 0 is bit for bit."""
    rows = rows.drop(columns=[*(ADDED & {*rows}) - {*recorded}])
    if list(rows) != list(recorded):
        return f"columns {sorted(set(rows) ^ set(recorded))} appeared or went"
    if len(rows) != len(recorded):
        return f"{len(rows):,} rows, recorded {len(recorded):,}"
    for name in rows:
        moved = (rows[name] != recorded[name]).to_numpy()
        if moved.any() and np.any(tolerance):
            moved = moved & ~_close(rows[name], recorded[name], tolerance, apart)
        if moved.any():
            i = int(moved.argmax())
            return (
                f"{int(moved.sum()):,} of {len(rows):,} rows moved in {name!r}, "
                f"first row {i}: {recorded[name][i]!r} is now {rows[name][i]!r}"
            )
    return ""


def _tolerance(figure: str, rows: pd.DataFrame, same_machine: bool) -> float | np.ndarray:
    """How far a number of each row may be off, of its size."""
    if same_machine:
        return TOLERANCE if figure.startswith(EIGENVECTORS) else 0.0
    usual = OF_EIGENVECTORS if figure.startswith(EIGENVECTORS) else TOLERANCE
    tolerance = ELSEWHERE.get(figure, usual)
    return np.where(rows["gap"] != "", OF_CHAINS, tolerance) if "gap" in rows else tolerance


def _close(
    a: pd.Series, b: pd.Series, tolerance: float | np.ndarray, apart: float
) -> np.ndarray:
    x = pd.to_numeric(a, errors="coerce").to_numpy(float)
    y = pd.to_numeric(b, errors="coerce").to_numpy(float)
    of_chains = np.equal(tolerance, OF_CHAINS)
    return np.isclose(x, y, rtol=tolerance, atol=np.where(of_chains, apart, TOLERANCE))


def compare(results: Path, folders: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """For each recorded figure "same", "not run", "other data", or what moved.

    `folders` names those of figures that ran with fewer seeds or timings: their recorded rows are
    compared.
    """
    record = json.loads(RECORD.read_text())
    outcomes = {}
    for figure, about in record["figures"].items():
        folder = folders.get(figure, figure)
        path = results / "quick" / folder / "rows.csv"
        if not path.exists():
            outcomes[figure] = "not run"
            continue
        recorded, rows = read(HERE / f"{figure}.csv.xz"), read(path)
        if folder != figure:
            rows = rows.drop(columns="off_profile")
            if "trial" in rows:
                recorded = recorded[recorded.trial.isin(rows.trial)].reset_index(drop=True)
        if _datasets(rows) != _datasets(recorded):
            outcomes[figure] = "other data"
            continue
        tolerance = _tolerance(figure, recorded, about["machine"] == machine())
        apart = APART.get(figure, TOLERANCE)
        outcomes[figure] = difference(recorded, rows, tolerance, apart) or "same"
    return outcomes


def _datasets(rows: pd.DataFrame) -> set[str]:
    return set(rows["dataset"]) if "dataset" in rows else set()


def accept(results: Path, figure: str, why: str) -> None:
    """Record the rows of a figure anew."""
    rows = read(results / "quick" / figure / "rows.csv")
    rows.to_csv(
        HERE / f"{figure}.csv.xz", index=False, compression={"method": "xz", "preset": 9}
    )
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {"figures": {}}
    record["figures"][figure] = {"why": why, "machine": machine()}
    record["figures"] = dict(sorted(record["figures"].items()))
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "results", type=Path, help="the folder of `workbench reproduce --results`"
    )
    parser.add_argument("--accept", nargs=2, metavar=("FIGURE", "WHY"), help="record it anew")
    words = parser.parse_args()
    if words.accept:
        accept(words.results, *words.accept)
        return 0
    outcomes = compare(words.results)
    for figure, outcome in outcomes.items():
        print(f"{figure}: {outcome}")
    return int(any(x not in ("same", "not run", "other data") for x in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
