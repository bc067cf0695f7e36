"""A strategy errs as it says: its error by literal least squares, its sensitivity by laying it out."""

from math import prod

import numpy as np
import pytest

from tests.reference import residual_planner
from workbench import ZCDP, Bound, SparseTable
from workbench.estimates import NoisyAnswers
from workbench.inference import KernelPCA
from workbench.inference.marginals import used_attributes
from workbench.inference.strategies import L1, L2, answers_by_cells, of_line, optimised_strategy
from workbench.mechanisms import GaussianQueries
from workbench.owner.choosing import reconstructed
from workbench.queries import Marginals, NamedMarginals, Products, TableMargins, linear_queries
from workbench.spaces import Domain

MIXED = Domain(("a", "b", "c"), (3, 2, 4))
BITS = Domain(tuple("abcd"), (2,) * 4)
LINE = Domain(("x",), (24,))
CASES = [
    (Marginals(2), BITS),
    (Marginals(2), MIXED),
    (NamedMarginals((("a",), ("b", "c"))), MIXED),
    (
        Products.of(LINE, [{"x": (i, i + 5 + i % 3)} for i in range(17)] + [{"x": (0, 24)}]),
        LINE,
    ),
    (
        Products.of(MIXED, [{"a": (0, 2)}, {"a": {1}, "c": {0}}, [{"c": {1}}, (-2.0, {})]]),
        MIXED,
    ),
]


def rows_of_cells(queries, domain, axes):
    """Weight of each cell of some attributes in each query; the others have code 0."""
    sizes = [n if k in axes else 1 for k, n in enumerate(domain.shape)]
    keys = domain.keys(np.indices(sizes).reshape(len(sizes), -1).T)
    tables = (TableMargins(domain, keys[i : i + 1], np.ones(1)) for i in range(len(keys)))
    return np.stack([queries.sums_of_margins(table) for table in tables], axis=1)


@pytest.mark.parametrize("norm", [L1, L2])
@pytest.mark.parametrize("workload,domain", CASES)
def test_the_error_is_that_of_least_squares(workload, domain, norm):
    strategy = optimised_strategy(workload, domain, norm)
    axes = tuple(range(len(domain.shape)))
    w = rows_of_cells(linear_queries(workload, domain), domain, axes)
    a = rows_of_cells(linear_queries(strategy.queries, domain), domain, axes)
    inverse = np.linalg.pinv(a.T @ a, rcond=1e-10)
    assert w @ inverse @ a.T @ a == pytest.approx(w, abs=1e-5)  # it can be reconstructed
    lengths = [np.abs(a).sum(axis=0), (a**2).sum(axis=0)]
    moved = lengths[0].max() ** 2 if norm == L1 else lengths[1].max()
    told = moved * np.trace(w @ inverse @ w.T) / len(w)
    if strategy.kind == "the questions themselves":
        told = moved
    if "tree" in strategy.kind:  # over fewer cells than a power of its branching
        assert told <= strategy.squared_error * (1 + 1e-9) <= 1.05 * told
    else:
        assert strategy.squared_error == pytest.approx(told, rel=1e-4)
    plain = np.abs(w).sum(axis=0).max() ** 2 if norm == L1 else (w**2).sum(axis=0).max()
    assert strategy.plain == pytest.approx(plain)
    assert strategy.squared_error <= plain * (1 + 1e-9)
    singular = np.linalg.svd(w, compute_uv=False).sum()
    columns = np.flatnonzero((w != 0).any(axis=0))
    cells = domain.size if len(columns) == domain.size else len(w[0])
    assert strategy.squared_error >= singular**2 / cells / len(w) * (1 - 1e-6)
    assert 0 < strategy.share <= 1 + 1e-6 or np.isnan(strategy.bound)


def test_pairs_of_ten_bits_need_a_third_of_the_squared_error_or_less():
    bits = Domain(tuple("abcdefghij"), (2,) * 10)
    gaussian = optimised_strategy(Marginals(2), bits, L2)
    assert gaussian.plain >= 3 * gaussian.squared_error
    assert gaussian.share == pytest.approx(1)
    assert gaussian.plain == 45 and gaussian.squared_error == pytest.approx(
        1668.6 / 180, rel=1e-3
    )
    laplace = optimised_strategy(Marginals(2), bits, L1)
    assert laplace.plain >= 3 * laplace.squared_error


@pytest.mark.parametrize("norm", [L1, L2])
@pytest.mark.parametrize("n", [16, 21])
def test_a_tree_over_many_codes_errs_as_is_told_or_less(n, norm):
    domain = Domain(("x", "y"), (n, 3))
    every = [(i, j) for i in range(n) for j in range(i + 1, n + 1)]
    workload = Products.of(domain, [{"x": ends} for ends in every])
    strategy = of_line(workload, domain, 0, norm)
    w = rows_of_cells(workload, domain, (0,))
    a = rows_of_cells(strategy.queries, domain, (0,))
    moved = np.abs(a).sum(axis=0).max() ** 2 if norm == L1 else (a**2).sum(axis=0).max()
    literal = moved * np.trace(w @ np.linalg.pinv(a.T @ a) @ w.T) / len(w)
    assert moved == pytest.approx(1)
    assert literal <= strategy.squared_error * (1 + 1e-9)
    if n == 16:
        assert strategy.squared_error == pytest.approx(literal)
    singular = np.linalg.svd(w, compute_uv=False).sum()
    assert strategy.bound == pytest.approx(singular**2 / n / len(w))


def test_answers_from_a_tree_are_those_of_literal_least_squares():
    domain = Domain(("x", "y"), (37, 2))
    every = [(i, j) for i in range(37) for j in range(i + 1, 38)]
    workload = Products.of(domain, [{"x": ends} for ends in every])
    strategy = of_line(workload, domain, 0, L2)
    w = rows_of_cells(workload, domain, (0,))
    a = rows_of_cells(strategy.queries, domain, (0,))
    rng = np.random.default_rng(0)
    variances = rng.uniform(1, 4, len(a))
    answers = NoisyAnswers(domain, strategy.queries, rng.normal(size=len(a)), variances)
    values, errors = answers_by_cells(answers, workload, 0)
    precision = a.T / variances
    covariance = np.linalg.inv(precision @ a)
    assert values == pytest.approx(w @ covariance @ precision @ answers.values)
    assert errors**2 == pytest.approx(np.einsum("qi,ij,qj->q", w, covariance, w))
    same, bars = KernelPCA(np.inf)(answers).answer(workload, error=True)
    assert values == pytest.approx(same, abs=1e-6) and errors == pytest.approx(bars, rel=1e-6)


def test_ranges_of_many_codes_come_near_the_bound_and_are_asked():
    n = 600
    rng = np.random.default_rng(1)
    ends = np.sort(rng.integers(0, n + 1, (1500, 2)), axis=1)
    domain = Domain(("x",), (n,))
    ranges = Products.of(domain, [{"x": (int(i), int(j))} for i, j in ends if i < j])
    strategy = optimised_strategy(ranges, domain, L2)
    assert strategy.share > 0.6 and strategy.line == 0
    counts = rng.integers(1, 50, n)
    table = SparseTable.from_keys(domain, np.arange(n), counts, Bound(1, 1), truth_public=True)
    release = GaussianQueries(ZCDP(0.1), strategy.queries)(table, np.random.default_rng(2))
    answers = reconstructed(release, ranges, strategy).estimate
    values, errors = answers.values, answers.deviations()
    off = (values - table.answer(ranges)) / errors
    assert np.mean(off**2) == pytest.approx(1, abs=0.3)
    assert 0.95 < np.mean(errors**2) / (strategy.squared_error / (2 * 0.1)) < 1.001


def test_ranges_err_less_than_by_the_consistent_tree_and_by_privelet():
    n = 64
    line = Domain(("x",), (n,))
    every = Products.of(line, [{"x": (i, j)} for i in range(n) for j in range(i + 1, n + 1)])
    w = rows_of_cells(every, line, (0,))
    nodes = [
        np.arange(n) // width == np.arange(n // width)[:, None] for width in 2 ** np.arange(7)
    ]
    halves = [np.sign(a[::2].astype(float) - a[1::2]) for a in nodes[:-1]]
    peers = [np.concatenate(nodes).astype(float), np.concatenate([*halves, np.ones((1, n))])]
    errors = [
        np.abs(a).sum(axis=0).max() ** 2 * np.trace(w @ np.linalg.inv(a.T @ a) @ w.T) / len(w)
        for a in peers
    ]
    strategy = optimised_strategy(every, line, L1)
    assert 2.5 * strategy.squared_error < min(errors)
    assert optimised_strategy(every, line, L2).share > 0.7


SIZES = Domain(("a", "b", "c"), (2, 3, 4))
RESIDUALS = {  # sigma^2 by set, and the loss, as the note on rivals has them
    ((0, 1), (0, 2), (1, 2)): (
        [11.644790, 6.601975, 4.753965, 3.905781, 2.911197, 2.521171, 2.058527],
        50.850421,
    ),
    ((0, 1),): ([6, 3, 2, 1], 6),
}


@pytest.mark.parametrize("sets", RESIDUALS)
def test_the_closed_form_for_gaussian_noise_is_residual_planner(sets):
    """The same noise on each residual marginal, the same loss, and the same variance of each cell."""
    shape = SIZES.shape
    noise, loss = residual_planner.variances(sets, shape, dict.fromkeys(sets, 1.0))
    assert [*noise.values()] == pytest.approx(RESIDUALS[sets][0], rel=1e-6)
    assert loss == pytest.approx(RESIDUALS[sets][1], rel=1e-7)
    workload = NamedMarginals(tuple(tuple(SIZES.attributes[k] for k in axes) for axes in sets))
    strategy = optimised_strategy(workload, SIZES, L2)
    w, a = (
        rows_of_cells(linear_queries(x, SIZES), SIZES, (0, 1, 2))
        for x in (workload, strategy.queries)
    )
    assert strategy.squared_error * len(w) == pytest.approx(loss)
    assert (a**2).sum(axis=0) == pytest.approx(np.ones(SIZES.size))  # any record moves it by 1
    used = used_attributes(strategy.queries, SIZES)
    asked = {}
    for row, own in zip(a, used, strict=True):
        outside = prod(n for n, inside in zip(shape, own, strict=True) if not inside)
        asked.setdefault(tuple(np.flatnonzero(own).tolist()), []).append(outside / (row @ row))
    assert asked.keys() == noise.keys()
    for axes, found in asked.items():
        assert found == pytest.approx([noise[axes]] * prod(shape[k] - 1 for k in axes))
    cells = np.diag(w @ np.linalg.pinv(a.T @ a) @ w.T)
    wanted = [
        [residual_planner.variance_of_cell(axes, noise, shape)] * prod(shape[k] for k in axes)
        for axes in sets
    ]
    assert cells == pytest.approx(np.concatenate(wanted))
