"""What draws noise of a law, and the empty cells that survive it, whichever kind it is."""

from __future__ import annotations

from functools import lru_cache

from workbench.estimates.law import GAUSSIAN, Law
from workbench.noise.discrete_gaussian import DiscreteGaussian, discrete_gaussian
from workbench.noise.empty_cells import EmptyCell
from workbench.noise.gaussian_cells import GaussianCell, gaussian_cell
from workbench.noise.laws import TwoSidedGeometric, two_sided


def sampler(law: Law) -> TwoSidedGeometric | DiscreteGaussian:
    """What adds noise of the law; tables are made once.

    Parameters
    ----------
    law : of an exact rate.

    Returns
    -------
    TwoSidedGeometric or DiscreteGaussian
        With `add`.
    """
    return discrete_gaussian(law.rate) if law.kind == GAUSSIAN else two_sided(law.rate)


@lru_cache(256)
def empty_cell(
    law: Law, theta: float, sides: int, tau: float = 0.0, above: float | None = None
) -> EmptyCell | GaussianCell:
    """The law of one empty cell under noise; public, since it holds no data.

    Parameters
    ----------
    law : of the noise, of an exact rate.
    theta : the filter, in counts.
    sides : 2 for both signs, 1 for positive values only.
    tau : the sampling threshold, in counts; 0 for none.
    above : a larger threshold, at which it was not sampled.

    Returns
    -------
    EmptyCell or GaussianCell
        Its `chance` to survive, and the `survivors` of many.
    """
    if law.kind == GAUSSIAN:
        return gaussian_cell(law.rate, theta, sides, tau, above)
    return EmptyCell(two_sided(law.rate).alpha, theta, sides, tau, above)
