"""Dask cluster as an executor of tasks. The workbench checks the cluster before it sends private data.

Tasks contain private rows and secret keys. Anyone who can connect to the scheduler of a Dask cluster can run
any code on its workers. So use only a cluster that you would trust with the data.
"""

from __future__ import annotations

import hashlib
import json
import platform
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from ipaddress import ip_address
from pathlib import Path
from time import sleep
from typing import Any
from weakref import WeakSet

from distributed import Client
from distributed.cfexecutor import ClientExecutor
from distributed.comm.core import CommClosedError
from distributed.scheduler import KilledWorker

import workbench

# Address


def scheduler_address(address: str | Path) -> str:
    """Return the address of a Dask scheduler. The argument is this address, or the path of a file that
    contains the address.
    """
    text = str(address)
    if not isinstance(address, Path) and not text.endswith(".json"):
        return text if "://" in text else f"tcp://{text}"
    try:
        return str(json.loads(Path(address).read_text())["address"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"{address} is not a file that a Dask scheduler has written") from None


def refuse_open(place: str, insecure: bool) -> None:
    """Raise a ValueError if the connection to this address is not encrypted and leads to another machine. If
    `insecure` is True, accept unencrypted connections.
    """
    kind, _, rest = place.partition("://")
    host = rest.rpartition(":")[0].strip("[]")
    try:
        local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        local = False
    if kind not in ("tcp", "tls") or (kind == "tcp" and not (local or insecure)):
        raise ValueError(
            f"{place} is not allowed: private rows and keys would cross the network unencrypted. Need "
            "tls://, a loopback address, or --insecure (insecure=True) if nobody else can listen"
        )


# Fingerprint

_LIBRARIES = "numpy scipy numba cryptography pyarrow polars dask distributed".split()


@cache
def fingerprint() -> dict[str, str]:
    """Return the versions of all packages that affect results, and a hash of each source file of the
    workbench.
    """
    home = Path(workbench.__file__).parent
    prints = {name: version(name) for name in _LIBRARIES}
    prints["python"] = ".".join(platform.python_version_tuple()[:2])
    for path in sorted(home.rglob("*.py")):
        source = path.relative_to(home.parent).as_posix()
        prints[source] = hashlib.sha256(path.read_bytes()).hexdigest()
    return prints


@cache
def digest() -> str:
    """Return one hash of the fingerprint of this process (its package versions and source files)."""
    return hashlib.sha256(json.dumps(fingerprint()).encode()).hexdigest()


def refuse_different(who: str, theirs: Mapping[str, str] | Exception) -> None:
    """Raise a ValueError if another process has other package versions or source files than this process. The
    message names the differences.
    """
    if isinstance(theirs, Exception):
        raise ValueError(f"{who} cannot run this package: {theirs}")
    ours = fingerprint()
    names = [name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]
    if names:
        shown = [n if n.endswith(".py") else f"{n} {theirs.get(n)}" for n in names[:3]]
        others = ", ".join(shown) + ", …" * (len(names) > 3)
        raise ValueError(f"{who} has other source files or packages: {others}")


def run_alike(expected: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task on this worker if the hash of its software equals `expected`, the caller's hash. Otherwise
    raise an error.
    """
    if digest() != expected:
        raise RuntimeError("a worker that joined has other source files or packages")
    return function(*arguments)


# Dask

_LOST = "the cluster was lost, or its workers died again and again: nothing was released"


class Cluster(ClientExecutor):
    """Executor that runs tasks on a Dask cluster. At the end of a `with` block, the executor closes the
    connection.
    """

    def __init__(self, client: Client):
        super().__init__(client, pure=False)
        self._max_workers = sum(client.nthreads().values())
        self._submitted: WeakSet[Future[Any]] = WeakSet()
        threading.Thread(target=self._watch, daemon=True).start()

    def submit(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Send a task to the cluster. Each task first checks that its worker has the same software as this
        process, because workers may join later.
        """
        future = super().submit(run_alike, digest(), fn, *args, **kwargs)
        self._submitted.add(future)
        return future

    def _watch(self) -> None:
        """Watch the connection to the scheduler. If the connection is lost, raise an error in all waiting
        tasks, which would otherwise wait forever.
        """
        while not self._shutdown:
            lost = list(self._submitted) if self._client.status == "closed" else []
            for future in lost:
                with suppress(InvalidStateError):
                    future.set_exception(ConnectionError(_LOST))
            sleep(0.2)

    def share(self, data: Any) -> Any:
        """Send data to the workers once. Return a reference, which you can pass to many tasks in place of the
        data.
        """
        return self._client.scatter(data, hash=False)

    def shutdown(self, wait: bool = True, cancel_futures: bool = False) -> None:
        """Close the connection to the cluster. The arguments have the same meaning as for any Python
        executor.
        """
        with suppress(Exception):  # a closed client cancels nothing
            super().shutdown(wait and not cancel_futures and self._client.status == "running")
        self._client.close()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """Close the connection. If the connection was lost during the `with` block, raise an error that says
        so.
        """
        self.shutdown(wait=kind is None)
        if isinstance(error, KilledWorker | CancelledError | CommClosedError):
            raise ConnectionError(_LOST) from None


def connect(
    address: str | Path, *, insecure: bool = False, security: Any = None, timeout: float = 5.0
) -> Cluster:
    """Connect to a running Dask cluster, and return an executor that runs tasks on it.

    Parameters
    ----------
    address : str or path
        Address of the cluster's scheduler, for example tls://host:8786, or the path of the JSON file in which
        the scheduler wrote its address.
    insecure : bool
        Whether to accept an unencrypted connection (tcp://) to another machine. Default False.
    security : distributed.Security, optional
        Certificates and other settings of an encrypted connection (tls://). Default: the settings in Dask's
        configuration.
    timeout : float
        Seconds to wait for an answer from the scheduler.

    Returns
    -------
    Cluster
        Executor, which you can pass to `scale.release` and `trials.run`.

    Raises
    ------
    ValueError
        If the address is invalid, the connection is not encrypted, or there are no workers. The error is also
        raised if a worker has other source code or package versions than this process.
    ConnectionError
        If the scheduler does not answer within `timeout` seconds.
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
