"""The command line is built once for all tests: it holds no state, and to build it takes 0.1 s."""

from functools import cache

import pytest
from typer import testing


@pytest.fixture(autouse=True, scope="session")
def one_command():
    """`CliRunner` builds the command anew at each call; here the first one stays."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(testing, "_get_command", cache(testing._get_command))
        yield
