"""Imports run one way, noise is drawn behind one door, and only that door writes receipts."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "workbench"
FLOORS = (
    "value wording arrays libraries compiled threads processes project provenance temporary "
    "plugins enclosures privacy preparation domain hierarchy workload transform labelled_rows "
    "cell_counts contributions reading table records interactions estimates noise shares "
    "mechanism_fields release_files release mechanism option_grammar inference metrics datasets "
    "claims mechanisms scale laws advice experiment session audit plots figures reproduction "
    "report widgets cli"
).split()
PRIVATE = {
    "labelled_rows",
    "cell_counts",
    "contributions",
    "reading",
    "table",
    "records",
    "interactions",
    "datasets",
    "noise",
    "shares",
    "mechanism_fields",
    "release",
    "mechanism",
    "mechanisms",
    "scale",
}


@cache
def modules():
    """Each file's room, path and nodes of its tree."""
    rooms = {p: p.relative_to(HOUSE).parts[0].removesuffix(".py") for p in HOUSE.rglob("*.py")}
    return [
        (room, path, list(ast.walk(ast.parse(path.read_text()))))
        for path, room in sorted(rooms.items())
        if room != "__init__"
    ]


def imported(nodes):
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == "workbench":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("workbench."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (
                a.name.split(".")[1] for a in node.names if a.name.startswith("workbench.")
            )


def test_every_room_has_its_floor_and_imports_only_what_lies_above():
    for room, path, nodes in modules():
        assert room in FLOORS, f"{path.name}: give the room its floor"
        for above in imported(nodes):
            assert above in FLOORS, (
                f"{path.name} imports {above} from the package, not from its room"
            )
            assert above == room or FLOORS.index(above) < FLOORS.index(room), (path.name, above)


def test_the_harness_knows_no_mechanism_and_no_dataset():
    files = [nodes for room, _, nodes in modules() if room == "experiment"]
    assert files
    for nodes in files:
        assert not set(imported(nodes)) & {"mechanisms", "datasets", "plots", "noise"}


def test_inference_and_plots_cannot_hold_private_data():
    for room, path, nodes in modules():
        if room in ("inference", "plots"):
            assert not set(imported(nodes)) & PRIVATE, path.name


def test_mechanisms_only_pass_rng_on():
    for room, path, nodes in modules():
        if room != "mechanisms":
            continue
        for node in nodes:
            if isinstance(node, ast.Attribute):
                told = ast.unparse(node)
                assert not told.startswith("rng."), f"{path.name} touches {told}"
                if told.startswith(("np.random", "numpy.random")):
                    assert told in ("np.random", "np.random.Generator"), (path.name, told)
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert "random" not in ast.unparse(node), f"{path.name} imports randomness"


def test_only_the_door_writes_receipts():
    allowed = {
        HOUSE / "noise" / "source.py",
        HOUSE / "release" / "file_records.py",
    }  # the latter reads files
    for _, path, nodes in modules():
        for node in nodes:
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func).split(".")[-1] == "Receipt"
            ):
                assert path in allowed, path.name


def test_nobody_uses_global_randomness_pickle_or_eval():
    for room, path, nodes in modules():
        allowed = ("np.random.default_rng", "np.random.SeedSequence")
        if room == "laws":  # which look whether a mechanism has moved it
            allowed += ("np.random.get_state",)
        for node in nodes:
            if isinstance(node, ast.Call):
                told = ast.unparse(node.func)
                assert told not in ("eval", "exec", "pickle.load", "pickle.loads"), path.name
                if told.startswith("np.random."):
                    assert told.startswith(allowed), told


def test_the_package_never_imports_the_experiments():
    for _, path, nodes in modules():
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert "experiments" not in ast.unparse(node), path.name


def test_there_are_no_drawers():
    drawers = {
        "utils",
        "helpers",
        "common",
        "base",
        "misc",
        "core",
        "config",
        "runner",
        "manager",
    }
    assert not {p.stem for p in HOUSE.rglob("*.py")} & drawers


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("workbench", "numpy pandas matplotlib numba polars"),
        ("workbench.mechanisms", "numba cryptography matplotlib"),
        ("workbench.widgets.panels", "numba matplotlib.axes matplotlib.pyplot"),
    ],
)
def test_importing_loads_nothing_heavy_before_it_is_used(module, heavy):
    code = f"import sys, {module}; print(*({set(heavy.split())} & sys.modules.keys()))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0 and run.stdout == "\n", run.stdout + run.stderr


def test_public_names_are_there():
    import workbench

    for name in workbench.__all__:
        assert getattr(workbench, name, None) is not None, name
