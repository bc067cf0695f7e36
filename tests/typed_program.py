"""What users write, as strict type checkers see it: `make types` checks it with the package."""

from pathlib import Path

import numpy as np

from workbench import (
    DP,
    ZCDP,
    Bound,
    Domain,
    Marginals,
    RandomMarginalRanges,
    Ranges,
    Release,
    SparseTable,
    Sweep,
    Trial,
)
from workbench.datasets import CommuteTwin
from workbench.inference import KernelPCA, MaximumEntropy
from workbench.mechanisms import (
    GaussianQueries,
    HighPassFilter,
    LaplaceQueries,
    PrioritySampling,
)
from workbench.owner import Session
from workbench.queries import Dyadic, RandomRanges
from workbench.trials.metrics import MeanAbsoluteError


def publish(folder: Path) -> float:
    """Read a table, release it, save it, ask what was saved."""
    domain = Domain(("home", "work"), (400, 400))
    table = SparseTable.read(folder / "trips.csv", domain, Bound(l0=4, linf=1), user="person")
    mechanism = PrioritySampling(DP(0.5), size=1000, theta=40, transform=Dyadic())
    release = mechanism(table)
    release.save(folder / "trips.parquet")
    answers = Release.load(folder / "trips.parquet").answer(
        Ranges(np.array([0]), np.array([400]))
    )
    return float(answers[0])


def ask(folder: Path, table: SparseTable) -> None:
    """Buy recipes of queries, and infer others."""
    release = LaplaceQueries(DP(1.0), Marginals(2))(table)
    GaussianQueries(ZCDP(0.1), RandomMarginalRanges(20))(table)
    KernelPCA(100.0, 500.0)(release.estimate).answer(Marginals(1), error=True)
    MaximumEntropy(1.0, total=500)(release.estimate).answer(Marginals(1))
    session = Session.open(folder / "bank.sqlite", table, DP(1.0), total=500)
    session.ask(Marginals(1), 0.1)
    values, errors = session.bank.recall("home = 3")
    session.close()
    print(values, errors)


def compare() -> Sweep:
    """An experiment over seeds."""
    mechanisms = [HighPassFilter(DP(1.0), theta=theta) for theta in (10, 20)]
    return Sweep([CommuteTwin()], mechanisms, [MeanAbsoluteError(RandomRanges(50, 100))], 5)


def one(seed: int) -> Release:
    """A simulated release."""
    trial = Trial(CommuteTwin(), HighPassFilter(DP(1.0), theta=20), seed)
    return trial.release(CommuteTwin().load())
