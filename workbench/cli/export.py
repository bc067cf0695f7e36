"""`workbench export`: what a panel shows at some setting, as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli import screen


def export(
    panel: Annotated[
        str,
        typer.Argument(
            help="summaries, consistency, adaptive, contributions, history, or a mechanism's class."
        ),
    ],
    settings: Annotated[
        list[str] | None, typer.Argument(help="name=value …, as a panel tells them.")
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="Where.", show_default="experiments/results")
    ] = None,
) -> None:
    """Write a panel's figure as PDF, SVG and PNG, with its rows and manifest.

    The same code draws it as the Export button. Noise is simulated: `seed` replays it, and `seeds`
    says how many releases stand behind a band, by seed, seed + 1, …
    """
    from workbench.widgets import from_settings

    screen.say(from_settings(panel, settings or ()).save(results))
