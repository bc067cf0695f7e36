"""Domain files that say something wrong are refused in words."""

import json
from dataclasses import fields
from datetime import date, datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import Domain
from workbench.spaces import Bins, Cross, Labels, Map, TimePart

LONG = "x" * 200_000
KINDS = (Bins, Cross, Labels, Map, TimePart)
SOUND = [
    {"edges": [0, 1, 5]},
    {"low": 0, "high": 10, "width": 2},
    {"time": "hour"},
    {"time": "weekday"},
    {"map": {"a": "b", "1": "c"}},
    {"labels": ["a", "b"]},
    {"labels": [True, False]},
    {"from": 9, "to": 0, "step": -3},
]
WORDS = st.sampled_from(
    sorted({*(f.name for kind in KINDS for f in fields(kind)), "from", "file"})
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 0.5, 1e300, 10**20, 10**400, float("nan"), float("inf")]),
    st.sampled_from(
        ["", "a", "c", "label", "drop", "clamp", "right", "%H", "%", "UTC", "\ud800"]
    ),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
COLUMNS = [
    ["a", "b", None, "1", "x", "2025-03-01", "2025-03-01T07:30"],
    [0, 1, None, 5, -4, 9],
    [0.5, 1.0, float("nan"), None, float("inf"), 1e300],
    [True, None],
    [datetime(2025, 3, 1, 7, 30), None],
    [date(2025, 3, 1), None],
    [None],
]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 2, "a": 3}', "'a' occurs twice"),
        ('{"a": {"from": 0, "from": 1, "to": 2}}', "'from' occurs twice"),
        ('{"a": {"from": 0, "to": 9, "step": "x"}}', "step other than 0.* from 0 to 9 by 'x'"),
        ('{"a": {"from": 0, "to": 9, "step": 0}}', "step other than 0.* from 0 to 9 by 0"),
        ('{"a": {"from": 9, "to": 0}}', "leads from one to the other; got from 9 to 0 by 1"),
        ('{"a": {"from": 0}}', "need from and to"),
        (
            '{"a": {"from": 0.5, "to": 3}}',
            r"\$.a: need from and to, the first and the last integer",
        ),
        (
            '{"a": {"from": -9223372036854775808, "to": 9223372036854775807}}',
            "need from and to",
        ),
        ('{"a": 10000000000000000000000}', "too large"),
        ("[" * 100_000 + "]" * 100_000, "recursion"),
        ('{"a": ' * 100_000 + "1" + "}" * 100_000, "recursion"),
        ('{"a": ' + "9" * 5000 + "}", "digits"),
        ('{"a": NaN}', "NaN is not a number"),
        ('{"a": {"edges": [0, Infinity]}}', "Infinity is not a number"),
        ('{"a": {"edges": [0, 1e999]}}', "finite"),
        ('{"a": 1_0}', "line 1: not JSON"),
        (
            '{"a": {"low": "1_0", "high": 20, "width": 1}}',
            r"domain.json: \$.a.low = '1_0' is not allowed: need a number",
        ),
        ("", "line 1: not JSON"),
        ("{}", "a domain is an object of attributes"),
        ('{"a": {}}', r"\$.a: need a number of values"),
        ('{"a": 1.5}', r"\$.a: need a number of values"),
        ('{"a": {"lables": ["x"]}}', "does not say what its labels are.*got lables"),
        (
            '{"a": {"low": 0, "high": 9, "wdith": 3}}',
            "unknown field 'wdith'. Known fields: column, other.*, width",
        ),
        ('{"a": {"time": "hour", "edges": [0, 1]}}', "unknown field 'time'"),
        ('{"a": {"time": "houra"}}', "need one of 'hour'"),
        ('{"a": {"column": "b"}}', "does not say what its labels are"),
        ('{"a": {"labels": ["x"], "from": 0, "to": 2}}', "stated twice"),
        ('{"a": {"labels": "x"}}', r"\$.a.labels = .* need a list"),
        ('{"a": {"labels": [["x"], ["y"]], "missing": "label"}}', "all text"),
        ('{"a": {"labels": ["x", {"y": 2}]}}', "all text"),
        ('{"a": {"labels": ["x", "missing"], "missing": "label"}}', "'missing' occurs twice"),
        (
            '{"a": {"labels": ["x"], "missing_values": "NA"}}',
            "missing_values = 'NA' .* need a list of texts, or integers",
        ),
        ('{"a": {"edges": [3, 1, 2]}}', "ascending order: 3 and 1"),
        ('{"a": {"width": 3}}', "low and high"),
        ('{"a": {"map": {"x": "y"}, "labels": ["z"]}}', "leads to y: need one of z"),
        ('{"a": {"map": {"x": ["y"]}}}', "Map.map: need a list of texts, or integers"),
        ('{"a": {"map": null}}', "need labels, from and to, file, edges"),
        ('{"a": {"map": "none.csv"}}', "none.csv: no such file"),
        ('{"a": {"file": "none.txt"}}', "none.txt: no such file"),
        ('{"a": {"file": "."}}', "no such file"),
        ('{"a": {"cross": [1, 2]}}', "each with its column"),
        ('{"a": {"cross": [{"labels": ["x"]}, {"labels": ["y"]}]}}', "each with its column"),
        (r'{"\udc80": 3}', "surrogates not allowed"),
        (r'{"a": ["\udc80"]}', "surrogates not allowed"),
        ('{"a": [1e999, 1.0]}', "all finite numbers"),
        ('{"a": "FILL IN"}', "attribute 'a'.*filled in"),
        ('{"a": ["FILL IN"]}', "attribute 'a'.*filled in"),
        ('{"a": {"from": "FILL IN", "to": 9}}', "attribute 'a'.*to be filled in"),
        ('{"x": 2, "a": "FILL IN", "b": ["FILL IN"]}', "attribute 'a'.*so are 'b'$"),
        ('{"a": {"cross": [{"labels": ["FILL IN"]}, 1]}}', "attribute 'a'.*filled in"),
        (f'{{"a": {{"{LONG}": 1}}}}', "does not say what its labels are"),
        (f'{{"a": {{"time": "{LONG}"}}}}', "time"),
        (f'{{"a": ["{LONG}", "{LONG}"]}}', "occurs twice"),
        (f'{{"a": {{"map": "{LONG}.json"}}}}', "name too long"),
    ],
    ids=lambda text: text[:40],
)
def test_a_wrong_domain_file_is_refused_in_words(tmp_path, text, why):
    path = tmp_path / "domain.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=why) as e:
        Domain.read(path)
    assert len(str(e.value)) < 1000


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "latin-1"])
def test_another_encoding_is_named(tmp_path, encoding):
    path = tmp_path / "domain.json"
    path.write_bytes('{"a": ["Zürich"]}'.encode(encoding))
    with pytest.raises(ValueError, match="domain.json.*Save it as UTF-8"):
        Domain.read(path)


def test_a_byte_order_mark_is_no_content(tmp_path):
    path = tmp_path / "domain.json"
    path.write_text('{"a": ["Zürich"]}', encoding="utf-8-sig")
    assert Domain.read(path).labels == (("Zürich",),)


def test_maps_and_labels_come_from_files(tmp_path):
    (tmp_path / "towns.csv").write_text('town,canton\nBern, BE\n\n"Genf, Ville",GE\nThun,BE\n')
    (tmp_path / "towns.json").write_text('{"Bern": "BE", "Thun": "BE"}')
    (tmp_path / "labels.txt").write_text("\ufeffF\nM\n\n", encoding="utf-8")
    stated = {
        "canton": {"map": "towns.csv", "column": "town", "other": "label"},
        "again": {"map": "towns.json", "column": "town"},
        "sex": {"file": "labels.txt", "missing": "label"},
    }
    domain = Domain.from_dict(stated, tmp_path)
    assert domain.labels == (("BE", "GE", "other"), ("BE",), ("F", "M", "missing"))
    pairs = (("Bern", "BE"), ("Genf, Ville", "GE"), ("Thun", "BE"))
    assert domain.rules["canton"] == Map(pairs, column="town", other="label")
    assert Domain.from_dict(json.loads(json.dumps(domain.to_dict()))) == domain


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("m.csv", "x,y\na,b\na,c\n", "gives 'a' more than one label"),
        ("m.csv", "x,y\na,b,c\n", "pairs of value,label; got .'a', 'b', 'c'"),
        ("m.csv", "x,y\na\n", "pairs of value,label; got .'a'"),
        (
            "m.csv",
            "code,name\na,b\nc,b\n",
            "first line, 'code,name', a header. Write a line 'x,label'",
        ),
        ("m.csv", "", "need a map"),
        ("m.csv", "x,label\n", "need a map"),
        ("m.csv", f"{LONG},{LONG},a\n", "field larger than"),
        ("m.csv", "x,y\nZürich,a\nZu\u0308rich,b\n", "one label, written in two ways"),
        ("m.json", '{"a": "b", "a": "c"}', "occurs twice"),
        ("m.json", "[1]", "pairs of value,label; got 1"),
        ("m.json", "{", "line 1: not JSON"),
    ],
    ids=lambda text: text[:40],
)
def test_a_wrong_map_is_refused(tmp_path, name, text, why):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=rf"^\$.x.*{why}") as e:
        Domain.from_dict({"x": {"map": name}}, tmp_path)
    assert len(str(e.value)) < 1000


@given(
    sound=st.sampled_from(SOUND),
    changes=st.dictionaries(WORDS, ANYTHING, max_size=2),
    actions=st.lists(st.sampled_from(["refuse", "drop", "label"]), min_size=2, max_size=2),
    values=st.sampled_from(COLUMNS),
    is_listed=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_whatever_is_stated_makes_a_domain_or_is_refused(
    sound, changes, actions, values, is_listed
):
    other, missing = actions
    try:
        domain = Domain.from_dict({"c": sound | {"other": other, "missing": missing} | changes})
    except ValueError:
        return
    assert Domain.from_dict(json.loads(json.dumps(domain.to_dict()))) == domain
    column = pl.Series(values)
    if is_listed and not column.dtype.is_nested():
        column = column.cast(pl.String, strict=False).cast(pl.Categorical)
    columns = dict.fromkeys(domain.columns, column)
    try:
        keys, kept, refused = domain.row_keys(columns)
    except ValueError:  # a column of a kind that the rule does not read
        return
    assert len(keys) == (len(values) if kept is None else kept.sum())
    if not refused:
        assert len(domain.frame(keys)) == len(keys)
