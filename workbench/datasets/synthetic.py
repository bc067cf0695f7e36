"""Synthetic tables (`GaussianSparse`, `IPUMSTwin`), and tables that are computed from another dataset
(`Projected`, `Ranked`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from workbench.data import Bound, SparseTable
from workbench.datasets.kinds import Dataset, Twin, kind_of, seed_field
from workbench.datasets.published import File
from workbench.spaces.domain import MAX_CELLS, Domain
from workbench.value import Float, Int, parameter, value

# Gaussian sparse


@value
class GaussianSparse(Dataset):
    """Synthetic table with `m` cells. The share `density` of the cells is not empty, and all other cells are
    empty. The counts of the non-empty cells are drawn from a normal distribution with the given `mean` and
    `std` (standard deviation). The counts are then rounded, and counts below 1 are set to 1.

    `placement` says which cells are not empty. With "uniform", the non-empty cells are drawn uniformly from
    all cells, without replacement. Cormode et al. (2012) also use tables whose non-empty cells are "skewed
    and concentrated in particular regions". The paper does not print the distribution of these cells, so
    "skewed" uses a distribution of our own. A region is an interval of consecutive cells. There are `regions`
    regions of equal length at random places. Together, the regions cover the share 2·`density` of all cells,
    or all cells if `density` exceeds 0.5. The non-empty cells are drawn uniformly within the regions. So
    about half of the cells in a region are not empty (more if `density` exceeds 0.5). All cells outside the
    regions are empty.

    The data are generated, so they are public. The protected unit is one record, which is in one cell.
    Loading takes time and memory that grow with the number of non-empty cells, and not with `m`. Source:
    Cormode, Procopiuc, Srivastava, Tran, ICDT 2012, section 4.1.

    >>> table = GaussianSparse(m=10**12, density=1e-9).load()
    >>> len(table), table.domain.size
    (1000, 1000000000000)
    """

    cite: ClassVar[str] = "cormode2012"
    papers: ClassVar[tuple[str, ...]] = ("cormode2012",)  # that use it

    m: int = parameter(
        10**6, 1, MAX_CELLS, unit="cells", doc="number of all cells", integer=True
    )
    density: float = parameter(0.1, 0, 1, doc="share of cells that are not empty")
    mean: float = parameter(100.0, unit="counts", doc="mean count, before rounding")
    std: float = parameter(20.0, 0, unit="counts", doc="standard deviation of the counts")
    placement: str = parameter(
        "uniform", choices=("uniform", "skewed"), doc="placement of the non-empty cells"
    )
    seed: int = seed_field()
    regions: int = parameter(
        10, 1, 2**20, doc='number of regions with placement="skewed"', integer=True
    )

    @property
    def domain(self) -> Domain:
        """All `m` cells. Each cell is a value of the only attribute, which is called `cell`."""
        return Domain(("cell",), (self.m,))

    def load(self) -> SparseTable:
        """Generate the table of counts. The same parameters always give the same table."""
        rng = np.random.default_rng(self.seed)
        n = round(self.density * self.m)
        keys = self._skewed(n, rng) if self.placement == "skewed" else _distinct(self.m, n, rng)
        counts = np.maximum(1, np.rint(rng.normal(self.mean, self.std, n))).astype(np.int64)
        return SparseTable(self.domain, keys, counts, Bound(1, 1), self.truth_public)

    def _skewed(self, n: int, rng: np.random.Generator) -> Int[np.ndarray, " n"]:
        covered = min(self.m, 2 * n)
        inside = _distinct(covered, n, rng)  # as if the regions stood side by side
        empty = np.sort(rng.integers(0, self.m - covered, self.regions, endpoint=True))
        return inside + empty[inside // max(1, -(-covered // self.regions))]


def _distinct(m: int, n: int, rng: np.random.Generator) -> Int[np.ndarray, " n"]:
    """Draw n different numbers from 0 to m − 1 uniformly, and return them in ascending order. The memory
    grows with n, and not with m.
    """
    return np.sort(rng.choice(m, n, replace=False, shuffle=False))


# Ipums twin

NATIVE = 0.86  # born where the census is taken: code 0
GROWTH = 0.085  # of the logarithm of a salary by a year of education
SPREAD = 0.55  # of that logarithm, which nothing explains


@value
class IPUMSTwin(Twin):
    """Synthetic table of 500,000 adults with nine attributes, which replaces the census data (IPUMS) of Chen
    et al. (2012). The table has 1.29·10¹¹ cells, and nearly all cells are empty.

    Three facts agree with the paper: the attributes, the number of values of each attribute, and the number
    of people. The attributes have 79, 2, 17, 51, 9, 7, 6, 50 and 50 values. The smallest age is 16, the
    smallest education is 1, and the smallest salary is 0. The frequencies of the values and the dependence
    between attributes are our invention. We draw the attributes of a person one after the other. The number
    of people falls with age, mostly above 40, and women live longer than men. The birthplace is 0 for 86 % of
    people. The frequency of the r-th other birthplace is proportional to 1/r. Race depends on the birthplace.
    The mean of education is about 11.5, and old people have a lower mean. The values 9 and 13 of education
    are frequent. Marital status depends on age. The probability that a person works depends on age and
    gender. People who do not work have workclass 0, occupation 0 and salary 0. The occupation of other people
    depends on education and gender. Salaries have a lognormal distribution around a value that depends on
    education, age, gender and occupation. The salary 49 means 49 or more.

    The protected unit is one person, who is in one cell. The data are generated, so they are public.
    Generating the table takes half a second. Source of attributes and size: Chen, Zhou & Bhowmick, EDBT 2012,
    Figure 1.
    """

    original = (
        "the authors' extract of 500,000 tuples of IPUMS, which they do not publish; nothing here reads "
        "it, and `CensusIncome` is real data over nine similar attributes"
    )
    invented: ClassVar[Mapping[str, str]] = {
        "counts": "the distribution of every attribute",
        "joint": "how attributes depend on each other",
    }
    cite: ClassVar[str] = "chen2012"

    records: int = parameter(
        500_000, 1, 10**8, integer=True, unit="people", doc="number of people"
    )
    seed: int = seed_field()

    @property
    def domain(self) -> Domain:
        """All combinations of values of the nine attributes in Figure 1 of Chen et al. (2012)."""
        return Domain.read(Path(__file__).with_name("ipums.json"))

    def load(self) -> SparseTable:
        """Generate the table of counts. The same parameters always give the same table."""
        rng = np.random.default_rng(self.seed)
        domain = self.domain
        keys = domain.keys(np.stack(_people(self.records, rng), axis=1))
        ones = np.ones(len(keys), np.int64)
        return SparseTable.from_keys(domain, keys, ones, Bound(1), truth_public=True)


def _people(n: int, rng: np.random.Generator) -> list[Int[np.ndarray, " n"]]:
    """Draw the values of all attributes for n people. A value is given by its code. The distribution of each
    attribute depends on attributes that were drawn before.
    """
    ages = np.arange(16, 95)
    schooling = np.arange(1, 18)
    age = _drawn(1 / (1 + np.exp((ages - 62) / 11))[None], np.zeros(n, np.int64), rng)
    years = ages[age]
    male = 0.505 - 0.0035 * np.maximum(ages - 50, 0)
    gender = _drawn(np.stack([1 - male, male], axis=1), age, rng)
    place = 1 / np.arange(1, 51)
    places = np.append(NATIVE, (1 - NATIVE) * place / place.sum())
    born = _drawn(places[None], np.zeros(n, np.int64), rng)
    race = _drawn(_races(), born, rng)
    # education by age and by whether one was born here
    middle = 11.7 - 0.045 * np.maximum(ages - 45, 0) - 0.6 * np.maximum(20 - ages, 0)
    middle = np.stack([middle, middle - 0.8], axis=1).ravel()
    school = np.exp(-0.5 * ((schooling - middle[:, None]) / 2.7) ** 2)
    school *= 1 + 2.5 * (schooling == 9) + 1.5 * (schooling == 13)
    education = _drawn(school, 2 * age + (born > 0), rng)
    marital = _drawn(_marriages(ages), 2 * age + gender, rng)
    work = _drawn(_works(ages), (2 * age + gender) * 2 + (education >= 12), rng)
    rank = np.linspace(4, 16, 49)  # schooling that each occupation asks for
    leaning = np.sin(np.arange(49) * 2.4)  # of men, above 0, or of women
    fit = -0.5 * ((schooling[:, None] - rank) / 2.2) ** 2
    popular = -0.6 * np.log(1 + np.arange(49) * 19 % 49)
    jobs = fit[:, None, :] + popular + np.array([-0.9, 0.9])[:, None] * leaning
    drawn = _drawn(np.exp(jobs).reshape(34, 49), 2 * education + gender, rng)
    works = work > 0
    occupation = np.where(works, drawn + 1, 0)
    pay = 1.55 + GROWTH * schooling[education] + 0.18 * gender + 0.02 * (rank[drawn] - 10)
    pay += 0.035 * np.minimum(years - 16, 30) - 0.012 * np.maximum(years - 55, 0)
    pay += SPREAD * rng.standard_normal(n)
    salary = np.where(works, np.clip(np.exp(pay), 1, 49), 0).astype(np.int64)
    return [age, gender, education, born, race, work, marital, occupation, salary]


def _drawn(
    weights: Float[np.ndarray, "rows codes"],
    row: Int[np.ndarray, " n"],
    rng: np.random.Generator,
) -> Int[np.ndarray, " n"]:
    """Draw a code for each person. `row` contains, for each person, the number of a row of `weights`. The
    probabilities of the codes are proportional to the weights in this row.
    """
    steps = np.cumsum(weights, axis=1)
    steps /= steps[:, -1:]
    steps[:, -1] = 1
    flat = (steps + np.arange(len(steps))[:, None]).ravel()
    # u < 1 and the row's last step is row + 1, so that none leaves its row, but by rounding
    places = np.searchsorted(flat, row + rng.random(len(row)), side="right")
    return np.clip(places - row * weights.shape[1], 0, weights.shape[1] - 1)


def _races() -> Float[np.ndarray, "places races"]:
    """Return the distribution of races for each birthplace. At each birthplace except 0, most people have the
    same race.
    """
    natives = np.array([0.80, 0.115, 0.012, 0.004, 0.003, 0.008, 0.033, 0.020, 0.005])
    away = 0.2 * natives + 0.8 * np.eye(9)[(np.arange(50) * 4 + 6) % 9]
    return np.concatenate([natives[None], away])


def _marriages(ages: Int[np.ndarray, " ages"]) -> Float[np.ndarray, "ages·genders states"]:
    single = 0.06 + 0.94 / (1 + np.exp((ages - 26) / 4.0))
    rows = []
    for widows in (0.055, 0.018):  # women, men
        widowed = widows / (widows + np.exp(-(ages - 62) / 8.0))
        divorced = 0.16 * (1 - np.exp(-np.maximum(ages - 22, 0) / 14))
        left = (1 - single) * (1 - widowed)
        wed = [left * (1 - divorced) * 0.95, left * 0.02, left * 0.03, left * divorced]
        rows.append(np.stack([single, *wed, (1 - single) * widowed], axis=1))
    return np.stack(rows, axis=1).reshape(-1, 6)


def _works(
    ages: Int[np.ndarray, " ages"],
) -> Float[np.ndarray, "ages·genders·schooling classes"]:
    kinds = np.array(
        [[0.76, 0.08, 0.03, 0.06, 0.05, 0.02], [0.58, 0.09, 0.06, 0.13, 0.10, 0.04]]
    )
    active = 1 / (1 + np.exp(-(ages - 18) / 1.5)) / (1 + np.exp((ages - 65) / 3.5))
    rows = []
    for share in (0.74, 0.90):  # women, men
        for kind, more in zip(kinds, (0.94, 1.06), strict=True):
            at_work = (active * share * more)[:, None]
            rows.append(np.concatenate([1 - at_work, at_work * kind], axis=1))
    return np.stack(rows, axis=1).reshape(-1, 7)


# Ranked


def check_dataset(x: Any) -> str | None:
    """Check that the value of a field is a dataset. Return an explanation if it is not, and None if it is."""
    return None if hasattr(x, "load") and hasattr(x, "domain") else "need a dataset of counts"


class OfDataset:
    """Base class of datasets that are computed from another dataset, for example by sorting its counts. The
    other dataset is the field `dataset`. It determines the kind, the files, and whether exact counts may be
    shown.
    """

    dataset: Any

    @property
    def kind(self) -> str:
        """Kind of the original dataset, from which this one is computed. For example "real file"."""
        return kind_of(self.dataset)

    @property
    def truth_public(self) -> bool:
        """Whether you may show the exact counts next to a release. You may do so if you may show the exact
        counts of the original dataset.
        """
        return self.dataset.truth_public

    def files(self) -> tuple[File, ...]:
        """Return the published files of the original dataset. If that dataset has no files, return an empty
        tuple.
        """
        return self.dataset.files() if hasattr(self.dataset, "files") else ()


@value
class Ranked(OfDataset):
    """Table of all counts of another dataset in ascending order, including the zeros of empty cells. The
    table does not show which count belongs to which cell. Some mechanisms release only such a sorted list of
    counts (an unattributed histogram).

    A metric can compare the released list with this table, rank by rank. Suppose that one unit (the person or
    record that is protected) is added or removed. In total, the sorted counts then change by at most as much
    as the counts of `dataset`. You may show the exact counts if you may show the exact counts of `dataset`.
    """

    dataset: Any = parameter(check=check_dataset, doc="dataset whose counts are sorted")

    @property
    def domain(self) -> Domain:
        """All ranks of the sorted counts. Rank 0 belongs to the smallest count."""
        return Domain(("rank",), (self.dataset.domain.size,))

    def load(self) -> SparseTable:
        """Load the table of sorted counts."""
        return self.dataset.load().ranked()


# Projected


@value
class Projected(OfDataset):
    """Table that counts the records of another dataset by some of its attributes (a marginal table). The
    attributes of the table are in the order in which you list them.

    Suppose that one unit (the person or record that is protected) is added or removed. In total, the counts
    of this table then change by at most as much as the counts of `dataset`. A single count may change more
    than in `dataset`, because the count is a sum over several cells of `dataset`. You may show the exact
    counts if you may show the exact counts of `dataset`.
    """

    dataset: Any = parameter(check=check_dataset, doc="dataset whose counts are added up")
    attributes: tuple[str, ...] = parameter(
        check=lambda x: None if isinstance(x, tuple) and x else "need a tuple of attributes",
        doc="attributes to keep",
    )

    @property
    def domain(self) -> Domain:
        """All combinations of values of the chosen attributes."""
        return self.dataset.domain.project(self.attributes)

    def load(self) -> SparseTable:
        """Load the table of counts by the chosen attributes."""
        return self.dataset.load().project(self.attributes)
