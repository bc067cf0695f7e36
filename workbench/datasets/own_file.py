"""A file of the user's own: where it is, and the bound that its user states."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from workbench.data import Bound, Public
from workbench.datasets.kinds import REAL_FILE
from workbench.datasets.published import File
from workbench.value import parameter


class OwnFile:
    """A dataset that is one file of the user's own, at `path`."""

    kind: ClassVar[str] = REAL_FILE
    path: str

    def files(self) -> tuple[File, ...]:
        """The one file."""
        return (File("", self.path, how="give its path"),)

    def _find(self) -> Path:
        """Where it is; a FileNotFoundError if it is not there."""
        return self.files()[0].find()


def bound_field(what: str) -> Any:
    """The field that says how far one unit moves `what` is in the file."""
    need = f"need Bound(l0, linf), how far one unit moves the {what}, or PUBLIC"
    return parameter(
        check=lambda x: None if isinstance(x, Bound | Public) else need,
        doc="how far one unit moves it",
    )
