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


def last_options(line):
    """A line where of an option that stands twice, which is refused, only the last is left."""
    words = shlex.split(line)
    names = [word.partition("=")[0] for word in words]
    for place in range(len(words) - 1, -1, -1):
        if names[place].startswith("--") and names[place] in names[place + 1 :]:
            end = place + (1 if "=" in words[place] else 2)
            del words[place:end], names[place:end]
    return shlex.join(words)
