"""Fan & Jin 2015: what SRA's squared error is on average, exactly and by the paper's Equation 22.

What the users lose, squared, the variance of sampling without replacement, and the noise: known exactly
for given data. Equation 22 takes users of M records each, independent, and has the variance of sampling
wrong (it keeps a part at l = M); it is for one item, and is summed over all here, as printed and
corrected, with M = records / users and the true popularity.
"""

from __future__ import annotations

import numpy as np

from workbench import DP
from workbench.compiled import pd
from workbench.data import Interactions
from workbench.mechanisms import SRA
from workbench.noise import variance
from workbench.trials.metrics import sampling_error
from workbench.value import parameter, value

OF = ("items", "edges")
EXACT = "exact"
PRINTED = "Equation 22"
CORRECTED = "corrected"


@value
class SamplingTheory:
    """SRA's expected squared error at each l and ε, its noise, the best l, and the error of zeros."""

    ls: tuple[int, ...] = parameter(low=1, integer=True, many=True, doc="records of each user")
    epsilons: tuple[float, ...] = parameter(low=0, strict=True, many=True, doc="of SRA")

    def __call__(self, truth: Interactions, estimate: Interactions) -> pd.DataFrame:
        """Rows of the metrics `theory`, `noise`, `BestFactor` and `Zeros`, of items and of edges."""
        rows = []
        for of in OF:
            counts = truth.edge_counts() if of == "edges" else truth.item_counts()
            zeros = {"series": "all zeros", "metric": "Zeros", "value": (counts**2).mean()}
            rows.append({"of": of, "epsilon": self.epsilons[0]} | zeros)
            sampled = sampling_error(truth, self.ls, of)
            for epsilon in self.epsilons:
                share = SRA(DP(epsilon), 1).budgets()[OF.index(of)]
                noise = [variance(size, share, "geometric") for size in self.ls]
                errors = pd.Series(sampled + noise, self.ls)
                columns = {"of": of, "epsilon": epsilon}
                law = {"series": "SRA", "metric": "theory"}
                rows += [columns | law | {"l": size, "value": x} for size, x in errors.items()]
                by_noise = columns | {"series": "noise", "metric": "noise"}
                sizes = zip(self.ls, noise, strict=True)
                rows += [by_noise | {"l": size, "value": x} for size, x in sizes]
                best = {EXACT: errors.idxmin()}
                if of == "items":
                    best |= formulas(truth, share)
                rows += [
                    columns | {"series": series, "metric": "BestFactor", "value": float(size)}
                    for series, size in best.items()
                ]
        return pd.DataFrame(rows)


def formulas(data: Interactions, epsilon: float) -> dict[str, float]:
    """The best l for items by Equation 22, summed over items, as printed and corrected; 1 … M.

    n users, each of M = records / n.
    """
    counts = data.item_counts()
    n = len(data.records_per_user())
    p = counts / len(data)
    most = len(data) / n
    squares = float((p**2).sum())
    noise = 4 * len(counts) / epsilon**2
    signal = 2 * n**2 * most * squares
    printed = (signal - n) / (noise + 2 * n**2 * squares - 2 * n * squares / most)
    corrected = (signal + n * (1 - squares)) / (noise + 2 * n**2 * squares)
    best = {PRINTED: printed, CORRECTED: corrected}
    return {name: float(np.clip(x, 1, most)) for name, x in best.items()}
