"""The options that name a cluster, and its executor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from workbench.scale.dask import Cluster

Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS|FILE",
        help="A Dask cluster that does the work: its scheduler's address, or the file that it wrote.",
        rich_help_panel="Many machines",
    ),
]
Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure",
        help="Accept a tcp:// scheduler on another machine: private rows then cross the network in the "
        "clear.",
        rich_help_panel="Many machines",
    ),
]


def connected(scheduler: str, insecure: bool) -> Cluster:
    """The executor of a cluster, or a ValueError that says what to install."""
    try:
        from workbench.scale.dask import connect
    except ImportError:
        raise ValueError("--scheduler needs Dask: pip install 'dp-workbench[dask]'") from None
    return connect(scheduler, insecure=insecure)
