"""Rules against the same done slowly, one row after another."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta, timezone
from fractions import Fraction
from math import isnan
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import Bound, Domain, SparseTable
from workbench.data.sources import Frame
from workbench.spaces import Bins, Cross, Labels, Map, TimePart
from workbench.spaces.rules import DROPPED, REFUSED
from workbench.spaces.statements import rule_to_dict

OUTSIDE, MISSING = REFUSED, DROPPED
QUICK = settings(max_examples=60, deadline=None)
ACTIONS = st.sampled_from(["refuse", "drop", "label"])
NUMBERS = st.one_of(
    st.none(),
    st.integers(-15, 15).map(float),
    st.floats(-12, 12, width=32),
    st.sampled_from([0.1, 0.2, 0.3, 0.7, 1e300, -1e300, float("inf"), float("nan")]),
)


def places_of(rule, values):
    """The codes of a rule that refuses values outside and drops missing ones."""
    return replace(rule, missing="drop").codes(values).tolist()


def literal_bin(rule, edges, x):
    """The place of one number, by comparing it with each edge."""
    if x is None or isnan(x):
        return MISSING
    n = len(edges) - 1
    for i in range(n):
        low, high = edges[i], edges[i + 1]
        if low <= x < high if rule.closed == "left" else low < x <= high:
            return i
    is_below = x < edges[0] or (x == edges[0] and rule.closed == "right")
    if is_below:
        return 0 if rule.below == "clamp" else OUTSIDE
    return n - 1 if rule.above == "clamp" else OUTSIDE


def literal_code(rule, place):
    """What becomes of a place, by what the rule says."""
    if place >= 0:
        return place
    added = [name for name in ("other", "missing") if getattr(rule, name) == "label"]
    name = "other" if place == OUTSIDE else "missing"
    action = getattr(rule, name)
    if action == "label":
        return len(rule.labels) + added.index(name)
    return DROPPED if action == "drop" else REFUSED


@given(
    edges=st.lists(st.floats(-9, 9, width=16), min_size=2, max_size=6, unique=True).map(sorted),
    xs=st.lists(NUMBERS, max_size=20),
    closed=st.sampled_from(["left", "right"]),
    below=st.sampled_from(["other", "clamp"]),
    above=st.sampled_from(["other", "clamp"]),
    other=ACTIONS,
    missing=ACTIONS,
)
@QUICK
def test_a_number_falls_into_the_bin_that_holds_it(
    edges, xs, closed, below, above, other, missing
):
    rule = Bins(edges, closed=closed, below=below, above=above, other=other, missing=missing)
    places = [literal_bin(rule, edges, x) for x in xs]
    codes = [literal_code(rule, place) for place in places]
    values = pl.Series("x", xs, dtype=pl.Float64)
    assert rule.codes(values).tolist() == codes
    assert rule.codes(pl.Series("x", xs[:0], dtype=pl.Null)).tolist() == []
    written = [None if x is None else repr(x) for x in xs]
    texts = rule.codes(pl.Series("x", written, dtype=pl.String)).tolist()
    for x, text, code in zip(xs, texts, codes, strict=True):
        is_word = x is not None and isnan(x)  # "nan" is no number
        assert text == (literal_code(rule, OUTSIDE) if is_word else code)


def test_text_that_is_no_number_is_outside():
    values = pl.Series("x", ["3", "1_0", "", " ", "x", "0x3", "1,5", "5", "-", None, "3e0"])
    places = places_of(Bins(low=0, high=5, bins=5, above="clamp"), values)
    assert places == [3, *[OUTSIDE] * 6, 4, OUTSIDE, MISSING, 3]


@given(
    low=st.integers(-50, 50),
    bins=st.integers(1, 40),
    digits=st.integers(0, 4),
    width=st.integers(1, 300),
)
@QUICK
def test_edges_are_the_numbers_that_one_writes(low, bins, digits, width):
    def as_written(x):
        return float(Fraction(x, 10**digits))

    edges = [as_written(low + i * width) for i in range(bins + 1)]
    by_width = Bins(low=edges[0], high=edges[-1], width=as_written(width))
    by_number = Bins(low=edges[0], high=edges[-1], bins=bins)
    stated = Bins(edges)
    assert by_width.labels == by_number.labels == stated.labels
    places = places_of(stated, pl.Series("x", edges))
    assert places == [*range(bins), OUTSIDE]
    assert places_of(by_width, pl.Series("x", list(map(str, edges)))) == places


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        ({}, ("0 to under 10", "10 to under 20")),
        ({"closed": "right"}, ("over 0 to 10", "over 10 to 20")),
        ({"below": "clamp", "above": "clamp"}, ("under 10", "10 or more")),
        ({"above": "clamp", "closed": "right"}, ("over 0 to 10", "over 10")),
        ({"labels": ("young", "old")}, ("young", "old")),
        ({"bins": 1, "width": None, "below": "clamp", "above": "clamp"}, ("any number",)),
    ],
)
def test_labels_of_bins_say_which_edge_is_in(words, labels):
    assert Bins(**({"low": 0, "high": 20, "width": 10} | words)).labels == labels


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({}, "need"),
        ({"edges": [0]}, "at least two"),
        ({"edges": [0, 2, 1]}, "ascending order: 2 and 1"),
        ({"edges": [0, 1, 1]}, "ascending order: 1 and 1"),
        ({"edges": [0, float("inf")]}, "finite"),
        ({"edges": [0, float("nan")]}, "finite"),
        ({"edges": [0, 10**400]}, "finite"),
        ({"edges": [[0, 10], [5, 20]]}, "numbers"),
        ({"edges": [0, True]}, "numbers"),
        ({"edges": ["0", "1"]}, "numbers"),
        ({"edges": [0, 1], "low": 0}, "edges alone"),
        ({"low": 0, "high": 1}, "width or bins"),
        ({"low": 0, "high": 1, "width": 0.5, "bins": 2}, "width or bins"),
        ({"low": 1, "high": 1, "bins": 2}, "ascending order: 1 and 1"),
        ({"low": 1, "high": 0, "width": 1}, "at least two, in ascending order"),
        ({"low": 0, "high": 1, "width": 0.3}, "divides"),
        ({"low": 0, "high": 1e22, "width": 1}, "more than 1000000"),
        ({"low": 1e16, "high": 10000000000000004, "bins": 9}, "ascending"),
        ({"edges": [0, 1, 2], "labels": ["a"]}, "labels = .* need 2"),
    ],
)
def test_bins_that_are_none_are_refused(words, why):
    with pytest.raises(ValueError, match=why):
        Bins(**words)


# ---- times

MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59))
PARTS = st.sampled_from(["hour", "weekday", "day", "month"])


def literal_part(name, moment):
    return {
        "hour": moment.hour,
        "weekday": moment.weekday(),
        "day": moment.day - 1,
        "month": moment.month - 1,
    }[name]


@given(moments=st.lists(MOMENTS, max_size=12), part=PARTS, digits=st.sampled_from("sm"))
@QUICK
def test_parts_of_times_are_those_of_the_calendar(moments, part, digits):
    moments = [m.replace(microsecond=0) if digits == "s" else m for m in moments]
    want = [literal_part(part, m) for m in moments]
    rule = TimePart(part)
    assert places_of(rule, pl.Series("t", moments, dtype=pl.Datetime("us"))) == want
    for sep in "T ":
        text = pl.Series("t", [m.isoformat(sep, "microseconds") for m in moments], pl.String)
        iso = TimePart(part, format=f"%Y-%m-%d{sep}%H:%M:%S.%f")
        assert places_of(iso, text) == want
        assert places_of(iso, text.cast(pl.Categorical)) == want
    german = TimePart(part, format="%d.%m.%Y %H Uhr")
    texts = [f"{m:%d.%m.}{m.year:04}{m: %H Uhr}" for m in moments]
    assert places_of(german, pl.Series("t", texts, dtype=pl.String)) == want


@given(st.lists(st.datetimes(datetime(1950, 1, 1), datetime(2035, 1, 1)), max_size=12), PARTS)
@QUICK
def test_times_are_turned_into_the_stated_zone(moments, part):
    zurich = TimePart(part, zone="Europe/Zurich", recorded_in="UTC")
    moments = [m.replace(microsecond=0) for m in moments]
    there = [m.replace(tzinfo=UTC).astimezone(ZoneInfo("Europe/Zurich")) for m in moments]
    want = [literal_part(part, m) for m in there]
    naive = pl.Series("t", moments, dtype=pl.Datetime("us"))
    assert places_of(zurich, naive) == want
    text = [m.isoformat() for m in moments]
    iso = TimePart(part, "%Y-%m-%dT%H:%M:%S", "Europe/Zurich", "UTC")
    assert places_of(iso, pl.Series("t", text, dtype=pl.String)) == want
    aware = TimePart(part, zone="Europe/Zurich")
    assert places_of(aware, naive.dt.replace_time_zone("UTC")) == want
    for offset in (0, 5.5, -9):
        there = timezone(timedelta(hours=offset))
        texts = [m.replace(tzinfo=UTC).astimezone(there).isoformat(" ") for m in moments]
        written = TimePart(part, format="%Y-%m-%d %H:%M:%S%z", zone="Europe/Zurich")
        assert places_of(written, pl.Series("t", texts, dtype=pl.String)) == want
    local = TimePart(
        part, zone="Europe/Zurich"
    )  # a time that names no zone is one of the clock's
    assert places_of(local, naive) == [literal_part(part, m) for m in moments]


def test_times_as_people_write_them():
    def places(texts, part="hour", **words):
        return places_of(TimePart(part, **words), pl.Series("t", texts))

    minutes = "%Y-%m-%d %H:%M"
    wrong = ["2025-02-29 07:30", "2025-03-01 24:00", "x", "", "2025-03-01 07", "2025-03-01"]
    assert places([*wrong, None], format=minutes) == [OUTSIDE] * 6 + [MISSING]
    assert places(["2025-03-01"], "weekday", format="%Y-%m-%d") == [5]
    zoned = ["2025-03-01 07:30Z", "2025-03-01 07:30+01:00"]
    assert places(zoned, format=minutes) == [OUTSIDE, OUTSIDE]
    assert places(zoned, format=f"{minutes}%z", zone="UTC") == [7, 6]
    assert places(["07:30", "19.00", None], format="%H:%M") == [7, OUTSIDE, MISSING]
    assert places(["07:30 PM", "12:05 AM"], format="%I:%M %p") == [19, 0]
    assert places(["07 PM", "7 am", "7"], format="%I %p") == [19, 7, OUTSIDE]
    assert places(["25-03-01 07", "25-03-01 7h"], format="%y-%m-%d %H") == [7, OUTSIDE]
    assert places(["3 Mar 2025", "31 Apr 2025"], "month", format="%d %b %Y") == [2, OUTSIDE]
    assert places(["2025-060", "2025-366"], "month", format="%Y-%j") == [2, OUTSIDE]
    clocks = pl.Series("t", [time(7, 30), None])
    assert places_of(TimePart("hour"), clocks) == [7, MISSING]
    dates = pl.Series("t", [date(2025, 3, 1), None])
    assert places_of(TimePart("weekday"), dates) == [5, MISSING]
    assert places_of(TimePart("day"), pl.Series("t", [None, None])) == [MISSING, MISSING]
    spring = pl.Series("t", [datetime(2025, 3, 30, 2, 30)])  # which Zurich's clocks leave out
    local = TimePart("hour", zone="UTC", recorded_in="Europe/Zurich")
    assert places_of(local, spring) == [OUTSIDE]


@pytest.mark.parametrize(
    ("words", "values", "why"),
    [
        ({"time": "hours"}, None, "need one of"),
        ({"time": "hour", "zone": "Europe/Zuric"}, None, "Time Zone Database"),
        ({"time": "hour", "recorded_in": "UTC"}, None, "need zone too"),
        ({"time": "hour", "format": "%Y-%m-%d"}, None, "does not give the hour: need %H"),
        ({"time": "hour", "format": "%I:%M"}, None, "does not give the hour: need %H"),
        (
            {"time": "month", "format": "%H:%M"},
            None,
            "does not give the month: need a full date",
        ),
        ({"time": "hour", "format": "%d %H:%M"}, None, "does not give the hour"),
        ({"time": "hour", "format": "%H:%M %Q"}, None, "need directives out of"),
        ({"time": "hour", "format": "%Y-%m-%d %H:%M%z"}, None, "give zone"),
        ({"time": "hour", "format": "%H:%M%z", "zone": "UTC"}, None, "has no zone"),
        (
            {"time": "date", "format": "%Y-%m", "first": "2024-01-01", "last": "2024-01-02"},
            None,
            "full date",
        ),
        ({"time": "hour", "labels": ["a"]}, None, "need 24"),
        ({"time": "year"}, None, "need the first year and the last, as 2024"),
        ({"time": "year", "first": 2024, "last": 2020}, None, "need at least first = 2024"),
        (
            {"time": "date", "first": "2020-01", "last": "2020-02"},
            None,
            "need the first date and the last, as 2024-03-31",
        ),
        ({"time": "month", "first": 3}, None, "recurs"),
        ({"time": "hour", "date_only": True}, None, "no zone and no hour"),
        ({"time": "day", "date_only": True, "zone": "UTC"}, None, "no zone and no hour"),
        ({"time": "hour"}, [date(2025, 3, 1)], "holds Date"),
        ({"time": "day"}, [time(7)], "holds Time"),
        ({"time": "day"}, [3], "holds Int64"),
        (
            {"time": "day"},
            ["2025-03-01"],
            'holds text: .* or text with its format, for example "format"',
        ),
        ({"time": "day"}, [datetime(2025, 3, 1, tzinfo=UTC)], "state the zone"),
    ],
)
def test_times_that_cannot_be_told_are_refused(words, values, why):
    with pytest.raises(ValueError, match=why):
        TimePart(**words).places(pl.Series("t", values))


# ---- labels


def written(x):
    return str(int(x)) if isinstance(x, float) and x.is_integer() else str(x)


@given(
    values=st.one_of(
        st.lists(st.none() | st.integers(-3, 12), max_size=15),
        st.lists(st.none() | st.sampled_from([0.0, 1.0, 2.5, 11.0, float("nan")]), max_size=15),
        st.lists(
            st.none() | st.sampled_from(["0", "1", "01", "2.5", "x", "", "11"]), max_size=15
        ),
        st.lists(st.none() | st.booleans(), max_size=15),
    ),
    labels=st.lists(
        st.sampled_from(["0", "1", "2.5", "x", "True", "-2", "11"]), min_size=1, unique=True
    ),
    other=ACTIONS,
    missing=ACTIONS,
)
@QUICK
def test_values_are_labels_if_they_are_written_alike(values, labels, other, missing):
    rule = Labels(labels, other=other, missing=missing)
    lookup = Map({label: label.upper() for label in labels}, other=other, missing=missing)
    want = []
    for x in values:
        if x is None or x != x:
            place = MISSING
        else:
            place = labels.index(written(x)) if written(x) in labels else OUTSIDE
        want.append(literal_code(rule, place))
    kind = pl.Series(values).dtype
    for series in (pl.Series("x", values, dtype=kind), pl.Series("x", values).shrink_dtype()):
        assert rule.codes(series).tolist() == want
        assert lookup.codes(series).tolist() == want
    if kind == pl.String:
        texts = pl.Series(values, dtype=pl.String).cast(pl.Categorical)
        domain = Domain.from_dict({"x": rule})
        if REFUSED not in want:
            keys, _, _ = domain.row_keys({"x": texts})
            assert keys.tolist() == [code for code in want if code != DROPPED]


@given(
    st.lists(st.none() | st.integers(-30, 30), max_size=20),
    st.integers(-9, 9),
    st.integers(1, 8),
    st.sampled_from([1, -1, 2, 3, -4]),
)
@QUICK
def test_whole_numbers_of_a_range_are_found_in_any_column(values, start, size, step):
    labels = range(start, start + size * step, step)
    rule = Labels(labels)
    want = [
        MISSING if x is None else labels.index(x) if x in labels else OUTSIDE for x in values
    ]
    for kind in (pl.Int64, pl.Int8, pl.Float64, pl.String):
        series = pl.Series("x", values, dtype=pl.Int64).cast(kind)
        assert places_of(rule, series) == want
    texts = pl.Series("x", ["5.0", "05", "5.5", "x", str(2**63), "1e400", "1_0"])
    assert places_of(Labels(range(9)), texts) == [5, 5, *[OUTSIDE] * 5]
    assert places_of(Labels(range(9)), pl.Series("x", [2**64 - 1], dtype=pl.UInt64)) == [-1]


def test_wide_numbers_are_read_and_other_kinds_refused():
    domain = Domain.from_dict({"x": {"from": 0, "to": 3, "other": "label"}})
    keys, _, _ = domain.row_keys({"x": pl.Series([3, 2**100, -1], dtype=pl.Int128)})
    assert keys.tolist() == [3, 4, 4]
    for values in ([timedelta(1)], [[1]], [b"a"], [{"a": 1}]):
        with pytest.raises(ValueError, match="column 'x' holds .*: need text, numbers, truth"):
            SparseTable.from_frame(pl.DataFrame({"x": values}), domain, Bound())


def test_many_values_lead_to_one_label_in_the_stated_order():
    towns = {"Bern": "BE", "Thun": "BE", "Chur": "GR", 7000: "GR"}
    values = pl.Series("town", ["Chur", "Thun", "7000", "Genf", None])
    assert places_of(Map(towns), values) == [1, 0, 1, OUTSIDE, MISSING]
    assert places_of(Map(towns, labels=["GR", "ZH", "BE"]), values) == [0, 2, 0, -1, -2]
    assert places_of(Map(towns), pl.Series("town", [7000, 1])) == [1, OUTSIDE]
    for wrong, why in (
        ({"map": towns, "labels": ["BE"]}, "leads to GR: need one of BE"),
        ({"map": [("a", "b"), ("a", "c")]}, "more than one label"),
        ({"map": [("a", "b", "c")]}, "pairs"),
        ({"map": {"a": ["b"]}}, "text"),
        ({"map": {}}, "need a map"),
        ({"map": "towns.csv"}, "need a map"),
    ):
        with pytest.raises(ValueError, match=why):
            Map(**wrong)


@pytest.mark.parametrize(
    ("rule", "values", "codes"),
    [
        (Bins((0, 50, 100), missing_values=["999", "NA"]), [3, 999, None, 60], [0, 2, 2, 1]),
        (Bins((0, 50), missing_values=[-1]), ["3", "-1", "-1.0", "NA"], [0, 1, 1, REFUSED]),
        (Labels(range(1000), missing_values=[999]), [998.0, 999.0, 2.0], [998, 1000, 2]),
        (Labels(("a", "NA"), missing_values=("NA",)), ["a", "NA", "b"], [0, 2, REFUSED]),
        (TimePart("hour", "%H:%M", missing_values=("0000",)), ["0000", "07:30"], [24, 7]),
        (Map({"a": "b", "c": "d"}, missing_values=["?"]), ["c", "?"], [1, 2]),
    ],
)
def test_values_may_be_stated_to_mean_missing(rule, values, codes):
    rule = replace(rule, missing="label")
    assert rule.codes(pl.Series("x", values)).tolist() == codes
    assert replace(rule, missing="drop").codes(pl.Series("x", values)).tolist() == [
        DROPPED if code == len(rule.labels) else code for code in codes
    ]
    domain = Domain.from_dict({"x": rule})
    assert Domain.from_dict(json.loads(json.dumps(domain.to_dict()))) == domain


# ---- rows


FRAME = {
    "age": [3, 17, None, 95, 40, 200],
    "start": ["2025-03-01 07:30", "2025-03-02 23:59", "2025-03-03 12:00", None, "x", "y"],
    "sex": ["F", "M", "F", "M", "X", None],
}
MINUTES = "%Y-%m-%d %H:%M"
TIMES = {"column": "start", "format": MINUTES}
STATED = {
    "age": {"edges": [0, 18, 65, 120], "missing": "label", "other": "drop"},
    "hour": TIMES | {"time": "hour", "missing": "drop", "other": "drop"},
    "weekday": TIMES | {"time": "weekday", "missing": "label", "other": "label"},
    "both": {
        "cross": [
            {"column": "sex", "labels": ["F", "M"], "other": "label", "missing": "label"},
            {
                "column": "age",
                "low": 0,
                "high": 200,
                "bins": 2,
                "above": "clamp",
                "missing": "drop",
            },
        ]
    },
}


def as_columns(kind, rows):
    frame = {name: [FRAME[name][row] for row in rows] for name in FRAME}
    columns = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[kind](frame)
    return Frame(columns).columns(list(frame))


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_row_alone_has_the_cell_that_it_has_among_others(kind):
    domain = Domain.from_dict(STATED)
    assert domain.columns == ("age", "start", "sex")
    keys, kept, _ = domain.row_keys(as_columns(kind, range(6)))
    alone = [domain.row_keys(as_columns(kind, [row]))[:2] for row in range(6)]
    assert kept.tolist() == [one is None for _, one in alone]
    assert keys.tolist() == [int(key[0]) for key, one in alone if one is None]
    assert kept.tolist() == [True, True, False, False, False, False]
    assert domain.frame(keys).astype(str).to_numpy().tolist() == [
        ["0 to under 18", "7", "Saturday", "F / 0 to under 100"],
        ["0 to under 18", "23", "Sunday", "M / 0 to under 100"],
    ]


def test_a_row_that_is_refused_is_named():
    domain = Domain.from_dict({"age": {"edges": [0, 18]}, "start": TIMES | {"time": "hour"}})
    columns = {
        "age": pl.Series([3, 40, None]),
        "start": pl.Series(["2025-03-01 07:30", None, "x"]),
    }
    _, kept, refused = domain.row_keys(columns)
    assert kept is None and [(name, bad.tolist()) for name, _, bad in refused] == [
        ("age", [False, True, True]),
        ("start", [False, True, True]),
    ]
    with pytest.raises(ValueError, match="row 1, column 'age': found 40, need a number from 0"):
        SparseTable.read(pl.DataFrame(columns), domain, Bound())
    long = Domain.from_dict({"a": {"labels": ["x" * 200_000, "b"], "other": "refuse"}})
    with pytest.raises(ValueError) as e:
        SparseTable.read(pl.DataFrame({"a": ["y" * 200_000]}), long, Bound())
    assert len(str(e.value)) < 400


def test_a_prepared_domain_is_written_and_read_back():
    domain = Domain.from_dict(
        STATED | {"n": 3, "car": ["no", "yes"], "year": {"from": 1, "to": 9}}
    )
    again = Domain.from_dict(json.loads(json.dumps(domain.to_dict())))
    assert again == domain and hash(again) == hash(domain) and again.preparation is not None
    names = vars(__import__("workbench.spaces", fromlist=["Bins"])) | {"Domain": Domain}
    assert eval(repr(domain), names) == domain
    part = domain.project(["n", "hour"])
    assert part.rules["hour"] == domain.rules["hour"] and part.columns == ("n", "start")
    assert domain.project(["car"]) == Domain(("car",), (2,), (("no", "yes"),))
    for name, stated in domain.to_dict().items():
        kinds = {"both": 8, "age": 3, "hour": 24, "weekday": 7}
        if name in kinds:
            assert len(stated["labels"]) == kinds[name]


def test_rules_of_python_are_those_of_the_file():
    sex = Labels(("F", "M"), column="sex", other="label", missing="label")
    age = Bins(low=0, high=200, bins=2, above="clamp", column="age", missing="drop")
    rules = {
        "age": Bins((0, 18, 65, 120), missing="label", other="drop"),
        "hour": TimePart("hour", MINUTES, column="start", missing="drop", other="drop"),
        "weekday": TimePart("weekday", MINUTES, column="start", missing="label", other="label"),
        "both": Cross((sex, age)),
    }
    assert Domain.from_dict(rules) == Domain.from_dict(STATED)
    assert Domain.from_dict({"a": Labels(("x", "y"))}) == Domain(("a",), (2,), (("x", "y"),))


def test_a_plain_domain_says_nothing_of_preparation():
    domain = Domain(("a", "b"), (2, 3), (("x", "y"), None))
    assert (
        repr(domain) == "Domain(attributes=('a', 'b'), shape=(2, 3), labels=(('x', 'y'), None))"
    )
    assert domain.preparation is None and domain.columns == ("a", "b")
    columns = {"a": pl.Series(["y", "x"]), "b": pl.Series([2, 0])}
    keys, kept, refused = domain.row_keys(columns)
    assert keys.tolist() == [5, 0] and kept is None and refused == []
    with pytest.raises(ValueError, match="must be those of its rule"):
        Domain(("a",), (2,), (("x", "y"),), (Bins((0, 1, 2)),))
    with pytest.raises(ValueError, match="1 rules for 2"):
        Domain(("a", "b"), (2, 3), None, (None,))


def test_memory_of_a_crossed_list_is_refused_before_it_is_made():
    rule = Labels(range(10**5), column="a")
    with pytest.raises(ValueError, match="10000000000 labels.*make each an attribute"):
        Cross((rule, rule))
    for wrong in ([rule], [rule, Labels((1, 2))], [rule, 3], []):
        with pytest.raises(ValueError, match="cross"):
            Cross(wrong)
    with pytest.raises(ValueError, match="each of the crossed rules says it"):
        Cross((Labels((1,), column="a"), Labels((1,), column="b")), missing="drop")
    assert np.array_equal(Cross((Labels((1,), column="a"),) * 2).labels, ["1 / 1"])


DAYS = pl.Series("t", ["2024-03-31", "2023-12-31", "2025-01-01", None, "31.3.2024"])


@pytest.mark.parametrize(
    ("part", "span", "labels"),
    [
        ("quarter", {}, ["Q1", "Q4", "Q1", None, None]),
        ("week", {}, [13, 52, 1, None, None]),
        ("year", {"first": 2023, "last": 2024}, [2024, 2023, None, None, None]),
        (
            "year-month",
            {"first": "2023-12", "last": "2024-03"},
            ["2024-03", "2023-12", *[None] * 3],
        ),
        (
            "date",
            {"first": "2024-03-31", "last": "2025-01-01"},
            ["2024-03-31", None, "2025-01-01", *[None] * 2],
        ),
    ],
)
def test_parts_of_a_date(part, span, labels):
    rule = TimePart(part, format="%Y-%m-%d", **span)
    places = places_of(rule, DAYS)
    assert [rule.labels[p] if p >= 0 else None for p in places] == labels
    assert places[3] == MISSING and places[4] == OUTSIDE
    again = Domain.from_dict({"t": rule_to_dict(rule)})
    assert again.rules["t"] == rule


def test_dates_that_were_exported_as_midnight_utc_stay_on_their_day():
    times = pl.Series("t", [datetime(2024, 3, 31), datetime(2024, 3, 31, 7)])
    in_utc = times.dt.replace_time_zone("UTC")
    for column in (times, in_utc, in_utc.dt.convert_time_zone("America/New_York")):
        assert places_of(TimePart("weekday", date_only=True), column) == [6, OUTSIDE]
    moved = places_of(TimePart("weekday", zone="America/New_York"), in_utc)
    assert moved[0] == 5  # Saturday: what `date_only` is for
    with pytest.raises(ValueError, match='"date_only": true if these are dates'):
        TimePart("weekday").places(in_utc)


def test_a_letter_is_the_same_composed_and_decomposed():
    composed, apart = "Zürich", "Zu\u0308rich"
    for label, value in ((composed, apart), (apart, composed), (apart, apart)):
        values = pl.Series("town", [value, "Zurich", None])
        assert places_of(Labels(("Bern", label)), values) == [1, OUTSIDE, MISSING]
        listed = values.cast(pl.Categorical)
        assert places_of(Labels(("Bern", label)), listed) == [1, OUTSIDE, MISSING]
    with pytest.raises(ValueError, match="are one label, written in two ways"):
        Labels((composed, apart)).places(pl.Series("town", ["Bern"]))
