"""The worker process of panels, and kernels that load what panels need as they start."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from workbench import cli
from workbench.widgets.worker import Ended, Worker

KILLED = """
import os, signal, threading
from workbench.widgets.worker import worker
print(worker.run(threading.Event(), os.getpid), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="processes have no parent there")
def test_a_worker_ends_after_its_parent_was_killed():
    done = subprocess.run(
        [sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, timeout=60
    )
    worker = int(done.stdout)
    end = time.monotonic() + 60
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < end:
            os.kill(worker, 0)
            time.sleep(0.2)


def test_a_task_that_is_dropped_as_it_begins_does_not_hold_back_the_next():
    worker, dropped = Worker(), threading.Event()
    worker.start()
    threading.Timer(0.3, dropped.set).start()
    with pytest.raises(Ended):
        worker.run(dropped, time.sleep, 600)
    assert worker.run(threading.Event(), max, 1, 2) == 2


@pytest.mark.slow
def test_a_kernel_has_loaded_what_a_panel_needs():
    folder = Path(cli.__file__).with_name("jupyter") / "kernels" / "python3"
    *_, line = json.loads((folder / "kernel.json").read_text())["argv"]
    command, asked = line.partition("=")[2], "import sys; print('numba' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", f"{command}; {asked}"], stdout=subprocess.PIPE)
    assert told.stdout == b"True\n"
