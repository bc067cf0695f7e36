"""A model of the tuples: a product prior tilted by tables on a few attributes each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float

from workbench.domain import Domain
from workbench.estimates.gibbs import Chains
from workbench.estimates.summary import check_weights
from workbench.table import PUBLIC, SparseTable
from workbench.value import read_only, sealed
from workbench.workload import Margins, Workload, linear_queries

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow

_ANSWERED = 2**17  # tuples that answer what the kept margins do not
_DENSE = 2**22  # cells of one margin


@dataclass(frozen=True, eq=False)
class Model:
    """p(t) ∝ Π_k prior_k(t_k) · exp(Σ_S potential_S(t_S)), and `total` tuples of it.

    `sets` holds axes, `potentials` a table of nats for each, `margins` what the model expects there
    (shares). `explicit` says that all cells of the attributes in `sets` are few, so that every answer
    is exact; else those that no kept margin gives are the means of 2¹⁷ tuples, always the same.
    `gap` is the duality gap at the fit, in nats: 0 at the optimum. `sweeps` is how often each attribute
    is drawn anew before a chain's tuple counts.
    """

    domain: Domain
    total: float
    prior: tuple[Float[np.ndarray, " values"], ...]
    sets: tuple[tuple[int, ...], ...]
    potentials: tuple[Float[np.ndarray, "..."], ...]
    margins: tuple[Float[np.ndarray, "..."], ...]
    explicit: bool = False
    gap: float = float("nan")
    sweeps: int = 20
    kind: ClassVar[str] = "model"
    contents: ClassVar[str] = "potentials"

    def __post_init__(self):
        shape = self.domain.shape
        if tuple(len(p) for p in self.prior) != shape:
            raise ValueError(f"Model.prior does not fit a domain of {shape}")
        if not (np.isfinite(self.total) and self.total > 0):
            raise ValueError(f"Model.total = {self.total!r} is not allowed: need a number > 0")
        for name in ("potentials", "margins"):
            tables = tuple(read_only(np.asarray(t, float)) for t in getattr(self, name))
            fit = [tuple(shape[k] for k in axes) for axes in self.sets]
            if [t.shape for t in tables] != fit:
                raise ValueError(f"Model.{name} do not fit the sets {self.sets}")
            object.__setattr__(self, name, tables)

    def __len__(self) -> int:
        return sum(t.size for t in self.potentials)

    def __repr__(self) -> str:
        names = " × ".join(self.domain.attributes)
        return f"<Model of {names}: {len(self):,} potentials in {len(self.sets)} tables>"

    def answer(self, workload: Workload, weights: str = "unbiased", error: bool = False) -> Any:
        """Expected counts, float64[queries], of any linear queries; they are all consistent.

        With `error` also standard errors, all NaN: how far a model is from the truth it cannot know.
        """
        check_weights(weights)
        queries = linear_queries(workload, self.domain)
        found = queries.sums_of_margins(_Expected(self)) * self.total
        return (found, np.full(len(found), np.nan)) if error else found

    def margin(self, axes: Sequence[int]) -> Float[np.ndarray, "..."] | None:
        """The expected shares on some axes, if they are known without drawing tuples."""
        axes = tuple(axes)
        if prod(self.domain.shape[k] for k in axes) > _DENSE:
            return None
        own = [k for k in axes if k in self.touched]
        if self.explicit:
            inner = _over(self.joint, self.touched, own)
        else:
            near = [i for i, s in enumerate(self.sets) if set(own) <= set(s)]
            if own and not near:
                return None
            i = min(near, key=lambda i: self.margins[i].size) if own else None
            inner = np.ones(()) if i is None else _over(self.margins[i], self.sets[i], own)
        for k in axes:
            if k not in own:  # drawn from the prior, whatever the others are
                inner = inner[..., None] * self.prior[k]
        return inner.transpose(
            np.argsort(_ranks([*own, *(k for k in axes if k not in own)], axes))
        )

    @cached_property
    def touched(self) -> tuple[int, ...]:
        """The axes that any table is about."""
        return tuple(sorted({k for axes in self.sets for k in axes}))

    @cached_property
    def joint(self) -> Float[np.ndarray, "..."]:
        """The shares of all cells of the touched axes; only where they are few."""
        return sealed(
            cell_probabilities(self.domain.shape, self.prior, self.sets, self.potentials)[0]
        )

    @cached_property
    def _drawn(self) -> SparseTable:
        return self.synthetic(_ANSWERED)

    def synthetic(self, size: int, seed: int = 0) -> SparseTable:
        """A public table of `size` tuples, each from a chain of its own.

        Chains start at tuples of the tree of attributes with the model's margins; `sweeps` times they
        may jump to another of these, and then draw every attribute anew.
        """
        if not (isinstance(size, int | np.integer) and 0 <= size <= 2**31):
            raise ValueError(f"size = {size!r} is not allowed: need a whole number, 0 to 2^31")
        shape, rng = self.domain.shape, np.random.default_rng(seed)
        chains = Chains(shape, self.prior, self.sets)
        chains.set_potentials(self.potentials)
        chains.set_proposal(self.margins)
        states = chains.propose(int(size), rng)
        for _ in range(self.sweeps if len(self.sets) else 0):
            chains.jump(states, rng)
            chains.sweep(states, rng)
        keys = np.zeros(len(states), np.int64)
        for k, n in enumerate(shape):
            keys *= n
            keys += states[:, k]
        return SparseTable.from_keys(self.domain, keys, np.ones(len(keys), np.int64), PUBLIC)

    def to_frame(self) -> pd.DataFrame:
        """One row a potential: the attributes, their codes, what is expected, and the potential."""
        import pandas as pd

        frames = []
        for axes, potential, margin in zip(
            self.sets, self.potentials, self.margins, strict=True
        ):
            names = [self.domain.attributes[k] for k in axes]
            own = self.domain.project(names)
            cells = own.frame(np.arange(own.size)).astype(str).agg(" × ".join, axis=1)
            told = dict(attributes=" × ".join(names), cell=cells)
            told |= dict(potential=potential.ravel(), noisy=self.total * margin.ravel())
            frames.append(pd.DataFrame(told))
        names = ["attributes", "cell", "potential", "noisy"]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=names)

    def to_arrow(self) -> pyarrow.Table:
        """One row a potential for a Parquet file."""
        import pyarrow as pa

        flat = [
            np.concatenate([np.empty(0), *(t.ravel() for t in tables)])
            for tables in (self.potentials, self.margins)
        ]
        return pa.table(dict(zip(("potential", "share"), flat, strict=True)))

    def metadata(self) -> dict:
        """What `from_arrow` needs beside the table."""
        return {
            "domain": self.domain.to_dict(),
            "total": self.total,
            "prior": [p.tolist() for p in self.prior],
            "sets": [list(axes) for axes in self.sets],
            "explicit": self.explicit,
            "gap": None if np.isnan(self.gap) else self.gap,
            "sweeps": self.sweeps,
        }

    @classmethod
    def from_arrow(cls, table: pyarrow.Table, about: dict) -> Self:
        """A model from its file's table and record."""
        domain = Domain.from_dict(about["domain"])
        sets = tuple(tuple(axes) for axes in about["sets"])
        shapes = [[domain.shape[k] for k in axes] for axes in sets]
        ends = np.cumsum([prod(s) for s in shapes])[:-1]
        potentials, margins = (
            tuple(
                part.reshape(own)
                for part, own in zip(
                    np.split(table[name].to_numpy(), ends), shapes, strict=True
                )
            )
            for name in ("potential", "share")
        )
        gap = float("nan") if about["gap"] is None else about["gap"]
        prior = tuple(np.array(p) for p in about["prior"])
        told = about["explicit"], gap, about["sweeps"]
        return cls(domain, about["total"], prior, sets, potentials, margins, *told)


class _Expected:
    """What a model expects, where workloads look for the sums of a table; shares."""

    def __init__(self, model: Model):
        self.model, self.domain = model, model.domain

    @cached_property
    def _table(self) -> Margins:
        table = self.model._drawn
        return Margins(self.domain, table.keys, table.counts / table.total)

    def dense(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."] | None:
        known = self.model.margin(axes)
        return self._table.dense(axes) if known is None else known

    def occupied_cells(self, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        return self._table.occupied_cells(axes)


def cell_probabilities(
    shape, prior, sets, potentials
) -> tuple[Float[np.ndarray, "..."], float]:
    """The shares of all cells of the axes in `sets`, and ln Z = ln p0[exp(Σ potentials)]."""
    touched = sorted({k for axes in sets for k in axes})
    with np.errstate(divide="ignore"):
        parts = [((k,), np.log(prior[k])) for k in touched]
    score = np.zeros([shape[k] for k in touched])
    for axes, table in [*parts, *zip(sets, potentials, strict=True)]:
        by = np.argsort(axes)
        wide = [shape[k] if k in axes else 1 for k in touched]
        score = score + np.transpose(table, by).reshape(wide)
    top = score.max()
    np.exp(score - top, out=score)
    total = score.sum()
    score /= total
    return score, float(top + np.log(total))


def _over(table, held: Sequence[int], axes: Sequence[int]) -> Float[np.ndarray, "..."]:
    """A table on the axes `held`, summed down to `axes`, in that order."""
    inner = table.sum(axis=tuple(i for i, k in enumerate(held) if k not in axes))
    left = [k for k in held if k in axes]
    return inner.transpose([left.index(k) for k in axes])


def _ranks(now: Sequence[int], wanted: Sequence[int]) -> list[int]:
    return [list(wanted).index(k) for k in now]


def outer_product(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The table of independent attributes."""
    return reduce(np.multiply.outer, parts, np.ones(()))
