"""Generators: sparse Gaussian tables, stand-ins of IPUMS, projections and ranks of other datasets."""

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
    """Synthetic table of `m` cells, of which round(density·m) are not empty. Their counts are drawn from
    N(mean, std²), rounded, and raised to 1 if they are smaller.

    `placement="uniform"` chooses the cells uniformly without replacement. The paper also has cells that are
    "skewed and concentrated in particular regions", but does not print their distribution.
    `placement="skewed"` therefore uses our own. It chooses `regions` intervals of equal length, at random
    places in the order of keys. Together they cover the share 2·density of the domain (at most all of it).
    Cells are chosen uniformly within them. So half of a region is full, and the rest of the domain is
    empty.

    The data are generated, so they are public. One unit is one count of one cell. Time and memory grow
    with the number of non-empty cells, not with `m`. Source: Cormode, Procopiuc, Srivastava, Tran, ICDT
    2012, section 4.1.

    >>> table = GaussianSparse(m=10**12, density=1e-9).load()
    >>> len(table), table.domain.size
    (1000, 1000000000000)
    """

    cite: ClassVar[str] = "cormode2012"
    papers: ClassVar[tuple[str, ...]] = ("cormode2012",)  # that use it

    m: int = parameter(
        10**6, 1, MAX_CELLS, unit="cells", doc="number of cells of the domain", integer=True
    )
    density: float = parameter(0.1, 0, 1, doc="share of cells that are not empty")
    mean: float = parameter(100.0, unit="counts", doc="mean count of a cell, before rounding")
    std: float = parameter(20.0, 0, unit="counts", doc="standard deviation, before rounding")
    placement: str = parameter(
        "uniform", choices=("uniform", "skewed"), doc="placement of the non-empty cells"
    )
    seed: int = seed_field()
    regions: int = parameter(
        10, 1, 2**20, doc='number of clusters with placement="skewed', integer=True
    )

    @property
    def domain(self) -> Domain:
        """Domain of a single attribute, `cell`."""
        return Domain(("cell",), (self.m,))

    def load(self) -> SparseTable:
        """Return the table. Equal parameters give equal tables."""
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
    """Return a sorted uniform sample of n of the numbers 0 … m − 1, without replacement, in O(n) memory."""
    return np.sort(rng.choice(m, n, replace=False, shuffle=False))


# Ipums twin

NATIVE = 0.86  # born where the census is taken: code 0
GROWTH = 0.085  # of the logarithm of a salary by a year of education
SPREAD = 0.55  # of that logarithm, which nothing explains


@value
class IPUMSTwin(Twin):
    """Synthetic table of 500,000 adults with nine attributes. It has 1.29·10¹¹ cells, and nearly all of
    them are empty.

    Some facts match the paper: the attributes, their domains (79, 2, 17, 51, 9, 7, 6, 50 and 50 values,
    with ages from 16, education from 1, salary from 0) and the number of tuples. How attributes depend on
    each other is our invention. They are drawn one after the other. There are fewer people at ages above
    40, and women live longer than men. 86 % have birthplace 0, and the r-th other place has a frequency in
    proportion to 1/r. Race depends on the birthplace. Education is around 11.5, and less for old people.
    The values 9 and 13 are frequent. Marital status depends on age. Age and gender determine who works.
    People who do not work have workclass 0, occupation 0 and salary 0. Occupations depend on education and
    gender. Salaries are lognormal around a value that depends on education, age, gender and occupation. A
    salary of 49 means 49 or more.

    One unit is one person, in one cell. The data are generated, so they are public. This takes half a
    second. Source of domains and size: Chen, Zhou & Bhowmick, EDBT 2012, Figure 1.
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
        """Domain of the paper's nine attributes, as in its Figure 1."""
        return Domain.read(Path(__file__).with_name("ipums.json"))

    def load(self) -> SparseTable:
        """Return the table. Equal parameters give equal tables."""
        rng = np.random.default_rng(self.seed)
        domain = self.domain
        keys = domain.keys(np.stack(_people(self.records, rng), axis=1))
        ones = np.ones(len(keys), np.int64)
        return SparseTable.from_keys(domain, keys, ones, Bound(1), truth_public=True)


def _people(n: int, rng: np.random.Generator) -> list[Int[np.ndarray, " n"]]:
    """Return the codes of n people. Each attribute is drawn under the condition of those before it."""
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
    """Draw a code for each person, in proportion to the weights of the person's row, by one sorted
    search.
    """
    steps = np.cumsum(weights, axis=1)
    steps /= steps[:, -1:]
    steps[:, -1] = 1
    flat = (steps + np.arange(len(steps))[:, None]).ravel()
    # u < 1 and the row's last step is row + 1, so that none leaves its row, but by rounding
    places = np.searchsorted(flat, row + rng.random(len(row)), side="right")
    return np.clip(places - row * weights.shape[1], 0, weights.shape[1] - 1)


def _races() -> Float[np.ndarray, "places races"]:
    """Return the distribution of races for each birthplace. Each place except 0 has mostly people of
    one race.
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
    """Return what is wrong with the dataset in a field, or None if it is valid."""
    return None if hasattr(x, "load") and hasattr(x, "domain") else "need a dataset of counts"


class OfDataset:
    """Base of datasets whose counts are computed from another dataset, `dataset`. They have its files, and
    their truth is public if that of `dataset` is.
    """

    dataset: Any

    @property
    def kind(self) -> str:
        """Same as that of `dataset`."""
        return kind_of(self.dataset)

    @property
    def truth_public(self) -> bool:
        """Same as that of `dataset`."""
        return self.dataset.truth_public

    def files(self) -> tuple[File, ...]:
        """Return the files of `dataset`."""
        return self.dataset.files() if hasattr(self.dataset, "files") else ()


@value
class Ranked(OfDataset):
    """Table of all counts of `dataset` in ascending order, including those of empty cells. Mechanisms for
    unattributed histograms, which ignore labels, use it.

    With it, metrics can compare a release over ranks with the true counts over ranks. One unit changes the
    sorted counts by as much as the counts. The truth is public if that of `dataset` is.
    """

    dataset: Any = parameter(check=check_dataset, doc="dataset whose counts are sorted")

    @property
    def domain(self) -> Domain:
        """Domain of the ranks of counts. Rank 0 is the smallest count."""
        return Domain(("rank",), (self.dataset.domain.size,))

    def load(self) -> SparseTable:
        """Return the counts in ascending order."""
        return self.dataset.load().ranked()


# Projected


@value
class Projected(OfDataset):
    """Table that counts the records of `dataset` by some of its attributes only, in the given order.

    One unit changes the marginal by at most as much as the counts. The truth is public if that of
    `dataset` is.
    """

    dataset: Any = parameter(check=check_dataset, doc="dataset whose counts are added up")
    attributes: tuple[str, ...] = parameter(
        check=lambda x: None if isinstance(x, tuple) and x else "need a tuple of attributes",
        doc="attributes to keep",
    )

    @property
    def domain(self) -> Domain:
        """Domain of the chosen attributes of `dataset`."""
        return self.dataset.domain.project(self.attributes)

    def load(self) -> SparseTable:
        """Return the marginal."""
        return self.dataset.load().project(self.attributes)
