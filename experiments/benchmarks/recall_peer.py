"""Benchmark of our junction trees, compared with Private-PGM (the package `mbi`). Both get the same noisy
tables, the same total and the same questions.

Ours is a Markov network with a prior that weighs as much as one record. Theirs is least squares over
distributions, which ours approaches if the prior becomes weaker. Ours runs until residuals are a fiftieth of
the noise, and theirs for a stated number of steps. The sum of squared residuals, in units of the noise, says
which fit is closer to the answers. Theirs is compiled during the first call, which is timed separately. A
bank with other sets of attributes must be compiled again. The last case uses the marginals that our AIM
chose, measured once more, all with the same noise.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from experiments.benchmarks._timing import (
    at_most,
    compared,
    format_seconds,
    median_seconds,
    once,
    row,
)
from experiments.benchmarks.recall import TEN, TWIN, yes_or_no
from workbench import DP, ZCDP, SparseTable
from workbench.datasets import Adult
from workbench.inference.markov_network import NetworkProblem
from workbench.mechanisms import AIM, LaplaceQueries
from workbench.mechanisms.microdata import names_of
from workbench.queries import Marginals, NamedMarginals
from workbench.trials import first_available

EPSILON = 1.0
RHO = ZCDP.within(DP(1.0, 1e-9))  # of AIM
STRENGTH = 1.0  # tuples
STEPS = 1000
APART = 0.05  # of the total variation that noise makes


def main():
    """Return the rows of the table, for several cases. There are no rows if `mbi` is not installed."""
    try:
        import mbi  # noqa: F401
    except ImportError:
        return []
    data = first_available(Adult(TEN), TWIN)
    source = "Adult" if data != TWIN else "simulated people in place of Adult"
    table = data.load()
    small = table.project(table.domain.attributes[:7])
    hub = table.domain.attributes[int(np.argmax(table.domain.shape))]
    bits = yes_or_no(table)
    chain = [*zip(bits.domain.attributes, bits.domain.attributes[1:], strict=False)]
    star = [(small.domain.attributes[0], name) for name in small.domain.attributes[1:]]
    wide = [(hub, name) for name in table.domain.attributes if name != hub]
    loops = [*chain, *zip(bits.domain.attributes, bits.domain.attributes[3:], strict=False)]
    cases = {
        f"16 bits of {source}, a chain of 15 pairs": (bits, chain),
        f"16 bits of {source}, 28 pairs with loops": (bits, loops),
        f"7 attributes of {source}, a star of 6 pairs": (small, star),
        f"{source}, a star of 9 pairs around one attribute": (table, wide),
        f"7 attributes of {source}, the marginals that AIM chose": (small, chosen(small)),
    }
    return [r for name, case in cases.items() for r in rows_of(name, *case)]


def chosen(table: SparseTable) -> list[tuple[str, ...]]:
    """Return the sets of attributes of the marginals that AIM measures, without sets that are part of another
    one.
    """
    sets = AIM(RHO, Marginals(2))(table, np.random.default_rng(0)).estimate.sets
    largest = [s for s in sets if not any({*s} < {*other} for other in sets)]
    return [names_of(axes, table.domain) for axes in largest]


def rows_of(name: str, table: SparseTable, pairs: list[tuple[str, ...]]) -> list[dict]:
    """Return rows with the times of both methods, and with the distances between their answers, on pairs and
    on triples that nobody paid for.
    """
    import jax

    jax.config.update("jax_enable_x64", True)
    from mbi import Domain as TheirDomain
    from mbi import LinearMeasurement
    from mbi.estimation import MirrorDescent

    pairs = [tuple(map(str, pair)) for pair in pairs]
    bought = NamedMarginals(tuple(pairs))
    answers = LaplaceQueries(DP(EPSILON), bought)(table, np.random.default_rng(0)).estimate
    total = float(table.total)
    sizes = [table.domain.project(pair).size for pair in pairs]
    parts = np.split(answers.values, np.cumsum(sizes)[:-1])
    deviation = float(answers.variances[0]) ** 0.5
    domain = TheirDomain(table.domain.attributes, table.domain.shape)
    measured = [
        LinearMeasurement(values, pair, stddev=deviation)
        for pair, values in zip(pairs, parts, strict=True)
    ]
    some = [*combinations(table.domain.attributes, 3)]
    some = [t for t in some if table.domain.project(t).size <= 5000][:20]
    asked = NamedMarginals(tuple(tuple(map(str, t)) for t in some))

    def ours():
        return NetworkProblem.of(answers, total, None, 2**17).fit(STRENGTH).model

    def theirs():
        return MirrorDescent().estimate(domain, measured, total, iters=STEPS)

    def theirs_of(model, sets) -> np.ndarray:
        return np.concatenate([np.asarray(model.project(s).datavector()) for s in sets])

    compiled, _ = once(theirs)
    seconds, their_seconds = median_seconds(ours, theirs, repeat=3)
    mine = ours()
    other = theirs()
    own = mine.answer(bought)
    their = theirs_of(other, pairs)
    losses = [float((((x - answers.values) / deviation) ** 2).sum()) for x in (own, their)]
    apart = float(
        np.abs(mine.answer(asked) - theirs_of(other, some)).sum() / 2 / total / len(some)
    )
    truth = table.answer(asked)
    off = float(np.abs(mine.answer(asked) - truth).sum() / 2 / total / len(some))
    return [
        compared(name, seconds, their_seconds, f"mbi, first {format_seconds(compiled)}, then"),
        row(
            "… squared residuals, in units of the noise",
            f"{losses[0]:.5g}",
            f"mbi {losses[1]:.5g}",
            losses[0] / losses[1],
        ),
        row(
            "… total variation between both on triples, and of ours from the truth",
            f"{apart:.2g}",
            f"{off:.2g}",
            apart / off,
            # theirs does not arrive in as many steps where sets overlap much
            **(at_most(apart / off, APART) if losses[1] < 1.1 * losses[0] else {}),
        ),
    ]
