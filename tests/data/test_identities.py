"""A person's draws follow from the key and that person's own value, in any type, file or company."""

import re
import sqlite3
from datetime import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data import numbered
from workbench import DP, UNBOUNDED, Bound, Domain, Interactions, Records, SparseTable
from workbench.data import UserNumbers, check_table, user_kernels
from workbench.data.sources import series_of
from workbench.data.users import users_of
from workbench.mechanisms import HighPassFilter
from workbench.owner.scale import Rows, release
from workbench.spaces import Prefixes

KEY = bytes(range(32))
BOUND = Bound(3, 1)
DOMAIN = Domain(("item", "day"), (40, 2))
USERS = 40


def rows(others=()):
    """Items of users 0 … 39, 12 each, and of others: (user, item, day)."""
    rng = np.random.default_rng(5)
    users = np.repeat(np.arange(USERS), 12)
    items = rng.integers(0, 39, len(users))
    days = rng.integers(0, 2, len(users))
    return (
        [*users.tolist(), *others],
        [*items.tolist(), *[39] * len(others)],
        [*days.tolist(), *[0] * len(others)],
    )


def kept(users, items, days, **how):
    """What stays of all, as a table of cells."""
    data = pa.table({"who": users, "item": items, "day": days})
    return SparseTable.from_frame(data, DOMAIN, BOUND, user="who", key=KEY, **how).dense()


def identity(values, user_type=None):
    """What identifies each value's person."""
    values = values if isinstance(values, pa.Array) else pd.Series(values)
    values = series_of("who", values)
    column = UserNumbers("who", user_type)
    numbers = numbered(column, values)
    return column.users(numbers).ids_of(numbers).tolist()


@pytest.mark.parametrize(
    "same",
    [
        [
            np.array([3, 70], np.int8),
            np.array([3, 70], np.uint32),
            np.array([3, 70], np.uint64),
            [3.0, 70.0],
            np.array([3, 70], np.float16),
            pa.array([Decimal("3.00"), Decimal("70")]),
        ],
        [
            ["3", "70"],
            pd.Series([3, 70.0], dtype=object),
            pd.Series([Decimal("3.00"), "70"], dtype=object),
        ],
        [[2**32 - 1, 2**31], np.array([2**32 - 1, 2**31], np.uint32)],
        [
            ["P1", "7", "ä"],
            ["P1 ", "7\u2003", "a\u0308"],
            ["\xa0P1", "\ufeff7", "\u200b ä \u2060"],
            pd.Categorical(["P1 ", " 7", "ä"], ["07", "ä", "P1 ", " 7"]),
        ],
        [pa.array([datetime(2020, 1, 2)], pa.timestamp(unit)) for unit in ("s", "ms", "ns")],
    ],
)
def test_the_same_value_in_any_type_is_the_same_person(same):
    expected = identity(same[0])
    assert len({tuple(x) for x in expected}) == len(expected)
    for values in same[1:]:
        assert identity(values) == expected


@pytest.mark.parametrize("other", ["x", 2**64, 1.5, -(2**70)], ids=str)
def test_a_list_of_users_of_several_types_is_refused(other):
    """As text, the integers would be other users, of whom other rows stay."""
    with pytest.raises(ValueError, match="users are of several types"):
        users_of([3, 70, other])
    few, more = users_of([3, 70]), users_of([3, 70, 2**63])
    ids = more.ids_of(more.numbers)
    np.testing.assert_array_equal(ids[:2], few.ids_of(few.numbers))


SPELLED = (
    *(
        "007",
        "7.0",
        "7e0",
        "+7",
        "-0",
        "7.50",
        ".5",
        "７",
        "٧",
        "1,000",
        "0x7",
        "1'000",
        "1 000",
        "−7",
    ),
    *("7.", "1\xa0000", "1\u200b0", "7,5", "00", "- 7"),
)


@pytest.mark.parametrize("text", SPELLED)
def test_text_that_spells_a_number_unusually_is_refused_by_itself(text):
    for values in ([text], ["P1", text], pd.Categorical(["P1", text])):
        with pytest.raises(ValueError, match="--user-type text .*user_type='text'"):
            identity(values)
    assert identity([f" {text}"], "text") != identity(["7"], "text")


def test_a_category_that_no_row_has_refuses_nothing_until_a_row_has_it():
    column = UserNumbers("who")
    kinds = pa.array(["7", "007"])
    numbered(column, series_of("who", pa.DictionaryArray.from_arrays([0, 0], kinds)))
    with pytest.raises(ValueError, match="row 1, column 'who': .*usual spelling"):
        numbered(column, series_of("who", pa.DictionaryArray.from_arrays([0, 1], kinds)))


@pytest.mark.parametrize(
    "text",
    ["7", "0", "-7", "10" * 20, "P07", "7a", "192.168.0.1", "2026-03-19", "12:30", "1/2"],
)
def test_other_text_is_a_person(text):
    assert identity([text]) == identity([text], "text")


def test_with_users_as_text_spellings_are_apart_and_integers_are_their_usual_one():
    assert len({tuple(x) for x in identity(["7", "007", "7.0"], "text")}) == 3
    for seven in ([7], [7.0], pa.array([Decimal("7.00")]), [" 7"]):
        assert identity(seven, "text") == identity(["7"])
    with pytest.raises(ValueError, match="user_type = 'int' is not allowed"):
        UserNumbers("who", "int")


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([3.0, 7.5], "row 1, column 'who': .*an integer .*below 2⁵³"),
        ([3.0, 2.0**53], "row 1, column 'who': .*an integer .*below 2⁵³"),  # 2⁵³ + 1, too
        (np.array([3, 2**24], np.float32), "row 1, column 'who': .*below 2²⁴"),
        (pa.array([Decimal("3"), Decimal("7.5")]), "row 1, column 'who': .*need an integer"),
        (pa.array([0, 1], pa.timestamp("ns")), "row 1, column 'who': .*to the microsecond"),
        ([True, False], "need integers, text, dates or times"),
        (pd.Series([7, "07"], dtype=object), "row 1, column 'who': .*usual spelling"),
        (pd.Series(["P1", b"P1"], dtype=object), r"holds bytes: .*Store it as text"),
    ],
)
def test_a_value_that_names_nobody_is_refused(values, why):
    with pytest.raises(ValueError, match=why):
        identity(values)


def test_one_user_more_does_not_move_what_stays_of_the_others():
    """In whatever type the column of users then is."""
    users, items, days = rows()
    before = kept(pa.array(users), items, days)
    for other in (999, 2**40, -1):
        own = rows([other])
        for values in (pa.array(own[0]), pa.array(own[0], pa.float64())):
            after = kept(values, *own[1:])
            np.testing.assert_array_equal(after[:39], before[:39])
    with pytest.raises(ValueError, match="below 2⁵³"):
        kept(pa.array(rows([7.5])[0], pa.float64()), *rows([7.5])[1:])
    texts = kept(pa.array([f"u{x}" for x in users]), items, days)
    for other in ("ü", " u3x", "x" * 999):
        own = rows([other])
        values = pa.array([x if x == other else f"u{x}" for x in own[0]])
        for column in (values, values.dictionary_encode(), values.cast(pa.large_string())):
            np.testing.assert_array_equal(kept(column, *own[1:])[:39], texts[:39])


def written(folder, users, items, days):
    """The same table in every kind of file and frame."""
    table = pa.table({"who": users, "item": items, "day": days})
    frame = table.to_pandas()
    frame.to_csv(folder / "t.csv", index=False)
    pq.write_table(table, folder / "t.parquet", use_dictionary=False)
    pq.write_table(table, folder / "coded.parquet")
    with sqlite3.connect(folder / "t.db") as connection:
        connection.execute("CREATE TABLE t (who TEXT, item INTEGER, day INTEGER)")
        lists = zip(*table.to_pydict().values(), strict=True)
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", lists)
    files = {"t.parquet": None, "coded.parquet": None}
    if pa.types.is_string(table["who"].type):  # of these files all users are text
        files |= {"t.csv": None, "t.db": "t"}
    return files, [frame, pl.from_arrow(table), table]


@pytest.mark.parametrize("kind", ["integers", "text"])
def test_what_stays_is_the_same_from_every_source(tmp_path, kind):
    users, items, days = rows()
    users = pa.array(users) if kind == "integers" else pa.array([f" u{x}" for x in users])
    expected = kept(users, items, days)
    files, frames = written(tmp_path, users, items, days)
    for frame in frames:
        table = SparseTable.from_frame(frame, DOMAIN, BOUND, user="who", key=KEY)
        np.testing.assert_array_equal(table.dense(), expected)
    for file, table in files.items():
        path = tmp_path / file
        own = SparseTable.read(path, DOMAIN, BOUND, user="who", key=KEY, table=table)
        np.testing.assert_array_equal(own.dense(), expected)
        data = Interactions.read(path, user="who", domain=DOMAIN, bound=UNBOUNDED, table=table)
        np.testing.assert_array_equal(data.table(BOUND, key=KEY).dense(), expected)
        in_parts = Rows.read(path, DOMAIN, BOUND, user="who", key=KEY, table=table)
        made = release(HighPassFilter(DP(1e6), theta=0.5), in_parts).estimate
        np.testing.assert_array_equal(
            in_parts.domain.frame(made.keys), own.domain.frame(own.keys)
        )
    named = dict(user="who", item="item", context="day", domain=DOMAIN, bound=UNBOUNDED)
    for data in (
        Interactions.read(tmp_path / "coded.parquet", **named),
        Interactions.from_frame(frames[0], **named),
    ):
        np.testing.assert_array_equal(data.table(BOUND, key=KEY).dense(), expected)


def test_records_are_cut_alike_in_company_of_any_type(tmp_path):
    tree = Prefixes("0123456789", 2, "item")
    users, items, _ = rows()
    texts = [f"{x:02}" for x in items]

    def counts(values, texts):
        frame = pa.table({"who": values, "item": texts})
        pq.write_table(frame, tmp_path / "r.parquet")
        made = Records.read(tmp_path / "r.parquet", tree, BOUND, user="who", key=KEY)
        return made.to_frame().to_numpy().tolist()

    before = counts(pa.array(users), texts)
    assert counts(pa.array([*users, 5000.0], pa.float64()), [*texts, "99"])[:-1] == before


def test_a_check_lists_all_users_that_a_release_would_refuse():
    frame = pd.DataFrame(
        {"who": ["7", "007", None, "1,000", " "], "item": [1] * 5, "day": [0] * 5}
    )
    refused = check_table(frame, DOMAIN, user="who").refused
    assert [(re.split("[,.]", x.need)[0], x.rows) for x in refused] == [
        ("a user", 2),
        ("an integer in its usual spelling", 2),
    ]
    assert check_table(frame[:2], DOMAIN, user="who", user_type="text").refused == []


def test_text_users_are_numbered_as_they_come():
    """Over many batches, of which each makes the list of names grow."""
    rng = np.random.default_rng(1)
    column = UserNumbers("who")
    numbers = {}
    for size in (10, 3000, 60_000, 5):
        names = [f"name {x}é" for x in rng.integers(0, 2 * size, size)]
        expected = [numbers.setdefault(name, len(numbers)) for name in names]
        assert numbered(column, pl.Series(names)).tolist() == expected
    found = column.users(np.zeros(0, np.int64))
    assert found.ids.to_list() == [*numbers]


def test_texts_of_one_hash_have_different_numbers():
    text = np.frombuffer(b"abbaab", np.uint8)  # a, bb, aa, b
    starts = np.array([0, 1, 3, 5, 6, 6, 6])  # and twice nothing
    held = np.full((16, 2), -1), np.zeros(20, np.uint8)
    numbers = np.zeros(6, np.int64)
    hashes = np.zeros(6, np.uint64)
    user_kernels.find_texts(hashes, starts, text, *held, numbers)
    assert numbers.tolist() == [-1] * 6
    assert user_kernels.add_texts(hashes, starts, text, 0, 0, *held, numbers) == (5, 11)
    assert numbers.tolist() == [0, 1, 2, 3, 4, 4]
    user_kernels.find_texts(hashes, starts, text, *held, numbers)
    assert numbers.tolist() == [0, 1, 2, 3, 4, 4]
