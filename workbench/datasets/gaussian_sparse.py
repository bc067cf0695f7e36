"""GaussianSparse: the synthetic data of the sparse-data paper, non-empty cells only."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from workbench.arrays import Int
from workbench.datasets._generated import seed_field
from workbench.datasets._kinds import GENERATOR
from workbench.domain import MAX_CELLS, Domain
from workbench.table import Bound, SparseTable
from workbench.value import parameter, value


@value
class GaussianSparse:
    """round(density·m) cells of `m` hold round(N(mean, std²)), at least 1; the rest are empty.

    `placement="uniform"` chooses the cells uniformly without replacement. The paper also has
    them "skewed and concentrated in particular regions" and does not print the law. Ours, for
    `placement="skewed"`: `regions` intervals of equal length, at random places in the order of
    keys, cover 2·density of the domain (at most all of it); the cells are uniform inside them,
    so that a region is half full, and all between the regions is empty.

    Made up, so public. One unit is one count of one cell. Time and memory grow with the number
    of non-empty cells, not with `m`. Source: Cormode, Procopiuc, Srivastava, Tran, ICDT 2012,
    section 4.1.

    >>> table = GaussianSparse(m=10**12, density=1e-9).load()
    >>> len(table), table.domain.size
    (1000, 1000000000000)
    """

    kind: ClassVar[str] = GENERATOR
    cite: ClassVar[str] = "cormode2012"
    truth_public: ClassVar[bool] = True
    papers: ClassVar[tuple[str, ...]] = ("cormode2012",)  # that use it

    m: int = parameter(
        10**6, 1, MAX_CELLS, unit="cells", doc="size of the domain", integer=True
    )
    density: float = parameter(0.1, 0, 1, doc="share of cells that are not empty")
    mean: float = parameter(100.0, unit="counts", doc="of the cells, before rounding")
    std: float = parameter(20.0, 0, unit="counts", doc="of the cells, before rounding")
    placement: str = parameter(
        "uniform", choices=("uniform", "skewed"), doc="where cells that are not empty lie"
    )
    seed: int = seed_field()
    regions: int = parameter(
        10, 1, 2**20, doc='where placement="skewed" has cells', integer=True
    )

    @property
    def domain(self) -> Domain:
        """One attribute, `cell`, in the order of the keys."""
        return Domain(("cell",), (self.m,))

    def load(self) -> SparseTable:
        """The table, the same for the same parameters."""
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
    """`n` of 0 … m − 1, uniform without replacement, sorted; in O(n) memory."""
    return np.sort(rng.choice(m, n, replace=False, shuffle=False))
