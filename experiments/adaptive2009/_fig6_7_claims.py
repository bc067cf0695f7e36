"""What figures 6 and 7's rows are asked for adaptive2009's statements about how far people commute."""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.adaptive2009._commute_curve import GAP
from experiments.adaptive2009._commutes import POPULOUS, SPARSE, decisive
from experiments.adaptive2009._techniques import IMPROVED
from experiments.adaptive2009._unprinted import check_over, check_over_both
from workbench.compiled import pd
from workbench.trials.claims import (
    Finding,
    all_of,
    any_of,
    check_between,
    check_lower,
    means,
    paired_ratios,
)

WIDTHS = {"1%": 0.01, "2%": 0.02, "5%": 0.05}  # of a drawn line, as a part of the axis
MATCHED = "matched"


def _gaps(rows) -> pd.DataFrame:
    """The gaps of the improved histogram whose people times ε is the paper's."""
    rows = decisive(rows)
    return rows[(rows.metric == GAP) & (rows.series == IMPROVED) & (rows["product"] == MATCHED)]


def check_occluded(rows, level) -> Finding:
    """Whether from both populous origins all gaps are within a line."""
    rows = _gaps(rows)

    def check(own, level, value):
        gaps = means(own, IMPROVED, ["origin", "epsilon"])
        return check_between(gaps, level, high=value, words="within the line")

    return check_over_both(check, rows[rows.kind == POPULOUS], level, "line", WIDTHS)


def check_off(rows, level) -> Finding:
    """Whether from one sparse origin at least all gaps are wider than a line."""
    rows = _gaps(rows)

    def from_origin(own, width, level):
        gaps = means(own, IMPROVED, "epsilon")
        beyond = float(np.nextafter(width, 1))
        return check_between(gaps, level, low=beyond, words="beyond the line")

    def check(own, level, value):
        places = own.groupby("origin", sort=False)
        parts = {name: partial(from_origin, place, value) for name, place in places}
        return any_of(parts, level)

    return check_over_both(check, rows[rows.kind == SPARSE], level, "line", WIDTHS)


def check_worse(rows, level) -> Finding:
    """Whether one sparse origin has larger gaps than both populous ones, at each ε."""

    def check(own, level):
        kinds = own.drop_duplicates("origin").set_index("origin").kind
        by_origin = own.assign(series=own.origin, origin="", kind="", population=0, commuters=0)

        def than(sparse, populous, level):
            return check_lower(paired_ratios(by_origin, populous, sparse, "epsilon"), level)

        def from_origin(sparse, level):
            others = kinds.index[kinds == POPULOUS]
            return all_of({name: partial(than, sparse, name) for name in others}, level)

        sparse = kinds.index[kinds == SPARSE]
        return any_of({name: partial(from_origin, name) for name in sparse}, level)

    return check_over(check, _gaps(rows), level)


CHECKS = {"a-6.1": check_occluded, "a-7.1": check_off, "a-7.2": check_worse}
