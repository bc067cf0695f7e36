"""An existing Dask cluster as an executor, checked before anything private is sent to it.

Tasks carry private rows and secret keys, and whoever reaches a scheduler may run anything on its workers:
a cluster is trusted as the data is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Any
from weakref import WeakSet

from distributed import Client
from distributed.cfexecutor import ClientExecutor
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker

from workbench.scale.address import refuse_open, scheduler_address
from workbench.scale.fingerprint import digest, fingerprint, refuse_different, run_alike

_LOST = "the cluster was lost, or its workers died again and again: nothing was released"


class Cluster(ClientExecutor):
    """An executor of tasks on a Dask cluster; on leaving its `with`, the connection is closed."""

    def __init__(self, client: Client):
        super().__init__(client, pure=False)
        self._max_workers = sum(client.nthreads().values())
        self._submitted: WeakSet[Future[Any]] = WeakSet()
        threading.Thread(target=self._watch, daemon=True).start()

    def submit(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """As an executor does; a worker that joined later is checked by its first task."""
        future = super().submit(run_alike, digest(), fn, *args, **kwargs)
        self._submitted.add(future)
        return future

    def _watch(self) -> None:
        """Let what waits fail once the scheduler is gone: Dask leaves it waiting."""
        while not self._shutdown:
            lost = list(self._submitted) if self._client.status == "closed" else []
            for future in lost:
                with suppress(InvalidStateError):
                    future.set_exception(ConnectionError(_LOST))
            sleep(0.2)

    def share(self, data: Any) -> Any:
        """What stands for the data among a task's arguments; it is sent once."""
        return self._client.scatter(data, hash=False)

    def shutdown(self, wait: bool = True, cancel_futures: bool = False) -> None:
        """As an executor does."""
        with suppress(Exception):  # a closed client cancels nothing
            super().shutdown(wait and not cancel_futures and self._client.status == "running")
        self._client.close()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """Close it; a cluster that was lost is said in words."""
        self.shutdown(wait=kind is None)
        if isinstance(error, KilledWorker | CancelledError | CommClosedError):
            raise ConnectionError(_LOST) from None


def connect(
    address: str | Path, *, insecure: bool = False, security: Any = None, timeout: float = 5.0
) -> Cluster:
    """The executor of a cluster that runs already.

    Parameters
    ----------
    address : str or path
        Of its scheduler, as tls://host:8786, or the scheduler file (JSON) that this has written.
    insecure : bool
        Accept an unencrypted tcp:// beyond this machine.
    security : distributed.Security, optional
        For tls://; by default what Dask's own configuration says.
    timeout : float
        Seconds that the scheduler has to answer.

    Returns
    -------
    Cluster
        An executor, for `scale.release`, `experiment.run` and `audit.run_audits`.

    Raises
    ------
    ValueError
        An address that is none or not encrypted, no workers, or workers of other sources or libraries.
    ConnectionError
        No answer.
    """
    place = scheduler_address(address)
    refuse_open(place, insecure)
    try:
        client = Client(place, security=security, timeout=timeout, set_as_default=False)
    except OSError as e:
        raise ConnectionError(f"no Dask scheduler answers at {place}: {e}") from None
    try:
        workers = client.run(fingerprint, on_error="return")
        if not workers:
            raise ValueError(f"the scheduler at {place} has no workers")
        for worker, theirs in workers.items():
            refuse_open(worker, insecure)
            refuse_different(f"worker {worker}", theirs)
        try:  # it unpickles what is sent to workers
            theirs = client.run_on_scheduler(fingerprint)
        except Exception as e:
            theirs = e
        refuse_different(f"the scheduler at {place}", theirs)
        return Cluster(client)
    except BaseException:
        client.close()
        raise
