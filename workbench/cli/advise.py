"""`workbench advise`: what to release, before any budget is spent and without looking at data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli import screen
from workbench.cli.request import stated_bound


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
    from workbench.domain import Domain
    from workbench.option_grammar import parse_numbers, release_options

    cells = Domain.read(domain)
    stated = stated_bound(bound)
    sizes = parse_numbers("--queries", queries) if queries else None

    from workbench.advice import advise

    advice = advise(
        cells,
        epsilon,
        size,
        delta=delta,
        bound=stated,
        density=density,
        mean=mean,
        spread=spread,
        queries=sizes,
        others=_others(epsilon, size),
    )
    rows = advice.display_table()
    columns = list(rows.columns)
    screen.table(advice.caption, columns, rows.to_numpy(), right=columns[1:])
    reason = f"{advice.reason[0].upper()}{advice.reason[1:]}."
    for note in (*advice.notes, reason):
        screen.paragraph(note)
    screen.say(f"\nworkbench release … {release_options(advice.mechanism)}")


def _others(epsilon: float, size: int) -> list:
    """The mechanisms of the modules that `--with` names whose errors follow from a formula."""
    from dataclasses import fields

    from workbench.plugins import stated_modules
    from workbench.privacy import DP

    members = [x for module in stated_modules() for x in vars(module).values()]
    others = []
    for cls in members:
        own = isinstance(cls, type) and not cls.__module__.startswith("workbench.")
        if own and hasattr(cls, "release_rule"):
            sized = "size" in {f.name for f in fields(cls)}
            budget = DP(epsilon)
            others.append(cls(budget, size=size) if sized else cls.example(budget))
    return others
