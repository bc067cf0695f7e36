"""Arrays are as annotations say: beartype looks at each call of `noise`, and at each estimate."""

import re
from dataclasses import fields, is_dataclass
from types import FunctionType

import jaxtyping
import numpy as np
import pytest
from beartype import beartype
from beartype.door import is_bearable

from workbench import mechanisms, noise
from workbench.data import Bound, SparseTable
from workbench.mechanisms.laws import DOMAIN, Subject

TABLE = SparseTable.from_keys(DOMAIN, [0, 5, 10], [9, 1, 4], Bound())
KINDS = ("Bool", "Complex", "Float", "Int", "Num", "UInt8", "UInt64")
REAL = {name: getattr(jaxtyping, name) for name in KINDS}
REAL["Num"] = jaxtyping.Shaped  # longdouble too, of which jaxtyping knows nothing
SHAPED = re.compile(rf"\b({'|'.join(KINDS)})\[")


def shaped(owner, names):
    """The annotations of arrays, as types that look at shapes; others are mypy's."""
    texts = getattr(owner, "__annotations__", {})
    return {
        name: eval(text, names | REAL)
        for name, text in texts.items()
        if isinstance(text, str) and SHAPED.search(text)
    }


def checked(function):
    """The function, which refuses arrays that are not as it says, and returns none."""
    copy = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = shaped(function, function.__globals__)
    return jaxtyping.jaxtyped(copy, typechecker=beartype)


FUNCTIONS = {
    name: function
    for name, function in vars(noise).items()
    if isinstance(function, FunctionType) and shaped(function, function.__globals__)
}


def check_fields(value):
    """The arrays of a value, whose sizes of one name agree."""
    module = __import__(type(value).__module__, fromlist=["*"])
    with jaxtyping.jaxtyped("context"):
        for name, kind in shaped(type(value), vars(module)).items():
            if "+" in str(kind) or "/" in str(
                kind
            ):  # a size that follows from one named elsewhere
                continue
            assert is_bearable(getattr(value, name), kind), (type(value).__name__, name, kind)
    for inside in fields(value):
        if is_dataclass(part := getattr(value, inside.name)):
            check_fields(part)


@pytest.mark.parametrize("cls", mechanisms.ALL, ids=lambda cls: cls.__name__)
def test_arrays_have_the_shapes_that_are_written(cls, monkeypatch):
    for name, function in FUNCTIONS.items():
        monkeypatch.setattr(noise, name, checked(function))
    subject = Subject(cls)
    release = subject.example(TABLE)(subject.given(TABLE), np.random.default_rng(0))
    check_fields(release.estimate)


def test_another_shape_is_refused():
    assert len(FUNCTIONS) > 10
    geometric = checked(noise.geometric)
    geometric(np.array([1, 2]), l1=1, epsilon=1.0)
    for wrong in (np.array([[1, 2]]), np.array([1.5, 2.0])):
        with pytest.raises(jaxtyping.TypeCheckError):
            geometric(wrong, l1=1, epsilon=1.0)
