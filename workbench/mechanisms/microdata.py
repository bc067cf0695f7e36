"""Maximum-entropy synthesis: microdata that match noisy marginals approximately."""

import warnings
from fractions import Fraction
from typing import Any, Self

import numpy as np

from workbench import noise
from workbench.data import SparseTable
from workbench.estimates import NoisyAnswers
from workbench.estimates.release import Release
from workbench.inference import MaximumEntropy, NotConverged
from workbench.inference.model import Model
from workbench.mechanisms.protocol import Mechanism, private_bound, pure_budget, split_epsilon
from workbench.mechanisms.queries import LaplaceQueries
from workbench.privacy import DP
from workbench.queries import Marginals, Recipe
from workbench.value import parameter, value

_MOST_ROWS = 2**28
_EXACT_CELLS = 2**14
_GAP = 0.25  # nats


def _check_marginals(marginals: Any) -> str | None:
    return (
        None if hasattr(marginals, "on") else "need Marginals(k), NamedMarginals(…) or queries"
    )


@value
class MaximumEntropySynthesis(Mechanism):
    """Draw records from a maximum entropy model.

    The model agrees with noisy `marginals` up to their noise. Among all such distributions it has the
    largest entropy.

    `rows` is the public number of records. If you do not give it, the mechanism spends part of ε on a noisy
    number of records. An attribute that is in none of the marginals is uniform and independent of all
    others. The model is that of `MaximumEntropy`, in which `weight` limits the influence of a single count.
    With a larger weight, the model follows the counts, and their noise, more closely.

    Guarantee  ε-DP per unit. ε pays for noisy counts of the marginals' cells. If `rows` is not given, the
               share `total_share` of ε pays for a noisy number of records. All later steps are
               post-processing.
    Assumes    the table's bound. `marginals` and `rows` are stated without looking at the data.
    Source     Chen, Zhou & Bhowmick, EDBT 2012, section 4, for the model, and Dwork, McSherry, Nissim &
               Smith, TCC 2006, Theorem 1, for the noise.
    Differs    Noise is geometric on integer counts. Marginals are made consistent before the fit (see
               `inference.MaximumEntropy`). Records are drawn from the fitted model.
    Cost       one fit and `rows` draws. A fit takes seconds if all attributes together have up to 2¹⁴
               cells. For more cells it uses Markov chains over the attributes and takes up to half a
               minute.
    """

    budget: DP = pure_budget()
    marginals: Recipe = parameter(
        check=_check_marginals, doc="marginals whose counts are bought"
    )
    rows: int | None = parameter(
        None,
        1,
        _MOST_ROWS,
        integer=True,
        unit="records",
        doc="public number of records; bought by default",
    )
    total_share: float = parameter(
        0.05, 0.001, 0.999, doc="share of ε for the number of records"
    )
    weight: float = parameter(
        3.0,
        0,
        1000,
        strict=True,
        unit="nats",
        doc="largest weight of a single count; higher values follow the noisy counts more closely",
    )
    cite = "chen2012"
    title = "maximum-entropy synthesis"
    converges = False  # records are drawn, and what no marginal says is not learnt

    def budgets(self) -> tuple[float, float]:
        """Return ε of the number of records (0 if it is public), and of the marginals."""
        if self.rows is not None:
            return 0.0, self.budget.epsilon
        share = Fraction(self.total_share)
        total, marginals = split_epsilon(self.budget.epsilon, [share, 1 - share])
        return total, marginals

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the records."""
        bound = private_bound(table)
        l1 = bound.l1
        total_epsilon, marginals_epsilon = self.budgets()
        rows = self.rows
        paid = []
        if rows is None:
            exact = np.array([table.total])
            noisy, receipt = noise.geometric(exact, l1=l1, epsilon=total_epsilon, rng=rng)
            rows = min(max(1, int(noisy[0])), _MOST_ROWS)
            paid.append(receipt)
        bought = LaplaceQueries(DP(marginals_epsilon), self.marginals)(table, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConverged)  # the estimate says how near it came
            model = self._fit(rows, bought.estimate)
        return Release(model.synthetic(rows), (*paid, *bought.ledger), self, bound)

    def _fit(self, rows: int, bought: NoisyAnswers) -> Model:
        """Fit the model of so many records. The box for the weight of each count is α·rows/scale wide."""
        alpha = self.weight * float(bought.scales.max()) / rows
        return MaximumEntropy(alpha, rows, limit=_EXACT_CELLS, tolerance=_GAP)(bought)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example with all marginals of two attributes."""
        return cls(budget, Marginals(2))
