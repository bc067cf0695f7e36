"""`workbench reproduce` with few kernels: each runs one notebook after another, emptied between them.

Only the first notebook of a kernel pays for its start and imports, some 8 s of processor time. Figures are
drawn as always, but saved as PNG alone, because the other kinds are half of what saving takes.

    python -m tests.figures.shared_kernels RESULTS '[[["hay2010_fig5"], ["seeds=1"]], …]'
"""

import json
import sys
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path

from jupyter_core.utils import run_sync

from workbench.figures.batch import _Batch, reproduce
from workbench.figures.site import write

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
BEFORE = "import workbench.figures.saved\nworkbench.figures.saved.IMAGES = ('png',)"
BETWEEN = "import matplotlib.pyplot\nmatplotlib.pyplot.close('all')\n%reset -f"

_own_kernel = _Batch._kernel
_of_thread = threading.local()
_kernels = ExitStack()


@contextmanager
def _shared_kernel(batch, job, *more):
    """The kernel of this thread; another one after a notebook that failed."""
    kernel = vars(_of_thread).pop("kernel", None)
    if kernel is None:
        kernel = _kernels.enter_context(_own_kernel(batch, job, *more))
        _execute(kernel, BEFORE)
    batch.kernels[kernel] = job
    yield kernel
    _execute(kernel, BETWEEN)
    _of_thread.kernel = kernel


def _execute(kernel, code):
    for client in kernel.clients:
        client.stop_channels()
    kernel.clients.clear()
    client = kernel.client()  # a new one: it hears nothing of what the notebook has said
    client.start_channels()
    run_sync(client.wait_for_ready)(timeout=60)
    reply = run_sync(client.execute_interactive)(code, silent=True, timeout=60)
    assert reply["content"]["status"] == "ok", reply["content"]


def main(results, groups):
    """Runs figures group by group, each at the settings that go with it; then writes the report."""
    failed = []
    for figures, settings in groups:
        runs = reproduce(figures, notebooks=NOTEBOOKS, results=results, settings=settings)
        failed += [run for run in runs if run.state != "done"]
    for run in failed:
        print(run.stem, run.state, run.cell, run.error)
    print(write(results, "quick"))
    return bool(failed)


if __name__ == "__main__":
    _Batch._kernel = _shared_kernel
    with _kernels:
        sys.exit(main(Path(sys.argv[1]), json.loads(sys.argv[2])))
