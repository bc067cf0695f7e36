"""A table of one's own: its files or the example's, what may be compared with it, its command lines."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from workbench import DP, Bound, Domain, Release, SparseTable
from workbench.datasets import GaussianSparse
from workbench.estimates.files import process_folder
from workbench.inference import refilter
from workbench.mechanisms import PrioritySampling
from workbench.mechanisms.options import release_options
from workbench.owner.advice import Advice
from workbench.spaces.domain import states_public_truth
from workbench.value import parameter, value

ZONES = [f"zone {k:03}" for k in range(1, 121)]
HOURS = {"from": 0, "to": 23}
DOMAIN = {"home": {"file": "zones.txt"}, "work": {"file": "zones.txt"}, "hour": HOURS}
COUNT = "people"
ASKED = (
    "home=zone 048 & work=zone 045 & hour=8",
    "home=zone 048 & work=zone 040..zone 049",
    "home=zone 048",
)


@dataclass(frozen=True)
class Files:
    """A table, its domain, the column of its counts, and a folder for what is made of them."""

    folder: Path
    table: Path
    domain: Path
    count: str | None

    def typed(self, path: Path) -> str:
        """As it is typed in the folder."""
        return str(path.relative_to(self.folder) if self.folder in path.parents else path)


def example_domain() -> Domain:
    """Homes, workplaces and hours of leaving."""
    return Domain.from_dict({"home": ZONES, "work": ZONES, "hour": HOURS})


def new_folder() -> Path:
    """A new folder, which is gone when this process is."""
    return process_folder()


def example_files() -> Files:
    """A new folder with commutes.csv, a made-up table, and domain.json, the cells there can be."""
    folder = new_folder()
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
    return Files(folder, folder / "commutes.csv", folder / "domain.json", COUNT)


def bound_field() -> Any:
    """The field that says how far one unit moves the counts."""
    need = "need Bound(l0, linf), how far one unit moves the counts"
    return parameter(
        check=lambda x: None if isinstance(x, Bound) else need, doc="how far one unit moves it"
    )


@value
class PublicTable:
    """A table of one's own whose domain's file states that its truth is public: nothing else loads."""

    path: str
    domain_file: str
    bound: Bound = bound_field()
    count: str | None = None

    @property
    def truth_public(self) -> bool:
        """What the domain's file states."""
        return states_public_truth(self.domain_file)

    def load(self) -> SparseTable:
        """The table; a ValueError if its truth is private."""
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
    """A generated table as one's own is believed to be, under the same bound."""

    dataset: GaussianSparse
    bound: Bound = bound_field()
    truth_public = True

    def load(self) -> SparseTable:
        """The table."""
        table = self.dataset.load()
        return SparseTable(table.domain, table.keys, table.counts, self.bound, True)


def asked_query(domain: Domain, text: str) -> dict[str, tuple[int, int]]:
    """A query as it is typed: attributes with a label, or labels from … to …

    >>> asked_query(Domain.from_dict({"home": ["a", "b", "c"], "hour": 24}), "home=b..c & hour=8")
    {'home': (1, 3), 'hour': (8, 9)}
    """
    intervals = {}
    for part in text.split("&"):
        attribute, _, labels = part.partition("=")
        attribute = attribute.strip()
        first, _, last = labels.strip().partition("..")
        codes = domain.encode(attribute, [first, last or first]).tolist()
        if min(codes) < 0 or codes[0] > codes[1]:
            raise ValueError(
                f"asked: {labels.strip()!r} is no value, nor values, of {attribute!r}"
            )
        intervals[attribute] = (codes[0], codes[1] + 1)
    return intervals


def usual_queries(domain: Domain) -> tuple[str, ...]:
    """A cell in the middle of the domain, and sums over its last attributes."""
    middle = domain.frame(domain.keys(np.array([domain.shape]) // 2))
    parts = [f"{attribute}={middle[attribute][0]}" for attribute in domain.attributes]
    return tuple(" & ".join(parts[:k]) for k in range(len(parts), 0, -1))


def command_lines(advice: Advice, files: Files) -> tuple[str, str]:
    """The same advice, and an unbiased release, as they are typed in the folder of the files."""
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
    """A line, and what a terminal in the folder then shows."""
    main = [sys.executable, "-c", "from workbench.cli import main; main()"]
    plain = {name: value for name, value in os.environ.items() if "COLOR" not in name}
    command = main + shlex.split(line)[1:]
    done = subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True)
    return f"$ {line}\n{done.stdout}{done.stderr}"


def cut_again(release: Release) -> Release:
    """The release with a cut 2.5 times as high; itself where nothing was cut."""
    theta = getattr(release.estimate, "theta", 0)
    if not theta:
        return release
    cut = refilter(release.estimate, 2.5 * theta)
    return replace(release, estimate=cut, ledger=tuple(release.ledger))


def text_field(need: str, doc: str, *, many: bool = False) -> Any:
    """A parameter that is text, or a list of texts; none where it is not given."""

    def wrong(x: Any) -> str | None:
        return None if isinstance(x, str) and x else f"need a {need}"

    return parameter(None, check=wrong, doc=doc, many=many)
