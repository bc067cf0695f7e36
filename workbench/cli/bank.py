"""`workbench bank`: a page for whoever asks, of answers that a session has paid for."""

from __future__ import annotations

import signal
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from workbench.cli import lab, screen, serving


def bank(
    file: Annotated[Path, typer.Argument(help="A session's file; its table is not opened.")],
    browser: lab.Browser = True,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The first port to try.")] = 8876,
) -> None:
    """Serve a page that answers questions by label from a session's bank, for nothing; Ctrl-C stops it.

    It cannot spend: what was paid for answers. It says what a better answer would cost.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such session")  # said before a page is loaded

    from workbench.widgets.bank_page import BankPage

    page = BankPage(file, serving.free_port(port))
    page.html()  # what is fitted once is fitted now
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
