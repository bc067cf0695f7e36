"""Commands that open pages in the browser (`workbench lab`, `explore` and `bank`), and `init`, which creates
a project folder.
"""

from __future__ import annotations

import atexit
import os
import runpy
import secrets
import shutil
import signal
import socket
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from html import escape
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import Any

from workbench.cli import options, screen
from workbench.compiled import load_nbformat, project_folder, template_folder

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
    """Run a server, `python -m <arguments>`, in this process. When the server answers, print the address of
    its `page` and open this page in the browser.

    The server uses the first free port, beginning with the number `port`. `project` is the folder that
    contains the notebooks' folder. Notebooks import the package `experiments` from there.
    """
    from workbench.estimates.files import socket_folder

    port = free_port(port)
    token = secrets.token_urlsafe(24)
    address = f"http://127.0.0.1:{port}{page}?token={token}"
    for variable, first in (("PYTHONPATH", project), ("JUPYTER_PATH", _TEMPLATES)):
        paths = [str(first), os.environ.get(variable)]
        os.environ[variable] = os.pathsep.join(filter(None, paths))
    os.environ["JUPYTER_TOKEN"] = token  # `ps` would show an argument
    # A port of a kernel shows its outputs to every user of this machine, and a socket in this folder does not.
    os.environ["JUPYTER_RUNTIME_DIR"] = str(socket_folder())

    def announce() -> None:
        while not _answers(port):
            sleep(0.1)
        screen.say(f"{name}: {address}\nCtrl-C stops it.")
        if browser:
            open_page(address)

    Thread(target=announce, daemon=True).start()
    sys.argv = [*arguments, f"--port={port}", "--no-browser", "--KernelManager.transport=ipc"]
    interrupted = Event()

    def interrupt(*caught: Any) -> None:
        interrupted.set()
        signal.default_int_handler(*caught)

    signal.signal(signal.SIGINT, interrupt)
    try:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    except BaseException as e:
        ended = isinstance(e, SystemExit) and not e.code
        # after Ctrl-C, Jupyter may fail to shut down a kernel that has died; kernels end with this process
        if not (ended or interrupted.is_set()):
            raise
    screen.say("Stopping.")
    sys.stdout.flush()
    atexit._run_exitfuncs()
    os._exit(0)  # now: threads of Jupyter may wait for a network that is not there


def open_page(address: str) -> None:
    """Open a page in the browser. The browser gets the name of a file that leads to the page, because `ps`
    shows the browser's arguments to every user of this machine, and the address contains a secret.
    """
    from workbench.estimates.files import process_folder

    page = process_folder() / "open.html"  # only its owner can open this folder
    url = escape(address)
    with open(page, "x", encoding="utf-8", opener=partial(os.open, mode=0o600)) as file:
        file.write(
            '<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0; url={url}"><a href="{url}">Open the page</a>\n'
        )
    webbrowser.open(page.as_uri())


def free_port(port: int) -> int:
    """Return the first free port, beginning with the number `port`."""
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


def lab(
    *, browser: bool = True, port: options.Port = 8888, notebooks: options.Folder = None
) -> None:
    """Open the notebooks in JupyterLab, in the browser.

    Press Ctrl-C to stop the server. The notebooks have no outputs until you run them. Copies with outputs are
    in the results folder.

    Parameters
    ----------
    browser
        Open the page in the browser.
    notebooks
        Folder that contains the notebooks. By default notebooks.
    """
    top = notebooks or project_folder() / "notebooks"
    page = f"/lab/tree/{FIRST}" if (top / FIRST).is_file() else "/lab"
    arguments = [
        "jupyterlab",
        "--ServerApp.ip=127.0.0.1",
        "--log-level=WARN",
        "--ServerApp.port_retries=0",
        "--ServerApp.answer_yes=True",  # when Ctrl-C is pressed
        f"--ServerApp.root_dir={top}",
        "--ContentsManager.pre_save_hook=workbench.figures.notebook.strip",
        # a container's user is root
        *(["--allow-root"] if getattr(os, "geteuid", lambda: 1)() == 0 else []),
    ]
    serve("JupyterLab", port, arguments, page, top.parent, browser)


# Explore


def explore(
    *, browser: bool = True, port: options.Port = 8866, notebooks: options.Folder = None
) -> None:
    """Open a page on which you can try every mechanism.

    The page has sliders for the parameters of a mechanism.

    Press Ctrl-C to stop the server. The page uses public data and simulated noise, so do not publish its
    results as a release.

    Parameters
    ----------
    browser
        Open the page in the browser.
    notebooks
        Folder that contains the notebooks. By default notebooks.
    """
    notebook = (notebooks or project_folder() / "notebooks") / FIRST
    if not notebook.is_file():
        raise FileNotFoundError(f"{notebook}: no such notebook. Name its folder")
    ahead = "--preheat_kernel=True"  # the notebook has run before somebody opens the page
    _serve_voila("The explorer", notebook, port, notebook.parent.parent, browser, ahead)


def _serve_voila(
    name: str, notebook: Path, port: int, project: Path, browser: bool, *more: str
) -> None:
    """Start a server that shows a notebook as a page, without its code."""
    from workbench.estimates.files import socket_folder

    arguments = [
        "voila",
        str(notebook),
        "--Voila.ip=127.0.0.1",
        "--Voila.auto_token=True",
        f"--Voila.connection_dir_root={socket_folder()}",
        "--template=workbench",  # which asks no other host
        "--Voila.log_level=WARN",
        # A page that closes ends its kernel, and has no cookie to say so with. Voila takes no other
        # command, and this one needs the token and the kernel's id, which nobody can guess.
        "--Voila.tornado_settings=disable_check_xsrf=True",
        *more,
    ]
    serve(name, port, arguments, "/", project, browser)


# Publish


def publishing_page(tables: Sequence[Path], source: Path, port: int, browser: bool) -> None:
    """Start a server with the page on which you publish a table of the current folder."""
    from workbench.estimates.files import process_folder
    from workbench.widgets.publishing import State

    names = [str(path.resolve()) for path in tables]
    State(source, Path.cwd(), names)  # refuses a file that is no publication.json
    told = f"{str(source.resolve())!r}, {str(Path.cwd())!r}, {names!r}"
    nbformat = load_nbformat()
    code = (
        f"from workbench.widgets.publishing_page import PublishingPage\nPublishingPage({told})"
    )
    kernel = {"name": "python3", "display_name": "Python 3"}
    metadata = {"kernelspec": kernel, "title": "Publish a table"}
    cells = [nbformat.v4.new_code_cell(code)]
    book = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    notebook = process_folder() / "publish.ipynb"
    notebook.write_text(nbformat.writes(book), encoding="utf-8")
    _serve_voila("Publish a table", notebook, port, notebook.parent, browser)


# Bank


def bank(file: options.File, *, browser: bool = True, port: options.Port = 8876) -> None:
    """Open a page that answers questions from a bank.

    A bank stores noisy answers, for which a budget has paid.

    Press Ctrl-C to stop the server. On the page, you choose attributes and values. The page cannot spend
    budget. It shows the price of a more precise answer.

    Parameters
    ----------
    file
        Budget file that contains the bank. The command does not open the private table.
    browser
        Open the page in the browser.
    """
    from workbench.widgets.bank_page import BankPage

    page = BankPage(file, free_port(port))
    page.view.ask({})  # what is fitted once is fitted now
    screen.say(f"The bank: {page.address}\nCtrl-C stops it.")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if browser:
        open_page(page.address)
    try:
        page.serve_forever()
    except KeyboardInterrupt:
        screen.say("Stopping.")
    finally:
        page.server_close()


# Init

_SKIPPED = shutil.ignore_patterns("results", "__pycache__", ".ipynb_checkpoints")
_IGNORED = "data/raw/\nexperiments/results/\n.ipynb_checkpoints/\n__pycache__/\n"


def init(folder: Path) -> None:
    """Create a project folder with notebooks and figures.

    The folder contains the notebooks, the code of the figures, and a place for data.

    Parameters
    ----------
    folder : DIR
        Folder to create. The folder may exist already, if it is empty.
    """
    target = folder.resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} exists and is not an empty folder. Choose another")
    source = template_folder()
    for name in ("notebooks", "experiments"):
        shutil.copytree(source / name, target / name, ignore=_SKIPPED)
    (target / "data" / "raw").mkdir(parents=True)
    shutil.copyfile(source / "data" / "README.md", target / "data" / "README.md")
    (target / ".gitignore").write_text(_IGNORED)
    screen.say(f"{target}: go there, and try\n  workbench reproduce\n  workbench lab")
