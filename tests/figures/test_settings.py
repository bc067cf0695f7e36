"""What `-p` runs: every combination, each to a folder of its own, refused before anything starts."""

import pytest
from typer.testing import CliRunner

from workbench.cli import app
from workbench.compiled import project_folder
from workbench.figures import find_notebooks
from workbench.figures.status import tasks

ID = "cormode2012_fig3"
VALUES = ",".join(str(k / 10) for k in range(1, 16))
PATHS = find_notebooks(project_folder() / "notebooks")


def names(*settings, profile="quick"):
    return [task.name for task in tasks([ID], PATHS, profile, settings)]


def test_commas_make_a_grid_and_semicolons_part_lists():
    assert names("epsilon=0.1,0.5", "seeds=2,3") == [
        f"{ID},seeds=2",
        f"{ID},seeds=3",
        f"{ID},epsilon=0.5,seeds=2",
        f"{ID},epsilon=0.5,seeds=3",
    ]
    assert names("small=10,20;30") == [f"{ID},small=10+20", f"{ID},small=30"]
    (task,) = tasks([ID], PATHS, "quick", ["small=10,20"])
    assert task.parameters == {"small": [10, 20]}  # as papermill writes it


def test_values_that_are_the_same_run_once():
    assert names("epsilon=0.5,0.50") == [f"{ID},epsilon=0.5"]
    assert names("epsilon=0.1") == [ID]


@pytest.mark.parametrize(
    "settings, says",
    [
        (["epsilon"], "-p 'epsilon': need name=value"),
        (["epsilonn=1"], "has no parameter 'epsilonn'. Did you mean epsilon"),
        (["epsilon=1", "epsilon=2"], "-p epsilon is given twice"),
        (["epsilon="], "-p epsilon: need at least one value; privacy budget"),
        (["small=;"], "-p small: need at least one value"),
        (["epsilon=1,-1"], "epsilon = -1 is not allowed: need a number"),
    ],
)
def test_what_cannot_run_is_refused_before_anything_does(settings, says):
    with pytest.raises(ValueError, match=says):
        tasks([ID], PATHS, "quick", settings)


@pytest.mark.parametrize(
    "words, says",
    [
        (["-p", "epsilon=1"], "-p needs the names of figures"),
        ([ID, "-p", f"epsilon={VALUES}", "-p", f"std={VALUES}"], "these are 225 runs"),
        ([ID, "--data", "Adult"], "has no parameter 'data'"),
    ],
)
def test_the_command_says_so_in_a_line_before_it_starts(words, says, tmp_path):
    result = CliRunner().invoke(app, ["reproduce", *words, "--results", str(tmp_path)])
    assert result.exit_code == 2 and says in " ".join(result.stderr.split())
    assert not list(tmp_path.iterdir())
