"""The options of commands that publish private data, checked before anything is loaded or read."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from workbench.cli import options
from workbench.cli.options import StatedSpace, need_one, option_of
from workbench.mechanisms.options import parse_bound
from workbench.privacy import DP, ZCDP

if TYPE_CHECKING:
    import numpy as np

    from workbench.data import Bound
    from workbench.mechanisms.protocol import Mechanism
    from workbench.owner import Budget
    from workbench.spaces import Domain


_BOUND = (
    "--bound is missing. Give the largest change that one unit, usually one person, makes to the table: in "
    "how many cells, and by how much in each. For example, --bound 10,1. Take both from public knowledge, "
    "never from the data"
)
_DOMAIN = (
    "--domain is missing. Name a JSON file of the values that each column can have, for example "
    '{"age": {"from": 0, "to": 99}, "sex": ["F", "M"], "hour": 24}, from public knowledge: `workbench domain '
    "new --from TABLE --out domain.json` begins one. For points, strings or codes, give --box, --strings or "
    "--taxonomy. --domain-from-data takes the values of the table, which voids the guarantee"
)
_UNIT = (
    "--user or --unit is missing. Name the column that says whose each row is, for example --user user_id "
    "--bound 10,1, to protect all that a user has. Without such a column, say what a row is, for example "
    "--unit 'a trip' --bound 1,1, to protect each row by itself"
)


@dataclass(frozen=True, kw_only=True)
class Request(StatedSpace):
    """Options of all commands that publish something from private data.

    Parameters
    ----------
    table : TABLE
        CSV (also .gz, .zst), Parquet, folders or globs of them, or a DuckDB or SQLite file.
    out
        The file to write: x.parquet, or x.csv, with its guarantee in x.csv.json and a table per
        marginal in x.csv.tables. With --publish FOLDER it is FOLDER.parquet by default.
    folder : --publish FOLDER
        Also write a folder and a zip file for the public: table, data sheet, metadata.
    about_file : --about FILE
        Title, publisher, contact and licence for --publish (JSON).
    epsilon
        Privacy loss ε. Required unless you give --rho.
    rho
        Privacy loss ρ in zero-concentrated differential privacy, in place of --epsilon. Noise is then
        Gaussian. With --delta, the cost is also shown as an ε.
    table_name : --table NAME
        Table of a DuckDB or SQLite file.
    count
        Column of counts. By default each row counts one.
    domain_file : --domain FILE
        Domain file (JSON) with the possible cells. Required.
    bound : L0,LINF[,L1]
        Most that one unit can change: number of cells, per cell, in total. Required.
    delta
        Failure probability δ. By default 0.
    epsilon_is_meant
        Allow ε above 10, although it protects little.
    budget_file : --budget FILE
        Budget file to spend from.
    user : COLUMN
        Column with the user of each row. Random rows of each user are kept, within the bound.
    user_type
        Read user identifiers as text, so that 7 and 007 are two people. By default 007 is refused.
    unit : TEXT
        Unit of protection, for example 'a trip'. Required without --user. The bound is then believed and not
        enforced.
    report_cut : EPS
        Also release a noisy number of truncated users, for this additional ε.
    choose : l=N,N,…
        Values from which the data choose one privately: l of SRA and HPA, bound of LPA, theta of
        HighPassFilter.
    choose_epsilon
        Privacy loss of the choice, in addition to --epsilon.
    force
        Overwrite the file.
    seed
        Seed for noise that can be replayed. Needs --simulated.
    simulated
        Allow a release that is not for publication.
    domain_from_data
        Read the domain from the data. Voids the guarantee.

    Rows with their users
    ---------------------
    item : COLUMN[,…]
        Attribute with the items, or several, which are combined. By default the first of the domain.
    context : COLUMN[,…]
        Attribute with the contexts, or several, which are combined. By default the second of the domain.

    Tables larger than memory
    -------------------------
    workers : N
        Number of threads. Rows are kept in scratch files, so the table may be larger than memory.
    scratch : FOLDER
        Folder for scratch files. They are in a private folder within it, which is removed at the end.

    Many machines
    -------------
    scheduler : ADDRESS|FILE
        Dask cluster to run on: the address of its scheduler, or its scheduler file.
    insecure
        Accept a tcp:// scheduler on another machine, although private rows then cross the network
        unencrypted.
    """

    table: list[Path] = field(kw_only=False)
    out: Path = None  # type: ignore[assignment]  # FOLDER.parquet, once the request is checked
    folder: Path | None = None
    about_file: Path = Path("publication.json")
    epsilon: float | None = None
    rho: float | None = None
    table_name: str | None = None
    count: str | None = None
    domain_file: Path | None = None
    bound: Annotated[Any, typer.Option(parser=parse_bound)] = None
    delta: float | None = None
    epsilon_is_meant: bool = False
    budget_file: Path | None = None
    user: str | None = None
    user_type: Literal["text"] | None = None
    unit: str | None = None
    report_cut: float | None = None
    item: str | None = None
    context: str | None = None
    workers: options.Positive = None
    scratch: Path | None = None
    scheduler: str | None = None
    insecure: bool = False
    choose: str | None = None
    choose_epsilon: float | None = None
    force: bool = False
    seed: options.Seed = None
    simulated: bool = False
    domain_from_data: bool = False

    def __post_init__(self) -> None:
        """Refuse what can be refused without libraries and without reading data."""
        super().__post_init__()
        if self.folder is not None:
            from workbench.owner.publication import read_about, refuse_folder

            refuse_folder(self.folder)
            read_about(self.about_file)
            object.__setattr__(self, "out", self.out or Path(f"{self.folder}.parquet"))
        if self.out is None:
            raise ValueError(
                "--out is missing. Name the file to write, for example --out release.parquet, or a folder for "
                "the public with --publish FOLDER"
            )
        need_one({"--epsilon": self.epsilon, "--rho": self.rho}, options.PRICE)
        if self.seed is not None and not self.simulated:
            raise ValueError(
                "--seed makes noise that can be replayed and taken off: leave it out to publish, or add "
                "--simulated to save a release that says so"
            )
        if self.budget_file is not None:
            why = "what promises nothing is not paid for"
            self._refuse_given("--budget", "seed simulated domain_from_data", why)
        cells = {"--domain": self.domain_file, "--domain-from-data": self.domain_from_data}
        if not any(cells.values()) and not self.has_space:
            raise ValueError(_DOMAIN if self.bound or self.user is not None else _BOUND)
        need_one(cells | {"a space of points, strings or codes": self.has_space})

        from workbench.data import files_of
        from workbench.estimates.release_files import refuse_input, refuse_place

        others = [self.domain_file, self.budget_file, self.taxonomy]
        refuse_input(self.out, [*files_of(self.table), *others])
        refuse_place(self.out, self.force)

    def refuse_unfit(self, mechanism: type[Mechanism]) -> None:
        """Refuse options that do not fit the data that a mechanism takes, before any data is read."""
        from workbench.data import Bound, Interactions, UnlistedValues
        from workbench.estimates.release import refuse_report_cut

        if self.user is not None:
            _ = Bound().of(self.who)  # what a release will say of it
        elif mechanism.takes is Interactions:
            raise ValueError(
                f"{mechanism.__name__} needs --user COLUMN, which says whose each row is: it counts a few "
                "records of each user, and protects all of a user's records together"
            )
        elif self._protected is None:
            raise ValueError(_BOUND if self.bound is None else _UNIT)
        else:
            why = "it is about the users of a column"
            self._refuse_given("a table without --user", "user_type report_cut", why)
        if self.report_cut is not None:
            refuse_report_cut(self.report_cut)
        if self.is_in_parts:
            need_one({"--workers": self.workers, "--scheduler": self.scheduler}, least=0)
            why = "cells of a stated domain are released in parts"
            places = "domain_from_data box strings taxonomy"
            self._refuse_given("--workers, --scratch and --scheduler", places, why)
        _ = self.budget_for(mechanism)
        if mechanism.takes is not Interactions:
            _ = self.bound_of_unit
        _ = self.unlisted if mechanism.takes is UnlistedValues else self.domain

    def _refuse_given(self, name: str, fields: str, why: str) -> None:
        for one in fields.split():
            if getattr(self, one) not in (None, False):
                raise ValueError(f"{name} does not take {option_of(one)}: {why}")

    @property
    def is_in_parts(self) -> bool:
        """Whether rows go to scratch files."""
        return (self.workers, self.scratch, self.scheduler) != (None, None, None)

    @cached_property
    def bound_of_unit(self) -> Bound:
        """Stated bound: the most that one unit can change the data."""
        if self.bound is None:
            raise ValueError(_BOUND)
        bound: Bound = self.bound
        if self.unit is None:
            unit = self._protected  # by the budget: nobody said that a row is one
            return bound if unit is None else bound.believed(unit)
        if not self.unit.strip():
            raise ValueError(f"--unit {self.unit!r} is not allowed: need words, as 'a trip'")
        return bound.of(self.unit)

    @property
    def _protected(self) -> str | None:
        """Return what is protected, in words, as stated or as in the budget file."""
        if self.unit is None and self.budget is not None:
            return self.budget.unit
        return self.unit

    @property
    def who(self) -> str:
        """Unit that the user column identifies, in words."""
        from workbench.data import in_words

        return in_words(self._protected or "a user", self.user or "")

    def rng(self, purpose: str) -> np.random.Generator | None:
        """Return a seeded generator, which has a separate stream for each purpose. Return None for a
        release to publish.
        """
        import numpy as np

        if self.seed is None:
            return None
        seed = self.seed if purpose == "noise" else [self.seed, *purpose.encode()]
        return np.random.default_rng(seed)

    @cached_property
    def edges(self) -> dict[str, Any]:
        """Arguments for reading interactions. They are the domain, and which attributes are items and
        contexts.
        """
        domain = self.stated_domain
        names = domain.attributes
        items, contexts = map(self._attributes, (self.item, self.context))
        items = items or tuple(name for name in names if name not in contexts)[:1]
        contexts = contexts or tuple(name for name in names if name not in items)[:1]
        if not items or not contexts:
            raise ValueError(
                f"the domain of {', '.join(names)} has no attribute left: need --item and --context, which "
                "share none"
            )
        if len(items) == len(contexts) == 1:
            return {"domain": domain.project([*items, *contexts])}
        return {"domain": domain, "item": items, "context": contexts}

    def _attributes(self, text: str | None) -> tuple[str, ...]:
        """Return one attribute, or several separated by commas."""
        if text is None:
            return ()
        return (text,) if text in self.stated_domain.attributes else tuple(text.split(","))

    def workload(self, option: str, text: str) -> Any:
        """Return the queries that `--workload`, `--marginals` or `--initial` states."""
        from workbench.estimates.release_files import refuse_input
        from workbench.queries import stated

        refuse_input(self.out, [Path(text)])
        read = stated.read_queries if option == "workload" else stated.read_marginals
        return read(text, self.stated_domain)

    @cached_property
    def budget(self) -> Budget | None:
        """Budget that pays for the release, or None."""
        from workbench.cli.budget import opened_for

        if self.budget_file is None:
            return None
        return opened_for(self.budget_file, self.paying_unit, self.user)

    @property
    def paying_unit(self) -> str | None:
        """Return the unit that the command states, or None if it states none."""
        return "a user" if self.unit is None and self.user is not None else self.unit

    def budget_for(self, mechanism: type[Mechanism]) -> DP | ZCDP:
        """Return the budget of a release by this class of mechanisms.

        If the class can draw Gaussian noise and spends no δ itself, an ε with a δ becomes the largest ρ
        that implies both.
        """
        cost: DP | ZCDP
        delta = self.delta or 0.0
        if self.epsilon is None:
            rho: Any = self.rho  # one of the two is given
            cost = ZCDP(rho, delta if mechanism.spends_delta else 0.0)
        else:
            cost = DP(self.epsilon, delta)
            if delta and mechanism.accepts_zcdp and not mechanism.spends_delta:
                cost = ZCDP.within(cost)
            elif not mechanism.accepts_dp:
                raise ValueError(
                    f"--mechanism {mechanism.__name__} draws Gaussian noise, which ε alone does not pay "
                    "for: add --delta, or give --rho in place of --epsilon"
                )
        reading = self.reading_delta(mechanism)
        if isinstance(cost, ZCDP) and reading is not None:
            cost.at(reading)  # refuses what is no δ before anything is paid for
        beside = [x for x in (self.report_cut, self.choose_epsilon) if x and isfinite(x)]
        if self.seed is None:
            options.refuse_unmeant(cost, sum(beside), self.epsilon_is_meant)
        if self.budget is None:
            return cost
        return self.budget.payable(cost, [DP(x) for x in beside])

    def reading_delta(self, mechanism: type[Mechanism]) -> float | None:
        """Return the δ at which the ρ of a release is also shown as an ε. Return None if none is stated."""
        is_read = (self.rho is not None or self.delta) and not mechanism.spends_delta
        return self.delta if is_read else None

    @cached_property
    def domain(self) -> Domain | None:
        """Stated domain, or None if it will be read from the data."""
        from workbench.estimates.release_files import refuse_input
        from workbench.spaces.domain import Domain, files_within

        if self.domain_file is None:
            return None
        refuse_input(self.out, files_within(self.domain_file))
        return Domain.read(self.domain_file)

    @cached_property
    def unlisted(self) -> Any:
        """Column of unlisted values, as the domain file states it."""
        from workbench.data import UnlistedColumn

        if self.domain_file is None:
            raise ValueError(_DOMAIN)
        return UnlistedColumn.of(self.domain_file)

    @property
    def stated_domain(self) -> Domain:
        """Domain for a command that needs one."""
        if self.domain is None:
            raise ValueError(_DOMAIN)
        return self.domain
