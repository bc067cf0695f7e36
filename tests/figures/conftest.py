"""What tests of figures share."""

import pytest

from workbench.datasets import published


@pytest.fixture
def no_files(monkeypatch, tmp_path):
    """No published file is at hand, until a test writes one to this folder."""
    monkeypatch.setattr(published, "raw", lambda: tmp_path)
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    return tmp_path
