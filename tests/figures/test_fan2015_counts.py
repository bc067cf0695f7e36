"""Checks of counts by five methods: true worlds told from others, over readings of ε and laws."""

from functools import partial
from itertools import product

import pytest

from experiments.fan2015 import count_statements as checks
from experiments.fan2015._five_methods import READINGS
from tests.figures.worlds import multiplied, noisy

ERRORS = {"SRA": 1.0, "HPA": 1.1, "LPA": 100.0, "DFT": 10.0, "GS": 9.0}
SHARES = {"SRA": 0.7, "HPA": 0.8, "LPA": 0.01, "DFT": 0.02, "GS": 0.03}
LEVEL = 0.99


def world(values, suffix=" twin", laws=checks.LAWS):
    keys = product(checks.FOUR, READINGS, laws, values.items())
    rows = [
        {"panel": of + suffix, "reading": reading, "law": law, "series": series, "value": x}
        for of, reading, law, (series, x) in keys
    ]
    return noisy(rows, seeds=12)


def found(check, rows, **kwargs):
    return checks.swept(rows, LEVEL, partial(check, **kwargs))


BELOW = partial(checks.check_below, lower=checks.OURS, higher=checks.OTHERS)
MORE = partial(checks.check_more, more=checks.OURS, fewer=checks.OTHERS)
ALL = [  # check, its world, what to break
    (BELOW, ERRORS, {"series": "HPA"}, 20),
    (checks.check_comparable, ERRORS, {"series": "SRA"}, 12),
    (checks.check_no_worse, ERRORS, {"series": "GS"}, 2),
    (checks.check_preserved, ERRORS, {"series": "DFT"}, 8),
    (checks.check_failing, ERRORS, {"series": "GS"}, 0.1),
    (checks.check_lost, SHARES, {"series": "LPA"}, 70),
    (MORE, SHARES, {"series": "DFT"}, 45),
]


@pytest.mark.parametrize("check, values, where, factor", ALL)
def test_a_check_tells_a_true_world_from_a_broken_one(check, values, where, factor):
    assert found(check, world(values)).holds is True
    assert found(check, multiplied(world(values), where, factor)).outcome == "not testable here"
    of_law = where | {"law": "steeper"}
    assert found(check, multiplied(world(values), of_law, factor)).outcome.startswith("depends")
    files = multiplied(world(values, "", [checks.FILE]), where, factor)
    assert found(check, files).outcome == "differs"


def test_ours_are_not_the_lowest_where_another_is():
    assert found(checks.check_not_lowest, world(ERRORS)).outcome == "not testable here"
    rows = multiplied(world(ERRORS), {"series": "GS"}, 0.01)
    assert found(checks.check_not_lowest, rows).holds is True
