"""The loss of a release, computed: the mechanism's own code runs once for every way its noise can fall.

`ways` lists the ways, and `cuts` says how finely noise is distinguished. All outcomes are functions of the
exact noise, so if the noise pays for what it is charged, no loss exceeds ε. Where the output shows every
noisy value, the computed loss is that of the release. Where later steps merge values, for example by least
squares, it is the loss that is paid for, and runs show the one that is seen. Where Gaussian noise is
grouped in ranges, it is a lower bound close to the loss.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, fsum, inf, log
from typing import Any, NamedTuple

import numpy as np

from workbench.data import Records
from workbench.owner.audit.cuts import (
    MOST_RUNS,
    Cuts,
    NotEnumerable,
    Run,
    cuts_of_cells,
    same_cells,
)
from workbench.owner.audit.outputs import Output, observe
from workbench.owner.audit.pairs import Pair, public_threshold
from workbench.owner.audit.ways import Enumeration
from workbench.value import Float

_SECONDS = 60.0
_COARSEST = 2
_ORDERS = (2, 3, 4)  # of Rényi divergences, beside that of order 1
_SECRET = ("rowsample", "proportional")  # what hides in words that nobody may know


@dataclass(frozen=True)
class ExactLoss:
    """The largest |ln P/P′| over outputs (the ε that is spent, given a δ), the δ that is spent at the
    stated ε, where the loss is largest, the ρ that is spent (of orders 1 to 4), and whether values that
    neither input moves had noise too."""

    loss: float
    delta: float
    outputs: int
    words: str
    rho: float
    all_noise: bool = True


class OutputLaws(NamedTuple):
    """For both inputs each output's probability, by its hash; whether all values had noise."""

    one: dict[int, tuple[float, Output]]
    other: dict[int, tuple[float, Output]]
    all_noise: bool

    def loss(self, epsilon: float, delta: float = 0.0) -> ExactLoss:
        """The largest loss over all outputs.

        Parameters
        ----------
        epsilon : at which the spent δ is computed.
        delta : for which the loss is computed: the smallest ε at which no more δ is spent.

        Returns
        -------
        ExactLoss
        """
        return replace(_loss(self.one, self.other, epsilon, delta), all_noise=self.all_noise)


def output_laws(mechanism: Callable[..., Any], pair: Pair) -> OutputLaws:
    """The probabilities of all outputs under both inputs, at the finest level that can be run through.

    Parameters
    ----------
    mechanism : called with data and a generator.
    pair : the neighbours.

    Returns
    -------
    OutputLaws

    Raises
    ------
    NotEnumerable
        If it draws by another law, or in too many ways.
    """
    stated: Any = mechanism
    fields = [getattr(mechanism, name, None) for name in ("grouping", "strategy")]
    if not hasattr(mechanism, "budget"):
        raise NotEnumerable("it takes no `rng`, and only what it draws by one can be")
    if set(fields) & set(_SECRET):
        raise NotEnumerable("it hides by a random choice of users or records")
    if type(mechanism).__name__ == "PrioritySampling" and stated.size < pair.one.domain.size:
        raise NotEnumerable("priorities are real numbers, and decide")
    cuts = Cuts()
    baselines = []
    shapes = []
    runs: list[list[Run]] = []
    source = Enumeration(pair, cuts)
    for data in (pair.one, pair.other):
        cuts.recording = []
        cuts.is_recording = True
        cuts.shapes = []
        source.begin()
        try:
            mechanism(data, source)
        except Exception as e:
            raise NotEnumerable(f"it refuses the pair: {e}") from None
        baselines.append(cuts.recording)
        shapes.append([*map(len, cuts.recording), *cuts.shapes])
        runs.append(cuts.runs)
        cuts.followed = cuts.recording
    cuts.is_recording = False
    extra = public_threshold(mechanism)
    unlike = False
    if shapes[0] != shapes[1] or not same_cells(runs[0], runs[1]):
        calls = [*map(len, runs), *map(len, baselines)]
        unlike = set(calls) == {len(runs[0])}
        if not unlike and not getattr(mechanism, "spends_delta", False):
            raise NotEnumerable(
                "other cells are empty under one neighbour than under the other"
            )
    if shapes[0] != shapes[1] and not unlike:
        baselines = [[], []]  # an empty cell is never released, nor one below the threshold
        extra = stated.threshold(pair.one.bound)
    adaptive = getattr(mechanism, "takes", None) is Records
    for level in range(_COARSEST, -1, -1):
        if unlike:
            cuts.of_cells = cuts_of_cells(runs[0], runs[1], cuts.rates, level)
            cuts.others = level > 0
        else:
            cuts.learn(baselines, adaptive, extra, level)
        if not baselines[0] and extra is not None:
            cuts.everywhere = [extra]
        laws_of_output = []
        for data in (pair.one, pair.other):
            law = _law(mechanism, data, Enumeration(pair, cuts))
            if law is None:
                break
            laws_of_output.append(law)
        if len(laws_of_output) == 2:
            one, other = laws_of_output
            return OutputLaws(one, other, all_noise=adaptive or level > 0)
    raise NotEnumerable(f"its draws fall in more than {MOST_RUNS} ways")


def _law(
    mechanism: Callable[..., Any], data: Any, source: Enumeration
) -> dict[int, tuple[float, Output]] | None:
    """The probability of every output; None if there are too many ways."""
    probabilities: dict[int, list[float]] = defaultdict(list)
    shown: dict[int, Output] = {}
    for run in itertools.count():
        source.begin()
        output = observe(lambda: mechanism(data, source), _SECONDS)
        if output.form and output.form[0].startswith("raises NotEnumerable"):
            raise NotEnumerable(output.form[0].partition(": ")[2])
        if not is_ours(type(mechanism)):
            source.begin()
            again = observe(lambda: mechanism(data, source), _SECONDS)
            if again.whole != output.whole:
                raise NotEnumerable("it gives another output when `rng` draws the same")
        probabilities[output.whole].append(source.probability)
        shown.setdefault(output.whole, output)
        ways = np.prod([float(x) for x in source.options])
        if run > MOST_RUNS or (run == 0 and ways > MOST_RUNS):
            return None
        if not source.advance():
            break
    return {whole: (fsum(p), shown[whole]) for whole, p in probabilities.items()}


def _loss(
    one: dict[int, tuple[float, Output]],
    other: dict[int, tuple[float, Output]],
    epsilon: float,
    delta: float,
) -> ExactLoss:
    nothing = (0.0, None)
    wholes = [w for w in {**one, **other} if one.get(w, nothing)[0] or other.get(w, nothing)[0]]
    p = np.array([one.get(w, nothing)[0] for w in wholes])
    q = np.array([other.get(w, nothing)[0] for w in wholes])
    with np.errstate(divide="ignore"):
        losses = np.abs(np.log(p) - np.log(q))

    def spent_delta(at: float) -> float:
        """The hockey-stick divergence."""
        both = (np.maximum(0, a - exp(at) * b) for a, b in ((p, q), (q, p)))
        return max(map(fsum, both))

    worst = int(losses.argmax())
    loss = float(losses[worst])
    if delta:
        loss = 0.0 if spent_delta(0.0) <= delta else _smallest_root(spent_delta, delta, losses)
    rho = max(_renyi_loss(p, q), _renyi_loss(q, p))
    output = (one.get(wholes[worst]) or other[wholes[worst]])[1]
    listed = ", ".join(f"{k} = {v:.6g}" for k, v in list(output.numbers.items())[:6])
    words = (
        f"an output of probability {p[worst]:.4g} under one neighbour and {q[worst]:.4g} under the "
        f"other ({listed}, …)"
    )
    return ExactLoss(loss, spent_delta(epsilon), len(wholes), words, rho)


def _renyi_loss(p: np.ndarray, q: np.ndarray) -> float:
    """The largest of D_α(P‖Q)/α over some orders α, which a ρ promises to exceed."""
    p, q = p[p > 0], q[p > 0]
    if not q.all():
        return inf
    ratios = np.log(p) - np.log(q)
    first = fsum(p * ratios)
    others = (log(fsum(p * np.exp((a - 1) * ratios))) / ((a - 1) * a) for a in _ORDERS)
    return max(first, *others)


def _smallest_root(
    spent_delta: Callable[[float], float], delta: float, losses: Float[np.ndarray, "..."]
) -> float:
    """The smallest ε at which no more than δ is spent; inf if none is."""
    finite = losses[np.isfinite(losses)]
    low = 0.0
    high = float(finite.max(initial=0.0)) + 1e-12
    if spent_delta(high) > delta:
        return inf
    for _ in range(60):
        middle = (low + high) / 2
        if spent_delta(middle) > delta:
            low = middle
        else:
            high = middle
    return high


def is_ours(cls: type) -> bool:
    """Whether its laws are tested here; what others draw past `rng` is looked for."""
    return cls.__module__.startswith("workbench.")
