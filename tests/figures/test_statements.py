"""Every statement of every figure holds in a made-up world where it is true, and not in one where it is false.

The worlds stand with the other tests of their papers.
"""

import pytest

from tests.figures import (
    test_adaptive2009,
    test_adaptive2009_discounts,
    test_adaptive2009_strings,
    test_chen2012_a,
    test_chen2012_b,
    test_cormode2012_a,
    test_cormode2012_b,
    test_fan2015_counts,
    test_fan2015_statements,
    test_hay2010,
)
from workbench.figures import Figure
from workbench.trials.claims import DIFFERS, HOLDS

MODULES = [
    test_adaptive2009,
    test_adaptive2009_discounts,
    test_adaptive2009_strings,
    test_chen2012_a,
    test_chen2012_b,
    test_cormode2012_a,
    test_cormode2012_b,
    test_fan2015_counts,
    test_fan2015_statements,
    test_hay2010,
]
WORLDS = [world for module in MODULES for world in module.WORLDS]
BROKEN = [
    pytest.param((world, *how), id=how[0])
    for world in WORLDS
    for how in world.broken
    if {*how[0].split()} <= {*world.checks}
]
every = pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.figure.id)


@every
def test_statements_hold_where_they_are_true(world):
    found = {id: world.outcome(id, world.after(world.true.get(id, []))) for id in world.checks}
    assert found == {id: world.otherwise.get(id, HOLDS) for id in found}


def test_every_statement_is_broken_somewhere():
    broken = {id for param in BROKEN for id in param.values[0][1].split()}
    for world in WORLDS:
        assert broken.isdisjoint(world.forced)
        assert broken >= {*world.checks} - {*world.forced} - {*world.otherwise}


@pytest.mark.parametrize("how", BROKEN)
def test_a_statement_differs_where_it_is_false(how):
    world, ids, changes, *outcome = how
    rows = world.after(changes)
    broken = dict.fromkeys(ids.split(), *(outcome or [DIFFERS]))
    found = {id: world.outcome(id, rows) for id in (world.checks if world.alone else broken)}
    assert found == dict.fromkeys(found, HOLDS) | broken


TELL = [world for world in WORLDS if world.figure.comparison is not Figure.comparison]


@pytest.mark.parametrize("world", TELL, ids=lambda world: world.figure.id)
def test_a_figure_tells_its_numbers_beside_the_papers(world):
    assert len(world.figure().compare_with_paper(world.after([])))
