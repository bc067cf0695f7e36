"""Microdata: synthetic records over a domain, a row each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import Int
from workbench.domain import Domain
from workbench.estimates.bars import Bars
from workbench.estimates.estimate import DOMAIN, Estimate, Stored, without_errors
from workbench.table import PUBLIC, SparseTable
from workbench.workload import Recipe

_NUMBER: dict[str, Any] = dict(
    write=lambda x: None if np.isnan(x) else x, read=lambda x: float("nan") if x is None else x
)


@dataclass(frozen=True, eq=False)
class Microdata(Estimate):
    """Records that nobody has, drawn from a model of the tuples: any query is a count of rows.

    `keys` are their cells, sorted. `gap` and `lacks` are those of the model that they were drawn from
    (`Model`). Standard errors are NaN: how far a model is from the truth it cannot know.
    """

    domain: Domain
    keys: Int[np.ndarray, " records"]
    gap: float = float("nan")
    lacks: float = float("nan")
    kind: ClassVar[str] = "microdata"
    contents: ClassVar[str] = "records"
    arrays: ClassVar = ("keys",)
    stored: ClassVar = (
        DOMAIN,
        Stored("gap", optional=True, **_NUMBER),
        Stored("lacks", optional=True, **_NUMBER),
    )

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        return f"<Microdata of {self._attribute_names}: {len(self):,} records>"

    @cached_property
    def table(self) -> SparseTable:
        """How many records each cell has."""
        counts = np.ones(len(self), np.int64)
        return SparseTable.from_keys(self.domain, self.keys, counts, PUBLIC)

    @property
    def why_unknown(self) -> str:
        """A model says nothing of its distance from the truth."""
        return (
            "rows are drawn from a model of what was released, and how far a model lies from the truth "
            "only the truth tells"
        )

    def bars(self, workload: Recipe, **options: Any) -> Bars:
        """NaN: neither the noise nor what rows leave out is known.

        Parameters
        ----------
        workload : Workload
            Any.
        options : those of `answer`.

        Returns
        -------
        Bars
        """
        unknown = np.full(len(workload.on(self.domain)), np.nan)
        return Bars(unknown, unknown, unknown)

    def _answer(self, workload: Recipe, error: bool) -> Any:
        return without_errors(self.table.answer(workload), error)

    def _columns(self) -> dict[str, Any]:
        """A column an attribute, of labels."""
        return dict(self.domain.frame(self.keys))

    @classmethod
    def _from_columns(cls, table: Any, fields: dict[str, Any]) -> dict[str, Any]:
        domain = fields["domain"]
        codes = [domain.encode(a, table[a].to_pandas()) for a in domain.attributes]
        return {"keys": domain.keys(np.stack(codes, axis=1))}
