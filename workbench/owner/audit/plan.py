"""Which audits are made: every mechanism on the pair that shows it best, or on all of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, fields, replace
from functools import partial
from math import ceil
from typing import Any

from workbench import mechanisms
from workbench.owner.audit.enumeration import is_ours
from workbench.owner.audit.measure import FALSE_ALARMS, Audit, audit, name_of, promised
from workbench.owner.audit.pairs import Pair, evidence_of_tiles, is_product, pairs_for
from workbench.privacy import DP, ZCDP

EPSILONS = (0.3, 1.0, 3.0)
DELTA = 1e-6
RUNS = 400_000  # of either input, and less where time ends first
MOST_SECONDS = 60.0
_TILES = 60_000  # of either input: at ε = 0.3 they show four fifths of it
_CHECK_SECONDS = 3.0  # of runs where the loss is computed


# Fields, beside the example's, at which a mechanism shows most, and the pair at which it does.
_SHARP: dict[str, tuple[Any, ...]] = {
    "ALP": (lambda b: dict(largest=1, total=4, alpha=b.epsilon / 4), 0),
    "BasicAdaptiveHistogram": (lambda b: dict(depth=2), 1),
    "CountSketch": (lambda b: dict(depth=1, width=16), 0),
    "DirectSynthesis": (lambda b: dict(depth=1), 2),
    "DirichletSynthesis": (lambda b: dict(budget=DP(b.epsilon), records=1, total=2), 0),
    "FPA": (lambda b: dict(k=1), 0),
    "GS": (lambda b: dict(grouping="random"), 0),
    "HierarchicalHistogram": (lambda b: dict(consistent=False), 2),
    "HighPassFilter": (lambda b: {}, 1),
    "HPA": (lambda b: dict(l=2, d=2), 0),
    "ImprovedAdaptiveHistogram": (lambda b: dict(measure=0.9), 1),
    "Laborious": (lambda b: {}, 1),
    "LPA": (lambda b: dict(bound=2), 0),
    "PrioritySampling": (lambda b: dict(size=16), 2),
    "PrivTree": (lambda b: dict(measure=0.9, threshold=ceil(8 / b.epsilon)), 1),
    "SRA": (lambda b: dict(l=2), 0),
    "StabilityHistogram": (lambda b: {}, 2, 0),
    "ThresholdSampling": (lambda b: {}, 2),
    "UnattributedHistogram": (lambda b: {}, 2),
    "UniformSampling": (lambda b: dict(size=16), 0),
}


@dataclass(frozen=True)
class Job:
    """One audit to make: a mechanism, and which of the pairs made up for it.

    Parameters
    ----------
    mechanism : Mechanism
        Its budget is what it promises.
    pair : int
        The place in `pairs_for(mechanism)`.
    epsilon : float, optional
        What it promises: of a callable that has no budget, or of a ρ at δ.
    share : float
        Of the time of an audit, where several are made of one thing.
    """

    mechanism: Any
    pair: int = 0
    epsilon: float | None = None
    share: float = 1.0

    @property
    def key(self) -> tuple[str, str, float]:
        """What names its audit: the mechanism, the pair and ε."""
        stated = self.epsilon
        budget: Any = promised(self.mechanism)  # of what states no ε
        epsilon = float(budget.epsilon if stated is None else stated)
        return name_of(self.mechanism), pairs_for(self.mechanism)[self.pair].name, epsilon


def all_pairs(mechanism: Any, epsilon: float | None = None) -> list[Job]:
    """A job a pair, for a mechanism or callable of which nobody knows where it shows most.

    Parameters
    ----------
    mechanism : Mechanism or callable
        Whose pairs are those of `pairs_for`.
    epsilon : float, optional
        What a callable promises.

    Returns
    -------
    list of Job
    """
    count = len(pairs_for(mechanism))
    return [Job(mechanism, pair, epsilon, share=2 / count) for pair in range(count)]


def default_jobs(
    classes: Sequence[type] | None = None, epsilons: Sequence[float] = EPSILONS
) -> list[Job]:
    """One pair of each class of ours at each ε, that at which it shows most; of others, all pairs.

    What takes a ρ is audited at that which each ε pays for, beside the ε if it takes both.

    Parameters
    ----------
    classes : sequence of classes, optional
        All of `workbench.mechanisms`, if not given.
    epsilons : sequence of float
        Privacy losses.

    Returns
    -------
    list of Job
    """
    jobs = []
    every: Sequence[Any] = mechanisms.ALL if classes is None else classes
    for cls in every:
        for epsilon, budget in _budgets(cls, epsilons):
            mechanism = cls.example(budget)
            stated = _stated(mechanism, epsilon)
            if not is_ours(cls):  # nobody knows where it shows most
                jobs += all_pairs(mechanism, stated)
                continue
            change, *pairs = _SHARP.get(cls.__name__, (lambda b: {}, 0))
            mechanism = _fitted(replace(mechanism, **change(budget)))
            jobs += [Job(mechanism, pair, stated) for pair in pairs]
    return jobs


def thorough_jobs(
    classes: Sequence[type] | None = None, epsilons: Sequence[float] = EPSILONS
) -> list[Job]:
    """All pairs of each class, at its example's fields and at each other choice of each field.

    Parameters
    ----------
    classes, epsilons
        As for `default_jobs`.

    Returns
    -------
    list of Job
        Those of `default_jobs` first; none twice.
    """
    jobs = default_jobs(classes, epsilons)
    every: Sequence[Any] = mechanisms.ALL if classes is None else classes
    for cls in every:
        for epsilon, budget in _budgets(cls, epsilons):
            for mechanism in _variants(_fitted(cls.example(budget))):
                jobs += all_pairs(mechanism, _stated(mechanism, epsilon))
    first: dict[tuple[str, int], Job] = {}
    for job in jobs:
        first.setdefault((repr(job.mechanism), job.pair), job)
    return list(first.values())


def _budgets(cls: type, epsilons: Sequence[float]) -> Iterator[tuple[float, DP | ZCDP]]:
    """Each ε, and the ρ that it pays for at δ, as far as the class takes them."""
    delta = DELTA if getattr(cls, "spends_delta", False) else 0.0
    for epsilon in epsilons:
        if getattr(cls, "accepts_dp", True):
            yield epsilon, DP(epsilon, delta)
        if getattr(cls, "accepts_zcdp", False):
            yield epsilon, replace(ZCDP.within(DP(epsilon, DELTA)), delta=delta)


def _stated(mechanism: Any, epsilon: float) -> float | None:
    """The ε at which a ρ was chosen; others state it themselves."""
    return epsilon if isinstance(mechanism.budget, ZCDP) else None


def _fitted(mechanism: Any) -> Any:
    """The same for made-up data: two units where their number is public."""
    return (
        replace(mechanism, total=2)
        if type(mechanism).__name__ == "DirichletSynthesis"
        else mechanism
    )


def _variants(mechanism: Any) -> Iterator[Any]:
    """A mechanism, and with each other choice of each of its fields that lists choices."""
    yield mechanism
    for f in fields(mechanism):
        for choice in f.metadata.get("choices", ()):
            if choice == getattr(mechanism, f.name):
                continue
            try:
                yield replace(mechanism, **{f.name: choice})
            except ValueError:
                continue  # not with these other fields


def most_minutes(jobs: Sequence[Job], most_seconds: float = MOST_SECONDS) -> float:
    """Processor time that the runs of audits may take, if nothing can be computed."""
    return sum(job.share for job in jobs) * most_seconds / 60


def run_job(
    job: Job,
    runs: int = RUNS,
    seconds: float = 10.0,
    most_seconds: float = MOST_SECONDS,
    false_alarms: float = FALSE_ALARMS,
) -> Audit:
    """One audit; what cannot be audited says why, and does not stop the others."""
    mechanism = job.mechanism
    pair = pairs_for(mechanism)[job.pair]
    stated: dict[str, Any] = dict(epsilon=job.epsilon, seconds=seconds)
    try:
        computed = audit(mechanism, pair, method="exact", **stated)
        if computed.leaks:
            return computed
        check_seconds = _CHECK_SECONDS * (job.share if is_ours(type(mechanism)) else 1.0)
        most_seconds *= job.share
        if computed.exact is not None:
            most_seconds = min(most_seconds, check_seconds)
        measured = audit(
            mechanism,
            pair,
            method="runs",
            runs=runs,
            most_seconds=most_seconds,
            false_alarms=false_alarms / 2,
            **stated,
        )
        if is_product(mechanism):
            limits = (min(runs, _TILES), check_seconds)
            measured = _with_tiles(measured, mechanism, pair, false_alarms / 2, limits)
    except ValueError as e:
        delta = getattr(promised(mechanism), "delta", 0.0)
        name, words, epsilon = job.key
        return Audit(name, words, epsilon, delta, note=str(e))
    return replace(
        measured,
        event=computed.event or measured.event,
        exact=computed.exact,
        spent_delta=computed.spent_delta,
        exact_rho=computed.exact_rho,
        outputs=computed.outputs,
        all_noise=computed.all_noise,
        seconds=computed.seconds + measured.seconds,
        note=computed.note,
    )


def _with_tiles(
    measured: Audit,
    mechanism: Any,
    pair: Pair,
    false_alarms: float,
    limits: tuple[int, float],
) -> Audit:
    """The same audit with the bound that tiles show, if that is larger."""
    start = time.perf_counter()
    evidence, tiles = evidence_of_tiles(mechanism, pair, measured.delta, false_alarms, *limits)
    measured = replace(measured, seconds=measured.seconds + time.perf_counter() - start)
    if measured.bound is not None and evidence.bound <= measured.bound:
        return measured
    return replace(
        measured,
        bound=evidence.bound,
        event=f"{evidence.event}, in tiles",
        likelier=evidence.likelier,
        rarer=evidence.rarer,
        runs=tiles,
    )


def run_audits(
    jobs: Iterable[Job], executor: Executor | None = None, **options: Any
) -> Iterator[Audit]:
    """Audits as they are done, here or by any executor.

    Parameters
    ----------
    jobs : iterable of Job
        From `default_jobs` or `thorough_jobs`.
    executor : concurrent.futures.Executor, optional
        Of processes: in threads no call has a time limit, and what is printed is not seen.
    **options
        `runs`, `seconds` (of one call), `most_seconds` (of one audit) and `false_alarms`, as for
        `audit`.

    Yields
    ------
    Audit
        In the order in which they end.
    """
    jobs = list(jobs)
    run = partial(run_job, **options)
    if executor is None:
        yield from map(run, jobs)
        return
    for future in as_completed([executor.submit(run, job) for job in jobs]):
        yield future.result()
