"""`workbench lab`: JupyterLab in the notebooks' folder."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Annotated

import typer

from workbench.cli import screen


def lab(
    browser: Annotated[bool, typer.Option(help="Open it in a browser.")] = True,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The first port to try.")] = 8888,
    notebooks: Annotated[
        Path | None, typer.Option(help="Where.", show_default="notebooks")
    ] = None,
) -> None:
    """Open JupyterLab on the notebooks; Ctrl-C stops it."""
    from workbench.reproduce import root

    top = (notebooks or root() / "notebooks").resolve()
    if not top.is_dir():
        raise FileNotFoundError(f"{top}: no such folder; name one with --notebooks")
    port, token = _free(port), secrets.token_urlsafe(24)
    address = f"http://127.0.0.1:{port}/lab?token={token}"
    paths = [str(top.parent), os.environ.get("PYTHONPATH", "")]  # for `import experiments`
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyterlab", "--ServerApp.ip=127.0.0.1"),
            *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
            *(f"--ServerApp.root_dir={top}", "--log-level=WARN"),
            *([] if browser else ["--no-browser"]),
            *(["--allow-root"] if getattr(os, "geteuid", lambda: 1)() == 0 else []),
        ],
        env=os.environ
        | {"JUPYTER_TOKEN": token, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is ours: Jupyter would ask whether it is meant
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while server.poll() is None and not _answers(port):
            sleep(0.1)
        if server.poll() is None:
            screen.say(f"JupyterLab: {address}\nCtrl-C stops it.")
        code = server.wait()
    except KeyboardInterrupt:
        code = 0
        screen.say("Stopping; notebooks are saved by JupyterLab as you work.")
    finally:
        _stop(server)
    if code:
        raise OSError(f"JupyterLab ended with code {code}")


def _free(port: int) -> int:
    """The first port from `port` on that nobody uses."""
    for candidate in range(port, min(port + 100, 65536)):
        with socket.socket() as s, suppress(OSError):
            s.bind(("127.0.0.1", candidate))
            return candidate
    raise OSError(f"no free port from {port} on")


def _answers(port: int) -> bool:
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def _stop(server: subprocess.Popen) -> None:
    """End the server, which ends its kernels."""
    if server.poll() is None:
        server.terminate()
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()
