"""Rows are kept under names that follow the code and the data of anyone."""

import importlib
import os
import sys
from time import time

import pandas as pd
import pytest

from workbench import DP, RandomRanges, Sweep, Trial, run
from workbench.trials import inputs, metrics
from workbench.trials.running import ROWS_SINCE, row_file

PACKAGE = {
    "loud/__init__.py": "",
    "loud/scale.py": "SCALE = 1",
    "loud/mechanism.py": """
from workbench.mechanisms import GeometricHistogram
from workbench.privacy import DP
from workbench.value import value
from . import scale
from .scale import SCALE
import neighbour

@value
class Loud(GeometricHistogram):
    def __call__(self, table, rng=None):
        from workbench.mechanisms import HighPassFilter
        return GeometricHistogram(DP(SCALE * neighbour.FACTOR))(table, rng)
""",
    "neighbour.py": "import papermill\nFACTOR = 1",
    "cities.py": """
from pathlib import Path
import numpy as np
from workbench import Bound, Domain, SparseTable
from workbench.value import value

CELLS = 8
FILE = Path(__file__).with_name("cities.csv")

@value
class Unnamed:
    truth_public = True
    @property
    def domain(self):
        return Domain(("city",), (CELLS,))
    def load(self):
        counts = np.zeros(CELLS, int)
        lines = FILE.read_text().split()
        counts[: len(lines)] = [int(x) for x in lines]
        return SparseTable.from_dense(self.domain, counts, Bound(1), truth_public=True)

@value
class Named(Unnamed):
    def files(self):
        return (FILE,)

@value
class Outer:
    dataset: Unnamed
    truth_public = True
    def files(self):
        return ()
    def load(self):
        return self.dataset.load()
""",
    "cities.csv": "5\n6\n7\n8\n",
}
METRIC = metrics.MeanAbsoluteError(RandomRanges(2, 5, seed=0))


def forget():
    for name in ("loud", "loud.mechanism", "loud.scale", "neighbour", "cities"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    for function in vars(inputs).values():
        if function is not inputs._imports:  # it is slow, and no test adds an import
            getattr(function, "cache_clear", lambda: None)()


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A folder with somebody's mechanism and datasets; edits of it are seen as a new process sees them."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(inputs, "STARTED", time() + 60)
    monkeypatch.setattr(inputs, "seen", {})
    (tmp_path / "loud").mkdir()
    for name, text in PACKAGE.items():
        (tmp_path / name).write_text(text)
    yield tmp_path
    forget()


def sweep(dataset="Named"):
    forget()
    cities = importlib.import_module("cities")
    data = cities.Outer(cities.Unnamed()) if dataset == "Outer" else getattr(cities, dataset)()
    mechanism = importlib.import_module("loud.mechanism").Loud(DP(1))
    return Sweep([data], [mechanism], [METRIC], seeds=1)


def place(store, dataset="Named"):
    s = sweep(dataset)
    return row_file(Trial(s.datasets[0], s.mechanisms[0], 0), s, store)


@pytest.mark.parametrize(
    "file, before, after",
    [
        ("loud/mechanism.py", "DP(SCALE", "DP(1000 * SCALE"),
        ("loud/scale.py", "1", "1000"),
        ("loud/__init__.py", "", "LOUD = True"),
        ("neighbour.py", "FACTOR = 1", "FACTOR = 1000"),
        ("cities.py", "CELLS = 8", "CELLS = 16"),
    ],
)
def test_a_changed_source_of_a_plugin_renames_its_rows(plugin, file, before, after):
    first = place(plugin)
    assert place(plugin) == first
    text = (plugin / file).read_text()
    (plugin / file).write_text(text.replace(before, after, 1))
    assert place(plugin) != first


@pytest.mark.parametrize("dataset", ["Named", "Unnamed", "Outer"])
def test_rows_follow_the_content_of_data_and_not_its_copies(plugin, dataset):
    first = place(plugin, dataset)
    file = plugin / "cities.csv"
    os.utime(file, (1, 1))
    assert place(plugin, dataset) == first
    stat = file.stat()
    file.write_text("5\n6\n7\n9\n")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert place(plugin, dataset) != first
    file.write_text("5\n6\n")
    assert place(plugin, dataset) != first
    file.write_text(PACKAGE["cities.csv"])
    assert place(plugin, dataset) == first


def test_values_in_fields_decide_and_other_peoples_bases_do_not(plugin):
    outer = sweep("Outer").datasets[0]

    class Both(type(outer), pd.DataFrame):
        __module__ = "loud.mechanism"

    assert inputs.modules_of([outer]) == {"cities"}
    assert inputs.modules_of([Both]) == {"loud.mechanism", "cities"}


def test_data_cut_in_half_is_measured_anew(plugin):
    before = run(sweep("Unnamed"), plugin / "store")
    (plugin / "cities.csv").write_text("5\n6\n")
    after = run(sweep("Unnamed"), plugin / "store")
    assert before.seconds[0] != after.seconds[0]


def test_what_classes_and_functions_of_a_plugin_import_is_followed(plugin):
    modules = inputs.modules_of([sweep().mechanisms[0]])
    names = {path.name for path in inputs.sources(modules)}
    assert {"summaries.py", "histograms.py", "neighbour.py"} <= names
    (papermill,) = inputs.versions(modules)
    assert papermill.startswith("papermill ")
    inputs.note_sources(modules)
    mine = {"mechanism.py", "scale.py", "__init__.py", "neighbour.py"}
    noted = {name.rpartition("/")[2] for name in inputs.seen}
    assert noted == mine | {"version of papermill"}


def test_packages_that_the_workbench_keeps_inside_others_are_followed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "scores.py").write_text("from workbench import metrics")
    names = {path.as_posix() for path in inputs.sources(frozenset({"scores"}))}
    assert any(name.endswith("workbench/trials/metrics/answers.py") for name in names)


def test_a_large_file_is_hashed_once_while_it_has_not_changed(plugin, monkeypatch):
    monkeypatch.setattr(inputs, "_LARGE", 1)
    hashed = []
    sha256 = inputs.file_sha256
    monkeypatch.setattr(inputs, "file_sha256", lambda path: hashed.append(path) or sha256(path))
    name = str(plugin / "cities.csv")
    first = [inputs.state(name, plugin / "store") for _ in range(3)]
    assert len(hashed) == 1 and len({*first}) == 1
    (plugin / "cities.csv").write_text("1\n")
    assert inputs.state(name, plugin / "store") != first[0] and len(hashed) == 2
    (plugin / "cities.csv").unlink()
    assert inputs.state(name, plugin / "store") == "missing"


def test_rows_that_were_kept_before_a_time_are_drawn_anew(plugin, monkeypatch):
    first = run(sweep(), plugin / "store")
    monkeypatch.setenv(ROWS_SINCE, repr(time() - 3600))
    assert run(sweep(), plugin / "store").seconds.equals(first.seconds)
    (file,) = (plugin / "store").glob("*.json")
    os.utime(file, (1, 1))
    again = run(sweep(), plugin / "store")
    assert again.value.equals(first.value) and not again.seconds.equals(first.seconds)
    assert run(sweep(), plugin / "store").seconds.equals(again.seconds)
