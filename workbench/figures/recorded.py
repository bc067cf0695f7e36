"""Comparison of the results of quick runs with recorded results, for each figure. A sentence summarises the
comparison.

On the machine that recorded the results, both results must be equal bit by bit. On another machine, relative
differences of up to 10⁻⁹ are allowed. For results that depend on eigenvectors (chen2012 and the answer bank),
the limit is 10⁻⁹ on the same machine and 10⁻⁸ on another. `ELSEWHERE` states larger limits for some figures
on another machine. On another processor, chains of random draws diverge as soon as the last bit of a weight
differs. So the limits for results of maximum entropy are much larger there (`OF_CHAINS` and `APART`). Times
are not compared. Columns in `ADDED` are not compared if the record is older than these columns. A figure that
uses real files has two records: one of a run with these files, and one of a run without them. A figure that
ran on other data is not compared.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Collection, Mapping
from filecmp import dircmp
from inspect import getfile
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench.compiled import pd, template_folder
from workbench.figures.figure import Figure
from workbench.figures.saved import TIMED, TIMES
from workbench.value import counted

SAME = "same"
WITHIN = "within the spread of its chains"
NOT_RUN = "not run"
OTHER_DATA = "other data"
TOLERANCE = 1e-9
ELSEWHERE = {"02_your_data": 1e-4}  # a threshold is searched up to 10⁻⁴, and rounding ends it
OF_CHAINS = 0.3  # of rows that have a duality gap, on another processor (0.16 was seen)
APART = {  # such a row may be off by so much anyway, where few people are counted
    "chen2012_fig4": 0.03,  # a gap that is nearly closed (0.017 was seen)
    "chen2012_fig7": 6.0,  # people in boxes on eight and nine attributes (5.6 were seen)
}
EIGENVECTORS = ("chen2012", "03_answer_bank")  # figures that rest on `eigh`
OF_EIGENVECTORS = 1e-8  # of these, on another processor (1.1e-9 was seen)
ADDED = {"mechanism_name"}  # columns that older records lack


def recorded_folder() -> Path:
    """Return the folder that contains the recorded results. The folder is included in the installed
    workbench.
    """
    return template_folder() / "tests" / "rows"


def machine() -> dict[str, str]:
    """Return the properties of this machine that affect the last bits of floating-point results."""
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
    parts = (line.partition(":") for line in lines)
    about = {name.strip(): text.strip() for name, _, text in parts}
    names = ("model name", "cpu family", "model", "stepping")
    return " ".join(about[name] for name in names if name in about)


def read(path: Path) -> pd.DataFrame:
    """Read the results of a figure from a CSV file, with every value as text. Times are left out, and columns
    are sorted by name.
    """
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    if "metric" in rows:
        rows.loc[rows["metric"].isin(TIMED), "value"] = ""
    return rows[sorted(set(rows) - TIMES)]


def recorded_rows(figure: Figure) -> pd.DataFrame | None:
    """Return the recorded rows of a quick run on the datasets that a figure uses on this machine. Return None
    if there are no such rows, or if the figure is not the quick one. Also return None if the figure shows
    times, or if files of its paper were edited.
    """
    cls = type(figure)
    ours = template_folder().joinpath(*cls.__module__.split(".")[:-1])
    if figure != cls.at("quick") or dircmp(Path(getfile(cls)).parent, ours).diff_files:
        return None
    own = {repr(dataset) for dataset in figure.datasets_run()}
    for place in ("synthetic", "."):
        path = recorded_folder() / place / f"{figure.id}.csv.xz"
        if not path.is_file():
            continue
        rows = pd.read_csv(path, low_memory=False)
        if own <= _datasets(rows) and not ("metric" in rows and rows.metric.isin(TIMED).any()):
            return rows
    return None


def difference(
    recorded: pd.DataFrame,
    rows: pd.DataFrame,
    relative: float | np.ndarray = 0.0,
    absolute: float | np.ndarray = TOLERANCE,
) -> str:
    """Describe the first difference between recorded rows and new rows. Return "" if both agree. If the
    `relative` tolerance is 0, the rows must be equal bit by bit.
    """
    rows = rows.drop(columns=[*(ADDED & {*rows}) - {*recorded}])
    if list(rows) != list(recorded):
        return f"columns {sorted(set(rows) ^ set(recorded))} appeared or went"
    if len(rows) != len(recorded):
        return f"{len(rows):,} rows, recorded {len(recorded):,}"
    for name in rows:
        moved = (rows[name] != recorded[name]).to_numpy()
        if moved.any() and np.any(relative):
            x, y = (pd.to_numeric(each[name], errors="coerce") for each in (rows, recorded))
            near = np.isclose(x.to_numpy(float), y.to_numpy(float), relative, absolute)
            moved = moved & ~near
        if moved.any():
            i = int(moved.argmax())
            return (
                f"{int(moved.sum()):,} of {len(rows):,} rows moved in {name!r}, "
                f"first row {i}: {recorded[name][i]!r} is now {rows[name][i]!r}"
            )
    return ""


def compare(results: Path, folders: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Compare the results of all recorded figures with their records. For each figure, return `SAME`,
    `WITHIN`, `NOT_RUN`, `OTHER_DATA`, or a description of the first difference.

    For figures that ran with fewer seeds or timings, `folders` contains the names of their folders.
    """
    if not (recorded_folder() / "recorded.json").exists():
        return {}
    about = json.loads((recorded_folder() / "recorded.json").read_text())
    return {
        figure: _compared(figure, results / "quick" / folders.get(figure, figure), about)
        for figure in about["figures"]
    }


def _compared(figure: str, folder: Path, about: Mapping[str, Any]) -> str:
    if not (folder / "rows.csv").exists():
        return NOT_RUN
    rows = read(folder / "rows.csv")
    thin = folder.name != figure
    if thin:
        rows = rows.drop(columns="off_profile")
    for kind, place in (("figures", "."), ("synthetic", "synthetic")):
        if figure not in about[kind]:
            continue
        recorded = read(recorded_folder() / place / f"{figure}.csv.xz")
        if thin and "trial" in rows:
            recorded = recorded[recorded.trial.isin(rows.trial)].reset_index(drop=True)
        if _datasets(rows) == _datasets(recorded):
            return _moved(figure, recorded, rows, about[kind][figure]["machine"] == machine())
    return OTHER_DATA


def _moved(figure: str, recorded: pd.DataFrame, rows: pd.DataFrame, same_machine: bool) -> str:
    by_eigenvectors = figure.startswith(EIGENVECTORS)
    if same_machine:
        return difference(recorded, rows, TOLERANCE if by_eigenvectors else 0.0) or SAME
    usual = ELSEWHERE.get(figure, OF_EIGENVECTORS if by_eigenvectors else TOLERANCE)
    if "gap" not in recorded:
        return difference(recorded, rows, usual) or SAME
    of_chains = recorded["gap"] != ""
    if not difference(recorded, rows, np.where(of_chains, OF_EIGENVECTORS, usual)):
        return SAME
    apart = np.where(of_chains, APART.get(figure, TOLERANCE), TOLERANCE)
    return difference(recorded, rows, np.where(of_chains, OF_CHAINS, usual), apart) or WITHIN


def sentence(outcomes: Mapping[str, str], ids: Collection[str] | None = None) -> str:
    """Return a sentence that says how many figures agree with their recorded results. The sentence also names
    the other figures.

    Parameters
    ----------
    outcomes : mapping
        Result of `compare`.
    ids : collection of str, optional
        Ids of the figures that are counted. Default: all figures.

    Returns
    -------
    str
        The sentence, or "" if no figure was run.

    Examples
    --------
    >>> sentence({"a_fig1": SAME, "a_fig2": WITHIN, "a_fig3": OTHER_DATA, "00_tour": SAME})
    '1 of 2 figures has the recorded numbers. Within the spread of sampled chains: a_fig2. \
On other data and not compared: a_fig3.'
    """
    own = {
        id: outcome
        for id, outcome in outcomes.items()
        if outcome != NOT_RUN and not id[0].isdigit() and (ids is None or id in ids)
    }
    kinds: dict[str, list[str]] = {SAME: [], WITHIN: [], OTHER_DATA: [], "": []}
    for id, outcome in own.items():
        kinds[outcome if outcome in kinds else ""].append(id)
    compared = len(own) - len(kinds[OTHER_DATA])
    parts = []
    if compared:
        have = "has" if len(kinds[SAME]) == 1 else "have"
        parts.append(
            f"{len(kinds[SAME])} of {counted(compared, 'figure')} {have} the recorded numbers"
        )
    words = {
        WITHIN: "Within the spread of sampled chains",
        OTHER_DATA: "On other data and not compared",
        "": "Different",
    }
    parts += [f"{words[x]}: {', '.join(kinds[x])}" for x in words if kinds[x]]
    return "".join(f"{part}. " for part in parts).strip()


def _datasets(rows: pd.DataFrame) -> set[str]:
    return set(rows["dataset"]) if "dataset" in rows else set()
