"""Linear queries: answers, sensitivities and inner products against the whole universe."""

import re
from importlib import import_module

import numpy as np
import pytest

from tests.reference import kernel_pca as slow
from workbench import (
    DP,
    Bound,
    Domain,
    Marginals,
    Products,
    RandomMarginalRanges,
    RandomTables,
    Ranges,
    SparseTable,
    Subsets,
    TableQueries,
    datasets,
)
from workbench.mechanisms import LaplaceQueries
from workbench.mechanisms.queries import grid_step
from workbench.privacy import ADD_REMOVE, REPLACE
from workbench.queries import (
    Boxes,
    RandomSubsets,
    TableMargins,
    Together,
    linear_queries,
    workload_sensitivity,
)
from workbench.queries.inner import inner_products, means, squared_norms
from workbench.queries.linear import within_int64

DOMAIN = Domain(("a", "b", "c", "d"), (5, 3, 4, 2), (None, tuple("xyz"), range(10, 14), None))
PAPER = Domain(tuple("abcdefghi"), (79, 2, 17, 51, 9, 7, 6, 50, 50))
KEYS = np.arange(DOMAIN.size)
CODES = DOMAIN.codes(KEYS)


def a_prior(seed=3):
    rng = np.random.default_rng(seed)
    return [rng.dirichlet(np.ones(n)) for n in DOMAIN.shape]


def signed():
    """Products of several terms that may cancel, of real numbers."""
    return Products.of(
        DOMAIN,
        [
            [{"a": (0, 2)}, (-2.0, {"b": {1}, "c": [1, 2, 3.5, 4]}), {}],
            [(-1.0, {"a": (1, 4), "d": {0}}), {"a": (2, 5)}],
            {"c": [-1, 0.25, 1, 0]},
        ],
    )


WORKLOADS = {
    "ranges": RandomMarginalRanges(30, 2, 1),
    "3-D ranges": RandomMarginalRanges(15, 3, 2),
    "all attributes": RandomMarginalRanges(15, 4, 2),
    "tables": RandomTables(20, 2, 3),
    "3-D tables": RandomTables(6, 3, 4),
    "1-D tables": RandomTables(6, 1, 5),
    "the total": Marginals(0),
    "marginals": Marginals(2),
    "fourier": Products.fourier(DOMAIN, [(), ("a",), ("a", "d"), ("b", "c", "d")]),
    "wavelets": Products.wavelets(DOMAIN, ("a", "c")),
    "moments": Products.moments(DOMAIN, [{"c": 2}, {"a": 1, "c": 1}]),
    "signed": signed(),
    "none": Products.of(DOMAIN, []),
    "keys": Ranges([0, 7, 3, 50, 9], [120, 8, 101, 77, 9]),
    "subsets": Subsets.of([[5, 1, 119], [], [7]]),
}
WORKLOADS["together"] = Together(
    tuple(WORKLOADS[k] for k in ("tables", "ranges", "signed", "1-D tables", "keys"))
)
every = pytest.mark.parametrize("name", WORKLOADS)


def written_out(workload):
    """f(t) for each query and tuple, from a definition that shares nothing with sums."""
    workload = linear_queries(workload, DOMAIN)
    if isinstance(workload, Together):
        return np.concatenate([written_out(p) for p in workload.parts])
    out = np.zeros((len(workload), DOMAIN.size))
    if isinstance(workload, TableQueries):
        for names, tables, rows in workload.numbered_groups():
            axes = [DOMAIN.axis(a) for a in names]
            for i, table in zip(rows, tables, strict=True):
                out[i] = [table[tuple(t[axes])] for t in CODES]
        return out
    for i in range(len(workload)):
        for t in range(workload.offsets[i], workload.offsets[i + 1]):
            term = np.full(DOMAIN.size, workload.times[t])
            for k in range(len(DOMAIN.shape)):
                term *= workload.factors[k][workload.which[t, k]][CODES[:, k]]
            out[i] += term
    return out


@every
def test_answers_are_sums_over_tuples(name):
    rng = np.random.default_rng(0)
    keys = np.sort(rng.choice(KEYS, 70, replace=False))
    values = rng.integers(1, 99, 70)
    expected = written_out(WORKLOADS[name])[:, keys] @ values
    queries = WORKLOADS[name].on(DOMAIN)
    np.testing.assert_allclose(
        queries.sums(DOMAIN, keys, values), expected, rtol=1e-12, atol=1e-9
    )
    as_linear = linear_queries(queries, DOMAIN)
    np.testing.assert_allclose(
        as_linear.sums(DOMAIN, keys, values), expected, rtol=1e-12, atol=1e-9
    )
    assert len(queries) == len(expected)
    np.testing.assert_allclose(
        as_linear.cells(DOMAIN), written_out(WORKLOADS[name]).sum(axis=1), atol=1e-9
    )
    rows = rng.permutation(len(queries))[: len(queries) // 2]
    np.testing.assert_allclose(
        as_linear[rows].sums(DOMAIN, keys, values), expected[rows], rtol=1e-12, atol=1e-9
    )


@pytest.mark.slow
@every
def test_few_cells_and_many_give_the_same_answers(name, monkeypatch):
    queries = linear_queries(WORKLOADS[name], DOMAIN)
    values = np.arange(1, DOMAIN.size + 1)
    whole = queries.sums(DOMAIN, KEYS, values)
    monkeypatch.setattr(TableMargins, "dense", lambda self, axes: None)
    np.testing.assert_allclose(queries.sums(DOMAIN, KEYS, values), whole, rtol=1e-12, atol=1e-9)


@every
def test_units_round_each_term_at_each_tuple(name):
    queries = linear_queries(WORKLOADS[name], DOMAIN)
    values = np.random.default_rng(1).integers(0, 9, DOMAIN.size)
    grid = 2.0**-18
    units = queries.grid_units(DOMAIN, KEYS, values, grid)
    exact = written_out(WORKLOADS[name]) @ values
    slack = 3 * values.sum() / 2  # three terms a query, half a step each
    assert (np.abs(units - exact / grid) <= slack + 1e-3).all()
    assert queries.integer_valued == (name not in ("signed", "together"))
    if queries.integer_valued:
        assert (queries.grid_units(DOMAIN, KEYS, values, 1.0) == exact).all()


def test_units_of_enormous_counts_are_exact():
    counts = np.array([2**52 + 1, 2**51 + 3])
    queries = Products.of(DOMAIN, [{"a": [3, 5, 0, 0, 0]}, {"a": [-(2**20), 7, 0, 0, 0]}])
    units = queries.grid_units(DOMAIN, np.array([0, 24]), counts, 1.0)
    a, b = map(int, counts)
    exact = [3 * a + 5 * b, -(2**20) * a + 7 * b]
    assert units.tolist() == exact
    assert within_int64(units).tolist() == [exact[0], -(2**62)]  # cut
    tables = TableQueries.of(DOMAIN, [(("a",), [3, 5, 0, 0, 0])])
    assert tables.grid_units(DOMAIN, np.array([0, 24]), counts, 1.0).tolist() == exact[:1]


@pytest.mark.slow
@every
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_sensitivity_is_the_worst_tuples_or_above(name, relation):
    f = written_out(WORKLOADS[name])
    words = {ADD_REMOVE: "add/remove", REPLACE: "replace"}
    exact = slow.sensitivity(list(f), words[relation]) if len(f) else 0.0
    bound = workload_sensitivity(WORKLOADS[name], DOMAIN, relation)
    assert bound == pytest.approx(exact, rel=1e-9) and bound >= exact * (1 - 1e-15)


@pytest.mark.slow
@every
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("laid_out", [1, 10, 30])
def test_a_bound_of_sensitivity_is_never_below_it(name, relation, laid_out, monkeypatch):
    exact = workload_sensitivity(WORKLOADS[name], DOMAIN, relation)
    module = import_module("workbench.queries.sensitivity")
    monkeypatch.setattr(module, "_MAX_CELLS", laid_out)
    monkeypatch.setattr(module, "_MAX_PAIRS", 0)
    assert workload_sensitivity(WORKLOADS[name], DOMAIN, relation) >= exact * (1 - 1e-12)


def test_sensitivities_of_the_paper():
    marginals = Marginals(2).on(PAPER)
    assert len(marginals) == 29_570 and len(Marginals(1).on(PAPER)) == 271
    assert (
        workload_sensitivity(marginals, PAPER) == 36
        and workload_sensitivity(marginals, PAPER, REPLACE) == 72
    )
    assert (
        workload_sensitivity(Marginals(1), PAPER) == 9
        and workload_sensitivity(Marginals(1), PAPER, REPLACE) == 18
    )
    ipums = datasets.IPUMSTwin().domain
    product = Products.moments(ipums, [{"Age": 1, "Salary": 1}])
    assert workload_sensitivity(product, ipums) == 94 * 49
    waves = Products.fourier(PAPER, [("a",), ("a", "b")])
    assert (
        workload_sensitivity(waves, PAPER) == 2
        and workload_sensitivity(waves, PAPER, REPLACE) == 4
    )
    random = RandomMarginalRanges(5000, 2, 0).on(PAPER)
    assert 500 < workload_sensitivity(random, PAPER) < 5000
    with pytest.raises(ValueError, match="relation = 'swap'"):
        workload_sensitivity(random, PAPER, "swap")


@pytest.mark.slow
@every
@pytest.mark.parametrize("prior", [None, a_prior()], ids=["uniform", "prior"])
def test_inner_products_against_the_universe(name, prior):
    p = np.full(DOMAIN.size, 1 / DOMAIN.size)
    if prior:
        p = np.prod([w[CODES[:, k]] for k, w in enumerate(prior)], axis=0)
    one = linear_queries(WORKLOADS[name], DOMAIN)
    f = written_out(one)
    close = dict(rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(means(one, DOMAIN, prior), f @ p, **close)
    np.testing.assert_allclose(squared_norms(one, DOMAIN, prior), f**2 @ p, **close)
    for other in ("together", "3-D ranges", "marginals"):
        g = written_out(WORKLOADS[other])
        two = linear_queries(WORKLOADS[other], DOMAIN)
        np.testing.assert_allclose(
            inner_products(one, two, DOMAIN, prior), (f * p) @ g.T, **close
        )
    listed = prior and tuple(tuple(w.tolist()) for w in prior)
    np.testing.assert_allclose(inner_products(one, one, DOMAIN, listed), (f * p) @ f.T, **close)


def test_a_domain_of_other_order_and_further_attributes():
    wide = Domain(("d", "new", "a", "c", "b"), (2, 7, 5, 4, 3))
    codes = wide.codes(np.arange(wide.size))
    old = DOMAIN.keys(codes[:, [2, 4, 3, 0]])
    for name in ("ranges", "tables", "signed"):
        here = linear_queries(WORKLOADS[name], DOMAIN)
        there = WORKLOADS[name].on(DOMAIN).on(wide)
        values = np.arange(1.0, wide.size + 1)
        summed = np.bincount(old, values)
        np.testing.assert_allclose(
            there.sums(wide, np.arange(wide.size), values), here.sums(DOMAIN, KEYS, summed)
        )


def test_what_does_not_fit_is_one_error():
    ranges = RandomMarginalRanges(9).on(DOMAIN)
    tables = RandomTables(9).on(DOMAIN)
    for queries in (ranges, tables):
        with pytest.raises(ValueError, match="attribute '.' is not in"):
            queries.on(Domain(("x",), (4,)))
        with pytest.raises(ValueError, match="codes do not fit"):
            queries.on(Domain(DOMAIN.attributes, (6, 4, 5, 3)))
        with pytest.raises(ValueError, match="no ranges of keys"):
            queries.intervals(DOMAIN)
    for wrong, says in (
        ({"zip": (0, 1)}, "'zip' is not in"),
        ({"a": (0, 6)}, "0 <= lo <= hi <= 5"),
        ({"a": (-1, 3)}, "0 <= lo"),
        ({"a": {5}}, "0 <= code < 5"),
        ({"a": [1, 2]}, "5 finite values"),
        ({"a": [1, 2, 3, 4, np.nan]}, "5 finite values"),
        (7, "need terms"),
    ):
        with pytest.raises(ValueError, match=re.escape(says)):
            Products.of(DOMAIN, [wrong])
    with pytest.raises(ValueError, match=re.escape("need (5,)")):
        TableQueries.of(DOMAIN, [(("a",), [1, 2])])
    with pytest.raises(ValueError, match="finite"):
        TableQueries.of(DOMAIN, [(("d",), [1, np.inf])])
    with pytest.raises(ValueError, match="k = 5"):
        Marginals(5).on(DOMAIN)
    with pytest.raises(ValueError, match="do not fit"):
        RandomMarginalRanges(5, 7).on(DOMAIN)
    with pytest.raises(ValueError, match="no form as linear queries"):
        linear_queries(RandomSubsets(3, 2), DOMAIN)


def test_recipes_draw_the_same_everywhere_and_what_they_say():
    for recipe in (RandomMarginalRanges(400, 2, 5), RandomTables(400, 2, 5), Marginals(2)):
        assert repr(recipe.on(PAPER)) == repr(recipe.on(PAPER)) and hash(recipe)
        assert eval(repr(recipe)) == recipe
    queries = RandomMarginalRanges(20_000, 1, 0).on(Domain(("x",), (3,)))
    covered = np.stack(
        [queries.sums(Domain(("x",), (3,)), np.array([k]), np.ones(1)) for k in (0, 1, 2)]
    )
    kinds, many = np.unique(covered, axis=1, return_counts=True)
    assert len(many) == 6 and np.abs(many / 20_000 - 1 / 6).max() < 0.015  # all intervals alike
    tables = RandomTables(300, 1, 0).on(PAPER)
    assert 0.45 < np.mean([t.mean() for _, t, _ in tables.numbered_groups()]) < 0.55


def test_boxes_and_keys_become_products():
    boxes = Boxes([[0, 0, 0, 0], [1, 0, 2, 0]], [[5, 3, 4, 2], [3, 3, 3, 1]])
    made = linear_queries(boxes, DOMAIN)
    assert (made.cells(DOMAIN) == boxes.cells(DOMAIN)).all()
    assert not made.which[0].any()  # everything is 1
    keys = np.random.default_rng(0).integers(0, PAPER.size, (2, 200))
    ranges = Ranges(*np.sort(keys, axis=0))
    made = linear_queries(ranges, PAPER)
    assert np.diff(made.offsets).max() <= 2 * 9 - 1
    np.testing.assert_allclose(made.cells(PAPER), ranges.cells(PAPER), rtol=1e-9)


@pytest.mark.slow
def test_laplace_queries_on_real_numbers_lie_on_a_grid_and_are_unbiased():
    """Seeded: never by chance; sees a bias of a quarter of a standard deviation, a spread off by 20 %."""
    table = SparseTable.from_keys(DOMAIN, KEYS, np.arange(DOMAIN.size), Bound(2, 3))
    mechanism = LaplaceQueries(DP(0.5), signed())
    rng = np.random.default_rng(0)
    drawn = [mechanism(table, rng).estimate for _ in range(400)]
    values = np.stack([e.values for e in drawn])
    scale = mechanism.scale(DOMAIN, 6)
    step = grid_step(scale, signed().max_term)
    assert (values / step == np.rint(values / step)).all()
    assert drawn[0].variances == pytest.approx(2 * scale**2, rel=1e-4)
    z = (values - table.answer(signed())) / np.sqrt(drawn[0].variances)
    assert np.abs(z.mean(axis=0)).max() < 5 / 20 and z.std() == pytest.approx(1, rel=0.2)
    assert scale == pytest.approx(workload_sensitivity(signed(), DOMAIN) * 6 / 0.5)


def test_queries_that_nothing_moves_are_refused():
    table = SparseTable.from_keys(DOMAIN, KEYS, np.ones(DOMAIN.size), Bound())
    for queries in (Products.of(DOMAIN, []), Products.of(DOMAIN, [{"a": (2, 2)}])):
        with pytest.raises(ValueError, match=r"LaplaceQueries.workload .* need queries"):
            LaplaceQueries(DP(1.0), queries)(table)
    with pytest.raises(ValueError, match="workload = 3"):
        LaplaceQueries(DP(1.0), 3)
    with pytest.raises(ValueError, match="is not in"):
        LaplaceQueries(DP(1.0), Products.of(PAPER, [{"i": (0, 3)}]))(table)


def test_the_twin_has_the_papers_domains_and_dependence():
    twin = datasets.IPUMSTwin()
    table = twin.load()
    assert table.domain.shape == (79, 2, 17, 51, 9, 7, 6, 50, 50) and table.total == 500_000
    assert table.domain.size == 129_451_770_000 and table.truth_public
    assert 250_000 < len(table) < 420_000
    again = datasets.IPUMSTwin(seed=0).load()
    assert (again.keys == table.keys).all() and (again.counts == table.counts).all()

    def joint(*names):
        return table.project(names).dense() / table.total

    def shared(*names):
        p = joint(*names)
        apart = p.sum(axis=1, keepdims=True) * p.sum(axis=0)
        return float((p[p > 0] * np.log(p[p > 0] / apart[p > 0])).sum())

    ages = joint("Age")
    education = joint("Education")
    assert ages @ np.arange(16, 95) == pytest.approx(42.1, abs=0.3)
    assert education @ np.arange(1, 18) == pytest.approx(10.96, abs=0.1)
    assert joint("Birthplace")[0] == pytest.approx(0.86, abs=0.005)
    assert joint("Marital")[[0, 1, 5]] == pytest.approx([0.272, 0.585, 0.027], abs=0.01)
    idle = joint("Workclass", "Occupation", "Salary")
    assert idle[0, 0, 0] == pytest.approx(0.348, abs=0.01)
    assert idle[0].sum() == idle[0, 0, 0] and not idle[1:, 0].any() and not idle[1:, :, 0].any()
    for pair, low, high in (
        (("Occupation", "Salary"), 0.6, 0.75), (("Birthplace", "Race"), 0.27, 0.35),
        (("Age", "Marital"), 0.23, 0.31), (("Education", "Occupation"), 0.21, 0.28),
        (("Age", "Salary"), 0.19, 0.26), (("Gender", "Race"), 0, 0.001),
    ):  # fmt: skip
        assert low <= shared(*pair) <= high, pair


def test_census_income_has_the_nine_attributes():
    assert len(datasets.CensusIncome().domain.shape) == 9


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("count", [1, 2, 2**40])
def test_zeros_hide_no_factor_that_overflows(count):
    """A term of 0 whose other factor is huge would be NaN on some tables, and told apart."""
    domain = Domain(("a", "b"), (3, 4))
    with pytest.raises(ValueError, match="1e100"):
        Products.of(domain, [{"a": [1e308] * 3, "b": [0.0] * 4}, {}])
    queries = Products.of(domain, [{"a": [1e99] * 3, "b": [0.0] * 4}, {}])
    table = SparseTable.from_keys(domain, [0], [count], Bound(1, 1))
    assert not queries.integer_valued
    answers = table.answer(queries)
    assert answers.tolist() == [0, count]


def test_attributes_beyond_the_bits_of_a_word_are_attributes():
    names = (*(f"x{i}" for i in range(70)), "z")
    domain = Domain(names, (*(1,) * 70, 4))
    queries = Products.of(domain, [[(1000.0, {"z": {0}}), (-1.0, {})], {"z": {1}}])
    table = SparseTable.from_keys(domain, [1, 2], [5, 7], Bound(1, 1))
    assert table.answer(queries).tolist() == [-12, 5]
    assert queries.grid_units(domain, table.keys, table.counts, 1.0).tolist() == [-12, 5]
    assert workload_sensitivity(queries, domain) == 999
