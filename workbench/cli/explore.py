"""`workbench explore`: the panels as a dashboard, or as one file whose sliders need no kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli import lab, screen, serving


def explore(
    browser: lab.Browser = True,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The first port to try.")] = 8866,
    notebooks: lab.Notebooks = None,
    html: Annotated[
        Path | None,
        typer.Option(
            help="Write one page that can be mailed instead; sliders move over a grid."
        ),
    ] = None,
) -> None:
    """Open the explorer as a dashboard: sliders on every mechanism, no code; Ctrl-C stops it.

    Its noise is simulated and compares with public truths: nothing in it is a release to publish.
    """
    if html is not None:
        return _write_page(html)
    notebook = lab.notebooks_folder(notebooks) / lab.FIRST
    if not notebook.is_file():
        raise FileNotFoundError(f"{notebook}: no such notebook; name its folder")

    def arguments(port: int) -> list[str]:
        return [
            "voila",
            str(notebook),
            "--Voila.ip=127.0.0.1",
            f"--port={port}",
            "--no-browser",
            "--Voila.auto_token=True",
            "--template=workbench",  # which asks no other host
            "--Voila.log_level=WARN",
        ]

    serving.serve("The explorer", port, arguments, "/", notebook.parent.parent, browser)


def _write_page(path: Path) -> None:
    from tqdm import tqdm

    from workbench import widgets

    with tqdm(desc="pictures", disable=None) as bar:

        def update(done: int, of: int) -> None:
            bar.total = of
            bar.update(done - bar.n)

        widgets.share(widgets.all_panels(), path, tell=update)
    screen.say(str(path))
