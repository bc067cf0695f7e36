"""Imports run one way, noise is drawn behind one door, and only that door writes receipts."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "workbench"
ORDER = (
    "value compiled randomness privacy spaces queries data noise estimates inference mechanisms "
    "datasets trials figures owner widgets cli __main__"
).split()
HARNESS = {HOUSE / "trials" / f"{name}.py" for name in "__init__ sweep running inputs".split()}
LAWS = {HOUSE / "mechanisms" / f"{name}.py" for name in ("laws", "neighbours")}
HOLD_PRIVATE_DATA = {"data", "mechanisms", "datasets", "owner"}


@cache
def modules():
    """The package, the path and the nodes of the tree of each file."""
    packages = {
        p: p.relative_to(HOUSE).parts[0].removesuffix(".py") for p in HOUSE.rglob("*.py")
    }
    return [
        (package, path, list(ast.walk(ast.parse(path.read_text()))))
        for path, package in sorted(packages.items())
        if package != "__init__"
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


def test_packages_import_only_packages_below():
    for package, path, nodes in modules():
        assert package in ORDER, f"{path.name}: the package has no place in the order"
        for other in imported(nodes):
            assert other in ORDER, f"{path.name} imports {other}, which is not a package"
            assert ORDER.index(other) <= ORDER.index(package), (path.name, other)


def test_files_of_a_package_import_each_other_one_way():
    """Imports at the top of files have no circle; those inside functions may."""
    below = {}
    for path in HOUSE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        below[dotted(path)] = {
            module
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("workbench")
            for alias in node.names
            for module in (node.module, f"{node.module}.{alias.name}")
        }
    files = {name for name in below if not (HOUSE.parent / name.replace(".", "/")).is_dir()}
    TopologicalSorter({name: below[name] & files for name in files}).prepare()


def dotted(path):
    """The name under which a file is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_the_harness_knows_no_mechanism_and_no_dataset():
    """It imports the protocol that all mechanisms follow, and nothing else of theirs."""
    files = [nodes for _, path, nodes in modules() if path in HARNESS]
    assert len(files) == len(HARNESS)
    for nodes in files:
        others = [
            n for n in nodes if getattr(n, "module", "") != "workbench.mechanisms.protocol"
        ]
        assert not set(imported(others)) & {"mechanisms", "datasets", "figures", "noise"}


def test_inference_and_plots_cannot_hold_private_data():
    for package, path, nodes in modules():
        if package == "inference" or path.parent.name == "plots":
            assert not set(imported(nodes)) & HOLD_PRIVATE_DATA, path.name


def test_mechanisms_only_pass_rng_on():
    for package, path, nodes in modules():
        if package != "mechanisms" or path in LAWS:
            continue
        for node in nodes:
            if isinstance(node, ast.Attribute):
                told = ast.unparse(node)
                assert not told.startswith("rng."), f"{path.name} touches {told}"
                if told.startswith(("np.random", "numpy.random")):
                    assert told in ("np.random", "np.random.Generator"), (path.name, told)
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert "random" not in ast.unparse(node), f"{path.name} imports randomness"


def test_random_bits_come_from_one_file():
    """Others draw from a `Source`, or from a generator that somebody seeded to be replayed."""
    bits = HOUSE / "randomness.py"
    keys = {"word_source": {bits, HOUSE / "noise" / "source.py"}}
    keys["Keystream"] = keys["word_source"]
    names_files = {
        HOUSE / f"{name}.py"
        for name in "estimates/files owner/ledger owner/scale/spill cli/serving widgets/bank_page".split()
    }
    for package, path, nodes in modules():
        for node in nodes:
            if isinstance(node, ast.ImportFrom | ast.Import):
                told = ast.unparse(node).split()
                assert path in names_files or not {"secrets", "random"} & set(told), path.name
            if not isinstance(node, ast.Name | ast.Attribute | ast.Call):
                continue
            told = ast.unparse(node)
            assert path == bits or told not in ("os.urandom", "os.getrandom"), path.name
            assert path in keys.get(told, {path}), f"{path.name} draws from {told}"
            if told.startswith("np.random.default_rng(") and path not in {bits, *LAWS}:
                assert told != "np.random.default_rng()", (
                    f"{path.name}: a generator without a seed"
                )
                assert package not in ("noise", "data", "mechanisms"), path.name


def test_only_the_door_writes_receipts():
    allowed = {
        HOUSE / "noise" / "source.py",
        HOUSE / "estimates" / "release_files.py",
    }  # the latter reads files
    for _, path, nodes in modules():
        for node in nodes:
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func).split(".")[-1] == "Receipt"
            ):
                assert path in allowed, path.name


def test_nobody_uses_global_randomness_pickle_or_eval():
    for _, path, nodes in modules():
        allowed = ("np.random.default_rng", "np.random.SeedSequence")
        if path in LAWS:  # which see whether a mechanism has moved it
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


def test_what_is_imported_inside_functions_is_there_too():
    """A module that was removed is noticed here, and not when somebody calls the function."""
    files = [
        p for tree in ("workbench", "experiments", "tests") for p in (ROOT / tree).rglob("*.py")
    ]
    names = {
        node.module
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and not node.level and node.module
    }
    ours = {name for name in names if name.split(".")[0] in ("workbench", "experiments")}
    assert ours and not [name for name in sorted(ours) if not find_spec(name)]


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
