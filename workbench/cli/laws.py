"""`workbench laws`: whether a mechanism obeys what every mechanism must."""

from __future__ import annotations

from typing import Annotated

import typer

from workbench.cli import screen


def laws(
    name: Annotated[
        str, typer.Argument(metavar="MODULE:CLASS", help="Or one of ours, as HighPassFilter.")
    ],
) -> None:
    """Run the laws of mechanisms on one class: a line each, and exit code 1 if one is broken."""
    from workbench import mechanisms, plugins

    plugins.use_current_folder()
    ours = name in mechanisms.__all__
    cls = getattr(mechanisms, name) if ours else plugins.find("mechanisms", name)
    if cls is None:
        raise ValueError(f"no mechanism {name!r}; name it as module:Class")
    if not hasattr(cls, "takes") or not hasattr(cls, "example"):
        raise ValueError(f"{name} is no mechanism: need a class derived from `Mechanism`")

    from workbench.laws import check_laws

    broken = 0
    for outcome in check_laws(cls):
        mark = "✗" if outcome.broken else "✓"
        screen.say(f"{mark} {outcome.law}")
        if outcome.broken:
            broken += 1
            screen.complain(screen.plain(outcome.broken))
    if broken:
        raise typer.Exit(1)
