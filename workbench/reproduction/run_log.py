"""The log of one notebook's run: how long each cell took, and what its kernel said."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbformat import NotebookNode

LOG = "run.log"


class RunLog:
    """The log of one notebook's run, beside what it makes."""

    def __init__(self, file: Path):
        self.file = file

    def begin(self, text: str) -> None:
        """A new log."""
        self.file.unlink(missing_ok=True)
        self.add(text)

    def add(self, text: str) -> None:
        """A line with the time, or several."""
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        with suppress(OSError), open(self.file, "a", encoding="utf-8") as file:  # a full disk
            file.write(f"{now}  {text}\n")

    def add_cells(self, executed: NotebookNode) -> None:
        """How long each cell took."""
        for cell in executed.cells:
            seconds = cell.metadata.get("papermill", {}).get("duration")
            if cell.cell_type == "code" and seconds is not None:
                first = cell.source.strip().partition("\n")[0]
                self.add(f"{seconds:8.1f} s  In [{cell.execution_count}]: {first}")
