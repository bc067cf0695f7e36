"""Where a trial's rows are kept: a file named by all that decides them."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from workbench.experiment import inputs
from workbench.experiment.sweep import Sweep, Trial
from workbench.temporary import Draft, remove_drafts

ROWS_SINCE = "WORKBENCH_ROWS_SINCE"  # a time: rows that were kept before it are drawn anew
_version = cache(version)  # it reads a file, and every trial asks


def row_file(
    trial: Trial, sweep: Sweep, store: Path, data: Sequence[str] | None = None
) -> Path | None:
    """Where a trial's rows are kept; None if code that is in no module's file decides them.

    `data` is what `inputs.data_states` says of the trial's dataset, where it has been asked before.
    """
    values = [trial.dataset, trial.mechanism, *sweep.metrics, *sweep.estimators]
    modules = inputs.modules_of(values)
    without_file = sorted(module for module in modules if not inputs.has_source(module))
    if without_file:
        warnings.warn(f"not cached: {without_file} is not the file of a module", stacklevel=3)
        return None
    texts = [repr(trial), *map(repr, sweep.metrics), *map(repr, sweep.estimators)]
    nameless = [text for text in texts if " at 0x" in text]
    if nameless:
        warnings.warn(f"not cached: {nameless[0]} does not say what it is", stacklevel=3)
        return None
    inputs.note_sources(modules)
    edited = inputs.edited(modules)
    if edited:
        warnings.warn(
            f"not cached: {edited} changed since it was imported; restart", stacklevel=3
        )
        return None
    texts += inputs.data_states(trial.dataset, store) if data is None else data
    texts += [inputs.source_hash(modules), _version("numpy"), _version("scipy")]
    texts += inputs.versions(modules)
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()
    return store / f"{digest[:32]}.json"


def read_rows(file: Path | None) -> list[dict[str, Any]]:
    """Rows kept earlier, since the time that ROWS_SINCE names; none if they cannot be read."""
    try:
        if file is None or file.stat().st_mtime < float(os.environ.get(ROWS_SINCE, 0)):
            return []
        return json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return []


def write_rows(file: Path, rows: list[dict[str, Any]]) -> None:
    """Keep rows: all of them or, if the process is killed meanwhile, none."""
    _clean(file.parent)
    try:
        with closing(Draft(file, clean=False)) as draft:
            draft.path.write_text(json.dumps(rows))
            draft.replace(file)
    except OSError as e:
        raise OSError(
            f"{file} was not written: {e.strerror or e}; rows before it are kept"
        ) from None


@cache
def _clean(store: Path) -> None:
    """Remove what processes that were killed left half-written; once, since a store holds many files."""
    remove_drafts(store)
