"""Disks that are full, read-only or gone."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from workbench import Bound, Domain, SparseTable

SIZE = 64 << 10
LARGE = SparseTable.from_dense(
    Domain(("x",), (100_000,)), np.random.default_rng(0).integers(0, 9, 100_000), Bound()
)


@contextlib.contextmanager
def small_disk() -> Iterator[Path]:
    """A file system of 64 kB where one may be mounted; elsewhere files of at most 64 kB."""
    with tempfile.TemporaryDirectory(prefix="wb-disk-") as name:
        folder = Path(name)
        if _mount(folder, f"size={SIZE}"):
            try:
                yield folder
            finally:
                subprocess.run(["umount", "-l", name], check=True)
            return
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE, limits[1]))
        try:
            yield folder
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, before)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """The folder is not writable: mounted so, or, for who is not root, by its mode."""
    mounted = _mount(folder, "bind", str(folder)) and _mount(folder, "remount,bind,ro")
    if not mounted:
        folder.chmod(0o500)
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.chmod(0o700)


@contextlib.contextmanager
def vanished(folder: Path) -> Iterator[None]:
    """The folder is removed while it is used."""
    shutil.rmtree(folder)
    yield
    assert not folder.exists()


def _mount(folder: Path, options: str, what: str = "tmpfs") -> bool:
    if os.geteuid() or shutil.which("mount") is None:
        return False
    kind = ["-t", "tmpfs"] if what == "tmpfs" and "remount" not in options else []
    source = [] if "remount" in options else [what]
    command = ["mount", *kind, "-o", options, *source, str(folder)]
    return subprocess.run(command, capture_output=True).returncode == 0
