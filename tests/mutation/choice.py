"""Which tests may see a change: those that run its lines, the most specific first."""

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from tests.mutation.places import FOLDERS
from tests.planted.planting import ROOT

QUICK = ["--hypothesis-profile=ci", "-m", "not slow and not long"]
_TESTS = ("noise", "mechanisms", "laws/test_laws.py", "owner/test_audit.py")


class Reach:
    """The tests that ran each line, of one run of them all."""

    def __init__(self, paths=_TESTS):
        sources = ",".join(f"workbench.{name}" for name in FOLDERS)
        with tempfile.TemporaryDirectory() as folder:
            told, settings, report = (Path(folder) / name for name in ("data", "rc", "report"))
            settings.write_text(f"[run]\nsource = {sources}\ndynamic_context = test_function\n")
            coverage = [sys.executable, "-m", "coverage"]
            how = [f"--data-file={told}", f"--rcfile={settings}"]
            run = ["-m", "pytest", "-q", *QUICK, *(f"tests/{path}" for path in paths)]
            subprocess.run([*coverage, "run", *how, *run], cwd=ROOT, check=True)
            written = ["json", "-q", "--show-contexts", "-o", str(report), *how]
            subprocess.run([*coverage, *written], cwd=ROOT, check=True)
            files = json.loads(report.read_text(encoding="utf-8"))["files"]
        self.tests = defaultdict(set)
        for file, seen in files.items():
            for line, contexts in seen["contexts"].items():
                self.tests[file, int(line)] |= {_node_id(name) for name in contexts if name}
        self.lines = Counter(test for tests in self.tests.values() for test in tests)

    def tests_of(self, place):
        """Those that run its lines; of a compiled loop, which runs none, those that run what calls it."""
        name = place.scope.rpartition(".")[2]
        own = {test for line in place.lines for test in self.tests[str(place.file), line]}
        reached = own or {
            test
            for path in (ROOT / "workbench").rglob("*.py")
            for line, text in enumerate(path.read_text("utf-8").splitlines(), 1)
            if re.search(rf"\b{name}\b", text)
            for test in self.tests[str(path.relative_to(ROOT)), line]
        }
        return sorted(reached or self.lines, key=self.lines.get)


def _node_id(context):
    """`tests.noise.test_noise.test_x` as pytest names it."""
    module, _, test = context.rpartition(".")
    return f"{module.replace('.', '/')}.py::{test}"
