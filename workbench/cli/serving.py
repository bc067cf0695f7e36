"""`workbench lab`, `explore`, `bank` and `init`: servers on this machine, and a project of your own."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Annotated

import typer

from workbench.cli import screen

# Serving

_TEMPLATES = Path(__file__).with_name("jupyter")


def serve(
    name: str,
    port: int,
    arguments: Sequence[str],
    page: str,
    project: Path,
    browser: bool,
) -> None:
    """Run `python -m <arguments>`, which serve at a port, say and open its `page`, and wait.

    `project` is the folder above the notebooks, whose `experiments` they import.
    """
    token = secrets.token_urlsafe(24)
    address = f"http://127.0.0.1:{port}{page}?token={token}"
    paths = {
        name: os.pathsep.join(filter(None, [str(first), os.environ.get(name, "")]))
        for name, first in (("PYTHONPATH", project), ("JUPYTER_PATH", _TEMPLATES))
    }
    server = subprocess.Popen(
        [sys.executable, "-m", "workbench.cli.attached", *arguments],
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
        if server.poll() is None:
            server.terminate()  # which ends its kernels
            try:
                server.wait(15)
            except subprocess.TimeoutExpired:
                server.kill()
    if code:
        raise OSError(f"{name} ended with code {code}")


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


# Lab

FIRST = "01_explore.ipynb"
Browser = Annotated[bool, typer.Option(help="Open the page in a browser.")]
Notebooks = Annotated[
    Path | None, typer.Option(help="Folder with the notebooks.", show_default="notebooks")
]


def lab(
    browser: Browser = True,
    port: Annotated[int, typer.Option(min=1, max=65535, help="First port to try.")] = 8888,
    notebooks: Notebooks = None,
) -> None:
    """Open JupyterLab with the notebooks.

    Press Ctrl-C to stop it. Notebooks are saved without outputs. Executed copies are in the results folder.
    """
    top = notebooks_folder(notebooks)
    page = f"/lab/tree/{FIRST}" if (top / FIRST).is_file() else "/lab"

    port = free_port(port)
    arguments = [
        "jupyterlab",
        "--ServerApp.ip=127.0.0.1",
        "--no-browser",
        "--log-level=WARN",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={top}",
        "--ContentsManager.pre_save_hook=workbench.figures.notebook.strip",
        *(
            ["--allow-root"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
        ),  # in a container
    ]

    serve("JupyterLab", port, arguments, page, top.parent, browser)


def notebooks_folder(notebooks: Path | None) -> Path:
    """Where the notebooks are; a FileNotFoundError if there is no such folder."""
    if notebooks is None:
        from workbench.compiled import project_folder

        notebooks = project_folder() / "notebooks"
    notebooks = notebooks.resolve()
    if not notebooks.is_dir():
        raise FileNotFoundError(f"{notebooks}: no such folder; name one with --notebooks")
    return notebooks


# Explore


def explore(
    browser: Browser = True,
    port: Annotated[int, typer.Option(min=1, max=65535, help="First port to try.")] = 8866,
    notebooks: Notebooks = None,
) -> None:
    """Open a page with sliders for every mechanism.

    Press Ctrl-C to stop it. Noise is simulated on public data, so nothing on the page is a release to publish.
    """
    notebook = notebooks_folder(notebooks) / FIRST
    if not notebook.is_file():
        raise FileNotFoundError(f"{notebook}: no such notebook; name its folder")

    _serve_voila("The explorer", notebook, port, notebook.parent.parent, browser)


def _serve_voila(name: str, notebook: Path, port: int, project: Path, browser: bool) -> None:
    """Serve one notebook as a page without its code."""
    port = free_port(port)
    arguments = [
        "voila",
        str(notebook),
        "--Voila.ip=127.0.0.1",
        f"--port={port}",
        "--no-browser",
        "--Voila.auto_token=True",
        "--template=workbench",  # which asks no other host
        "--Voila.log_level=WARN",
    ]
    serve(name, port, arguments, "/", project, browser)


# Publish


def publishing_page(tables: Sequence[Path], source: Path, port: int, browser: bool) -> None:
    """Serve the page that publishes a table of the current folder."""
    from workbench.compiled import load_nbformat
    from workbench.estimates.files import process_folder
    from workbench.widgets.publishing import State

    names = [str(path.resolve()) for path in tables]
    State(source, Path.cwd(), names)  # refuses a file that is no publication.json
    told = f"{str(source.resolve())!r}, {str(Path.cwd())!r}, {names!r}"
    nbformat = load_nbformat()
    code = (
        f"from workbench.widgets.publishing_page import PublishingPage\nPublishingPage({told})"
    )
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    book.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "title": "Publish a table",
    }
    notebook = process_folder() / "publish.ipynb"
    notebook.write_text(nbformat.writes(book), encoding="utf-8")
    _serve_voila("Publish a table", notebook, port, notebook.parent, browser)


# Bank


def bank(
    file: Annotated[
        Path,
        typer.Argument(help="Budget file with a bank of answers. Its table is not opened."),
    ],
    browser: Browser = True,
    port: Annotated[int, typer.Option(min=1, max=65535, help="First port to try.")] = 8876,
) -> None:
    """Serve a page that answers questions from a bank of paid answers.

    Press Ctrl-C to stop it. Visitors choose attributes and values. The page cannot spend, and shows
    what a better answer would cost.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such session")  # said before a page is loaded

    from workbench.widgets import BankPage

    page = BankPage(file, free_port(port))
    page.html({})  # what is fitted once is fitted now
    screen.say(f"The bank: {page.address}\nCtrl-C stops it.")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if browser:
        webbrowser.open(page.address)
    try:
        page.serve()
    except KeyboardInterrupt:
        screen.say("Stopping.")
    finally:
        page.server.server_close()


# Init

_SKIPPED = shutil.ignore_patterns("results", "__pycache__", ".ipynb_checkpoints")
_IGNORED = "data/raw/\nexperiments/results/\n.ipynb_checkpoints/\n__pycache__/\n"


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder to create, or an empty one.")
    ],
) -> None:
    """Create a project folder with notebooks, figures and a place for data."""
    from workbench.compiled import template_folder

    target = folder.resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} is there already and is not an empty folder")
    source = template_folder()
    for name in ("notebooks", "experiments"):
        shutil.copytree(source / name, target / name, ignore=_SKIPPED)
    (target / "data" / "raw").mkdir(parents=True)
    shutil.copyfile(source / "data" / "README.md", target / "data" / "README.md")
    (target / ".gitignore").write_text(_IGNORED)
    screen.say(f"{target}: go there, and try\n  workbench reproduce\n  workbench lab")
