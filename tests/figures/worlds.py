"""Made-up rows in which a paper's claims are true, and what of them to change so that one is false."""

from dataclasses import replace

import numpy as np
import pandas as pd

from workbench import figures
from workbench.trials.claims import DIFFERS, HOLDS


def holds(claim, world) -> None:
    """The claim holds there, and says nothing more."""
    verdict = claim.judge(world, "quick")
    assert verdict.outcome == HOLDS, verdict.measured
    assert verdict.measured and not verdict.why


def differs(claim, world, where: dict, factor: float):
    """The claim differs once the values at `where` are multiplied by `factor`."""
    there = np.logical_and.reduce([world[c] == v for c, v in where.items()])
    assert there.any()
    world.loc[there, "value"] = world.value[there] * factor
    verdict = claim.judge(world, "quick")
    assert verdict.outcome == DIFFERS, verdict.measured
    return verdict


def outcomes_of(figure, world) -> dict[str, str]:
    """The outcome of each statement."""
    return {verdict.id: verdict.outcome for verdict in figure.judge(world)}


def outcome_of(figure, id: str, world) -> str:
    """The outcome of one statement, judged alone: others take time and cannot change it."""
    (claim,) = (c for c in figure.claims if id in {each.id for each in c.statements})
    alone = tuple(each for each in claim.statements if each.id == id)
    object.__setattr__(figure, "claims", [replace(claim, statements=alone)])
    return outcomes_of(figure, world)[id]


def multiplied(world, where: dict, factor: float) -> pd.DataFrame:
    """The world with the values at `where` multiplied; something is there."""
    there = np.logical_and.reduce([world[column] == x for column, x in where.items()])
    assert there.any()
    return world.assign(value=world.value.where(~there, world.value * factor))


def spread(rows, seeds: int) -> pd.DataFrame:
    """Every row `seeds` times, seeds one per cent apart; rows may be any iterable."""
    return pd.DataFrame(
        row | {"seed": seed, "value": row["value"] * (1 + 0.01 * (seed - (seeds - 1) / 2))}
        for row in rows
        for seed in range(seeds)
    )


def figure_of(spec):
    """The figure that a spec defines; None where it only serves others."""
    classes = [x for x in vars(spec).values() if isinstance(x, type)]
    own = [
        x for x in classes if issubclass(x, figures.Figure) and x.__module__ == spec.__name__
    ]
    return own[0] if own else None


def claims_of(spec):
    """The claims of a spec's figure."""
    return figure_of(spec).claims


def noisy(rows, seeds: int = 10, spread: float = 0.01) -> pd.DataFrame:
    """Every row `seeds` times, each with noise of its own; rows may be any iterable."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        row | {"seed": seed, "value": row["value"] * np.exp(spread * rng.normal())}
        for row in rows
        for seed in range(seeds)
    )
