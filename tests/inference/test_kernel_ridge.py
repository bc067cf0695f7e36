"""Kernel PCA by sets of attributes, against inner products laid out and against eigenqueries."""

import numpy as np
import pytest

from workbench import Domain, Products
from workbench.estimates import NoisyAnswers
from workbench.inference import KernelPCA, select_alpha
from workbench.inference import cross_validation as cross
from workbench.inference.eigenqueries import Eigenqueries, prior_vectors
from workbench.inference.kernel_ridge import KernelRidge, ridge_or_eigenqueries
from workbench.queries import Marginals, RandomMarginalRanges, RandomTables, Together
from workbench.queries.inner import inner_products, means

DOMAIN = Domain(("a", "b", "c", "d"), (5, 7, 2, 9))
PRIOR = tuple(tuple(np.random.default_rng(3).dirichlet(np.ones(n))) for n in DOMAIN.shape)
TOTAL = 5000.0
ALPHAS = (1.0, 40.0, 3000.0)
QUERIES = {
    "ranges": RandomMarginalRanges(300),
    "of one attribute too": Together(
        (RandomMarginalRanges(150).on(DOMAIN), RandomMarginalRanges(100, dims=1).on(DOMAIN))
    ),
    "tables": RandomTables(150),
    "marginals": Marginals(2),
}


def history_of(queries) -> NoisyAnswers:
    rng = np.random.default_rng(5)
    queries = queries.on(DOMAIN)
    values = TOTAL * means(queries, DOMAIN) + rng.normal(0, 300, len(queries))
    return NoisyAnswers(DOMAIN, queries, values, rng.uniform(10, 60, len(queries)) ** 2)


@pytest.mark.parametrize("total", [TOTAL, None])
@pytest.mark.parametrize("prior", [PRIOR, None], ids=["prior", "uniform"])
@pytest.mark.parametrize("name", QUERIES)
def test_answers_are_those_of_the_whole_matrix(name, prior, total):
    history = history_of(QUERIES[name])
    ridge = KernelRidge.of(history, total, prior)
    assert len(ridge.sets) <= 11  # two attributes, one, or none
    vectors = prior_vectors(prior, DOMAIN)
    asked = RandomTables(20, k=3, seed=9).on(DOMAIN)
    past, mean = means(history.workload, DOMAIN, vectors), means(asked, DOMAIN, vectors)
    gram = inner_products(history.workload, history.workload, DOMAIN, vectors)
    products = inner_products(asked, history.workload, DOMAIN, vectors)
    known = total or 0.0
    if total is not None:
        gram -= np.outer(past, past)
        products -= np.outer(mean, past)
    for alpha, own in zip(ALPHAS, ridge.answer_at(asked, ALPHAS), strict=True):
        noise = np.diag(history.variances) / alpha**2
        expected = products @ np.linalg.solve(gram + noise, history.values - known * past)
        assert np.allclose(own, known * mean + expected, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("name", QUERIES)
def test_a_fold_is_missed_as_by_the_others_alone(name):
    history = history_of(QUERIES[name])
    ridge = KernelRidge.of(history, TOTAL, PRIOR)
    folds = np.array_split(np.random.default_rng(1).permutation(len(history)), 3)
    missed = ridge.missed(40.0, folds) * np.sqrt(history.variances)
    for fold in folds:
        others = history[np.setdiff1d(np.arange(len(history)), fold)]
        held_out = history[fold]
        answers = KernelPCA(40.0, TOTAL, PRIOR)(others).answer(held_out.workload)
        assert np.allclose(missed[fold], held_out.values - answers, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("total", [TOTAL, None])
def test_alpha_is_chosen_as_with_a_decomposition(total, monkeypatch):
    history = history_of(QUERIES["ranges"])
    grid = dict(total=total, prior=PRIOR, low=1.0, high=3000.0, points=6, refine=3)
    chosen = select_alpha(history, **grid)
    assert isinstance(chosen.past, KernelRidge)
    monkeypatch.setattr(cross, "ridge_or_eigenqueries", lambda *a: Eigenqueries.of(*a[:3]))
    decomposed = select_alpha(history, **grid)
    assert isinstance(decomposed.past, Eigenqueries)
    assert np.allclose(chosen.errors, decomposed.errors, rtol=1e-8)
    assert chosen.alpha == pytest.approx(decomposed.alpha)
    assert chosen.error == pytest.approx(decomposed.error)
    asked = RandomMarginalRanges(50, dims=3, seed=7)
    answers = chosen.answer(asked)
    assert np.allclose(answers, decomposed.answer(asked), rtol=1e-7)
    one, other = (each.past.answer_at(asked, ALPHAS) for each in (chosen, decomposed))
    assert np.allclose(one, other, rtol=1e-7)


NOT_BY_SETS = {
    "two attributes in common": RandomMarginalRanges(300, dims=3),
    "queries of several terms": Together(
        (
            RandomMarginalRanges(200).on(DOMAIN),
            Products.of(DOMAIN, [[{"a": {1}, "b": {2}}, {"a": {0}, "b": {3}}]]),
        )
    ),
    "few queries beside the codes": RandomMarginalRanges(90),
    "most of them on one set": Together(
        (
            RandomMarginalRanges(100).on(DOMAIN),
            Products.of(
                DOMAIN,
                [
                    {"b": (i, i + n), "d": (0, j)}
                    for n in (1, 2)
                    for i in range(6)
                    for j in range(1, 9)
                ],
            ),
        )
    ),
}


@pytest.mark.parametrize("name", NOT_BY_SETS)
def test_other_histories_are_decomposed(name):
    history = history_of(NOT_BY_SETS[name])
    assert KernelRidge.of(history, TOTAL, None) is None
    assert isinstance(ridge_or_eigenqueries(history, TOTAL, None, 1.0), Eigenqueries)


def test_where_rounding_would_decide_a_history_is_decomposed():
    history = history_of(QUERIES["ranges"])
    largest = KernelRidge.of(history, TOTAL, None).largest_alpha
    assert isinstance(ridge_or_eigenqueries(history, TOTAL, None, largest), KernelRidge)
    assert isinstance(ridge_or_eigenqueries(history, TOTAL, None, 2 * largest), Eigenqueries)


@pytest.mark.parametrize("alpha", [0.0, 1e-200, -40.0, np.nan, 1e9, np.inf])
def test_an_alpha_that_systems_cannot_bear_is_refused(alpha):
    ridge = KernelRidge.of(history_of(QUERIES["ranges"]), TOTAL, PRIOR)
    with pytest.raises(ValueError, match=f"alpha = {alpha!r} is not allowed"):
        ridge.answer_at(RandomTables(5), [alpha])
