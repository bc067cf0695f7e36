"""Notebook about publishing a table of your own, from its file to a release. It is not a figure of a paper.

Words   A summary has the smallest error if the geometric mean of its errors over the query sizes is below
        that of each other summary, with separate confidence intervals over seeds. This must hold on a
        generated table that agrees with your beliefs, and on one whose non-empty cells are crowded together.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.answer_bank import refusal
from workbench import DP, Beliefs, Bound, Domain, Ranges, Release, SparseTable, Sweep
from workbench.compiled import pd
from workbench.datasets import GaussianSparse
from workbench.estimates.files import process_folder
from workbench.figures import Figure
from workbench.figures.fields import epsilon, epsilons, number, seeds, whole
from workbench.figures.plots import Panel
from workbench.inference import refilter
from workbench.mechanisms import PrioritySampling
from workbench.mechanisms.options import release_options
from workbench.mechanisms.protocol import series_name
from workbench.owner.advice import Advice, Row, advise
from workbench.queries import labelled_queries
from workbench.spaces.domain import states_public_truth
from workbench.trials.claims import Claim, Finding, all_of, check_lower, paired_ratios
from workbench.trials.metrics import MeanAbsoluteError
from workbench.value import parameter, value

ZONES = [f"zone {k:03}" for k in range(1, 121)]
HOURS = {"from": 0, "to": 23}
DOMAIN = {"home": {"file": "zones.txt"}, "work": {"file": "zones.txt"}, "hour": HOURS}
PEOPLE = "people"
ASKED = (
    'home="zone 048" & work="zone 045" & hour=8',
    'home="zone 048" & work="zone 040".."zone 049"',
    'home="zone 048"',
)
BELIEVED = "As believed"
CROWDED = "The same counts, crowded together"
COUNT = 2000  # ranges of each size
SECONDS = 60.0  # enough for every candidate, so that advice does not depend on the machine

_advise = lru_cache(maxsize=4)(advise)  # sweeps, rows, panels and verdicts ask for the same


# A table of one's own: its files or the example's, what may be compared with it, its command lines.


@dataclass(frozen=True)
class Files:
    """Paths of a table and its domain, the name of the column of counts, and a folder for results."""

    folder: Path
    table: Path
    domain: Path
    count: str | None

    def typed(self, path: Path) -> str:
        """Return a path as you would type it in the folder of the files."""
        return str(path.relative_to(self.folder) if self.folder in path.parents else path)


def example_domain() -> Domain:
    """Return a domain of homes, workplaces and hours of leaving."""
    return Domain.from_dict({"home": ZONES, "work": ZONES, "hour": HOURS})


def example_files() -> Files:
    """Create a folder with `commutes.csv`, a synthetic table, and `domain.json`, its possible cells. Return
    their paths.
    """
    folder = process_folder()
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
    commutes = example_domain().frame(np.flatnonzero(jobs)).assign(people=jobs[jobs > 0])
    commutes.to_csv(folder / "commutes.csv", index=False)
    return Files(folder, folder / "commutes.csv", folder / "domain.json", PEOPLE)


def bound_field() -> Any:
    """Return the declaration of the field `bound`, the most that one unit adds to the counts."""
    need = "need Bound(l0, linf), how far one unit moves the counts"
    return parameter(
        check=lambda x: None if isinstance(x, Bound) else need, doc="how far one unit moves it"
    )


@value
class PublicTable:
    """Dataset for a table of your own whose truth is public. It can be loaded only if the domain's file
    states this.
    """

    path: str
    domain_file: str
    bound: Bound = bound_field()
    count: str | None = None

    @property
    def truth_public(self) -> bool:
        """Whether the domain's file states that the truth is public."""
        return states_public_truth(self.domain_file)

    def load(self) -> SparseTable:
        """Return the table. If its truth is private, a ValueError is raised."""
        if not self.truth_public:
            raise ValueError(
                f'{self.domain_file} does not state "truth_public": true: errors against this table '
                "would publish it. Sweep over a generated one"
            )
        domain = Domain.read(self.domain_file)
        return SparseTable.read(
            self.path, domain, self.bound, count=self.count, truth_public=True
        )


@value
class BelievedTable:
    """Generated table that agrees with your beliefs about your own table, with the same bound."""

    dataset: GaussianSparse
    bound: Bound = bound_field()
    truth_public = True

    def load(self) -> SparseTable:
        """Return the table."""
        table = self.dataset.load()
        return SparseTable(table.domain, table.keys, table.counts, self.bound, True)


def usual_queries(domain: Domain) -> tuple[str, ...]:
    """Return texts of example queries: a cell in the middle of the domain, and sums over the last
    attributes.
    """
    middle = domain.frame(domain.keys(np.array([domain.shape]) // 2))
    parts = [f'"{attribute}"="{middle[attribute][0]}"' for attribute in domain.attributes]
    return tuple(" & ".join(parts[:k]) for k in range(len(parts), 0, -1))


def command_lines(advice: Advice, files: Files) -> tuple[str, str]:
    """Return two commands, as you would type them in the folder of the files. The first prints the same
    advice, and the second makes an unbiased release.
    """
    beliefs = advice.beliefs
    bound = f"{beliefs.bound.l0},{beliefs.bound.linf},{beliefs.bound.l1}"
    ranges = [kind.removeprefix("range of ") for kind in advice.truths if "range" in kind]
    sizes = ",".join(size.replace(",", "") for size in ranges)
    numbers = f"--epsilon {advice.epsilon} --size {advice.size} --bound {bound}"
    numbers += f" --records {round(beliefs.records)} --cells {beliefs.cells}"
    numbers += f" --spread {beliefs.spread} --queries {sizes}"
    domain = f"--domain {shlex.quote(files.typed(files.domain))}"
    table = (
        f"{shlex.quote(files.typed(files.table))} {domain} --bound {bound} --unit 'a person'"
    )
    if files.count:
        table += f" --count {shlex.quote(files.count)}"
    sample = release_options(PrioritySampling(DP(advice.epsilon), advice.size))
    return (
        f"workbench advise {domain} {numbers}",
        f"workbench release {table} {sample} --out unbiased.parquet",
    )


def run_command(line: str, folder: Path) -> str:
    """Run a command in a folder, and return it with the text that a terminal would show."""
    main = [sys.executable, "-c", "from workbench.cli import main; main()"]
    plain = {name: value for name, value in os.environ.items() if "COLOR" not in name}
    command = main + shlex.split(line)[1:]
    done = subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True)
    return f"$ {line}\n{done.stdout}{done.stderr}"


def cut_again(release: Release) -> Release:
    """Return the release with a threshold that is 2.5 times as high. If the release has no threshold, return
    it unchanged.
    """
    theta = getattr(release.estimate, "theta", 0)
    if not theta:
        return release
    cut = refilter(release.estimate, 2.5 * theta)
    return replace(release, estimate=cut, ledger=tuple(release.ledger))


def text_field(need: str, doc: str, *, many: bool = False) -> Any:
    """Return the declaration of an optional field that contains a text, or a list of texts."""

    def wrong(x: Any) -> str | None:
        return None if isinstance(x, str) and x else f"need a {need}"

    return parameter(None, check=wrong, doc=doc, many=many)


@value
class RangesAtPeople:
    """Range queries that contain the cell of a random record, at a random position in the range."""

    dataset: GaussianSparse
    size: int
    count: int = COUNT

    def on(self, domain: Domain) -> Ranges:
        """Return the ranges on a domain."""
        table = self.dataset.load()
        rng = np.random.default_rng(0)
        keys = rng.choice(table.keys, self.count, p=table.counts / table.total)
        lo = keys - rng.integers(0, self.size, self.count)
        lo = np.clip(lo, 0, domain.size - self.size)
        return Ranges(lo, lo + self.size)


def errs_least(rows: pd.DataFrame, level: float) -> Finding:
    """Check whether the recommended summary has the smallest mean logarithm of errors over all query sizes,
    on both tables.
    """
    parts = {}
    for panel, errors in rows.groupby("panel", sort=False):
        by_seed = errors.groupby(["series", "seed"], sort=False).value
        scores = by_seed.agg(lambda values: np.exp(np.log(values + 0.01).mean())).reset_index()
        best, *others = scores.series.unique()
        for name in others:
            ratio = paired_ratios(scores.assign(panel=panel), best, name, "panel")
            parts[f"{panel.lower()}, {best} below {name}"] = partial(check_lower, ratio)
    return all_of(parts, level)


CLAIMS = (Claim.of_one("own-2", "The summary that advise recommends errs least.", errs_least),)


@value
class YourData(Figure):
    """Advice for publishing a table, and a test of this advice on generated tables."""

    id = "02_your_data"
    title = "Publishing a table of your own"
    page = "no paper"
    quick = {"seeds": 5}
    claims = CLAIMS
    usual = "the example's setting"
    command_lines = staticmethod(command_lines)
    run_command = staticmethod(run_command)
    refusal = staticmethod(refusal)
    cut_again = staticmethod(cut_again)

    table: str | None = text_field("path", "your table, CSV or Parquet (none: simulated)")
    domain_file: str | None = text_field("path", "possible cells, as JSON")
    count: str | None = text_field("name", "column of counts (none: each row counts 1)")
    l0: int = whole(2, "largest number of cells per unit", unit="cells")
    linf: float = number(1, "largest count of one unit in a cell", strict=True)
    epsilon: float = epsilon(1.0)
    size: int = whole(7000, "approximate number of released cells", unit="cells")
    density: float = number(0.02, "belief: share of non-empty cells", 0, 1, strict=True)
    mean: float = number(20, "belief: mean of their counts", unit="counts")  # the last census
    spread: float = number(20, "belief: standard deviation of their counts", unit="counts")
    query_sizes: tuple[int, ...] = whole(
        (1, 24, 240, 2_880, 28_800), "lengths of ranges that matter to you", unit="cells"
    )
    asked: tuple[str, ...] | None = text_field(
        'query: home="zone 048" & hour=8..10',
        "queries to the release (none: examples)",
        many=True,
    )
    best: int = whole(3, "number of summaries to simulate")
    epsilons: tuple[float, ...] = epsilons((0.5, 1.0, 2.0), "ε of the sweep at the end")
    seeds: int = seeds(20)

    def files(self) -> Files:
        """Return the paths of your files, or of the example's files, with a new folder for results."""
        self._refuse_half()
        if self.table is None:
            return example_files()
        table, domain = Path(self.table), Path(self.domain_file)
        return Files(process_folder(), table.resolve(), domain.resolve(), self.count)

    def bound(self) -> Bound:
        """Return the bound, the most that one unit adds to the table."""
        return Bound(self.l0, self.linf)

    def domain(self) -> Domain:
        """Return the domain, the list of all possible cells."""
        self._refuse_half()
        return example_domain() if self.table is None else Domain.read(self.domain_file)

    def _refuse_half(self) -> None:
        if (self.table is None) != (self.domain_file is None):
            raise ValueError(
                f"table = {self.table!r} and domain_file = {self.domain_file!r}: need both, or neither"
            )

    def beliefs(self) -> dict[str, float]:
        """Return your beliefs about the counts. They are public, and must not be computed from the table."""
        return {"density": self.density, "mean": self.mean, "spread": self.spread}

    def sizes(self) -> tuple[int, ...]:
        """Return the lengths of ranges that fit the domain."""
        size = self.domain().size
        return tuple(query for query in self.query_sizes if query <= size) or (1,)

    def advice(self) -> Advice:
        """Return the advice, with errors that are simulated from public numbers alone."""
        beliefs = Beliefs.of_counts(self.domain(), **self.beliefs(), bound=self.bound())
        how = dict(size=self.size, queries=self.sizes(), seconds=SECONDS)
        return _advise(beliefs, self.epsilon, **how)

    def rehearsed(self) -> list[Row]:
        """Return the best setting of each of the best mechanisms whose releases are not much larger than the
        requested size.
        """
        best: dict[str, Row] = {}
        for row in self.advice().rows:
            if row.cells <= 2 * self.size:
                best.setdefault(series_name(row.mechanism), row)
        return [*best.values()][: self.best]

    def generated(self, placement: str = "uniform") -> GaussianSparse:
        """Return a synthetic table with the same number of cells that agrees with your beliefs. In this
        table, one unit changes one count by 1.
        """
        counts = dict(mean=self.mean, std=self.spread, placement=placement)
        return GaussianSparse(m=self.domain().size, density=self.density, **counts)

    def comparable_table(self) -> PublicTable | BelievedTable:
        """Return your table if its domain states that the truth is public. Otherwise return a generated
        table.
        """
        if self.table is None or not states_public_truth(self.domain_file):
            return BelievedTable(self.generated(), self.bound())
        return PublicTable(self.table, self.domain_file, self.bound(), self.count)

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs of the recommended mechanisms on two generated tables.

        The mechanisms spend ε/l1, which gives the same noise as ε does if one unit changes counts by l1 in
        total.
        """
        budget = DP(self.epsilon / self.bound().l1)
        mechanisms = [replace(row.mechanism, budget=budget) for row in self.rehearsed()]
        tables = {BELIEVED: self.generated(), CROWDED: self.generated("skewed")}
        sweeps = {}
        for name, table in tables.items():
            metrics = [MeanAbsoluteError(RangesAtPeople(table, size)) for size in self.sizes()]
            sweeps[name] = Sweep([table], mechanisms, metrics, self.seeds)
        return sweeps

    height = 2.3

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return one panel per table, with errors by query size."""
        return [Panel(p, {"panel": p}, "query_size") for p in (BELIEVED, CROWDED)]

    def answer_table(self, release: Release, advice: Advice | None = None) -> pd.DataFrame:
        """Return a table with the answers of a release, their standard errors, and the errors that `advice`
        simulates for as many cells.
        """
        domain = release.estimate.domain
        asked = self.asked or (ASKED if self.table is None else usual_queries(domain))
        queries = labelled_queries(domain, asked)
        cells = queries.cells(domain).astype(int)
        answers, errors = release.answer(queries, error=True)
        columns = {"cells": cells, "answer": answers.round(), "±": errors.round()}
        if advice is not None:
            errors = [advice.rows[0].errors[f"range of {size:,}"] for size in self.sizes()]
            by_size = np.interp(np.log(cells), np.log(self.sizes()), np.log(errors))
            columns["off, simulated"] = [round(x, 1) for x in np.exp(by_size)]
        return pd.DataFrame(columns, index=[*asked])
