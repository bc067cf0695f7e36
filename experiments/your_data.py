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
    interpolate_log_log,
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
ZONES = [f"zone {k:03}" for k in range(1, 121)]
HOURS = {"from": 0, "to": 23}
DOMAIN = {"home": {"file": "zones.txt"}, "work": {"file": "zones.txt"}, "hour": HOURS}
BOUND = Bound(l0=2, linf=1)
EPSILON = 1.0
SIZE = 7000
BELIEFS = {"density": 0.02, "mean": 20, "spread": 20}  # the last census: 140,000 jobs
QUERIES = (1, 24, 240, 2_880, 28_800)  # an hour, a day of a pair, of ten; out of a zone, of ten
ASKED = {  # by codes, from 0
    "zone 048 to zone 045, from 8 to 9": {"home": {47}, "work": {44}, "hour": {8}},
    "zone 048 to zones 040–049": {"home": {47}, "work": (39, 49)},
    "from zone 048": {"home": {47}},
}

BEST = 3
BELIEVED = "As believed"
CROWDED = "The same counts, crowded together"
COUNT = 100_000  # ranges of one cell; of more cells fewer will do
PLACED = 1  # their seed: that of the data would place them on its cells
WITHIN = 0.1


def example_files() -> Path:
    """A new folder with commutes.csv, a made-up table, and domain.json, the cells there can be."""
    folder = Path(tempfile.mkdtemp(prefix="your-data-"))
    rng = np.random.default_rng(0)
    places = np.arange(len(ZONES))
    hours = np.arange(24)
    homes, works = rng.lognormal(0, 1.5, (2, len(ZONES), 1, 1))
    near = np.exp(-abs(np.subtract.outer(places, places)) / 3)[..., None]
    jobs = homes * works[:, 0] * near * (np.exp(-((hours - 7.5) ** 2) / 4.5) + 0.02)
    jobs = jobs * rng.lognormal(0, 1, jobs.shape)
    jobs = rng.poisson(150_000 * jobs / jobs.sum())
    (folder / "zones.txt").write_text("\n".join(ZONES))
    (folder / "domain.json").write_text(json.dumps(DOMAIN, indent=1))
    domain = Domain.read(folder / "domain.json")
    commutes = domain.frame(np.flatnonzero(jobs)).assign(people=jobs[jobs > 0])
    commutes.to_csv(folder / "commutes.csv", index=False)
    return folder


def read(path: Path) -> pd.DataFrame:
    """The file as a DataFrame: yours may come from anywhere."""
    return pd.read_csv(path)


def example_advice() -> Advice:
    """What to expect, from public numbers alone."""
    domain = Domain.from_dict({"home": ZONES, "work": ZONES, "hour": HOURS})
    return advise(domain, EPSILON, SIZE, bound=BOUND, queries=QUERIES, **BELIEFS)


def sweep(advice: Advice) -> Sweep:
    """The best that `advice` names, on made-up tables of as many cells as its domain.

    There one unit moves one count: ε/l1 gives the noise that ε gives where it moves l1.
    """
    budget = DP(advice.budget.epsilon / advice.bound.l1)
    model = advice.model
    table = dict(m=advice.domain.size, density=model.density, mean=model.mean, std=model.spread)
    ranges = [RandomRanges(q, max(COUNT // q, 5000), PLACED) for q in advice.queries]
    return Sweep(
        datasets=[GaussianSparse(**table), GaussianSparse(**table, placement="skewed")],
        mechanisms=[replace(o.mechanism, budget=budget) for o in advice.ranked[:BEST]],
        metrics=[MeanAbsoluteError(workload) for workload in ranges],
        seeds=20,
    )


def rows(profile: str, store, advice: Advice | None = None) -> pd.DataFrame:
    """One row a trial and query size, with the error that `advice` expects."""
    advice = advice or example_advice()
    rehearsal = sweep(advice) if profile == "paper" else sweep(advice).with_max_seeds(5)
    options = dict(zip(rehearsal.mechanisms, advice.ranked, strict=False))
    laws = []
    for trial in rehearsal.trials():
        laws += [query.error for query in options[trial.mechanism].query_errors]
    frame = name_series(run(rehearsal, store)).assign(expected=laws)
    return frame.assign(
        panel=[CROWDED if "skewed" in text else BELIEVED for text in frame.dataset]
    )


def panels(rows: pd.DataFrame) -> list[Panel]:
    """Error over query size, with what is expected, table by table."""
    laws = []
    for _, errors in rows.groupby("series"):
        law = errors.groupby("query_size").expected.first()
        laws.append(("expected by advise", interpolate_log_log(law.index, law)))
    return [Panel(p, {"panel": p}, "query_size", theory=laws) for p in (BELIEVED, CROWDED)]


def answer_table(release: Release, advice: Advice | None = None) -> pd.DataFrame:
    """What the release answers, its standard errors, and what `advice` expects of as many cells."""
    domain = release.estimate.domain
    queries = Products.of(domain, [*ASKED.values()])
    cells = queries.cells(domain).astype(int)
    answers, errors = release.answer(queries, error=True)
    columns = {"cells": cells, "answer": answers.round(), "±": errors.round()}
    if advice is not None:
        law = predict_errors(
            advice.mechanism, domain, advice.bound, advice.model, cells.tolist()
        )
        columns["off, on average"] = [round(query.error, 1) for query in law.query_errors]
        columns["at worst"] = [round(query.worst) for query in law.query_errors]
    return pd.DataFrame(columns, index=[*ASKED])


def command_lines(advice: Advice) -> tuple[str, str]:
    """The same advice, and an unbiased release, as they are typed in the folder of the files."""
    model = advice.model
    bound = f"{advice.bound.l0},{advice.bound.linf},{advice.bound.l1}"
    numbers = f"--epsilon {advice.budget.epsilon} --size {advice.size} --bound {bound}"
    numbers += f" --density {model.density} --mean {model.mean} --spread {model.spread}"
    numbers += f" --queries {','.join(map(str, advice.queries))}"
    table = f"commutes.csv --domain domain.json --count people --bound {bound}"
    sample = release_options(PrioritySampling(advice.budget, advice.size))
    return (
        f"workbench advise --domain domain.json {numbers}",
        f"workbench release {table} {sample} --out unbiased.parquet",
    )


def run_command(line: str, folder: Path) -> str:
    """A line, and what a terminal in the folder then shows."""
    main = [sys.executable, "-c", "from workbench.cli import main; main()"]
    plain = {name: value for name, value in os.environ.items() if "COLOR" not in name}
    command = main + shlex.split(line)[1:]
    done = subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True)
    return f"$ {line}\n{done.stdout}{done.stderr}"


def _as_expected(rows) -> Finding:
    parts = {}
    for name, errors in rows[rows.panel == BELIEVED].groupby("series", sort=False):
        means = errors.groupby("query_size")[["value", "expected"]].mean()
        ratio = means.value / means.expected
        measured = f"{format_number(ratio.min())}–{format_number(ratio.max())}×"
        parts[name] = Finding(bool((abs(ratio - 1) <= WITHIN).all()), measured)
    return all_of(parts)


def _errs_least(rows) -> Finding:
    parts = {}
    for panel, errors in rows.groupby("panel", sort=False):
        by_seed = errors.groupby(["series", "seed"], sort=False).value
        scores = by_seed.agg(lambda values: np.exp(mean_log_error([*values]))).reset_index()
        best, *others = scores.series.unique()
        means = {name: _mean(scores[scores.series == name]) for name in (best, *others)}
        for name in others:
            part = f"{panel.lower()}, {best} below {name}"
            parts[part] = check_lower(means[best], means[name])
    return all_of(parts)


def _mean(scores: pd.DataFrame) -> pd.DataFrame:
    return confidence_intervals(scores.assign(all=0), "all")


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
