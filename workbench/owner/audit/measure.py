"""One audit on one pair of neighbours, and audits in a CSV file."""

from __future__ import annotations

import csv
import inspect
import io
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench import noise
from workbench.owner.audit.cuts import NotEnumerable
from workbench.owner.audit.enumeration import output_laws
from workbench.owner.audit.events import strongest_evidence
from workbench.owner.audit.outputs import NoAnswer, Output, observe
from workbench.owner.audit.pairs import Pair, pairs_for
from workbench.privacy import DP, ZCDP

# Measure

RUNS = 20_000
FALSE_ALARMS = 1e-6
_PILOT = 20  # runs of either input before the others
LEAST_RUNS = 4 * _PILOT
_DELTA_OF_RHO = 1e-6  # at which the ε of a ρ is judged
_ROUNDED = 1 + 1e-9  # sums of receipts may differ from the budget by rounding
_METHODS = ("both", "runs", "exact")


@dataclass(frozen=True)
class Audit:
    """Measurements of an audit.

    Parameters
    ----------
    name : str
        The mechanism's text, or the callable's name.
    pair : str
        The neighbours, in words.
    epsilon, delta : float
        What is promised: the budget of the mechanism, or the privacy that its releases state if that
        is less.
    bound : float or None
        ε is at least this, but for the false-alarm rate: measured on `runs` outputs of either input.
    event : str
        The event that shows it, in words.
    likelier, rarer : float
        How often it happened under either input.
    runs : int
        Outputs of each input, of which half chose the event.
    exact : float or None
        The largest loss over all outputs, computed where every draw could be enumerated.
    spent_delta : float or None
        At the stated ε, the δ that the enumerated law spends (the hockey-stick divergence).
    outputs : int
        How many outputs were enumerated.
    all_noise : bool
        Whether values that neither neighbour moves had noise too when they were.
    seconds : float
        What the audit took.
    note : str
        Why something was not measured.
    rho : float or None
        The ρ that is promised, of which `epsilon` at `delta` follow, if it has no δ of its own.
    exact_rho : float or None
        The ρ that the enumerated law spends, of orders 1 to 4.
    budget_epsilon : float or None
        ε of the budget, if `epsilon` is the one that releases state.
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
    spent_delta: float | None = None
    outputs: int = 0
    all_noise: bool = True
    seconds: float = 0.0
    note: str = ""
    rho: float | None = None
    exact_rho: float | None = None
    budget_epsilon: float | None = None

    @property
    def leaks(self) -> bool:
        """Whether more was lost than is promised."""
        measured = self.bound is not None and self.bound > self.epsilon
        if self.exact is None:
            return measured
        slack = 1e-10 * (1 + self.epsilon)  # beyond rounding
        spent_delta: Any = self.spent_delta  # known where the exact loss is
        exact_rho: Any = self.exact_rho
        computed = self.exact > self.epsilon + slack and spent_delta > self.delta + 1e-15
        above_rho = self.rho is not None and exact_rho > self.rho * (1 + 1e-9)
        return measured or computed or above_rho

    @property
    def computed_part(self) -> float | None:
        """The loss that was computed over what is promised: of ρ where that is, or else of ε."""
        if self.exact is None or not 0 < self.epsilon < inf:
            return None
        exact_rho: Any = self.exact_rho  # known where ρ is
        return self.exact / self.epsilon if self.rho is None else exact_rho / self.rho

    @property
    def reached(self) -> float:
        """The larger of bound and exact loss, over the stated ε, or of the computed ρ over the stated."""
        if self.rho is not None and self.computed_part is not None:
            return self.computed_part
        known = [x for x in (self.bound, self.exact) if x is not None]
        if not known or not 0 < self.epsilon < inf:
            return 0.0
        return max(known) / self.epsilon

    def __str__(self) -> str:
        head = f"{self.name}, {self.pair}: ε = {self.epsilon:.4g} stated"
        if self.delta:
            head += f", δ = {self.delta:.3g}"
        if self.budget_epsilon is not None:
            head += f" by its releases ({self.budget_epsilon:.4g} by its budget)"
        parts = []
        if self.exact is not None:
            parts.append(f"{self.exact:.4g} computed over {self.outputs} outputs")
        if self.rho is not None and self.exact is not None:
            parts.append(f"ρ = {self.exact_rho:.4g} computed of {self.rho:.4g}")
        if self.bound is not None:
            parts.append(f"at least {self.bound:.4g} in {self.runs} runs of each")
        parts = parts or ["nothing measured"]
        if self.note:
            parts.append(self.note)
        text = f"{head}; {', '.join(parts)}"
        if self.leaks:
            text += f". LEAK: {self.event}"
            if self.bound is not None and self.bound > self.epsilon:
                text += (
                    f", in {self.likelier:.3g} of the runs of one neighbour and {self.rarer:.3g} "
                    "of the other"
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
    """A lower bound on the ε of a mechanism or of any callable, from what it gives on two neighbours.

    The loss is compared with what is stated here (or the budget) and with the privacy that the releases
    state by their receipts.

    Parameters
    ----------
    mechanism : callable
        Called with data; a mechanism with data and `rng`.
    pair : Pair or (one, other), optional
        The neighbours; the first that `pairs_for` makes up, if not given.
    epsilon, delta : float, optional
        What is promised; those of its budget, if not given.
    runs : int
        Calls with either input; half of them choose the event, the others judge it.
    seconds : float
        The limit of a single call; five times as long for the first, which may load and compile.
    most_seconds : float
        Of processor time, or ten times as long on the clock: no more calls are made after it.
    method : "both", "runs" or "exact"
        Whether to run, and whether to enumerate where that is possible.
    false_alarms : float
        The bound exceeds the true ε with this probability at most.
    rng : numpy Generator, optional
        Replayable noise for a mechanism; that of the system, as it is published, if not given.

    Returns
    -------
    Audit

    Raises
    ------
    ValueError
        Without an ε, for a callable that needs more than data, that raises the same for both
        neighbours, or that does not answer in time.

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
    name = name_of(mechanism)
    _refuse_more_arguments(mechanism, name)
    if pair is None:
        pair = pairs_for(mechanism)[0]
    if not isinstance(pair, Pair):
        pair = Pair("the stated pair", *pair)
    given = getattr(mechanism, "budget", None)
    budget = promised(mechanism)
    stated_epsilon = budget.epsilon if epsilon is None and budget is not None else epsilon
    if stated_epsilon is None:
        raise ValueError(f"{name} states no ε: state the epsilon that it promises")
    if not 0 <= stated_epsilon < inf:
        raise ValueError(f"epsilon = {stated_epsilon!r} is not allowed: need a number >= 0")
    stated_delta = delta if delta is not None else getattr(budget, "delta", 0.0)
    rho = given.rho if isinstance(given, ZCDP) and not given.delta else None
    promise = _Promise(stated_epsilon, stated_delta, rho)
    promises = _with_releases(promise, mechanism, name, pair, seconds)
    laws = None
    note = ""
    if method != "runs":
        try:
            laws = output_laws(mechanism, pair)
        except NotEnumerable as e:
            note = f"not enumerated: {e}"
    outputs = None
    if method != "exact":
        outputs = _outputs(mechanism, name, pair, runs, seconds, most_seconds, rng)
    audits = []
    for judged in promises:
        measured: dict[str, Any] = {}
        if outputs is not None:
            rate = false_alarms / len(promises)
            evidence = strongest_evidence(*outputs, judged.delta, rate)
            measured = dict(
                bound=evidence.bound,
                event=evidence.event,
                likelier=evidence.likelier,
                rarer=evidence.rarer,
                runs=len(outputs[0]),
            )
        if laws is not None:
            exact = laws.loss(judged.epsilon, judged.delta)
            measured |= dict(
                exact=exact.loss,
                spent_delta=exact.delta,
                exact_rho=exact.rho,
                outputs=exact.outputs,
                all_noise=exact.all_noise,
            )
            if exact.loss > judged.epsilon and not measured.get("bound", 0.0) > judged.epsilon:
                measured["event"] = exact.words
        audits.append(
            Audit(
                name,
                pair.name,
                judged.epsilon,
                judged.delta,
                seconds=time.perf_counter() - start,
                note=note,
                rho=judged.rho,
                budget_epsilon=None if judged is promise else promise.epsilon,
                **measured,
            )
        )
    return next((result for result in audits if result.leaks), audits[0])


class _Promise(NamedTuple):
    epsilon: float
    delta: float
    rho: float | None

    @classmethod
    def of(cls, privacy: DP | ZCDP) -> _Promise:
        """The promise of a budget or a release: a ρ also at a small δ."""
        if isinstance(privacy, DP):
            return cls(privacy.epsilon, privacy.delta, None)
        at = privacy.at(privacy.delta + _DELTA_OF_RHO)
        return cls(at.epsilon, at.delta, None if privacy.delta else privacy.rho)

    def implies(self, other: _Promise) -> bool:
        """Whether data that keep this promise keep the other one too, except for rounding."""
        if other.rho is not None and (self.rho is None or self.rho > other.rho * _ROUNDED):
            return False
        return self.epsilon <= other.epsilon * _ROUNDED and self.delta <= other.delta * _ROUNDED


def _with_releases(
    promise: _Promise, mechanism: Any, name: str, pair: Pair, seconds: float
) -> list[_Promise]:
    """The promise, and those that a release of either neighbour states, without weaker ones."""
    promises = [promise]
    releases: list[Any] = []

    def release(data: Any) -> None:
        releases.append(mechanism(data))

    for data, before in ((pair.one, []), (pair.other, [pair.one])):
        try:
            observe(partial(release, data), 5 * seconds)  # the first one may load and compile
        except NoAnswer:
            raise _no_answer(name, 5 * seconds, (before, [])) from None
    for privacy in (getattr(made, "privacy", None) for made in releases):
        if isinstance(privacy, DP | ZCDP):
            stated = _Promise.of(privacy)
            if not any(known.implies(stated) for known in promises):
                promises = [*(p for p in promises if not stated.implies(p)), stated]
    return promises


def promised(mechanism: Any) -> DP | None:
    """What a mechanism's budget promises, a ρ at a small δ; None of a callable without a budget."""
    budget = getattr(mechanism, "budget", None)
    return budget.at(budget.delta + _DELTA_OF_RHO) if isinstance(budget, ZCDP) else budget


def name_of(mechanism: Any) -> str:
    """A mechanism's text, or a callable's name."""
    return getattr(mechanism, "__name__", None) or repr(mechanism)


def _refuse_more_arguments(mechanism: Any, name: str) -> None:
    """A ValueError for what cannot be called with data alone."""
    if not callable(mechanism):
        raise ValueError(f"{name} cannot be called: need a mechanism, or a function of data")
    try:
        parameters = list(inspect.signature(mechanism).parameters.values())
    except (TypeError, ValueError):
        return
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [
        p.name
        for i, p in enumerate(p for p in parameters if p.kind in (*plain, p.KEYWORD_ONLY))
        if p.default is p.empty and (i > 0 or p.kind not in plain)
    ]
    if needed:
        raise ValueError(
            f"{name} needs {', '.join(needed)} beside data: need a callable of data alone that draws "
            "from the system, as in lambda data: f(data, fresh_seed()), with another seed every time"
        )
    if not any(p.kind in (*plain, p.VAR_POSITIONAL) for p in parameters):
        raise ValueError(f"{name} takes no data: need a callable of one argument")


def _outputs(
    mechanism: Callable[..., Any],
    name: str,
    pair: Pair,
    runs: int,
    seconds: float,
    most_seconds: float,
    rng: Any,
) -> tuple[list[Output], list[Output]]:
    """Outputs of both inputs, in turn."""
    if runs < LEAST_RUNS:
        raise ValueError(f"runs = {runs} is not allowed: need at least {LEAST_RUNS}")
    _load_libraries()
    given = {} if rng is None else {"rng": rng}
    clock = time.perf_counter() + 10 * most_seconds
    processor = time.process_time() + most_seconds
    drawn: tuple[list[Output], list[Output]] = ([], [])
    for i in range(runs):
        limit = seconds if i else 5 * seconds  # what loads and compiles at first use
        for data, outputs in zip((pair.one, pair.other), drawn, strict=True):
            try:
                outputs.append(observe(partial(mechanism, data, **given), limit))
            except NoAnswer:
                raise _no_answer(name, limit, drawn) from None
        if i == _PILOT:
            _refuse_useless(name, drawn)
        late = time.process_time() > processor or time.perf_counter() > clock
        if i >= LEAST_RUNS and late:
            break
    return drawn


@cache
def _load_libraries() -> None:
    """What the workbench compiles is there before any clock runs, which would break it off."""
    noise.threshold_sample(
        np.array([3]),
        np.array([2]),
        [noise.Block(9, 1.0, 1.0)],
        theta=1,
        tau=3.0,
        rng=np.random.default_rng(0),
    )


def _no_answer(name: str, seconds: float, drawn: tuple[list[Any], list[Any]]) -> ValueError:
    answered = len(drawn[1]) if len(drawn[0]) == len(drawn[1]) else len(drawn[0])
    which = "the first neighbour" if len(drawn[0]) == len(drawn[1]) else "the second neighbour"
    return ValueError(
        f"{name} did not answer for {which} within {seconds:g} seconds, after {answered} calls that "
        "did: need a callable that returns, or a longer time limit"
    )


def _refuse_useless(name: str, drawn: tuple[list[Output], list[Output]]) -> None:
    """A ValueError where every call with either input raises the same."""
    forms = {o.form for outputs in drawn for o in outputs}
    if len(forms) == 1 and (form := forms.pop()) and form[0].startswith("raises "):
        raised = form[0].partition("\n")[0]
        raise ValueError(f"{name} {raised}, for either neighbour: there is nothing to audit")


# Rows

_SPENT = 0.95  # of ε: what spends less is shown


def read_rows(path: Path) -> list[Audit]:
    """What `add_row` wrote.

    Parameters
    ----------
    path : Path
        The file; none is as if it were empty. A last row that a kill cut off is removed from it.

    Returns
    -------
    list of Audit

    Raises
    ------
    ValueError
        If it holds something else.
    """
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    try:
        rows = csv.DictReader(io.StringIO(whole))
        audits = [
            Audit(
                **{f.name: _read(f.type, row[f.name]) for f in fields(Audit) if f.name in row}
            )
            for row in rows
        ]
    except (KeyError, TypeError, ValueError):
        raise ValueError(
            f"{path} holds something else than rows of audits: name a new file"
        ) from None
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return audits


def add_row(audit: Audit, path: Path) -> None:
    """One more row, at the end of the file, which begins with names of columns."""
    row = asdict(audit) | {"reached": audit.reached, "leaks": audit.leaks}
    is_new = not path.exists() or not path.stat().st_size
    with open(path, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, row, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def budget_unused(audits: Iterable[Audit]) -> dict[str, float]:
    """The part of ε that no pair spends, of mechanisms whose losses were computed; sharp ones left out.

    Parameters
    ----------
    audits : iterable of Audit
        Of several pairs of each mechanism, of which the largest loss counts.

    Returns
    -------
    dict
        By the mechanism's text, from most to least.
    """
    largest: dict[str, float] = {}
    for audit in audits:
        part = audit.computed_part
        if part is not None:
            largest[audit.name] = max(part, largest.get(audit.name, 0.0))
    unused = {name: 1 - part for name, part in largest.items() if part < _SPENT}
    return dict(sorted(unused.items(), key=lambda item: -item[1]))


def _read(kind: Any, text: str) -> Any:
    """One field of an audit, from the text of its row."""
    if kind == "str":
        return text
    if kind == "bool":
        return text == "True"
    if not text and kind.endswith("None"):
        return None
    return int(text) if kind == "int" else float(text)
