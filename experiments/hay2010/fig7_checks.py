"""Hay et al. 2010, Figure 7: what decides each statement."""

from __future__ import annotations

import numpy as np

from experiments.hay2010.compared import ratios_between
from experiments.hay2010.data import INFERRED
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import OFTEN, Finding, all_of, check_between, check_lower

SHARE = "ErrorShare"
ALL = "all"
MIDDLE = "the middle"
FEW = (1, 2, 3, 5)
SHORTEST = (16, 32, 64, 128, 256)
WINDOWS = (16, 32, 64)
LEFT = 0.25  # at most, of an error that is reduced to zero
MORE = float(np.nextafter(1, 2))


def errors(rows: pd.DataFrame, panel: str = ALL) -> pd.DataFrame:
    """The errors of one panel's positions, without what checks do not need."""
    own = rows[(rows.panel == panel) & (rows.metric == SHARE)]
    return own[["epsilon", "position", "count", "length", "place", "seed", "value"]]


def _over(name: str, values, rows, check, level: float) -> Finding:
    """A check over values and every ε."""
    pairs = {
        f"{x}, {epsilon:g}": (x, rows[rows.epsilon == epsilon])
        for x in values
        for epsilon in sorted(rows.epsilon.unique(), reverse=True)
    }
    return claims.over(f"{name}, ε", [*pairs], lambda pair, at: check(*pairs[pair], at), level)


def _mean(rows: pd.DataFrame, *by: str) -> pd.DataFrame:
    """The mean over positions, a row a seed."""
    return rows.groupby([*by, "seed"], as_index=False).value.mean()


def check_few(rows, level: float) -> Finding:
    """Whether the error is larger where counts occur a few times than elsewhere in the stretch."""

    def at(few: int, own: pd.DataFrame, level: float) -> Finding:
        alone = own.length <= few
        ratios = ratios_between(
            _mean(own[alone], "epsilon"), _mean(own[~alone], "epsilon"), "epsilon"
        )
        return check_between(ratios, level, low=MORE)

    return _over("few", FEW, errors(rows, MIDDLE), at, level)


def check_by_length(rows, level: float) -> Finding:
    """Whether the error falls as runs become longer."""
    own = errors(rows)
    classes = 2 ** np.floor(np.log2(own.length))
    own = _mean(own.assign(least=classes), "epsilon", "least").assign(series=INFERRED)

    def at(epsilon: float, level: float) -> Finding:
        here = own[own.epsilon == epsilon]
        parts = {
            "longest to shortest runs": lambda at: check_lower(
                claims.ends(here, INFERRED, "least"), at
            ),
            "class to class": lambda at: check_lower(
                claims.steps(here, INFERRED, "least"), at, OFTEN
            ),
        }
        return all_of(parts, level)

    return claims.over("ε", sorted(own.epsilon.unique(), reverse=True), at, level)


def inside(rows: pd.DataFrame) -> pd.DataFrame:
    """The middle half of each run."""
    quarter = rows.length // 4
    return rows[(rows.place >= quarter) & (rows.place < rows.length - quarter)]


def at_ends(rows: pd.DataFrame) -> pd.DataFrame:
    """Two positions at either end of each run."""
    return rows[(rows.place < 2) | (rows.place >= rows.length - 2)]


def check_ends(rows, level: float) -> Finding:
    """Whether the error is higher at a run's ends than in its middle half."""

    def at(shortest: int, own: pd.DataFrame, level: float) -> Finding:
        own = own[own.length >= shortest]
        ratios = ratios_between(
            _mean(inside(own), "count"), _mean(at_ends(own), "count"), "count"
        )
        return check_lower(ratios, level, OFTEN)

    return _over("run from", SHORTEST, errors(rows), at, level)


def check_middle(rows, level: float) -> Finding:
    """Which part of the error of S̃ is left in the middle half of every run."""

    def at(shortest: int, own: pd.DataFrame, level: float) -> Finding:
        middle = _mean(inside(own[own.length >= shortest]), "count").assign(series=INFERRED)
        left = claims.means(middle, INFERRED, "count")
        return check_between(left, level, high=LEFT, words="at most a quarter", unit=" of S̃'s")

    return _over("run from", SHORTEST, errors(rows), at, level)


def check_locally(rows, level: float) -> Finding:
    """Whether a window has the more error the more different counts it has."""

    def at(width: int, own: pd.DataFrame, level: float) -> Finding:
        window = (own.position - own.position.min()) // width
        whole = window < (own.position.max() - own.position.min() + 1) // width
        grouped = own[whole].groupby(["seed", window[whole]])
        table = pd.DataFrame(
            {"distinct": grouped["count"].nunique(), "error": grouped.value.sum()}
        )
        ranks = table.groupby("seed").rank()
        rho = ranks.groupby("seed").apply(lambda x: x.distinct.corr(x.error))
        correlations = rho.rename("value").reset_index().assign(series=INFERRED, width=width)
        numbers = claims.means(correlations, INFERRED, "width")
        return check_between(numbers, level, low=float(np.nextafter(0, 1)))

    return _over("window", WINDOWS, errors(rows, MIDDLE), at, level)
