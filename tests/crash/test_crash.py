"""Kills at any moment, full disks and folders that are gone; in full: those that are long."""

from pathlib import Path

import pytest

from tests.crash import disks
from tests.crash.killed import KINDS, killed_audit, kills_of_reproduce


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_in_a_few_kills(kind, tmp_path):
    KINDS[kind](tmp_path, 5)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_in_many_kills(kind, tmp_path):
    KINDS[kind](tmp_path, 200)


@pytest.mark.long
def test_nothing_is_lost_when_reproduce_is_killed(tmp_path):
    kills_of_reproduce(tmp_path, 50)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads processes from /proc")
def test_workers_of_an_audit_end_with_it(tmp_path):
    killed_audit(tmp_path / "rows.csv")


@pytest.mark.slow
@pytest.mark.parametrize("kind", disks.FULL)
def test_a_full_disk_is_said_and_nothing_is_half_there(kind):
    with disks.small_disk() as (folder, _):
        for said in disks.FULL[kind](folder):
            assert str(folder) in said and "\n" not in said, said


@pytest.mark.slow
@pytest.mark.parametrize("away", [disks.read_only, disks.vanished])
def test_a_folder_that_cannot_be_written_is_named(away, tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    for said in disks.lost(folder, away):
        assert str(folder) in said and "\n" not in said, said
