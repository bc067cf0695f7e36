"""An essay, not a figure of a paper: a table of one's own, from its file to a release.

Words   as expected = the mean error is within 10 % of what `advise` expects, at every query size, of
        every summary that is rehearsed, on a table that is as believed; errs least = the geometric mean
        of its errors over the query sizes is below that of each other, intervals over seeds apart, on
        the table as believed and on one whose cells crowd together.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.answer_bank import refusal as refusal
from workbench import DP, Bound, Domain, Products, RandomRanges, Release, Sweep, run
from workbench.advice import Advice, advise, predict_errors
from workbench.advice.errors import mean_log_error
from workbench.claims import (
    Claim,
    Finding,
    all_of,
    check_lower,
    confidence_intervals,
    format_number,
)
from workbench.datasets import GaussianSparse
from workbench.mechanisms import PrioritySampling
from workbench.metrics import MeanAbsoluteError
from workbench.option_grammar import release_options
from workbench.plots import Panel, name_series

STEM = "02_your_data"
TITLE = "Publishing a table of your own"
PAGE = "no paper"
PAPER: tuple = ()

# Yours to replace: each of these is public, and none is read off the data.
ZONES, HOURS = [f"zone {k:03}" for k in range(1, 121)], {"from": 0, "to": 23}
DOMAIN = {"home": {"file": "zones.txt"}, "work": {"file": "zones.txt"}, "hour": HOURS}
BOUND = Bound(l0=2, linf=1)
EPSILON, SIZE = 1.0, 7000
BELIEFS = {"density": 0.02, "mean": 20, "spread": 20}  # the last census: 140,000 jobs
QUERIES = (1, 24, 240, 2_880, 28_800)  # an hour, a day of a pair, of ten; out of a zone, of ten
ASKED = {  # by codes, from 0
    "zone 048 to zone 045, from 8 to 9": {"home": {47}, "work": {44}, "hour": {8}},
    "zone 048 to zones 040–049": {"home": {47}, "work": (39, 49)},
    "from zone 048": {"home": {47}},
}

BEST = 3
BELIEVED, CROWDED = "As believed", "The same counts, crowded together"
COUNT = 100_000  # ranges of one cell; of more cells fewer will do
PLACED = 1  # their seed: that of the data would place them on its cells
WITHIN = 0.1


def example_files() -> Path:
    """A new folder with commutes.csv, a made-up table, and domain.json, the cells there can be."""
    folder, rng = Path(tempfile.mkdtemp(prefix="your-data-")), np.random.default_rng(0)
    places, hours = np.arange(len(ZONES)), np.arange(24)
    homes, works = rng.lognormal(0, 1.5, (2, len(ZONES), 1, 1))
    near = np.exp(-abs(np.subtract.outer(places, places)) / 3)[..., None]
    jobs = homes * works[:, 0] * near * (np.exp(-((hours - 7.5) ** 2) / 4.5) + 0.02)
    jobs = jobs * rng.lognormal(0, 1, jobs.shape)
    jobs = rng.poisson(150_000 * jobs / jobs.sum())
    (folder / "zones.txt").write_text("\n".join(ZONES))
    (folder / "domain.json").write_text(json.dumps(DOMAIN, indent=1))
    domain = Domain.read(folder / "domain.json")
    told = domain.frame(np.flatnonzero(jobs)).assign(people=jobs[jobs > 0])
    told.to_csv(folder / "commutes.csv", index=False)
    return folder


def read(path: Path) -> pd.DataFrame:
    """The file as a DataFrame: yours may come from anywhere."""
    return pd.read_csv(path)


def example_advice() -> Advice:
    """What to expect, from public numbers alone."""
    zones = {"home": ZONES, "work": ZONES, "hour": HOURS}
    told = BELIEFS | {"bound": BOUND, "queries": QUERIES}
    return advise(Domain.from_dict(zones), EPSILON, SIZE, **told)


def sweep(advice: Advice) -> Sweep:
    """The best that `advice` names, on made-up tables of as many cells as its domain.

    There one unit moves one count: ε/l1 gives the noise that ε gives where it moves l1.
    """
    budget = DP(advice.budget.epsilon / advice.bound.l1)
    model = advice.model
    told = dict(m=advice.domain.size, density=model.density, mean=model.mean, std=model.spread)
    return Sweep(
        datasets=[GaussianSparse(**told), GaussianSparse(**told, placement="skewed")],
        mechanisms=[replace(o.mechanism, budget=budget) for o in advice.ranked[:BEST]],
        metrics=[
            MeanAbsoluteError(RandomRanges(q, max(COUNT // q, 5000), PLACED))
            for q in advice.queries
        ],
        seeds=20,
    )


def rows(profile: str, store, advice: Advice | None = None) -> pd.DataFrame:
    """One row a trial and query size, with the error that `advice` expects."""
    advice = advice or example_advice()
    wanted = sweep(advice) if profile == "paper" else sweep(advice).with_max_seeds(5)
    options = dict(zip(wanted.mechanisms, advice.ranked, strict=False))
    laws = [
        off.error for trial in wanted.trials() for off in options[trial.mechanism].query_errors
    ]
    found = name_series(run(wanted, store)).assign(expected=laws)
    panel = [CROWDED if "skewed" in text else BELIEVED for text in found.dataset]
    return found.assign(panel=panel)


def panels(rows: pd.DataFrame) -> list[Panel]:
    """Error over query size, with what is expected, table by table."""
    laws = [("expected by advise", _law(some)) for _, some in rows.groupby("series")]
    return [Panel(p, {"panel": p}, "query_size", theory=laws) for p in (BELIEVED, CROWDED)]


def _law(rows: pd.DataFrame) -> Callable:
    """Expected errors, and straight lines between them on logarithmic axes."""
    errors = np.log(rows.groupby("query_size").expected.first())
    told = errors.index.to_numpy(float), errors.to_numpy()
    return lambda x: np.exp(np.interp(np.log(x), np.log(told[0]), told[1], np.nan, np.nan))


def answer_table(release: Release, advice: Advice | None = None) -> pd.DataFrame:
    """What the release answers, its standard errors, and what `advice` expects of as many cells."""
    domain = release.estimate.domain
    asked = Products.of(domain, [*ASKED.values()])
    cells = asked.cells(domain).astype(int)
    answers, errors = release.answer(asked, error=True)
    found = {"cells": cells, "answer": answers.round(), "±": errors.round()}
    if advice is not None:
        law = predict_errors(
            advice.mechanism, domain, advice.bound, advice.model, cells.tolist()
        )
        found |= {"off, on average": [round(off.error, 1) for off in law.query_errors]}
        found |= {"at worst": [round(off.worst) for off in law.query_errors]}
    return pd.DataFrame(found, index=[*ASKED])


def command_lines(advice: Advice) -> tuple[str, str]:
    """The same advice, and an unbiased release, as they are typed in the folder of the files."""
    model, bound = advice.model, f"{advice.bound.l0},{advice.bound.linf},{advice.bound.l1}"
    asked = f"--epsilon {advice.budget.epsilon} --size {advice.size} --bound {bound}"
    asked += f" --density {model.density} --mean {model.mean} --spread {model.spread}"
    asked += f" --queries {','.join(map(str, advice.queries))}"
    table = f"commutes.csv --domain domain.json --count people --bound {bound}"
    sample = release_options(PrioritySampling(advice.budget, advice.size))
    return (
        f"workbench advise --domain domain.json {asked}",
        f"workbench release {table} {sample} --out unbiased.parquet",
    )


def run_command(line: str, folder: Path) -> str:
    """A line, and what a terminal in the folder then shows."""
    main = [sys.executable, "-c", "from workbench.cli import main; main()"]
    done = subprocess.run(
        main + shlex.split(line)[1:],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if "COLOR" not in k},
        capture_output=True,
        text=True,
    )
    return f"$ {line}\n{done.stdout}{done.stderr}"


def _as_expected(rows) -> Finding:
    parts = {}
    for name, some in rows[rows.panel == BELIEVED].groupby("series", sort=False):
        means = some.groupby("query_size")[["value", "expected"]].mean()
        ratio = means.value / means.expected
        words = f"{format_number(ratio.min())}–{format_number(ratio.max())}×"
        parts[name] = Finding(bool((abs(ratio - 1) <= WITHIN).all()), words)
    return all_of(parts)


def _errs_least(rows) -> Finding:
    parts = {}
    for panel, some in rows.groupby("panel", sort=False):
        by = some.groupby(["series", "seed"], sort=False).value
        means = by.agg(lambda errors: np.exp(mean_log_error([*errors]))).reset_index()
        best, *others = (
            (name, s.assign(all=0)) for name, s in means.groupby("series", sort=False)
        )
        for name, other in others:
            found = check_lower(
                confidence_intervals(best[1], "all"), confidence_intervals(other, "all")
            )
            parts[f"{panel.lower()}, {best[0]} below {name}"] = found
    return all_of(parts)


CLAIMS = (
    Claim("own-1", "What advise expects is what is measured.", _as_expected),
    Claim(
        "own-2",
        "The summary that advise recommends errs least.",
        _errs_least,
        "It does where cells lie as believed, at random places. Where they crowd together, nodes of "
        "the dyadic tree are full or empty: a filter of nodes loses little of long ranges then, and "
        "is as good over all sizes.",
    ),
)
