"""Which notebook starts when: the longest first, timings alone, within the memory."""

from math import inf
from threading import Event

import pytest

from workbench.figures.status import Job, Task, in_order, locked, next_job


def job(name, **more):
    return Job(Task(name, None, name), **more)


def test_the_longest_is_first_and_what_runs_alone_is_last():
    jobs = [
        job("short", seconds=3),
        job("timing", seconds=900, alone=True),
        job("long", seconds=60),
        job("new"),
    ]
    assert [each.task.name for each in in_order(jobs)] == ["new", "long", "short", "timing"]


def test_what_does_not_fit_lets_others_go_first_and_one_always_runs():
    large = job("large", memory=9)
    small = job("small", memory=2)
    timing = job("timing", alone=True)
    running = job("running", memory=5)
    assert next_job([large], [], 2, ceiling=8) is large
    assert next_job([large, small], [running], 2, ceiling=8) is small
    assert next_job([large], [running], 2, ceiling=8) is None
    assert next_job([large], [running], 2, ceiling=inf) is large
    assert next_job([small], [running], 1, ceiling=inf) is None
    assert next_job([timing, small], [running], 3, ceiling=inf) is small
    assert next_job([small], [timing], 3, ceiling=inf) is None
    assert next_job([], [], 3, ceiling=inf) is None


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it(tmp_path):
    (tmp_path / ".lock").mkdir()
    with pytest.raises(OSError, match="cannot be written"), locked(tmp_path, Event()):
        pass
