from dataclasses import replace

import numpy as np
import pytest

from workbench import Domain, Products
from workbench.estimates import NoisyAnswers
from workbench.inference import dual_problem, maximum_entropy
from workbench.inference.dual_problem import DualProblem, SampledCovariance, sampled_step

DOMAIN = Domain(("a", "b", "c"), (3, 4, 5))
CODES = np.stack(np.unravel_index(np.arange(60), DOMAIN.shape), axis=1)


def problem_of(count: int, alpha: float, seed: int = 0) -> tuple[DualProblem, np.ndarray]:
    """A problem of weighted queries about one to three attributes, and their rows on all cells."""
    rng = np.random.default_rng(seed)
    factors = [[rng.normal(size=n) for n in DOMAIN.shape] for _ in range(count)]
    uses = [(0,), (1, 2), (0, 1, 2), (0, 2)]
    queries = []
    rows = np.ones((count, 60))
    for i, own in enumerate(factors):
        axes = uses[i % len(uses)]
        queries.append({DOMAIN.attributes[k]: own[k] for k in axes})
        for k in axes:
            rows[i] *= own[k][CODES[:, k]]
    workload = Products.of(DOMAIN, queries)
    times = rng.normal(size=count)
    workload = replace(workload, times=times)
    rows *= times[:, None]
    truth = rng.dirichlet(np.ones(60))
    answers = NoisyAnswers(DOMAIN, workload, 1000 * rows @ truth, 1.0)
    return DualProblem.of(answers, 1000.0, alpha, None, False), rows


def test_terms_are_never_laid_out_and_say_the_same():
    problem, rows = problem_of(9, 1.0)
    p = np.random.default_rng(1).dirichlet(np.ones(60)).reshape(DOMAIN.shape)
    margins = [p.sum(axis=tuple({0, 1, 2} - {*axes})) for axes in problem.sets]
    w = np.random.default_rng(2).normal(size=9)
    total = np.zeros(60)
    for axes, table in zip(problem.sets, problem.potentials(w), strict=True):
        total += table[tuple(CODES[:, k] for k in axes)]
    assert total == pytest.approx(w @ rows)
    assert problem.means(margins) == pytest.approx(rows @ p.ravel())
    assert problem.mean_squares(margins) == pytest.approx(rows**2 @ p.ravel())
    for part in problem.terms:
        low, high = part.bounds()
        assert low == pytest.approx(part.rows.min(1)) and high == pytest.approx(
            part.rows.max(1)
        )


def test_products_with_the_covariance_are_those_of_the_tuples():
    problem, rows = problem_of(12, 1.0)
    at = np.random.default_rng(0).integers(60, size=500)
    covariance = SampledCovariance(problem, CODES[at])
    exact = np.cov(rows[:, at], bias=True)
    v = np.random.default_rng(1).normal(size=12)
    assert covariance @ v == pytest.approx(exact @ v)


def step_from_uniform(problem, damping):
    """Weights and rise of a step from weights of 0, of tuples that have each cell once."""
    p = np.full(DOMAIN.shape, 1 / 60)
    margins = [p.sum(axis=tuple({0, 1, 2} - {*axes})) for axes in problem.sets]
    spread = problem.variances_or_residuals(margins)
    covariance = SampledCovariance(problem, CODES)
    return *sampled_step(problem, np.zeros(12), margins, covariance, damping), spread


@pytest.mark.parametrize(("damping", "alpha"), [(0.02, 3e-4), (5.0, 2e-5)])
def test_a_step_ends_at_the_top_of_the_estimate_in_the_box(damping, alpha, monkeypatch):
    """No weight inside the box has any slope left, and at its side the slope points outwards."""
    monkeypatch.setitem(dual_problem._OPTIONS, "ftol", 1e-12)
    problem, rows = problem_of(12, alpha)
    reached, _, spread = step_from_uniform(problem, damping)
    centred = rows - rows.mean(axis=1, keepdims=True)
    x = reached @ centred
    slope = problem.pi - rows.mean(axis=1) - damping * spread * reached
    slope -= centred @ np.where(x > 0, np.expm1(x), x) / 60
    at_side = np.abs(reached) >= problem.box * (1 - 1e-12)
    assert 0 < at_side.sum() < 12 and (np.abs(reached) <= problem.box).all()
    assert np.abs(slope / np.sqrt(spread))[~at_side].max() < 1e-4
    assert (slope[at_side] * reached[at_side] > 0).all()


@pytest.mark.parametrize("alpha", [2e-5, 3e-4, 3e-3])
def test_a_step_never_promises_too_much(alpha):
    """Tuples that have each cell once are no sample: what a step says that it rises, it does."""
    problem, rows = problem_of(12, alpha)
    reached, promised, _ = step_from_uniform(problem, 0.1)
    rise = reached @ problem.pi - np.log(np.mean(np.exp(reached @ rows)))
    assert 0.3 * rise < promised <= rise


def test_a_step_moves_the_model_by_a_nat_at_most():
    problem, rows = problem_of(12, 1000.0)
    problem = replace(problem, pi=20 * problem.pi)
    reached, *_ = step_from_uniform(problem, 1e-6)
    assert reached @ np.cov(rows, bias=True) @ reached / 2 == pytest.approx(1.0)


def test_a_stage_that_ends_far_below_is_gone_back_on(monkeypatch):
    """Steps into corners of the box are refused, however many: the weights before them are returned."""
    problem, _ = problem_of(12, 0.0003)

    def astray(problem, w, margins, covariance, damping):
        dampings.append(damping)
        return np.where(problem.pi > problem.means(margins), -problem.box, problem.box), 0.0

    dampings: list[float] = []
    monkeypatch.setattr(maximum_entropy, "sampled_step", astray)
    rng = np.random.default_rng(0)
    model = maximum_entropy.ascend_dual(problem, 256, 1200, 0.0, rng)
    assert dampings == [2.0, 2.0, 2.0] and model.steps == 1200  # after 150, 400 and 850
    assert model.gap < 0.3 * problem.gap(np.zeros(12), problem.prior_margins())
    assert model.lacks == model.gap  # refused moves tell nothing


def test_a_later_stage_that_ends_far_below_is_tried_with_more_damping(monkeypatch):
    problem, _ = problem_of(12, 0.0003)
    right = maximum_entropy.sampled_step
    dampings: list[float] = []

    def astray_later(problem, w, margins, covariance, damping):
        dampings.append(damping)
        if len(dampings) == 1:
            return right(problem, w, margins, covariance, damping)
        return np.where(problem.pi > problem.means(margins), -problem.box, problem.box), 0.0

    monkeypatch.setattr(maximum_entropy, "sampled_step", astray_later)
    model = maximum_entropy.ascend_dual(problem, 256, 800, 0.0, np.random.default_rng(0))
    assert dampings == [2.0, *(0.25 * 8.0**i for i in range(9))] and model.lacks == model.gap


def test_damped_moves_do_not_say_that_the_top_is_near(monkeypatch):
    """Stages that hardly move, as they are damped: what is lacked is the gap, until damping is least."""
    problem, _ = problem_of(12, 0.0003)
    monkeypatch.setattr(maximum_entropy, "sampled_step", lambda problem, w, *_: (w, 0.0))
    monkeypatch.setattr(maximum_entropy, "_LESS_DAMPING", 1.0)
    model = maximum_entropy.ascend_dual(problem, 256, 1200, 0.0, np.random.default_rng(0))
    assert model.lacks == model.gap > 0


def test_covariances_of_too_few_tuples_are_not_used(monkeypatch):
    problem, _ = problem_of(12, 0.0003)
    monkeypatch.setattr(maximum_entropy, "_MOST_TUPLES", 59)  # 5 a query are 60
    monkeypatch.setattr(maximum_entropy, "sampled_step", None)
    model = maximum_entropy.ascend_dual(problem, 256, 400, 0.0, np.random.default_rng(0))
    assert model.steps == 400 and model.gap < problem.gap(np.zeros(12), problem.prior_margins())
