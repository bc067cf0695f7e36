"""What Cormode et al. 2012 say in words alone, in sections 2.1, 4.2, C.2 and C.3: a check a statement."""

from __future__ import annotations

from functools import partial

from experiments.cormode2012.fig2_rows import LENGTH, SIGNED, errors
from experiments.cormode2012.paired import ratios, select
from workbench.trials import claims
from workbench.trials.claims import SOMEWHERE, Finding, check_lower, check_similar, means
from workbench.value import format_number


def _rounding(rows, level, length: int = 1, rounded: str = "lower") -> Finding:
    asked = select(rows, panel="sides", query_size=length)
    noisy = select(asked, series="geometric")
    up = select(asked, series="geometric, rounded up")
    ours, other = (up, noisy) if rounded == "lower" else (noisy, up)
    return check_lower(ratios(ours, other, "query_size"), level)


def _rounding_over(rows, level, sizes, rounded: str) -> Finding:
    def at(size, level):
        return _rounding(rows, level, size, rounded)

    return claims.over("R", sizes, at, level)


def _raw_on_points(rows, level) -> Finding:
    weights = partial(errors, rows, "weights", query_size=1)
    against = ratios(weights(weights="raw"), weights(weights="unbiased"), "target")
    return check_lower(against, level, SOMEWHERE)


def _unbiased(rows, level, series: str) -> Finding:
    numbers = means(errors(rows, "b", SIGNED, query_size=LENGTH), series, "target")
    points = numbers.at(1 - (1 - level) / len(numbers))
    zero = (points.low <= 0) & (points.high >= 0)
    largest = points.estimate.abs().max()
    measured = f"0 in the interval at {zero.sum()} of {len(zero)} sizes; "
    measured += f"at most {format_number(largest)} counts"
    return Finding(bool(zero.all()), measured)


def _ranges_like_subsets(rows, level) -> Finding:
    asked = [select(rows, panel="subsets", queries=kind) for kind in ("subsets", "ranges")]
    return check_similar(ratios(*asked, ["mechanism_name", "target"]), level)


WORDS_CHECKS = {
    "c-21.1": _rounding,
    "c-21.2": partial(_rounding_over, sizes=(2, 5, 10, 20, 50, 100), rounded="lower"),
    "c-21.3": partial(_rounding_over, sizes=(100, 1000, 10_000, 100_000), rounded="higher"),
    "c-c2.1": _raw_on_points,
    "c-c2.2": partial(_unbiased, series="threshold"),
    "c-c2.3": partial(_unbiased, series="priority"),
    "c-2-1.1": _ranges_like_subsets,
}
