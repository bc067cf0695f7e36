"""One test of one mistake, in a process of its own that the libraries are loaded for already."""

import ast
import contextlib
import os
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.planted.planting import ROOT, package, plant_in

_JUDGED = (
    r"^E +(assert|AssertionError|Failed: DID NOT RAISE|workbench\.mechanisms\.laws\.Broken)"
)
_OPTIONS = "-x -q --tb=short -p no:cacheprovider -p no:xdist --hypothesis-profile=ci".split()


class Verdict(NamedTuple):
    """Whether the test failed, as a test that judges does; what it printed, and its seconds."""

    caught: bool
    text: str
    seconds: float


def load_libraries():
    """What every test needs, and no part of the package: a child process begins with it."""
    if sys.prefix != sys.base_prefix:  # as `workbench.compiled` does
        os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(sys.prefix) / "var" / "numba"))
    import hypothesis.strategies  # noqa: F401
    import numba  # noqa: F401
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import scipy.stats  # noqa: F401

    ours = [name for name in sys.modules if name.partition(".")[0] == "workbench"]
    assert not ours, f"the package is loaded before a mistake is planted: {ours}"


def judge(mistake, tests=None):
    """What becomes of the mistake's own tests, or of others, once it is planted."""
    file, tree = plant_in(mistake, package(mistake.where))
    module = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if not child:
            run(module, ast.unparse(tree), tests or [f"tests/{mistake.test}"], Path(folder))
        _, status = os.waitpid(child, 0)
        text = (Path(folder) / "output").read_text(errors="replace")
    failed = os.waitstatus_to_exitcode(status) == 1
    seconds = time.perf_counter() - start
    return Verdict(failed and bool(re.search(_JUDGED, text, re.M)), text, seconds)


def _keep_other_loops(changed, folder):
    """What is compiled for other folders stays: no loop calls a loop of another folder."""
    import numba

    for cache in Path(numba.config.CACHE_DIR).iterdir():
        if cache.name.rpartition("_")[0] != changed:
            (folder / cache.name).symlink_to(cache)
    numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = str(folder)


def run(module, text, tests, folder):
    """The tests with `text` for the module; what they print is in the folder. Never returns."""
    try:
        with (
            open(folder / "output", "w", buffering=1) as output,
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(output),
        ):
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            os.chdir(ROOT)
            import pytest

            from tests.planted import plant

            plant.use(module, text)
            if "@njit" in text:  # what calls a changed kernel would be kept with it, or without
                _keep_other_loops(module.split(".")[-2], folder)
            code = pytest.main([*_OPTIONS, *tests])
            output.flush()
        os._exit(code)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(70)
