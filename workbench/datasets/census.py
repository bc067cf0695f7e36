"""Tables of people from US census surveys: `Adult` and `CensusIncome`."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from workbench.data import Bound, SparseTable
from workbench.data.sources import Layout
from workbench.datasets.kinds import RealFile
from workbench.datasets.published import File, table
from workbench.spaces import Domain
from workbench.spaces.labels import Labels, Map
from workbench.value import parameter, subset_of, value

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"


class _Survey(RealFile):
    """Base class of tables that count the people of a survey by some of their attributes. The file has one
    row per person.
    """

    attributes: tuple[str, ...]

    def _rule(self, attribute: str) -> Labels | Map:
        raise NotImplementedError

    @property
    def domain(self) -> Domain:
        """All combinations of values of the chosen attributes, from the publisher's lists of values."""
        labels: Any = tuple(self._rule(a).labels for a in self.attributes)
        return Domain(self.attributes, tuple(map(len, labels)), labels)

    def load(self) -> SparseTable:
        """Load the table of counts. Raise a ValueError if the file contains a value that the publisher does
        not list.
        """
        rules = replace(self.domain, preparation=tuple(map(self._rule, self.attributes)))
        parts = []
        people = 0
        for batch in (x for file in self.files() for x in file.batches(self.attributes)):
            keys, _, refused = rules.row_keys(batch.frame)
            batch.refuse(refused)
            parts.append((keys, None))
            people += batch.size
        counted = table(self.domain, parts, Bound())
        if dropped := people - counted.total:
            warnings.warn(f"{self} left out {dropped} of {people} people", stacklevel=2)
        return counted


# Adult

ADULT_FIELDS = (
    "Age", "Workclass", "Weight", "Education", "EducationYears", "MaritalStatus", "Occupation",
    "Relationship", "Race", "Sex", "CapitalGain", "CapitalLoss", "HoursPerWeek",
    "NativeCountry", "Income",
)  # fmt: skip
SEVEN = (
    "Workclass", "Education", "MaritalStatus", "Occupation", "Relationship", "Race", "Sex",
)  # fmt: skip

# The publisher's lists (adult.names); education in the order of years of schooling, "?" (not
# known) last. Ages run from 17, a condition of the extract, to 90, the survey's top code.
ADULT = Domain.read(Path(__file__).with_name("adult.json"))

_ADULT_LAYOUT = Layout(ADULT_FIELDS, notes=r"^\|", strip=" .")
FILES = tuple(
    File("adult", name, f"{_UCI}adult/{name}", (sha256,), layout=_ADULT_LAYOUT)
    for name, sha256 in (
        ("adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
        ("adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
    )
)


@value
class Adult(_Survey):
    """Table that counts 48,842 adults of the US census survey of 1994 by some of their attributes, for
    example education and sex. The publisher lists the adults in two files, `adult.data` (32,561 adults) and
    `adult.test`.

    The protected unit is one person, who is in one cell. By default, the table has the seven attributes that
    Cormode et al. (2012) use. These attributes give 907,200 cells, of which 8,619 are not empty (0.95 %). The
    mean count of the non-empty cells is 5.7. If you pass `missing="drop"`, the table leaves out people with an
    unknown value ("?") in a chosen attribute. A warning then states their number. That table has 752,640 cells,
    of which 1.08 % are not empty. Cormode et al. print that 0.14 % of the cells are not empty, with a mean
    count of 9. Both numbers cannot be right, because 0.14 % of 907,200 cells with a mean count of 9 contain
    only 11,431 people, but the table has about 49,000.

    Terms: CC BY 4.0. Source: Becker and Kohavi, UCI Machine Learning Repository, 1996, doi:10.24432/C5XW20.
    The paper of Cormode et al. is Cormode, Procopiuc, Srivastava, Tran, ICDT 2012, Appendix A.
    """

    cite: ClassVar[str] = "becker1996"

    attributes: tuple[str, ...] = parameter(
        SEVEN, check=subset_of(ADULT.attributes), doc="attributes to count by"
    )
    missing: str = parameter("keep", choices=("keep", "drop"), doc="people with unknown values")
    part: str = parameter(
        "both", choices=("both", "training"), doc="files to read: both, or only `adult.data`"
    )

    def files(self) -> tuple[File, ...]:
        """Return the two files that the UCI repository publishes. With `part="training"`, return only the
        first file, `adult.data`.
        """
        return FILES if self.part == "both" else FILES[:1]

    def _rule(self, attribute: str) -> Labels:
        rule: Any = ADULT.rules[attribute]
        if self.missing == "keep":
            return rule
        labels = (
            tuple(x for x in rule.labels if x != "?") if "?" in rule.labels else rule.labels
        )
        return Labels(labels, missing="drop", missing_values=("?",))


# Census income

COLUMNS = {
    "Age": 0, "Sex": 12, "Education": 4, "Birthplace": 34, "Race": 10, "Workclass": 1,
    "MaritalStatus": 7, "Occupation": 3, "Income": 41,
}  # fmt: skip
FIELDS = [f"column {i}" for i in range(42)]
for name, place in COLUMNS.items():
    FIELDS[place] = name

# The publisher's lists (census-income.names); education in the order of schooling. Ages are
# years, 90 and above together; occupations are the survey's detailed codes, 0 (none) to 46.
CENSUS = Domain.read(Path(__file__).with_name("census_income.json"))

FILE = File(
    "census_income",
    "census-income.data",
    f"{_UCI}census-income-mld/census-income.data.gz",
    ("3676a81db7d3528f3f8b9f3c699d0f0aa28db45e6e994fa0b8ed38327539ee86",),
    also=("census_income_1994_1995_train.csv",),
    layout=Layout(tuple(FIELDS), strip=" ."),
)


@value
class CensusIncome(_Survey):
    """Table that counts 199,523 people of the US Current Population Survey of 1994 and 1995 by some of their
    attributes. The publisher divides the data into a part for training classifiers and a part for testing
    classifiers. The table uses the training part.

    The protected unit is one person of the sample, who is in one cell. Survey weights are not used. By
    default, the table has the nine attributes in Figure 1 of Chen, Zhou and Bhowmick (EDBT 2012). That paper
    uses another extract of the survey. If you pass `age_band=5`, ages are grouped in bands of five years. The
    last band is 90 and above.

    In Appendix A of their paper (ICDT 2012), Cormode et al. use a table with classes of income of 10,000
    dollars. The published file states only whether an income is below or above 50,000 dollars, so we cannot
    make the same table. The most similar table is
    `CensusIncome(("Age", "Birthplace", "Occupation", "Income"), age_band=5)`. This table has 76,798 cells, of
    which 7,098 (9.2 %) are not empty. Cormode et al. print that 3 to 5 % of the cells are not empty.

    Terms: CC BY 4.0. Source: UCI Machine Learning Repository, 2000, doi:10.24432/C5N30T.
    """

    cite: ClassVar[str] = "censusincome2000"
    schema = (FILE,)

    attributes: tuple[str, ...] = parameter(
        CENSUS.attributes, check=subset_of(CENSUS.attributes), doc="attributes to count by"
    )
    age_band: int = parameter(1, choices=(1, 5), unit="years", doc="years in each age group")

    def _rule(self, attribute: str) -> Labels | Map:
        rule: Any = CENSUS.rules[attribute]
        if attribute == "Age" and self.age_band > 1:
            starts = range(0, 90, self.age_band)
            bands = (*(f"{a}-{a + self.age_band - 1}" for a in starts), "90+")
            return Map(tuple((str(age), bands[age // self.age_band]) for age in rule.labels))
        return rule
