"""`workbench audit` on functions and mechanisms: a line each, and exit code 1 for a leak."""

import csv

import pytest
from typer.testing import CliRunner

from workbench.cli import app


def run(*line):
    """Runs the command here, without other processes."""
    return CliRunner().invoke(app, ["audit", "--workers", "1", *line])


def test_a_leak_has_exit_code_1_and_is_said():
    result = run("tests.owner.leaky:cells", "--epsilon", "1", "--runs", "200")
    assert result.exit_code == 1, result.output
    assert "LEAK" in result.stderr and "4 leaks" in result.stdout


def test_what_tells_nothing_passes(tmp_path):
    rows = tmp_path / "rows.csv"
    line = ("tests.owner.leaky:coin", "GeometricHistogram", "--epsilon", "1,3")
    result = run(*line, "--runs", "80", "--out", str(rows))
    assert result.exit_code == 0, result.output
    assert "computed 3" in result.stdout and "22 audits, 0 leaks" in result.stdout
    with open(rows, encoding="utf-8") as file:
        written = list(csv.DictReader(file))
    assert [row["leaks"] for row in written] == ["False"] * 22
    assert {row["exact"] for row in written if row["name"] == "coin"} == {""}


@pytest.mark.parametrize(("name", "leaks"), [("few", 0), ("many", 1)])
def test_an_instance_is_audited_at_its_own_fields_and_budget(name, leaks):
    result = run(f"tests.owner.leaky:{name}", "--runs", "80")
    assert result.exit_code == leaks, result.output
    assert "ε = 2" in result.stderr if leaks else " 0 leaks" in result.stdout


def test_what_cannot_be_audited_says_why():
    result = run("tests.owner.leaky:refuses", "--epsilon", "1", "--runs", "100")
    assert result.exit_code == 1 and "not this table" in result.stdout, result.output


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (("Nothing",), "no mechanism 'Nothing'"),
        (("--epsilon", "0"), "need numbers > 0"),
        (("--epsilon", "x"), "x"),
        (("--seconds", "0"), "--seconds"),
        (("--runs", "3"), "--runs"),
        (("math:pi",), "cannot be called"),
    ],
)
def test_bad_input_is_one_line(line, says):
    result = run(*line)
    assert result.exit_code == 2, result.output
    said, *rest = result.stderr.splitlines()
    assert says in said and rest in ([], ["See: root audit --help"])


def test_a_run_that_was_broken_off_goes_on(tmp_path):
    rows = tmp_path / "rows.csv"
    line = ("tests.owner.leaky:coin", "GeometricHistogram", "--epsilon", "1", "--runs", "80")
    assert run(*line, "--out", str(rows)).exit_code == 0
    whole = rows.read_text()
    rows.write_text(whole[:-40])  # killed while it wrote the last row
    again = run(*line, "--out", str(rows))
    assert again.exit_code == 0 and "11 audits, 0 leaks" in again.stdout, again.output
    assert again.stdout.count("✓") + again.stdout.count("?") == 1  # the others are there
    assert rows.read_text().count("\n") == whole.count("\n")


@pytest.mark.parametrize("rows", ["home,work\n1,2\n", "name,pair,epsilon,delta\na,b,1,0\n"])
def test_a_file_of_something_else_is_not_added_to(tmp_path, rows):
    other = tmp_path / "other.csv"
    other.write_text(rows)
    result = run("tests.owner.leaky:coin", "--epsilon", "1", "--out", str(other))
    assert result.exit_code == 2 and "does not contain" in result.stderr
    assert other.read_text() == rows


def test_the_share_of_epsilon_that_is_reached_is_shown():
    line = ("UnattributedHistogram", "ALP", "--epsilon", "3", "--runs", "80")
    result = run(*line)
    assert result.exit_code == 0, result.output
    assert "reached 100% of ε" in result.stdout and "reached 75% of ε" in result.stdout


def test_a_function_is_found_in_a_module_that_is_named(monkeypatch):
    monkeypatch.setenv("WORKBENCH_WITH", "tests.owner.leaky")
    result = run("raises_for_one", "--epsilon", "1", "--runs", "200")
    assert result.exit_code == 1 and "raises KeyError: 'a second cell' against" in result.stderr
    assert run("nobody", "--epsilon", "1").exit_code == 2
