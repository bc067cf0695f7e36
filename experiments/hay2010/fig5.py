"""Hay et al. 2010, Figure 5: error of unattributed histograms, and Theorem 2.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: sections 3 and 5.1, Figure 5; Theorem 2.
Read    from the text; the plot is not in our copy, and no number is printed but the factor of ten.
Open    The paper's files are used where they are at hand; else twins stand in (of the keywords only
        their number is printed). Beside them two real datasets of the kind: coauthors (ca-GrQc), and
        the 20,000 most frequent surnames, whose counts are large and mostly different. All of them
        count as "all datasets".
        One friendship moves two degrees: graphs have l1 = 2 here. The paper adds noise as for l1 = 1,
        which promises 2ε; "as printed" is that noise, asked for by its true price, DP(2ε), and drawn
        at the printed ε. It is not judged.
        S̄ is not rounded, S̃ᵣ is sorted and rounded to whole numbers >= 0, as in the text.
        Theorem 2 gives no constants. Made-up sequences of n counts with d different values, far apart
        (1000/ε) and equally frequent, at ε = 1.
Words   the error = squared, summed over the sequence, mean over samples. An order of magnitude = at
        least 10×, every dataset and ε; not simply enforcing = S̄ below S̃ᵣ, intervals apart, everywhere
        but on Social Network at ε = 1, where they are within 1.25×; improves with decreasing ε =
        error(S̃)/error(S̄) rises from ε = 1 to 0.1 to 0.01 on every dataset; with d, not n = for n from
        2⁸ to 2¹⁶ at d = 16 the error grows no more than log³n does, 8×, where that of S̃ grows 256×,
        and at n = 2¹⁴ it rises with every step of d from 1 to 2¹².
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.hay2010.fig6 import EPSILONS
from workbench import DP, Bound, Domain, SparseTable, Sweep, run
from workbench.claims import (
    ALIKE,
    ORDERS,
    Claim,
    Finding,
    Printed,
    all_of,
    check_lower,
    check_similar,
    decide,
    format_number,
    mean_curve,
)
from workbench.datasets import (
    KeywordFrequencies,
    KeywordFrequenciesTwin,
    NetTrace,
    NetTraceTwin,
    Ranked,
    SnapDegrees,
    SocialNetwork,
    SocialNetworkTwin,
    Surnames,
)
from workbench.experiment import first_available
from workbench.mechanisms import UnattributedHistogram
from workbench.metrics import SquaredError
from workbench.plots import Panel

TITLE = "Error of unattributed histograms"
PAGE = "Hay et al., PVLDB 2010, section 5.1, Figure 5; Theorem 2"
COLUMNS = 3
SEEDS = {"quick": 5, "paper": 50}
ESTIMATORS = {"noisy": "S̃", "sorted": "S̃ᵣ", "isotonic": "S̄"}
NOISY, SORTED, INFERRED = ESTIMATORS.values()
SOCIAL = "Social Network"
PRINTED = ", as printed"

PAPER = {
    "factor": Printed("at least an order of magnitude", ORDERS, np.inf),
    "n": Printed("d·log³n: 8 times for n from 2⁸ to 2¹⁶", 0, 8),
}
LENGTHS = [2**i for i in range(8, 17)]
DISTINCT = 16
VALUES = [2**i for i in range(13)]
LENGTH = 2**14


def datasets() -> dict[str, object]:
    """The paper's three and two real ones, by the names of their panels."""
    available = {}
    for name, real, twin in (
        (SOCIAL, SocialNetwork(), SocialNetworkTwin()),
        ("coauthors", SnapDegrees(), None),
        ("NetTrace", NetTrace(), NetTraceTwin()),
        ("keywords", KeywordFrequencies(), KeywordFrequenciesTwin()),
        ("surnames", Surnames(), None),
    ):
        dataset = first_available(real, twin)
        if dataset is real:
            available[name] = real
        elif dataset is not None:
            available[name + " twin"] = twin
    return available


def rows(profile: str, store) -> pd.DataFrame:
    """A panel a dataset, and one as printed; then errors over n and over d, scaled by ε²."""
    frames = []
    seeds = SEEDS[profile]
    for name, dataset in datasets().items():
        frames.append(_errors(dataset, 1, seeds, store).assign(panel=name))
        if name.startswith(SOCIAL):
            doubled = _errors(dataset, 2, seeds, store).assign(panel=name + PRINTED)
            halved = doubled.epsilon / 2
            frames.append(doubled.assign(promised=doubled.epsilon, epsilon=halved))
    for n in LENGTHS:
        frames += [sequence_errors(n, DISTINCT, s).assign(panel="over n") for s in range(seeds)]
    for d in VALUES:
        frames += [sequence_errors(LENGTH, d, s).assign(panel="over d") for s in range(seeds)]
    return pd.concat(frames, ignore_index=True)


def _errors(dataset, times: int, seeds: int, store) -> pd.DataFrame:
    mechanisms = [
        UnattributedHistogram(DP(times * epsilon), estimator)
        for epsilon in EPSILONS
        for estimator in ESTIMATORS
    ]
    frame = run(Sweep([Ranked(dataset)], mechanisms, [SquaredError()], seeds), store)
    return frame.assign(series=frame.estimator.map(ESTIMATORS), promised=frame.epsilon)


def sequence_errors(n: int, d: int, seed: int) -> pd.DataFrame:
    """Errors of S̃ and S̄, one draw each, on n counts that are d values far apart."""
    counts = np.repeat(1000 * np.arange(1, d + 1), n // d)
    table = SparseTable.from_dense(Domain(("rank",), (n,)), counts, Bound(1), truth_public=True)
    rng = np.random.default_rng([n, d, seed])
    errors = []
    for estimator in ("noisy", "isotonic"):
        estimate = UnattributedHistogram(DP(1.0), estimator)(table, rng).estimate
        columns = dict(dataset="made-up sequences", truth_public=True, seed=seed)
        columns |= dict(series=ESTIMATORS[estimator], cells=n, distinct=d, epsilon=1.0)
        columns |= dict(metric="SquaredError", mechanism="UnattributedHistogram")
        errors.append(columns | dict(value=SquaredError()(table, estimate)))
    return pd.DataFrame(errors)


def panels(rows: pd.DataFrame) -> list[Panel]:
    """A panel a dataset; then Theorem 2."""
    names = _names(rows, printed=True)
    return [
        *(Panel(name, {"panel": name}, "epsilon", bars=True) for name in names),
        Panel("Theorem 2: d = 16", {"panel": "over n"}, "cells"),
        Panel("Theorem 2: n = 2¹⁴", {"panel": "over d"}, "distinct"),
    ]


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """How many times the error of S̄ the others have: a row a dataset and ε."""
    lines = []
    for name in _names(rows, printed=True):
        errors = {s: _error(rows, s, name)["mean"] for s in (NOISY, SORTED, INFERRED)}
        for epsilon in EPSILONS:
            ours = errors[INFERRED][epsilon]
            line = {"dataset": name, "ε": epsilon, "error(S̄)": format_number(ours)}
            line["S̃/S̄"] = format_number(errors[NOISY][epsilon] / ours)
            line["S̃ᵣ/S̄"] = format_number(errors[SORTED][epsilon] / ours)
            lines.append(line)
    return pd.DataFrame(lines).set_index(["dataset", "ε"])


def _names(rows, printed: bool = False) -> list[str]:
    names = [name for name in rows.panel.unique() if not name.startswith("over")]
    return [name for name in names if printed or not name.endswith(PRINTED)]


def _error(rows, series: str, panel: str, x: str = "epsilon") -> pd.DataFrame:
    return mean_curve(rows, x, series=series, panel=panel, metric="SquaredError")


def _ten_times(rows) -> Finding:
    parts = {}
    for name in _names(rows):
        ours = _error(rows, INFERRED, name)
        parts[name] = check_lower(ours, _error(rows, NOISY, name), 1, ORDERS)
    return all_of(parts)


def _not_enough(rows) -> Finding:
    parts = {}
    for name in _names(rows):
        ours = _error(rows, INFERRED, name)
        rounded = _error(rows, SORTED, name)
        if name.startswith(SOCIAL):
            parts[f"{name}, ε = 1: alike"] = check_similar(ours.loc[1.0:], rounded.loc[1.0:])
            ours = ours.loc[:0.5]
        parts[f"{name}: S̄ below S̃ᵣ"] = check_lower(ours, rounded, 1)
    return all_of(parts)


def _advantage(rows) -> Finding:
    parts = {}
    for name in _names(rows):
        noisy = _error(rows, NOISY, name).loc[::-1]
        ours = _error(rows, INFERRED, name).loc[::-1]
        gain = noisy["mean"] / ours["mean"]
        low = (noisy.low / ours.high).to_numpy()
        high = (noisy.high / ours.low).to_numpy()
        holds = decide((high[:-1] < low[1:]).all(), (low[:-1] > high[1:]).any())
        measured = " → ".join(f"{format_number(x)}×" for x in gain)
        parts[name] = Finding(holds, measured, if_unsettled=bool(gain.is_monotonic_increasing))
    return all_of(parts)


def _theorem_2(rows) -> Finding:
    return all_of({"not with n": _not_with_n(rows), "with d": _with_d(rows)})


def _not_with_n(rows) -> Finding:
    ours = _error(rows, INFERRED, "over n", "cells")
    noisy = _error(rows, NOISY, "over n", "cells")["mean"]
    growth = ours["mean"].iloc[-1] / ours["mean"].iloc[0]
    least = ours.low.iloc[-1] / ours.high.iloc[0]
    holds = decide(PAPER["n"].covers(growth), not PAPER["n"].covers(least))
    measured = f"S̄ {format_number(growth)}×, S̃ {format_number(noisy.iloc[-1] / noisy.iloc[0])}×"
    return Finding(holds, measured)


def _with_d(rows) -> Finding:
    error = _error(rows, INFERRED, "over d", "distinct")
    mean = error["mean"]
    rises = mean.is_monotonic_increasing
    apart = (error.high.to_numpy()[:-1] < error.low.to_numpy()[1:]).all()
    falls = (mean.shift(-1) < mean / ALIKE).any()
    first = format_number(mean.iloc[0])
    last = format_number(mean.iloc[-1])
    measured = f"{first} → {last}, S̃ {format_number(2 * LENGTH)}"
    return Finding(decide(rises or apart, falls), measured)


CLAIMS = (
    Claim(
        "h-5-1",
        "The squared error of S̄ is at least 10× below that of S̃, for every dataset and ε.",
        _ten_times,
        "It is on four of five. Of the surnames' 20,000 counts 8,991 are different and far apart, "
        "so that there is little to average at ε = 1 (2.5×) and 0.1 (6.6×): Theorem 2 says as much.",
    ),
    Claim(
        "h-5-2",
        "Sorting and rounding S̃ is not enough, except on Social Network at large ε.",
        _not_enough,
        "On the surnames it is: where counts rise steadily, sorting the noisy ones averages as well "
        "as inference does, and at ε = 0.1 better, by a quarter. On the other four the claim holds.",
    ),
    Claim("h-5-3", "The advantage of S̄ grows as ε falls.", _advantage),
    Claim(
        "h-th2",
        "The error of S̄ grows with the number d of distinct counts, as d·log³n, not with n.",
        _theorem_2,
    ),
)
