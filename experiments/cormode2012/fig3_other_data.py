"""What Cormode et al. 2012 say of Figure 3 (c) and (d), wide counts and sparse ones."""

from __future__ import annotations

from functools import partial

from experiments.cormode2012.fig3_rows import (
    BOTH,
    PRIORITY,
    SHARE_HELD,
    TABLE,
    TWICE,
    comparable,
    errors,
    from_size,
    lower,
    of_filter,
    over_filters,
)
from experiments.cormode2012.paired import lower_from, ratios, select
from workbench.trials import claims
from workbench.trials.claims import OFTEN, Finding, check_between, check_lower, decide


def _much_worse(rows, level, theta) -> Finding:
    before = of_filter(rows, "c, σ = 20", theta, of="c")
    return check_between(
        ratios(of_filter(rows, "c", theta), before, "query_size"),
        level,
        low=1 + 1e-12,
        share=OFTEN,
        words="higher",
    )


def _crossing(rows, level, panel: str, theta) -> tuple[float, float, float]:
    priority = errors(rows, PRIORITY, panel)
    return lower_from(ratios(priority, of_filter(rows, panel, theta), "query_size"), level)


def overtaken(rows, level, theta) -> Finding:
    """Whether priority sampling beats the filter from about a thousand cells on."""
    size, first, last = _crossing(rows, level, "c", theta)
    holds = decide(500 <= first and last <= 2000, last < 500 or first > 2000)
    return Finding(holds, from_size(size))


def _overtaken_earlier(rows, level, theta) -> Finding:
    own = 1 - (1 - level) / 2
    size, first, last = _crossing(rows, own, "c", theta)
    before, before_first, before_last = _crossing(rows, own, "ab", 50)
    holds = decide(last < before_first, first > before_last)
    return Finding(holds, f"{from_size(size)}; {from_size(before)} with σ = 20")


def _below_filter(rows, level, theta, panel: str, ours: str) -> Finding:
    other = of_filter(rows, panel, theta)
    return check_lower(ratios(errors(rows, ours, panel), other, "query_size"), level, OFTEN)


def _beats_sampling(rows, level, theta) -> Finding:
    priority = errors(rows, PRIORITY, "d")
    return check_lower(
        ratios(of_filter(rows, "d", theta), priority, "query_size"), level, OFTEN
    )


def _all_worse(rows, level, theta) -> Finding:
    table = errors(rows, TABLE, "c")
    summaries = {"filter": of_filter(rows, "c", theta)}
    summaries |= {series: errors(rows, series, "c") for series in (PRIORITY, BOTH["c"])}
    parts = {
        series: partial(check_lower, ratios(table, own, "query_size"), share=OFTEN)
        for series, own in summaries.items()
    }
    return claims.all_of(parts, level)


def _equal(rows, level) -> Finding:
    def at(theta, level):
        return comparable(rows, level, "c", f"filter-priority, θ = {theta}{TWICE}")

    return claims.over("θ of filter-priority", (5, 10, 20, 30, 40), at, level)


def _fewer_held(rows, level) -> Finding:
    held = [select(rows, panel=p, series=PRIORITY, metric=SHARE_HELD) for p in ("d", "ab")]
    sparse, usual = (x.assign(point=0) for x in held)
    finding = check_lower(ratios(sparse, usual, "point"), level)
    measured = f"{sparse.value.mean():.1%} against {usual.value.mean():.1%}; {finding.measured}"
    return Finding(finding.holds, measured, runs=finding.runs)


def _over(check, **given):
    return partial(over_filters, check=partial(check, **given))


_LOWER = partial(partial, lower)
OTHER_CHECKS = {
    "c-3c-1.1": _over(_much_worse),
    "c-3c-1.2": _over(overtaken),
    "c-3c-1.3": _over(_overtaken_earlier),
    "c-3c-1.4": _over(_below_filter, panel="c", ours=BOTH["c"]),
    "c-3c-1.5": _LOWER(ours=BOTH["c"], other=PRIORITY, panel="c"),
    "c-3c-1.6": _over(_all_worse),
    "c-3c-2.1": _LOWER(ours=BOTH["c"] + TWICE, other=BOTH["c"], panel="c"),
    "c-3c-2.2": _equal,
    "c-3d-1.1": _over(_beats_sampling),
    "c-3d-1.2": _fewer_held,
    "c-3d-1.3": _over(_below_filter, panel="d", ours=BOTH["d"]),
    "c-3d-1.4": _LOWER(ours=BOTH["d"], other=TABLE, panel="d", share=claims.EVERYWHERE),
}
