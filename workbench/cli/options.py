"""Options that several commands share: what of private data is published, and what that rests on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Table = Annotated[Path, typer.Argument(help="A row a cell: CSV, CSV.gz or Parquet.")]
Out = Annotated[Path, typer.Option(help="The release file to write (Parquet).")]
Epsilon = Annotated[float, typer.Option(help="Privacy loss ε.")]
Delta = Annotated[float, typer.Option(help="Failure probability δ.")]
Count = Annotated[
    str | None, typer.Option(help="The column of counts; without it each row counts one.")
]
DomainFile = Annotated[
    Path | None, typer.Option(help="Which cells there can be (JSON); required.")
]
BoundText = Annotated[
    str | None,
    typer.Option(metavar="L0,LINF[,L1]", help="How far one unit moves the table; required."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the file.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Replayable noise; needs --simulated.")]
Simulated = Annotated[
    bool, typer.Option("--simulated", help="Save a release that is not for publication.")
]
DomainFromData = Annotated[
    bool, typer.Option("--domain-from-data", help="Voids the guarantee.")
]
