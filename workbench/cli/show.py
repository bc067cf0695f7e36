"""`workbench show`: what a release file promises and holds."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli import release_text, screen
from workbench.libraries import parquet
from workbench.wording import number

if TYPE_CHECKING:
    from workbench.mechanism import Release
    from workbench.privacy import Receipt


def show(
    file: Annotated[Path, typer.Argument(help="A release, as `workbench release` writes it.")],
    top: Annotated[int, typer.Option(min=0, help="How many of its largest cells.")] = 10,
) -> None:
    """Show a release: its guarantee in words, what paid for it, its size and its largest cells."""
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such release file")

    from workbench.mechanism import Release

    release = Release.load(file)
    screen.say(f"{file}\n")
    screen.say(screen.plain(release_text.guarantee(release)))
    if release.bound:
        screen.say(screen.plain(release_text.bound_in_words(release.bound)))
    users_cut = release_text.users_cut_in_words(release)
    if users_cut:
        screen.say(users_cut)
    for warning in release_text.warnings(release):
        screen.warn(warning)
    screen.table(
        "What paid for it",
        ["look", "ε", "δ", "relation", "part", "noise"],
        [_ledger_row(receipt) for receipt in release.ledger],
        right=["ε", "δ"],
    )
    screen.say(f"Mechanism  {screen.plain(release.mechanism)}")
    screen.say(f"Size       {release_text.sizes(release, file)}")
    from_nothing = release_text.cells_from_nothing(release)
    if from_nothing:
        screen.say(f"           {from_nothing}")
    versions = ", ".join(f"{name} {version}" for name, version in _versions(file).items())
    screen.say(f"Versions   {screen.plain(versions)}")
    if top and len(release.estimate):
        _show_largest_cells(release, top)


def _ledger_row(receipt: Receipt) -> tuple[str, ...]:
    noise = "simulated" if receipt.simulated else "system"
    if receipt.cost.epsilon == inf and not receipt.simulated:
        noise = "none"
    return (
        receipt.description,
        number(receipt.cost.epsilon),
        number(receipt.cost.delta),
        receipt.relation,
        " / ".join(receipt.part or ()),
        noise,
    )


def _show_largest_cells(release: Release, top: int) -> None:
    import numpy as np

    from workbench.estimates import Summary

    estimate = release.estimate
    if not isinstance(estimate, Summary):
        return
    weights = estimate.weights()
    largest = np.argsort(-weights, kind="stable")[:top]
    frame = estimate.where(largest).to_frame().drop(columns="noisy")
    rows = [(*cell, number(count)) for *cell, count in frame.itertuples(index=False)]
    title = f"The {len(rows)} largest {estimate.contents}"
    screen.table(title, list(frame.columns), rows, right=["count"])


def _versions(file: Path) -> dict[str, str]:
    return json.loads(parquet.read_schema(file).metadata[b"workbench"])["versions"]
