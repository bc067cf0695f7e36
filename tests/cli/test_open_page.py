"""Pages whose address contains a secret, in the browser."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BROWSER = """
import json, os, sys
from pathlib import Path
from urllib.parse import urlparse
page = Path(urlparse(sys.argv[1]).path)
modes = [oct(x.stat().st_mode & 0o777) for x in (page, page.parent)] if page.is_file() else []
text = page.read_text() if page.is_file() else ""
Path("seen.json").write_text(json.dumps([sys.argv[1:], modes, text, str(page.parent)]))
"""
SERVERS = {
    "lab, explore and publish": """
import webbrowser, workbench.cli.serving as serving
from threading import Event
from types import SimpleNamespace
ended, opened = Event(), webbrowser.open
webbrowser.open = lambda url: (opened(url), ended.set())
serving._answers = lambda port: True
serving.secrets = SimpleNamespace(token_urlsafe=lambda n: "SECRET")
serving.runpy = SimpleNamespace(run_module=lambda *a, **k: ended.wait(60))
serving.serve("x", 8700, ["server"], "/", serving.Path("."), True)
""",
    "bank": """
import workbench.cli.serving as serving
from unittest.mock import Mock
from workbench.widgets import bank_page
bank_page.BankPage = Mock(return_value=Mock(address="http://127.0.0.1:1/SECRET/"))
serving.bank(serving.Path("b.sqlite"))
""",
}


@pytest.mark.parametrize("code", SERVERS.values(), ids=SERVERS)
def test_no_argument_of_the_browser_contains_the_secret(tmp_path, code):
    (tmp_path / "browser.py").write_text(BROWSER)
    words = [sys.executable, str(tmp_path / "browser.py"), "%s"]
    told = {"BROWSER": shlex.join(words), "PYTHONPATH": str(ROOT)}
    subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ | told, check=True
    )
    arguments, modes, text, folder = json.loads((tmp_path / "seen.json").read_text())
    assert arguments[0].startswith("file://") and "SECRET" not in arguments[0]
    assert "SECRET" in text and modes == ["0o600", "0o700"]
    assert not Path(folder).exists()  # the process has ended
