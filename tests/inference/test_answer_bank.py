"""A bank says what its own answers speak for: fits against slow ones, and the choice from answers alone."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize, nnls

from workbench import DP, Bound, Domain, Session, SparseTable
from workbench.estimates import NoisyAnswers
from workbench.inference import KernelPCA, product_prior
from workbench.inference.answer_bank import KERNEL, TREE, AnswerBank, Recalled
from workbench.inference.cross_validation import HeldOut
from workbench.inference.junction_tree import CalibratedTree
from workbench.inference.marginals import BankMarginals
from workbench.inference.markov_network import NetworkProblem
from workbench.inference.query_terms import MergedCodes
from workbench.mechanisms import LaplaceQueries
from workbench.queries import (
    Marginals,
    NamedMarginals,
    Products,
    RandomMarginalRanges,
    RandomTables,
    TableQueries,
    Together,
    linear_queries,
)

DOMAIN = Domain(("a", "b", "c"), (3, 2, 4))
NAMES = "abcdef"
BINARY = Domain(tuple(NAMES), (2,) * 6)
PAIRS = [*combinations(NAMES, 2)]
np.random.default_rng(5).shuffle(PAIRS)
PAIRS = [tuple(map(str, pair)) for pair in PAIRS]


def chained(n=4000, seed=0):
    """People whose attributes follow one another."""
    rng = np.random.default_rng(seed)
    codes = np.zeros((n, 6), int)
    codes[:, 0] = rng.random(n) < 0.4
    for k in range(1, 6):
        codes[:, k] = np.where(rng.random(n) < 0.8, codes[:, k - 1], rng.random(n) < 0.5)
    return SparseTable.from_keys(BINARY, BINARY.keys(codes), np.ones(n, int), Bound())


def bought(table, workload, epsilon=1.0, seed=0):
    return LaplaceQueries(DP(epsilon), workload)(table, np.random.default_rng(seed)).estimate


def small_history(seed=0):
    rng = np.random.default_rng(seed)
    queries = [{"a": (0, 2)}, {"a": {1}, "b": {0}}, {"b": {1}, "c": (1, 4)}, {}, {"c": {2}}]
    queries += [[{"a": {0}}, (-2.0, {"c": {1}})]]
    workload = Products.of(DOMAIN, queries)
    variances = rng.uniform(1, 9, 6)
    truth = rows_of(workload, DOMAIN) @ rng.multinomial(100, rng.dirichlet(np.ones(24)))
    return NoisyAnswers(DOMAIN, workload, truth + rng.normal(0, np.sqrt(variances)), variances)


def wide_table():
    wide = Domain(("x", "y"), (100_000, 2))
    return SparseTable.from_keys(wide, [5, 70_000], [3, 4], Bound(1, 1))


def rows_of(workload, domain):
    keys = np.arange(domain.size)
    return np.stack([workload.sums(domain, keys[i : i + 1], np.ones(1)) for i in keys], axis=1)


def test_a_network_is_the_minimum_of_what_it_says_that_it_minimises():
    history = small_history()
    prior = tuple(np.random.default_rng(1).dirichlet(np.ones(n) * 5) for n in DOMAIN.shape)
    f = rows_of(history.workload, DOMAIN)
    start = np.einsum("i,j,k->ijk", *prior).ravel()

    def loss(x):
        p = np.exp(x - x.max())
        p /= p.sum()
        residual = (history.values - 100 * f @ p) / np.sqrt(history.variances)
        divergence = float(p @ (np.log(p) - np.log(start)))
        slope = 7 * (np.log(p) - np.log(start)) - 100 * f.T @ (
            residual / np.sqrt(history.variances)
        )
        return 0.5 * residual @ residual + 7 * divergence, p * (slope - p @ slope)

    best = minimize(loss, np.log(start), jac=True, options={"gtol": 1e-9, "maxiter": 5000})
    p = np.exp(best.x - best.x.max())
    model = NetworkProblem.of(history, 100.0, prior, 2**17).fit(7.0).model
    expected = 100 * f @ (p / p.sum())
    near = 0.02 * np.sqrt(history.variances)
    assert np.abs(model.answer(history.workload) - expected).max() < 5 * near.max()
    assert model.answer(Products.of(DOMAIN, [{}]))[0] == pytest.approx(100)


def a_star_of_contradicting_tables():
    """Tables about one attribute of many codes, most of them of nearly nobody, under much noise."""
    star = Domain(("hub", "x", "y"), (20, 4, 5))
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.full(star.size, 0.05))
    table = SparseTable.from_keys(
        star, np.arange(star.size), rng.multinomial(5000, p), Bound(1, 1), truth_public=True
    )
    pairs = NamedMarginals((("hub", "x"), ("hub", "y")))
    return LaplaceQueries(DP(0.2), pairs)(table, rng).estimate


@pytest.mark.parametrize("strength", [1000.0, 10.0, 0.1])
def test_a_network_meets_its_optimum_at_cells_of_nobody(strength):
    """At a prior that weighs next to nothing no distribution has smaller squared residuals."""
    history = a_star_of_contradicting_tables()
    problem = NetworkProblem.of(history, 5000.0, None, 2**10)
    fit = problem.fit(strength)
    assert fit.converged
    f = rows_of(history.workload, history.domain)
    margins = problem.tree.calibrate(problem.dual.potentials(fit.weights)).margin((0, 1, 2))
    p = np.asarray(margins).ravel()
    gradient = f @ p - history.values / 5000 + strength * problem.dual.box * fit.weights
    assert np.abs(gradient / np.sqrt(problem.dual.box)).max() <= 0.02
    if strength < 1:
        rows = np.concatenate([f, np.full((1, f.shape[1]), 1e4)])  # which sums to the total
        least = nnls(rows, np.append(history.values, 1e4 * 5000))[0]
        squares = [((f @ x - history.values) ** 2).sum() for x in (least, 5000 * p)]
        assert squares[1] == pytest.approx(squares[0], rel=1e-3)


def test_where_one_path_of_priors_does_not_arrive_another_does():
    pair = Domain(("hub", "x"), (80, 30))
    rng = np.random.default_rng(5)
    counts = rng.multinomial(100_000, rng.dirichlet(np.full(pair.size, 0.02)))
    keys = np.flatnonzero(counts)
    table = SparseTable.from_keys(pair, keys, counts[keys], Bound(1, 1), truth_public=True)
    history = LaplaceQueries(DP(1.0), NamedMarginals((("hub", "x"),)))(table, rng).estimate
    problem = NetworkProblem.of(history, 1e5, None, 2**14)
    assert problem.fit(0.01).converged  # the first path ends at hundreds of deviations


def test_a_start_saves_steps_and_other_answers_are_met():
    history = a_star_of_contradicting_tables()
    problem = NetworkProblem.of(history, 5000.0, None, 2**10)
    fit = problem.fit(30.0)
    assert problem.fit(30.0, fit.weights).steps == 1 < fit.steps
    values = np.abs(history.values[::-1])  # cells that were empty are not
    used = np.arange(len(values)) % 3 > 0
    far = problem.fit(30.0, fit.weights, values, used)
    fresh = problem.fit(30.0, None, values, used)
    assert far.converged and fresh.converged and not far.weights[~used].any()
    assert far.model.answer(history.workload) == pytest.approx(
        fresh.model.answer(history.workload), abs=0.2 * np.sqrt(history.variances[0])
    )


def test_a_network_leaves_out_sets_until_its_tree_is_small_enough():
    pairs = NamedMarginals(tuple(PAIRS))
    history = bought(chained(), pairs, 50.0)
    whole = NetworkProblem.of(history, 4000.0, None, 2**10)
    thin = NetworkProblem.of(history, 4000.0, None, 20)
    assert whole.left_out == 0 and whole.tree.cells == 2**6
    assert thin.tree.cells <= 20 and thin.left_out > 0
    held = {"".join(sorted(BINARY.attributes[k] for k in axes)) for axes in thin.dual.sets}
    assert held >= {"ab", "bc", "cd", "de", "ef"}  # what tells most: the chain


@pytest.mark.parametrize("total", [None, 100.0])
def test_what_held_out_answers_miss_is_what_fits_to_the_others_miss(total):
    history = bought(chained(), RandomMarginalRanges(30, seed=2), 0.5)
    eigen = KernelPCA(1.0, total)(history).eigen
    held = HeldOut(eigen, history)
    folds = [np.array([0, 3, 7]), np.array([1])]
    missed = held.missed(200.0, folds)
    for fold in (*folds, np.array([0])):
        rest = np.setdiff1d(np.arange(30), fold)
        posterior = KernelPCA(200.0, total)(history[rest])
        values, errors = posterior.answer(history[fold].workload, error=True)
        deviations = np.sqrt(history.variances[fold])
        residuals = (history.values[fold] - values) / deviations
        if not (len(fold) == 1 and fold[0] == 0):
            assert missed.residuals[fold] == pytest.approx(residuals, rel=1e-6)
            variances = 1 + (errors / deviations) ** 2
            assert missed.variances[fold] == pytest.approx(variances, rel=1e-6)
    assert np.isnan(missed.residuals[2])


@pytest.mark.slow
def test_unbiased_risks_are_so_on_average():
    table = chained()
    workload = Marginals(2)
    truth = table.answer(workload)
    alphas = np.array([30.0, 300.0])
    gaps = []
    for seed in range(60):
        history = bought(table, workload, 0.5, seed)
        eigen = KernelPCA(1.0, 4000.0)(history).eigen
        told = HeldOut(eigen, history).unbiased_risks(alphas)
        answers = eigen.project(workload)
        true = [((answers.values(a) - truth) ** 2).mean() for a in alphas]
        gaps.append(told - true)
    z = np.mean(gaps, axis=0) / (np.std(gaps, axis=0) / np.sqrt(len(gaps)))
    assert np.abs(z).max() < 6


@pytest.mark.parametrize("alpha", [3.0, 300.0, np.inf])
@pytest.mark.parametrize("total", [None, 4000.0])
def test_answers_by_sets_are_those_query_by_query(alpha, total, monkeypatch):
    monkeypatch.setattr("workbench.inference.kernel_pca._FEW_SHARED", 1)
    table = chained()
    past = Together(
        (
            linear_queries(RandomMarginalRanges(40, seed=1), BINARY),
            linear_queries(RandomTables(9, seed=2), BINARY),
            linear_queries(Marginals(2), BINARY),
        )
    )
    answers = bought(table, past, 0.5)
    marginals = bought(table, Marginals(1), 0.5)
    posterior = KernelPCA(alpha, total, product_prior(marginals))(answers)
    asked = Products.of(
        BINARY,
        [{}, {"a": {0}}, {"a": {1}, "d": {0}}, (2.0, {"a": {1}, "b": {1}, "c": {0}})]
        + [[{"e": {0}}, (-1.0, {"f": {0}})]],
    )
    for workload in (asked, linear_queries(Marginals(3), BINARY)):
        eigen = posterior.eigen
        projected = eigen.project(workload)
        found = posterior.errors_in_parts(workload)
        assert found.values == pytest.approx(projected.values(alpha), rel=1e-7, abs=1e-5)
        assert found.noise == pytest.approx(projected.sampling(alpha), rel=1e-5, abs=1e-5)
        errors = np.hypot(found.noise, found.model)
        expected = np.hypot(projected.sampling(alpha), projected.bias(alpha))
        same = np.isfinite(expected)
        assert np.array_equal(np.isfinite(errors), same)
        assert errors[same] == pytest.approx(expected[same], rel=1e-5, abs=1e-4)
        values = posterior.answer(workload)
        assert values == pytest.approx(projected.values(alpha), rel=1e-7, abs=1e-5)


def test_recall_is_told_by_the_bank_alone(tmp_path):
    table = chained()
    path = tmp_path / "bank.sqlite"
    asked = NamedMarginals(tuple(PAIRS[5:8]))
    with Session.open(path, table, DP(9.0), total=4000.0) as session:
        session.ask(Marginals(1), 1.0)
        session.ask(NamedMarginals(tuple(PAIRS[:5])), 4.0)
        first = session.bank.recall(asked)
    closed = session.bank.recall(asked)
    again = Session.open(path).bank.recall(asked)
    for other in (closed, again):
        assert np.array_equal(other.values, first.values)
        assert np.array_equal(other.errors, first.errors)
        assert (other.by, other.why) == (first.by, first.why)
    values, errors = again
    assert values is again.values and errors is again.errors
    assert session.bank.recall(asked, error=False).errors is None
    for options in ({"by": KERNEL}, {"by": TREE}, {"alpha": 30.0}):
        with Session.open(path, table) as session:
            own = session.bank.recall(asked, **options)
        for bank in (session.bank, Session.open(path).bank):
            other = bank.recall(asked, **options)
            assert np.array_equal(other.values, own.values)
            assert np.array_equal(other.errors, own.errors)
            assert (other.by, other.why) == (own.by, own.why)
        assert own.by == options.get("by", KERNEL)
    with pytest.raises(ValueError, match="by = 'magic'"):
        session.bank.recall(asked, by="magic")
    with pytest.raises(ValueError, match="alpha"):
        session.bank.recall(asked, 3.0, by=TREE)
    price = session.bank.price(asked, 1e3)
    assert "kernel PCA" in price.why


@pytest.mark.slow
def test_new_pairs_are_recalled_better_than_by_the_worst_and_bars_cover():
    table = chained(20_000)
    history = NoisyAnswers.history(
        [
            bought(table, Marginals(1), 0.2),
            bought(table, NamedMarginals(tuple(PAIRS[:10])), 1.0, 1),
        ]
    )
    asked = NamedMarginals(tuple(PAIRS[10:]))
    truth = table.answer(asked)
    bank = AnswerBank(history, 20_000.0)
    errors = {}
    for by in (None, KERNEL, TREE):
        recalled = bank.recall(asked, by)
        errors[by] = np.sqrt(np.mean((recalled.values - truth) ** 2))
        assert np.mean(np.abs(recalled.values - truth) <= 2 * recalled.errors) >= 0.75
    assert errors[None] <= 1.05 * min(errors.values())


def test_an_error_bar_includes_the_error_of_an_estimated_total():
    history = bought(chained(), NamedMarginals(tuple(PAIRS[:2])), 0.1)
    everybody = Products.of(BINARY, [{}])
    bank = AnswerBank(history)
    (bar,) = bank._noise_of_tree(everybody)
    assert bar == pytest.approx(bank.marginals.error, rel=0.01) and bar > 30
    assert AnswerBank(history, 4000.0)._noise_of_tree(everybody) < 0.01


@pytest.mark.slow
def test_bars_cover_where_the_total_is_estimated():
    """The seeds are fixed. Bars of a total that is taken as known hold in none to three of 20 banks."""
    everybody = Products.of(BINARY, [{}])
    held = 0
    for seed in range(20):
        history = bought(chained(), NamedMarginals(tuple(PAIRS[:2])), 0.1, seed)
        recalled = AnswerBank(history).recall(everybody, TREE)
        held += abs(recalled.values[0] - 4000) <= 2 * recalled.errors[0]
    assert held >= 14


def test_an_impossible_total_is_told_and_one_answer_is_enough():
    table = chained()
    history = bought(table, Marginals(1), 5.0)
    assert not BankMarginals(history, 4000.0).complaint
    recalled = AnswerBank(history, 9000.0).recall(Marginals(1))
    assert "9000 does not fit" in recalled.why
    assert not BankMarginals(history).complaint
    values = history.values + np.where(np.arange(12) < 2, 500.0, 0.0)  # of one table
    other = NoisyAnswers(BINARY, history.workload, values, history.variances)
    assert "contradict each other" in BankMarginals(other).complaint
    one = AnswerBank(history[np.array([0])], 4000.0).recall(Marginals(1))
    assert one.by == KERNEL and "too few" in one.why and np.isfinite(one.errors).all()
    alone = AnswerBank(history[np.array([0])]).recall(Marginals(1))
    assert np.isinf(alone.errors).any()


def test_one_rule_says_which_method_answers_and_by_overrules_it(monkeypatch):
    pairs = bought(chained(), NamedMarginals(tuple(PAIRS[:8])), 5.0)
    ranges = bought(chained(), Products.of(BINARY, [{name: {1}} for name in NAMES]), 5.0)
    assert AnswerBank(pairs, 4000.0).choose() == (TREE, "a junction tree contains all answers")
    assert AnswerBank(pairs).choose()[0] == TREE  # the tables say how many there are
    assert AnswerBank(ranges).choose() == (KERNEL, "the number of tuples is unknown")
    few = AnswerBank(ranges[np.arange(4)], 4000.0)
    assert few.choose() == (KERNEL, "there are too few answers to compare the methods")
    for by in (KERNEL, TREE):
        recalled = AnswerBank(pairs, 4000.0).recall(Marginals(1), by)
        assert recalled.by == by and not recalled.noise_only
    with pytest.raises(ValueError, match="needs the number of tuples"):
        AnswerBank(ranges).recall(Marginals(1), TREE)
    monkeypatch.setattr("workbench.inference.answer_bank._TREE_CELLS", 16)
    left_out = AnswerBank(pairs, 4000.0)
    assert left_out.network.left_out and left_out.choose()[0] == KERNEL


def test_a_fit_that_stops_too_early_says_so(monkeypatch):
    monkeypatch.setattr("workbench.inference.markov_network._STEPS", 1)
    monkeypatch.setattr("workbench.inference.markov_network._PRODUCTS", 1)
    history = bought(chained(), NamedMarginals(tuple(PAIRS[:3])), 5.0)
    recalled = AnswerBank(history, 4000.0).recall(Marginals(1), TREE, error=False)
    assert "did not converge" in recalled.why


def test_a_bank_whose_trees_take_too_many_products_says_so(monkeypatch):
    _, asked, history = ranges_of_many_codes(1000, [1e-6, 1.0, 1e3])
    for name in ("_MOST_PRODUCTS", "_FEWEST_PRODUCTS"):
        monkeypatch.setattr(f"workbench.inference.markov_network.{name}", 7)
    taken = []
    derivatives = CalibratedTree.derivatives

    def counted(tree, directions):
        taken[-1] += 1
        return derivatives(tree, directions)

    fit = NetworkProblem.fit

    def counted_fit(*args, **kwargs):
        taken.append(0)
        return fit(*args, **kwargs)

    monkeypatch.setattr(CalibratedTree, "derivatives", counted)
    monkeypatch.setattr(NetworkProblem, "fit", counted_fit)
    bank = AnswerBank(history, 3000.0)
    why = bank.recall(asked, TREE).why
    assert max(taken) == 7
    assert "the fit did not converge" in why
    assert "17 of their fits stopped early" in why  # five folds, twelve of noise


def test_bars_of_attributes_that_were_never_bought_together_are_cautious():
    table = chained()
    history = bought(table, Marginals(1), 5.0)
    asked = linear_queries(NamedMarginals((("a", "b"),)), BINARY)
    truth = table.answer(asked)
    recalled = AnswerBank(history, 4000.0).recall(asked)
    assert (
        np.abs(recalled.values - truth) > 100
    ).all()  # a and b hang together; the bank cannot know
    assert (np.abs(recalled.values - truth) < 2 * recalled.errors).all()
    assert "never bought together" in recalled.why
    assert np.isinf(AnswerBank(history).recall(asked).errors).all()


def test_an_attribute_of_a_hundred_thousand_values_is_asked_by_ranges():
    wide = Domain(("x", "y"), (100_000, 2))
    ends = np.linspace(0, 100_000, 41).astype(int).tolist()
    bought_ranges = [{"x": (lo, hi)} for lo, hi in zip(ends, ends[1:], strict=False)]
    queries = Products.of(wide, [*bought_ranges, {"y": {0}}, {"y": {1}}])
    history = NoisyAnswers(wide, queries, np.array([100.0] * 40 + [1500, 2500]), 2.0)
    asked = Products.of(wide, [{"x": (0, 25_000)}, {"x": (0, 50_000), "y": {0}}])
    recalled = AnswerBank(history, 4000.0).recall(asked)
    assert recalled.values == pytest.approx([1000, 750], rel=0.02)
    with pytest.raises(ValueError, match="every code of 'x'"):
        linear_queries(Marginals(1), wide)
    assert len(linear_queries(NamedMarginals((("y",),)), wide)) == 2


def ranges_of_many_codes(codes, epsilons, ranges=30, seed=0):
    """A table of one attribute of many codes beside one of two; its ranges, and answers at each ε."""
    wide = Domain(("x", "y"), (codes, 2))
    rng = np.random.default_rng(seed)
    table = SparseTable.from_keys(
        wide, rng.integers(0, wide.size, 3000), np.ones(3000, int), Bound(1, 1)
    )
    ends = np.sort(rng.integers(0, codes, (ranges, 2)), axis=1).tolist()
    asked = Products.of(wide, [{"x": (lo, hi + 1)} for lo, hi in ends])
    bought = [LaplaceQueries(DP(epsilon), asked)(table, rng).estimate for epsilon in epsilons]
    return table, asked, NoisyAnswers.history(bought)


def test_codes_that_no_answer_tells_apart_are_one_to_a_tree(monkeypatch):
    """Ranges, cells of pairs and whole tables: the same model as over all codes, in fewer cells."""
    domain = Domain(("x", "y", "z"), (40, 6, 3))
    rng = np.random.default_rng(3)
    tables = np.repeat(rng.random((4, 5, 3)), [8, 8, 2, 20, 2], axis=1)
    queries = Together(
        (
            Products.of(domain, [{"x": (0, 8)}, {"x": (16, 38)}, {"y": {1}, "z": {2}}, {}]),
            Products.of(
                domain, [{"x": (2, 18), "z": (0, 2)}, [{"x": {39}}, (2.0, {"y": (2, 5)})]]
            ),
            TableQueries(((("x", "z"), tables),)),
        )
    )
    history = NoisyAnswers(domain, queries, 300 * rng.random(10), rng.uniform(20, 90, 10))
    prior = tuple(rng.dirichlet(np.full(n, 5.0)) for n in domain.shape)
    merged = NetworkProblem.of(history, 1000.0, prior, 2**14)
    assert merged.dual.domain.shape == (7, 4, 3)
    monkeypatch.setattr(MergedCodes, "merges", False)
    plain = NetworkProblem.of(history, 1000.0, prior, 2**14)
    assert plain.dual.domain.shape == domain.shape
    models = [problem.fit(20.0, near=1e-6).model for problem in (plain,)]
    monkeypatch.undo()
    models.append(merged.fit(20.0, near=1e-6).model)
    asked = linear_queries(NamedMarginals((("x", "y"), ("z",))), domain)
    expected, found = (model.answer(asked) for model in models)
    assert found == pytest.approx(expected, abs=1e-3)
    for theirs, own in zip(models[0].margins, models[1].margins, strict=True):
        assert own == pytest.approx(theirs, abs=1e-6)


@pytest.mark.slow
def test_ranges_of_many_codes_at_very_different_epsilon_are_judged():
    """An ε of 10⁻⁶ hides nothing that others tell, and no array of a tree is as long as the codes."""
    table, asked, history = ranges_of_many_codes(100_000, [1e-6, 1.0, 1e3])
    bank = AnswerBank(history, 3000.0)
    assert bank.network.tree.cells <= 61
    recalled = bank.recall(asked)
    truth = table.answer(asked)
    assert (
        np.abs(recalled.values - truth).max() < 3
    )  # by the first answers alone it was hundreds
    assert recalled.errors.max() < 10
    assert np.mean(np.abs(recalled.values - truth) <= 2 * recalled.errors) > 0.8


@pytest.mark.slow
def test_pairs_of_attributes_of_a_hundred_thousand_values_are_recalled():
    """10¹⁰ cells of both together are never laid out."""
    wide = Domain(("x", "y", "z"), (100_000, 100_000, 3))
    bought_ranges = [{"x": (0, 50_000)}, {"y": (0, 30_000)}, {"z": {0}}]
    bought_ranges += [{"x": (0, 50_000), "y": (0, 10_000 * k)} for k in range(1, 6)]
    values = np.array([2000.0, 1200, 1300, 200, 400, 600, 800, 1000])
    history = NoisyAnswers(wide, Products.of(wide, bought_ranges), values, 2.0)
    bank = AnswerBank(history, 4000.0)
    assert bank.network.rows.tolist() == [0, 2]  # beside x there is no room for y
    asked = Products.of(wide, [{"x": (0, 50_000), "y": (0, 20_000)}])
    for by in (None, KERNEL):
        assert bank.recall(asked, by).values == pytest.approx([400], rel=0.2)


def test_more_answers_than_a_matrix_holds_are_left_to_the_tree(monkeypatch):
    monkeypatch.setattr(AnswerBank, "most_answers", 10)
    history = bought(chained(), Marginals(1), 5.0)
    bank = AnswerBank(history, 4000.0)
    recalled = bank.recall(Marginals(1))
    assert recalled.by == TREE and recalled.noise_only and "noise only" in recalled.why
    assert np.abs(recalled.values - history.values).max() < 20
    with pytest.raises(ValueError, match="has 12 answers, and at most 10"):
        bank.recall(Marginals(1), KERNEL)


def test_no_matrix_of_too_many_answers_is_made_at_an_alpha_or_for_a_price(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(AnswerBank, "most_answers", 10)
    session = Session.open(tmp_path / "s", chained(), DP(9.0), total=4000.0)
    session.ask(Marginals(1), 1.0)
    with pytest.raises(ValueError, match="has 12 answers, and at most 10"):
        session.bank.recall(Marginals(1), alpha=3.0)
    for alpha in (None, 3.0):
        with pytest.raises(ValueError, match="has 12 answers, and at most 10"):
            session.bank.price(Marginals(1), error=1.0, alpha=alpha)
    assert session.bank.recall(Marginals(1)).by == TREE
    session = Session.open(tmp_path / "wide", wide_table(), DP(9.0))
    session.ask([{"x": (0, 50_000 + i)} for i in range(11)], 1.0)
    with pytest.raises(ValueError, match="has 11 answers, and at most 10"):
        session.bank.recall([{"x": {3}}])


@pytest.mark.parametrize("alpha", [None, 3.0])
def test_a_question_that_was_asked_more_often_than_a_matrix_holds_is_recalled(
    alpha, tmp_path, monkeypatch
):
    """Found by killing: no total, more cells than answers, and one question again and again."""
    table = SparseTable.from_keys(Domain(("x", "y"), (40, 40)), [1, 5, 900], [5, 2, 9], Bound())
    session = Session.open(tmp_path / "s", table, DP(9.0))
    for _ in range(4):
        session.ask(Marginals(1), 1.0)
    monkeypatch.setattr(AnswerBank, "most_answers", 319)
    merged = session.bank.recall(Marginals(1), alpha)
    monkeypatch.setattr(AnswerBank, "most_answers", 80)
    again = Session.open(tmp_path / "s").bank.recall(Marginals(1), alpha)
    assert merged.by == again.by and (merged.values == again.values).all()
    session.ask([{"x": (0, 3)}], 1.0)
    if alpha is not None:
        with pytest.raises(ValueError, match="has 81 answers, and at most 80"):
            session.bank.recall(Marginals(1), alpha)
    means = session.bank.answers.values[:320].reshape(4, 80).mean(0)
    assert np.abs(merged.values - means).max() < 30


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1e-6, 1e3])
def test_extreme_noise_is_survived(epsilon):
    table = chained(500).project(list("abcd"))
    history = bought(table, Marginals(2), epsilon)
    for total in (None, 500.0):
        recalled = AnswerBank(history, total).recall(Marginals(3))
        assert np.isfinite(recalled.values).all() and not np.isnan(recalled.errors).any()
        if total is not None:
            truth = table.answer(Marginals(3))
            assert recalled.errors.max() <= total / 2
            assert np.mean(np.abs(recalled.values - truth) <= 2 * recalled.errors + 1e-9) > 0.85
            assert (
                np.abs(recalled.values - truth).mean() < 75
            )  # noise would be 200 off, 62.5 is even


def test_a_bar_that_nobody_knows_is_infinite():
    assert Recalled([1.0, 2.0], [np.nan, 3.0], "maximum entropy", "").errors.tolist() == [
        np.inf,
        3.0,
    ]
