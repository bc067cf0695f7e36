"""Raise the cut of a released summary: a smaller one, at no further cost.

Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, appendix C.1: too large an output is
           filtered again instead of drawn again.
Differs    nothing; lowering the cut is refused, since the cells below it were never released.
"""

from __future__ import annotations

import numpy as np

from workbench.estimates import Summary


def refilter(summary: Summary, theta: float) -> Summary:
    """The released cells whose noisy value is still large enough.

    What a filter at θ released is then, in law, what a filter at `theta` would have; drawing again
    until the size suits would cost twice the budget instead.

    Parameters
    ----------
    summary : Summary
        The output of a filter.
    theta : float
        The new cut of |noisy value|, in counts, no lower than the old one.

    Returns
    -------
    Summary
        A smaller one, of the same class.

    Raises
    ------
    ValueError
        For another estimate, or a lower cut.
    """
    if not isinstance(summary, Summary):
        raise ValueError(
            f"{summary!r} has no cut to raise: need a Summary or a TransformedSummary"
        )
    if not theta >= summary.theta:
        raise ValueError(
            f"theta = {theta!r} is not allowed: need at least the summary's own {summary.theta}"
        )
    return summary.where(np.abs(summary.values) >= theta, theta=theta)
