"""A real browser, and servers as users start them."""

import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
PATIENCE = 60_000  # ms


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM:
        pytest.skip("chromium is not installed")
    with sync.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


def outside(asked):
    """The requests that left this machine."""
    hosts = ((url, urlsplit(url).hostname) for url in asked)
    return [url for url, host in hosts if host not in (None, "127.0.0.1")]


@pytest.fixture
def opened(browser):
    """A page on which nothing goes wrong. No request of any of its frames leaves this machine."""
    context = recorded(browser)
    wrong = []
    context.pages[0].on("pageerror", lambda error: wrong.append(str(error)))
    yield context.pages[0]
    context.close()
    assert wrong == [] and outside(context.asked) == []


def recorded(browser):
    """A context with a page, and the addresses of all requests and sockets of its pages."""
    context = browser.new_context(viewport=dict(width=1280, height=900))
    context.asked = []
    context.on("request", lambda request: context.asked.append(request.url))
    context.on(
        "page",
        lambda page: page.on("websocket", lambda socket: context.asked.append(socket.url)),
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    return context


@contextmanager
def served(command, folder, notebooks, port):
    """A server on this machine, as users start it; Ctrl-C must end it, and its kernels."""
    from os import environ

    thrown = {f"JUPYTER_{name}_DIR": str(folder / name) for name in ("CONFIG", "RUNTIME")}
    process = subprocess.Popen(
        [Path(sys.executable).with_name("workbench"), command, "--no-browser"]
        + ["--port", str(port), "--notebooks", str(notebooks)],
        stdout=subprocess.PIPE,
        stderr=(folder / "server.log").open("w"),
        text=True,
        cwd=folder,
        env=environ | thrown | {"PYTHONPATH": str(ROOT)},
    )
    try:
        yield re.search(
            r"http://127\.0\.0\.1:\d+/\S*token=\S+", process.stdout.readline()
        ).group()
        children = psutil.Process(process.pid).children(recursive=True)
        kernels = [child for child in children if "ipykernel_launcher" in child.cmdline()]
        ports = [c.laddr for kernel in kernels for c in kernel.net_connections("inet")]
        # Each kernel takes prints of its processes on one port. A port for outputs would be one more.
        assert len(ports) <= len(kernels)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=30)
        logged = (folder / "server.log").read_text()
        assert process.returncode == 0 and "Stopping" in said, logged[-4000:]
    finally:
        process.terminate()  # which ends the server and its kernels
        process.wait(30)
