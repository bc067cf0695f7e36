"""Values that were released although no public list of possible values exists, for example search words. If
the mechanism spent budget on counts, each value has a noisy count.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from workbench.compiled import pa, pd
from workbench.estimates.estimate import Estimate
from workbench.estimates.stored import refuse_unless
from workbench.queries import Recipe, Workload
from workbench.spaces import Domain
from workbench.value import Int

_REST = "any other value"


@dataclass(frozen=True, eq=False, repr=False)
class SelectedValues(Estimate):
    """Values of one attribute that a mechanism selected for release, in alphabetical order.

    `labels` contains the selected values. `values` contains one noisy count per label, or is empty if no counts
    were released. The noise of different counts is independent, and `variance` is the variance of the noise.
    The domain of the release has one more label, which stands for all values that were not selected. The count
    of this additional label is unknown.
    """

    attribute: str
    labels: tuple[str, ...]
    values: Int[np.ndarray, " counts"]
    variance: float | None = None
    kind: ClassVar[str] = "values"
    contents: ClassVar[str] = "values"

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def domain(self) -> Domain:
        """Domain with the selected labels, and one label for all other values."""
        rest = _REST
        while rest in self.labels:
            rest = f"({rest})"
        labels = (*self.labels, rest)
        return Domain((self.attribute,), (len(labels),), (labels,))

    @property
    def has_counts(self) -> bool:
        """Whether the release contains noisy counts for the selected values."""
        return self.variance is not None

    rows_are_counts = has_counts

    def _answer(self, workload: Recipe, error: bool) -> Any:
        if not self.has_counts:
            raise ValueError(f"{self!r} has no counts, because none were paid for")
        queries: Workload = workload.on(self.domain)
        keys = np.arange(len(self))
        answers = queries.sums(self.domain, keys, self.values)
        selected = queries.sums(self.domain, keys, np.ones(len(self), np.int64))
        is_known = queries.cells(self.domain) == selected
        errors = np.sqrt(selected * float(self.variance or 0))
        return answers, np.where(is_known, errors, np.nan)

    @property
    def why_unknown(self) -> str:
        """Sentence that explains why errors may be unknown. The reason is that the release contains no
        information about values that were not selected.
        """
        return "the release does not show which other values there are, or how many users have them"

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with the selected values.

        Returns
        -------
        pandas.DataFrame
            One row per value. If the release has counts, the column `noisy` contains them.
        """
        frame = pd.DataFrame({self.attribute: list(self.labels)}, dtype=object)
        return frame.assign(noisy=self.values) if self.has_counts else frame

    @classmethod
    def _from_columns(cls, table: pa.Table, fields: dict[str, Any]) -> dict[str, Any]:
        has_counts = fields["variance"] is not None
        counts = table["noisy"].to_numpy() if has_counts else np.zeros(0, np.int64)
        return {"labels": tuple(table[fields["attribute"]].to_pylist()), "values": counts}

    def _check_rows(self) -> None:
        is_sorted = all(a < b for a, b in pairwise(self.labels))
        refuse_unless(is_sorted, "labels", "sorted ones, each once")
        fits = len(self.values) == (len(self) if self.has_counts else 0)
        refuse_unless(fits, "counts", "one per value, or none")
        _ = self.domain  # a ValueError for labels that are no text
