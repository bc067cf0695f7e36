"""`workbench show`: what a release file promises and holds."""

from __future__ import annotations

import json
from math import exp, inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli import screen

if TYPE_CHECKING:
    from workbench.mechanism import Release
    from workbench.table import Bound


def show(
    file: Annotated[Path, typer.Argument(help="A release, as `workbench release` writes it.")],
    top: Annotated[int, typer.Option(min=0, help="How many of its largest cells.")] = 10,
) -> None:
    """Show a release: its guarantee in words, what paid for it, its size and its largest cells."""
    from workbench.mechanism import Release

    release = Release.load(file)
    screen.say(f"{file}\n")
    screen.say(screen.plain(guarantee(release)))
    if release.bound:
        screen.say(stated(release.bound))
    for warning in warnings(release):
        screen.warn(warning)
    screen.table(
        "What paid for it",
        ["look", "ε", "δ", "relation", "part", "noise"],
        [
            (
                r.description,
                f"{r.cost.epsilon:g}",
                f"{r.cost.delta:g}",
                r.relation,
                "" if r.part is None else " / ".join(r.part),
                "simulated" if r.simulated else "none" if r.cost.epsilon == inf else "system",
            )
            for r in release.ledger
        ],
        right="ε δ",
    )
    screen.say(f"Mechanism  {screen.plain(release.mechanism)}")
    screen.say(f"Size       {sizes(release, file)}")
    if told := from_nothing(release):
        screen.say(f"           {told}")
    versions = ", ".join(f"{name} {version}" for name, version in _versions(file).items())
    screen.say(f"Versions   {screen.plain(versions)}")
    if top and len(release.estimate):
        _cells(release, top)


def guarantee(release: Release) -> str:
    """What the release promises, for someone who has not read the papers."""
    from workbench import privacy

    paid = release.privacy
    if paid.epsilon == inf:
        return "It promises nothing: part of it was read off the data without any protection."
    moves = {
        privacy.ADD_REMOVE: "one unit's records (usually one person's) are added or removed",
        privacy.REPLACE: "one unit's records are replaced by any others",
        privacy.LOCAL: "one unit's own value is any other",
    }.get(release.relation, f"the data changes in this way: {release.relation}")
    factor = f" = {exp(paid.epsilon):.3g}" if paid.epsilon < 700 else ""
    factor = f"e^{paid.epsilon:g}{factor}"
    words = f"{paid}: if {moves}, no outcome becomes more than {factor} times as likely"
    return words + (f", but for a chance of {paid.delta:g}." if paid.delta else ".")


def warnings(release: Release) -> list[str]:
    """Why the release is not fit to publish."""
    found = []
    if release.simulated:
        found.append(
            "Simulated: anyone with the seed can take the noise off. Do not publish it."
        )
    if release.privacy.epsilon == inf:
        found.append("No guarantee: the release must be handled like the data itself.")
    return found


def sizes(release: Release, file: Path) -> str:
    """Cells and bytes, against the table with every cell of the domain."""
    domain, bytes_ = release.estimate.domain, file.stat().st_size
    dense = 8 * domain.size
    saved = f"{dense / bytes_:,.3g} times smaller" if bytes_ < dense else "no smaller"
    held = f"{len(release.estimate):,} {release.estimate.contents}"
    held = held.replace(" cells", f" of {domain.size:,} cells")
    return (
        f"{held} in {screen.size(bytes_)}, {saved} than the dense table's {screen.size(dense)}"
    )


def _cells(release: Release, top: int) -> None:
    import numpy as np

    from workbench.estimates import Summary

    e = release.estimate
    if not isinstance(e, Summary):
        return
    weights = e.weights()
    largest = np.argsort(-weights, kind="stable")[:top]
    frame = e.where(largest).to_frame().drop(columns="noisy")
    rows = [(*cell, f"{w:,.6g}") for *cell, w in frame.itertuples(index=False)]
    title = f"The {len(rows)} largest {e.contents}"
    screen.table(title, list(frame.columns), rows, right="count")


def _versions(file: Path) -> dict[str, str]:
    import pyarrow.parquet as parquet

    return json.loads(parquet.read_schema(file).metadata[b"workbench"])["versions"]


def stated(bound: Bound) -> str:
    """What the guarantee rests on, in words."""
    one, all_ = f"{bound.linf:g} to each", f", {bound.l1:g} in all"
    whole = bound.l1 == bound.l0 * bound.linf
    cells = "one cell" if bound.l0 == 1 else f"{bound.l0:g} cells"
    one = f"{bound.linf:g} to" if bound.l0 == 1 else f"{one} of"
    return f"As stated, one unit adds at most {one} {cells}{'' if whole else all_}."


def from_nothing(release: Release) -> str:
    """How many cells the same thresholds keep of a table that holds nothing; public numbers only."""
    from fractions import Fraction

    from workbench import noise
    from workbench.estimates import Summary
    from workbench.transform import basis_of

    e = release.estimate
    if not isinstance(e, Summary) or e.decay is None or e.scale != 1:
        return ""  # nothing is known, or as many whatever the table holds
    if (e.theta == 0 and e.tau == 0 and e.sides == 2) or getattr(e, "consistent", False):
        return ""
    expected = 0.0
    for part in basis_of(getattr(e, "transform", None), e.domain).noise_blocks:
        decay = Fraction(e.decay) * part.share / part.nodes_per_count
        expected += part.size * float(
            noise.empty_cell(decay, e.theta, e.sides, e.tau).survival(192)
        )
    about = f"{expected:,.0f}" if expected >= 10 else f"{expected:.2g}"
    return f"of an empty table, the same thresholds would keep about {about} {e.contents}"
