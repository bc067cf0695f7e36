"""`workbench advise`: what to release, before any budget is spent and without looking at data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli import release, screen


def advise(
    domain: Annotated[
        Path, typer.Option(help="Which cells there can be (JSON), as for `release`.")
    ],
    epsilon: Annotated[float, typer.Option(help="Privacy loss ε.")],
    size: Annotated[int, typer.Option(help="About how many cells to release.")],
    bound: Annotated[
        str, typer.Option(metavar="L0,LINF[,L1]", help="How far one unit moves the table.")
    ] = "1,1",
    delta: Annotated[
        float, typer.Option(help="Failure probability δ, for a stability histogram.")
    ] = 0.0,
    density: Annotated[
        float | None, typer.Option(help="Believed: the fraction of cells that are not empty.")
    ] = None,
    mean: Annotated[float | None, typer.Option(help="Believed: their mean count.")] = None,
    spread: Annotated[
        float | None, typer.Option(help="Believed: their counts' standard deviation.")
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            metavar="R,R,…",
            help="Sizes of ranges, in cells.",
            show_default="that hold 1, 100, 10000 non-empty cells",
        ),
    ] = None,
) -> None:
    """Compare summaries before any budget is spent. No data is read: there is no table to name.
    Errors follow from public numbers alone; --density, --mean and --spread say what you believe of the
    table, and must not be read off private data. Without them the worst case decides.
    """
    from workbench.advice import advise
    from workbench.domain import Domain
    from workbench.option_grammar import release_options

    sizes = queries and [release.number("--queries", x.strip()) for x in queries.split(",")]
    advice = advise(
        Domain.read(domain),
        epsilon,
        size,
        delta=delta,
        bound=release.stated_bound(bound),
        density=density,
        mean=mean,
        spread=spread,
        queries=sizes,
    )
    shown = advice.display_table()
    right = " ".join(shown.columns[1:])
    screen.table(advice.caption, list(shown.columns), shown.to_numpy(), right=right)
    for words in (*advice.notes, advice.reason[0].upper() + advice.reason[1:] + "."):
        screen.paragraph(words)
    screen.say(f"\nworkbench release … {release_options(advice.mechanism)}")
