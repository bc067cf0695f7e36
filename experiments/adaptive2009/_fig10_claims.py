"""What figure 10's rows are asked for adaptive2009's statements about strings that appear often."""

from __future__ import annotations

from dataclasses import replace

from experiments.adaptive2009._real_strings import BY_SYMBOL, REAL
from experiments.adaptive2009._strings import of_log
from experiments.adaptive2009._techniques import IMPROVED
from experiments.adaptive2009._unprinted import check_over
from workbench.compiled import pd
from workbench.trials.claims import EVERYWHERE, OFTEN, Finding, check_between, means

FREQUENT = 500
FEWEST = 10  # strings of a first symbol
TREND = 0.75


def _printed(rows, metric: str) -> pd.DataFrame:
    """The improved histogram on the log's twin, beginnings among its strings."""
    own = of_log(rows)
    return own[(own.metric == metric) & (own.series == IMPROVED)]


def check_real(rows, level) -> Finding:
    """Whether three quarters of the strings are whole queries."""

    def check(own, level):
        own = own[own.value.notna()]
        if own.empty:
            return Finding(None, f"no string appears {FREQUENT} times")
        finding = _check_trend(own, "least", level)
        begins = f"beginnings of queries {own.begins.mean():.2%}"
        return replace(finding, measured=f"{finding.measured}; {begins}")

    own = _printed(rows, REAL)
    return check_over(check, own[own["least"] == FREQUENT], level)


def check_across(rows, level) -> Finding:
    """The same for each first symbol, of three quarters of the symbols."""

    def check(own, level):
        strings = own.groupby("symbol").strings
        enough = (strings.min() >= FEWEST) & (strings.size() == own.seed.nunique())
        own = own[own.symbol.map(enough)]
        if own.empty:
            return Finding(None, f"no symbol begins {FEWEST} such strings in every run")
        return _check_trend(own, "symbol", level, OFTEN)

    return check_over(check, _printed(rows, BY_SYMBOL), level)


def _check_trend(rows, by: str, level, share: float = EVERYWHERE) -> Finding:
    numbers = means(rows, IMPROVED, by)
    return check_between(numbers, level, low=TREND, share=share, words="three quarters real")


CHECKS = {"a-10.1": check_real, "a-10.2": check_across}
