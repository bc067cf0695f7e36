"""What a mechanism is, and what it gives back."""

from __future__ import annotations

import json
import os
import platform
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import ceil, exp, isfinite, log, log1p, nextafter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from workbench import estimates, noise
from workbench.hierarchy import argsort_keys
from workbench.privacy import ADD_REMOVE, DP, WITHDRAWN, Receipt, compose
from workbench.records import Records
from workbench.table import Bound, SparseTable
from workbench.transform import TRANSFORMS, Basis, Dyadic
from workbench.value import parameter as parameter
from workbench.workload import Workload

if TYPE_CHECKING:
    import pandas as pd


class Mechanism(Protocol):
    """A frozen value: fields are the paper's parameters, calling it spends the budget.

    House rules, held by tests/test_laws.py for every class in `workbench.mechanisms`: the ledger stays
    within the budget; all randomness comes from `rng`, or from the operating system when it is None;
    the estimate is public and on the domain it declares; the error vanishes as ε grows, unless the
    class says `converges = False` and why.
    """

    budget: DP
    takes: ClassVar[type]
    cite: ClassVar[str]
    converges: ClassVar[bool] = True
    spends_delta: ClassVar[bool] = False
    relation: ClassVar[str] = ADD_REMOVE
    idealised: ClassVar[bool] = False

    def __call__(self, data: Any, rng: np.random.Generator | None = None) -> Release:
        """Release a private estimate of `data`."""

    @classmethod
    def example(cls, budget: DP) -> Self:
        """One sensible instance, for laws, audits and widgets."""


def pure_budget() -> Any:
    """The budget field of a mechanism that spends no δ."""

    def wrong(x) -> str | None:
        if not isinstance(x, DP):
            return "need a DP"
        if not (isfinite(x.epsilon) and x.epsilon > 0):
            return "need a finite epsilon > 0"
        return (
            "this mechanism is pure: it spends no delta, so ask for none" if x.delta else None
        )

    return parameter(check=wrong, doc="what the release may cost")


def approximate_budget(*, pure: bool = False) -> Any:
    """The budget field of a mechanism that spends δ; with `pure` it may also do without."""

    def wrong(x) -> str | None:
        if not isinstance(x, DP):
            return "need a DP"
        if not (isfinite(x.epsilon) and x.epsilon > 0):
            return "need a finite epsilon > 0"
        if x.delta == 1 or not (x.delta or pure):
            return "this mechanism can fail with probability delta: need 0 < delta < 1"
        return None

    return parameter(check=wrong, doc="what the release may cost, δ included")


def sensitivity(table: Any, takes: type | None = None) -> float:
    """The l1 bound of a private table, in counts; a ValueError for a public one or another class."""
    if takes and not isinstance(table, takes):
        raise ValueError(f"{table!r} is not what this mechanism takes: need {takes.__name__}")
    if not isinstance(table.bound, Bound):
        raise ValueError(
            "the table is PUBLIC: it can be shown as it is, and cannot be spent on (a private table "
            "states a Bound)"
        )
    return table.bound.l1


def refuse_size_above(mechanism: Any, m: int) -> None:
    """A ValueError if `mechanism.size` asks for more cells than the m that there are."""
    if mechanism.size > m:
        name = type(mechanism).__name__
        raise ValueError(
            f"{name}.size = {mechanism.size} is not allowed: need at most {m}, all that there are"
        )


def refuse_depth_above(mechanism: Any, most: int) -> None:
    """A ValueError if `mechanism.depth` asks for more levels than a hierarchy has."""
    if mechanism.depth > most:
        raise ValueError(
            f"{type(mechanism).__name__}.depth = {mechanism.depth!r} is not allowed: need at most "
            f"{most}, the levels of the hierarchy"
        )


def refuse_several_tuples_per_unit(mechanism: Any, table: SparseTable) -> None:
    """A ValueError for a table of which a unit may have more than one tuple."""
    if sensitivity(table) != 1:
        raise ValueError(
            f"a table of bound {table.bound!r} is not allowed: {type(mechanism).__name__} protects "
            "each tuple by itself, so need one tuple a unit, l1 = 1"
        )


def noise_blocks(basis: Basis, *, l1: float, epsilon: float) -> list[noise.Block]:
    """What noise is put on: sizes, sensitivities, and shares of ε that add up to it."""
    budgets = split_epsilon(epsilon, [nodes.share for nodes in basis.noise_blocks])
    return [
        noise.Block(nodes.size, Fraction(l1) * nodes.nodes_per_count, budget)
        for nodes, budget in zip(basis.noise_blocks, budgets, strict=True)
    ]


def split_epsilon(epsilon: float, shares: Sequence[Fraction]) -> list[float]:
    """Parts of ε, rounded so that together they are never more; the last one is what is left."""
    parts = []
    rest = Fraction(epsilon)
    for share in shares[:-1]:
        parts.append(_round_down(Fraction(epsilon) * share))
        rest -= Fraction(parts[-1])
    return [*parts, _round_down(rest)]


def noise_law_field() -> Any:
    """The field of a mechanism that adds one of two kinds of noise."""
    return parameter("laplace", choices=("laplace", "geometric"), doc="geometric: whole counts")


def empty_split_probability(mechanism: Any, tree: Any, decay: float) -> float:
    """p(0), the chance that an empty node is split: α^b/(1+α), α = exp(−decay).

    A ValueError if the k children of one that can be split are expected to split at least once.
    """
    chance = exp(-decay * ceil(mechanism.threshold)) / (1 + exp(-decay))
    enough = max(0.0, log(max(1, tree.branching)) - log1p(exp(-decay))) / decay
    if tree.branching * chance >= 1:
        raise ValueError(
            f"{type(mechanism).__name__}.threshold = {mechanism.threshold!r} is not allowed: of an "
            f"empty node's {tree.branching} children {tree.branching * chance:.3g} would be split, "
            f"so that empty nodes spawn for ever; need more than {enough:.6g}"
        )
    return chance


def noisy_leaves(
    records: Records, stopped: list, l1: float, epsilon: float, rng: np.random.Generator | None
) -> tuple[estimates.Leaves, Receipt]:
    """Noisy counts of the records below each of the nodes `stopped`, (level, keys) each.

    Together they are the whole space, none above another.
    """
    levels = np.concatenate([np.full(keys.shape[1], level) for level, keys in stopped])
    keys = np.concatenate([keys for _, keys in stopped], axis=1)
    by = argsort_keys(keys)
    levels, keys = levels[by], keys[:, by]
    counts, receipt = noise.geometric(
        records.counts_between(keys), l1=l1, epsilon=epsilon, rng=rng
    )
    decay = float(noise.decay(l1, epsilon))
    return estimates.Leaves(records.hierarchy, levels, keys, counts, decay), receipt


def refuse_dense(mechanism: Any, m: int, each: int = 40) -> None:
    """A ValueError if m cells of `each` bytes exceed `mechanism.memory`.

    A cell is a count, a noisy count, and what is made of them.
    """
    if (need := each * m) > mechanism.memory:
        raise ValueError(
            f"{type(mechanism).__name__}.memory = {mechanism.memory} is too little: {m} cells need "
            f"some {need} bytes"
        )


def dense_counts(mechanism: Any, table: SparseTable, each: int = 40) -> np.ndarray:
    """Every count of the domain, int64[cells], unless `refuse_dense`."""
    refuse_dense(mechanism, table.domain.size, each)
    return table.dense().ravel()


def memory_field() -> Any:
    """The field of a mechanism that holds every cell of its domain."""
    return parameter(2**32, 1, integer=True, unit="bytes", doc="refuse larger domains")


def transform_field() -> Any:
    """The field of a mechanism that can work in another basis."""
    return parameter(None, choices=(None, *TRANSFORMS), doc="of the table, before noise")


def consistent_field() -> Any:
    """The field of a mechanism that can drop nodes below absent ones."""
    return parameter(False, choices=(False, True), doc="drop nodes below absent ones (Dyadic)")


def refuse_inconsistent(mechanism: Any, theta: float | None) -> None:
    """A ValueError if `mechanism.consistent` is asked for where it means nothing."""
    name = type(mechanism).__name__
    if mechanism.consistent and not isinstance(mechanism.transform, Dyadic):
        raise ValueError(
            f"{name}.consistent = True is not allowed with transform = {mechanism.transform!r}: need "
            "Dyadic(), whose nodes have ancestors"
        )
    if mechanism.consistent and theta is not None and theta < 1:
        raise ValueError(
            f"{name}.theta = {theta!r} is not allowed with consistent = True: need at least 1, since "
            "an ancestor can only be missed after a filter"
        )


def _round_down(x: Fraction) -> float:
    """The largest float that is not above x."""
    return f if Fraction(f := float(x)) <= x else nextafter(f, 0)


@dataclass(frozen=True, eq=False)
class Release:
    """A public estimate, the receipts that paid for it, and the mechanism that made it.

    `mechanism` is its text in a release that was loaded from a file. `bound` is how far one unit was
    said to move the data: the guarantee is as true as it is.
    """

    estimate: Any
    ledger: tuple[Receipt, ...]
    mechanism: Mechanism | str
    bound: Bound | None = None

    @property
    def privacy(self) -> DP:
        """What the release cost, computed from the receipts and never merely stated."""
        return compose(self.ledger)

    @property
    def relation(self) -> str:
        """Which neighbours the guarantee is about."""
        return self.ledger[0].relation if self.ledger else ADD_REMOVE

    @property
    def by_theorem(self) -> str:
        """Which of its prices a theorem sets below the sum of their draws; "" if none."""
        return "; ".join(r.description for r in self.ledger if r.theorem)

    @property
    def simulated(self) -> bool:
        """Whether anyone with the seed can replay the noise."""
        return any(r.simulated for r in self.ledger)

    def __repr__(self) -> str:
        noise = ", simulated" * self.simulated
        return f"<Release {self.privacy}{noise}: {self.estimate!r} by {self.mechanism}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the guarantee, and every look that was paid for."""
        from html import escape

        rows = "".join(
            f"<tr><td>{escape(r.description)}</td><td>{escape(str(r.cost))}</td><td>{escape(r.relation)}</td></tr>"
            for r in self.ledger
        )
        noise = (
            "simulated: replayable, not to be published"
            if self.simulated
            else "drawn with floating point: idealised, not to be published"
            if any(r.idealised for r in self.ledger)
            else "system randomness"
        )
        return (
            f"<table><caption>{escape(str(self.privacy))} · {noise}<br>{escape(repr(self.estimate))}"
            f"<br><code>{escape(str(self.mechanism))}</code>"
            f"{f'<br>{escape(repr(self.bound))}' if self.bound else ''}</caption><thead><tr>"
            '<th scope="col">look</th><th scope="col">cost</th><th scope="col">neighbours</th></tr>'
            f"</thead><tbody>{rows}</tbody></table>"
        )

    def answer(self, workload: Workload, **options: Any) -> Any:
        """The estimate's answers; see the estimate for its options."""
        return self.estimate.answer(workload, **options)

    def to_frame(self) -> pd.DataFrame:
        """The estimate as a table with labels."""
        return self.estimate.to_frame()

    def save(self, path: str | Path, *, simulated: bool = False, force: bool = False) -> Path:
        """Write one Parquet file that any reader opens as a plain table; it carries the guarantee.

        A release from seeded noise is refused unless `simulated` says by name that it is meant, which
        the file then carries; an existing file is refused unless `force`. The file appears whole or not
        at all.
        """
        import pyarrow.parquet as parquet

        path = Path(path)
        if not self.ledger:
            raise ValueError("this release has no receipt for what it cost, and is never saved")
        if self.simulated and not simulated:
            raise ValueError(
                "this release was made with a seeded rng, so its noise can be replayed: release with "
                "rng=None to publish, or save with simulated=True"
            )
        if any(r.idealised for r in self.ledger):
            raise ValueError(
                "this release was drawn with floating point: idealised, never saved"
            )
        withdrawn = [r.description for r in self.ledger if r.withdrawn]
        if withdrawn:
            raise ValueError(
                f"this release promises nothing, and is never saved: {withdrawn[0]}"
            )
        refuse_existing(path, force)
        table = self.estimate.to_arrow()
        told = json.dumps(self._about()).encode()
        table = table.replace_schema_metadata(
            {**(table.schema.metadata or {}), b"workbench": told}
        )
        part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        try:
            parquet.write_table(table, part, compression="zstd")
            with open(part, "rb") as f:
                os.fsync(f.fileno())
            if force:
                os.replace(part, path)
            else:
                try:
                    os.link(part, path)  # fails where replace would silently overwrite
                except FileExistsError:
                    refuse_existing(path, force)
                except OSError:  # no hard links on this file system
                    open(path, "xb").close()
                    os.replace(part, path)
        except OSError as e:
            raise OSError(f"{path} was not written: {e.strerror or e}") from None
        finally:
            part.unlink(missing_ok=True)
        return path

    def _about(self) -> dict:
        from importlib.metadata import version

        ledger = [_receipt_record(r) for r in self.ledger]
        return {
            "format": 1,
            "kind": self.estimate.kind,
            "estimate": self.estimate.metadata(),
            "guarantee": str(self.privacy),
            "ledger": ledger,
            "bound": self.bound and asdict(self.bound),
            "simulated": self.simulated,
            "mechanism": str(self.mechanism),
            "versions": {p: version(p) for p in ("dp-workbench", "numpy", "pyarrow")}
            | {"python": platform.python_version()},
        }

    @classmethod
    def load(cls, path: str | Path) -> Release:
        """Read a file that `save` wrote; its mechanism stays text and is never evaluated."""
        table, told = read_release(path)
        try:
            kind = next(k for k in estimates.ALL if k.kind == told["kind"])
            ledger = tuple(_receipt(path, **r) for r in told["ledger"])
            if not ledger:
                raise ValueError(f"{path}: no receipt says what this release cost")
            bound = told["bound"] and Bound(**told["bound"])
            return cls(
                kind.from_arrow(table, told["estimate"]), ledger, told["mechanism"], bound
            )
        except (KeyError, TypeError, StopIteration) as e:
            raise ValueError(
                f"{path}: written by another version of the workbench ({e})"
            ) from None


def read_release(path: str | Path) -> tuple[Any, dict]:
    """The Arrow table and the record of a release file; whatever is shown of it is printable."""
    import pyarrow
    import pyarrow.parquet as parquet

    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such release file")
    try:
        table = parquet.read_table(path)
    except (pyarrow.ArrowException, OSError) as e:
        raise ValueError(f"{path}: not a complete Parquet file ({str(e)[:80]})") from None
    told = (table.schema.metadata or {}).get(b"workbench")
    if told is None or json.loads(told).get("format") != 1:
        raise ValueError(f"{path}: a Parquet file, but not a release of this workbench")
    told = json.loads(told)
    for shown in {"guarantee", "ledger", "mechanism", "versions"} & told.keys():
        told[shown] = _printable(told[shown])
    return table, told


def _printable(x: Any) -> Any:
    """The same, where text shows its control characters: a terminal would obey them."""
    if isinstance(x, dict):
        return {_printable(key): _printable(item) for key, item in x.items()}
    if isinstance(x, list):
        return [_printable(item) for item in x]
    if not isinstance(x, str):
        return x
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in x)


def refuse_existing(path: Path, force: bool) -> None:
    """A ValueError if `path` may not be written: it exists, or its folder does not."""
    if path.exists() and not force:
        raise ValueError(f"{path} exists: choose another name, or force to overwrite")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"{path.absolute().parent}: no such folder")


def _receipt_record(receipt: Receipt) -> dict:
    """What a file keeps of a receipt: its description is all that is said of its price."""
    return {
        "name": receipt.description,
        "cost": {"epsilon": str(receipt.cost.epsilon), "delta": receipt.cost.delta},  # may be ∞
        "relation": receipt.relation,
        "simulated": receipt.simulated,
        "idealised": receipt.idealised,
        "part": receipt.part,
    }


def _receipt(
    path: Any, name: str, cost: dict, part: Iterable | None = None, **rest: Any
) -> Receipt:
    """The receipt of a file's record; a name holds what `Receipt.description` adds to it."""
    own, by_theorem, theorem = name.partition(" (by theorem: ")
    if by_theorem and theorem.endswith(")"):
        rest |= dict(name=own, theorem=theorem[:-1])
    elif name.endswith(f" {WITHDRAWN}"):
        rest |= dict(name=name.removesuffix(f" {WITHDRAWN}"), withdrawn=True)
    else:
        rest |= dict(name=name)
    try:
        paid = DP(float(cost["epsilon"]), cost["delta"])
        return Receipt(cost=paid, part=part and tuple(part), **rest)
    except ValueError as e:
        raise ValueError(f"{path}: not a receipt that this workbench writes ({e})") from None
