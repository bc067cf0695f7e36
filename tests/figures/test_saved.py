"""Axes to files: the same bytes each time, nothing half-written, nothing private."""

import json
from dataclasses import replace

import matplotlib
import pandas as pd
import pytest

from workbench import figures
from workbench.trials.claims import DIFFERS, HOLDS, Verdict

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

ROWS = pd.DataFrame(
    {
        "dataset": "Twin(seed=0)",
        "mechanism": ["A", "B"] * 2,
        "seed": [0, 0, 1, 1],
        "seconds": 0.5,
        "trial": list("abcd"),
        "value": [0.1, 1 / 3, 1e-300, float("nan")],
        "truth_public": True,
    }
)
VERDICTS = [
    Verdict("c-1", "A < B", HOLDS, "0.1 < 0.3"),
    Verdict("c-2", "A, “B”", DIFFERS, "2", "NA"),
]
SPEC = figures.Description(
    "demo2020_fig1", "Error against ε", "workbench reproduce demo2020_fig1 --profile quick"
)


def saved(folder, rows=ROWS, fig="draw", **more):
    if fig == "draw":
        fig, ax = plt.subplots(layout="constrained")
        ax.plot([1, 2], [3, 4], label="ε")
        ax.legend()
    try:
        return figures.save(
            fig,
            rows,
            **(dict(spec=SPEC, profile="quick", results=folder, verdicts=VERDICTS) | more),
        )
    finally:
        plt.close("all")


def test_reads_back_what_was_saved(tmp_path):
    folder = saved(tmp_path)
    assert folder == tmp_path / "quick" / "demo2020_fig1"
    figure = figures.load(folder)
    pd.testing.assert_frame_equal(figure.rows, ROWS, check_dtype=False)
    columns = ["id", "says", "outcome", "measured", "why"]
    assert figure.verdicts[columns].to_dict("records") == [
        dict(id="c-1", says="A < B", outcome="holds", measured="0.1 < 0.3", why=""),
        dict(id="c-2", says="A, “B”", outcome="differs", measured="2", why="NA"),
    ]
    assert set(figure.images) == {"pdf", "svg", "png"}
    told = figure.manifest
    assert (told["figure"], told["paper"], told["profile"]) == (
        "demo2020_fig1", "demo2020", "quick")  # fmt: skip
    assert told["datasets"] == ["Twin(seed=0)"] and told["trials"] == 4 and told["seeds"] == 2
    assert told["seconds"] == 2.0
    assert told["command"] == "workbench reproduce demo2020_fig1 --profile quick"
    assert {"workbench", "python", "numpy", "scipy", "matplotlib"} == set(told["versions"])
    assert not list(folder.glob(".*")), "no temporary file stays"


def test_the_same_figure_has_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    one, two = saved(tmp_path / "one"), saved(tmp_path / "two")
    assert len(list(one.iterdir())) == 7
    for file in one.iterdir():
        assert file.read_bytes() == (two / file.name).read_bytes(), file.name
    assert json.loads((one / "manifest.json").read_text())["written"].startswith("2023-11-14")


def test_a_private_truth_is_not_saved(tmp_path):
    for wrong in (False, None, "yes"):
        rows = ROWS.assign(truth_public=[True, True, True, wrong])
        with pytest.raises(ValueError, match="demo2020_fig1.*not public"):
            saved(tmp_path, rows)
    assert not list(tmp_path.iterdir())


def test_rows_that_do_not_say_whether_their_truth_is_public_are_not_saved(tmp_path):
    rows = ROWS.drop(columns="truth_public")
    no_data = replace(SPEC, no_data=True)
    with pytest.raises(ValueError, match="demo2020_fig1.*need a column truth_public.*no_data"):
        saved(tmp_path, rows)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="not public"):
        saved(tmp_path, rows.assign(truth_public=False), spec=no_data)
    folder = saved(tmp_path, rows, spec=no_data)
    assert "truth_public" not in figures.load(folder).rows


@pytest.mark.slow
def test_an_interrupted_save_leaves_no_manifest(tmp_path, monkeypatch):
    saved(tmp_path)

    whole = pd.DataFrame.to_csv

    def broken(self, path=None, **how):
        if path is None:
            return whole(self, **how)
        path.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(pd.DataFrame, "to_csv", broken)
    with pytest.raises(KeyboardInterrupt):
        saved(tmp_path)
    folder = tmp_path / "quick" / "demo2020_fig1"
    assert len(pd.read_csv(folder / "rows.csv")) == 4, "the old rows are whole"
    with pytest.raises(FileNotFoundError, match="no finished figure"):
        figures.load(folder)


def test_a_file_that_was_changed_is_noticed(tmp_path):
    folder = saved(tmp_path)
    (folder / "rows.csv").write_text("value\n1\n")
    with pytest.raises(ValueError, match=r"rows\.csv is not the file.*--force"):
        figures.load(folder)


def test_a_table_needs_no_picture_and_removes_the_old_one(tmp_path):
    saved(tmp_path)
    folder = saved(tmp_path, fig=None, verdicts=[])
    assert {p.name for p in folder.iterdir()} == {"rows.csv", "verdicts.csv", "manifest.json"}
    figure = figures.load(folder)
    assert figure.images == {} and len(figure.verdicts) == 0


def test_an_unknown_profile_is_refused(tmp_path):
    with pytest.raises(ValueError, match="profile = 'full'.*quick"):
        saved(tmp_path, profile="full")


@pytest.mark.parametrize("stem", ["../fig1", "..", ".", "", "a/b", "a\\b", "/fig1", "C:fig1"])
def test_a_stem_stays_in_its_folder(tmp_path, stem):
    spec = replace(SPEC, name=stem)
    with pytest.raises(ValueError, match="stem = .* is not allowed"):
        saved(tmp_path / "results", spec=spec)
    if stem:
        with pytest.raises(ValueError, match="stem = .* is not allowed"):
            saved(tmp_path / "results", spec=replace(SPEC, id=stem))
    with pytest.raises(ValueError, match="stem = .* is not allowed"):
        figures.figure_folder(tmp_path, "quick", stem)
    assert not list(tmp_path.iterdir())
