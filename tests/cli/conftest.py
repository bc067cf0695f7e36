"""The command line is built once for all tests: it holds no state, and to build it takes 0.1 s."""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from typer import testing

from tests.cli.commands import run_command


@pytest.fixture(autouse=True, scope="session")
def one_command():
    """`CliRunner` builds the command anew at each call; here the first one stays."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testing, "_get_command", cache(testing._get_command))
        yield


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in a folder with two rows and their domain; its words, or its refusal, in one line."""
    monkeypatch.chdir(tmp_path)
    Path("domain.json").write_text(json.dumps({"home": ["kent", "bristol"], "age": 99}))
    Path("t.csv").write_text("home,age,n\nkent,30,50\nbristol,41,70\n")

    def run(line, code=0):
        result = run_command(line, code)
        return re.sub(r"\s+", " ", result.stdout if code == 0 else result.stderr)

    return run
