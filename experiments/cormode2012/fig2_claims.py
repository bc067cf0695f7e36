"""What Cormode et al. 2012 say of Figure 2 (b) and (c), and all checks of the figure."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

from experiments.cormode2012.fig2_filters import FILTER_CHECKS, around_one_percent
from experiments.cormode2012.fig2_rows import (
    BOTH,
    DECADES,
    LENGTH,
    LENGTHS,
    OTHER_LENGTHS,
    PAPER,
    SAMPLES,
    errors,
    in_percent,
    of_ranges,
)
from experiments.cormode2012.fig2_words import WORDS_CHECKS
from experiments.cormode2012.paired import (
    above,
    may_be_best,
    ratios,
    select,
    to_best,
)
from experiments.cormode2012.shared import ABSOLUTE, RELATIVE
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import (
    ALIKE,
    Finding,
    all_of,
    check_between,
    check_similar,
    decide,
    means,
)
from workbench.value import format_number

# ---- (b): samples


def _samples_alike(rows, level, length: int = LENGTH) -> Finding:
    asked = of_ranges(rows, "b", length)
    both = [select(asked, series=series) for series in ("threshold", "priority")]
    return check_similar(ratios(*both, "target"), level)


def _alike_elsewhere(rows, level) -> Finding:
    return claims.over("R", OTHER_LENGTHS, lambda r, at: _samples_alike(rows, at, r), level)


def _fixed_size(rows, level) -> Finding:
    sizes = errors(rows, "b", query_size=LENGTH)
    priority = select(sizes, series="priority")
    threshold = select(sizes, series="threshold")
    off = threshold.released / threshold.target
    measured = f"{(priority.released == priority.target).mean():.0%} of priority samples; "
    measured += f"threshold samples have {off.min():.1%} to {off.max():.1%} of theirs"
    return Finding(bool((priority.released == priority.target).all()), measured)


def relative_of_samples(rows, level, size: int) -> Finding:
    """Whether both samples of a size have the printed relative errors."""
    relative = in_percent(
        errors(rows, "b", RELATIVE, target=size, series=("threshold", "priority"))
    )
    numbers = means(relative.assign(sample=relative.series, series="both"), "both", "sample")
    return check_between(numbers, level, 0.5, 7.5, words="as printed", unit=" %")


def _relative_by_size(rows, level) -> Finding:
    return claims.over("s", SAMPLES, lambda s, at: relative_of_samples(rows, at, s), level)


# ---- (c): filter-priority


def _over_lengths(rows, level, check) -> Finding:
    return claims.over("R", LENGTHS, lambda r, at: check(rows, at, r), level)


def end_of_relative(rows, level, length: int, low: float, high: float, end: str) -> Finding:
    """Whether the least, or the greatest, relative error over θ is as printed."""
    relative = in_percent(_both(rows, length, RELATIVE))
    numbers = means(relative, BOTH, "theta")
    points = numbers.at(1 - (1 - level) / len(numbers))
    estimate, first, last = (getattr(points[c], end)() for c in ("estimate", "low", "high"))
    holds = decide(low <= first and last <= high, last < low or first > high)
    return Finding(holds, f"{format_number(estimate)} %")


def _both(rows, length: int, metric: str = ABSOLUTE, panel: str = "c") -> pd.DataFrame:
    return errors(rows, panel, metric, query_size=length).assign(series=BOTH)


def _ends(rows, level, low: float, high: float, end: str) -> Finding:
    check = partial(end_of_relative, low=low, high=high, end=end)
    finding = _over_lengths(rows, level, check)
    by = in_percent(errors(rows, "c", RELATIVE)).groupby(["query_size", "theta"]).value.mean()
    told = f"over all R {format_number(by.min())} … {format_number(by.max())} %"
    return replace(finding, measured=f"{finding.measured}; {told}")


def _forty(rows, level, length: int) -> Finding:
    error = _both(rows, length)
    others = error[error.theta != 40]
    at_forty = select(error, theta=40).drop(columns="theta")
    spread = others[["theta", "seed"]].merge(at_forty, on="seed")
    finding = check_between(ratios(spread, others, "theta"), level, high=ALIKE)
    best, _ = to_best(error, "theta")
    return replace(finding, measured=f"least at θ = {best:g}; {finding.measured}")


def _neither(rows, level, length: int) -> Finding:
    error = _both(rows, length)
    least = error[error.theta.between(10, 65)].groupby("theta").value.mean().idxmin()
    between = select(error, theta=least)
    parts = {
        f"θ = {end}": partial(
            above, ratios(select(error, theta=end).assign(theta=least), between, "theta")
        )
        for end in (5, 70)
    }
    finding = all_of(parts, 1 - (1 - level) / error.theta.nunique())
    return replace(finding, measured=f"against θ = {least:g}: {finding.measured}")


def _smaller_for_larger(rows, level) -> Finding:
    own = 1 - (1 - level) / len(DECADES)
    best = {r: may_be_best(_both(rows, r), "theta", own) for r in DECADES}
    small, large = best[DECADES[0]], best[DECADES[-1]]
    steps = [(best[before], best[after]) for before, after in pairwise(DECADES)]
    falls = all(after[0] <= before[0] for before, after in steps)
    surely_rises = any(min(after) > max(before) for before, after in steps)
    holds = decide(
        falls and large[0] < small[0] and small[0] not in large,
        surely_rises or min(large) >= max(small),
    )
    measured = "; ".join(f"R = {r:,}: {_thetas(best[r])}" for r in DECADES)
    return Finding(holds, measured)


def _thetas(best: list[float]) -> str:
    others = ", ".join(f"{theta:g}" for theta in sorted(best[1:]))
    return f"θ = {best[0]:g}" + f" (or {others})" * bool(others)


def _density_matters(rows, level, length: int) -> Finding:
    dense = _both(rows, length)
    sparse = _both(rows, length, panel="c, sparse")
    own = 1 - (1 - level) / 2
    best = may_be_best(dense, "theta", own)
    best_sparse = may_be_best(sparse, "theta", own)
    measured = f"{_thetas(best)} at ρ = 0.1, {_thetas(best_sparse)} at ρ = 0.01"
    same = len({*best, *best_sparse}) == 1
    return Finding(decide(best[0] not in best_sparse, same), measured)


CHECKS = (
    FILTER_CHECKS
    | WORDS_CHECKS
    | {
        "c-2b-1.1": _samples_alike,
        "c-2b-1.2": _fixed_size,
        "c-2b-1.3": _alike_elsewhere,
        "c-2b-2.1": _relative_by_size,
        "c-2c-1.1": partial(_ends, low=0.25, high=0.35, end="min"),
        "c-2c-1.2": partial(_ends, low=5.5, high=6.5, end="max"),
        "c-2c-1.3": partial(_over_lengths, check=_forty),
        "c-2c-2.1": partial(_over_lengths, check=_neither),
        "c-2c-2.2": _smaller_for_larger,
        "c-2c-2.3": partial(_over_lengths, check=_density_matters),
    }
)


def comparison(rows: pd.DataFrame, level: float) -> pd.DataFrame:
    """The relative errors that the paper prints, beside ours."""
    lines = [("two-sided filter, θ up to 50", PAPER["a"], around_one_percent(rows, level))]
    sizes = sorted(errors(rows, "b", RELATIVE).target.unique())
    for size in sizes:
        found = relative_of_samples(rows, level, size)
        lines.append((f"threshold and priority, s = {size:,.0f}", PAPER["b"], found))
    for length in sorted(errors(rows, "c", RELATIVE).query_size.unique()):
        relative = in_percent(_both(rows, length, RELATIVE)).groupby("theta").value.mean()
        measured = f"{format_number(relative.min())} … {format_number(relative.max())} %"
        what = f"filter-priority, R = {length:,.0f}"
        lines.append((what, PAPER["c"], Finding(None, measured)))
    return claims.compare_with_paper(*lines)
