"""What panels with a scene of their own have in common: refusals, and charts of one draw."""

import pytest

from tests.widgets.pages import moved
from workbench import widgets
from workbench.widgets.scenes.adaptive import BASIC, STRINGS, TREE

FEW = dict(records=10_000, count=60)
USERS = dict(users=300, items=60, records=6000, max_per_user=200)
OPENED = {
    "adaptive": {},
    "consistency": {},
    "contributions": USERS | dict(bound=100),
    "history": FEW,
}
CANNOT_BE = [
    (
        "adaptive",
        dict(threshold=3),
        "threshold = 3 is not allowed: of an empty node's 4 children",
    ),
    (
        "adaptive",
        dict(own_discount=True, discount=102),
        "the guarantee needs at least threshold + ln 2·l1/ε_s, here 103",
    ),
    ("adaptive", dict(mechanism=BASIC, depth=11), "depth = 11 is not allowed: need at most 10"),
    (
        "adaptive",
        dict(mechanism=TREE, threshold=1.5),
        "threshold = 1.5 is not allowed: need a whole",
    ),
    ("adaptive", dict(records=0), "Towns.records = 0 is not allowed"),
    ("adaptive", dict(records=10**7 + 1), "10000001 is not allowed: need at most 10,000,000"),
    ("adaptive", dict(records=10**9, data=STRINGS), "records = 1000000000 is not allowed"),
    ("consistency", dict(branching=1), "HierarchicalHistogram.branching = 1 is not allowed"),
    (
        "consistency",
        dict(branching=2.5),
        "HierarchicalHistogram.branching = 2.5 is not allowed",
    ),
    (
        "consistency",
        dict(epsilon=0),
        "HierarchicalHistogram.budget = DP(epsilon=0.0) is not allowed",
    ),
    ("consistency", dict(size=0), "RandomRanges.size = 0 is not allowed"),
    ("consistency", dict(size=65_537), "queries of 65537 cells do not fit a domain of 65536"),
    ("contributions", dict(l=0.5), "SRA.l = 0.5 is not allowed: need a whole number >= 1"),
    ("contributions", dict(mechanism="HPA", d=0), "HPA.d = 0 is not allowed"),
    ("contributions", dict(mechanism="HPA", popularity_share=1.0), "HPA.popularity_share = 1"),
    ("contributions", dict(mechanism="LPA", bound=0), "LPA.bound = 0 is not allowed"),
    ("contributions", dict(mechanism="DFT", bound=0), "FPA.bound = 0 is not allowed"),
    ("contributions", dict(epsilon=-1.0), "epsilon"),
    ("contributions", dict(records=100), "InteractionsTwin.records = 100 is not allowed: need"),
    ("history", dict(alpha=0.0), "KernelPCA.alpha = 0.0 is not allowed"),
    ("history", dict(epsilon=0.0), "LaplaceQueries.budget = DP(epsilon=0.0) is not allowed"),
    ("history", dict(count=0), "First.count = 0 is not allowed"),
    ("history", dict(count=2.5), "First.count = 2.5 is not allowed"),
    ("history", dict(count=1001), "First.count = 1001 is not allowed: need at most 1,000"),
    (
        "history",
        dict(records=10**7 + 1),
        "IPUMSTwin.records = 10000001 is not allowed: need at most",
    ),
    ("history", dict(records=0), "IPUMSTwin.records = 0 is not allowed"),
    ("history", dict(attributes=0), "attributes = 0 is not allowed: need one of 2, 3, 4, 6, 9"),
]


@pytest.mark.parametrize("name, values, words", CANNOT_BE)
def test_what_cannot_be_is_said_by_whoever_refuses(name, values, words):
    shown = getattr(widgets, name)(**OPENED[name])
    before, charts = dict(shown.values), shown.view["charts"]
    view = moved(shown, **before | values)
    assert words in view["error"] and view["charts"] == charts
    with pytest.raises(ValueError) as refused:
        shown.set(**values)
    assert str(refused.value) == view["error"]
    assert not moved(shown, **before)["error"]


@pytest.mark.parametrize(
    "name, values, errors",
    [
        ("consistency", {}, 1),
        ("consistency", {"task": "sorted counts"}, 1),
        ("history", FEW, 2),
        ("summaries", {}, 1),
    ],
)
def test_counts_are_those_of_the_first_of_many_draws(name, values, errors):
    many, once = (
        getattr(widgets, name)(seeds=n, seed=3, **values).view["charts"] for n in (2, 1)
    )
    assert many[errors:] == once[errors:] and "low" in many[0]["lines"][0]
