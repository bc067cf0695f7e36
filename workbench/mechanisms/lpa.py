"""LPA: the baseline, noise on items and edges in proportion to all that one user may have.

Guarantee  ε-DP per user, all their records together; `split` says which share of ε pays for the items
           and which for the edges.
Assumes    that `bound`, M, is public; it is enforced by dropping records at random.
Source     Dwork, McSherry, Nissim & Smith, TCC 2006, Theorem 1; the baseline of Fan & Jin, WWW 2015,
           Equations 7 and 8.
Differs    noise is two-sided geometric on whole counts (the paper's is Laplace's); M is stated as
           public (the paper reads max |T_k| off the data).
Cost       O(records) time, O(kept records + items × contexts) memory.
"""

from typing import Self

from workbench.mechanism import DP, memory_field, pure_budget, value
from workbench.mechanisms import _contributions as shared


@value
class LPA(shared.Contributions):
    """Counts of items and edges from at most `bound` records of each user, with noise for as many.

    Standard errors are NaN where records may have been dropped, as in SRA.
    """

    budget: DP = pure_budget()
    bound: int = shared.bound_field()
    split: tuple[float, float] = shared.split_field()
    consistent: bool = shared.consistent_counts_field()
    total: float | None = shared.total_field()
    memory: int = memory_field()
    cite = "fan2015"
    title = "LPA"
    fixed_price = True

    @classmethod
    def example(cls, budget: DP) -> Self:
        """For users with a hundred records at most."""
        return cls(budget, 100)
