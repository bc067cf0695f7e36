"""What memory files of strangers take: at most so many MB, and so many times what is in them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.formats import FORMATS
from tests.fuzz.memory import KINDS

_PAGE = (Path(__file__).parents[2] / "docs" / "memory.inc").read_text(encoding="utf-8")
_STATED = re.findall(r"^\| `([\w-]+)` \| (\d+) \| (\d+) \|", _PAGE, re.MULTILINE)
MOST = {name: (int(base), int(times)) for name, base, times in _STATED}


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_a_file_takes_as_much_memory_as_is_stated(name):
    """A reader that takes twice as much is seen, as one shape takes more than half of what is allowed."""
    base, times = MOST[name]
    parts = []
    for shape in KINDS[name].shapes:
        command = [sys.executable, "-m", "tests.fuzz.memory", name, shape]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        most = base + times * found["held"]
        assert found["memory"] <= most, (shape, found, most)
        parts.append(found["memory"] / most)
    assert max(parts) > 0.5 or name == "session", parts  # as good as nothing, unless recalled


def test_every_format_has_a_stated_memory():
    assert set(MOST) == set(KINDS) and len(MOST) == len(_STATED)
    assert set(FORMATS) <= {*KINDS, "budget"}  # a budget is a session
