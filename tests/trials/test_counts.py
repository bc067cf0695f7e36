"""Metrics of interactions against their literal forms, and where an error comes from."""

from math import isnan, log

import numpy as np
import pandas as pd
import pytest

from tests.agreement import seeded
from tests.reference import exponential as literal
from workbench import DP, PUBLIC, UNBOUNDED, Domain, Interactions
from workbench.estimates import Histogram, ItemEdgeCounts
from workbench.mechanisms.smoothing import FPA, GS
from workbench.trials import metrics
from workbench.trials.metrics import (
    ContextShare,
    KLDivergence,
    MeanSquaredCountError,
    TopPrecision,
)

ITEMS, CONTEXTS = 30, 3
DOMAIN = Domain(("item", "context"), (ITEMS, CONTEXTS))


def truth(seed=0, records=200, **options):
    rng = seeded(seed)
    columns = (rng.integers(0, high, records) for high in (25, ITEMS, CONTEXTS))
    users, items, contexts = columns
    options = {"truth_public": True} | options
    return Interactions.from_codes(
        DOMAIN, np.sort(users), items // 2, contexts, UNBOUNDED, **options
    )


def tables(items, edges, domain=DOMAIN):
    return ItemEdgeCounts(Histogram(domain.project(["item"]), items), Histogram(domain, edges))


def estimate(seed=1, whole=False):
    rng = seeded(seed)
    values = [rng.normal(5, 6, n) for n in (ITEMS, ITEMS * CONTEXTS)]
    return tables(*(np.rint(v) if whole else v for v in values))


def lists(x, of):
    """Counts as rows: one of items, or one a context."""
    if isinstance(x, Interactions):
        counts = [x.item_counts()] if of == "items" else x.edge_counts().T
    else:
        counts = [x.items.values] if of == "items" else x.edges.values.reshape(-1, CONTEXTS).T
    return [list(map(float, row)) for row in counts]


either = pytest.mark.parametrize("of", ["items", "edges"])


@either
@pytest.mark.parametrize("seed", range(3))
def test_every_metric_is_its_literal_form(of, seed):
    exact, released = truth(seed), estimate(seed, whole=True)
    a, b = sum(lists(exact, of), []), sum(lists(released, of), [])
    squares = [(y - x) ** 2 for x, y in zip(a, b, strict=True)]
    assert MeanSquaredCountError(of)(exact, released) == pytest.approx(
        sum(squares) / len(squares)
    )
    there, back = literal.kl_both(b, a)
    assert KLDivergence(of)(exact, released) == pytest.approx(there)
    assert KLDivergence(of, "original_given_released")(exact, released) == pytest.approx(back)
    for k in (1, 2, 7, ITEMS, 99):
        each = [
            literal.expected_precision(y, x, k)
            for x, y in zip(lists(exact, of), lists(released, of), strict=True)
        ]
        assert TopPrecision(k, of)(exact, released) == pytest.approx(
            float(sum(each) / len(each))
        )


def test_without_ties_precision_is_the_plain_one():
    exact, released = truth(), estimate()
    rows = lists(exact, "items")
    distinct = sorted({x for x in rows[0]}, reverse=True)
    assert rows[0].count(distinct[0]) == 1
    found = TopPrecision(1)(exact, released)
    assert found == float(literal.precision(lists(released, "items")[0], rows[0], 1))


@either
def test_the_truth_itself_has_no_error(of):
    exact = truth()
    assert MeanSquaredCountError(of)(exact, exact) == 0 == KLDivergence(of)(exact, exact)


def test_ties_count_for_as_much_as_chance_would_give_them():
    flat = tables(np.zeros(ITEMS), np.zeros(ITEMS * CONTEXTS))
    for k in (1, 5):
        for of in ("items", "edges"):
            assert TopPrecision(k, of)(truth(), flat) == pytest.approx(k / ITEMS)


def test_the_floor_is_for_counts_of_nothing_alone():
    domain = Domain(("item", "context"), (2, 1))
    exact = Interactions.from_codes(
        domain, *np.array([[0], [0], [0]]), UNBOUNDED, truth_public=True
    )
    some = tables(np.array([0.005, -3.0]), np.zeros(2), domain)
    p, q = (0.005 / 0.105, 0.1 / 0.105), (1 / 1.1, 0.1 / 1.1)
    expected = sum(x * log(x / y) for x, y in zip(p, q, strict=True))
    assert KLDivergence(floor=0.1)(exact, some) == pytest.approx(expected)


def test_shares_of_contexts_add_up_to_one():
    exact, released = truth(), estimate()
    for x in (exact, released):
        shares = [ContextShare(c)(exact, x) for c in range(CONTEXTS)]
        assert sum(shares) == pytest.approx(1)
    held = exact.edge_counts().sum(axis=0)
    assert ContextShare(1)(exact, exact) == held[1] / held.sum()
    nothing = tables(np.zeros(ITEMS), np.full(ITEMS * CONTEXTS, -1.0))
    assert isnan(ContextShare(0)(exact, nothing))
    with pytest.raises(ValueError, match="ContextShare.context = 3 is not allowed: need"):
        ContextShare(3)(exact, released)


@pytest.mark.parametrize(
    "metric",
    [
        MeanSquaredCountError(),
        KLDivergence("edges"),
        TopPrecision(3),
        ContextShare(0),
    ],
    ids=repr,
)
def test_private_truth_and_other_domains_are_refused(metric):
    with pytest.raises(ValueError, match="truth_public"):
        metric(truth(truth_public=False), truth())
    private = truth(truth_public=False)
    shown = Interactions(
        DOMAIN, private.users, private.items, private.contexts, PUBLIC, truth_public=False
    )
    assert metric(shown, shown) == metric(truth(), truth())
    assert eval(repr(metric), vars(metrics)) == metric


@pytest.mark.parametrize("metric", [MeanSquaredCountError(), KLDivergence(), TopPrecision(3)])
def test_an_estimate_over_another_domain_is_refused(metric):
    domain = Domain(("item", "week"), (ITEMS, CONTEXTS))
    other = tables(np.zeros(ITEMS), np.zeros(ITEMS * CONTEXTS), domain)
    with pytest.raises(ValueError, match="does not fit a truth"):
        metric(truth(), other)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: MeanSquaredCountError("users"),
        lambda: KLDivergence(floor=0.0),
        lambda: KLDivergence(direction="both"),
        lambda: TopPrecision(0),
        lambda: ContextShare(-1),
    ],
)
def test_bad_fields_are_refused(wrong):
    with pytest.raises(ValueError, match="is not allowed: need"):
        wrong()


def parts_of_errors(exact, mechanism, seeds):
    frames = []
    for seed in seeds:
        kept = mechanism.bounded_data(exact, seeded(seed))
        released = mechanism(exact, seeded(seed)).estimate
        frames.append(metrics.error_parts(exact, kept, released).assign(seed=seed))
    return pd.concat(frames)


@pytest.mark.parametrize(
    "mechanism",
    [FPA(DP(1.0), bound=3), GS(DP(1.0), bound=3, width=2), FPA(DP(1e9), bound=99, k=101)],
    ids=repr,
)
def test_the_parts_of_an_error_add_up(mechanism):
    exact = truth()
    told = parts_of_errors(exact, mechanism, range(3))
    parts = told[["dropped", "noise", "interaction", "clipping"]].sum(axis=1)
    np.testing.assert_allclose(parts, told.total, atol=1e-6)
    assert (told.clipping <= 0).all() and set(told.decile) == set(range(1, 11))
    assert (told.groupby(["seed", "of"]).cells.sum().unique() == [90, 30]).all()
    for seed in range(3):
        released = mechanism(exact, seeded(seed)).estimate
        clipped = np.maximum(released.edges.values, 0) - exact.edge_counts().ravel()
        own = told[(told.seed == seed) & (told.of == "edges")]
        assert own.total.sum() == pytest.approx((clipped**2).sum())
    dropped = told.groupby("of").dropped.sum()
    if mechanism.bound == 99:
        assert (dropped == 0).all()
    else:
        assert (dropped > 0).all()


def test_deciles_are_of_items_by_true_count():
    exact = truth()
    told = parts_of_errors(exact, FPA(DP(1e9), bound=1, k=1), [0])
    counts = np.sort(exact.item_counts())
    kept = FPA(DP(1e9), bound=1, k=1).bounded_data(exact, seeded(0))
    lost = (exact.item_counts() - kept.item_counts())[
        np.argsort(exact.item_counts(), kind="stable")
    ]
    own = told[told.of == "items"].set_index("decile").dropped
    assert own[10] == (lost[-3:] ** 2).sum() and own[1] == (lost[:3] ** 2).sum()
    assert counts[-1] > 0


def test_parts_of_an_error_of_private_data_are_refused():
    data = truth(truth_public=False)
    with pytest.raises(ValueError, match="truth_public"):
        metrics.error_parts(data, data, estimate())
