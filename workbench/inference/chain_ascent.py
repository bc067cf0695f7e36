"""Averaged stochastic ascent of the dual of maximum entropy, where cells are too many to lay out.

Thousands of chains draw tuples at the present weights; whole conditionals are averaged, steps are
divided by each query's variance, and iterates are averaged. The variances are those at the stage's
start: were they the same draws' own, steps would not be 0 on average at the optimum.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import TYPE_CHECKING

import numpy as np

from workbench.estimates import Model
from workbench.estimates.gibbs import Chains
from workbench.inference.dual_problem import DualProblem

if TYPE_CHECKING:
    from tqdm import tqdm

_FIRST_STAGE = 50  # steps
_STEP_OF_STAGE = 3.0  # over the steepness and the root of how many times longer the stage is
_STEPS_A_PROPOSAL = 10
_STEPS_A_SETTLING = 8
_LEAST_SETTLING = 8  # sweeps
_SECONDS_TO_BAR = 0.5
_LEAST_MOVE = 1e-300


def ascend_dual(
    problem: DualProblem, count: int, steps: int, tolerance: float, rng: np.random.Generator
) -> Model:
    """The model at weights whose gap is small, or that are reached when the steps are done.

    In stages, each of twice as many steps as the one before, shorter by √2; weights are averaged over a
    stage's second half. Chains take turns in drawing attributes and in jumps to other tuples, as
    modes may be such that no draw of a single attribute connects them.
    """
    chains = Chains(problem.domain.shape, problem.prior, problem.sets)
    states = chains.draw_from_prior(count, rng)
    w = problem.with_fixed(np.zeros(len(problem.pi)))
    margins = problem.prior_margins()
    done = 0
    moves: list[float] = []  # of whole stages
    before = None
    length = _FIRST_STAGE
    chains.set_potentials(problem.potentials(w))
    chains.set_proposal(margins)
    with _progress_bar(steps) as bar:
        while True:
            whole = length <= steps - done
            length = min(length, steps - done)
            steepness = problem.steepness(states, rng)
            share = min(1.0, _STEP_OF_STAGE * sqrt(_FIRST_STAGE / length) / steepness)
            step = share / problem.variances(margins)
            mean = np.zeros_like(w)
            for i in range(length):
                sums = chains.sums()
                chains.jump(states, rng)
                chains.sweep(states, rng, sums)
                margins = chains.margins(sums)
                w = problem.ascend(w, margins, step)
                mean += w if 2 * i >= length or length == 1 else 0
                chains.set_potentials(problem.potentials(w))
                if i % _STEPS_A_PROPOSAL == _STEPS_A_PROPOSAL - 1:
                    chains.set_proposal(margins)
                bar.update()
            done += length
            averaged = max(1, length - (length + 1) // 2)  # its second half
            length *= 2
            w = mean / averaged
            potentials = problem.potentials(w)
            chains.set_potentials(potentials)
            chains.set_proposal(margins)
            settling = max(_LEAST_SETTLING, length // _STEPS_A_SETTLING)
            margins = settled_margins(chains, states, rng, settling)
            gap = problem.gap(w, margins)
            if before is not None:
                moves.append(divergence(*before, potentials, margins))
            if not whole:
                moves.clear()  # a shorter stage moves less, and says nothing
            before = (potentials, margins)
            bar.set_postfix_str(f"gap {gap:.3g} nats")
            if gap <= tolerance or done >= steps:
                break
    return problem.model(potentials, margins, False, gap, done, estimate_left(moves))


def divergence(potentials, margins, other_potentials, other_margins) -> float:
    """KL of two models both ways, which needs no normaliser; drawn margins add little, and on no side."""
    tables = zip(potentials, margins, other_potentials, other_margins, strict=True)
    return max(0.0, float(sum(((v - w) * (p - q)).sum() for v, p, w, q in tables)))


def estimate_left(moves: list[float]) -> float:
    """KL to where the model goes if its stages' moves go on shrinking as the last did, or by √½ if faster.

    Noise that twice the steps average shrinks by √½, slow progress less. Moves are divergences, so squares
    of distances, and add up at most along a line. Two say nothing where the last was the longer one.
    """
    if len(moves) < 2:
        return inf
    ratio = sqrt(max(0.5, moves[-1] / max(moves[-2], _LEAST_MOVE)))
    return inf if ratio >= 1 else moves[-1] / 2 * (ratio / (1 - ratio)) ** 2


def settled_margins(chains: Chains, states, rng, sweeps: int) -> list[np.ndarray]:
    """What the chains expect at weights that stay, after half as many sweeps."""
    for _ in range(sweeps // 2):
        chains.jump(states, rng)
        chains.sweep(states, rng)
    sums = chains.sums()
    for _ in range(sweeps):
        chains.jump(states, rng)
        chains.sweep(states, rng, sums)
    return chains.margins(sums)


def _progress_bar(steps: int) -> tqdm:
    """For people who watch."""
    from tqdm.auto import tqdm

    return tqdm(
        total=steps, desc="maximum entropy", unit="step", disable=None, delay=_SECONDS_TO_BAR
    )
