"""A figure as a value: its parameters, its names, and what it says off the paper's path."""

import sys
from types import ModuleType

import pandas as pd
import pytest

from workbench import figures
from workbench.figures import UNPRINTED, Figure
from workbench.figures.fields import choice, epsilon, number, queries, seeds, whole
from workbench.figures.plots import Panel
from workbench.trials import claims
from workbench.trials.claims import Claim, Finding, Printed
from workbench.value import value

CLAIMS = (Claim.of_one("x-1", "It falls.", lambda rows, level: Finding(None, "not settled")),)


@value
class Fig1(Figure):
    """A figure of nobody."""

    id = "nobody2020_fig1"
    title = "Nothing"
    quick = {"seeds": 3, "queries": 10}
    claims = CLAIMS

    epsilon: float = epsilon(0.1)
    theta: tuple[int, ...] = whole((10, 20), "θ", unit="counts")
    power: float | None = number(None, "a power", kind=UNPRINTED)
    data: str = choice("Here", ("Here", "There"), "the table")
    tables: tuple[str, ...] = choice(("Here",), ("Here", "There"), "more tables")
    size: int = whole(100, "s", kind=UNPRINTED)
    queries: int = queries(100)
    seeds: int = seeds(50)

    def comparison(self, rows):
        """What is printed."""
        return pd.DataFrame({"value": [self.epsilon]})


class Drawn(Figure):
    """Two panels, of which the paper prints a number in one."""

    main = 2

    def panels(self, rows):
        """A panel a letter."""
        printed = {"a": Printed("about 3", 2, 4)}
        names = ("a", "b", "c")
        return [Panel(f"in\n{x}", {"panel": x}, "x", printed=printed.get(x, ())) for x in names]


def test_numbers_of_the_picture_stand_beside_what_is_printed():
    points = [
        (p, s, x, x * seed) for p in "abc" for s in "ts" for x in (2, 10) for seed in (1, 2)
    ]
    rows = pd.DataFrame(points, columns=["panel", "series", "x", "value"])
    table = Drawn().comparison(rows)
    assert [*table.index] == [("in a", "t"), ("in a", "s"), ("in b", "t"), ("in b", "s")]
    numbers = table.iloc[0].to_dict()
    assert numbers.pop("the paper prints") == "about 3" and numbers.pop("from … to") == "2 … 10"
    assert numbers == {"first": "3", "last": "15", "lowest": "3", "highest": "15"}
    assert "the paper prints" not in Drawn().comparison(rows[rows.panel != "a"])


def test_a_figure_of_a_notebooks_cell_has_no_statements(monkeypatch):
    cells = ModuleType("cells")  # which is of no file
    monkeypatch.setitem(sys.modules, "cells", cells)
    exec("from workbench.figures import Figure\n\nclass Mine(Figure):\n    pass", vars(cells))
    assert cells.Mine.claims == () and cells.Mine.checks() == {}


def test_profiles_are_named_settings():
    assert Fig1.at("paper") == Fig1() and Fig1.at("quick") == Fig1(seeds=3, queries=10)
    assert Fig1.at("quick", seeds=None, epsilon=None) == Fig1.at("quick")
    assert repr(Fig1.at("quick", theta=(5,))) == "Fig1(theta=(5,), queries=10, seeds=3)"


@pytest.mark.parametrize(
    "given, meant",
    [
        ({"epsilon": "0.5"}, {"epsilon": 0.5}),
        ({"theta": "10,30"}, {"theta": (10, 30)}),
        ({"theta": "[10, 30]"}, {"theta": (10, 30)}),
        ({"theta": [10, 30]}, {"theta": (10, 30)}),
        ({"theta": 10}, {"theta": (10,)}),
        ({"seeds": "1e1"}, {"seeds": 10}),
        ({"data": "there"}, {"data": "There"}),
        ({"tables": "there, Here"}, {"tables": ("There", "Here")}),
        ({"power": "2"}, {"power": 2}),
    ],
)
def test_values_are_taken_as_they_are_typed(given, meant):
    assert Fig1.at("paper", **given) == Fig1(**meant)


@pytest.mark.parametrize(
    "given, says",
    [
        ({"epsilonn": 1}, "nobody2020_fig1 has no parameter 'epsilonn'. Did you mean epsilon?"),
        ({"zzz": 1}, "has no parameter 'zzz'. There are: epsilon, theta"),
        ({"epsilon": 0}, "nobody2020_fig1: epsilon = 0 is not allowed: need a number >= 1e-06"),
        ({"epsilon": "x"}, "nobody2020_fig1: epsilon = 'x' is not allowed: need a number"),
        ({"theta": ()}, "theta = .. is not allowed: need a tuple of at least one value"),
        ({"theta": (1, 1)}, "need different values"),
        ({"theta": (1, 2.5)}, "need an integer >= 1 .counts."),
        ({"data": "Nowhere"}, "data = 'Nowhere' is not allowed: need one of 'Here', 'There'"),
    ],
)
def test_what_is_not_allowed_is_refused_in_the_figures_words(given, says):
    with pytest.raises(ValueError, match=says):
        Fig1.at("quick", **given)
    with pytest.raises(ValueError, match="profile = 'slow'"):
        Fig1.at("slow")


def test_names_and_commands_say_what_differs():
    figure = Fig1.at("quick", epsilon=0.5, theta=(5, 6), seeds=4)
    assert figure.name("quick") == "nobody2020_fig1,epsilon=0.5,theta=5+6,seeds=4"
    assert figure.command("quick").endswith("-p epsilon=0.5 -p theta=5,6 -p seeds=4")
    assert Fig1.at("quick").name("quick") == Fig1().name("paper") == "nobody2020_fig1"
    long = Fig1(theta=tuple(range(1, 100))).name("paper")
    assert len(long) <= 120 and long != Fig1(theta=tuple(range(1, 101))).name("paper")


def test_only_settings_take_a_figure_off_the_papers_path():
    rows = pd.DataFrame({"value": [1.0]})
    assert Fig1(size=5, seeds=2).off_paper() == {}
    assert Fig1(epsilon=0.5, size=5).off_paper() == {"epsilon": 0.5}
    (verdict,) = Fig1(epsilon=0.5, theta=(5, 6)).judge(rows)
    assert verdict.outcome == claims.NOT_JUDGED
    assert verdict.why == "not the paper's setting: epsilon = 0.5, theta = 5, 6"
    assert list(Fig1(epsilon=0.5).compare_with_paper(rows)) == [
        "not the paper's setting",
        "value",
    ]
    assert Fig1().compare_with_paper(rows).value.tolist() == [0.1]


CELL = "profile = 'quick'\nepsilon = 0.1"


@pytest.mark.parametrize(
    "sources, says",
    [
        (["profile = 'quick'\nepsilonn = 1"], "no parameter 'epsilonn'. Did you mean epsilon?"),
        ([CELL, "# Parameters\nthetta = 1"], "no parameter 'thetta'. Did you mean"),
        (["profile = 'quick'\nzzz = 1", CELL, "x = 3"], None),
        ([CELL, "# Parameters\nbad = 1", "# Parameters\nepsilon = 1"], None),
    ],
)
def test_a_notebook_refuses_what_its_figure_lacks(sources, says):
    names = {"profile": "quick", "results": None, "epsilon": 0.5, "rows": 3, "In": sources}
    id = "cormode2012_fig3"
    if says:
        with pytest.raises(ValueError, match=says):
            figures.open_notebook(id, names)
        return
    run = figures.open_notebook(id, names)
    assert run.figure == figures.find_figure(id).at("quick", epsilon=0.5)
    assert (
        run.results == figures.results_folder()
        and run.figure.name("quick") == f"{id},epsilon=0.5"
    )


def test_the_cell_of_parameters_holds_every_field_with_a_comment():
    cell = figures.parameters_cell(Fig1)
    assert "epsilon = 0.1  # privacy budget ε: number ≥ 1e-06 and ≤ 1000" in cell
    assert (
        "seeds = None  # number of releases of each mechanism: integer ≥ 1; None: 50 (paper), 3"
        in cell
    )
    assert "size = 100  # s: integer ≥ 1; the paper does not print it" in cell


def test_the_cell_of_parameters_is_formatted_as_code():
    names = tuple(f"dataset {i}" for i in range(9))

    @value
    class Long(Figure):
        data: tuple[str, ...] = choice(names, names, "datasets")
        one: tuple[str, ...] = choice(names[:1], names, "another")

    cell = figures.parameters_cell(Long)
    assert cell.splitlines()[3:6] == ["data = (", '    "dataset 0",', '    "dataset 1",']
    assert 'one = ("dataset 0",)' in cell
    read = {}
    exec(cell, read)
    assert read["data"] == names and read["one"] == names[:1]


def test_figures_are_found_by_their_id_from_anywhere_below_the_project(monkeypatch):
    monkeypatch.chdir(figures.project_folder() / "notebooks" / "cormode2012")
    assert figures.find_figure("cormode2012_fig3").id == "cormode2012_fig3"
    with pytest.raises(ValueError, match="no figure 'cormode2012_fig33'. Did you mean"):
        figures.find_figure("cormode2012_fig33")
