"""Plans of many audits, which are tests of privacy guarantees. Each mechanism is audited on the pair of
neighbouring inputs that reveals most, or on all pairs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

from workbench import mechanisms
from workbench.compiled import end_after, limited_threads
from workbench.mechanisms.neighbours import Pair, pairs_for
from workbench.owner.audit.measure import Audit, audit, name_of, promise_of
from workbench.owner.audit.tiles import is_ours
from workbench.privacy import DP, ZCDP

EPSILONS = (0.3, 1.0, 3.0)
DELTA = 1e-6
RUNS = 400_000  # of either input, and less where time ends first
MOST_SECONDS = 60.0


class Job(NamedTuple):
    """One planned audit (test of the privacy guarantee) of a mechanism, on one pair of inputs that differ in
    one unit.

    Parameters
    ----------
    mechanism : Mechanism or callable
        Mechanism or function to audit. The guarantee to test is the mechanism's budget.
    pair : Pair
        Two inputs that differ in one unit.
    epsilon : float, optional
        The ε to test, if the function has no budget. If the budget is a ρ, this is the ε that follows from
        the ρ at a fixed δ.
    share : float
        Share of the usual time limit that this audit may use. Default 1. The share is smaller if the same
        mechanism is audited on many pairs.
    """

    mechanism: Any
    pair: Pair
    epsilon: float | None = None
    share: float = 1.0

    @property
    def key(self) -> tuple[str, str, float]:
        """Mechanism, pair and ε, which together identify the audit."""
        promise = promise_of(self.mechanism, self.epsilon)
        return name_of(self.mechanism), self.pair.name, float(promise.epsilon)


def default_jobs(
    audited: Sequence[Any] | None = None,
    epsilons: Sequence[float] = EPSILONS,
    thorough: bool = False,
) -> list[Job]:
    """Return a plan of audits (tests of privacy guarantees) for classes of mechanisms. Each audit compares two
    neighbouring inputs, which differ in one unit. For a class of the workbench, the plan has one audit per ε,
    on the pair of inputs for which the largest privacy loss is expected. For a class from another package, the
    plan has one audit for each ε and each pair of inputs. A class can define its own plan in a method
    `audited`. This method takes a budget, and returns the mechanisms to audit, each with a pair of inputs.

    If a class takes a budget in ρ, the plan uses the ρ that corresponds to each ε. If a class takes both
    kinds of budget, the plan contains audits with both.

    Parameters
    ----------
    audited : sequence, optional
        Classes of mechanisms, mechanisms, or functions of data. A mechanism is audited with its own budget
        only. Default: all classes in `workbench.mechanisms`.
    epsilons : sequence of float
        Values of ε for which each class is audited.
    thorough : bool
        Whether to audit each class on all pairs of inputs. If True, the plan also contains copies of each
        mechanism, in which one parameter has a different option. Default False.

    Returns
    -------
    list of Job
        Planned audits, without duplicates.
    """
    things: Sequence[Any] = mechanisms.ALL if audited is None else audited
    jobs = []
    for thing in things:
        if not (isinstance(thing, type) and hasattr(thing, "example")):
            own = hasattr(thing, "budget") and not isinstance(thing, type)
            for epsilon in [None] if own else epsilons:
                jobs += _all_pairs(thing, epsilon)
            continue
        for epsilon, budget in _budgets(thing, epsilons):
            example = thing.example(budget)
            stated = epsilon if isinstance(example.budget, ZCDP) else None
            sharp = _sharpest(thing, example)
            jobs += [Job(mechanism, pair, stated) for mechanism, pair in sharp]
            if thorough or not sharp:  # nobody knows where it shows most
                for mechanism in _variants(example) if thorough else [example]:
                    jobs += _all_pairs(mechanism, stated)
    first: dict[tuple[str, str, float | None], Job] = {}
    for job in jobs:
        first.setdefault((repr(job.mechanism), job.pair.name, job.epsilon), job)
    return list(first.values())


def _sharpest(cls: Any, example: Any) -> list[tuple[Any, Pair]]:
    """Return mechanisms of a class, each with the pair of inputs that reveals most. The class's method
    `audited` determines both. If a class of the workbench has no such method, return its example mechanism
    with the first pair. For other classes, return an empty list.
    """
    if "audited" in vars(cls):
        return list(cls.audited(example.budget))
    return [(example, pairs_for(example)[0])] if is_ours(cls) else []


def _all_pairs(mechanism: Any, epsilon: float | None) -> list[Job]:
    """Return one planned audit per pair of inputs. This is for mechanisms for which nobody knows which pair
    reveals most.
    """
    pairs = pairs_for(mechanism)
    return [Job(mechanism, pair, epsilon, share=2 / len(pairs)) for pair in pairs]


def _budgets(cls: Any, epsilons: Sequence[float]) -> Iterator[tuple[float, DP | ZCDP]]:
    """Yield each ε with the budgets that the class takes. The budgets are this ε itself, and the largest ρ
    that implies this ε at a fixed δ.
    """
    delta = DELTA if getattr(cls, "spends_delta", False) else 0.0
    for epsilon in epsilons:
        if getattr(cls, "accepts_dp", True):
            yield epsilon, DP(epsilon, delta)
        if getattr(cls, "accepts_zcdp", False):
            yield epsilon, replace(ZCDP.within(DP(epsilon, DELTA)), delta=delta)


def _variants(mechanism: Any) -> Iterator[Any]:
    """Yield the mechanism, and then copies of it with other options. For each field that has a list of
    options, there is one copy per option that the mechanism does not use.
    """
    yield mechanism
    for f in fields(mechanism):
        for choice in f.metadata.get("choices", ()):
            if choice == getattr(mechanism, f.name):
                continue
            try:
                yield replace(mechanism, **{f.name: choice})
            except ValueError:
                continue  # not with these other fields


def run_job(job: Job, **options: Any) -> Audit:
    """Run one planned audit. If the audit raises an error, return a result that contains the error message,
    so that other audits can continue.
    """
    limits = dict(most_seconds=MOST_SECONDS, runs=RUNS) | options
    limits["most_seconds"] *= job.share
    try:
        with limited_threads(1):
            return audit(job.mechanism, job.pair, epsilon=job.epsilon, **limits)
    except ValueError as e:
        promise = promise_of(job.mechanism, job.epsilon)
        return Audit(job.key[0], job.pair.name, **promise._asdict(), note=str(e))


def run_audits(jobs: Iterable[Job], workers: int = 1, **options: Any) -> Iterator[Audit]:
    """Run planned audits (tests of privacy guarantees), in this process or in several. Yield each result as
    soon as its audit has ended.

    Parameters
    ----------
    jobs : iterable of Job
        Planned audits, for example from `default_jobs`.
    workers : int
        Number of worker processes.
    **options
        `runs`, `seconds` (of one call), `most_seconds` (of one audit) and `false_alarms`, as for
        `audit`.

    Yields
    ------
    Audit
        Result of each audit, in the order in which the audits end.
    """
    from joblib import Parallel, delayed

    parallel = Parallel(
        workers,
        return_as="generator_unordered",
        initializer=end_after,
        initargs=(os.getpid(),),
    )
    yield from parallel(delayed(run_job)(job, **options) for job in jobs)
