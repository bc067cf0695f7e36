"""`workbench reproduce` with few kernels: each runs one notebook after another, emptied between them.

It saves every notebook but a kernel's first the start and the imports, and all the pictures between
cells, some 8 s of processor time a notebook; the files of figures are drawn as always.
"""

import os
import threading
from contextlib import ExitStack, contextmanager

from jupyter_core.utils import run_sync

from workbench.cli import main
from workbench.reproduction.batch import _Batch

EMPTY = "import matplotlib.pyplot\nmatplotlib.pyplot.close('all')\n%reset -f"

_own_kernel = _Batch._kernel
_of_thread = threading.local()
_kernels = ExitStack()


@contextmanager
def _shared_kernel(batch, job, *more):
    """The kernel of this thread; another one after a notebook that failed."""
    kernel = vars(_of_thread).pop("kernel", None)
    if kernel is None:
        kernel = _kernels.enter_context(_own_kernel(batch, job, *more))
    batch.kernels[kernel] = job
    yield kernel
    for client in kernel.clients:
        client.stop_channels()
    kernel.clients.clear()
    client = kernel.client()  # a new one: it hears nothing of what the notebook has said
    client.start_channels()
    run_sync(client.wait_for_ready)(timeout=60)
    run_sync(client.execute_interactive)(EMPTY, silent=True, timeout=60)
    _of_thread.kernel = kernel


if __name__ == "__main__":
    os.environ["MPLBACKEND"] = "agg"
    _Batch._kernel = _shared_kernel
    with _kernels:
        main()
