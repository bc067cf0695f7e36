"""Options of the commands that make a release from private data. They are checked before libraries are loaded
and data are read.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite
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
    "--user or --unit is missing. Name the column of users, for example --user user_id "
    "--bound 10,1, to protect all that a user has. Without such a column, say what a row is, for example "
    "--unit 'a trip' --bound 1,1, to protect each row by itself"
)


@dataclass(frozen=True, kw_only=True)
class Request(StatedSpace):
    """Options of all commands that make a release from private data.

    Parameters
    ----------
    table : TABLE
        Private table. Give CSV files (also .gz or .zst) or Parquet files, folders or patterns of such files,
        or a DuckDB or SQLite file.
    out
        File for the release. If you give x.csv, the command writes the privacy guarantee to x.csv.json, and
        one table per marginal to x.csv.tables. If you give x.parquet, this file contains everything. With
        --publish FOLDER, the default is FOLDER.parquet.
    folder : --publish FOLDER
        New folder for a publication with the table, a data sheet and metadata. The command also writes a zip
        file of the folder.
    about_file : --about FILE
        JSON file with the title, publisher, contact and licence, for --publish.
    epsilon
        Privacy loss ε. Required if you do not give --rho.
    rho
        Privacy loss ρ (zero-concentrated differential privacy), in place of --epsilon. The noise is then
        Gaussian. With --delta, the command also shows the cost as an ε.
    table_name : --table NAME
        Name of the table in a DuckDB or SQLite file.
    count
        Column that contains counts. By default each row counts 1.
    domain_file : --domain FILE
        Domain file (JSON), which lists all possible cells. Only mechanisms that find the values themselves do
        not need it.
    bound : L0,LINF[,L1]
        Largest change of the table that one protected unit, for example a person, can cause: the number of
        cells, the change per cell, and the change in total. Only mechanisms that draw records of each user,
        for example SRA, do not need a bound.
    delta
        Probability δ with which the factor e^ε may be exceeded. By default 0. Some mechanisms need a δ above
        0, for example 1e-6.
    epsilon_is_meant
        Confirm an ε above 10, which protects little.
    budget_file : --budget FILE
        Budget file that pays for the release.
    user : COLUMN
        Column that identifies the user of each row. If a user has more rows than --bound allows, the command
        keeps random rows of this user, as many as --bound allows.
    user_type
        Type of the column of users. With `text`, 7 and 007 are two people. By default, 007 is an error.
    unit : TEXT
        Person, household or event that is protected, for example 'a trip'. Required without --user. The
        workbench cannot check then that no unit exceeds --bound, and believes you.
    report_cut : EPS
        Additional ε, for which the command also releases a number: how many users have more rows than --bound
        allows. This number has noise.
    choose : l=N,N,…
        Values of a parameter, from which the mechanism chooses one. The choice depends on the data and is
        made with noise. Possible for l of SRA and HPA, bound of LPA, and theta of HighPassFilter.
    choose_epsilon
        Privacy loss ε of the choice. It is added to --epsilon.
    force
        Overwrite an existing file.
    seed
        Seed of the noise. With the same seed, you get the same result each time. Anyone with the seed can
        subtract the noise. Needs --simulated.
    simulated
        Confirm that the release is simulated, and that you will not publish it.
    domain_from_data
        Read the list of possible cells from the data, in place of --domain. The release then has no privacy
        guarantee.

    Rows with their users
    ---------------------
    item : COLUMN[,…]
        Attribute that is the item of a record, for example a place. If you give several attributes, the item
        is their combination. By default the first attribute of the domain.
    context : COLUMN[,…]
        Attribute that is the context of a record, for example the hour. If you give several attributes, the
        context is their combination. By default the second attribute of the domain.

    Tables larger than memory
    -------------------------
    workers : N
        Number of threads. With this option, the command stores rows in scratch (temporary) files, so the
        table may be larger than memory.
    scratch : FOLDER
        Folder for scratch (temporary) files. The command writes them to a private subfolder, and removes the
        subfolder at the end.

    Many machines
    -------------
    scheduler : ADDRESS|FILE
        Dask cluster that does the work. Give the address of its scheduler, or the scheduler's JSON file.
    insecure
        Accept an unencrypted connection (tcp://) to another machine. Private rows are then sent unencrypted.
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
        """Raise a ValueError for options that are wrong. This first check needs no libraries and reads no
        data.
        """
        super().__post_init__()
        if self.folder is not None:
            object.__setattr__(self, "out", self.out or Path(f"{self.folder}.parquet"))
        if self.out is None:
            raise ValueError(
                "--out is missing. Name the file to write, for example --out release.parquet, or a folder for "
                "the public with --publish FOLDER"
            )
        need_one({"--epsilon": self.epsilon, "--rho": self.rho}, options.PRICE)
        if self.epsilon is not None and not 0 < self.epsilon < inf:
            raise ValueError(
                f"--epsilon = {self.epsilon:g} is not allowed: need a finite number > 0"
            )
        if self.seed is not None and not self.simulated:
            raise ValueError(
                "anyone who knows --seed can subtract the noise. Leave it out to publish the release, or add "
                "--simulated to save a release that is marked as simulated"
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
        if self.lacks_publication and not self.force:
            raise ValueError(
                f"{self.out} exists, but its publication {self.folder} does not. To publish this release "
                f"without paying again: {self.finish}. To make a new release, choose another name, or "
                "--force to overwrite it"
            )
        refuse_place(self.out, self.force)

    @property
    def lacks_publication(self) -> bool:
        """Whether the release of this command exists, but not the publication that --publish asks for."""
        if self.folder is None or not self.out.exists():
            return False
        return not Path(f"{self.folder}.zip").exists()

    @property
    def finish(self) -> str:
        """Command that publishes the existing release, and spends nothing."""
        if self.out.suffix != ".parquet":
            arguments = f"{str(self.folder)!r}, {str(self.about_file)!r}"
            return f"Release.load({str(self.out)!r}).publish({arguments}) in Python"
        words = ["workbench", "publish", *map(str, self.table)]
        words += ["--publish", str(self.out.with_suffix(""))]
        if self.about_file != Path("publication.json"):
            words += ["--from", str(self.about_file)]
        return shlex.join(words)

    def refuse_unfit(self, mechanism: type[Mechanism]) -> None:
        """Raise a ValueError for options that do not fit the kind of data that a mechanism accepts. No data
        are read.
        """
        from workbench.data import Bound, Interactions, UnlistedValues
        from workbench.estimates.release import refuse_report_cut

        if self.user is not None:
            _ = Bound().of(self.who)  # what a release will say of it
        elif mechanism.takes is Interactions:
            raise ValueError(
                f"{mechanism.__name__} needs --user COLUMN, the column of users. It counts a few records of "
                "each user, and protects all of a user's records together"
            )
        elif self._protected is None:
            raise ValueError(_BOUND if self.bound is None else _UNIT)
        else:
            why = "it is about the users of a column"
            self._refuse_given("a table without --user", "user_type report_cut", why)
        if self.folder is not None:
            from workbench.owner import publication

            self._refuse_given("--publish", "domain_from_data", "it would promise nothing")
            publication.refuse_folder(self.folder)
            publication.refuse_other_person(self.about_file, self._protected or "")
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
        """Whether the rows are written to scratch files, so that they need not fit in memory."""
        return (self.workers, self.scratch, self.scheduler) != (None, None, None)

    @cached_property
    def bound_of_unit(self) -> Bound:
        """Bound that the user stated, which is the largest change of the data that one protected unit can
        cause.
        """
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
        """Protected unit in words, from the options or from the budget file. None if neither states a unit."""
        if self.unit is None and self.budget is not None:
            return self.budget.unit
        return self.unit

    @property
    def who(self) -> str:
        """Protected unit in words, if there is a column of users."""
        from workbench.data import in_words

        return in_words(self._protected or "a user", self.user or "")

    def rng(self, purpose: str) -> np.random.Generator | None:
        """Return a seeded generator, with different random numbers for each purpose. Return None if no seed
        is given, because the release may be published.
        """
        import numpy as np

        if self.seed is None:
            return None
        seed = self.seed if purpose == "noise" else [self.seed, *purpose.encode()]
        return np.random.default_rng(seed)

    @cached_property
    def edges(self) -> dict[str, Any]:
        """Arguments for reading records of users: the domain, and the attributes that are the item and the
        context of a record.
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
        """Split the names of attributes in an option at commas."""
        if text is None:
            return ()
        return (text,) if text in self.stated_domain.attributes else tuple(text.split(","))

    def workload(self, option: str, text: str) -> Any:
        """Return the queries that the option `--workload`, `--marginals` or `--initial` describes."""
        from workbench.estimates.release_files import refuse_input
        from workbench.queries import stated

        refuse_input(self.out, [Path(text)])
        read = stated.read_queries if option == "workload" else stated.read_marginals
        return read(text, self.stated_domain)

    @cached_property
    def budget(self) -> Budget | None:
        """Budget that pays for the release. None if the user gave no budget file."""
        from workbench.cli.budget import opened_for

        if self.budget_file is None:
            return None
        return opened_for(self.budget_file, self.paying_unit, self.user)

    @property
    def paying_unit(self) -> str | None:
        """Protected unit that the options state. None if they state no unit."""
        return "a user" if self.unit is None and self.user is not None else self.unit

    def budget_for(self, mechanism: type[Mechanism]) -> DP | ZCDP:
        """Return the budget (ε and δ, or ρ) with which the mechanism is made.

        Suppose that the class can draw Gaussian noise, and does not use a δ itself. Then ε and δ are
        converted to the largest ρ that implies (ε, δ)-differential privacy.
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
                    f"{mechanism.__name__} draws Gaussian noise, which ε alone does not pay for: add --delta, "
                    "or give --rho in place of --epsilon"
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
        """Return the δ at which the ρ of a release is also shown as an ε. Return None if the user gave no δ."""
        is_read = (self.rho is not None or self.delta) and not mechanism.spends_delta
        return self.delta if is_read else None

    @cached_property
    def domain(self) -> Domain | None:
        """Domain (all possible cells), from the domain file. None if the user gave no such file."""
        from workbench.estimates.release_files import refuse_input
        from workbench.spaces.domain import Domain, files_within

        if self.domain_file is None:
            return None
        refuse_input(self.out, files_within(self.domain_file))
        return Domain.read(self.domain_file)

    @cached_property
    def unlisted(self) -> Any:
        """Column without a list of its possible values, as the domain file describes the column."""
        from workbench.data import UnlistedColumn

        if self.domain_file is None:
            raise ValueError(_DOMAIN)
        return UnlistedColumn.of(self.domain_file)

    @property
    def stated_domain(self) -> Domain:
        """Domain (all possible cells), from the domain file. A ValueError is raised if the user gave no such
        file.
        """
        if self.domain is None:
            raise ValueError(_DOMAIN)
        return self.domain
