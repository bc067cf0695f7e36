"""Randomised response: exact channels, unbiased reconstruction, error bars; against the reference."""

from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.agreement import RARE, fits, seeded
from tests.reference import local
from workbench import DP, PUBLIC, ZCDP, Bound, Domain, Marginals, Products, SparseTable
from workbench.estimates.reports import clip_to_total
from workbench.mechanisms import DirichletSynthesis, Flipping, InfTDA, RetentionReplacement
from workbench.noise import response
from workbench.noise import source as bits
from workbench.privacy import LOCAL
from workbench.privacy.enclosures import Interval
from workbench.queries import TableQueries, Together

DOMAIN = Domain(("a", "one", "b"), (2, 1, 3))
both = pytest.mark.parametrize("cls", [RetentionReplacement, Flipping])


def table(counts, domain=DOMAIN, bound=None):
    return SparseTable.from_keys(
        domain, range(len(counts)), counts, bound or Bound(), truth_public=True
    )


@pytest.mark.parametrize("decay", [Fraction(1, 9), Fraction(1), Fraction(40)])
@pytest.mark.parametrize("size", [2, 50])
def test_chances_are_the_formulas(decay, size):
    gamma = exp(decay)
    assert float(response.retention_probability(decay, size)(192)) == pytest.approx(
        local.retention(gamma, size), rel=1e-12
    )
    assert float(response.flip_probability(decay)(192)) == pytest.approx(
        local.flip(gamma), rel=1e-12
    )


def test_printed_numbers():
    for decay, size, printed in (
        (1, 2, 0.46212),
        (1, 50, 0.033224),
        (Fraction(1, 9), 50, 0.002345),
    ):
        kept = float(response.retention_probability(Fraction(decay), size)(192))
        assert kept == pytest.approx(printed, abs=5e-6)
    for decay, printed in ((1, 0.37754), (Fraction(1, 9), 0.48611)):
        flipped = float(response.flip_probability(Fraction(decay))(192))
        assert flipped == pytest.approx(printed, abs=1e-5)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 9.0])
def test_a_tuple_costs_its_budget(epsilon):
    """The reference's amplification of whole tuples, the attribute of one code left out."""
    sizes = [n for n in DOMAIN.shape if n > 1]
    kept = RetentionReplacement(DP(epsilon)).retention_probabilities(DOMAIN)
    channels = [
        local.retention_channel(p, n) for p, n in zip(kept, DOMAIN.shape, strict=True) if n > 1
    ]
    assert log(local.amplification(local.product_channel(channels))) == pytest.approx(epsilon)
    f = Flipping(DP(epsilon)).flip_probability(DOMAIN)
    flips = [local.flipping_channel(f, n) for n in sizes]
    assert log(local.amplification(local.product_channel(flips))) == pytest.approx(epsilon)


def test_the_papers_setting_is_nine_for_nine_attributes():
    nine = Domain(tuple("abcdefghi"), (79, 2, 17, 51, 9, 7, 6, 50, 50))
    kept = RetentionReplacement(DP(9.0)).retention_probabilities(nine)
    assert kept[7] == pytest.approx(0.033224, abs=1e-6) and kept[1] == pytest.approx(
        0.46212, abs=1e-5
    )
    assert Flipping(DP(9.0)).flip_probability(nine) == pytest.approx(0.37754, abs=1e-5)


@pytest.mark.parametrize("digits", [Fraction(1, 3), Fraction(5, 7)])
def test_coins_fall_as_their_chance_says(digits):
    """Seeded: never by chance; sees a chance that is off by 0.003."""
    source = bits.word_source(seeded(1))
    drawn = response.biased_bits(20_000, lambda b: Interval.of(digits, b), source)
    ones = np.unpackbits(drawn.view(np.uint8))
    assert stats.binomtest(int(ones.sum()), ones.size, float(digits)).pvalue > RARE
    pairs = (ones[::2] & ones[1::2]).sum()  # neighbours are independent
    assert stats.binomtest(int(pairs), ones.size // 2, float(digits) ** 2).pvalue > RARE


def test_flipped_bits_follow_their_channel():
    domain = Domain(("a",), (3,))
    one = SparseTable.from_keys(domain, [1], [30_000], Bound())
    reports = Flipping(DP(1.0))(one).estimate
    seen = reports.bits[:, 0].astype(int)
    column = local.flipping_channel(local.flip(exp(1)), 3)[1]
    chance = {sum(b << i for i, b in enumerate(y)): m
              for y, m in zip(product((0, 1), repeat=3), column, strict=True)}  # fmt: skip
    assert fits(seen, lambda y: chance.get(y, 0)) > RARE


def test_reports_tell_no_order():
    data = table([500, 400, 300, 200, 100, 50])
    reports = RetentionReplacement(DP(2.0))(data).estimate
    assert (np.diff(reports.keys) >= 0).all()
    rows = Flipping(DP(2.0))(data).estimate.bits
    assert (np.diff(rows[:, 0].astype(np.int64)) >= 0).all()


def test_retention_reconstructs_as_the_reference():
    data = table([5, 9, 2, 8, 1, 4])
    release = RetentionReplacement(DP(2.0))(data, seeded())
    observed = np.bincount(release.estimate.keys, minlength=6)
    channels = [
        local.retention_channel(p, n)
        for p, n in zip(release.estimate.retention, DOMAIN.shape, strict=True)
    ]
    expected = local.reconstruct(observed.tolist(), channels)
    assert release.estimate.joint(("a", "one", "b")).ravel() == pytest.approx(expected)
    assert release.answer(Marginals(3)) == pytest.approx(expected)


def test_flipping_reconstructs_as_the_reference():
    domain = Domain(("a", "b"), (2, 3))
    release = Flipping(DP(2.0))(table([5, 9, 2, 8, 1, 4], domain), seeded())
    f = release.estimate.flip_probability
    rows = [
        [[int(r) >> i & 1 for i in range(2)], [int(r) >> 2 + i & 1 for i in range(3)]]
        for r in release.estimate.bits[:, 0]
    ]
    expected = local.reconstruct_flipped(rows, domain.shape, (f, f))
    assert release.estimate.joint(("a", "b")).ravel() == pytest.approx(expected)
    assert release.estimate.joint(("b", "a")).T.ravel() == pytest.approx(expected)
    assert release.answer(Marginals(2)) == pytest.approx(expected)


def asked(domain=DOMAIN):
    """Products of one and several terms, tables, and marginals."""
    products = Products.of(
        domain,
        [
            {},
            {"b": np.array([1.0, -2, 0.5])},
            {"a": {1}, "b": (0, 2)},
            [{"a": {0}}, {"b": {2}}],
        ],
    )
    tables = TableQueries.of(domain, [(("b", "a"), [[1, 0], [0, 2], [-1, 0]])])
    return Together((products, tables, Marginals(2).on(domain)))


@pytest.mark.slow
@both
def test_answers_are_unbiased_and_error_bars_true(cls):
    """Seeded: never by chance; sees a bias of five standard errors, a squared error bar off by 35 %."""
    data, mechanism, rng = table([50, 90, 20, 80, 10, 40]), cls(DP(3.0)), seeded(2)
    drawn = [mechanism(data, rng).answer(asked(), error=True) for _ in range(400)]
    got, bars = (np.array(x) for x in zip(*drawn, strict=True))
    truth = data.answer(asked())
    spread = got.std(axis=0)
    assert (np.abs(got.mean(axis=0) - truth) <= 5 * spread / 20 + 1e-9).all()
    known = ~np.isnan(bars[0])
    assert (~known).sum() == 1  # the query of two terms
    squares = (bars[:, known] ** 2).mean(axis=0)
    assert squares == pytest.approx(spread[known] ** 2, rel=0.35, abs=1e-9)


def test_the_spread_of_a_cell_is_the_closed_form():
    """Seeded: never by chance; sees a squared error bar that is off by 15 %."""
    domain, counts = Domain(("a", "b"), (2, 3)), [50, 90, 20, 80, 10, 40]
    data, cell = table(counts, domain), Products.of(domain, [{"a": {1}, "b": {2}}])
    for mechanism in (RetentionReplacement(DP(3.0)), Flipping(DP(3.0))):
        drawn = [
            mechanism(data, rng).answer(cell, error=True)[1][0]
            for rng in map(seeded, range(60))
        ]
        if isinstance(mechanism, Flipping):
            f = mechanism.flip_probability(domain)
            expected = local.flipping_variance((1, 2), counts, domain.shape, (f, f))
        else:
            kept = mechanism.retention_probabilities(domain)
            expected = local.retention_variance((1, 2), counts, domain.shape, kept)
        assert np.mean(np.square(drawn)) == pytest.approx(expected, rel=0.15)


@both
def test_clipped_joints_are_tables(cls):
    reports = cls(DP(0.5))(table([50, 90, 20, 80, 10, 40]), seeded()).estimate
    joint = reports.joint(("a", "b"), clipped=True)
    assert joint.min() >= 0 and joint.sum() == pytest.approx(290)


def test_a_table_without_positive_cells_says_nothing():
    assert (clip_to_total(np.array([[-1.0, -2.0]]), 8) == 4).all()


@both
def test_receipts_say_local_and_other_tables_are_refused(cls):
    release = cls(DP(1.0))(table([1, 2]), seeded())
    assert release.relation == LOCAL and release.privacy == DP(1.0) and release.simulated
    with pytest.raises(ValueError, match="bound"):
        cls(DP(1.0))(table([1, 2], bound=Bound(2, 1)))
    with pytest.raises(ValueError, match="PUBLIC"):
        cls(DP(1.0))(table([1, 2], bound=PUBLIC))
    with pytest.raises(ValueError, match="different"):
        release.estimate.joint(("a", "a"))


@both
@pytest.mark.parametrize("action", ["other", "missing"])
def test_rows_that_are_left_out_would_tell_their_values(cls, action):
    """Anyone who knows all other rows learns from the number of reports whether a row had a label."""
    rows = [["F", "M", "F"], ["F", "M", "X" if action == "other" else None]]
    sexes = {"labels": ["F", "M"], "other": "label", "missing": "label"}
    for how, reports in (("label", [3, 3]), ("drop", [3, 2])):
        domain = Domain.from_dict({"sex": sexes | {action: how}})
        tables = [SparseTable.read(pd.DataFrame({"sex": x}), domain, Bound()) for x in rows]
        assert [table.total for table in tables] == reports
        if how == "label":
            assert cls(DP(1))(tables[1]).privacy == DP(1)
            continue
        with pytest.raises(ValueError, match="reveals values whose rows are left out"):
            cls(DP(1))(tables[0])


@both
@pytest.mark.parametrize(
    "domain",
    [
        {"sex": {"labels": ["F", "M"], "other": "drop"}, "age": {"labels": ["young", "old"]}},
        {"sex": ["F", "M"], "age": ["young", "old"], "missing_user": "drop"},
        {"sex": ["F", "M"], "age": ["young", "old"], "missing_user": {"drop": ["?"]}},
    ],
)
def test_and_so_would_they_in_a_marginal(cls, domain):
    rows = pd.DataFrame({"sex": ["F", "M"], "age": ["old", "young"]})
    table = SparseTable.read(rows, Domain.from_dict(domain), Bound())
    for made in (table, table.project(["age"]), table.project(["age"]).project(["age"])):
        with pytest.raises(ValueError, match="reveals values whose rows are left out"):
            cls(DP(1))(made)
    plain = Domain.from_dict({"age": ["young", "old"]})
    assert cls(DP(1))(SparseTable.read(rows, plain, Bound())).privacy == DP(1)


@pytest.mark.parametrize(
    "mechanism",
    [
        RetentionReplacement(DP(1.0)),
        Flipping(DP(1.0)),
        InfTDA(ZCDP(1.0), total=2),
        DirichletSynthesis(DP(1.0, 0.1), records=1, total=2),
    ],
    ids=lambda x: type(x).__name__,
)
def test_a_public_total_is_not_that_of_rows_left_out(mechanism):
    """Whether the total is the stated one would tell if the last row has a label, or the count 0."""
    rows = pd.DataFrame({"who": ["a", "b", "c"], "x": ["p", "q", "r"], "n": [1, 1, 0]})
    drops = Domain.from_dict({"x": {"labels": ["p", "q"], "other": "drop"}})
    plain = Domain.from_dict({"x": ["p", "q", "r"]})
    for domain, how in ((drops, {}), (plain, {"user": "who", "count": "n"})):
        table = SparseTable.read(rows, domain, Bound(), **how)
        assert table.total == 2
        with pytest.raises(ValueError, match="reveals values whose rows are left out"):
            mechanism(table)
    mechanism(SparseTable.read(rows[:2], plain, Bound(), user="who"))


def test_bits_of_huge_domains_are_refused():
    huge = SparseTable.from_keys(Domain(("a",), (2**40,)), [7], [3], Bound())
    with pytest.raises(ValueError, match="one bit per code"):
        Flipping(DP(1.0))(huge)
    assert len(RetentionReplacement(DP(1.0))(huge).estimate.keys) == 3


@both
@pytest.mark.parametrize("counts", [[], [3]])
def test_empty_tables_and_domains_of_one_cell(cls, counts):
    for domain in (DOMAIN, Domain(("x",), (1,))):
        release = cls(DP(1.0))(table(counts, domain))
        assert np.isfinite(release.answer(Marginals(1))).all()
        assert release.estimate.total == sum(counts)
