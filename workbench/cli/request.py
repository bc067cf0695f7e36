"""What is asked of private data on a command line, checked before anything is loaded or read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.domain import Domain
    from workbench.privacy import DP
    from workbench.table import Bound

_DOMAIN = """\
The domain says which cells there can be. It is public knowledge and is never learnt from the data.
Write it as a JSON file and name it with --domain, for instance:

  {
    "home": {"file": "counties.txt"},
    "age": {"from": 0, "to": 99},
    "sex": ["F", "M"],
    "hour": 24
  }

an attribute (a column of the table) to a file with one label a line, to whole numbers from … to …,
to a list of labels, or to a number of values 0, 1, 2, …

--domain-from-data takes the values that occur in the file instead. That tells everyone which values
occur, which voids the guarantee: the release then promises nothing."""

_BOUND = """\
The bound says how far one unit (usually one person) can move the table: it adds to at most L0 cells
and at most LINF to each of them. Noise is made to hide that much and no more, so it must be true; it
is never learnt from the data. Somebody with one home and one workplace: --bound 1,1. Up to ten trips,
all of which may be the same: --bound 10,10; with a third number, at most so much in all cells
together: --bound 10,10,10."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a person typed, of all commands that publish something of private data."""

    table: Path
    out: Path
    epsilon: float
    delta: float = 0.0
    count: str | None = None
    domain_file: Path | None = None
    bound_text: str | None = None
    force: bool = False
    seed: int | None = None
    simulated: bool = False
    domain_from_data: bool = False

    def __post_init__(self):
        """Refuse at once what needs no library, and reads no data, to be refused."""
        self._refuse_place()
        if self.seed is not None and not self.simulated:
            raise ValueError(
                "--seed makes noise that can be replayed and taken off: leave it out to publish, or add "
                "--simulated to save a release that says so"
            )
        if self.bound_text is None:
            raise ValueError(f"--bound is missing\n\n{_BOUND}")
        if self.domain_file is None and not self.domain_from_data:
            raise ValueError(f"--domain is missing\n\n{_DOMAIN}")
        if self.domain_file is not None and self.domain_from_data:
            raise ValueError("--domain and --domain-from-data: need one of them, not both")
        if not self.table.is_file():
            raise FileNotFoundError(f"{self.table}: no such file")

    def _refuse_place(self) -> None:
        out = self.out
        if out.exists() and not self.force:
            raise ValueError(f"{out} exists: choose another name, or --force to overwrite it")
        if not out.absolute().parent.is_dir():
            raise FileNotFoundError(f"{out.absolute().parent}: no such folder")

    def refuse_unfit_values(self) -> None:
        """Refuse a bound, a budget or a domain that is none, before mechanisms are loaded."""
        for name in ("bound", "budget", "domain"):
            getattr(self, name)

    @cached_property
    def bound(self) -> Bound:
        """How far a unit moves the data, as stated."""
        return stated_bound(self.bound_text)

    @cached_property
    def budget(self) -> DP:
        """What the release may cost."""
        from workbench.privacy import DP

        return DP(self.epsilon, self.delta)

    @cached_property
    def domain(self) -> Domain | None:
        """Which cells there can be, as stated; None where it is to be read off the data."""
        from workbench.domain import Domain

        return None if self.domain_file is None else Domain.read(self.domain_file)


def stated_bound(text: str) -> Bound:
    """A bound as it is typed; a ValueError that explains what it is."""
    from workbench.option_grammar import parse_bound

    try:
        return parse_bound(text)
    except ValueError as e:
        raise ValueError(f"{e}\n\n{_BOUND}") from None
