"""How spaces split, records in them, what is asked of them: against dictionaries of tuples."""

from bisect import bisect_left, bisect_right
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from tests.agreement import seeded
from workbench import PUBLIC, Bound, Boxes, Domain, RandomBoxes, Ranges, SparseTable, spaces
from workbench.data import Frontier, Records
from workbench.estimates import Leaves
from workbench.noise.law import Law
from workbench.queries import Level, Nodes
from workbench.spaces import (
    Attributes,
    Digits,
    Prefixes,
    Quadtree,
    Taxonomy,
    argsort_keys,
    searchsorted_keys,
)

CODES = (
    ("A", None), ("A1", "A"), ("A2", "A"), ("A21", "A2"), ("A22", "A2"), ("A23", "A2"),
    ("B", None), ("C", None), ("C1", "C"), ("C11", "C1"),
)  # fmt: skip


def path(tree, level, keys):
    """The digits of nodes, as tuples."""
    digits = [tree.digits.digit(i, keys).tolist() for i in range(level)]
    return list(zip(*digits, strict=True)) if digits else [()] * keys.shape[1]


def samples():
    rng = seeded()
    yield Quadtree(1, 5), rng.random((300, 1))
    yield Quadtree(3, 4), rng.beta(2, 5, (500, 3))
    yield Quadtree(4, 20), rng.beta(2, 5, (200, 4)).round(3)  # two words
    words = ["".join(rng.choice(list("abc"), rng.integers(0, 5))) for _ in range(300)]
    yield Prefixes("abc", 4), words
    yield Prefixes("abc", 60), [w * 5 for w in words]  # two words
    yield Prefixes("a", 3), ["", "a", "aa", "aaa", "aa"]
    yield Taxonomy(CODES), rng.choice(["A1", "A21", "A22", "A23", "B", "C11"], 50).tolist()
    cells = {"home": rng.integers(0, 6, 90), "work": rng.integers(0, 8, 90)}
    yield Attributes(Domain(("home", "work"), (6, 8))), pd.DataFrame(cells)


every = pytest.mark.parametrize("tree,values", list(samples()), ids=lambda x: type(x).__name__)


@pytest.mark.slow
@every
def test_children_of_a_node_hold_its_records(tree, values):
    """Level by level: the slices of occupied children are a partition, and keys are prefixes."""
    records = Records.from_values(tree, values, Bound())
    depth = tree.digits.depth
    full = path(tree, depth, records.keys)
    assert len(full) == len(values) and full == sorted(full)
    front = Frontier.root(records)
    seen = 0
    for level in range(depth):
        whose, digit, start, stop = front.children()
        assert (stop > start).all() and (stop - start).sum() == front.counts.sum()
        parents = path(tree, level, front.nodes)
        for i, d, a, b in zip(whose, digit, start, stop, strict=True):
            assert {p[: level + 1] for p in full[a:b]} == {(*parents[i], d)}
        many = tree.children(level, front.nodes)
        assert (digit < many[whose]).all()
        front, ended = front.next_level(np.ones(len(many), bool), np.empty(0, np.int64))
        ended = [(at, keys) for at, keys in ended if at == depth]
        made = (
            front.nodes.shape[1] + front.empty_nodes + sum(keys.shape[1] for _, keys in ended)
        )
        assert made == many.sum()
        seen += sum(records.node_counts(np.full(k.shape[1], at), k).sum() for at, k in ended)
    assert seen + front.counts.sum() == len(values)


@every
def test_levels_and_nodes_count_what_dictionaries_count(tree, values):
    counts = seeded().integers(1, 5, len(values))
    plain, weighted = (
        Records.from_values(tree, values, Bound(), counts=c) for c in (None, counts)
    )
    for records in (plain, weighted):
        weight = np.ones(len(records)) if records.counts is None else records.counts
        full = path(tree, tree.digits.depth, records.keys)
        for level in range(min(tree.digits.depth, 6) + 1):
            literal = Counter()
            for prefix, n in zip(full, weight, strict=True):
                literal[prefix[:level]] += int(n)
            keys, held = records.level(level)
            assert dict(zip(path(tree, level, keys), held.tolist(), strict=True)) == literal
            levels = np.full(len(held), level)
            assert (records.node_counts(levels, keys) == held).all()
            assert (records.answer(Nodes(levels, keys)) == held).all()
            if tree.digits.size < 2**20:
                nodes = Level(level).on(tree)
                answers = records.answer(Level(level))
                literal_answers = [literal[p] for p in path(tree, level, nodes.keys)]
                assert answers.tolist() == literal_answers and answers.sum() <= records.total
    assert weighted.total == counts.sum() and plain.total == len(values)


def test_points_land_where_their_coordinates_say():
    tree = Quadtree(2, 6, (-3.0, 10.0), (5.0, 12.0))
    points = seeded().random((400, 2))
    points = points * [8, 2] + [-3, 10]
    keys, why = tree.encode(points)
    cells = np.minimum(((points - [-3, 10]) / [8, 2] * 64).astype(int), 63)
    assert not why.any() and (tree.corners(keys).T == cells).all()
    frame = tree.frame(np.full(400, 6), keys)
    assert ((frame.x1_from <= points[:, 0]) & (points[:, 0] <= frame.x1_to)).all()
    inside = tree.points(np.full(400, 6), keys, seeded())
    assert (tree.encode(inside)[0] == keys).all()


def test_boxes_are_answered_as_by_masks():
    tree = Quadtree(2, 5)
    points = seeded().random((500, 2))
    records = Records.from_values(tree, points, Bound())
    boxes = RandomBoxes((7, 12), 30)
    queries = boxes.on(tree)
    literal = [
        ((points * 32 >= a) & (points * 32 < b)).all(axis=1).sum()
        for a, b in zip(queries.lo, queries.hi, strict=True)
    ]
    assert records.answer(boxes).tolist() == literal


def test_what_is_not_in_the_space_is_left_out_and_told():
    points = np.array([[0.5], [np.nan], [-0.1], [1.0], [np.inf], [1.0000001], [0.0]])
    records = Records.from_values(Quadtree(1, 3), points, Bound())
    assert records.left_out == {"outside the box": 4} and records.total == 3
    words = ["ab", "Ab", "abab", "", "a\0b", "a-b", "toolong", "é"]
    many = np.arange(1, 9)
    records = Records.from_values(Prefixes("ab", 3), words, Bound(), counts=many)
    assert records.left_out == {"too long": 3, "foreign symbol": 2 + 5 + 6 + 7 + 8}
    assert records.hierarchy.texts(records.keys) == ["", "ab"]
    assert records.counts.tolist() == [4, 1]
    lists = Records.from_values(Taxonomy(CODES), ["A", "B", "?", None], Bound())
    assert lists.left_out == {"not a leaf of the list": 3}


@pytest.mark.parametrize("make", [np.array, pd.Series, list, lambda x: np.array(x, "S5")])
def test_strings_come_in_every_form(make):
    words = ["abc", "", "b", "cab", "abc"]
    records = Records.from_values(Prefixes("abc", 4), make(words), Bound())
    assert records.hierarchy.texts(records.keys) == sorted(words)


def test_strings_of_other_alphabets_and_past_the_first_word():
    tree = Prefixes("añß", 3)
    records = Records.from_values(tree, ["ñ", "ßa", "añß"], Bound())
    assert sorted(tree.texts(records.keys)) == sorted(["ñ", "ßa", "añß"])
    assert tree.texts(tree.encode(np.array([b"a", b"aa"]))[0]) == ["a", "aa"]
    words = pd.Series(["xx", "ñß", "ñaßa", "a\0"])[1:]
    assert tree.encode(words)[1].tolist() == [0, 1, 2]
    long = Prefixes(depth=24)
    assert long.digits.word_count == 2 and long.digits.first_word_levels == 12
    words = ["the quick brown fox.", "a" * 12, "a" * 13, "a" * 24]
    records = Records.from_values(long, words, Bound())
    assert sorted(long.texts(records.keys)) == sorted(words)
    frame = long.frame(np.array([3, 24]), long.encode(["the", "a" * 24])[0])
    assert frame.complete.tolist() == [False, True]


def test_a_string_that_has_ended_is_complete_and_cannot_be_split():
    tree = Prefixes("ab", 3)
    keys, _ = tree.encode(["ab", "ab"])
    assert tree.frame(np.array([2, 3]), keys).complete.tolist() == [False, True]
    assert tree.children(2, keys).tolist() == [3, 3] and not tree.children(3, keys).any()
    assert not tree.children(2, tree.encode(["a"])[0]).any()  # "a" and its end


def test_hierarchies_tell_themselves():
    for tree, _ in samples():
        assert spaces.from_dict(spaces.to_dict(tree)) == tree
        if not isinstance(tree, Taxonomy):
            names = {"Quadtree": Quadtree, "Prefixes": Prefixes, "Attributes": Attributes}
            assert eval(repr(tree), names | {"Domain": Domain}) == tree


def test_the_largest_keys_fit_their_words():
    for tree in (Quadtree(4, 16), Quadtree(4, 32), Quadtree(1, 52), Quadtree(16, 8)):
        top = np.full((1, tree.dims), 1.0)
        records = Records.from_values(tree, np.concatenate([top, 0 * top, top]), Bound())
        assert records.level(tree.depth)[1].tolist() == [1, 2]
        assert records.level(1)[1].tolist() == [1, 2]
        root = np.zeros(1, np.int64), tree.digits.root()
        assert records.node_counts(*root).tolist() == [3]
    assert Digits((39,) * 24).word_count == 2
    with pytest.raises(ValueError, match="more than two words"):
        Prefixes(depth=25)
    with pytest.raises(ValueError, match="two words"):
        Quadtree(4, 33)


def test_records_of_a_table_are_its_cells():
    table = SparseTable.from_keys(Domain(("a", "b"), (3, 4)), [1, 7, 11], [2, 5, 1], Bound())
    records = Records.from_table(table)
    assert records.answer(Ranges([0, 4], [4, 12])).tolist() == [2, 6]
    assert records.answer(Boxes([[1, 0]], [[3, 4]])).tolist() == [6]
    assert records.to_frame()["count"].tolist() == [2, 5, 1]


def test_leaves_spread_what_they_hold():
    tree = Prefixes("ab", 2)
    levels = np.array([1, 2, 2, 2, 1])
    keys = np.array([[0, 3, 4, 5, 6]], np.uint64)  # end; a·end, aa, ab; b
    leaves = Leaves(tree, levels, keys, np.array([2, -1, 5, 0, 9]), Law("geometric", 1.0))
    answers, error = leaves.answer(Nodes.of(tree, ["", "a", "b", "ba", "aa"]), error=True)
    assert answers == pytest.approx([15, 4, 9, 3, 5])
    assert np.isnan(error).tolist() == [False, False, False, True, False]
    assert error[0] == pytest.approx(error[4] * 5**0.5)
    assert leaves.total == 16 and leaves.synthetic().total == 16
    told = leaves.to_frame()
    assert list(told.columns) == ["string", "complete", "count"]
    assert told.string.tolist() == ["", "aa", "b"] and told["count"].tolist() == [2, 5, 9]
    assert told.complete.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Quadtree(0, 3), "dims"),
        (lambda: Quadtree(2, 0), "depth"),
        (lambda: Quadtree(2, 53), "<= 52"),
        (lambda: Quadtree(2, 3, (0, 0), (1, 0)), "low"),
        (lambda: Quadtree(2, 3, (0, float("nan")), (1, 1)), "low"),
        (lambda: Quadtree(2, 3, (0,), (1,)), "entries"),
        (lambda: Prefixes("aa", 3), "different symbols"),
        (lambda: Prefixes("", 3), "different symbols"),
        (lambda: Prefixes("ab", 0), "depth"),
        (lambda: Taxonomy((("a", "b"),)), "not in the list"),
        (lambda: Taxonomy((("a", None), ("a", None))), "twice"),
        (lambda: Taxonomy((("a", None), ("b", "c"), ("c", "b"))), "belongs to itself"),
        (lambda: Taxonomy(()), "depth 0"),
        (lambda: Records(Quadtree(1, 2), np.array([3, 1], np.uint64), None, Bound()), "order"),
        (lambda: Records(Quadtree(1, 2), np.array([1, 3]), None, Bound()), "uint64"),
        (lambda: Records(Quadtree(1, 2), np.array([1], np.uint64), [-1], Bound()), "count"),
        (lambda: Records(Quadtree(1, 2), np.array([1], np.uint64), None, 1), "bound"),
        (lambda: Quadtree(2, 3).encode(np.zeros((3, 3))), "do not fit"),
        (lambda: Prefixes("ab", 3).encode(["a", None]), "missing"),
        (lambda: Nodes.of(Prefixes("ab", 3), ["ax"]), "foreign"),
        (lambda: Level(4).on(Quadtree(1, 3)), "not a level"),
        (lambda: Level(30).on(Quadtree(1, 40)), "more than"),
        (lambda: Ranges([0], [2]).on(Quadtree(1, 0)), "depth"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_bad_input_is_one_error_that_says_what(make, says):
    with pytest.raises(ValueError, match=says):
        make()


def test_private_records_do_not_show_how_many_they_are():
    tree = Quadtree(1, 3)
    points = seeded().random((7, 1))
    assert "7" not in repr(Records.from_values(tree, points, Bound()))
    assert "7" in repr(Records.from_values(tree, points, PUBLIC))


@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("after", [False, True])
def test_sorted_keys_are_found_among_sorted_keys_as_tuples_are(words, after):
    rng = np.random.default_rng(0)
    keys, wanted = (rng.integers(0, 9, (words, n)).astype(np.uint64) for n in (60, 40))
    keys, wanted = (some[:, argsort_keys(some)] for some in (keys, wanted))
    pairs = [tuple(pair) for pair in keys.T.tolist()]
    find = bisect_right if after else bisect_left
    expected = [find(pairs, tuple(pair)) for pair in wanted.T.tolist()]
    np.testing.assert_array_equal(searchsorted_keys(keys, wanted, after), expected)
    assert not len(searchsorted_keys(keys, wanted[:, :0], after))
