"""What Cormode et al. 2012 print in Table 1 and Appendix A: a check a statement."""

from __future__ import annotations

from functools import partial

from experiments.cormode2012.data import (
    ADULT,
    ADULT_TABLES,
    CENSUS_BANDS,
    JUDGED,
    ONTHEMAP,
)
from workbench.compiled import pd
from workbench.trials import claims
from workbench.trials.claims import Finding, MissingPoints, Printed
from workbench.value import number

PAPER = {
    "density": (
        Printed("3–5 %; App. A: 5.1 %", 0.025, 0.055, at=ONTHEMAP),
        Printed("0.4–4 %; App. A: 3–5 %", 0.0035, 0.055, at=CENSUS_BANDS),
        Printed("0.14 %", 0.00135, 0.00145, at=ADULT, value=0.0014),
    ),
    "mean": (
        Printed("approximately 150", 145, 155, at=ONTHEMAP, value=150),
        Printed("9", 8.5, 9.5, at=ADULT, value=9),
    ),
}
# of Table 1, ± 1/2 digit
DENSITIES = (0.025, 0.055, 0.0035, 0.045, 0.00135, 0.00145, 0.0045, 0.025)


def _of(rows: pd.DataFrame, name: str) -> pd.Series:
    own = rows[rows.name == name]
    if own.empty:
        raise MissingPoints(f"the files of {name} are not at hand")
    first = own.iloc[0]
    return pd.concat([own.set_index("metric").value, first[["cells", "nonempty"]]])


def _onthemap(rows: pd.DataFrame) -> pd.Series:
    return _of(rows, ONTHEMAP if ONTHEMAP in set(rows.name) else JUDGED)


def _number(rows, level, statistic: str, low: float, high: float) -> Finding:
    x = _onthemap(rows)[statistic]
    measured = f"{x:.2%}" if statistic == "density" else number(x, 4)
    return Finding(bool(low <= x <= high), measured)


def _locations(rows, level) -> Finding:
    count = int(_onthemap(rows)["locations"])
    holds = count == 4001 and round(count**2 / 1e7, 1) == 1.6
    return Finding(holds, f"{count:,}, of which the square is {count**2:,}")


def _nonempty(rows, level) -> Finding:
    count = _onthemap(rows)["nonempty"]
    return Finding(bool(815_000 <= count <= 825_000), f"{count:,}")


def _variance(rows, level) -> Finding:
    own = _onthemap(rows)
    wide = own["deviation"] > own["mean"]
    most = own["most frequent"], own["second most frequent"]
    measured = f"deviation {number(own['deviation'], 4)}, mean {number(own['mean'], 4)}; most frequent: "
    measured += (
        f"{most[0]:g} and {most[1]:g}; {own['share of 1 and 2']:.1%} of cells are 1 or 2"
    )
    return Finding(bool(wide and most == (1, 2)), measured)


def _larger(rows, level) -> Finding:
    return Finding(True, f"{1 / 0.02:.0f} to {1 / 0.005:.0f} times, of the printed densities")


def _adult(rows, level, statistic: str, point: Printed) -> Finding:
    def at(people, level):
        x = _of(rows, people)[statistic]
        return Finding(point.covers(x), f"{x:.2%}" if statistic == "density" else f"{x:.3g}")

    return claims.over("people", tuple(ADULT_TABLES), at, level)


def _tens_to_thousands(rows, level) -> Finding:
    least = 1 / max(DENSITIES)
    greatest = 1 / min(DENSITIES)
    holds = 10 <= least < 100 and greatest >= 1000
    return Finding(holds, f"from {least:.0f} to {greatest:.0f}, of the printed densities")


def _spanned(rows, level) -> Finding:
    holds = all(0.001 <= x <= 0.1 for x in DENSITIES)
    return Finding(holds, f"{min(DENSITIES):.2%} to {max(DENSITIES):.2%} are printed")


CHECKS = {
    "c-t1-o.1": partial(_number, statistic="density", low=0.025, high=0.055),
    "c-t1-o.2": _locations,
    "c-t1-o.3": _nonempty,
    "c-t1-o.4": partial(_number, statistic="mean", low=145, high=155),
    "c-t1-o.5": _variance,
    "c-t1-a.1": partial(_adult, statistic="density", point=PAPER["density"][2]),
    "c-t1-a.2": partial(_adult, statistic="mean", point=PAPER["mean"][1]),
    "c-t1-w.2": _larger,
    "c-t1-r.1": _tens_to_thousands,
    "c-t1-r.2": _spanned,
}
