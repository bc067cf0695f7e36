"""Mechanisms with local privacy, which randomise each record separately: retention replacement and bit
flipping.
"""

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
    """Publish records with some values replaced.

    Guarantee  Each published record (a report) is ε-DP by itself, which is called local privacy. If another
               record replaces the true record, the probability of a report changes by a factor between e^−ε and
               e^ε. So users can randomise their records themselves, and need not trust the collector of the
               reports. Each attribute with two or more values gets the same share of ε.
    Assumes    Each unit has one record (a bound of l1 = 1). The number of records is published.
    Source     Agrawal, Srikant & Thomas, SIGMOD 2005. Chen, Zhou & Bhowmick compare their mechanism with
               retention replacement (EDBT 2012, section 5.2). They cite Evfimievski, Gehrke & Srikant, PODS
               2003, for retention replacement.
    Differs    Our ε is the budget of a whole record. Chen et al. probably give ε = 1 to each attribute, so a
               record with nine attributes has ε = 9. We sort the reports, so that their order reveals nothing.
    Cost       Time is that of one random draw per record and attribute. Time also includes one sort of the
               reports.
    """

    budget: DP = budget_field()
    cite = "agrawal2005"
    title = "retention replacement"
    relation = LOCAL

    def retention_probabilities(self, domain: Domain) -> tuple[float, ...]:
        """Return, for each attribute, the probability with which a report keeps the true value. Let d be the
        number of attributes with two or more values, and γ = e^(ε/d). For an attribute with |A| values, the
        probability is p = (γ − 1)/(γ − 1 + |A|).

        If the report does not keep the true value, it contains a random value, which may be the true value by
        chance. So the report contains the true value with probability p + (1 − p)/|A|. It contains any given
        other value with probability (1 − p)/|A|. The ratio of these two probabilities is γ.
        """
        attributes = max(1, sum(codes > 1 for codes in domain.shape))
        excess = expm1(min(self.budget.epsilon / attributes, 700))
        return tuple(excess / (excess + n) if n > 1 else 1.0 for n in domain.shape)

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the reports, which are the randomised records."""
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

    Guarantee  The mechanism writes a record as bits, one bit per value of each attribute. The bit of the true
               value is 1, and the other bits are 0. The mechanism flips each bit with the same probability. The
               published bits of a record (a report) are ε-DP by themselves, which is called local privacy. This
               guarantee holds because two records differ in at most two bits per attribute. Each attribute with
               two or more values gets the same share of ε.
    Assumes    Each unit has one record (a bound of l1 = 1). The number of records is published.
    Source     Mishra & Sandler, PODS 2006. Chen, Zhou & Bhowmick compare their mechanism with bit flipping
               (EDBT 2012, section 5.2).
    Differs    Our ε is the budget of a whole record. Chen et al. state a likelihood ratio of γ = e, which means
               ε = 1. If this ratio is for each attribute, a record with nine attributes has ε = 9. Chen et al.
               write only "bit-vector", without a definition. Mishra & Sandler publish short random summaries of
               the bits (sketches). We publish the bits themselves. We sort the reports, so that their order
               reveals nothing.
    Cost       A report has one bit per value of each attribute. To flip 64 bits, the mechanism draws about 7
               random words (64-bit numbers). Time also includes one sort of the reports.
    """

    budget: DP = budget_field()
    cite = "mishra2006"
    title = "flipping"
    relation = LOCAL

    def flip_probability(self, domain: Domain) -> float:
        """Return the probability f that a bit of a report is flipped. The formula is f = 1/(1 + e^(ε/(2d))),
        where d is the number of attributes with two or more values. Consider the probability of a report for
        two different records. The largest ratio of these probabilities is ((1 − f)/f)^(2d) = e^ε.
        """
        attributes = max(1, sum(codes > 1 for codes in domain.shape))
        return 1 / (1 + exp(min(self.budget.epsilon / (2 * attributes), 700)))

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the reports, which are the flipped bits of the records."""
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
