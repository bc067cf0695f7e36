"""Made-up rows in which a paper's claims are true, and what of them to change so that one is false."""

from collections.abc import Callable, Iterable
from functools import cache
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from workbench import figures
from workbench.trials.claims import UNTESTABLE, MissingPoints


class World(NamedTuple):
    """A figure, and rows in which its statements hold.

    Each of `broken` is the id of a statement, then the changes that make it false, then its outcome where
    that is not "differs". `true` has by statement what to change so that it holds, `otherwise` the outcomes of
    those that do not, and `forced` those that no rows can break. `derive` is called after a change. Where
    `alone`, a broken statement leaves the others true. Both tables may name statements of other figures.
    """

    figure: type
    make: Callable[[], pd.DataFrame]
    broken: list
    true: dict = MappingProxyType({})
    otherwise: dict = MappingProxyType({})
    forced: frozenset = frozenset()
    derive: Callable = lambda rows: rows
    alone: bool = False

    @property
    def checks(self) -> dict:
        """By statement."""
        return self.figure.checks()

    def after(self, changes) -> pd.DataFrame:
        """Its rows once they are changed: by functions, and by the arguments of `changed`."""
        rows = made(self.make)
        for change in changes if isinstance(changes, list) else [changes]:
            rows = change(rows) if callable(change) else changed(rows, *change)
        return self.derive(rows)

    def outcome(self, id: str, rows: pd.DataFrame) -> str:
        """Of one statement."""
        try:
            return self.checks[id](rows, 0.99).outcome
        except MissingPoints:
            return UNTESTABLE


@cache
def made(make) -> pd.DataFrame:
    """The rows of a world."""
    return make()


def changed(world, where, factor, column="value") -> pd.DataFrame:
    """The world with a column multiplied at `where`, or there what a function makes of the world."""
    if callable(where):
        there = where(world)
    else:
        some = {c: x if isinstance(x, tuple) else (x,) for c, x in where.items()}
        there = np.logical_and.reduce([world[c].isin(x) for c, x in some.items()])
    assert there.any(), where
    values = factor(world) if callable(factor) else world[column] * factor
    return world.assign(**{column: world[column].where(~there, values)})


def outcomes_of(figure, world) -> dict[str, str]:
    """The outcome of each statement."""
    return {verdict.id: verdict.outcome for verdict in figure.judge(world)}


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


def every(**columns) -> pd.DataFrame:
    """A row for each combination of the columns' values. A column may have one value."""
    values = [
        [x] if isinstance(x, str) or not isinstance(x, Iterable) else x
        for x in columns.values()
    ]
    return pd.DataFrame(product(*values), columns=[*columns])


def noisy(rows, seeds: int = 10, spread: float = 0.01) -> pd.DataFrame:
    """Every row `seeds` times, each with noise of its own; rows may be any iterable."""
    rows = pd.DataFrame(rows)
    repeated = rows.iloc[np.repeat(np.arange(len(rows)), seeds)].reset_index(drop=True)
    noise = np.random.default_rng(0).normal(size=len(repeated))
    seed = np.tile(np.arange(seeds), len(rows))
    return repeated.assign(seed=seed, value=repeated.value * np.exp(spread * noise))
