"""Runs a module that ends with the process that started it, however that one ends.

`python -m workbench.cli.attached MODULE …` is `python -m MODULE …` whose standard input is a pipe that
only the starting process holds open: it closes when that process dies, even if it is killed.
"""

import os
import runpy
import signal
import sys
import threading
import time

_GRACE = 15  # seconds for the module to end what it has started


def _end_with(pipe: int) -> None:
    while os.read(pipe, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE)
    os._exit(1)


if __name__ == "__main__":
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # nobody else reads the pipe
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
