"""The tests are tested: with a mistake planted in a copy of the package, the named test fails."""

import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from tests.planted.mistakes import MISTAKES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The package and its tests once more; one folder for all, so that kernels compile once."""
    folder = tmp_path_factory.mktemp("planted")
    for part in ("workbench", "tests"):
        shutil.copytree(
            ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", folder)
    _, told = python(folder, "-c", "import workbench; print(workbench.__file__)")
    assert told.strip() == str(folder / "workbench" / "__init__.py"), "another copy is tested"
    tests = dict.fromkeys(m.test for m in MISTAKES)
    code, told = outcome(folder, *tests)
    assert code == 0, f"these fail without any mistake: {told}"
    return folder


def outcome(folder, *tests):
    """Exit code and output of pytest on the package in `folder`."""
    options = ("-x", "-q", "--tb=short", "-p", "no:cacheprovider")
    return python(folder, "-m", "pytest", *options, *(f"tests/{test}" for test in tests))


def python(folder, *arguments):
    """Exit code and output of Python where `folder` comes first on its path."""
    paths = dict(PYTHONPATH=str(folder), NUMBA_CACHE_DIR=str(folder / "numba"))
    env = os.environ | paths | {"PYTHONDONTWRITEBYTECODE": "1"}  # no stale bytecode of a mutant
    run = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True
    )
    return run.returncode, run.stdout + run.stderr


SAMPLE = 15  # in test-all; test-long plants the others too
sampled = [
    pytest.param(mistake, marks=pytest.mark.slow if i < SAMPLE else pytest.mark.long)
    for i, mistake in enumerate(
        sorted(MISTAKES, key=lambda m: sha256(m.name.encode()).hexdigest())
    )
]


@pytest.mark.xdist_group("planted")  # one copy of the package, compiled once
@pytest.mark.parametrize("mistake", sampled, ids=lambda m: m.name.replace(" ", "-"))
def test_a_planted_mistake_is_found(mistake, copy):
    path = copy / "workbench" / mistake.file
    text = path.read_text(encoding="utf-8")
    there = text.count(mistake.old)
    assert there == 1, (
        f"tests/planted/mistakes.py: {mistake.name!r} stands {there} times in workbench/{mistake.file}; "
        "the code has changed: update the text of this mistake"
    )
    path.write_text(text.replace(mistake.old, mistake.new), encoding="utf-8")
    try:
        code, told = outcome(copy, mistake.test)
    finally:
        path.write_text(text, encoding="utf-8")
    assert code == 1, (
        f"{mistake.test} does not see that {mistake.why} (exit code {code}):\n{told}"
    )
    judged = re.search(r"^E +(assert|AssertionError|Failed: DID NOT RAISE)", told, re.M)
    assert judged, f"the mistake crashes where it should be judged wrong:\n{told}"


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.name.replace(" ", "-"))
def test_a_mistake_can_be_planted(mistake):
    """Its text stands once in the package, and what is planted is Python."""
    text = (ROOT / "workbench" / mistake.file).read_text(encoding="utf-8")
    assert text.count(mistake.old) == 1
    compile(text.replace(mistake.old, mistake.new), mistake.file, "exec")
    file, _, test = mistake.test.partition("::")
    tests = (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert f"def {test.partition('[')[0]}(" in tests


def test_planted_mistakes_say_what_they_break():
    assert len({m.name for m in MISTAKES}) == len(MISTAKES) >= 8
    assert all(m.old != m.new and m.why and "::" in m.test for m in MISTAKES)
