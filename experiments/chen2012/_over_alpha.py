"""Chen et al. 2012: what the figures of section 5.1 share: data, noise, and the values of α."""

from __future__ import annotations

import numpy as np

from experiments.chen2012.data import data_parameter
from workbench.figures import UNPRINTED, Figure
from workbench.figures.fields import epsilon, number, whole
from workbench.value import value


@value
class OverAlpha(Figure):
    """Past answers of the noise that the paper prints, and both approaches at several α."""

    data: tuple[str, ...] = data_parameter()
    epsilon: float = epsilon(1.0, "privacy budget ε of all past answers")
    prior_epsilon: float = number(0.02, "privacy budget ε of the prior", 1e-6, 1000)
    scale: float = number(5000.0, "scale of the noise that the paper prints", unit="tuples")
    low: float = number(10.0, "least α", 1e-6, 1e12, unit="tuples", kind=UNPRINTED)
    high: float = number(3e6, "largest α", 1e-6, 1e12, unit="tuples", kind=UNPRINTED)
    points: int = whole(12, "values of α", 3, 1000, kind=UNPRINTED)

    @property
    def alphas(self) -> tuple[float, ...]:
        """Values of α of kernel PCA, evenly on a logarithmic axis."""
        return tuple(np.geomspace(self.low, self.high, self.points).tolist())
