"""Controls: made of fields, read from a page, from Python and from what is typed."""

from dataclasses import fields
from typing import Any

import pytest

from workbench import Dyadic
from workbench.mechanisms import HighPassFilter, PrioritySampling
from workbench.value import parameter, value
from workbench.widgets.controls import Control, control_of_field, in_places, stops_around


def made(field: Any, at: Any, kind: type = float):
    cls = value(type("Made", (), {"__annotations__": {"x": kind}, "x": field}))
    return control_of_field(fields(cls)[0], at)


def own(cls, name, at):
    return control_of_field(next(f for f in fields(cls) if f.name == name), at)


def test_stops_are_round_and_inside_the_bounds():
    share = made(parameter(0.5, 0, 1, strict=True), 0.5)
    assert share.stops[0] == 0.05 and share.stops[-1] == 1.0 and len(share.stops) == 20
    small = made(parameter(1e-6, 0, 1), 1e-6)
    assert small.stops[:2] == (0.0, 1e-8) and small.stops[-1] == 8e-5
    whole = made(parameter(3, 1, 12, integer=True), 3, int)
    assert whole.stops == tuple(range(1, 13)) and all(type(s) is int for s in whole.stops)
    assert made(parameter(5.0, unit="counts"), -5.0) is None
    zero = made(parameter(0, 0, 2**50), 0)
    assert zero.value == 0.0 and zero.stops[0] == 0.0 and zero.stops[-1] == 1000.0
    open_ = made(parameter(10, check=lambda x: None), 10, int | str)
    assert open_.stops[0] == 1 and open_.stops[-1] == 1000
    assert stops_around(7, 7, 7, strict=False, whole=True) == (7,)
    for text in ("suggested", None, (0.5, 0.5), Dyadic()):
        assert made(parameter(10, check=lambda x: None), text) is None


def test_a_number_left_out_is_auto_and_its_slider_starts_somewhere_inside():
    slider = made(parameter(None, 1, 2**53, integer=True), None, int)
    assert slider.optional and slider.value is None and 100 in slider.stops
    assert made(parameter(None, 1, 50, integer=True), None, int).stops[-1] == 50
    assert 0.5 in made(parameter(None, 0, 1), None).stops
    assert made(parameter(None, 0, 2**50), 4).value == 4.0
    assert slider.read(None) is None and slider.read("auto") is None
    assert slider.text(None) == "auto" and slider.text(7) == "7"


def test_controls_read_what_is_sent_and_typed():
    size = own(PrioritySampling, "size", 10)
    assert size.read(5.0) == 5 and isinstance(size.read(5.0), int) and size.read(5.5) == 5.5
    assert own(PrioritySampling, "theta", 1.0).read(3) == 3.0
    sides = own(HighPassFilter, "sides", 2)
    assert sides.kind == "choice" and sides.read(1) == 1
    for bad in (None, "x", True, float("inf")):
        with pytest.raises(ValueError, match="size = .* is not allowed: need a number"):
            size.read(bad)
    with pytest.raises(ValueError, match="sides = 3 is not allowed: need one of 1, 2"):
        sides.read(3)
    some = Control("data", ["a"], ("a", "b, c"), "several")
    assert some.read(["b, c", "a"]) == ["b, c", "a"] == some.read(some.text(["b, c", "a"]))
    with pytest.raises(ValueError, match="data = 'd' is not allowed"):
        some.read(["d"])
    typed = Control("lengths", "1,2", (), "text")
    assert typed.read("3") == "3" and typed.read((1, 2)) == "1,2"


def test_words_and_units_are_those_of_the_field():
    theta = own(HighPassFilter, "theta", 1.0)
    assert (theta.label, theta.unit) == ("θ", "counts") and theta.doc


def test_four_controls_are_on_top_and_the_named_ones_first():
    names = ["seeds", "queries", "mean", "l", "epsilon", "width", "kind"]
    controls = [Control(name, 1, (1, 2)) for name in names[:-1]]
    controls.append(Control("kind", "a", ("a", "b"), "choice"))
    controls.append(Control("compare", "", ("", "b"), "choice", place="tools"))
    placed = in_places(controls)
    assert [c["name"] for c in placed if c["place"] == "top"] == [
        "epsilon",
        "l",
        "seeds",
        "queries",
    ]
    assert [c["name"] for c in placed if c["place"] == "more"] == ["mean", "width", "kind"]
    assert placed[-1]["place"] == "tools" and len(placed) == len(controls)
