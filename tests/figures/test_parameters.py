"""Every parameter of every figure is written, and read back, by everything that takes it."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from papermill import inspect_notebook

from tests.figures.test_notebooks import NOTEBOOKS, literals_of
from workbench.figures import PROFILES, find_figure, parameters_cell
from workbench.figures.status import tasks
from workbench.mechanisms.options import parameter_text, parse_parameter
from workbench.widgets.figure_subject import FigureSubject

FIGURES = [id for id in NOTEBOOKS if "open_notebook" in NOTEBOOKS[id].read_text()]


def values(cls, name, f):
    """The paper's value, the quick one, and each choice."""
    choices = f.metadata["choices"]
    yield from dict.fromkeys([f.default, cls.quick.get(name, f.default)])
    yield from ((choice,) for choice in choices) if f.metadata["many"] else choices


@pytest.mark.parametrize("id", FIGURES)
def test_every_value_is_read_back_as_it_was_written(id):
    cls = find_figure(id)
    quick = cls.at("quick")
    panel = FigureSubject(cls.id, Path())
    for name, f in cls.parameters().items():
        for x in values(cls, name, f):
            assert parse_parameter(f, parameter_text(x)) == x, (name, x)
            figure = replace(quick, **{name: x})
            assert panel.at(panel.settings(figure)) == figure
            for profile in PROFILES:
                typed = shlex.split(figure.command(profile))
                settings = [w for w in typed if "=" in w]
                (task,) = tasks([id], NOTEBOOKS, profile, settings)
                given = json.loads(json.dumps(dict(task.parameters)))  # as papermill writes it
                assert cls.at(profile, **given) == figure, (name, x, typed)
                assert task.name == figure.name(profile)


@pytest.mark.parametrize("id", FIGURES)
def test_the_cell_of_parameters_is_the_profile(id):
    cls = find_figure(id)
    cell = literals_of(parameters_cell(cls))
    given = {name: cell[name] for name in cls.parameters()}
    assert [cls.at(profile, **given) for profile in PROFILES] == [cls.at(p) for p in PROFILES]


@pytest.mark.parametrize("typed", ["none", "None"])
def test_none_is_typed_as_the_comments_offer_it(typed):
    fig5 = find_figure("fan2015_fig5")
    assert fig5.at("quick", d=typed, seeds=typed) == fig5.at("quick")
    fig6 = find_figure("chen2012_fig6")
    assert fig6.at("quick", size=typed).size is None != fig6.at("quick").size
    with pytest.raises(ValueError, match=f"epsilon = '{typed}' is not allowed: need a number"):
        fig5.at("quick", epsilon=typed)


@pytest.mark.parametrize("id", NOTEBOOKS)
def test_papermill_lists_every_parameter(id, caplog):
    listed = inspect_notebook(Path(NOTEBOOKS[id]))
    wanted = find_figure(id).parameters() if id in FIGURES else ()
    assert [*listed] == ["profile", "results", *wanted]
    assert not caplog.records
