"""Exact privacy loss of a mechanism on one pair of inputs. The mechanism's own code runs once for every
possible outcome of its noise.

The module `ways` goes through the outcomes. The module `cuts` determines how finely the range of the noise is
divided. If the output shows every noisy value, the computed loss is the loss of the output. But later steps may
combine the noisy values, for example by least squares. Then the loss of the output may be smaller than the
computed loss. Audits measure this smaller loss by repeated runs. If the values of Gaussian noise are grouped in
ranges, the computed loss is slightly smaller than the true loss.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from math import exp, fsum, inf, log, prod
from typing import Any, NamedTuple

import numpy as np

from workbench.data import Interactions, Records
from workbench.mechanisms.neighbours import Pair, public_threshold
from workbench.noise.replay import NoSensitivity
from workbench.owner.audit.cuts import MOST_RUNS, Cuts, NotEnumerable, cuts_between
from workbench.owner.audit.outputs import Output, observe
from workbench.owner.audit.tiles import is_ours
from workbench.owner.audit.ways import Enumeration
from workbench.value import Float

_FINEST = 2
_ENDS = ("raises NotEnumerable", "raises NoSensitivity")
_ORDERS = (2, 3, 4)  # of Rényi divergences, beside that of order 1


Law = dict[int, tuple[float, Output]]  # each output's probability, by its hash


class OutputLaws(NamedTuple):
    """Probability of each output of a mechanism, for each of two inputs. Outputs are identified by their
    hashes. The object also records whether the enumeration went through the noise of all values.
    """

    one: Law
    other: Law
    all_noise: bool

    def loss(self, epsilon: float, delta: float = 0.0) -> dict[str, Any]:
        """Return the fields of an `Audit` that contain the computed loss. `exact` is the largest |ln P/P′|
        over all outputs, where P and P′ are the probabilities of an output for the two inputs.

        If a δ is given, `exact` is instead the smallest ε that holds with this δ. `spent_delta` is the
        smallest δ with which `epsilon` holds.
        """
        shown = {**self.other, **self.one}
        p, q = (
            np.array([law[whole][0] if whole in law else 0.0 for whole in shown])
            for law in (self.one, self.other)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            losses = np.nan_to_num(np.abs(np.log(p) - np.log(q)), nan=0.0, posinf=inf)

        def spent_delta(at: float) -> float:
            """Return the smallest δ with which a given ε holds. This is the hockey-stick divergence."""
            both = (np.maximum(0, a - exp(at) * b) for a, b in ((p, q), (q, p)))
            return max(map(fsum, both))

        worst = int(losses.argmax())
        loss = float(losses[worst])
        if delta:
            loss = _smallest_root(spent_delta, delta, losses)
        rho = max(_renyi_loss(p, q), _renyi_loss(q, p))
        _, output = [*shown.values()][worst]
        listed = ", ".join(f"{k} = {v:.6g}" for k, v in list(output.numbers.items())[:6])
        event = (
            f"an output of probability {p[worst]:.4g} under one neighbour and {q[worst]:.4g} under "
            f"the other ({listed}, …)"
        )
        return {
            "exact": loss,
            "spent_delta": spent_delta(epsilon),
            "outputs": int(np.count_nonzero(p + q)),
            "event": event,
            "exact_rho": rho,
            "all_noise": self.all_noise,
        }


def output_laws(mechanism: Callable[..., Any], pair: Pair) -> OutputLaws:
    """Return the probability of every output of a mechanism, for both inputs of a pair. The noise is divided
    into parts, which are as small as the number of combinations allows.

    Parameters
    ----------
    mechanism : Mechanism
        Mechanism, which is called with data and a source of noise.
    pair : Pair
        Two neighbouring inputs, which differ in one unit.

    Returns
    -------
    OutputLaws

    Raises
    ------
    NotEnumerable
        If the mechanism draws from a distribution that cannot be enumerated, or if there are too many
        outcomes.
    """
    stated: Any = mechanism
    if not hasattr(mechanism, "budget"):
        raise NotEnumerable("it takes no `rng`, and only draws from an `rng` can be")
    if type(mechanism).__name__ == "PrioritySampling" and stated.size < pair.one.domain.size:
        raise NotEnumerable("its outcome depends on priorities, which are real numbers")
    alike = _alike(pair.one) and _alike(pair.other)
    one, other = Enumeration(alike), Enumeration(alike)
    try:
        mechanism(pair.one, one)
        other.followed = one.calls  # so that calls correspond
        mechanism(pair.other, other)
    except (NotEnumerable, NoSensitivity) as e:
        raise NotEnumerable(str(e)) from None
    except Exception as e:
        raise NotEnumerable(f"it raises an error for the pair: {e}") from None
    threshold = public_threshold(mechanism)
    names_differ = [
        x.exact.keys() != y.exact.keys() and not (x.empty and y.empty)
        for x, y in zip(one.calls, other.calls, strict=False)
    ]
    if any(names_differ) or one.empty != other.empty:
        if not getattr(mechanism, "spends_delta", False) or not hasattr(mechanism, "threshold"):
            raise NotEnumerable("different cells are empty under the two neighbours")
        threshold = stated.threshold(pair.one.bound)  # an empty cell is never released
    if len(one.calls) != len(other.calls):
        raise NotEnumerable("the number of its draws depends on the data")
    adaptive = getattr(mechanism, "takes", None) is Records
    for level in range(_FINEST, -1, -1):
        calls, others = cuts_between(one.calls, other.calls, level, threshold, one.choices)
        if adaptive:  # which nodes a call is about depends on the noise before
            calls = []
        all_noise = adaptive or level > 0
        cuts = Cuts(calls, others, other.calls, sorted(one.bits | other.bits), all_noise)
        law = _law(mechanism, pair.one, Enumeration(alike, cuts))
        other_law = law and _law(mechanism, pair.other, Enumeration(alike, cuts))
        if other_law:
            return OutputLaws(law, other_law, all_noise)
    raise NotEnumerable(f"its draws have more than {MOST_RUNS} outcomes")


def _alike(data: Any) -> bool:
    """Return whether all records of each user are equal. In this case, it makes no difference which of a
    user's records are kept.
    """
    if not isinstance(data, Interactions):
        return False
    rows = np.stack([data.users, data.items, data.contexts], axis=1).astype(np.int64)
    return len(np.unique(rows, axis=0)) == len(np.unique(data.users))


def _law(mechanism: Callable[..., Any], data: Any, source: Enumeration) -> Law:
    """Return the probability of every output for one input. The result is empty if the noise has too many
    combinations of outcomes.
    """
    probabilities: dict[int, list[float]] = defaultdict(list)
    shown: dict[int, Output] = {}

    def call() -> Any:
        return mechanism(data, source)

    for run, _ in enumerate(source.ways()):
        output = observe(call)
        if output.form and output.form[0].startswith(_ENDS):
            raise NotEnumerable(output.form[0].partition(": ")[2])
        if not is_ours(type(mechanism)):
            source.begin()
            if observe(call).whole != output.whole:
                raise NotEnumerable("it draws past its rng: the same draws give another output")
        probabilities[output.whole].append(source.probability)
        shown.setdefault(output.whole, output)
        if run > MOST_RUNS or (run == 0 and prod(map(float, source.options)) > MOST_RUNS):
            return {}
    return {whole: (fsum(p), shown[whole]) for whole, p in probabilities.items()}


def _renyi_loss(p: np.ndarray, q: np.ndarray) -> float:
    """Return the largest D_α(P‖Q)/α over the orders α = 1, 2, 3 and 4, where D_α is the Rényi divergence. A
    guarantee of ρ implies that this number is at most ρ.
    """
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
    """Return the smallest ε that holds with the given δ, or inf if no ε does."""
    from scipy.optimize import brentq

    high = float(losses[np.isfinite(losses)].max(initial=0.0)) + 1e-12
    if spent_delta(0.0) <= delta * (1 + 1e-12):
        return 0.0
    if spent_delta(high) > delta:
        return inf
    return float(brentq(lambda at: spent_delta(at) - delta, 0.0, high, xtol=1e-15, rtol=1e-14))
