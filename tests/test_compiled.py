import os
import subprocess
import sys
import time

LOOP = """
import sys, time
from pathlib import Path
import numba
from workbench.compiled import njit

@njit(cache=True)
def step(x):
    return x + 1

@njit(cache=True)
def total(n):
    result = 0
    for i in range(n):
        result += step(i)
    return result

if __name__ == "__main__":
    from loop import total
    Path(sys.argv[1]).touch()
    while not Path("go").exists():
        time.sleep(0.001)
    assert total(4) == 10
    print(sum(total.dispatcher().stats.cache_misses.values()))
"""


def test_processes_that_need_a_loop_at_once_compile_it_once(tmp_path):
    (tmp_path / "loop.py").write_text(LOOP)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    names = ["a", "b"]
    processes = [
        subprocess.Popen(
            [sys.executable, "loop.py", name],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    while not all((tmp_path / name).exists() for name in names):
        assert all(process.poll() is None for process in processes)
        time.sleep(0.01)
    (tmp_path / "go").touch()
    misses = [process.communicate()[0].strip() for process in processes]
    assert sorted(misses) == ["0", "1"]
