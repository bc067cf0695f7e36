"""What a process that is killed leaves behind: nothing, or what the next one removes."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from workbench import DP, Bound, Domain, Release, SparseTable
from workbench.estimates import files
from workbench.estimates.files import Draft, temporary_folder
from workbench.mechanisms import LaplaceHistogram

TABLE = SparseTable.from_dense(Domain(("x",), (3,)), [5, 6, 7], Bound())

KILLED = """
import os, sys
from pathlib import Path
from workbench.estimates import files
from tests.test_temporary import LaplaceHistogram, DP, TABLE
path, killed_in, named, force = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
if named == "named":
    files._unnamed = lambda folder: None

def after(*_, **__):
    os.kill(os.getpid(), 9)

target, name = {
    "sync": (os, "fsync"), "link": (os, "link"), "replace": (os, "replace"),
}[killed_in]
setattr(target, name, after)
LaplaceHistogram(DP(1.0))(TABLE).save(path, force=force == "force")
"""


def killed(*words):
    """A process that ran until it killed itself."""
    run = subprocess.run(
        [sys.executable, "-c", KILLED, *map(str, words)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
    )
    assert run.returncode == -signal.SIGKILL, run.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, killed_in, force",
    [
        ("x.parquet", "sync", "first"),
        ("x.csv", "link", "first"),
        ("x.csv", "replace", "force"),
    ],
)
def test_a_killed_save_leaves_no_noisy_copy_behind_the_next_one(
    tmp_path, name, killed_in, force
):
    killed(tmp_path / name, killed_in, "unnamed", force)
    left = os.listdir(tmp_path)
    killed(tmp_path / name, killed_in, "named", force)
    assert os.listdir(tmp_path)
    if killed_in != "replace" and files._unnamed(tmp_path) is not None:
        assert not left
    path = LaplaceHistogram(DP(1.0))(TABLE).save(tmp_path / name, force=True)
    assert Release.load(path).estimate.domain == TABLE.domain
    assert set(os.listdir(tmp_path)) <= {name, f"{name}.json"}


def test_a_killed_draft_has_no_name_or_is_removed_by_the_next_one(tmp_path):
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom workbench.estimates import files\n"
        "if sys.argv[2] == 'named':\n    files._unnamed = lambda folder: None\n"
        "files.Draft(Path(sys.argv[1])).path.write_text('noisy')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    without_names = files._unnamed(tmp_path) is not None
    for how, left in (("unnamed", 0 if without_names else 1), ("named", 1)):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "x"), how])
        assert len(os.listdir(tmp_path)) == left
    Draft(tmp_path / "y").close()
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("unnamed", [True, False])
def test_a_draft_that_somebody_writes_stays(tmp_path, monkeypatch, unnamed):
    if not unnamed:
        monkeypatch.setattr(files, "_unnamed", lambda folder: None)
    one, other = Draft(tmp_path / "x"), Draft(tmp_path / "x")
    one.path.write_text("one")
    other.path.write_text("other")
    Draft(tmp_path / "y").close()
    other.link(tmp_path / "x")
    with pytest.raises(FileExistsError):
        one.link(tmp_path / "x")
    one.replace(tmp_path / "x")
    assert (tmp_path / "x").read_text() == "one"
    one.close()
    other.close()
    assert os.listdir(tmp_path) == ["x"]


def test_folders_of_the_dead_are_removed_and_those_of_the_living_stay(tmp_path):
    code = (
        "import os, sys\nfrom workbench.estimates.files import temporary_folder\n"
        "with temporary_folder(sys.argv[1]) as folder:\n"
        "    (folder / 'progress').write_text('1')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)])
    assert len(os.listdir(tmp_path)) == 1
    strangers = [tmp_path / "wb-data", tmp_path / "wb-0123"]
    for folder in strangers:
        folder.mkdir()
    with temporary_folder(str(tmp_path)) as first, temporary_folder(str(tmp_path)) as second:
        assert set(tmp_path.iterdir()) == {first, second, *strangers}
        assert first.stat().st_mode & 0o77 == 0
    assert set(tmp_path.iterdir()) == set(strangers)


def test_a_folder_is_gone_though_somebody_writes_to_it_meanwhile(tmp_path, monkeypatch):
    rmdir = os.rmdir

    def late(path, **how):
        with suppress(FileNotFoundError):
            (folder / "late").touch()
        rmdir(path, **how)

    monkeypatch.setattr(os, "rmdir", late)
    with temporary_folder(str(tmp_path)) as folder:
        (folder / "early").touch()
    assert not os.listdir(tmp_path)


def test_what_another_one_removes_meanwhile_is_made_again(tmp_path, monkeypatch):
    hold, removed = files._hold, []

    def slow(path):
        if not removed:
            path.unlink()
            removed.append(path)
        return hold(path)

    monkeypatch.setattr(files, "_unnamed", lambda folder: None)
    monkeypatch.setattr(files, "_hold", slow)
    draft = Draft(tmp_path / "x")
    draft.path.write_text("whole")
    draft.replace(tmp_path / "x")
    draft.close()
    assert (tmp_path / "x").read_text() == "whole" and os.listdir(tmp_path) == ["x"]


def test_without_locks_nothing_is_taken_for_abandoned(tmp_path, monkeypatch):
    def unsupported(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(files.fcntl, "flock", unsupported)
    with temporary_folder(str(tmp_path)) as first, temporary_folder(str(tmp_path)):
        assert first.is_dir()


def test_a_folder_of_a_process_ends_with_it_and_not_with_its_forks(tmp_path):
    code = (
        "import os, sys\nfrom workbench.estimates.files import process_folder\n"
        "folder = process_folder()\n"
        "if os.fork() == 0:\n    sys.exit()\n"
        "os.wait()\nprint(folder.is_dir(), folder.parent)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert run.stdout.split() == ["True", str(tmp_path)], run.stderr
    assert not os.listdir(tmp_path)
