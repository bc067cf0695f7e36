"""Audit of one mechanism on one pair of neighbouring inputs. The audit measures how much the outputs reveal.
Results can be stored in CSV files.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from workbench.mechanisms.neighbours import Pair, pairs_for
from workbench.owner.audit.cuts import NotEnumerable
from workbench.owner.audit.enumeration import output_laws
from workbench.owner.audit.events import strongest_evidence
from workbench.owner.audit.outputs import NoAnswer, Output, limited, observe
from workbench.owner.audit.tiles import is_product, tiles
from workbench.privacy import DP, ZCDP

# Measure

RUNS = 20_000
FALSE_ALARMS = 1e-6
LEAST_RUNS = 80
_TILES = 60_000  # of either input: at ε = 0.3 they show four fifths of it
_CHECKS = 20  # as fast as the runs of a loss that is not computed
_DELTA_OF_RHO = 1e-6  # at which the ε of a ρ is judged
_ROUNDED = 1 + 1e-9  # sums of receipts may differ from the budget by rounding
_METHODS = ("both", "runs", "exact")


@dataclass(frozen=True)
class Audit:
    """Result of one audit. An audit tests a mechanism on two inputs that differ in one unit, and compares the
    measured privacy loss with the stated guarantee.

    Parameters
    ----------
    name : str
        The mechanism with its parameters as text, or the name of the function.
    pair : str
        Description of the two neighbouring inputs.
    epsilon, delta : float
        Stated guarantee, with which the audit compares the measured loss. By default, the stated guarantee is
        the mechanism's budget. Each release has receipts, which record its privacy cost. If the receipts imply
        a stronger guarantee than the budget, the audit uses the stronger guarantee.
    bound : float or None
        Lower bound on the true ε, measured on `runs` outputs for each input. The probability that the bound
        exceeds the true ε is at most `false_alarms` (an argument of `audit`).
    event : str
        Description of the event whose frequencies the audit measured to compute `bound`.
    likelier, rarer : float
        Shares of the outputs in which the event happened. `likelier` is the share for the input with which the
        event is more frequent. `rarer` is the share for the other input of the pair.
    runs : int
        Number of outputs for each input. The audit used one half of the outputs to choose the event, and the
        other half to measure the frequency of the event.
    exact : float or None
        Exact privacy loss for this pair. Let P and P′ be the probabilities of an output for the two inputs. The
        exact loss is the largest |ln(P/P′)| over all outputs. If the guarantee has a δ, `exact` is the smallest
        ε that holds with this δ. `exact` is None if the audit could not enumerate all outcomes of the noise.
    spent_delta : float
        Smallest δ with which the stated ε holds for this pair (the hockey-stick divergence). The audit computes
        this δ by enumerating all outcomes of the noise.
    outputs : int
        Number of different outputs that the audit found when it enumerated all outcomes of the noise.
    all_noise : bool
        Whether the enumeration covered the noise of all values. If False, the audit enumerated only the noise
        of the values that differ between the two inputs.
    seconds : float
        Duration of the audit, in seconds.
    note : str
        Reason why the audit could not measure or compute something. Empty if everything was computed.
    rho : float or None
        Stated ρ, if the guarantee is in zCDP. `epsilon` and `delta` then follow from this ρ.
    exact_rho : float
        Smallest ρ with which the condition of zCDP holds for this pair at the orders 1, 2, 3 and 4 of the Rényi
        divergence. The audit computes this ρ by enumerating all outcomes of the noise.
    budget_epsilon : float or None
        The ε of the mechanism's budget, if `epsilon` comes from the receipts and not from the budget.
    """

    name: str
    pair: str
    epsilon: float
    delta: float
    bound: float | None = None
    event: str = ""
    likelier: float = 0.0
    rarer: float = 0.0
    runs: int = 0
    exact: float | None = None
    spent_delta: float = 0.0
    outputs: int = 0
    all_noise: bool = True
    seconds: float = 0.0
    note: str = ""
    rho: float | None = None
    exact_rho: float = 0.0
    budget_epsilon: float | None = None

    @property
    def leaks(self) -> bool:
        """Whether the audit found a privacy loss that exceeds the stated guarantee."""
        if self.bound is not None and self.bound > self.epsilon:
            return True
        slack = 1e-10 * (1 + self.epsilon)  # beyond rounding
        computed = self.exact is not None and self.exact > self.epsilon + slack
        above_rho = self.rho is not None and self.exact_rho > self.rho * _ROUNDED
        return (computed and self.spent_delta > self.delta + 1e-15) or above_rho

    @property
    def reached(self) -> float:
        """Largest privacy loss that the audit found, divided by the stated loss. For example, 0.9 means that
        the audit found a loss of 90 % of the stated ε. If the guarantee is an ε, the loss is the larger one of
        `bound` and `exact`. If the guarantee is a ρ, and the audit computed `exact_rho`, the loss is
        `exact_rho`.
        """
        if self.rho is not None and self.exact_rho:
            return self.exact_rho / self.rho
        return max(self.exact or 0.0, self.bound or 0.0) / self.epsilon if self.epsilon else 0.0

    @property
    def measured(self) -> str:
        """Sentence that states the exact privacy loss and the measured lower bound."""
        parts = []
        if self.exact is not None:
            parts.append(f"computed {self.exact:.4g} over {self.outputs} outputs")
            if self.rho is not None:
                parts.append(f"ρ = {self.exact_rho:.4g} of {self.rho:.4g}")
            elif self.delta:
                parts.append(f"δ = {self.spent_delta:.3g} of {self.delta:.3g}")
        if self.bound is not None:
            parts.append(f"at least {self.bound:.4g} in {self.runs} runs of each")
        return ", ".join(filter(None, [*parts, self.note])) or "nothing measured"

    def __str__(self) -> str:
        head = f"{self.name}, {self.pair}: ε = {self.epsilon:.4g} stated"
        if self.delta:
            head += f", δ = {self.delta:.3g}"
        if self.budget_epsilon is not None:
            head += f" by its releases ({self.budget_epsilon:.4g} by its budget)"
        text = f"{head}; {self.measured}"
        if self.leaks:
            text += f". LEAK: {self.event}"
        if self.bound is not None and self.bound > self.epsilon:
            text += (
                f", in {self.likelier:.3g} of the runs of one neighbour and {self.rarer:.3g} of the "
                "other"
            )
        return text


def audit(
    mechanism: Any,
    pair: Pair | tuple[Any, Any] | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    runs: int = RUNS,
    seconds: float = 10.0,
    most_seconds: float = inf,
    method: str = "both",
    false_alarms: float = FALSE_ALARMS,
    rng: np.random.Generator | None = None,
) -> Audit:
    """Test whether a mechanism, or any function of data, keeps its privacy guarantee. The mechanism runs many
    times on two neighbouring inputs, which differ in one unit. From the outputs, the audit computes a lower
    bound on the mechanism's ε.

    The audit compares this bound with the stronger of two guarantees. The first guarantee is the one that you
    state (by default, the mechanism's budget). The second guarantee follows from the receipts in the
    mechanism's releases. A receipt records the privacy cost of one noisy query on the data.

    Parameters
    ----------
    mechanism : callable
        Mechanism, which is called with the data and `rng`, or a function, which is called with the data.
    pair : Pair or (one, other), optional
        Two inputs that differ in one unit. Default: the first pair that `pairs_for` generates for the
        mechanism.
    epsilon, delta : float, optional
        Guarantee to test. Default: the mechanism's budget.
    runs : int
        Number of calls with each input. The audit uses one half of the outputs to choose an event, and the
        other half to measure the frequency of the event.
    seconds : float
        Time limit of a single call, in seconds. The first call may take five times as long, because this call
        may load and compile code.
    most_seconds : float
        Limit on the processor time of all calls together, in seconds. The audit also stops when ten times this
        duration has passed on the clock. If the audit has already computed the exact loss by enumeration, both
        limits are twenty times smaller.
    method : "both", "runs" or "exact"
        Way to measure the loss. "runs" repeats the mechanism and counts events. "exact" goes through all
        outcomes of the noise, if this is possible. "both", the default, does both.
    false_alarms : float
        Largest acceptable probability that the measured bound exceeds the true ε.
    rng : numpy Generator, optional
        Seeded generator, if you want the same noise in every audit. By default, the noise comes from the
        operating system, as in a real release.

    Returns
    -------
    Audit

    Raises
    ------
    ValueError
        If no ε is stated. The error is also raised if the function raises the same error for both inputs, or
        does not return in time.

    Examples
    --------
    >>> from workbench.mechanisms import GeometricHistogram
    >>> from workbench.privacy import DP
    >>> result = audit(GeometricHistogram(DP(1.0)), method="exact")
    >>> round(result.exact, 6), result.leaks
    (1.0, False)
    """
    start = time.perf_counter()
    if method not in _METHODS:
        raise ValueError(f"method = {method!r} is not allowed: need one of {_METHODS}")
    if runs < LEAST_RUNS:
        raise ValueError(f"runs = {runs} is not allowed: need at least {LEAST_RUNS}")
    name = name_of(mechanism)
    if pair is None:
        pair = pairs_for(mechanism)[0]
    if not isinstance(pair, Pair):
        pair = Pair("the stated pair", *pair)
    budget = promise_of(mechanism, epsilon, delta)
    promises = _with_releases(budget, mechanism, pair, seconds)
    laws = None
    note = ""
    if method != "runs":
        try:
            laws = output_laws(mechanism, pair)
        except NotEnumerable as e:
            note = f"not enumerated: {e}"
    samples = {}
    if method != "exact":
        check_seconds = most_seconds / _CHECKS
        given = {} if rng is None else {"rng": rng}

        def release(data: Any) -> Any:
            return mechanism(data, **given)

        calls = [partial(_call, name, release, pair, which, seconds) for which in (0, 1)]
        samples[""] = sample(calls, runs, most_seconds if laws is None else check_seconds)
        _refuse_useless(name, *samples[""])
        if is_product(mechanism):
            drawn = sample(tiles(mechanism, pair, rng), min(runs, _TILES), check_seconds)
            samples[", in tiles"] = drawn
    audits = []
    for judged in promises:
        measured: dict[str, Any] = {}
        for where, outputs in samples.items():
            rate = false_alarms / len(promises) / len(samples)
            evidence = strongest_evidence(*outputs, judged.delta, rate)
            if not measured or evidence.bound > measured["bound"]:
                measured = evidence._asdict() | {"runs": len(outputs[0])}
                measured["event"] += where
        if laws is not None:
            exact = laws.loss(judged.epsilon, judged.delta)
            if exact["exact"] > judged.epsilon >= measured.get("bound", 0.0):
                measured["event"] = exact["event"]
            measured = exact | measured
        by_release = {} if judged is budget else {"budget_epsilon": budget.epsilon}
        seconds = time.perf_counter() - start
        stated = judged._asdict() | by_release | {"seconds": seconds, "note": note}
        audits.append(Audit(name, pair.name, **stated, **measured))
    return next((result for result in audits if result.leaks), audits[0])


def _call(name: str, release: Any, pair: Pair, which: int, seconds: float) -> list[Output]:
    """Call the mechanism once with the input `which` (0 or 1), and return a list with the observed output."""
    try:
        with limited(seconds):
            return [observe(partial(release, (pair.one, pair.other)[which]))]
    except NoAnswer:
        neighbour = ("first", "second")[which]
        raise ValueError(
            f"{name} did not answer for the {neighbour} neighbour within {seconds:g} seconds: need a "
            "callable that returns, or a longer time limit"
        ) from None


def sample(
    calls: Sequence[Callable[[], list[Output]]], runs: int, most_seconds: float
) -> tuple[list[Output], list[Output]]:
    """Return `runs` outputs for each input, or fewer if the time limit is reached. The calls alternate
    between the two inputs.
    """
    clock = time.perf_counter() + 10 * most_seconds
    processor = time.process_time() + most_seconds
    drawn: tuple[list[Output], list[Output]] = ([], [])
    while len(drawn[0]) < runs:
        for call, outputs in zip(calls, drawn, strict=True):
            outputs += call()
        late = time.process_time() > processor or time.perf_counter() > clock
        if late and len(drawn[0]) > LEAST_RUNS:
            break
    return drawn


def name_of(mechanism: Any) -> str:
    """Return the text of a mechanism with its parameters, or the name of a function."""
    return getattr(mechanism, "__name__", None) or repr(mechanism)


def _refuse_useless(name: str, one: list[Output], other: list[Output]) -> None:
    """Raise a ValueError if the calls with both inputs raise the same error."""
    forms = {output.form for output in one + other}
    if len(forms) == 1 and (form := forms.pop()) and form[0].startswith("raises "):
        raised = form[0].partition("\n")[0]
        raise ValueError(f"{name} {raised}, for both neighbours: there is nothing to audit")


# Promises


class Promise(NamedTuple):
    """Guarantee of a budget or a release, as an ε and a δ. If ε and δ follow from a ρ, the object also
    contains this ρ.
    """

    epsilon: float
    delta: float = 0.0
    rho: float | None = None

    @classmethod
    def of(cls, privacy: DP | ZCDP) -> Promise:
        """Return this budget or guarantee as a `Promise`. A ρ is converted to an ε at a small δ."""
        if isinstance(privacy, DP):
            return cls(privacy.epsilon, privacy.delta)
        at = privacy.at(privacy.delta + _DELTA_OF_RHO)
        return cls(at.epsilon, at.delta, None if privacy.delta else privacy.rho)

    def implies(self, other: Promise) -> bool:
        """Return whether this guarantee is at least as strong as the other one. Differences from rounding are
        ignored.
        """
        mine, others = ([inf if x is None else x for x in promise] for promise in (self, other))
        return all(x <= y * _ROUNDED for x, y in zip(mine, others, strict=True))


def promise_of(
    mechanism: Any, epsilon: float | None = None, delta: float | None = None
) -> Promise:
    """Return the guarantee that the caller states. If the caller states none, return the guarantee of the
    mechanism's budget.
    """
    budget = getattr(mechanism, "budget", None)
    promise = Promise(inf) if budget is None else Promise.of(budget)
    if epsilon is not None:
        promise = promise._replace(epsilon=epsilon)
    if not 0 <= promise.epsilon < inf:
        raise ValueError(
            f"{name_of(mechanism)} promises ε = {promise.epsilon}: state the promised epsilon, a number "
            ">= 0"
        )
    return promise if delta is None else promise._replace(delta=delta)


def _with_releases(
    budget: Promise, mechanism: Any, pair: Pair, seconds: float
) -> list[Promise]:
    """Make a release of each input. Return the strongest guarantees among the stated one and those in the
    receipts of the two releases.
    """
    releases: list[Any] = []

    def release(data: Any) -> None:
        releases.append(mechanism(data))

    for which in (0, 1):  # the first one may load and compile
        _call(name_of(mechanism), release, pair, which, 5 * seconds)
    stated = [getattr(release, "privacy", None) for release in releases]
    promises = [Promise.of(x) for x in stated if isinstance(x, DP | ZCDP)]
    tighter = [x for x in dict.fromkeys(promises) if not budget.implies(x)]
    return tighter if any(x.implies(budget) for x in tighter) else [budget, *tighter]


# Rows

_DERIVED = ("reached", "leaks")
_COLUMNS = [*(f.name for f in fields(Audit)), *_DERIVED]


def read_rows(path: Path) -> list[Audit]:
    """Read the results of audits from a CSV file that `add_row` wrote.

    Parameters
    ----------
    path : Path
        Path of the file. If there is no such file, the result is empty. If a process was killed while it
        wrote the last row, the function removes this row from the file.

    Returns
    -------
    list of Audit

    Raises
    ------
    ValueError
        If the file contains anything other than audits, or has the columns of another version.
    """
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    rows = csv.DictReader(io.StringIO(whole))
    stated = [{name: x for name, x in row.items() if x} for row in rows]
    try:
        if rows.fieldnames not in (None, _COLUMNS):
            raise msgspec.ValidationError
        audits = msgspec.convert(stated, list[Audit], strict=False)
    except msgspec.ValidationError:
        raise ValueError(f"{path} does not contain rows of audits: name a new file") from None
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return audits


def add_row(audit: Audit, path: Path) -> None:
    """Write the result of an audit as a new row at the end of a CSV file."""
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        if not file.tell():
            writer.writeheader()
        writer.writerow(asdict(audit) | {name: getattr(audit, name) for name in _DERIVED})
