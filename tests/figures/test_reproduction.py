"""Batches of notebooks in real kernels: failures are reported, finished work stays."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from workbench.figures import batch
from workbench.figures.batch import reproduce
from workbench.figures.status import locked, read_status, source_hashes
from workbench.trials.running import SCHEDULER

HEAD = 'profile = "quick"\nresults = "../experiments/results"'
FIGURE = """
from pathlib import Path
file = Path(results) / profile / "{0}" / "verdicts.csv"
file.write_text("id,says,outcome,mark\\n1,a,holds,\\n2,b,differs,")
"""

GO = """
from pathlib import Path
from workbench.figures import batch
from workbench.figures.batch import reproduce
batch.source_hashes = lambda project, store: {{}}
where = dict(notebooks=Path("notebooks"), results=Path("results"))
print(*(run.state for run in reproduce(**where, workers={workers})))
"""


def book(project, stem, *cells, tags=("parameters",), head=HEAD):
    """A notebook of code cells, after a title and the parameters."""
    (project / "notebooks").mkdir(exist_ok=True)
    first = new_code_cell(head, metadata={"tags": list(tags)})
    cells = [new_markdown_cell(f"# {stem}"), first, *map(new_code_cell, cells)]
    nbformat.write(new_notebook(cells=cells), project / "notebooks" / f"{stem}.ipynb")


def states(runs):
    return {run.stem: run.state for run in runs}


@pytest.fixture
def go(tmp_path, monkeypatch):
    """Run a project's notebooks; other people's edits of the package do not count here."""
    monkeypatch.setattr(batch, "source_hashes", lambda project, store: {"fixed": "sources"})

    def go(*stems, **more):
        where = dict(notebooks=tmp_path / "notebooks", results=tmp_path / "results")
        return reproduce(stems, **(where | more))

    return go


def text(path):
    cells = nbformat.read(path, as_version=4).cells
    return "".join(o.get("text", "") for c in cells for o in c.get("outputs", ()))


def test_runs_in_the_notebooks_folder_with_its_parameters(tmp_path, go):
    book(
        tmp_path, "fig1", "import os, sys; print(profile, results, os.getcwd(), sys.executable)"
    )
    changes = []
    (run,) = go(profile="paper", workers=1, on_change=changes.append)
    assert [r.state for r in changes] == ["waiting", "running", "done"] and run == changes[-1]
    assert run.notebook == tmp_path / "results" / "paper" / "fig1" / "fig1.ipynb"
    assert text(run.notebook).split() == [
        "paper", str(tmp_path / "results"), str(tmp_path / "notebooks"), sys.executable,
    ]  # fmt: skip


def test_a_kernel_listens_where_no_other_user_or_process_can(tmp_path, go):
    code = """
from pathlib import Path
from ipykernel import get_connection_file
file = Path(get_connection_file())
print(file, oct(file.parent.stat().st_mode)[-3:], len([*file.parent.glob(f"{file.name}-ipc-*")]))
"""
    book(tmp_path, "fig1", code)
    (run,) = go()
    file, rights, sockets = text(run.notebook).split()
    assert (rights, sockets) == ("700", "5")
    assert not [*Path(file).parent.glob(f"{Path(file).name}*")]  # nothing is left


@pytest.mark.slow
def test_a_failing_notebook_is_told_and_the_rest_go_on(tmp_path, go):
    book(tmp_path, "bad", "x = 1", "1 / x - 1\n1 / 0", "y = 3")
    book(tmp_path, "dead", "import os; os.kill(os.getpid(), 9)")
    book(tmp_path, "good", FIGURE.format("good"))
    book(tmp_path, "slow", "import time; time.sleep(60)")
    book(tmp_path, "strange", "1", head='profil = "quick"\nresults = ""')
    book(tmp_path, "untagged", "1", tags=())
    (tmp_path / "notebooks" / "torn.ipynb").write_text("{")
    runs = {run.stem: run for run in go(workers=2, timeout=2)}
    assert {stem for stem, run in runs.items() if run.state == "done"} == {"good"}
    assert runs["good"].verdicts == {}  # quick runs do not judge
    assert all(run.state == "failed" for stem, run in runs.items() if stem != "good")
    assert runs["bad"].error == "ZeroDivisionError: division by zero"
    assert "1 / x - 1 …" in runs["bad"].cell
    assert runs["bad"].notebook.name == "bad.partial.ipynb" and runs["bad"].notebook.exists()
    assert "kernel died" in runs["dead"].error and "os.kill" in runs["dead"].cell
    assert runs["slow"].error == "took longer than 2 s" and "sleep" in runs["slow"].cell
    assert "no parameter profile" in runs["strange"].error
    assert "tagged `parameters`" in runs["untagged"].error
    assert runs["torn"].error
    assert read_status(tmp_path / "results/quick/bad")["error"] == runs["bad"].error


@pytest.mark.slow
def test_what_is_up_to_date_is_not_run_again(tmp_path, go):
    book(tmp_path, "fig1", FIGURE.format("fig1"))
    book(tmp_path, "fig2", "1 / 0")
    assert states(go(profile="paper")) == {"fig1": "done", "fig2": "failed"}
    runs = go(profile="paper")
    assert states(runs) == {"fig1": "kept", "fig2": "failed"}
    counted = {column: number for column, number in runs[0].verdicts.items() if number}
    assert counted == {"holds": 1, "contradicted": 1} and runs[0].seconds > 0
    (tmp_path / "results/paper/fig1/verdicts.csv").unlink()
    assert states(go("fig1", profile="paper")) == {"fig1": "done"}
    book(tmp_path, "fig1", FIGURE.format("fig1"), "2")
    assert states(go("fig1", profile="paper")) == {"fig1": "done"}


def test_other_sources_or_data_make_another_key(tmp_path, monkeypatch):
    for folder in ("experiments/results", "data/raw", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "experiments" / "fig1.py").write_text("TITLE = 1")
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path / "elsewhere"))
    before = source_hashes(tmp_path, tmp_path / "store")
    assert "workbench/figures/batch.py" in before and "experiments/fig1.py" in before
    (tmp_path / "experiments" / "results" / "x.py").write_text("not a source")
    assert source_hashes(tmp_path, tmp_path / "store") == before
    for file in ("experiments/fig1.py", "data/raw/od.csv.gz", "elsewhere/od.csv.gz"):
        (tmp_path / file).write_text(f"changed {file}")
        after = source_hashes(tmp_path, tmp_path / "store")
        assert after != before
        before = after


@pytest.mark.slow
def test_a_timing_that_is_judged_runs_alone(tmp_path, go):
    stamp = "from time import *; t = time(); sleep(.4); print(t, time())"
    book(tmp_path, "a_timing", stamp, tags=("parameters", "alone"))
    book(tmp_path, "b", stamp)
    book(tmp_path, "c", stamp)
    runs = {r.stem: [float(x) for x in text(r.notebook).split()] for r in go(profile="paper")}
    assert list(runs) == ["a_timing", "b", "c"]
    assert runs["a_timing"][0] > max(runs["b"][1], runs["c"][1])


@pytest.mark.slow
def test_a_timing_runs_on_no_cluster(tmp_path, go, monkeypatch):
    monkeypatch.setenv(SCHEDULER, "tcp://192.0.2.1:8786")
    ask = f"import os; print(os.environ['{SCHEDULER}'] or 'none')"
    book(tmp_path, "a_timing", ask, tags=("parameters", "alone"))
    book(tmp_path, "b", ask)
    found = {run.stem: text(run.notebook).strip() for run in go()}
    assert found == {"a_timing": "none", "b": "tcp://192.0.2.1:8786"}


@pytest.mark.slow
def test_cores_are_shared(tmp_path, go, monkeypatch):
    import joblib

    names = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "WORKBENCH_THREADS")
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    for name in names[:2]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WORKBENCH_THREADS", "3")
    ask = f"import os; print(*map(os.environ.get, {names}))"
    book(tmp_path, "a", ask)
    book(tmp_path, "b", ask)
    assert [text(run.notebook).split() for run in go()] == [["4", "1", "3"]] * 2


@pytest.mark.slow
def test_only_what_failed_or_what_it_has_loaded_changed_is_run(tmp_path, go, monkeypatch):
    manifest = """(file.parent / "manifest.json").write_text('{"modules": ["w/a.py"]}')"""
    book(tmp_path, "fig1", FIGURE.format("fig1") + manifest)
    book(tmp_path, "fig2", "1 / 0")
    sources = {"w/a.py": "1", "w/b.py": "1", "data": "1"}
    monkeypatch.setattr(batch, "source_hashes", lambda project, store: dict(sources))
    assert states(go()) == {"fig1": "done", "fig2": "failed"}
    assert states(go(only_failed=True)) == {"fig2": "failed"}
    sources["w/b.py"] = "2"
    assert states(go("fig1", changed=True)) == {"fig1": "kept"}
    sources["data"] = "2"
    assert states(go("fig1", changed=True)) == {"fig1": "done"}
    sources["w/b.py"] = "3"
    assert states(go("fig1")) == {"fig1": "done"}
    log = (tmp_path / "results/quick/fig2/run.log").read_text()
    assert "ZeroDivisionError" in log and "failed after" in log


def test_names_that_do_not_exist_are_refused(tmp_path, go):
    with pytest.raises(ValueError, match="holds no notebooks"):
        go()
    book(tmp_path, "fig1", "1")
    with pytest.raises(ValueError, match="no figure 'fig7'. Did you mean fig1"):
        go("fig7")


@pytest.mark.slow
def test_a_killed_run_continues(tmp_path, monkeypatch):
    """After kill -9 no kernel survives, finished work is kept, the rest is run."""
    book(tmp_path, "a_quick", FIGURE.format("a_quick"))
    wait = "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\n"
    book(tmp_path, "b_slow", wait + "time.sleep(60 if not pathlib.Path('go').exists() else 0)")
    command = [sys.executable, "-c", GO.format(workers=1)]
    short = Path(tempfile.mkdtemp(prefix="t"))  # killed with -9 it cannot tidy up
    monkeypatch.setenv("TMPDIR", str(short))
    quiet = dict(cwd=tmp_path, stderr=subprocess.DEVNULL)
    process = subprocess.Popen(command, **quiet)
    pid = tmp_path / "notebooks" / "pid"
    _until(lambda: pid.exists() and pid.read_text())
    process.kill()
    assert process.wait(10) != 0
    _until(lambda: not _alive(int(pid.read_text())))
    assert read_status(tmp_path / "results/quick/a_quick")["state"] == "done"
    assert not read_status(tmp_path / "results/quick/b_slow")
    (tmp_path / "notebooks" / "go").touch()
    again = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60, **quiet)
    assert again.stdout.split() == ["kept", "done"]
    shutil.rmtree(short)


@pytest.mark.slow
def test_two_runs_on_one_results_folder_make_each_figure_once(tmp_path):
    slow = "import pathlib, time\nwith open('runs', 'a') as f: f.write('x')\ntime.sleep(2)\n"
    book(tmp_path, "fig1", slow + FIGURE.format("fig1"))
    book(tmp_path, "fig2", slow + FIGURE.format("fig2"))
    command = [sys.executable, "-c", GO.format(workers=2)]
    both = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    states = [process.communicate(timeout=120)[0].split() for process in both]
    assert [sorted(pair) for pair in zip(*states, strict=True)] == [["done", "kept"]] * 2
    assert (tmp_path / "notebooks" / "runs").read_text() == "xx"
    for stem in ("fig1", "fig2"):
        assert read_status(tmp_path / "results" / "quick" / stem)["state"] == "done"
        assert not list((tmp_path / "results" / "quick" / stem).glob("*.partial.ipynb"))


def test_a_batch_that_waits_for_another_process_can_be_stopped(tmp_path):
    stopped = threading.Event()
    with locked(tmp_path, threading.Event()):
        threading.Timer(0.5, stopped.set).start()
        with locked(tmp_path, stopped):
            assert stopped.is_set()


def test_a_folder_that_cannot_be_locked_is_named(tmp_path):
    (tmp_path / ".lock").mkdir()
    with pytest.raises(OSError, match="cannot be written"), locked(tmp_path, threading.Event()):
        pass


def _until(happened, seconds=60):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return file.read().split()[2] != "Z"


def test_the_longest_is_first_and_before_it_what_has_never_run(tmp_path, go):
    for stem, seconds in (("a", 3), ("b", 60), ("c", None)):
        book(tmp_path, stem, "1")
        folder = tmp_path / "results/quick" / stem
        folder.mkdir(parents=True)
        (folder / "status.json").write_text(json.dumps({"seconds": seconds}))
    heard = []
    go(workers=1, on_change=heard.append)
    assert [run.stem for run in heard if run.state == "running"] == ["c", "b", "a"]


def test_a_folder_that_cannot_be_written_and_a_profile_that_there_is_not_are_refused(tmp_path):
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    (notebooks / "a.ipynb").write_text("{}")
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="no results can be written to .*file"):
        reproduce(notebooks=notebooks, results=tmp_path / "file")
    with pytest.raises(
        ValueError, match="profile = 'explorer' is not allowed: need one of quick"
    ):
        reproduce(notebooks=notebooks, results=tmp_path / "results", profile="explorer")


PLUGIN = {
    "ex_noise.py": "FACTOR = 1",
    "ex_mechanism.py": """
from ex_noise import FACTOR
from workbench.mechanisms import GeometricHistogram
from workbench.privacy import DP
from workbench.value import value

@value
class Ex(GeometricHistogram):
    def __call__(self, table, rng=None):
        return GeometricHistogram(DP(FACTOR))(table, rng)
""",
    "ex_data.py": """
from pathlib import Path
import numpy as np
from workbench import Bound, Domain, SparseTable
from workbench.value import value

CELLS = 8

@value
class Cities:
    truth_public = True
    def files(self):
        return (Path(__file__).with_name("cities.csv"),)
    def load(self):
        lines = self.files()[0].read_text().split()
        counts = np.resize([int(x) for x in lines], CELLS)
        return SparseTable.from_dense(Domain(("city",), (CELLS,)), counts, Bound(1), truth_public=True)
""",
    "ex_figure.py": """
from ex_data import Cities
from ex_mechanism import Ex
from workbench import DP, RandomRanges, Sweep
from workbench.figures import Figure
from workbench.figures.fields import seeds
from workbench.trials.metrics import MeanAbsoluteError
from workbench.figures.plots import Panel
from workbench.value import value

@value
class Fig(Figure):
    id = "ex_figure"
    seeds: int = seeds(2)
    def sweeps(self):
        metrics = [MeanAbsoluteError(RandomRanges(2, 5, seed=0))]
        return {"ex": Sweep([Cities()], [Ex(DP(1))], metrics, seeds=self.seeds)}
    def panels(self, rows):
        return [Panel("ex", {"panel": "ex"}, "seed")]
""",
    "cities.csv": "5\n6\n7\n800\n",
}


@pytest.mark.slow
def test_results_of_a_users_own_code_and_data_do_not_go_stale(tmp_path, go, monkeypatch):
    for name, content in PLUGIN.items():
        (tmp_path / name).write_text(content)
    book(tmp_path, "other", "1")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("WORKBENCH_WITH", "ex_figure")

    def again(**more):
        (run,) = go("ex_figure", **more)
        assert run.state in ("done", "kept"), run.error
        rows = pd.read_csv(tmp_path / "results/quick/ex_figure/rows.csv")
        return run.state, rows.value.tolist(), rows.seconds.tolist()

    def edit(name, before, after):
        (tmp_path / name).write_text(PLUGIN[name].replace(before, after))

    _, values, drawn = again()
    assert again() == again(changed=True) == ("kept", values, drawn)
    os.utime(tmp_path / "cities.csv", (1, 1))
    assert again() == ("kept", values, drawn)
    seen = [drawn]
    state, same, drawn = again(force=True)
    assert state == "done" and same == values and drawn not in seen
    for change in (
        ("ex_noise.py", "1", "1000"),
        ("ex_data.py", "CELLS = 8", "CELLS = 16"),
        ("cities.csv", "7\n800\n", ""),
    ):
        seen.append(drawn)
        edit(*change)
        state, _, drawn = again(changed=True)
        assert state == "done" and drawn not in seen, change  # the seconds of each trial
        assert again()[0] == "kept"
    seen.append(drawn)
    edit("cities.csv", "6\n7\n800\n", "")
    state, _, drawn = again(force=True)
    assert state == "done" and drawn not in seen
