"""What tests of datasets share: a place for files that is empty, and one of small files that all load."""

import pytest

from tests.datasets.files import write_good
from workbench.datasets import published


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty WORKBENCH_DATA, and an empty project beside it."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(published, "raw", lambda: tmp_path / "raw")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


@pytest.fixture
def good(folder, monkeypatch):
    """A folder of small files that all load."""
    write_good(folder, monkeypatch)
    return folder
