"""The published tables of Cormode et al. 2012 by name, and the sizes of queries and summaries on them.

The paper's is OnTheMap in 47 states (2008, version 4), which we take to be all but CT, DC, MA and NH.
Where its files are not at hand its twin stands for it, with the printed numbers of cells, non-empty cells
and their mean. Beside it real data: all US counties (another survey), and Rhode Island by block, by
tract, and by tract2, the paper's unit, which makes 10 × 10 cells of one state. Keys are ordered by work
location and then by home.
"""

from __future__ import annotations

from typing import Any

from experiments._fields import unprinted_number
from workbench import RandomRanges, Sweep
from workbench.compiled import pd
from workbench.datasets import Adult, CensusIncome, CommutingFlows, OnTheMap, OnTheMapTwin
from workbench.datasets.commuting import FIPS
from workbench.figures import fields
from workbench.figures.figure import other_dataset
from workbench.spaces import Domain
from workbench.trials import first_available
from workbench.trials.metrics import MeanAbsoluteError

ONTHEMAP = "OnTheMap"
JUDGED = "OnTheMap twin"
PAPERS = (ONTHEMAP, JUDGED)  # of which one is judged
COUNTIES = "US counties"
TRACTS = "Rhode Island by tract"
TRACT2 = "Rhode Island by tract2"
BLOCKS = "Rhode Island by block"
CENSUS_BANDS = "Census Income by age/5"
CENSUS_YEARS = "Census Income by age/1"
ADULT = "Adult"
ADULT_TABLES = {
    ADULT: Adult(),
    "Adult, known values": Adult(missing="drop"),
    "Adult, training": Adult(part="training"),
    "Adult, training, known values": Adult(missing="drop", part="training"),
}

_CENSUS = ("Age", "Birthplace", "Occupation", "Income")
_STATES = tuple(sorted({*FIPS} - {"ct", "dc", "ma", "nh", "pr"}))
DATASETS = {
    ONTHEMAP: OnTheMap(_STATES, year=2008, level="tract2"),
    JUDGED: OnTheMapTwin(),
    COUNTIES: CommutingFlows(),
    TRACTS: OnTheMap(level="tract"),
    TRACT2: OnTheMap(level="tract2"),
    BLOCKS: OnTheMap(level="block"),
    CENSUS_BANDS: CensusIncome(_CENSUS, age_band=5),
    CENSUS_YEARS: CensusIncome(_CENSUS),
    **ADULT_TABLES,
}
TOTALS = {JUDGED: 123_003_381, COUNTIES: 140_843_659, TRACTS: 406_052, TRACT2: 406_052}
COMMUTING = (ONTHEMAP, JUDGED, COUNTIES, TRACTS, TRACT2)


def dataset_named(name: str) -> Any:
    """One of ours, or of another package."""
    return DATASETS[name] if name in DATASETS else other_dataset(name)


def table_total(name: str) -> int:
    """The public total of a table of jobs."""
    return TOTALS.get(name) or dataset_named(name).load().total


def published_tables(*names: str, choices: tuple[str, ...] = COMMUTING) -> Any:
    """The parameter `data` of a figure; OnTheMap itself comes before its twin."""
    if JUDGED in names and ONTHEMAP not in names:
        names = (ONTHEMAP, *names)
    doc = "tables (left out if their files are missing)"
    return fields.datasets(names, choices, doc)


def query_shares(default: tuple[float, ...], doc: str) -> Any:
    """The parameter `shares` of a figure: sizes of queries."""
    return unprinted_number(default, f"{doc}, as shares of all cells", 0, 1, strict=True)


def judged(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of OnTheMap: of its files, or else of its twin."""
    panel = ONTHEMAP if ONTHEMAP in set(rows.panel) else JUDGED
    return rows[rows.panel == panel]


class PublishedTables:
    """What a figure knows of the tables that its parameter `data` names."""

    data: tuple[str, ...]

    def datasets(self) -> dict[str, Any]:
        """Those whose files are at hand, and no twin of one; a ValueError if there are none."""
        named = {name: dataset_named(name) for name in self.data}
        available = {name: x for name, x in named.items() if first_available(x, None)}
        if not available:
            raise ValueError(f"data = {', '.join(self.data)}: no file of these is at hand")
        if ONTHEMAP in available:
            available.pop(JUDGED, None)
        return available

    def has_file(self, name: str, rows: pd.DataFrame) -> bool:
        """Whether rows rest on a published file; of OnTheMap on the paper's, not on one state's."""
        if name == ONTHEMAP:
            return repr(DATASETS[ONTHEMAP]) in set(rows.dataset)
        return super().has_file(name, rows)

    def missing_datasets(self) -> list[str]:
        """Those whose files are not."""
        available = self.datasets()
        left_out = [name for name in self.data if name not in available]
        return [f"{name}: not at hand" for name in left_out if name != JUDGED]


class CommutingTables(PublishedTables):
    """A figure on commuting data: a sweep a table, sizes that are the same share of its cells everywhere.

    Its `mechanisms` are those of a table, by name; its queries are ranges unless `metrics` says otherwise.
    """

    size: int
    shares: tuple[float, ...]
    queries: int
    seeds: int

    def sweeps(self) -> dict[str, Sweep]:
        """One a table at hand."""
        return {
            name: Sweep([x], self.mechanisms(name), self.metrics(x.domain), self.seeds)
            for name, x in self.datasets().items()
        }

    def metrics(self, domain: Domain) -> list:
        """What is asked of a domain."""
        sizes = self.query_sizes(domain)
        return [MeanAbsoluteError(RandomRanges(size, self.queries)) for size in sizes]

    def query_sizes(self, domain: Domain) -> dict[int, float]:
        """Shares of a domain by the number of cells; shares that do not fill a cell are left out."""
        m = domain.size
        return {round(share * m): share for share in self.shares if share * m >= 1}

    def summary_size(self, domain: Domain) -> int:
        """What is released of a domain, where it is `size` on the judged one."""
        return max(1, round(self.size / DATASETS[JUDGED].domain.size * domain.size))

    def rows(self, store) -> pd.DataFrame:
        """`cells` are all of a table, `share` the part of them that a query covers."""
        rows = super().rows(store)
        domains = {name: dataset_named(name).domain for name in rows.panel.unique()}
        by_size = {name: self.query_sizes(domain) for name, domain in domains.items()}
        points = zip(rows.panel, rows.query_size, strict=True)
        share = [by_size[name][size] for name, size in points]
        cells = rows.panel.map({name: domain.size for name, domain in domains.items()})
        return rows.assign(cells=cells, share=share)
