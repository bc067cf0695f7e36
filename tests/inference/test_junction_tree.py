"""A junction tree says what summing over all cells says."""

from itertools import combinations

import numpy as np
import pytest

from workbench.inference.junction_tree import JunctionTree, cliques_of

SHAPE = (2, 3, 2, 4, 2)
LISTS = [
    [(0, 1), (1, 2), (3, 2), (4,)],
    [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
    [(1, 0), (3, 4)],
    [(), (0, 1, 2, 3, 4)],
    [(2,)],
]


def case(sets, seed=0):
    rng = np.random.default_rng(seed)
    prior = [rng.dirichlet(np.ones(n) * 3) for n in SHAPE]
    potentials = [rng.normal(0, 2, [SHAPE[k] for k in axes]) for axes in sets]
    return prior, potentials, JunctionTree(SHAPE, prior, sets).calibrate(potentials)


def joint(prior, sets, potentials):
    """Return the probabilities of all cells of all attributes, and ln p0[exp(Σ potentials)]."""
    operands = []
    for k, table in enumerate(prior):
        operands += [table, [k]]
    for axes, table in zip(sets, potentials, strict=True):
        operands += [np.exp(table), list(axes)]
    cells = np.einsum(*operands, range(len(SHAPE)))
    return cells / cells.sum(), np.log(cells.sum())


@pytest.mark.parametrize("sets", LISTS)
def test_every_margin_and_the_normaliser_are_those_of_all_cells(sets):
    prior, potentials, tree = case(sets)
    cells, log_normaliser = joint(prior, sets, potentials)
    assert tree.log_normaliser == pytest.approx(log_normaliser, abs=1e-9)
    for axes, margin in zip(sets, tree.of_sets(), strict=True):
        assert margin == pytest.approx(np.einsum(cells, range(5), list(axes)), abs=1e-12)
    for size in range(6):
        for axes in combinations((3, 1, 4, 0, 2), size):
            expected = np.einsum(cells, range(5), list(axes))
            assert tree.margin(axes) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("sets", LISTS)
def test_margins_change_with_their_potentials_as_is_told(sets):
    prior, potentials, tree = case(sets, seed=1)
    rng = np.random.default_rng(2)
    directions = [rng.normal(size=table.shape) for table in potentials]
    step = 1e-5
    ends = [
        JunctionTree(SHAPE, prior, sets)
        .calibrate([p + sign * step * d for p, d in zip(potentials, directions, strict=True)])
        .of_sets()
        for sign in (1, -1)
    ]
    for told, high, low in zip(tree.derivatives(directions), *ends, strict=True):
        assert told == pytest.approx((high - low) / 2 / step, abs=1e-7)


def test_tuples_are_drawn_from_it():
    sets = LISTS[1]
    prior, potentials, tree = case(sets, seed=3)
    n = 200_000
    codes = tree.draw(n, np.random.default_rng(0))
    counts = np.bincount(np.ravel_multi_index(codes.T, SHAPE), minlength=np.prod(SHAPE))
    p = joint(prior, sets, potentials)[0].ravel()
    z = (counts - n * p) / np.sqrt(n * p * (1 - p) + 1e-9)
    assert np.abs(z).max() < 6


def test_a_tree_that_is_too_large_says_so_early():
    pairs = list(combinations(range(8), 2))
    assert cliques_of(pairs, [10] * 8, 1000) is None
    assert cliques_of([(i, i + 1) for i in range(7)], [10] * 8, 1000) is not None
