"""The worker process of panels."""

import os
import subprocess
import sys
import time

import pytest

KILLED = """
import os, signal, threading
from workbench.widgets.worker import worker
print(worker.run(None, threading.Event(), os.getpid), flush=True)
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
