"""The gate sees what is lost; what its tables name is there. Coverage is measured by its command alone."""

import csv

from tests.laws import gate


def test_what_was_caught_is_caught_by_a_test_that_is_there():
    with open(gate.GATE, newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if row[0] != "coverage"]
    assert rows and not [
        *gate.compare(rows, {"planted": gate.planted(), "drawn": gate.drawn()})
    ]


def test_a_loss_is_told():
    recorded = [
        ("coverage", "noise", "99"),
        ("coverage", "data", "97"),
        ("planted", "a", "x.py::t"),
    ]
    recorded += [("drawn", "b", "laws/test_gate.py::test_before"), ("drawn", "c", "no end")]
    now = {"drawn": {"b": "laws/test_gate.py::test_is_gone[1]", "c": "no end"}, "planted": {}}
    told = [*gate.compare(recorded, now | {"coverage": {"noise": 98.6, "data": 96.8}})]
    assert [line.partition(":")[0] for line in told] == ["noise", "planted, a", "drawn, b"]
