"""Mechanisms that fit a model to noisy marginals, which are tables of counts for some of the attributes. The
first mechanism draws synthetic records from a maximum entropy model. The second mechanism, AIM, chooses the
marginals that it measures.
"""

import warnings
from fractions import Fraction
from itertools import combinations
from math import nextafter, pi, prod, sqrt
from typing import Any, Self

import numpy as np

from workbench import noise
from workbench.data import SparseTable, WideTable
from workbench.estimates import NoisyAnswers
from workbench.estimates.release import Release
from workbench.inference import MaximumEntropy, NotConverged
from workbench.inference.junction_tree import cliques_of
from workbench.inference.markov_network import MeasuredMarginals
from workbench.inference.model import Model, TreeModel
from workbench.inference.strategies import MOST_SETS, closure_of
from workbench.mechanisms.neighbours import audited_at
from workbench.mechanisms.protocol import (
    Mechanism,
    budget_field,
    private_bound,
    split_epsilon,
)
from workbench.mechanisms.queries import GaussianQueries, LaplaceQueries
from workbench.noise.additive import choice_rho
from workbench.privacy import DP, ZCDP, Receipt, exact_rho
from workbench.privacy.enclosures import round_down
from workbench.queries import Marginals, NamedMarginals, Recipe
from workbench.spaces import Domain
from workbench.value import Float, Int, counted, not_allowed, parameter, value

# Maximum-entropy synthesis

_MOST_ROWS = 2**28
_EXACT_CELLS = 2**14
_GAP = 0.25  # nats


def _check_marginals(marginals: Any) -> str | None:
    return (
        None if hasattr(marginals, "on") else "need Marginals(k), NamedMarginals(…) or queries"
    )


@value
class MaximumEntropySynthesis(Mechanism):
    """Draw synthetic records from a model of marginals.

    The mechanism measures noisy `marginals`, which are tables of counts for some of the attributes. Then it
    fits a model, a distribution that agrees with these counts up to their noise. Among all such distributions,
    the model has the largest entropy. Finally, the mechanism draws synthetic records from the model.

    `rows` is the public number of records. If you do not give `rows`, the mechanism spends part of ε on a noisy
    number of records. An attribute that is in none of the marginals is uniform in the model, and independent of
    all other attributes. `inference.MaximumEntropy` fits the model. `weight` limits the influence of a single
    count, in nats. With a larger weight, the model follows the noisy counts more closely.

    Guarantee  The release is ε-DP for each unit. ε pays for the noise on the marginals' counts. If you do not
               give `rows`, the share `total_share` of ε pays for a noisy number of records. All later steps use
               only noisy numbers, so these steps cost no budget.
    Assumes    No protected unit changes the counts by more than the table's bound allows. You choose
               `marginals` and `rows` without looking at the data.
    Source     The model is that of Chen, Zhou & Bhowmick, EDBT 2012, section 4. The noise is that of Dwork,
               McSherry, Nissim & Smith, TCC 2006, Theorem 1.
    Differs    We add geometric noise to integer counts. Before the fit, we adjust the noisy marginals so that
               they agree on the attributes that they share (see `inference.MaximumEntropy`). We draw records
               from the fitted model.
    Cost       Time is that of one fit and `rows` random draws. If the domain has up to 2¹⁴ cells, the fit takes
               seconds. For larger domains, the fit uses Markov chains over the attributes and takes up to half
               a minute.
    """

    budget: DP = budget_field()
    marginals: Recipe = parameter(
        check=_check_marginals, doc="marginals whose noisy counts are measured"
    )
    rows: int | None = parameter(
        None,
        1,
        _MOST_ROWS,
        integer=True,
        unit="records",
        doc="public number of records (by default a noisy number is measured)",
    )
    total_share: float = parameter(
        0.05, 0.001, 0.999, doc="share of ε that pays for a noisy number of records"
    )
    weight: float = parameter(
        3.0,
        0,
        1000,
        strict=True,
        unit="nats",
        doc="largest weight of a single count (higher values follow the noisy counts more closely)",
    )
    cite = "chen2012"
    title = "maximum-entropy synthesis"
    converges = False  # records are drawn, and what no marginal says is not learnt

    def budgets(self) -> tuple[float, float]:
        """Return two parts of ε. The first part pays for a noisy number of records, and is 0 if you gave
        `rows`. The second part pays for the counts of the marginals.
        """
        if self.rows is not None:
            return 0.0, self.budget.epsilon
        share = Fraction(self.total_share)
        total, marginals = split_epsilon(self.budget.epsilon, [share, 1 - share])
        return total, marginals

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Release the synthetic records."""
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
        """Fit a model of `rows` records to noisy counts. The field `weight` limits the influence of each
        count.
        """
        alpha = self.weight * float(bought.scales.max()) / rows
        return MaximumEntropy(alpha, rows, limit=_EXACT_CELLS, tolerance=_GAP)(bought)

    @classmethod
    def example(cls, budget: DP) -> Self:
        """Return an example of the mechanism for tests. It measures all marginals of two attributes."""
        return cls(budget, Marginals(2))


# AIM

_NEAR_IN_ROUNDS = 0.3  # standard deviations of the noise: residuals of the fits between rounds
_LARGEST_CELLS = 2**22  # of a marginal that can be asked
_NAMED = 4  # marginals in a message

Axes = tuple[int, ...]


def _check_sets(marginals: Any) -> str | None:
    good = isinstance(marginals, Marginals | NamedMarginals)
    return None if good else "need Marginals(k) or NamedMarginals(…)"


def axes_of(marginals: Marginals | NamedMarginals, domain: Domain) -> list[Axes]:
    """Return one tuple per marginal. The tuple contains the numbers of the marginal's attributes in ascending
    order.
    """
    if isinstance(marginals, Marginals):
        return [*combinations(range(len(domain.shape)), marginals.k)]
    return [tuple(sorted(map(domain.axis, names))) for names in marginals.sets]


def names_of(axes: Axes, domain: Domain) -> tuple[str, ...]:
    """Return the names of the attributes with the given numbers."""
    return tuple(domain.attributes[k] for k in axes)


def marginal_counts(
    table: SparseTable | WideTable, names: tuple[str, ...]
) -> Int[np.ndarray, " cells"]:
    """Return the exact counts of all cells of one marginal, the table of counts for the named attributes."""
    margin = table.project(names)
    counts = np.zeros(margin.domain.size, np.int64)
    counts[margin.keys] = margin.counts
    return counts


@value
class AIM(Mechanism):
    """Choose marginals to measure, and release a model.

    AIM is the adaptive and iterative mechanism. A marginal is a table of counts for some of the attributes. You
    give a workload: the marginals that you want to know. The mechanism has a model of the data, and improves
    this model in rounds. In each round, the mechanism chooses a marginal that the model fits badly. It measures
    a noisy version of this marginal, and fits the model again. The release is the last model, which answers any
    linear query. If you want to choose the measured marginals yourself, use a `Bank`.

    Guarantee  The release is ρ-zCDP for each unit, for all choices and measurements together. Each choice and
               each measurement has a receipt, which records its privacy cost. The last round spends the rest of
               ρ, so the receipts always add up to ρ.
    Assumes    No protected unit changes the counts by more than the table's bound allows. You choose all
               parameters without looking at the data.
    Source     McKenna, Mullins, Sheldon & Miklau, PVLDB 2022, Algorithms 1 and 2, as in the authors' code
               (`mbi`). The formula for the ρ of a choice is due to Cesar & Rogers, ALT 2021. The ρ of a
               measurement may depend on earlier answers, by a theorem of Feldman & Zrnic, NeurIPS 2021.
    Differs    Before the first round, the mechanism measures the `initial` marginals. We charge for each of
               these marginals, and raise an error if they would cost ρ or more together. The authors' code
               charges for one marginal per attribute, whichever `initial` marginals you give (docs/errata.md).
               Our noise is an integer. The scores by which we choose marginals are also integers. By default,
               our model has at most 131,072 cells. The authors' model may take 80 MB. Our model is a junction
               tree (a graphical model), as in a `Bank`. The model starts from a prior guess with the weight of
               100 records. Between rounds, the fit stops as soon as the model agrees with the noisy counts up
               to 0.3 standard deviations of the noise. If a marginal of the workload is too large to be
               measured at all, we raise an error. The authors leave out such a marginal.
    Cost       Time is that of one fit per round, with at most `rounds` rounds. With the default of `cells`, all
               fits together take seconds to minutes. Memory must hold the marginals of the workload, and the
               marginals for every subset of their attributes.
    """

    budget: ZCDP = budget_field(dp=False, zcdp=True)
    workload: Marginals | NamedMarginals = parameter(
        check=_check_sets, doc="marginals that you want to know"
    )
    initial: Marginals | NamedMarginals | None = parameter(
        None,
        check=lambda x: None if x is None else _check_sets(x),
        doc="marginals measured before the first round (by default one marginal per attribute)",
    )
    rounds: int | None = parameter(
        None,
        1,
        2**20,
        integer=True,
        unit="rounds",
        doc="number of rounds for which the budget is planned (by default 16 per attribute)",
    )
    cells: int = parameter(
        2**17, 1, _LARGEST_CELLS, integer=True, unit="cells", doc="largest size of the model"
    )
    cite = "mckenna2022aim"
    title = "AIM"
    audited = audited_at(
        0, workload=Marginals(1), initial=NamedMarginals((("home",),)), rounds=1
    )
    takes_wide = True
    converges = False  # a fit stops near its optimum, and what no marginal says is not learnt

    def plan(self, domain: Domain) -> tuple[dict[Axes, int], list[Axes], int]:
        """Return the mechanism's plan for a domain. The plan does not depend on the data, and has three parts.
        The first part contains the marginals that may be chosen, each with a weight. The second part contains
        the marginals that are measured before the first round. The third part is the planned number of rounds.

        In the plan, a marginal is a tuple with the positions of its attributes in the domain, from 0. The
        function raises a ValueError if the plan is impossible, for example if the initial marginals would cost
        the whole budget.
        """
        workload = axes_of(self.workload, domain)
        candidates: list[Axes] = [axes for axes in closure_of(workload) if axes]
        if not 0 < len(candidates) <= MOST_SETS:
            why = f"need marginals of 1 to {MOST_SETS} sets of attributes, with their subsets"
            raise not_allowed(self, "workload", why)
        weights = {r: sum(len({*r} & {*s}) for s in workload) for r in candidates}
        first: list[Axes] = [r for r in candidates if len(r) == 1]
        if self.initial is not None:
            first = axes_of(self.initial, domain)
        if not {*first} <= {*candidates}:
            raise not_allowed(self, "initial", "need subsets of the workload's marginals")
        rounds = self.rounds or 16 * len(domain.shape)
        if 9 * len(first) >= 10 * rounds:  # each costs nine tenths of a round
            why = f"{counted(len(first), 'initial marginal')} cost the whole budget or more: need at most "
            why += f"{(10 * rounds - 1) // 9}, or rounds >= {9 * len(first) // 10 + 1}"
            raise not_allowed(self, "rounds" if self.initial is None else "initial", why)
        self._refuse_large(domain, workload, first)
        return weights, first, rounds

    def _refuse_large(self, domain: Domain, workload: list[Axes], first: list[Axes]) -> None:
        """Raise a ValueError if a model with the initial marginals and any one marginal of the workload has
        too many cells.
        """
        needed = {}
        for r in workload:
            cliques = cliques_of([*first, r], domain.shape) or []
            needed[r] = sum(prod(domain.shape[k] for k in clique) for clique in cliques)
        worst = max(needed, key=needed.__getitem__)
        if needed[worst] <= self.cells:
            return
        fits = [" × ".join(names_of(r, domain)) for r in workload if needed[r] <= self.cells]
        why = f"a model with the marginal of {' × '.join(names_of(worst, domain))} needs {needed[worst]:,} "
        why += f"cells. {len(fits)} of {counted(len(workload), 'marginal')} fit"
        why += f", for example {', '.join(fits[:_NAMED])}" if fits else ""
        raise not_allowed(self, "cells", why)

    def __call__(
        self, table: SparseTable | WideTable, rng: np.random.Generator | None = None
    ) -> Release:
        """Release the last fitted model."""
        bound = private_bound(table)
        domain = table.domain
        weights, first, rounds = self.plan(domain)
        exact = {r: marginal_counts(table, names_of(r, domain)) for r in weights}
        whole = Fraction(self.budget.rho)
        cost = whole / rounds  # of a round: nine tenths measure, and one tenth chooses
        measured = MeasuredMarginals(domain, self.cells)
        ledger: list[Receipt] = []

        def measure(r: Axes, rho: Fraction) -> None:
            asked = NamedMarginals((names_of(r, domain),))
            release = GaussianQueries(ZCDP(round_down(rho)), asked)(table, rng)
            ledger.extend(release.ledger)
            measured.add(r, release.estimate.values, float(release.estimate.variances[0]))

        for r in first:
            measure(r, cost * 9 / 10)
        model = measured.fit(_NEAR_IN_ROUNDS)
        while True:
            spent = exact_rho(ledger)[0]
            is_last = whole - spent < 2 * cost
            if is_last:
                cost = whole - spent
            deviation = bound.l1 / sqrt(9 / 5 * cost)
            room = self.cells * (spent + cost) / whole
            expected = {
                r: margin
                for r in weights
                if measured.admits(r, room) and (margin := margin_of(model, r)) is not None
            }
            drowned = {r: sqrt(2 / pi) * deviation * len(exact[r]) for r in expected}
            scores = [
                weights[r] * int(np.abs(exact[r] - np.rint(counts)).sum() - round(drowned[r]))
                for r, counts in expected.items()
            ]
            (place,), receipt = noise.exponential_mechanism(
                np.array([scores]),
                sensitivity=bound.l1 * max(weights[r] for r in expected),
                epsilon=choice_epsilon(cost / 10),
                adaptive=True,
                rng=rng,
            )
            ledger.append(receipt)
            chosen = [*expected][place]
            measure(chosen, whole - exact_rho(ledger)[0] if is_last else cost * 9 / 10)
            if is_last:
                break
            model = measured.fit(_NEAR_IN_ROUNDS)
            after = margin_of(model, chosen)
            assert after is not None  # it is measured
            if np.abs(after - expected[chosen]).sum() <= drowned[chosen]:
                cost *= 4  # half the noise, and twice the ε of a choice
        return Release(measured.fit(), tuple(ledger), self, bound)

    @classmethod
    def example(cls, budget: ZCDP) -> Self:
        """Return an example of the mechanism for tests. It measures pairs of attributes in a few rounds."""
        return cls(budget, Marginals(2), rounds=4)


def margin_of(model: TreeModel, r: Axes) -> Float[np.ndarray, " cells"] | None:
    """Return the counts that the model expects for the marginal of the attributes `r`, or None if the
    computation would need too many cells.
    """
    margin = model.margin(r)
    return None if margin is None else margin.ravel() * model.total


def choice_epsilon(rho: Fraction) -> float:
    """Return the largest ε for which a choice by the exponential mechanism costs at most the given ρ."""
    epsilon = sqrt(8 * rho)
    while choice_rho(epsilon) > rho:
        epsilon = nextafter(epsilon, 0)
    return epsilon
