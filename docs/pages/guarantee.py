"""What the page on guarantees computes: a table of beliefs, and two distributions of a released count."""

from __future__ import annotations

from math import exp
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from docs.pages.pictures import COLOURS
from workbench import ZCDP
from workbench.figures.plots.style import with_style
from workbench.privacy import Receipt, guarantee
from workbench.value import format_number, number

EPSILONS = (0.1, 0.5, 1, 2, 5, 10)
SHOWN = 0.5
COUNTS = np.arange(8, 33)


def write(folder: Path) -> None:
    """Write the table and the pictures."""
    rows = [
        f"| {number(e)} | {format_number(exp(e))} | {percent(e)} | {percent(2 * e)} |"
        for e in EPSILONS
    ]
    head = "| ε | factor e^ε | Ann is in the table, at most | a fact about Ann, at most |"
    (folder / "odds.inc").write_text(
        "\n".join([head, "|---:|---:|---:|---:|", *rows]) + "\n", "utf-8"
    )
    example = f"For example, ρ = 0.1 implies ε = {epsilon_of_rho():.2f} at δ = 10⁻⁶.\n"
    (folder / "rho.inc").write_text(example, "utf-8")
    for mode, colours in COLOURS.items():
        draw(*colours, folder / f"releases-{mode}.svg")


def percent(epsilon: float) -> str:
    """The largest belief after a release, of one that had even odds."""
    belief = 100 / (1 + exp(-epsilon))
    return f"{belief:.1f} %" if belief < 99.95 else "more than 99.9 %"


def epsilon_of_rho(rho: float = 0.1, delta: float = 1e-6) -> float:
    """The ε that a ρ implies at a δ."""
    return guarantee((Receipt("gaussian", ZCDP(rho)),), delta).epsilon


@with_style
def draw(bars: str, dots: str, ink: str, path: Path) -> None:
    """The probabilities of the published count from both tables, by two-sided geometric noise."""
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": path.stem}):
        figure = Figure(figsize=(7, 2.2), facecolor="none")
        axes = figure.subplots()
        axes.set_facecolor("none")
        ratio = np.exp(-SHOWN)
        for truth, colour, who in ((19, bars, "without Ann: 19"), (20, dots, "with Ann: 20")):
            chance = (1 - ratio) / (1 + ratio) * ratio ** np.abs(COUNTS - truth)
            shift = 0.2 if truth == 20 else -0.2
            axes.bar(COUNTS + shift, chance, width=0.4, color=colour, label=who)
        axes.set(xlabel="published count", ylabel="probability")
        axes.tick_params(colors=ink)
        for part in (axes.xaxis.label, axes.yaxis.label, *axes.spines.values()):
            part.set_color(ink)
        axes.legend(frameon=False, labelcolor=ink)
        figure.savefig(path, metadata={"Date": None})
