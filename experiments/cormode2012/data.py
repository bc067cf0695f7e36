"""Published tables for the figures of Cormode et al. (2012), by name. The module also contains parameters for
the sizes of queries and summaries on these tables.

The paper uses OnTheMap, a table of jobs by workplace and home, for 47 states (2008, version 4). It does not
name the states. We take all except CT, DC, MA and NH. If the files of OnTheMap are missing, a synthetic
stand-in (`OnTheMapTwin`) is used. It has the numbers of cells and of non-empty cells, and the mean count,
that the paper prints. There are also real tables: all US counties (from another survey), and Rhode Island by
block, by tract, and by the paper's unit (tract2), for which a domain of one state has 10 × 10 cells. Cells
are ordered by workplace, and then by home.
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
    """Return the dataset with the given name, from this paper or from another one."""
    return DATASETS[name] if name in DATASETS else other_dataset(name)


def table_total(name: str) -> int:
    """Return the total number of jobs in a table. It is public."""
    return TOTALS.get(name) or dataset_named(name).load().total


def published_tables(*names: str, choices: tuple[str, ...] = COMMUTING) -> Any:
    """Return the declaration of a figure's parameter `data`, a list of published tables. If the list contains
    the synthetic stand-in for OnTheMap, OnTheMap itself is added before it.
    """
    if JUDGED in names and ONTHEMAP not in names:
        names = (ONTHEMAP, *names)
    doc = "tables (left out if their files are missing)"
    return fields.datasets(names, choices, doc)


def query_shares(default: tuple[float, ...], doc: str) -> Any:
    """Return the declaration of a figure's parameter `shares`, the sizes of queries as shares of all cells."""
    return unprinted_number(default, f"{doc}, as shares of all cells", 0, 1, strict=True)


def judged(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the results on OnTheMap, with which the paper's statements are tested. If the files of OnTheMap
    are missing, these are the results on its synthetic stand-in.
    """
    panel = ONTHEMAP if ONTHEMAP in set(rows.panel) else JUDGED
    return rows[rows.panel == panel]


class PublishedTables:
    """Base class of figures with a parameter `data`, which names published tables."""

    data: tuple[str, ...]

    def datasets(self) -> dict[str, Any]:
        """Return the datasets in `data` whose files are available. The synthetic stand-in for OnTheMap is
        left out if OnTheMap is available. If no dataset is available, a ValueError is raised.
        """
        named = {name: dataset_named(name) for name in self.data}
        available = {name: x for name, x in named.items() if first_available(x, None)}
        if not available:
            raise ValueError(f"data = {', '.join(self.data)}: no file of these is at hand")
        if ONTHEMAP in available:
            available.pop(JUDGED, None)
        return available

    def has_file(self, name: str, rows: pd.DataFrame) -> bool:
        """Return whether results come from the published file of a dataset. For OnTheMap, the file must be
        the paper's, and not that of a single state.
        """
        if name == ONTHEMAP:
            return repr(DATASETS[ONTHEMAP]) in set(rows.dataset)
        return super().has_file(name, rows)

    def missing_datasets(self) -> list[str]:
        """Return a list of texts, one for each dataset in `data` whose files are missing."""
        available = self.datasets()
        left_out = [name for name in self.data if name not in available]
        return [f"{name}: not at hand" for name in left_out if name != JUDGED]


class CommutingTables(PublishedTables):
    """Base class of figures on tables of jobs by workplace and home. Query sizes are the same shares of the
    cells in every table.

    A subclass defines `mechanisms(name)`, the mechanisms for a table. By default, the queries are ranges.
    """

    size: int
    shares: tuple[float, ...]
    queries: int
    seeds: int

    def sweeps(self) -> dict[str, Sweep]:
        """Return one sweep (plan of runs) per available table."""
        return {
            name: Sweep([x], self.mechanisms(name), self.metrics(x.domain), self.seeds)
            for name, x in self.datasets().items()
        }

    def metrics(self, domain: Domain) -> list:
        """Return the metrics for a domain. By default, these are the mean absolute errors of random ranges."""
        sizes = self.query_sizes(domain)
        return [MeanAbsoluteError(RandomRanges(size, self.queries)) for size in sizes]

    def query_sizes(self, domain: Domain) -> dict[int, float]:
        """Return the sizes of queries on a domain, as a dictionary from the number of cells to the share of
        all cells. Shares of less than one cell are left out.
        """
        m = domain.size
        return {round(share * m): share for share in self.shares if share * m >= 1}

    def summary_size(self, domain: Domain) -> int:
        """Return the number of released cells for a domain. It is the same share of all cells as `size` is on
        OnTheMap's synthetic stand-in.
        """
        return max(1, round(self.size / DATASETS[JUDGED].domain.size * domain.size))

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results. The column `cells` contains the number of all cells of the table, and
        `share` the share of the cells that a query covers.
        """
        rows = super().rows(store)
        domains = {name: dataset_named(name).domain for name in rows.panel.unique()}
        by_size = {name: self.query_sizes(domain) for name, domain in domains.items()}
        points = zip(rows.panel, rows.query_size, strict=True)
        share = [by_size[name][size] for name, size in points]
        cells = rows.panel.map({name: domain.size for name, domain in domains.items()})
        return rows.assign(cells=cells, share=share)
