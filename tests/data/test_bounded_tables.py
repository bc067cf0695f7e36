"""Tables whose users are cut: from frames and files, with what they say of it."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench import (
    DP,
    PUBLIC,
    UNBOUNDED,
    Bound,
    Domain,
    Interactions,
    Records,
    Release,
    SparseTable,
)
from workbench.data import BELIEVED, ENFORCED, STATED, check_table
from workbench.mechanisms import HighPassFilter
from workbench.owner.scale import Rows, release
from workbench.spaces import Prefixes

DOMAIN = Domain(("from", "to"), (6, 5))
KEY = bytes(32)


def trips(n=500, users=40, seed=0):
    """Made-up trips, of which one user has half."""
    rng = np.random.default_rng(seed)
    who = np.where(rng.random(n) < 0.5, 7, rng.integers(0, users, n))
    return pd.DataFrame(
        {"from": rng.integers(0, 6, n), "to": rng.integers(0, 5, n), "user_id": who}
    ).assign(n=rng.integers(0, 4, n))


def table(frame, **options):
    return SparseTable.from_frame(
        frame, DOMAIN, Bound(3, 2, 4), user="user_id", key=KEY, **options
    )


def test_a_frame_and_a_file_of_people_are_cut_alike(tmp_path):
    frame = trips()
    made = table(frame, count="n")
    assert made.bound == Bound(3, 2, 4) and made.bound.status == ENFORCED
    assert made.bound.unit == "a user (column user_id)"
    frame.to_parquet(tmp_path / "t.parquet")
    read = SparseTable.read(
        tmp_path / "t.parquet", DOMAIN, Bound(3, 2, 4), count="n", user="user_id", key=KEY
    )
    assert read.users_cut == made.users_cut > 0 and read.bound.unit == made.bound.unit
    named = table(frame.assign(user_id="u" + frame.user_id.astype(str)), count="n")

    frame.assign(user_id="u" + frame.user_id.astype(str)).to_csv(tmp_path / "t.csv")
    text = SparseTable.read(
        tmp_path / "t.csv", DOMAIN, Bound(3, 2, 4), count="n", user="user_id", key=KEY
    )
    np.testing.assert_array_equal(text.dense(), named.dense())
    assert text.users_cut == named.users_cut == made.users_cut


def test_leaving_out_a_user_moves_the_table_by_the_bound_at_most():
    """The sensitivity that noise is made for, with the same key for both tables."""
    frame = trips()
    whole = table(frame, count="n")
    for user in frame.user_id.unique():
        rest = table(frame[frame.user_id != user], count="n")
        moved = whole.dense() - rest.dense()
        assert 0 <= moved.min() and moved.max() <= 2
        assert np.count_nonzero(moved) <= 3 and moved.sum() <= 4
        assert whole.users_cut - rest.users_cut in (0, 1)


def test_a_key_and_a_generator_repeat_the_cut_and_the_system_does_not():
    frame = trips()
    again = table(frame.sample(frac=1, random_state=1))
    np.testing.assert_array_equal(again.dense(), table(frame).dense())

    def seeded(seed):
        rng = np.random.default_rng(seed)
        return SparseTable.from_frame(frame, DOMAIN, Bound(), user="user_id", rng=rng).dense()

    def fresh():
        return SparseTable.from_frame(frame, DOMAIN, Bound(), user="user_id").dense()

    assert (seeded(1) == seeded(1)).all() and (seeded(1) != seeded(2)).any()
    assert (fresh() != fresh()).any()  # 40 users choose alike by a chance below 10⁻³⁰


def test_what_is_derived_from_a_table_says_the_same_of_its_users():
    made = table(trips())
    for derived in (made.project(["to"]), made.ranked()):
        assert derived.bound.status == ENFORCED and derived.bound.unit == made.bound.unit
        assert derived.users_cut == made.users_cut


def test_a_bound_is_the_same_bound_whatever_is_said_of_it():
    told = Bound(10, 2).of("a trip")
    assert told == Bound(10, 2) and hash(told) == hash(Bound(10, 2))
    assert repr(told) == "Bound(l0=10, linf=2, l1=20)"
    assert told.status == BELIEVED and Bound(1, 1).of("a trip").status == STATED
    for wrong in ({"unit": "two\nlines"}, {"unit": "x" * 301}, {"status": "true"}):
        with pytest.raises(ValueError, match="is not allowed"):
            Bound(1, 1, **wrong)


@pytest.mark.parametrize(
    "bound",
    [
        Bound(3, 2),
        Bound(3, 2).of("a trip"),
        replace(Bound(3, 2), unit="a user (column u)", status=ENFORCED),
    ],
)
def test_a_release_and_its_file_say_what_is_known_of_the_bound(bound, tmp_path):
    private = SparseTable.from_keys(DOMAIN, [3], [20], bound)
    release = HighPassFilter(DP(1.0), theta=3)(private)
    release.save(tmp_path / "r.parquet")
    read = Release.load(tmp_path / "r.parquet").bound
    assert (read, read.unit, read.status) == (bound, bound.unit, bound.status)
    html = release._repr_html_()
    assert bound.in_words in html


@pytest.mark.parametrize(
    ("who", "drop"),
    [
        (["a", None, " ", "b", "a"], "drop"),
        ([1.0, None, np.nan, 2.0, 1.0], "drop"),
        (["a", "NA", " N\u0041", "b", "a"], {"drop": ["NA"]}),
        (["a", "7.0", None, "b", "a"], {"drop": [7]}),
        (pd.Categorical(["a", "NA", "?", "b", "a"]), {"drop": ["NA", "?"]}),
        ([1, 0, -99, 2, 1], {"drop": [0, "-99"]}),
        ([1.0, np.nan, -99.0, 2.0, 1.0], {"drop": [0, "-99"]}),
        (
            pd.to_datetime([2e17, 0, None, 3e17, 2e17]),
            {"drop": ["1970-01-01 00:00:00.000000000"]},
        ),
    ],
)
def test_rows_without_a_user_are_left_out_if_the_domain_says_so(tmp_path, who, drop):
    stated = {"age": {"from": 0, "to": 9}}
    dropping = Domain.from_dict(stated | {"missing_user": drop})
    assert dropping == Domain.from_dict(stated) and dropping.project(["age"]) == dropping
    assert Domain.from_dict(dropping.to_dict()).missing_user == dropping.missing_user
    frame = pd.DataFrame({"age": [1, 99, 3, 4, 1], "who": who})
    table = SparseTable.from_frame(frame, dropping, Bound(1, 1), user="who")
    assert table.keys.tolist() == [1, 4] and table.counts.tolist() == [1, 1]
    check = check_table(frame, dropping, user="who")
    assert (check.rows, check.left_out, check.refused) == (5, 2, [])
    frame.to_parquet(tmp_path / "t.parquet")
    rows = Rows.read(tmp_path / "t.parquet", dropping, Bound(1, 1), user="who")
    assert release(HighPassFilter(DP(1e6), theta=0.5), rows).estimate.keys.tolist() == [1, 4]
    with pytest.raises(ValueError, match="row 4, column 'age': found 99"):
        wrong = frame.assign(age=[1, 99, 99, 4, 99])
        SparseTable.from_frame(wrong, dropping, Bound(), user="who")


def test_a_text_that_nobody_declared_is_a_user_and_no_user_is_refused():
    stated = {"age": {"from": 0, "to": 9}}
    frame = pd.DataFrame({"age": [1, 2], "who": ["a", "NA"]})
    for declared in ({}, {"missing_user": "drop"}, {"missing_user": {"drop": ["na"]}}):
        domain = Domain.from_dict(stated | declared)
        assert SparseTable.from_frame(frame, domain, Bound(), user="who").total == 2
    with pytest.raises(ValueError, match='row 1, .*found nothing, need a user. "missing_user"'):
        frame.loc[1, "who"] = None
        SparseTable.from_frame(frame, Domain.from_dict(stated), Bound(), user="who")
    with pytest.raises(ValueError, match="row 1, .*found nothing, need a user$"):
        words = frame.assign(string="a")
        Records.read(words, Prefixes("ab", 2), Bound(), user="who")  # no domain, no file
    for wrong in ("keep", {"drop": "NA"}, {"drop": [None]}):
        with pytest.raises(ValueError, match="missing_user = .* is not allowed"):
            Domain.from_dict(stated | {"missing_user": wrong})
    assert Domain.from_dict({"missing_user": ["yes", "no"]}).attributes == ("missing_user",)


def test_interactions_leave_out_rows_without_a_user():
    stated = {"item": 3, "day": 2, "missing_user": "drop"}
    frame = pd.DataFrame({"item": [0, 9, 2], "day": [0, 0, 1], "who": ["a", None, "a"]})
    made = Interactions.read(
        frame, user="who", domain=Domain.from_dict(stated), bound=UNBOUNDED
    )
    assert made.items.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (dict(bound=PUBLIC, user="user_id"), "to which users are cut"),
        (dict(bound=Bound(), key=KEY), "need users, too"),
        (dict(bound=Bound(), user="user_id", key=b"1"), "32 bytes"),
        (dict(bound=Bound(), user="user_id", rng=7), "numpy Generator"),
        (dict(bound=Bound(), user="nobody"), "no column nobody"),
    ],
)
def test_what_cannot_be_enforced_is_refused(options, why):
    with pytest.raises(ValueError, match=why):
        SparseTable.from_frame(trips(), DOMAIN, **options)


@pytest.mark.parametrize("other", ["07", "7.0", "+7", "007.00", " 7 "])
def test_one_person_written_in_two_ways_does_not_get_two_bounds(tmp_path, other):
    (tmp_path / "a.csv").write_text("who,x\n7,1\n8,1\n-7,1\n07x,1\n0,1\n70,1\n")
    (tmp_path / "b.csv").write_text(f"who,x\n{other},2\n")
    domain = Domain(("x",), (5,))
    if other.strip() == "7":
        table = SparseTable.read(tmp_path, domain, Bound(), user="who")
        assert table.counts.sum() == 6  # the space is no part of it
        return
    with pytest.raises(ValueError, match=rf"b.csv, row 1, .*'{re.escape(other)}'.*--user-type"):
        SparseTable.read(tmp_path, domain, Bound(), user="who")
    table = SparseTable.read(tmp_path, domain, Bound(), user="who", user_type="text")
    assert table.counts.sum() == 7


def test_a_table_without_rows_is_cut_whatever_its_column_of_users_holds():
    frame = pd.DataFrame({"who": [], "x": []}, dtype=object)
    table = SparseTable.from_frame(frame, Domain(("x",), (5,)), Bound(), user="who")
    assert len(table.keys) == table.users_cut == 0


def test_how_many_users_were_cut_is_said_with_noise():
    cut = table(trips())
    release = HighPassFilter(DP(1.0), theta=5)(cut, np.random.default_rng(2))
    numbers = set()
    for seed in range(5):
        said = release.with_users_cut(cut, 0.1, np.random.default_rng(seed))
        assert said.privacy.epsilon == pytest.approx(1.1)
        numbers.add(said.users_cut)
    assert len(numbers) > 1


def test_users_of_files_with_other_dictionaries_are_other_people(tmp_path):
    """Text of Parquet is read by dictionaries, and each row group has its own order."""
    path = tmp_path / "trips.parquet"
    schema = pa.schema({"who": pa.string(), "a": pa.int64()})
    groups = [["ada", "bob"], ["cy", "dee"], ["bob", "ada"], ["dee", "eve", "ada"]]
    with pq.ParquetWriter(path, schema) as writer:
        for group in groups:
            writer.write_table(pa.table({"who": group, "a": [0] * len(group)}, schema))
    table = SparseTable.read(path, Domain(("a",), (1,)), Bound(), user="who")
    assert table.total == 5 and table.users_cut == 3
