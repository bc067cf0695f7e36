"""Values, guarantees, domains, workloads, tables: what they accept, and what they say to the rest."""

import copy
import json
import pickle
from itertools import product
from math import inf, nan

import numpy as np
import pandas as pd
import pytest

from workbench import (
    DP,
    PUBLIC,
    Bound,
    Boxes,
    Domain,
    RandomRanges,
    RandomSubsets,
    Ranges,
    Receipt,
    SparseTable,
    Subsets,
    compose,
)
from workbench.mechanisms import HighPassFilter
from workbench.queries import Shuffle
from workbench.spaces.domain import MAX_CELLS, states_public_truth
from workbench.trials import metrics
from workbench.value import parameter, read_only, value


@value
class Thing:
    n: int = parameter(low=1, high=9, integer=True, unit="cells")
    rate: float = parameter(0.5, 0, strict=True)
    mode: str = parameter("a", choices=("a", "b"))
    extra: float = parameter(None, 0)


def test_text_is_the_configuration_without_defaults():
    assert (
        repr(Thing(3)) == "Thing(n=3)"
        and repr(Thing(np.int64(3), rate=np.float64(2))) == "Thing(n=3, rate=2.0)"
    )
    assert eval(repr(Thing(3, mode="b", extra=1.5))) == Thing(3, mode="b", extra=1.5)


@pytest.mark.parametrize(
    "bad, word",
    [({"n": 0}, "n = 0"), ({"n": 10}, "<= 9"), ({"n": 2.0}, "whole"), ({"n": True}, "n = True")]
    + [
        ({"rate": 0}, "> 0"),
        ({"rate": nan}, "nan"),
        ({"rate": inf}, "inf"),
        ({"mode": "c"}, "'a', 'b'"),
    ]
    + [({"extra": -1}, "extra"), ({"rate": None}, "rate"), ({"n": "3"}, "n = '3'")],
)
def test_fields_say_what_they_allow(bad, word):
    with pytest.raises(ValueError, match=word):
        Thing(**{"n": 1} | bad)


# privacy


def test_receipts_add_up_and_the_maximum_counts_over_a_partition():
    a, b = Receipt("a", DP(0.1)), Receipt("b", DP(0.2, 1e-6))
    assert compose([a, b]).epsilon == pytest.approx(0.3) and compose([a, b]).delta == 1e-6
    parts = [
        Receipt("x", DP(e), part=("state", s)) for e, s in ((1, "RI"), (2, "NY"), (0.5, "RI"))
    ]
    assert compose(parts) == DP(2) and compose([*parts, a]) == DP(2.1)
    moved = [Receipt("x", DP(1), "replace-one-unit", part=("state", s)) for s in ("RI", "NY")]
    assert compose(moved) == DP(2)  # a replaced unit may change its part
    assert compose([]) == DP(0) and compose([a, Receipt("free", DP(inf))]).epsilon == inf


def test_relations_never_mix_silently():
    with pytest.raises(ValueError, match="relations"):
        compose([Receipt("a", DP(1)), Receipt("b", DP(1), relation="local")])


@pytest.mark.parametrize(
    "epsilon, delta", [(nan, 0), (-1, 0), (1, nan), (1, -0.1), (1, 2), ("1", 0), (True, 0)]
)
def test_a_guarantee_is_numbers(epsilon, delta):
    with pytest.raises(ValueError, match="DP"):
        DP(epsilon, delta)


def test_a_budget_covers_no_more_than_itself():
    tenths = compose([Receipt("s", DP(0.1))] * 10)  # the float 0.1 is more than a tenth
    assert tenths.epsilon > 1 and str(tenths) == "1-DP" and not DP(1.0).covers(tenths)
    assert DP(1.0).covers(compose([Receipt("s", DP(0.125))] * 8))
    assert not DP(1.0).covers(DP(1.0, 1e-9))


# domains


def test_keys_are_row_major_and_invert():
    domain = Domain(("a", "b", "c"), (3, 4, 5))
    codes = np.array(list(product(range(3), range(4), range(5))))
    assert (domain.keys(codes) == np.arange(60)).all() and (
        domain.codes(np.arange(60)) == codes
    ).all()


def test_the_largest_domain_works_and_a_larger_one_does_not():
    big = Domain(("a", "b"), (7, MAX_CELLS // 7))
    codes = np.array([[6, MAX_CELLS // 7 - 1], [0, 0]])
    assert big.size == MAX_CELLS and (big.codes(big.keys(codes)) == codes).all()
    with pytest.raises(ValueError, match="at most"):
        Domain(("a", "b"), (2**32, 2**31))


@pytest.mark.parametrize(
    "args",
    [
        ((), ()),
        (("a",), (0,)),
        (("a", "a"), (2, 2)),
        (("a",), (2, 3)),
        (("a",), (2,), (("x", "x"),)),
    ],
)
def test_a_domain_that_makes_no_sense_is_refused(args):
    with pytest.raises(ValueError, match="Domain"):
        Domain(*args)


def test_labels_in_and_out():
    domain = Domain(("sex", "age", "code"), (2, 100, 7), (("F", "M"), range(100), None))
    assert domain.encode("sex", ["M", "X", "F", None]).tolist() == [1, -1, 0, -1]
    assert domain.encode("age", [5, 100, -1, 99]).tolist() == [5, -1, -1, 99]
    assert domain.encode("age", ["5", "05", "99", "5.0"]).tolist() == [5, -1, 99, -1]
    assert domain.encode("code", [6, 7]).tolist() == [6, -1]
    assert domain.decode("sex", [1, 0]).tolist() == ["M", "F"]
    for name in domain.attributes:
        codes = np.arange(2)
        assert (domain.encode(name, domain.decode(name, codes)) == codes).all()


def test_a_domain_is_written_in_plain_words(tmp_path):
    (tmp_path / "tracts.txt").write_text("44001\n44003\n")
    told = {
        "home": {"file": "tracts.txt"},
        "age": {"from": 10, "to": 19},
        "n": 4,
        "sex": ["F", "M"],
    }
    (tmp_path / "domain.json").write_text(json.dumps(told))
    domain = Domain.read(tmp_path / "domain.json")
    assert domain.shape == (2, 10, 4, 2) and domain.labels[0] == ("44001", "44003")
    assert Domain.from_dict(domain.to_dict()) == domain


@pytest.mark.parametrize(
    "told",
    [
        [],
        {},
        {"a": []},
        {"a": "x"},
        {"a": {"from": 3, "to": 1}},
        {"a": True},
        {"a": 0},
        {"a": 1.5},
    ],
)
def test_a_domain_in_wrong_words_is_refused(told):
    with pytest.raises(ValueError, match=r"domain|attribute|Domain|\$.a: "):
        Domain.from_dict(told)


# tables


@pytest.mark.parametrize(
    "l0, linf, l1",
    [
        (0, 1, None),
        (1.5, 1, None),
        (1, 0, None),
        (1, nan, None),
        (1, inf, None),
        (2, 1, 3),
        (2, 2, 1),
    ],
)
def test_a_bound_that_makes_no_sense_is_refused(l0, linf, l1):
    with pytest.raises(ValueError, match="Bound"):
        Bound(l0, linf, l1)


def test_sensitivities():
    assert (
        Bound(4, 3).l1 == 12
        and Bound(4, 3).l2 == 6
        and Bound(4, 3, 4).l2 == pytest.approx(12**0.5)
    )


def test_a_table_says_its_bound_or_public():
    with pytest.raises(TypeError):
        SparseTable(Domain(("x",), (3,)), np.array([1]), np.array([1]))
    for wrong in (None, 1, "PUBLIC"):
        with pytest.raises(ValueError, match="bound"):
            SparseTable(Domain(("x",), (3,)), np.array([1]), np.array([1]), wrong)


@pytest.mark.parametrize(
    "keys, counts, word",
    [
        ([3], [1], "keys"),
        ([-1], [1], "keys"),
        ([0], [-1], "counts?"),
        ([0], [1.5], "1.5"),
        ([0], [nan], "nan"),
    ]
    + [
        ([0.5], [1], "keys"),
        ([0], ["x"], "whole"),
        ([0, 1], [1], "fit"),
        ([0], [inf], "inf"),
        ([0], [1e300], "e"),
    ],
)
def test_counts_and_keys_that_make_no_sense_are_refused(keys, counts, word):
    with pytest.raises(ValueError, match=word):
        SparseTable.from_keys(Domain(("x",), (3,)), keys, counts, Bound())


def test_the_strict_constructor_takes_sorted_distinct_nonempty_cells():
    for keys, counts in (([1, 0], [1, 1]), ([1, 1], [1, 1]), ([0], [0])):
        with pytest.raises(ValueError, match="SparseTable"):
            SparseTable(Domain(("x",), (3,)), np.array(keys), np.array(counts), Bound())


def test_one_table_from_four_sources():
    domain = Domain(("a", "b"), (3, 4), (("x", "y", "z"), range(10, 14)))
    frame = pd.DataFrame(
        {"b": [13, 10, 13, 11], "a": ["z", "x", "z", "y"], "k": [1.0, 2, 4, 0]}
    )
    table = SparseTable.from_frame(frame, domain, Bound(), count="k")
    assert table.keys.tolist() == [0, 11] and table.counts.tolist() == [2, 5]
    again = SparseTable.from_dense(domain, table.dense(), Bound())
    third = SparseTable.from_keys(domain, [11, 0, 11], [1, 2, 4], Bound())
    back = SparseTable.from_frame(table.to_frame(), domain, Bound(), count="count")
    for other in (again, third, back):
        assert (other.keys == table.keys).all() and (other.counts == table.counts).all()
    assert SparseTable.from_frame(frame, domain, Bound()).total == 4  # each row counts one


def test_a_frame_outside_the_domain_names_column_row_and_value():
    frame = pd.DataFrame({"a": ["x", "q"], "k": [1, 1]})
    with pytest.raises(ValueError, match="row 1, column 'a': found 'q'"):
        SparseTable.from_frame(frame, Domain(("a",), (1,), (("x",),)), Bound(), count="k")
    with pytest.raises(ValueError, match="the table has no column b: it has"):
        SparseTable.from_frame(frame, Domain(("b",), (1,)), Bound())


def test_a_marginal_keeps_what_a_unit_can_move():
    domain = Domain(("a", "b"), (3, 4))
    table = SparseTable.from_keys(domain, [0, 1, 4, 11], [1, 2, 4, 8], Bound(2, 3))
    marginal = table.project(["a"])
    assert marginal.counts.tolist() == [3, 4, 8] and marginal.bound.l1 == 6
    assert (marginal.bound.l0, marginal.bound.linf) == (2, 6)
    assert table.project(["b", "a"]).dense().tolist() == table.dense().T.tolist()
    assert SparseTable.from_keys(domain, [0], [1], PUBLIC).project(["a"]).bound is PUBLIC


# workloads


def test_ranges_agree_with_loops():
    rng = np.random.default_rng(0)
    domain, dense = Domain(("x",), (97,)), rng.poisson(0.4, 97)
    table = SparseTable.from_dense(domain, dense, Bound())
    lo = rng.integers(0, 98, 200)
    hi = np.maximum(lo, rng.integers(0, 98, 200))
    assert table.answer(Ranges(lo, hi)).tolist() == [
        dense[a:b].sum() for a, b in zip(lo, hi, strict=True)
    ]


def test_a_shuffle_is_a_permutation_and_looks_uniform():
    """Seeded: never by chance; sees a mean place that is off by 1.3 of 50."""
    for size in (1, 2, 3, 7, 64, 1000):
        assert sorted(Shuffle(size, 5)(np.arange(size))) == list(range(size))
    first = np.array([Shuffle(50, s)(np.arange(50)) for s in range(4000)])
    assert first.mean(axis=0) == pytest.approx(24.5, abs=1.3)
    together = ((first[:, 0] < 25) & (first[:, 1] < 25)).mean()
    assert together == pytest.approx(25 * 24 / (50 * 49), abs=0.04)


def test_random_subsets_are_subsets_of_their_size():
    """Seeded: never by chance; sees a share that is off by 0.02."""
    domain = Domain(("x",), (1000,))
    table = SparseTable.from_dense(domain, np.ones(1000, int), Bound())
    recipe = RandomSubsets(137, 20, seed=3)
    assert (
        table.answer(recipe).tolist()
        == [137.0] * 20
        == recipe.on(domain).cells(domain).tolist()
    )
    lower = SparseTable.from_keys(domain, np.arange(500), np.ones(500, int), Bound())
    share = (
        np.concatenate([lower.answer(RandomSubsets(137, 20, seed=s)) for s in range(40)]) / 137
    )
    assert share.mean() == pytest.approx(0.5, abs=0.02) and 0.02 < share.std() < 0.07


@pytest.mark.parametrize("n", [1, 60, 126, 500, 1000])
def test_random_subsets_sum_what_they_hold_and_forget_what_is_gone(n):
    """Few keys are sorted, many are put in their places; either is kept while its arrays live."""
    from workbench.queries import ranges as shuffle

    domain, rng = Domain(("x",), (1000,)), np.random.default_rng(n)
    loose = np.sort(rng.choice(1000, n, replace=False)), rng.normal(size=n)
    before = len(shuffle._cache)
    RandomSubsets(37, 20).on(domain).sums(domain, *loose)
    assert len(shuffle._cache) == before, "what may still change is not kept"
    keys, values = map(read_only, loose)
    for size in (37, 800):
        subsets = RandomSubsets(size, 20, seed=2).on(domain)
        place = subsets.shuffle(keys)
        held = zip(subsets.ranges.lo, subsets.ranges.hi, strict=True)
        slow = [values[(lo <= place) & (place < hi)].sum() for lo, hi in held]
        np.testing.assert_allclose(subsets.sums(domain, keys, values), slow, atol=1e-9)
    assert len(shuffle._cache) == before + 1, "both sizes share one shuffled order"
    del keys
    assert len(shuffle._cache) == before


def test_recipes_draw_the_same_everywhere_and_fit_or_refuse():
    domain = Domain(("x",), (100,))
    a, b = (RandomRanges(10, 50, seed=1).on(domain) for _ in range(2))
    assert (a.lo == b.lo).all() and a.lo.min() >= 0 and a.hi.max() <= 100
    for recipe in (RandomRanges(101), RandomSubsets(101)):
        with pytest.raises(ValueError, match="101"):
            recipe.on(domain)
    assert (RandomRanges(100).on(domain).lo == 0).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda d: Ranges([3], [2]),
        lambda d: Ranges([-1], [2]),
        lambda d: Ranges([0, 1], [2]),
        lambda d: Ranges([0], [10]).on(d),
        lambda d: Subsets.of([[9]]).on(d),
        lambda d: Subsets.of([[-1]]).on(d),
        lambda d: Boxes([[0]], [[10]]).on(d),
        lambda d: Boxes([[2]], [[1]]),
        lambda d: Boxes([0, 0, 0], [0, 199, 23]),  # meant as codes 0, 0 … 199 and 0 … 23
        lambda d: RandomSubsets(5).on(Domain(("y",), (99,))).on(d),
    ],
)
def test_queries_that_do_not_fit_are_refused(make):
    with pytest.raises(ValueError, match="range|Range|subset|box|Box|fit"):
        make(Domain(("x",), (9,)))


# metrics


def test_truth_leaves_by_no_side_door():
    domain = Domain(("x",), (9,))
    private = SparseTable.from_keys(domain, [1], [5], Bound())
    for metric in (
        metrics.MeanAbsoluteError(RandomRanges(2)),
        metrics.MedianRelativeError(RandomRanges(2)),
        metrics.MeanSignedError(RandomRanges(2)),
        metrics.HeldCells(),
    ):
        with pytest.raises(ValueError, match="truth_public"):
            metric(private, private)


def test_errors_of_known_answers():
    domain = Domain(("x",), (4,))
    truth = SparseTable.from_keys(domain, [0, 1], [10, 20], Bound(), truth_public=True)
    other = SparseTable.from_keys(domain, [0, 1, 3], [13, 16, 5], PUBLIC)
    cells = Ranges([0, 1, 2, 3], [1, 2, 3, 4])
    estimate = _estimate(other)
    assert metrics.MeanAbsoluteError(cells)(truth, estimate) == 3.0
    assert metrics.MedianRelativeError(cells)(truth, estimate) == pytest.approx(0.25)
    assert metrics.MeanSignedError(cells)(truth, estimate) == 1.0


class _estimate:
    def __init__(self, table):
        self.table = table

    def answer(self, workload, weights):
        return self.table.answer(workload)


def test_a_table_and_a_release_cannot_be_changed_under_their_answers():
    table = SparseTable.from_keys(Domain(("x",), (9,)), [1, 5], [2, 3], Bound())
    summary = HighPassFilter(DP(9.0), 1)(table).estimate
    for array in (table.keys, table.counts, summary.keys, summary.values, summary.weights()):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


def test_the_text_of_long_workloads_tells_them_apart():
    lo = np.arange(3000)
    hi = lo + 1
    hi[1500] += 1
    texts = {
        repr(w) for w in (Ranges(lo, lo + 1), Ranges(lo, hi), Boxes(lo[:, None], hi[:, None]))
    }
    assert len(texts) == 3 and repr(Ranges(lo, hi)) in texts


@pytest.mark.parametrize(
    "labels",
    [
        (1, 2.5),
        (1.0, nan),
        (None, "a"),
        (1, "1"),
        ("a", "a"),
        (2**63, 1),
        ("\ud800", "b"),
        (0, True),
    ],
)
def test_labels_that_no_file_could_hold_are_refused(labels):
    with pytest.raises(ValueError, match="labels"):
        Domain(("x",), (2,), (labels,))


def test_labels_may_be_numpys_and_ranges_are_never_spelt_out():
    assert Domain(("x",), (2,), (np.array([3, 4]),)).labels == ((3, 4),)
    huge = Domain(("x",), (10**12,), (range(0, 2 * 10**12, 2),))
    assert Domain.from_dict(huge.to_dict()) == huge
    assert huge.encode("x", [4, 5, "6"]).tolist() == [2, -1, 3]


@pytest.mark.parametrize("name", ["count", "noisy"])
def test_attributes_leave_the_columns_of_releases_free(name):
    with pytest.raises(ValueError, match=name):
        Domain((name, "x"), (2, 2))


def test_bounds_take_numpys_numbers_and_no_infinity():
    assert Bound(np.int64(3)) == Bound(3) and type(Bound(np.int64(3)).l1) is int
    with pytest.raises(ValueError, match="l0"):
        Bound(inf)


def test_sums_that_would_wrap_are_refused():
    with pytest.raises(ValueError, match="sum"):
        SparseTable.from_keys(
            Domain(("x",), (9,)), np.zeros(2048, int), np.full(2048, 2**53), Bound()
        )


def test_public_stays_public_in_other_processes():
    assert pickle.loads(pickle.dumps(PUBLIC)) is PUBLIC and copy.deepcopy(PUBLIC) is PUBLIC


def test_a_guarantee_is_never_rounded():
    assert (
        str(DP(1.0000004)) == "1.0000004-DP"
        and str(DP(0.5)) == "0.5-DP"
        and str(DP(1.0)) == "1-DP"
    )


def test_tables_do_not_follow_the_arrays_they_were_made_of():
    keys, counts = np.array([1, 5]), np.array([2, 3])
    table = SparseTable(Domain(("x",), (9,)), keys, counts, Bound())
    keys[0], counts[0] = 7, 1000
    assert table.keys.tolist() == [1, 5] and table.counts.tolist() == [2, 3]


def test_a_domains_file_may_state_that_the_truth_is_public(tmp_path):
    path = tmp_path / "domain.json"
    for stated, public in (
        ({}, False),
        ({"truth_public": False}, False),
        ({"truth_public": True}, True),
    ):
        path.write_text(json.dumps({"x": 9} | stated))
        assert states_public_truth(path) is public
        assert Domain.read(path) == Domain(("x",), (9,))
    for wrong in ("true", 1, None, ["yes", "no"]):
        path.write_text(json.dumps({"x": 9, "truth_public": wrong}))
        for read in (Domain.read, states_public_truth):
            with pytest.raises(ValueError, match="truth_public = .* need true .* or false"):
                read(path)
    path.write_text("[1, 2]")
    with pytest.raises(ValueError, match="a domain is an object of attributes"):
        Domain.read(path)


def test_a_table_is_read_from_a_file(tmp_path):
    domain = Domain(("x", "y"), (2, 30), (("007", "08"), None))
    path = tmp_path / "table.csv"
    path.write_text("y,x,n\n5,007,2\n29,08,1\n5,007,3\n")
    table = SparseTable.read(path, domain, Bound(2, 1), count="n")
    assert table.keys.tolist() == [5, 59] and table.counts.tolist() == [5, 1]
    assert table.bound == Bound(2, 1) and not table.truth_public
    assert SparseTable.read(path, domain, Bound(), truth_public=True).counts.tolist() == [2, 1]
    path.write_text("y,x\n30,08\n")
    with pytest.raises(ValueError, match="row 1, column 'y': found '30'"):
        SparseTable.read(path, domain, Bound())


def test_label_files_are_read_as_people_write_them(tmp_path):
    (tmp_path / "x.txt").write_text("\ufeffJFK\nLAX \n\n\n", encoding="utf-8")
    assert Domain.from_dict({"x": {"file": "x.txt"}}, tmp_path).labels == (("JFK", "LAX"),)
    (tmp_path / "x.txt").write_text("a\nb\na\n")
    for file, word in (("x.txt", "'a' stands twice"), ("none.txt", r"\$.x: .*none.txt")):
        with pytest.raises(ValueError, match=word):
            Domain.from_dict({"x": {"file": file}}, tmp_path)
