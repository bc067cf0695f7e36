"""An existing Dask cluster as an executor, checked before anything private is sent to it.

Tasks carry private rows and secret keys, and whoever reaches a scheduler may run anything on its workers:
a cluster is trusted as the data is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import CancelledError
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from distributed import Client
from distributed.cfexecutor import ClientExecutor
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker

from workbench.scale.fingerprint import digest, fingerprint, refuse_different, run_alike


class Cluster(ClientExecutor):
    """An executor of tasks on a Dask cluster; on leaving its `with`, the connection is closed."""

    def __init__(self, client: Client):
        super().__init__(client, pure=False)
        self._max_workers = sum(client.nthreads().values())

    def submit(self, fn: Callable, *args: Any, **kwargs: Any) -> Any:
        """As an executor does; a worker that joined later is checked by its first task."""
        return super().submit(run_alike, digest(), fn, *args, **kwargs)

    def share(self, data: Any) -> Any:
        """What stands for the data among a task's arguments; it is sent once."""
        return self._client.scatter(data, hash=False)

    def shutdown(self, wait: bool = True, cancel_futures: bool = False) -> None:
        """As an executor does."""
        super().shutdown(wait and not cancel_futures and self._client.status == "running")
        self._client.close()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """Close it; a cluster that was lost is said in words."""
        self.shutdown(wait=kind is None)
        if isinstance(error, KilledWorker | CancelledError | CommClosedError):
            why = "the cluster was lost, or its workers died again and again: nothing was released"
            raise ConnectionError(why) from None


def connect(
    address: str | Path, *, insecure: bool = False, security: Any = None, timeout: float = 8.0
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
    place = _address(address)
    _refuse_open(place, insecure)
    try:
        client = Client(place, security=security, timeout=timeout, set_as_default=False)
    except OSError as e:
        raise ConnectionError(f"no Dask scheduler answers at {place}: {e}") from None
    try:
        workers = client.run(fingerprint, on_error="return")
        if not workers:
            raise ValueError(f"the scheduler at {place} has no workers")
        for worker, theirs in workers.items():
            _refuse_open(worker, insecure)
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


def _address(address: str | Path) -> str:
    """The address itself, or that in a scheduler file."""
    text = str(address)
    if not isinstance(address, Path) and not text.endswith(".json"):
        return text if "://" in text else f"tcp://{text}"
    try:
        return str(json.loads(Path(address).read_text())["address"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"{address} is no file that a Dask scheduler has written") from None


def _refuse_open(place: str, insecure: bool) -> None:
    """A ValueError for what is neither encrypted nor on this machine."""
    kind, _, rest = place.partition("://")
    host = rest.rpartition(":")[0].strip("[]")
    try:
        local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        local = False
    if kind not in ("tcp", "tls") or (kind == "tcp" and not (local or insecure)):
        raise ValueError(
            f"{place} is not allowed: private rows and keys would cross the network in the clear; need "
            "tls://, a loopback address, or --insecure (insecure=True) where nobody else can listen"
        )
