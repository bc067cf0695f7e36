"""What tests of figures share."""

import pytest

from workbench.datasets import published


@pytest.fixture
def no_files(monkeypatch, tmp_path):
    """A data folder without published files, to which a test may write one."""
    monkeypatch.setattr(published, "raw", lambda: tmp_path)
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    return tmp_path
