"""Projected: the marginal of another dataset on some of its attributes."""

from __future__ import annotations

from typing import Any

from workbench.datasets.ranked import OfDataset, check_dataset
from workbench.domain import Domain
from workbench.table import SparseTable
from workbench.value import parameter, value


@value
class Projected(OfDataset):
    """The counts of `dataset` by fewer attributes, in the order given.

    One unit moves the marginal as far as it moves the counts; whether the truth is public is as
    `dataset` says.
    """

    dataset: Any = parameter(check=check_dataset, doc="whose counts are added up")
    attributes: tuple[str, ...] = parameter(
        check=lambda x: None if isinstance(x, tuple) and x else "need a tuple of attributes",
        doc="those that are kept",
    )

    @property
    def domain(self) -> Domain:
        """That of `dataset`, projected."""
        return self.dataset.domain.project(self.attributes)

    def load(self) -> SparseTable:
        """The marginal."""
        return self.dataset.load().project(self.attributes)
