"""Which tests run which lines of the drawn packages, and for how long: a plugin of pytest.

`WORKBENCH_REACH` names the file that is written, in JSON: by test, its seconds and `file:line`s. Compiled
loops run no lines: who tests them is whoever tests the lines that call them.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.mutation.places import FOLDERS
from tests.planted.planting import ROOT

_PARTS = tuple(str(ROOT / "workbench" / name) for name in FOLDERS)
_reached = {}
_lines = set()


def _enter(frame, event, arg):
    file = frame.f_code.co_filename
    return _trace_line(frame, event, arg) if file.startswith(_PARTS) else None


def _trace_line(frame, event, arg):
    _lines.add((frame.f_code.co_filename, frame.f_lineno))
    return _trace_line


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """One test, followed line by line; other workers' tests are theirs."""
    _lines.clear()
    start = time.process_time()
    threading.settrace(_enter)
    sys.settrace(_enter)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)
        seconds = round(time.process_time() - start, 3)
        places = sorted(f"{Path(file).relative_to(ROOT)}:{line}" for file, line in _lines)
        _reached[item.nodeid] = [seconds, places]


def pytest_sessionfinish():
    """Write what was seen."""
    file = Path(os.environ["WORKBENCH_REACH"])
    file.write_text(json.dumps(_reached), encoding="utf-8")
