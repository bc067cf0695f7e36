"""`workbench explore`: the panels as a dashboard, or as one file whose sliders need no kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli import lab, screen, serving


def explore(
    browser: Annotated[bool, typer.Option(help="Open it in a browser.")] = True,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The first port to try.")] = 8866,
    notebooks: Annotated[
        Path | None, typer.Option(help="Where.", show_default="notebooks")
    ] = None,
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
        return _page(html)
    top, token = lab.folder(notebooks), serving.token()
    if not (top / lab.FIRST).is_file():
        raise FileNotFoundError(f"{top / lab.FIRST}: no such notebook; name its folder")

    def words(port: int) -> list[str]:
        return [
            *("voila", str(top / lab.FIRST), "--Voila.ip=127.0.0.1", f"--port={port}"),
            *("--no-browser", "--Voila.auto_token=True", "--Voila.log_level=WARN"),
        ]

    serving.serve(
        "The explorer",
        port,
        words,
        lambda port: f"http://127.0.0.1:{port}/?token={token}",
        top=top.parent,
        browser=browser,
        environment={"JUPYTER_TOKEN": token},  # where `ps` does not show it
    )


def _page(path: Path) -> None:
    from tqdm import tqdm

    from workbench import widgets

    with tqdm(desc="pictures", disable=None) as bar:

        def tell(done: int, of: int) -> None:
            bar.total = of
            bar.update(done - bar.n)

        widgets.share(widgets.all_panels(), path, tell=tell)
    screen.say(str(path))
