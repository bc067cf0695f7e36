"""What a saved picture or table says of itself, and whether rows that are made again agree with it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import provenance
from workbench.datasets._kinds import unwrapped

if TYPE_CHECKING:
    import pandas as pd

    from workbench.figures.figure import Figure

TIMES = {"seconds", "median_seconds", "machine", "repeated"}  # columns that hold times
TIMED = {"throughput", "ProcessorTime"}  # metrics whose values are times
SIMULATED = "simulated"
SYSTEM = "system"


def row_digest(rows: pd.DataFrame) -> str:
    """A sha256 of rows to nine digits, without times: the same wherever they are made again."""
    rows = rows[sorted({*rows} - TIMES)]
    if {"metric", "value"} <= {*rows}:
        rows = rows.assign(value=rows["value"].mask(rows.metric.isin(TIMED)))
    text = rows.to_csv(index=False, lineterminator="\n", float_format="%.9g")
    return hashlib.sha256(text.encode()).hexdigest()


def noise_of(rows: pd.DataFrame, no_data: bool) -> str:
    """How rows were made: by noise that a seed replays, or that nothing does."""
    if "simulated" in rows:
        return SIMULATED if rows["simulated"].all() else SYSTEM
    return "none" if no_data else SIMULATED  # a trial's noise follows from its text


def public_files(figure: Figure) -> dict[str, str]:
    """The sha256 of the published files that a figure rests on, by name; of private ones nothing."""
    from workbench.experiment.inputs import located

    hashes: dict[str, str] = {}
    with suppress(FileNotFoundError, ValueError):  # rows of a machine that has them
        for dataset in figure.datasets_used():
            if getattr(unwrapped(dataset), "truth_public", False) is not True:
                continue
            for file in dataset.files() if hasattr(dataset, "files") else ():
                path = located(file)
                hashes[path.name] = _sha256(path, path.stat().st_mtime_ns)
    return hashes


@cache
def _sha256(path: Path, changed: int) -> str:
    """Once for a file that has not changed."""
    return provenance.file_sha256(path)


def release_record(path: Path) -> dict[str, Any]:
    """What a picture of a release carries: the file's own record, and its hash, which is public."""
    own = provenance.read(path)
    kept: Mapping[str, Any] = {
        name: own[name] for name in ("guarantee", "mechanism", "simulated") if name in own
    }
    return {**kept, "file": path.name, "sha256": provenance.file_sha256(path)}
