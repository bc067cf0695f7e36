"""Microdata by maximum entropy: what it costs, how many there are, and that marginals come back."""

import numpy as np
import pytest

from tests.agreement import seeded
from workbench import (
    DP,
    Bound,
    Domain,
    Marginals,
    MaximumEntropySynthesis,
    NamedMarginals,
    SparseTable,
)
from workbench.mechanisms import laws as releases
from workbench.mechanisms.laws import LAWS, Subject

DOMAIN = Domain(("age", "sex", "job"), (6, 2, 4))
OTHERS = (
    releases.neighbours_are_alike,  # of thousands of releases; all noise is `LaplaceQueries`'
    releases.error_vanishes,
    releases.error_bars_fit,
    releases.estimate_is_public,  # of files with a column of noisy counts
)


def table(n=4000):
    """Jobs follow from ages, and sex is a coin."""
    rng = np.random.default_rng(0)
    age = rng.integers(0, 6, n)
    job = (age + rng.integers(0, 2, n)) // 2
    keys = DOMAIN.keys(np.stack([age, rng.integers(0, 2, n), job], axis=1))
    return SparseTable.from_keys(DOMAIN, keys, np.ones(n, int), Bound())


@pytest.mark.parametrize(
    "law", [law for law in LAWS if law not in OTHERS], ids=lambda f: f.__name__
)
def test_the_laws_of_mechanisms_hold(law):
    law(Subject(MaximumEntropySynthesis))


@pytest.mark.slow
def test_neighbours_are_hard_to_tell_apart():
    releases.neighbours_are_alike(Subject(MaximumEntropySynthesis), runs=300)


def test_marginals_come_back_but_for_what_drawing_adds():
    private = table()
    pairs = NamedMarginals((("age", "job"), ("sex",)))
    release = MaximumEntropySynthesis(DP(1000.0), pairs, rows=4000)(private, seeded())
    errors = release.answer(pairs) - private.answer(pairs)
    assert np.abs(errors).max() < 6 * np.sqrt(4000 / 4)  # drawn counts have σ below √(n/4)
    cells = private.answer(Marginals(3))
    assert np.abs(release.answer(Marginals(3)) - cells).max() < 6 * np.sqrt(1000)


def test_what_no_marginal_says_is_not_learnt():
    release = MaximumEntropySynthesis(DP(1000.0), Marginals(1), rows=20_000)(table(), seeded())
    counts = release.answer(NamedMarginals((("age", "job"),))).reshape(6, 4)
    independent = np.outer(counts.sum(1), counts.sum(0)) / 20_000
    assert np.abs(counts - independent).max() < 6 * np.sqrt(20_000 / 4)


def test_the_number_of_records_is_stated_or_bought():
    private = table()
    stated = MaximumEntropySynthesis(DP(1.0), Marginals(1), rows=123)(private, seeded())
    assert len(stated.estimate) == 123 == len(stated.to_frame())
    assert [r.cost.epsilon for r in stated.ledger] == [1.0]
    bought = MaximumEntropySynthesis(DP(1.0), Marginals(1))(private, seeded())
    assert [round(r.cost.epsilon, 6) for r in bought.ledger] == [0.05, 0.95]
    assert abs(len(bought.estimate) - 4000) < 25 / 0.05  # e^−25 a side
    assert bought.privacy.epsilon <= 1


def test_many_cells_are_fitted_by_chains(monkeypatch):
    from workbench.mechanisms import microdata

    monkeypatch.setattr(microdata, "_EXACT_CELLS", 1)
    private = table()
    release = MaximumEntropySynthesis(DP(1000.0), Marginals(2), rows=4000, weight=1.0)(
        private, seeded()
    )
    errors = release.answer(Marginals(2)) - private.answer(Marginals(2))
    assert np.abs(errors).sum() / 3 / 4000 / 2 < 0.1 and release.estimate.gap > 0
