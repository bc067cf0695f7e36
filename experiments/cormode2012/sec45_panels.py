"""What is drawn of section 4.5."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.cormode2012.data import TRACTS
from experiments.cormode2012.sec45_claims import GEOMETRIC, PAPER, REPLACED
from experiments.cormode2012.shared import ABSOLUTE
from workbench.compiled import pd
from workbench.figures.plots import Panel


def panels(
    rows: pd.DataFrame, names: Sequence[str], epsilon: float, ratio_share: float
) -> list[Panel]:
    """Errors, a panel a table; then ratios against ε, and the prior's share on the first."""
    wanted = []
    for name in names:
        where = {"panel": name, "metric": ABSOLUTE, "epsilon": epsilon}
        wanted.append((name, where, "share", {}))
    if GEOMETRIC in set(rows.panel):
        title = f"{TRACTS}, at {100 * ratio_share:g} %"
        printed = {"printed": PAPER["ratio"]}
        wanted.append((title, {"panel": GEOMETRIC}, "epsilon", printed))
        wanted.append(("both replace one", {"panel": REPLACED}, "epsilon", {}))
    wanted.append((f"prior, {names[0]}", {"panel": "prior"}, "epsilon", {"log": "x"}))
    return [
        Panel(f"({letter}) {title}", where, x, **how)
        for letter, (title, where, x, how) in zip("abcdefg", wanted, strict=False)
    ]
