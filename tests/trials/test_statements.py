"""Statements in a file, their checks in a figure: what is refused, and what becomes of each."""

import json

import pandas as pd
import pytest

from tests.figures.worlds import noisy
from workbench.trials import claims
from workbench.trials.claims import Finding, MissingPoints, Statement, Strip

CLAIM = """
[fig1.x-1]
page = "section 1"
sentence = "It falls, and is small."
"""
FALLS = """
[fig1.x-1.1]
says = "It falls."
reading = "everywhere"
check = "test_statements.check"
"""
SMALL = """
[fig1.x-1.2]
says = "It is small."
page = "section 2"
check = "test_statements.check"
"""
OTHER = (CLAIM + FALLS).replace("x-1", "x-2").replace("fig1", "fig2")
ROWS = pd.DataFrame({"seed": range(5), "value": 1.0})


def check(rows, level):
    return Finding(True, f"{len(rows)} rows")


def read(tmp_path, text):
    path = tmp_path / f"{abs(hash(text))}.toml"
    path.write_text(text, encoding="utf-8")
    return claims.read(path, "nobody2020_fig1", "tests.trials")


def test_statements_are_read_with_their_checks(tmp_path):
    (claim,) = read(tmp_path, CLAIM + FALLS + SMALL + 'needs = ["Adult"]' + OTHER)
    falls, small = claim.judge([ROWS], 0.95, lambda name: name != "Adult")
    assert (falls.id, falls.claim, falls.says) == ("x-1.1", "x-1", "It falls.")
    assert (falls.page, small.page) == ("section 1", "section 2")
    assert falls.outcome == claims.HOLDS and falls.measured == "5 rows" and not falls.why
    assert small.outcome == claims.UNTESTABLE and small.measured == "5 rows"
    assert "Adult" in small.why


def test_what_a_figure_and_a_claim_share_is_said_once(tmp_path):
    shared = '[fig1.check]\nby = "x"\nlow = 2\n' + CLAIM + 'needs = ["Adult"]\n'
    own = '{kind = "between", ours = "a"}', '{kind = "between", ours = "a", low = 0.5}'
    few, enough = (FALLS.replace('"test_statements.check"', text) for text in own)
    (claim,) = read(tmp_path, shared + few + enough.replace("x-1.1", "x-1.2"))
    rows = ROWS.assign(series="a", x=1)
    first, second = claim.judge([rows], 0.5)
    assert (first.outcome, second.outcome) == (claims.DIFFERS, claims.HOLDS)
    assert {each.needs for each in claim.statements} == {("Adult",)}


def checked(text):
    return CLAIM + FALLS.replace('"test_statements.check"', text)


@pytest.mark.parametrize(
    "text, says",
    [
        (
            CLAIM + FALLS.replace("check =", "page ="),
            "nobody2020_fig1: statement x-1.1 has no check",
        ),
        (CLAIM + FALLS + FALLS, r"toml: Cannot declare .*'x-1', '1'"),
        (CLAIM + FALLS + CLAIM + SMALL, "toml: Cannot declare"),
        (CLAIM + FALLS + OTHER.replace("x-2", "x-1"), "two figures have the claim x-1"),
        (CLAIM + FALLS + 'colour = "red"', "x-1.1 has an unknown key 'colour'"),
        (CLAIM + 'why = "so"' + FALLS, "x-1 has an unknown key 'why'"),
        (CLAIM, "x-1 has no statement"),
        (CLAIM + FALLS.replace("says", "page"), "x-1.1 lacks 'says'"),
        (CLAIM + FALLS + 'untestable = "no"', "need one of them"),
        (checked('{ kind = "smells" }'), "x-1.1 has a check of kind 'smells': need a function"),
        (checked('{ kind = "falls", ours = "a" }'), "x-1.1: its check lacks 'by'"),
        (checked('{ kind = "lower", ours = "a", by = "x" }'), "its check lacks 'other'"),
        (
            checked('{ kind = "falls", ours = "a", by = "x", colour = "red" }'),
            "its check has an unknown key 'colour'",
        ),
        (
            checked('{ kind = "lower", ours = "a", other = "b", by = "x", low = 1 }'),
            "its check has an unknown key 'low'",
        ),
        (
            checked('{ kind = "falls", ours = "a", by = "x", share = "mostly" }'),
            "share = 'mostly', need one of everywhere, often, somewhere",
        ),
        (
            checked('{ kind = "falls", ours = "a, θ = {θ}", by = "x", over = { "θ2" = [1] } }'),
            "its check needs '(θ|θ2)' both in `over` and in braces",
        ),
        (checked('{ function = "a.b", size = "{size}" }'), "needs 'size' both in"),
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path, text, says):
    with pytest.raises(ValueError, match=says):
        read(tmp_path, text)


def test_a_statement_that_cannot_be_tested_needs_no_check(tmp_path):
    untestable = FALLS.replace('check = "test_statements.check"', 'untestable = "no data"')
    (claim,) = read(tmp_path, CLAIM + untestable)
    (verdict,) = claim.judge([ROWS], 0.95)
    assert verdict.outcome == claims.UNTESTABLE and verdict.why == "no data"


def rows_of(**series):
    points = [
        {"series": name, "size": size, "value": x}
        for name, values in series.items()
        for size, x in zip((1, 10, 100), values, strict=True)
    ]
    return noisy(points, seeds=5, spread=1e-3)


CURVES = rows_of(low=(8, 4, 2), mid=(9, 4.8, 2.1), high=(20, 20, 20), up=(2, 4, 8))


@pytest.mark.parametrize(
    ("check", "outcome"),
    [
        ('{ kind = "lower", ours = "low", other = "mid", by = "size" }', claims.HOLDS),
        (
            '{ kind = "lower", ours = "low", other = "mid", by = "size", times = 2 }',
            claims.DIFFERS,
        ),
        (
            '{ kind = "lower", ours = "mid", other = ["low", "high"], by = "size" }',
            claims.DIFFERS,
        ),
        (
            '{ kind = "lower", ours = "mid", other = ["low", "high"], by = "size", any = true }',
            claims.HOLDS,
        ),
        (
            '{ kind = "lower", ours = "{which}", other = "mid", by = "size", '
            'over = { which = ["low", "high"] } }',
            claims.DEPENDS,
        ),
        ('{ kind = "higher", ours = "mid", other = "low", by = "size" }', claims.HOLDS),
        ('{ kind = "at most", ours = "mid", other = "low", by = "size" }', claims.HOLDS),
        ('{ kind = "similar", ours = "low", other = "mid", by = "size" }', claims.HOLDS),
        ('{ kind = "similar", ours = "low", other = "high", by = "size" }', claims.DIFFERS),
        (
            '{ kind = "similar", ours = { series = "low" }, other = "high", by = "size", times = 3, '
            "rows = { size = { to = 1 } } }",
            claims.HOLDS,
        ),
        ('{ kind = "between", ours = "low", by = "size", low = 1, high = 9 }', claims.HOLDS),
        (
            '{ kind = "between", ours = "low", by = "size", low = 100, scale = 100, unit = " %" }',
            claims.HOLDS,
        ),
        ('{ kind = "falls", ours = ["low", "mid"], by = "size" }', claims.HOLDS),
        ('{ kind = "falls", ours = "up", by = "size" }', claims.DIFFERS),
        ('{ kind = "lower", ours = "low", other = "absent", by = "size" }', claims.UNTESTABLE),
        (
            '{ function = "test_statements.at_least", rows = { series = "high" }, least = 19 }',
            claims.HOLDS,
        ),
        (
            '{ function = "test_statements.at_least", prepare = "test_statements.halved", least = 20 }',
            claims.DIFFERS,
        ),
    ],
)
def test_a_declared_check_decides_what_it_says(tmp_path, check, outcome):
    (claim,) = read(tmp_path, checked(check))
    (verdict,) = claim.judge([CURVES], 0.95)
    assert verdict.outcome == outcome


def at_least(rows, level, least):
    return Finding(bool(rows.value.min() >= least), f"{rows.value.min():g}")


def halved(rows):
    return rows.assign(value=rows.value / 2)


def test_what_was_not_run_of_what_is_swept_is_open(tmp_path):
    swept = 'ours = "{which}", other = "mid", by = "size", over = { which = ["low", "absent"] }'
    (claim,) = read(tmp_path, checked(f'{{ kind = "lower", {swept} }}'))
    (verdict,) = claim.judge([CURVES], 0.95)
    assert (
        verdict.outcome == claims.UNDECIDED and str(verdict.strip) == "which: low ✓, absent ?"
    )


def test_a_function_that_is_not_there_is_named(tmp_path):
    (claim,) = read(tmp_path, checked('"test_statements.nothing"'))
    with pytest.raises(ValueError, match="test_statements.nothing, which does not exist"):
        claim.judge([CURVES], 0.95)


def test_the_first_look_that_decides_is_the_verdict():
    seen = []

    def only_three(rows, level):
        seen.append(len(rows))
        return Finding(True if len(rows) == 3 else None, f"{len(rows)} rows", runs=123.4)

    statement = Statement("x-1.1", "It falls.", only_three)
    claim = claims.Claim("x-1", "", "It falls.", (statement,))
    looks = [ROWS[:2], ROWS[:3], ROWS]
    (verdict,) = claim.judge(looks, 0.99)
    assert verdict.outcome == claims.HOLDS and verdict.measured == "3 rows" and seen == [2, 3]
    (early,) = claim.judge(looks[:1], 0.99)
    assert early.outcome == claims.UNDECIDED and "about 130 repetitions" in early.why
    (none,) = claim.judge([], 0.99)
    assert none.outcome == claims.UNDECIDED and "fewer repetitions" in none.why


def test_rows_without_the_points_are_no_test():
    def missing(rows, level):
        raise MissingPoints("no rows of H̃")

    statement = Statement("x-1.1", "It falls.", missing)
    (verdict,) = claims.Claim("x-1", "", "It falls.", (statement,)).judge([ROWS], 0.99)
    assert verdict.outcome == claims.UNTESTABLE and "no rows of H̃" in verdict.why


def test_marks_and_strips_stand_in_the_table():
    strip = Strip("θ", (("20", False), ("40", None), ("65", True)))
    swept = Statement("x-1.1", "It.", lambda rows, level: Finding(None, "m", strip=strip))
    forced = Statement("x-1.2", "It.", check, by_definition=True)
    silent = Statement("x-1.3", "It.", untestable="nobody has the data")
    claim = claims.Claim("x-1", "page 3", "It.", (swept, forced, silent))
    verdicts = claim.judge([ROWS], 0.95)
    table = claims.to_frame(verdicts)
    assert table.by_value.tolist() == ["θ: 20 ✗, 40 ?, 65 ✓", "", ""]
    assert table.mark.tolist() == ["", claims.BY_DEFINITION, ""]
    assert table.outcome.tolist() == [claims.DEPENDS, claims.HOLDS, claims.UNTESTABLE]
    page = claims.verdict_table(verdicts).to_html()
    assert "◐ depends on what is not printed" in page and "nobody has the data" in page
    assert "holds for θ = 65; differs for θ = 20; undecided for θ = 40; m" in page
    opened = [claims.left_open(v, "half the people") for v in verdicts]
    assert [v.outcome for v in opened] == [claims.UNDECIDED, claims.HOLDS, claims.UNTESTABLE]


@pytest.mark.parametrize("holds", [True, False, None])
def test_what_arithmetic_decides_follows_from_the_definition(holds):
    forced = Statement("x-1.1", "It.", lambda *_: Finding(holds, "m"), by_definition=True)
    (verdict,) = claims.Claim("x-1", "page 3", "It.", (forced,)).judge([ROWS], 0.95)
    assert verdict.mark == ("" if holds is None else claims.BY_DEFINITION)


def test_what_the_paper_prints_stands_beside_what_was_measured():
    point = claims.Printed("about 15 %", 0.1, 0.2)
    numbers = claims.exact(pd.Series([0.15]))
    finding = claims.all_of(
        {
            "once": lambda at: claims.check_printed(numbers, at, point),
            "again": lambda at: claims.check_printed(numbers, at, point),
        },
        0.95,
    )
    assert finding.holds and finding.printed == "about 15 %"
    claim = claims.Claim.of_one("x-1", "It is 15 %.", lambda rows, level: finding)
    (verdict,) = claim.judge([None], 0.95)
    assert claims.to_frame([verdict]).printed.tolist() == ["about 15 %"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((2, 1), "need low <= high, not 2 and 1"),
        ((float("nan"), 1), "need low <= high, not nan and 1"),
        ((1, 2, None, 3), "value 3 is outside 1 to 2"),
        ((1, 2, None, None, "z"), "need axis 'x' or 'y', not 'z'"),
        ((1, 2, None, None, "y", (9, 5)), "need over with its lower end first, not 9 to 5"),
    ],
)
def test_a_printed_value_outside_its_axis_is_refused(given, words):
    with pytest.raises(ValueError, match=f"printed value 'about 1': {words}"):
        claims.Printed("about 1", *given)


GOOD = {"says": "It holds.", "statements": ["x-1.1"], "data": "any data"}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"statements": ["x-1.1", "x-9.9"]},
            r"rests on \['x-9.9'\]: need statements of this file",
        ),
        ({"statements": []}, "rests on no statement"),
        ({"data": "a guess"}, "was judged on 'a guess': need one of"),
        ({"says": "word " * 26}, "has more than 25 words"),
        ({"outcome": "reproduces"}, "has an unknown key 'outcome'"),
        ({"data": None}, "lacks 'data'"),
    ],
)
def test_a_finding_in_wrong_words_is_refused(tmp_path, change, why):
    table = {key: x for key, x in (GOOD | change).items() if x is not None}
    text = "\n".join(f"{key} = {json.dumps(x)}" for key, x in table.items())
    file = tmp_path / "statements.toml"
    file.write_text(f"{CLAIM}{FALLS}\n[[finding]]\n{text}\n")
    with pytest.raises(ValueError, match=f"statements.toml: the finding .*{why}"):
        claims.read_findings(file)


def test_the_statement_that_is_furthest_from_holding_decides_a_finding():
    verdicts = pd.DataFrame(
        [
            ("a", claims.HOLDS, ""),
            ("b", claims.DEPENDS, "θ: 20 ✗, 60 ✓, 70 ✓"),
            ("c", claims.DEPENDS, "θ: 20 ✓, 60 ?, 70 ✓"),
            ("d", claims.UNDECIDED, ""),
            ("e", claims.UNTESTABLE, ""),
            ("f", claims.DIFFERS, ""),
        ],
        columns=["id", "outcome", "by_value"],
    ).assign(mark="")

    def outcome(*ids):
        return claims.PaperFinding("So.", ids, "any data", "the file").outcome(verdicts)

    assert outcome("a") == "reproduces"
    assert outcome("a", "b", "c") == "reproduces for some values: θ = 70"
    assert outcome("a", "b", "d") == "needs more runs"
    assert outcome("d", "e") == "needs data: the file"
    assert outcome("a", "e", "f") == "does not reproduce"
    assert outcome("z") == outcome("a", "z") == "not judged"
    assert outcome("a", "f", "z") == "does not reproduce"
    verdicts.loc[1, "by_value"] = "ε: total ✗, each, and popularity ✓"
    assert outcome("b") == "reproduces for some values: ε = each, and popularity"
    verdicts.loc[0, "mark"] = claims.BY_DEFINITION
    assert list(claims.count_outcomes(verdicts).values()) == [0, 2, 1, 1, 1, 1]
