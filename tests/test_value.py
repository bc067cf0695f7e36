"""Value objects: what their fields allow, and their text."""

from math import inf, nan

import numpy as np
import pytest

from workbench.value import parameter, value


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
    [
        ({"n": 0}, "n = 0"),
        ({"n": 10}, "<= 9"),
        ({"n": 2.0}, "an integer"),
        ({"n": True}, "n = True"),
    ]
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
