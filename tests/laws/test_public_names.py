"""Public names say what they take, what they return and what they refuse, with types."""

import dataclasses
import inspect
import re

import pytest

import workbench
from workbench import Release, Session, datasets, inference, mechanisms, noise
from workbench.trials import metrics

SECTION = r"^ *{0}\n *-{{{1}}}\n"


def functions():
    """Public functions by name, and the public methods of what users hold."""
    for module in (workbench, inference, noise, metrics, datasets):
        for name in dir(module):
            member = getattr(module, name, None)
            if not name.startswith("_") and inspect.isfunction(inspect.unwrap(member)):
                yield f"{module.__name__}.{name}", member
    for cls in (Release, Session):
        for name, member in vars(cls).items():
            function = getattr(member, "__func__", member)
            if not name.startswith("_") and inspect.isfunction(function):
                yield f"{cls.__name__}.{name}", function


FUNCTIONS = dict(functions())
each = pytest.mark.parametrize("name", FUNCTIONS)


def has(doc: str, section: str) -> bool:
    return re.search(SECTION.format(section, len(section)), doc, re.M) is not None


@each
def test_has_sections_for_what_it_takes_and_returns(name):
    function = FUNCTIONS[name]
    doc = function.__doc__ or ""
    signature = inspect.signature(function)
    taken = [p for p in signature.parameters if p not in ("self", "cls")]
    if taken:
        assert has(doc, "Parameters"), f"{name} does not say what it takes"
        for parameter in taken:
            assert re.search(rf"^ *[\w, *]*\b{parameter}\b.*", doc, re.M), (name, parameter)
    if signature.return_annotation not in ("None", None, inspect.Signature.empty):
        assert has(doc, "Returns") or has(doc, "Yields"), f"{name} does not say what it returns"


@each
def test_every_parameter_and_result_has_a_type(name):
    signature = inspect.signature(FUNCTIONS[name])
    untyped = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.name not in ("self", "cls")
        and parameter.annotation is inspect.Parameter.empty
    ]
    assert not untyped and signature.return_annotation is not inspect.Signature.empty


@pytest.mark.parametrize("cls", [*mechanisms.ALL, *datasets.ALL], ids=lambda c: c.__name__)
def test_every_field_says_what_it_is(cls):
    assert cls.__doc__
    for field in dataclasses.fields(cls):
        if field.metadata:  # declared by parameter(); others are a value that is wrapped
            assert field.metadata["doc"], f"{cls.__name__}.{field.name} says nothing"


@pytest.mark.parametrize("cls", mechanisms.ALL, ids=lambda c: c.__name__)
def test_help_of_a_mechanism_says_what_it_promises(cls):
    doc = inspect.getdoc(cls)
    for word in ("Guarantee", "Assumes", "Source", "Differs", "Cost"):
        assert re.search(rf"^{word}\s+\S", doc, re.M), word
    assert doc.count("Guarantee  ") == 1


@pytest.mark.parametrize(
    "cls", [*mechanisms.ALL, *datasets.ALL, workbench.DP, workbench.Marginals]
)
def test_help_lists_the_fields_that_are_declared(cls):
    doc = cls.__init__.__doc__
    declared = [field.name for field in dataclasses.fields(cls) if field.metadata]
    assert not declared or has(doc, "Parameters") and has(doc, "Raises")
    for name in declared:
        assert re.search(rf"^{name} : ", doc, re.M), name
