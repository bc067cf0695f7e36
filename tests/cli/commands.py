"""Commands that tests run in their own process."""

import shlex

from typer.testing import CliRunner

from workbench.cli import app


def run_command(line, code=0):
    """Run a line, or words, that ends with this exit code; what is no refusal is raised."""
    result = CliRunner().invoke(app, shlex.split(line) if isinstance(line, str) else line)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result
