"""Terms that are rectangles: sums and means by corners, against their rows laid out."""

import numpy as np
import pytest

from workbench import Domain, Products
from workbench.estimates import NoisyAnswers
from workbench.inference.dual_problem import DualProblem
from workbench.queries import Marginals, RandomMarginalRanges, RandomTables, Together

DOMAIN = Domain(("a", "b", "c", "d"), (5, 7, 2, 9))
QUERIES = {
    "one attribute": RandomMarginalRanges(80, dims=1),
    "two": RandomMarginalRanges(300, dims=2),
    "three": RandomMarginalRanges(200, dims=3),
    "cells": Marginals(2),
    "tables": RandomTables(60),
}


def problem_of(queries) -> DualProblem:
    values = np.random.default_rng(0).normal(100, 10, len(queries))
    return DualProblem.of(NoisyAnswers(DOMAIN, queries, values, 2.0), 1000, 1.0, None, False)


@pytest.mark.parametrize("name", QUERIES)
def test_sums_and_means_are_those_of_rows_laid_out(name):
    rng = np.random.default_rng(1)
    together = Together((QUERIES["two"].on(DOMAIN), QUERIES[name].on(DOMAIN)))
    for queries in (QUERIES[name].on(DOMAIN), together):
        problem = problem_of(queries)
        weights = rng.normal(size=len(queries))
        potentials = problem.potentials(weights)
        margins = [rng.dirichlet(np.ones(t.size)).reshape(t.shape) for t in potentials]
        tables = [np.zeros(t.size) for t in potentials]
        means = problem.constants.copy()
        for s, part in zip(problem.set_of_terms, problem.terms, strict=True):
            rows = part.rows
            if part.cells is not None:
                rows = np.eye(tables[s].size)[part.cells]
            tables[s] += weights[part.query] @ rows
            np.add.at(means, part.query, rows @ margins[s].ravel())
        for own, table in zip(potentials, tables, strict=True):
            assert np.allclose(own.ravel(), table, rtol=0, atol=1e-12)
        assert np.allclose(problem.means(margins), means, rtol=0, atol=1e-14)


def test_codes_apart_are_no_rectangle():
    """They are summed by rows laid out, beside ranges of the same attributes."""
    queries = Products.of(
        DOMAIN, [{"a": {0, 3}, "b": (0, 5)}, {"a": (1, 3), "b": (3, 4)}, {"b": {6}}, {}]
    )
    problem = problem_of(queries)
    weights = np.array([1.0, 10.0, 100.0, 1000.0])
    expected = np.zeros((5, 7))
    expected[[0, 3], :5] = 1
    expected[1:3, 3] += 10
    table = problem.potentials(weights)[problem.sets.index((0, 1))]
    assert np.allclose(table, expected)


def test_a_query_that_is_never_met_has_no_variance():
    """Rounding of running sums leaves no variance where there is none: steps divide by it."""
    problem = problem_of(QUERIES["two"].on(DOMAIN))
    cells = [np.zeros(shape) for shape in problem.shapes]
    for table in cells:
        table[(0,) * table.ndim] = 0.3
        table[(-1,) * table.ndim] = 0.7
    assert (problem.variances(cells) == 0).any()
