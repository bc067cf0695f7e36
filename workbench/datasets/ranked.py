"""Ranked: another dataset's counts in ascending order, whose domain is ranks."""

from __future__ import annotations

from typing import Any

from workbench.datasets._kinds import kind_of
from workbench.datasets.readers.published import File
from workbench.domain import Domain
from workbench.table import SparseTable
from workbench.value import parameter, value


def check_dataset(x: Any) -> str | None:
    """What is wrong with the dataset that a field wraps, or None."""
    return None if hasattr(x, "load") and hasattr(x, "domain") else "need a dataset of counts"


class OfDataset:
    """Counts made of those of `dataset`, with its files and as public as it is."""

    dataset: Any

    @property
    def kind(self) -> str:
        """That of `dataset`."""
        return kind_of(self.dataset)

    @property
    def truth_public(self) -> bool:
        """That of `dataset`."""
        return self.dataset.truth_public

    def files(self) -> tuple[File, ...]:
        """Those of `dataset`."""
        return self.dataset.files() if hasattr(self.dataset, "files") else ()


@value
class Ranked(OfDataset):
    """What an unattributed histogram is about: all counts of `dataset`, its empty cells too, sorted.

    Metrics then compare a release over ranks with a truth over ranks. One unit moves the sorted counts
    as far as it moves the counts; whether the truth is public is as `dataset` says.
    """

    dataset: Any = parameter(check=check_dataset, doc="whose counts are sorted")

    @property
    def domain(self) -> Domain:
        """Ranks, the smallest count first."""
        return Domain(("rank",), (self.dataset.domain.size,))

    def load(self) -> SparseTable:
        """The sorted counts."""
        return self.dataset.load().ranked()
