"""AIM: each round follows the formulas, receipts add up to ρ, and what cannot be paid is refused first."""

from dataclasses import replace
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from tests.agreement import seeded
from tests.reference import aim as reference
from workbench import DP, ZCDP, Bound, Domain, Marginals, NamedMarginals, SparseTable, WideTable
from workbench.inference.markov_network import NEAR, MeasuredMarginals
from workbench.mechanisms import AIM, microdata
from workbench.mechanisms.microdata import choice_epsilon
from workbench.noise.additive import choice_rho
from workbench.noise.source import Source
from workbench.privacy import exact_rho

DOMAIN = Domain(("a", "b", "c"), (3, 2, 4))


def counts(n=3000):
    """Those of c follow from a, and b is a coin."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, n)
    c = (a + rng.integers(0, 2, n)) % 4
    return np.histogramdd(np.stack([a, rng.integers(0, 2, n), c], 1), [3, 2, 4])[0].astype(int)


def table(bound=None):
    cells = counts().ravel()
    return SparseTable.from_keys(DOMAIN, np.arange(len(cells)), cells, bound or Bound())


class Script(Source):
    """A source that notes each draw, and draws from a seed."""

    def __init__(self, seed):
        super().__init__(np.random.default_rng(seed))
        self.noise = []
        self.choices = []

    def measurement(self):
        return self

    def add(self, law, values, *, moved, names=None):
        before = values.copy()
        super().add(law, values, moved=moved, names=names)
        self.noise.append((sqrt(0.5 / law.rate), values - before))

    def choose(self, draw, scores, available, decay, *, reads):
        chosen = super().choose(draw, scores, available, decay, reads=reads)
        powers = float(decay) * (scores[0] - scores[0].max())
        self.choices.append((int(chosen[0]), np.exp(powers) / np.exp(powers).sum()))
        return chosen


def followed(mechanism, private, l1=1):
    """A release, and the run of the reference with the same noise, the same choices and the same fits."""
    script = Script(3)
    release = mechanism(private, script)
    noise, choices = iter(script.noise), iter(script.choices)
    fits = MeasuredMarginals(DOMAIN, mechanism.cells)

    def fit(measured):
        for axes, values, sigma in measured if len(fits.sets) == 0 else measured[-1:]:
            fits.add(axes, values, sigma**2)
        model = fits.fit(0.3)
        return model.margin((0, 1, 2)) * model.total

    def drawn(sigma, axes, cells):
        own, values = next(noise)
        assert own == pytest.approx(sigma, rel=1e-3) and len(values) == cells
        return values

    def choose(chances):
        place, own = next(choices)
        assert own == pytest.approx([*chances.values()], abs=0.02)  # whose scores are integers
        return [*chances][place]

    def sets(recipe):
        return None if recipe is None else microdata.axes_of(recipe, DOMAIN)

    model, done, used = reference.run(
        counts(),
        sets(mechanism.workload),
        mechanism.budget.rho,
        mechanism.cells,
        drawn,
        choose,
        fit,
        mechanism.rounds,
        sets(mechanism.initial),
        l1,
    )
    assert next(noise, None) is None and next(choices, None) is None
    assert used == pytest.approx(mechanism.budget.rho)
    return release, done, model


PAIRS = NamedMarginals((("a", "b"), ("a", "c")))
CASES = {
    "pairs": AIM(ZCDP(0.02), Marginals(2), rounds=12),
    "as many rounds as by default": AIM(ZCDP(0.002), PAIRS),
    "a small model": AIM(ZCDP(0.05), Marginals(2), rounds=12, cells=22),
    "other first marginals": AIM(
        ZCDP(0.05), Marginals(2), initial=NamedMarginals((("a", "c"),)), rounds=9
    ),
    "all at once": AIM(ZCDP(0.05), Marginals(3), rounds=20),
}


@pytest.mark.parametrize("name", CASES)
def test_rounds_are_those_of_the_formulas(name):
    release, done, model = followed(CASES[name], table())
    assert len(done) == len(release.ledger)
    kinds = ["choice" if receipt.name == "choice" else "noise" for receipt in release.ledger]
    assert kinds == [kind for kind, *_ in done]
    off = np.abs(release.answer(Marginals(3)) - model.ravel()).sum()
    assert off <= 0.05 * model.sum()  # which is fitted more closely in the end


def test_a_unit_of_several_records_has_as_many_times_the_noise():
    followed(CASES["pairs"], table(Bound(2, 2, 3)), l1=3)


def test_numbers_of_the_note():
    """ρ = 0.030557 and 14 attributes give σ = 63.8164 and ε = 0.010447; one-way marginals cost 5.625 %."""
    domain = Domain(tuple("abcdefghijklmn"), (2,) * 14)
    private = SparseTable.from_keys(domain, [0], [1], Bound())
    release = AIM(ZCDP(0.030557), Marginals(1))(private, seeded())
    first, later = release.ledger[:14], release.ledger[14:]
    assert exact_rho(first)[0] == pytest.approx(0.05625 * 0.030557)
    assert sqrt(0.5 / first[0].cost.rho) == pytest.approx(63.8164, rel=1e-6)
    assert sqrt(8 * later[0].cost.rho) == pytest.approx(0.010447, rel=1e-4)


@pytest.mark.parametrize("rho", [1e-6, 0.0307, 0.125, 1.0, 7.0, 300.0])
def test_receipts_cost_the_budget_exactly_whatever_is_chosen(rho):
    for seed in range(3):
        release = AIM(ZCDP(rho), Marginals(2), rounds=7)(table(), seeded(seed))
        assert release.privacy == ZCDP(rho)
        assert exact_rho(release.ledger)[0] <= Fraction(rho)
        # Choices cost less in ε than in ρ if ρ is large, but costs that depend on answers add up in ρ alone.
        assert release.at(1e-6).epsilon == pytest.approx(ZCDP(rho).at(1e-6).epsilon, rel=1e-9)


def test_a_choice_costs_no_more_than_its_share():
    for rho in map(Fraction, (1e-9, 0.1, 0.31, 1, 8, 1e6)):
        epsilon = choice_epsilon(rho)
        assert (1 - 1e-12) * min(rho, Fraction(sqrt(8 * rho))) <= choice_rho(epsilon) <= rho


def test_it_finds_what_goes_together():
    """By chance once in 10⁹ runs at most: the pair of a and c is far from independent."""
    private = table()
    release = AIM(ZCDP(2.0), Marginals(2))(private)
    off = np.abs(release.answer(Marginals(2)) - private.answer(Marginals(2)))
    assert (0, 2) in release.estimate.sets and off.max() < 60
    drawn = release.estimate.synthetic(500)
    assert len(drawn) == 500


def test_a_wide_table_is_taken():
    domain = Domain(tuple(f"x{k}" for k in range(40)), (4,) * 40)
    codes = seeded(1).integers(0, 4, (300, 40))
    pairs = NamedMarginals((("x0", "x1"), ("x30", "x39")))
    release = AIM(ZCDP(1.0), pairs, rounds=10)(WideTable.from_codes(domain, codes, Bound()))
    assert np.isfinite(release.answer(pairs)).all()


REFUSED = {
    "rounds = 2 .*: 3 initial marginals cost .* need at most 2, or rounds >= 3": dict(rounds=2),
    "initial = .*: 3 initial marginals cost .* need at most 2": dict(
        rounds=2, initial=Marginals(2)
    ),
    "initial = .* subsets of the workload's": dict(workload=PAIRS, initial=Marginals(2)),
    "cells = 12 .* marginal of a × c needs 14 cells. 2 of 3 marginals fit, .* a × b, b × c": dict(
        cells=12
    ),
    "cells = 1 .* needs 14 cells. 0 of 3 marginals fit$": dict(cells=1),
    "need marginals of 1 to 4096 sets": dict(workload=Marginals(0)),
    "'z' is not in": dict(workload=NamedMarginals((("z",),))),
    "need Marginals": dict(workload=Marginals(2).on(DOMAIN)),
    "need a ZCDP": dict(budget=DP(1.0)),
}


@pytest.mark.parametrize("says", REFUSED)
def test_what_cannot_be_done_is_refused_before_anything_is_drawn(says):
    script = Script(0)
    with pytest.raises(ValueError, match=says):
        replace(AIM(ZCDP(1.0), Marginals(2)), **REFUSED[says])(table(), script)
    assert not script.noise and not script.choices


def test_marginals_that_are_measured_again_become_their_weighted_mean():
    measured = MeasuredMarginals(DOMAIN, 2**10)
    measured.add((0,), np.array([90.0, 30.0, 0.0]), 4.0)
    measured.add((1,), np.array([60.0, 60.0]), 1.0)
    measured.add((0,), np.array([100.0, 20.0, 10.0]), 1.0)
    values, variance = measured.sets[0,]
    assert values == pytest.approx([98, 22, 8]) and variance == pytest.approx(0.8)
    assert [*measured.sets] == [(0,), (1,)]
    model = measured.fit(NEAR)
    assert model.total == pytest.approx(np.average([128, 120], weights=[1 / 2.4, 1 / 2]))
    assert measured.admits((0,), 0) and not measured.admits((0, 2), 13)
    assert measured.admits((0, 2), 14)
