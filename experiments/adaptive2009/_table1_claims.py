"""What table 1's rows are asked for adaptive2009's statements about maps of destinations."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from experiments.adaptive2009._commutes import Commutes, decisive
from experiments.adaptive2009._maps import AWAY, SQUARES
from experiments.adaptive2009._techniques import DIRECT, SOURCE
from workbench.compiled import pd
from workbench.trials.claims import (
    Finding,
    all_of,
    check_between,
    check_lower,
    means,
    paired_ratios,
)

EPSILONS = Commutes.epsilons


def _directly(rows, metric: str) -> pd.DataFrame:
    """Direct synthesis in Rhode Island."""
    rows = decisive(rows)
    return rows[(rows.metric == metric) & (rows.series == DIRECT)]


def check_fidelity(rows, level) -> Finding:
    """Whether the distance from the source's shares falls with ε."""
    away = _directly(rows, AWAY)
    away = away.assign(series=away.epsilon.map("{:g}".format), epsilon=0.0, paid=0.0)
    parts = {}
    for less, more in pairwise(EPSILONS):
        ratios = partial(paired_ratios, away, f"{more:g}", f"{less:g}", "panel")
        parts[f"ε = {less:g} to {more:g}"] = lambda at, ratios=ratios: check_lower(ratios(), at)
    return all_of(parts, level)


def check_diffuse(rows, level) -> Finding:
    """Whether destinations are spread over more squares than the source's."""
    own = decisive(rows)
    source = own[(own.metric == SQUARES) & (own.series == SOURCE)].value.mean()
    squares = means(_directly(rows, SQUARES), DIRECT, "epsilon").over(source)
    beyond = float(np.nextafter(1, 2))
    return check_between(squares, level, low=beyond, words="more diffuse")


CHECKS = {"a-t1.1": check_fidelity, "a-t1.2": check_diffuse}
