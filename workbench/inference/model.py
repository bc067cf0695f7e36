"""Models of records. A model is a probability distribution over the cells of a domain. The answer of a model
to a query is computed exactly on a tree, or from records that Markov chains draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod
from typing import Any, ClassVar

import numpy as np

from workbench.compiled import pd
from workbench.estimates import Microdata
from workbench.estimates.estimate import Estimate, by_name
from workbench.estimates.stored import refuse_unless, refuse_unless_finite
from workbench.inference.gibbs import Chains
from workbench.inference.junction_tree import CalibratedTree, JunctionTree, summed
from workbench.queries import Margins, Recipe, TableMargins, linear_queries
from workbench.spaces import Domain
from workbench.value import Float, Int, read_only

# Model

_ANSWERING_TUPLES = 2**17  # they answer what the stored margins do not
_MAX_MARGIN_CELLS = 2**22
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Model(Estimate):
    """Model of `total` records: a probability distribution over the cells of a domain. The probability of a
    record t is p(t) ∝ Π_k prior_k(t_k) · exp(Σ_S potential_S(t_S)). It is a product of one factor for each
    attribute k and one factor for each set S of attributes.

    A model can answer any linear query, and its answers do not contradict each other. Standard errors are
    NaN, because the difference between the model and the true table is unknown.

    `sets` contains the sets of attributes, as numbers of axes. For each set, `potentials` contains the table
    potential_S in nats, and `margins` contains the probabilities of the table's cells. If `explicit` is True,
    all attributes in `sets` together have few cells, and every answer is exact. Otherwise, only answers that
    follow from a stored margin are exact. Other answers are means over 2¹⁷ drawn records, which are the same
    for all answers.

    `gap` is the duality gap, in nats, that the fit reached in `steps` steps. It is 0 for the best model p*.
    If the gap is estimated from drawn records, the estimate is too large on average. `lacks` is an estimate
    of the divergence KL(p* ‖ p) in nats, but not a bound. `sweeps` is the number of times that a Markov chain
    draws each attribute again before its record is used.
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
    steps: int = 0
    lacks: float = float("nan")
    kind: ClassVar[str] = "model"
    contents: ClassVar[str] = "potentials"

    def __post_init__(self) -> None:
        shape = self.domain.shape
        if tuple(len(p) for p in self.prior) != shape:
            raise ValueError(f"Model.prior does not fit a domain of {shape}")
        if not (np.isfinite(self.total) and self.total > 0):
            raise ValueError(f"Model.total = {self.total!r} is not allowed: need a number > 0")
        for name in ("potentials", "margins"):
            tables = tuple(read_only(np.asarray(t, float)) for t in getattr(self, name))
            if [table.shape for table in tables] != _shapes(self.domain, self.sets):
                raise ValueError(f"Model.{name} do not fit the sets {self.sets}")
            object.__setattr__(self, name, tables)

    def __len__(self) -> int:
        return sum(table.size for table in self.potentials)

    def __repr__(self) -> str:
        return (
            f"<Model of {self._attribute_names}: {len(self):,} potentials in "
            f"{len(self.sets)} tables>"
        )

    def _answer(self, workload: Recipe, error: bool) -> Any:
        queries = linear_queries(workload, self.domain)
        return queries.sums_of_margins(_ExpectedMargins(self)) * self.total

    def margin(self, axes: Sequence[int]) -> Float[np.ndarray, "..."] | None:
        """Return the expected share of each combination of values of some attributes. Return None if there
        are too many combinations, or if the shares cannot be computed without drawing records.

        Parameters
        ----------
        axes : sequence of int
            Numbers of the attributes, one per axis of the result.

        Returns
        -------
        float64[...] or None
            Shares, which add up to 1.
        """
        axes = tuple(axes)
        if prod(self.domain.shape[k] for k in axes) > _MAX_MARGIN_CELLS:
            return None
        if self.explicit:
            return self.tree.margin(axes)
        modelled = [k for k in axes if k in self.modelled_axes]
        if not modelled:
            table = np.ones(())
        else:
            covering = [i for i, s in enumerate(self.sets) if set(modelled) <= set(s)]
            if not covering:
                return None
            i = min(covering, key=lambda i: self.margins[i].size)
            table = summed(self.margins[i], self.sets[i], modelled)
        independent = [k for k in axes if k not in modelled]
        for k in independent:  # drawn from the prior, whatever the others are
            table = table[..., None] * self.prior[k]
        places = [axes.index(k) for k in [*modelled, *independent]]
        return table.transpose(np.argsort(places))

    @property
    def distance(self) -> float:
        """Upper bound on the distance Σ|p − p*| between this model p and the best model p*. The bound is
        √gap, but at most 2.

        If all weights of a query are between 0 and 1, the answers of the two models differ by at most half of
        this distance times the total. If records are drawn for an answer, there is an additional error.
        """
        return float(np.minimum(2.0, np.sqrt(np.maximum(self.gap, 0.0))))

    @cached_property
    def modelled_axes(self) -> tuple[int, ...]:
        """Numbers of the attributes that are in at least one set."""
        return tuple(sorted({k for axes in self.sets for k in axes}))

    @cached_property
    def tree(self) -> CalibratedTree:
        """Junction tree of the model with its marginal distributions, from which exact answers are computed.
        It can be computed only if the tables of the tree have few cells.
        """
        tree = JunctionTree(self.domain.shape, self.prior, self.sets)
        return tree.calibrate(self.potentials)

    @cached_property
    def _drawn(self) -> Microdata:
        return self.synthetic(_ANSWERING_TUPLES)

    def synthetic(self, size: int, seed: int = 0) -> Microdata:
        """Draw independent synthetic records from the model. If the records cannot be drawn exactly with a
        tree, each of them is drawn by a separate Markov chain.

        A chain starts at a record that is drawn from a simpler distribution, a tree of attributes with the
        margins of the model. Then it repeats two steps `sweeps` times. First, it may jump to another record
        that is drawn from the simpler distribution. Second, it draws every attribute again.

        Parameters
        ----------
        size : int
            Number of records.
        seed : int
            Seed of the random draws. It may be public.

        Returns
        -------
        Microdata
            Public synthetic records.

        Raises
        ------
        ValueError
            If `size` is not an integer from 0 to 2^31.
        """
        if not (isinstance(size, int | np.integer) and 0 <= size <= 2**31):
            raise ValueError(f"size = {size!r} is not allowed: need an integer, 0 to 2^31")
        codes = self._draw(int(size), np.random.default_rng(seed))
        return Microdata(self.domain, np.sort(self.domain.keys(codes)), self.gap, self.lacks)

    def _draw(self, size: int, rng: np.random.Generator) -> Int[np.ndarray, "size attributes"]:
        """Draw `size` records, and return the codes of their values."""
        chains = Chains(self.domain.shape, self.prior, self.sets)
        chains.set_potentials(self.potentials)
        chains.set_proposal(self.margins)
        states = chains.propose(size, rng)
        for _ in range(self.sweeps if len(self.sets) else 0):
            chains.step(states, rng)
        return states

    @property
    def why_unknown(self) -> str:
        """Sentence that explains why a model has no standard errors."""
        return "only the private data tell how accurate a model of the release is"

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with the potentials of all sets of attributes.

        Returns
        -------
        pandas.DataFrame
            One row per cell of each potential. Its columns are the attributes, the codes of their values
            (`cell`), the `potential` in nats, and the expected count (`noisy`).
        """
        columns = ["attributes", "cell", "potential", "noisy"]
        frames = []
        for axes, potential, margin in zip(
            self.sets, self.potentials, self.margins, strict=True
        ):
            names = [self.domain.attributes[k] for k in axes]
            table = self.domain.project(names)
            cells = table.frame(np.arange(table.size)).astype(str).agg(" × ".join, axis=1)
            rows = (" × ".join(names), cells, potential.ravel(), self.total * margin.ravel())
            frames.append(pd.DataFrame(dict(zip(columns, rows, strict=True))))
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)

    def marginals(self, frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """Divide the rows of `to_frame()` into one table per set of attributes. Each table has columns with
        the labels of its attributes.
        """
        counts = frame.drop(columns=["attributes", "cell", "potential"])
        tables = []
        begin = 0
        for axes in self.sets:
            names = [self.domain.attributes[k] for k in axes]
            cells = self.domain.project(names)
            labels = cells.frame(np.arange(cells.size))
            rows = counts.iloc[begin : begin + cells.size].reset_index(drop=True)
            rows = rows.rename(columns={name: f"{name}_" for name in labels.columns})
            tables.append((names, pd.concat([labels, rows], axis=1)))
            begin += cells.size
        return by_name(tables)

    def _columns(self) -> dict[str, Any]:
        """Return the columns of the file in which the model is saved. They have one row per cell, one set of
        attributes after another.
        """
        return {"potential": flattened(self.potentials), "share": flattened(self.margins)}

    @classmethod
    def _from_columns(cls, table: Any, fields: dict[str, Any]) -> dict[str, Any]:
        shapes = _shapes(fields["domain"], fields["sets"])
        potentials = np.asarray(table["potential"].to_numpy(), float)
        shares = np.asarray(table["share"].to_numpy(), float)
        refuse_unless_finite(potentials, "potentials")
        near_shares = (0 <= shares) & (shares <= 1 + _ROUNDING)
        refuse_unless(near_shares.all(), "shares", "numbers from 0 to 1")
        return {
            "potentials": _unflattened(potentials, shapes),
            "margins": _unflattened(shares, shapes),
        }


class _ExpectedMargins(Margins):
    """Expected shares of cells under a model. The class has the methods of a table of sums, so queries can be
    answered from it.
    """

    def __init__(self, model: Model):
        self.model = model
        self.domain = model.domain

    @cached_property
    def _table(self) -> TableMargins:
        table = self.model._drawn.table
        return TableMargins(self.domain, table.keys, table.counts / table.total)

    def dense(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."] | None:
        margin = self.model.margin(axes)
        return self._table.dense(axes) if margin is None else margin

    def occupied_cells(self, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        return self._table.occupied_cells(axes)


def _shapes(domain: Domain, sets: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    return [tuple(domain.shape[k] for k in axes) for axes in sets]


def flattened(tables: Sequence[np.ndarray]) -> Float[np.ndarray, " cells"]:
    """Return one vector that contains the cells of all tables, one table after another."""
    return np.concatenate([np.empty(0), *(table.ravel() for table in tables)])


def _unflattened(values: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> tuple[Any, ...]:
    ends = np.cumsum([prod(shape) for shape in shapes])
    parts = np.split(values, ends[:-1])
    return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))


def outer_product(vectors: Sequence[np.ndarray]) -> np.ndarray:
    """Return the joint probabilities of independent attributes, given one vector of probabilities per
    attribute.
    """
    return reduce(np.multiply.outer, vectors, np.ones(()))


# Tree model


@dataclass(frozen=True, eq=False)
class TreeModel(Model):
    """Model of records (see `Model`) whose answers are computed on a junction tree. Every margin with few
    cells is exact, and drawn records are independent.
    """

    kind: ClassVar[str] = "tree-model"

    def margin(self, axes: Sequence[int]) -> Float[np.ndarray, "..."] | None:
        """Return the expected share of each combination of values of some attributes. Return None if there
        are too many combinations.
        """
        return self.tree.margin(axes)

    def _draw(self, size: int, rng: np.random.Generator) -> Int[np.ndarray, "size attributes"]:
        return self.tree.draw(size, rng)
