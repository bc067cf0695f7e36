"""Local privacy: retention replacement and bit flipping."""

from __future__ import annotations

from math import exp, expm1

import numpy as np

from workbench import noise
from workbench.data import SparseTable
from workbench.estimates import BitReports, Reports
from workbench.estimates.release import Release
from workbench.mechanisms.protocol import Mechanism, budget_field, private_bound
from workbench.privacy import DP, LOCAL
from workbench.spaces import Domain
from workbench.value import value

# Retention replacement


@value
class RetentionReplacement(Mechanism):
    """Publish each record with some values replaced.

    Guarantee  ε-DP for each record separately (local privacy). Whatever a record is, the probability of a
               report changes by at most the factor e^ε. So users need not trust the collector. All
               attributes with two or more codes get the same share of ε.
    Assumes    one record per unit (a bound of l1 = 1). The number of records is published.
    Source     Agrawal, Srikant & Thomas, SIGMOD 2005. Chen, Zhou & Bhowmick, EDBT 2012, section 5.2,
               compare with it, after Evfimievski, Gehrke & Srikant, PODS 2003.
    Differs    The budget is for a whole record. Chen et al. probably give ε = 1 to each attribute. For
               nine attributes this is ε = 9. Reports are published without their order.
    Cost       one random coin per record and attribute, and one sort.
    """

    budget: DP = budget_field()
    cite = "agrawal2005"
    title = "retention replacement"
    relation = LOCAL

    def retention_probabilities(self, domain: Domain) -> tuple[float, ...]:
        """Return the probability that a value is kept, for each attribute. For d attributes, of which this one
        has |A| values, it is (γ − 1)/(γ − 1 + |A|), with γ = e^(ε/d).

        The report is the true value with probability p + (1 − p)/|A|. It is any one of the other values
        with probability (1 − p)/|A|. The ratio of the two is γ.
        """
        attributes = max(1, sum(codes > 1 for codes in domain.shape))
        excess = expm1(min(self.budget.epsilon / attributes, 700))
        return tuple(excess / (excess + n) if n > 1 else 1.0 for n in domain.shape)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the reports."""
        self.refuse_several_tuples_per_unit(table)
        keys, probabilities, receipt = noise.randomised_response(
            table.keys,
            table.counts,
            table.domain,
            epsilon=self.budget.epsilon,
            law="retention",
            rng=rng,
        )
        reports = Reports(table.domain, keys, probabilities)
        return Release(reports, (receipt,), self, private_bound(table))


# Flipping


@value
class Flipping(Mechanism):
    """Publish each record as randomly flipped bits.

    Guarantee  ε-DP for each record separately (local privacy), because two records differ in at most two
               bits per attribute. All attributes with two or more codes get the same share of ε.
    Assumes    one record per unit (a bound of l1 = 1). The number of records is published.
    Source     Mishra & Sandler, PODS 2006. Chen, Zhou & Bhowmick, EDBT 2012, section 5.2, compare with it.
    Differs    The budget is for a whole record. If the paper's γ = e is for each of nine attributes, a
               record has ε = 9. The paper writes only "bit-vector". Here each code has one bit. Mishra &
               Sandler publish sketches of the bits. We publish the bits. Reports are published without
               their order.
    Cost       one bit per record and code, about 7 random words for 64 bits, and one sort.
    """

    budget: DP = budget_field()
    cite = "mishra2006"
    title = "flipping"
    relation = LOCAL

    def flip_probability(self, domain: Domain) -> float:
        """Probability f that a bit is flipped. For d attributes it is f = 1/(1 + e^(ε/2d)). The likelihood
        ratio ((1 − f)/f)^2d of a report then equals e^ε.
        """
        attributes = max(1, sum(codes > 1 for codes in domain.shape))
        return 1 / (1 + exp(min(self.budget.epsilon / (2 * attributes), 700)))

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the reports."""
        self.refuse_several_tuples_per_unit(table)
        bits, (probability,), receipt = noise.randomised_response(
            table.keys,
            table.counts,
            table.domain,
            epsilon=self.budget.epsilon,
            law="flipping",
            rng=rng,
        )
        return Release(
            BitReports(table.domain, bits, probability), (receipt,), self, private_bound(table)
        )
