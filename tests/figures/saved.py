"""What notebooks leave in a folder of results, made up."""

import json

import matplotlib
import nbformat
import pandas as pd
from nbformat.v4 import new_markdown_cell, new_notebook

from workbench import figures
from workbench.trials import claims

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

SWEPT = claims.Strip("θ", (("20", False), ("65", True)))
CLAIMS = [
    claims.Verdict("c-1", "filter < sampling", claims.HOLDS, "3.4×"),
    claims.Verdict("c-2", "a & b alike", claims.DIFFERS, "4×", "ours is <denser>"),
    claims.Verdict("c-3", "falls with ε", claims.UNDECIDED, "3 of 5 seeds"),
    claims.Verdict("c-4", "takes minutes", claims.UNTESTABLE, why="not our machine"),
    claims.Verdict("c-5", "is sparse", claims.DEPENDS, strip=SWEPT, page="section 5"),
    claims.Verdict("c-6", "adds up", claims.HOLDS, mark=claims.BY_DEFINITION),
]
ROWS = pd.DataFrame(
    {
        "dataset": ["Trips(1)", "Trips(2)"],
        "seed": [0, 1],
        "seconds": 40.0,
        "value": [0.5, 0.25],
        "truth_public": True,
    }
)


def figure(results, stem, title="A title", fig="draw", rows=ROWS, verdicts=CLAIMS, cells=()):
    command = f"workbench reproduce {stem} --profile quick"
    spec = figures.Description(stem, title, command, id=stem.partition(",")[0])
    if fig == "draw":
        fig, ax = plt.subplots()
        ax.plot([1, 2])
    folder = figures.save(
        fig, rows, spec=spec, profile="quick", results=results, verdicts=verdicts
    )
    plt.close("all")
    notebook(folder, *cells)
    return folder


def notebook(folder, *texts, name=None):
    folder.mkdir(parents=True, exist_ok=True)
    book = new_notebook(cells=[new_markdown_cell(text) for text in texts])
    nbformat.write(book, folder / f"{name or folder.name}.ipynb")


def status(folder, **told):
    told = dict(key="", state="done", seconds=1.5, cell="", error="", files=[]) | told
    (folder / "status.json").write_text(json.dumps(told))
