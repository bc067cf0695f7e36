"""Queries by label count what their words say, and whatever selects nothing is refused in words."""

import numpy as np
import pytest

from workbench import Domain, SparseTable
from workbench.data import PUBLIC
from workbench.queries import labelled_queries, linear_queries, marginal_queries, typed_query

DOMAIN = Domain(
    ("town", "hour", "age", "half", "vip"),
    (3, 24, 5, 2, 2),
    (("Bern", "St. Gallen", "a=b|c"), None, range(0, 50, 10), (0.5, 1.0), (False, True)),
)


def table():
    rng = np.random.default_rng(0)
    keys = rng.choice(DOMAIN.size, 300, replace=False)
    return SparseTable.from_keys(DOMAIN, keys, rng.integers(1, 99, 300), PUBLIC)


def counted(query, table):
    """The same by looking at each cell's labels, one by one."""
    total = 0
    for cell, count in zip(
        DOMAIN.frame(table.keys).to_dict("records"), table.counts, strict=True
    ):
        inside = True
        for name, labels in query.items():
            axis = DOMAIN.axis(name)
            own = list(DOMAIN.decode(name, np.arange(DOMAIN.shape[axis])))
            allowed = set()
            for part in labels if isinstance(labels, list) else [labels]:
                low, high = part if isinstance(part, tuple) else (part, part)
                allowed |= set(own[own.index(low) : own.index(high) + 1])
            inside &= cell[name] in allowed
        total += inside * count
    return total


QUERIES = [
    {},
    {"town": "Bern", "hour": (7, 9)},
    {"town": ["Bern", "a=b|c"], "hour": [1, (5, 8), 7]},
    {"hour": (0, 23), "age": (10, 30)},
    {"age": 20, "hour": 3, "half": 1.0},
    {"vip": True, "half": [0.5, 1.0], "town": ("Bern", "St. Gallen")},
]
TYPED = [
    "*",
    "town=Bern, hour=7..9",
    "town=Bern|'a=b|c' hour=1|5..8|7",
    "hour=* age=10..30",
    "age=20 hour=3 half=1",
    'vip=true half=0.5|1.0 town=Bern.."St. Gallen"',
]


def test_answers_are_those_of_looking_at_every_cell():
    data = table()
    expected = [counted(query, data) for query in QUERIES]
    for asked in (QUERIES, TYPED):
        queries = labelled_queries(DOMAIN, asked)
        assert queries.sums(DOMAIN, data.keys, data.counts).tolist() == expected
        linear = linear_queries(queries, DOMAIN)
        assert linear.sums(DOMAIN, data.keys, data.counts).tolist() == expected
        piece, ranges = queries.intervals(DOMAIN)
        sums = ranges.sums(DOMAIN, data.keys, data.counts)
        assert np.bincount(piece, sums).tolist() == expected
        cells = queries.cells(DOMAIN)
        assert cells[:2].tolist() == [DOMAIN.size, 3 * 5 * 4]
        assert np.bincount(piece, ranges.cells(DOMAIN)) == pytest.approx(cells)
        assert linear.cells(DOMAIN) == pytest.approx(cells)


def test_queries_of_too_many_ranges_look_at_each_cell(monkeypatch):
    data = table()
    queries = labelled_queries(DOMAIN, QUERIES)
    expected = queries.sums(DOMAIN, data.keys, data.counts)
    monkeypatch.setattr("workbench.queries.selections._MAX_RANGES", 0)
    assert (queries.sums(DOMAIN, data.keys, data.counts) == expected).all()


def test_numbers_of_numpy_and_whole_floats_are_labels():
    asked = [{"age": np.int64(20)}, {"age": 20.0}, {"age": np.float64(20)}, {"age": "20"}]
    queries = labelled_queries(DOMAIN, asked)
    assert (queries.which == queries.which[0]).all()


def test_a_marginal_has_each_combination_once():
    data = table()
    queries = marginal_queries(DOMAIN, ["age", "town"])
    sums = queries.sums(DOMAIN, data.keys, data.counts).reshape(5, 3)
    frame = DOMAIN.frame(data.keys).assign(n=data.counts)
    expected = frame.pivot_table("n", "age", "town", "sum", fill_value=0)
    assert (sums == expected[["Bern", "St. Gallen", "a=b|c"]].to_numpy()).all()


def test_a_doubled_quote_is_one():
    assert typed_query("""'a ""b'=\"x\"\"y\"|O'Hare""") == {'a ""b': ['x"y', "O'Hare"]}
    assert typed_query("t=-5..-1") == {"t": ("-5", "-1")}
    assert typed_query("t=0.5..1.5") == {"t": ("0.5", "1.5")}
    assert typed_query("a=1 * b=2") == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("", "is empty"),
        (" , ", "is empty"),
        ("town", "not a condition"),
        ("town=", "not a condition"),
        ("=Bern", "not a condition"),
        ("a=b=c", "names no labels"),
        ("town=|Bern", "names no labels"),
        ("hour=7..", "names no labels"),
        ("hour=7..8..9", "names no labels"),
        ("town=Bern town=Bern", "twice"),
        ("town='Bern", "not closed"),
        ("twon=Bern", "the nearest is town"),
        ("town=bren", "the nearest is Bern"),
        ("town=?", "there are Bern, St. Gallen, a=b|c"),
        ("hour=24", "0 to 23, the nearest is 23"),
        ("hour=1_0", "not in the domain"),
        ("hour=1e999", "the nearest is 23"),
        ("age=17", "by 10, the nearest is 20"),
        ("hour=9..7", "9 comes after 7"),
        ("town='St. Gallen'..Bern", "selects nothing"),
        ({"hour": []}, "selects nothing"),
        ({"hour": (1, 2, 3)}, "a tuple must be a pair"),
        ({"hour": float("nan")}, "not in the domain"),
        ({"town": None}, "not in the domain"),
        ({"town": "x" * 200_000}, "not in the domain"),
        (3, "need {attribute: labels}"),
        (None, "need {attribute: labels}"),
    ],
)
def test_what_selects_nothing_is_refused_and_says_why(query, why):
    with pytest.raises(ValueError, match=".*") as refused:
        labelled_queries(DOMAIN, [query])
    assert why in str(refused.value) and len(str(refused.value)) < 400


@pytest.mark.parametrize("names", [[], ["town", "town"], ["twon"]])
def test_a_marginal_of_what_is_not_there_is_refused(names):
    with pytest.raises(ValueError, match="town|different"):
        marginal_queries(DOMAIN, names)
