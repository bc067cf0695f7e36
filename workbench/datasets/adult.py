"""Adult: the UCI extract of the US census survey of 1994, projected on some attributes."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from workbench.datasets._kinds import REAL_FILE
from workbench.datasets.readers.delimited import read_blocks
from workbench.datasets.readers.published import File
from workbench.domain import Domain
from workbench.table import Bound, SparseTable
from workbench.value import parameter, subset_of, value

FIELDS = (
    "Age", "Workclass", "Weight", "Education", "EducationYears", "MaritalStatus", "Occupation",
    "Relationship", "Race", "Sex", "CapitalGain", "CapitalLoss", "HoursPerWeek",
    "NativeCountry", "Income",
)  # fmt: skip
SEVEN = (
    "Workclass", "Education", "MaritalStatus", "Occupation", "Relationship", "Race", "Sex",
)  # fmt: skip

# The publisher's lists (adult.names); education in the order of years of schooling, "?" (not
# known) last. Ages run from 17, a condition of the extract, to 90, the survey's top code.
LABELS: dict[str, tuple[str, ...] | range] = {
    "Age": range(17, 91),
    "Workclass": (
        "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov",
        "Without-pay", "Never-worked", "?",
    ),
    "Education": (
        "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad",
        "Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school",
        "Doctorate",
    ),
    "MaritalStatus": (
        "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed",
        "Married-spouse-absent", "Married-AF-spouse",
    ),
    "Occupation": (
        "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial",
        "Prof-specialty", "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical",
        "Farming-fishing", "Transport-moving", "Priv-house-serv", "Protective-serv",
        "Armed-Forces", "?",
    ),
    "Relationship": (
        "Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried",
    ),
    "Race": ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
    "Sex": ("Female", "Male"),
    "HoursPerWeek": range(1, 100),
    "NativeCountry": (
        "United-States", "Cambodia", "England", "Puerto-Rico", "Canada", "Germany",
        "Outlying-US(Guam-USVI-etc)", "India", "Japan", "Greece", "South", "China", "Cuba",
        "Iran", "Honduras", "Philippines", "Italy", "Poland", "Jamaica", "Vietnam", "Mexico",
        "Portugal", "Ireland", "France", "Dominican-Republic", "Laos", "Ecuador", "Taiwan",
        "Haiti", "Columbia", "Hungary", "Guatemala", "Nicaragua", "Scotland", "Thailand",
        "Yugoslavia", "El-Salvador", "Trinadad&Tobago", "Peru", "Hong", "Holand-Netherlands",
        "?",
    ),
    "Income": ("<=50K", ">50K"),
}  # fmt: skip

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"
FILES = (
    File(
        "adult",
        "adult.data",
        _UCI + "adult.data",
        ("5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",),
    ),
    File(
        "adult",
        "adult.test",
        _UCI + "adult.test",
        ("a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",),
    ),
)


@value
class Adult:
    """48,842 adults of the US census survey of 1994: `adult.data` (32,561) and `adult.test`.

    One unit is one person, in one cell. By default the seven attributes of the sparse-data
    paper: 907,200 cells, of which 8,619 are not empty (0.95 %, mean 5.7). `missing="drop"`
    leaves out everyone whose chosen attributes are not all known ("?"), with a warning that
    says how many: 752,640 cells, 1.08 %. The paper prints 0.14 % and mean 9, which together
    contradict the number of people.

    Terms: CC BY 4.0. Source: Becker and Kohavi, UCI Machine Learning Repository, 1996,
    doi:10.24432/C5XW20; Cormode, Procopiuc, Srivastava, Tran, ICDT 2012, Appendix A.
    """

    kind: ClassVar[str] = REAL_FILE
    cite: ClassVar[str] = "becker1996"
    truth_public: ClassVar[bool] = True

    attributes: tuple[str, ...] = parameter(
        SEVEN, check=subset_of(LABELS), doc="which of the attributes"
    )
    missing: str = parameter("keep", choices=("keep", "drop"), doc='what to do with "?"')
    part: str = parameter(
        "both", choices=("both", "training"), doc="`adult.data` alone, or both"
    )

    @property
    def domain(self) -> Domain:
        """The chosen attributes with the publisher's lists of values."""
        labels = tuple(self._labels(a) for a in self.attributes)
        return Domain(self.attributes, tuple(map(len, labels)), labels)

    def files(self) -> tuple[File, ...]:
        """The two parts, as UCI publishes them, or the first."""
        return FILES if self.part == "both" else FILES[:1]

    def load(self) -> SparseTable:
        """The table of its parts; a value that is not in the lists is a ValueError."""
        domain = self.domain
        keys = [np.empty(0, np.int64)]
        dropped = 0
        unsure = [a for a in self.attributes if self.missing == "drop" and "?" in LABELS[a]]
        for file in self.files():
            for block in read_blocks(
                file.find(), self.attributes, FIELDS, notes=r"^\|", strip=" ."
            ):
                dropped += block.drop(unsure, "?")
                codes = [block.codes(a, self._labels(a)) for a in self.attributes]
                keys.append(domain.keys(np.stack(codes, axis=1)))
        cells = np.concatenate(keys)
        if dropped:
            import warnings

            people = dropped + len(cells)
            warnings.warn(f"{self} left out {dropped} of {people} people", stacklevel=2)
        return SparseTable.from_keys(
            domain, cells, np.ones_like(cells), Bound(), truth_public=True
        )

    def _labels(self, attribute: str) -> tuple[Any, ...] | range:
        labels = LABELS[attribute]
        drop = self.missing == "drop" and "?" in labels
        return tuple(label for label in labels if label != "?") if drop else labels
