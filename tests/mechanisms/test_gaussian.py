"""Mechanisms under a ρ: what a unit moves in the l2 norm, by brute force, and what they draw."""

import pickle
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest

from tests.agreement import same_counts, seeded
from tests.reference import discrete_gaussian as literal
from workbench import (
    DP,
    ZCDP,
    Bound,
    Domain,
    Dyadic,
    Haar,
    Interactions,
    Marginals,
    Products,
    SparseTable,
)
from workbench.mechanisms import (
    ALP,
    SRA,
    CountSketch,
    DirectSynthesis,
    GaussianHistogram,
    GaussianQueries,
    GeometricHistogram,
    HierarchicalHistogram,
    ImprovedAdaptiveHistogram,
    LaplaceQueries,
    Privelet,
    PrivTree,
    UnattributedHistogram,
)
from workbench.mechanisms.contributions import l2_squared
from workbench.mechanisms.hierarchical import tree_l2_squared as of_tree
from workbench.mechanisms.protocol import blocks_within, law_within
from workbench.queries import Together, basis_of, linear_queries, workload_l2_squared

BOUNDS = [Bound(), Bound(2), Bound(2, 1, 2), Bound(3, 2, 5), Bound(2, 3, 4), Bound(5, 1, 4)]
RHO = ZCDP(0.125)


def moves(cells, bound):
    """All that one unit may add, as counts of every cell."""
    whole = range(int(bound.linf) + 1)
    for move in product(whole, repeat=cells):
        if sum(move) <= bound.l1 and np.count_nonzero(move) <= bound.l0:
            yield np.array(move)


def longest(images):
    return max(int((np.asarray(x) ** 2).sum()) for x in images)


def in_basis(basis, move):
    return basis.forward(np.flatnonzero(move), move[move > 0])[1]


@pytest.mark.parametrize("bound", BOUNDS, ids=repr)
def test_what_a_unit_moves_is_found_by_trying_all(bound):
    domain = Domain(("x",), (8,))
    units = [*moves(8, bound)]
    assert bound.l2_squared == longest(units)
    for transform in (None, Dyadic(), Haar()):
        basis = basis_of(transform, domain)
        (block,) = basis.noise_blocks
        moved = longest(in_basis(basis, unit) for unit in units)
        assert block.l2_squared(bound) >= moved
        exact = not isinstance(transform, Haar) or bound.l0 == 1 or bound.l1 == 1
        assert block.l2_squared(bound) == moved or not exact
    for k in (2, 3, 4, 8):
        sizes = [k**j for j in range(9) if k ** (j - 1) < 8]
        levels = [[np.add.reduceat(u, range(0, 8, s)) for s in sizes] for u in units]
        moved = longest(np.concatenate(x) for x in levels)
        assert moved <= of_tree(bound, 8, k)
        if 8 in (k, k**3):  # else blocks end at the last cell
            assert moved == of_tree(bound, 8, k)


def test_what_a_unit_moves_in_two_dimensions():
    basis = Dyadic(2).on(Domain(("x", "y"), (4, 4)))
    (block,) = basis.noise_blocks
    for bound, most in ((Bound(), 9), (Bound(2, 1, 2), 30)):
        assert longest(in_basis(basis, u) for u in moves(16, bound)) == most
        assert most <= block.l2_squared(bound) <= most * 34 / 30


def test_levels_of_a_weighted_tree_share_a_rho_by_what_they_move():
    bound = Bound(3, 2, 5)
    basis = Dyadic(split="geometric").on(Domain(("x",), (8,)))
    blocks = blocks_within(basis, bound, RHO)
    law = law_within(basis, bound, RHO)
    assert sum(Fraction(block.rho) for block in blocks) <= Fraction(RHO.rho)
    for block, nodes in zip(blocks, basis.noise_blocks, strict=True):
        rate = block.rho / float(block.l2_squared)
        assert rate == pytest.approx(float(law.of_nodes(nodes).rate))
        assert rate / law.rate == pytest.approx(float(nodes.weight))
    rates = [block.rho / float(block.l2_squared) for block in blocks]
    assert np.divide(rates[1:], rates[:-1]) == pytest.approx(sqrt(2))


@pytest.mark.parametrize("m", [2**16, 2**20, 2**24])
def test_trees_branch_less_under_a_rho(m):
    tree = HierarchicalHistogram(RHO, branching="optimal")
    k = tree.branching_factor(m)
    assert k == 4
    for other in (2, 16):
        nodes = Domain(("x",), (other ** (4 if other == 16 else 12),))
        assert HierarchicalHistogram(RHO, branching=other).branching_factor(nodes.size) == other


def test_columns_of_workloads_are_as_long_as_they_are_laid_out():
    domain = Domain(("x", "y", "z"), (3, 2, 4))
    one = np.ones(1, np.int64)
    for workload in (Marginals(1), Marginals(2), Marginals(3)):
        queries = linear_queries(workload, domain)
        columns = [queries.sums(domain, np.array([t]), one) for t in range(domain.size)]
        assert workload_l2_squared(workload, domain) == longest(columns)
    signed = Products.moments(domain, [{"x": 1, "y": 2}, {"z": 3}, {"x": 2, "z": 1}])
    both = Together((linear_queries(Marginals(2), domain), signed))
    for queries in (signed, both):
        columns = [queries.sums(domain, np.array([t]), one) for t in range(domain.size)]
        exact = max(float((c**2).sum()) for c in columns)
        assert exact <= workload_l2_squared(queries, domain) <= exact * (1 + 1e-9)


def test_items_add_up_the_edges_of_a_user():
    """Two contexts: at three records a user moves one item by two."""
    domain = Domain(("item", "context"), (4, 2))
    items = domain.project(("item",))
    columns = [0, 0, 0], [0, 0, 1], [0, 1, 0]
    data = Interactions.from_codes(domain, *columns, Bound(3, 1))
    assert l2_squared(data, domain) == 3 and l2_squared(data, items) == 5
    moved = longest(u.reshape(4, 2).sum(axis=1) for u in moves(8, Bound(3, 1)))
    assert moved == 5
    assert l2_squared(data.one_per_item(seeded()), items) == 3


@pytest.mark.parametrize("transform", [None, Haar()])
def test_a_gaussian_histogram_is_counts_and_literal_noise(transform):
    domain = Domain(("x",), (16,))
    table = SparseTable.from_keys(domain, [3, 9], [5, 20], Bound(2))
    release = GaussianHistogram(RHO, transform=transform)
    runs = [release(table, seeded(s)).estimate.values for s in range(400)]
    basis = basis_of(transform, domain)
    exact = np.zeros(16, np.int64)
    nodes, values = basis.forward(table.keys, table.counts)
    exact[nodes] = values
    sigma = sqrt(float(basis.noise_blocks[0].l2_squared(table.bound)) / (2 * RHO.rho))
    rng = seeded(9)
    theirs = [literal.draw(sigma, rng) for _ in range(6400)]
    assert same_counts(np.concatenate(runs - exact), np.array(theirs)) > 1e-4
    assert release(table, seeded()).estimate.law.variance == pytest.approx(sigma**2)


def test_gaussian_queries_have_the_noise_that_they_state():
    domain = Domain(("x", "y"), (3, 4))
    table = SparseTable.from_keys(domain, [1, 5], [3, 9], Bound(2))
    for workload in (Marginals(1), Marginals(2)):
        mechanism = GaussianQueries(RHO, workload)
        truth = workload.on(domain).sums(domain, table.keys, table.counts)
        runs = [mechanism(table, seeded(s)) for s in range(500)]
        errors = np.array([r.estimate.values - truth for r in runs])
        sigma = mechanism.scale(domain, 2)
        assert errors.std() == pytest.approx(sigma, rel=0.05)
        assert runs[0].estimate.variances == pytest.approx(sigma**2)
        assert runs[0].privacy == RHO


def test_gaussian_queries_of_real_numbers_pay_for_their_rounding():
    domain = Domain(("x", "y"), (3, 4))
    thirds = Products.fourier(domain, [("x",), ("x", "y"), ("y",)])
    table = SparseTable.from_keys(domain, [1, 5], [3, 9], Bound(2))
    mechanism = GaussianQueries(RHO, thirds)
    runs = [mechanism(table, seeded(s)).estimate for s in range(400)]
    truth = thirds.sums(domain, table.keys, table.counts)
    errors = np.array([r.values - truth for r in runs])
    assert errors.std() == pytest.approx(mechanism.scale(domain, 2), rel=0.06)
    assert runs[0].variances == pytest.approx(mechanism.scale(domain, 2) ** 2, rel=1e-6)


def test_a_sketch_errs_the_same_at_any_depth():
    for depth in (1, 4, 64):
        sketch = CountSketch(RHO, width=100, depth=depth)
        assert sketch.variance(0, 2) == pytest.approx(4 / (2 * RHO.rho))
        assert sketch._law(depth * 2.0).variance == pytest.approx(depth * 4 / (2 * RHO.rho))


@pytest.mark.parametrize("cls", [ALP, DirectSynthesis, ImprovedAdaptiveHistogram, PrivTree])
def test_where_a_proof_needs_bounded_ratios_a_rho_is_refused(cls):
    example = cls.example(DP(1.0))
    with pytest.raises(ValueError, match=r"Pr\[x\]/Pr\[x \+ 1\].*need a DP"):
        replace(example, budget=ZCDP(0.1))


def test_the_other_kind_of_noise_is_another_class():
    for pure, gaussian in (
        (GeometricHistogram, GaussianHistogram),
        (LaplaceQueries, GaussianQueries),
    ):
        more = [Marginals(1)] if pure is LaplaceQueries else []
        with pytest.raises(ValueError, match=f"{gaussian.__name__}.*need a DP"):
            pure(ZCDP(0.1), *more)
        with pytest.raises(ValueError, match="need a ZCDP"):
            gaussian(DP(0.1), *more)


@pytest.mark.parametrize("cls", [HierarchicalHistogram, Privelet, UnattributedHistogram])
def test_noise_that_the_budget_does_not_buy_is_refused_where_it_is_stated(cls):
    for kind in ("laplace", "geometric"):
        with pytest.raises(
            ValueError, match=rf"noise = '{kind}'.*ZCDP\(rho=0.125\).*'gaussian'"
        ):
            cls(RHO, noise=kind)
    with pytest.raises(
        ValueError, match=r"noise = 'gaussian'.*DP\(epsilon=1.0\).*need 'laplace'"
    ):
        cls(DP(1.0), noise="gaussian")
    table = SparseTable.from_keys(Domain(("x",), (8,)), [1], [9], Bound())
    drawn = [m(table, seeded()).to_frame() for m in (cls(RHO), cls(RHO, noise="gaussian"))]
    assert drawn[0].equals(drawn[1])
    stated = pickle.loads(pickle.dumps(cls(DP(1.0), noise="laplace")))
    assert repr(stated) == repr(cls(DP(1.0))) and replace(stated, budget=RHO) == cls(RHO)


def test_noise_that_no_word_holds_is_refused():
    table = SparseTable.from_keys(Domain(("x",), (4,)), [1], [1], Bound(3, 2.0**60, 2.0**60))
    with pytest.raises(ValueError, match="rho = 1e-300 is too small"):
        GaussianHistogram(ZCDP(1e-300))(table)
    assert SRA(ZCDP(1e6), 3).budgets() == (5e5, 5e5)


def test_a_table_of_gaussian_noise_is_said_to_be_noise():
    domain = Domain(("x",), (4000,))
    empty = SparseTable.from_keys(domain, [], [], Bound())
    full = SparseTable.from_keys(domain, range(0, 4000, 40), [99] * 100, Bound())
    assert GaussianHistogram(RHO)(empty, seeded()).mostly_noise
    assert not GaussianHistogram(RHO)(full, seeded()).mostly_noise
