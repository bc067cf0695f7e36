"""A server of notebooks on this machine alone, until Ctrl-C or our end: what `lab` and `explore` share."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import sleep

from workbench.cli import screen

_TEMPLATES = Path(__file__).with_name("jupyter")


def serve(
    name: str,
    port: int,
    arguments: Callable[[int], Sequence[str]],
    page: str,
    project: Path,
    browser: bool,
) -> None:
    """Run `python -m <arguments>` on the first free port, say and open its `page`, and wait.

    `project` is the folder above the notebooks, whose `experiments` they import.
    """
    port = free_port(port)
    token = secrets.token_urlsafe(24)
    address = f"http://127.0.0.1:{port}{page}?token={token}"
    paths = {
        name: os.pathsep.join(filter(None, [str(first), os.environ.get(name, "")]))
        for name, first in (("PYTHONPATH", project), ("JUPYTER_PATH", _TEMPLATES))
    }
    server = subprocess.Popen(
        [sys.executable, "-m", "workbench.cli.attached", *arguments(port)],
        # where `ps` does not show the token
        env=os.environ | paths | {"JUPYTER_TOKEN": token},
        stdin=subprocess.PIPE,  # which closes if we are killed
        start_new_session=True,  # Ctrl-C is ours: Jupyter would ask whether it is meant
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while server.poll() is None and not _answers(port):
            sleep(0.1)
        if server.poll() is None:
            screen.say(f"{name}: {address}\nCtrl-C stops it.")
            if browser:
                webbrowser.open(address)
        code = server.wait()
    except KeyboardInterrupt:
        code = 0
        screen.say("Stopping.")
    finally:
        _stop(server)
    if code:
        raise OSError(f"{name} ended with code {code}")


def allow_root() -> list[str]:
    """What Jupyter's server wants to be told before it runs as root, as in a container."""
    return ["--allow-root"] if getattr(os, "geteuid", lambda: 1)() == 0 else []


def free_port(port: int) -> int:
    """The first port from `port` on that nobody uses."""
    for candidate in range(port, min(port + 100, 65536)):
        with socket.socket() as s, suppress(OSError):
            s.bind(("127.0.0.1", candidate))
            return candidate
    raise OSError(f"no free port from {port} on")


def _answers(port: int) -> bool:
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def _stop(server: subprocess.Popen[bytes]) -> None:
    """End the server, which ends its kernels."""
    if server.poll() is None:
        server.terminate()
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()
