"""A figure as a typed value: the paper's parameters are its fields, the paper's values their defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, fields, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from workbench import claims, option_grammar
from workbench.claims import Claim, Verdict
from workbench.datasets._kinds import remarks_on, unwrapped
from workbench.wording import did_you_mean

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

    from workbench.experiment import Sweep, Trial
    from workbench.plots import Panel

PROFILES = ("quick", "paper")
SETTING = "setting"
EFFORT = "effort"
UNPRINTED = "unprinted"
KINDS = {
    SETTING: "off the paper's value nothing is judged",
    EFFORT: "seeds and queries: less of it can only leave a claim undecided",
    UNPRINTED: "the paper does not print it: any value is on its path",
}
FIRST_LOOK = 5  # seeds; each next look takes twice as many
MAY_FAIL = 0.05  # how often a figure may decide any of its statements wrongly
_LONGEST = 120  # characters of a folder's name


class Figure:
    """A figure of a paper; a subclass, made a value by `@value`, declares its parameters as fields.

    Each field is a `parameter(…)` with the paper's value as default and one of `KINDS`. Whatever
    follows from them (theory, titles, thresholds) is computed in methods, never when the file is
    imported.

    Attributes
    ----------
    id : str
        Names it among all figures; it follows from the place of its file.
    title : str
        The sentence over it.
    page : str
        Where it stands in the paper.
    quick : mapping
        The effort, by field, of a run of minutes.
    rough : mapping
        That of the first picture after a slider has moved.
    claims : tuple of Claim
        What the paper says that it shows; they are checked at the paper's setting only, so that
        their checks may name series and points as they are there.
    sized_by : tuple of str
        Effort that changes what is measured and not only how precisely, as the number of people: at
        less of it than the paper's nothing is decided.
    series_by : tuple of str
        Parameters of mechanisms that belong to a series' name.
    shown : tuple of str
        Those that an axis or panels show; all others that vary are added to the name.
    columns : int
        Panels side by side.
    no_data : bool
        Whether its rows are computed from formulas, without a dataset.
    usual : str
        What the defaults of its parameters are called.
    """

    id: ClassVar[str] = ""
    title: ClassVar[str] = ""
    page: ClassVar[str] = ""
    quick: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    rough: ClassVar[Mapping[str, Any]] = MappingProxyType({"seeds": 2, "queries": 50})
    claims: ClassVar[tuple[Claim, ...]] = ()
    sized_by: ClassVar[tuple[str, ...]] = ()
    series_by: ClassVar[tuple[str, ...]] = ()
    shown: ClassVar[tuple[str, ...]] = ()
    columns: ClassVar[int] = 2
    no_data: ClassVar[bool] = False
    usual: ClassVar[str] = "the paper's setting"
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "id" not in vars(cls):
            cls.id = cls.__module__.partition(".")[2].replace(".", "_") or cls.__name__
        cap = cls._default_seeds()
        if cls._statements() and cap is not None and cls.quick.get("seeds", cap) > cap:
            raise ValueError(
                f"{cls.id}: quick takes {cls.quick['seeds']} seeds, and paper stops at {cap}: need at "
                "least as many"
            )

    # ---- what a subclass gives

    def sweeps(self) -> dict[str, Sweep]:
        """What is run, by the name of the panel that shows it."""
        raise NotImplementedError(f"{type(self).__name__} gives neither sweeps nor rows")

    def rows(self, store: str | Path) -> pd.DataFrame:
        """Run what `store` does not hold: the rows of all sweeps, named in a column `panel`."""
        import pandas as pd

        from workbench.experiment import run
        from workbench.plots import name_series

        frames = [run(s, store).assign(panel=name) for name, s in self.sweeps().items()]
        rows = pd.concat(frames, ignore_index=True)
        return name_series(rows, *self.series_by, shown=self.shown)

    def panels(self, rows: pd.DataFrame) -> Sequence[Panel]:
        """The panels of the drawing, of rows as `rows` returns them."""
        raise NotImplementedError(f"{type(self).__name__} has no panels")

    def plot(self, rows: pd.DataFrame) -> Drawing | None:
        """The drawing, without what says its setting; None where the result is a table."""
        from workbench import plots

        return plots.grid(rows, self.panels(rows), columns=self.columns)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The numbers that the paper prints, beside ours, at the paper's setting."""
        raise NotImplementedError(f"{type(self).__name__} compares nothing with its paper")

    def example_trial(self) -> Trial:
        """One of its trials: the whole configuration, which can be pasted and run."""
        sweep = next(iter(self.sweeps().values()))
        return next(sweep.trials())

    # ---- its parameters

    @classmethod
    def parameters(cls) -> dict[str, Field[Any]]:
        """Its fields by name."""
        return {f.name: f for f in fields(cls)}

    @classmethod
    def refuse_unknown(cls, names: Iterable[str], known: Iterable[str] | None = None) -> None:
        """A ValueError for the first name that is not `known`, its parameters' unless given."""
        known = list(known or cls.parameters())
        for name in names:
            if name not in known:
                raise ValueError(
                    f"{cls.id} has no parameter {name!r}{did_you_mean(name, known)}"
                )

    @classmethod
    def at(cls, profile: str = "paper", **given: Any) -> Self:
        """The figure of a profile, with other values where they are given.

        Parameters
        ----------
        profile : str
            "quick" (minutes) or "paper" (the paper's own sizes).
        **given
            Values by the name of a parameter: of its type, or text as it is typed (`"10,20"` for a
            list). None is the profile's own. The text `none` is the value None where a parameter
            can have it.

        Raises
        ------
        ValueError
            If there is no such profile or parameter, or a value is out of its range.
        """
        if profile not in PROFILES:
            raise ValueError(f"profile = {profile!r} is not allowed: need one of {PROFILES}")
        cls.refuse_unknown(given)
        known = cls.parameters()
        values = dict(cls.quick) if profile == "quick" else {}
        try:
            for name, x in given.items():
                if x is None:
                    continue
                parsed = option_grammar.parse_parameter(known[name], x)
                if parsed is not None or known[name].default is None:
                    values[name] = parsed
            return cls(**values)
        except ValueError as e:
            message = str(e).removeprefix(f"{cls.__name__}.")
            raise ValueError(f"{cls.id}: {message}") from None

    def off_paper(self) -> dict[str, Any]:
        """The settings that are not the paper's; only without any are claims judged."""
        settings = [f for f in self.parameters().values() if f.metadata["kind"] == SETTING]
        moved = [f for f in settings if getattr(self, f.name) != f.default]
        return {f.name: getattr(self, f.name) for f in moved}

    def differences(self, profile: str) -> dict[str, Any]:
        """The parameters whose values are not those of the profile."""
        usual = type(self).at(profile)
        values = {name: getattr(self, name) for name in self.parameters()}
        return {name: x for name, x in values.items() if x != getattr(usual, name)}

    def name(self, profile: str) -> str:
        """Its folder among the results of a profile: its id, and what differs."""
        parts = [self.id]
        for name, x in self.differences(profile).items():
            parts.append(f"{name}={option_grammar.parameter_text(x, '+')}")
        name = re.sub(r"[^\w.=,+~()-]", "_", ",".join(parts))
        if len(name) <= _LONGEST:
            return name
        return f"{name[: _LONGEST - 8]}~{sha256(name.encode()).hexdigest()[:7]}"

    def command(self, profile: str) -> str:
        """What makes it on the command line."""
        from shlex import quote

        words = ["workbench", "reproduce", self.id, "--profile", profile]
        for name, x in self.differences(profile).items():
            words += ["-p", quote(f"{name}={option_grammar.parameter_text(x)}")]
        return " ".join(words)

    # ---- what it shows

    def draw(self, rows: pd.DataFrame, verdicts: Sequence[Verdict] = ()) -> Drawing | None:
        """The drawing; off the paper's path it says so at its head.

        Below it stand the strips of `verdicts`: for which values of what the paper does not print a
        statement holds.
        """
        drawing = self.plot(rows)
        changed = describe(self.off_paper())
        if drawing is not None and changed:
            drawing.suptitle(f"not {self.usual}: {changed}", size="medium", wrap=True)
        strips = {v.id: v.strip for v in verdicts if v.strip is not None}
        if drawing is not None:
            from workbench import plots

            if strips:
                plots.strips(drawing, strips)
            plots.lay_out(drawing)
        return drawing

    def compare_with_paper(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The numbers that the paper prints, beside ours; off its path one line that says so."""
        import pandas as pd

        off = self.off_paper()
        if off:
            return pd.DataFrame({f"not {self.usual}": off.keys(), "value": off.values()})
        try:
            return self.comparison(rows)
        except claims.MissingPoints as e:
            return pd.DataFrame({"this run has no points for it": [str(e)]})

    # ---- what it decides

    @classmethod
    def _default_seeds(cls) -> int | None:
        """The paper profile's number of seeds, at which looks end; None where there is none."""
        seeds: Any = getattr(cls, "seeds", None)
        default: Any = seeds.default if isinstance(seeds, Field) else seeds
        return default

    @property
    def _own_seeds(self) -> int:
        """The number of seeds of this run, where there is one."""
        seeds: int = getattr(self, "seeds")  # noqa: B009
        return seeds

    @classmethod
    def _statements(cls) -> int:
        """How many of its statements are judged."""
        return sum(s.check is not None for claim in cls.claims for s in claim.statements)

    @classmethod
    def looks(cls) -> tuple[int, ...]:
        """The numbers of seeds at which the paper profile looks whether statements are decided.

        5, 10, 20, 40, …, and its number of seeds, where it stops; the quick profile's is among them.
        One look, of 0, where a figure has no seeds.
        """
        cap = cls._default_seeds()
        if cap is None:
            return (0,)
        looks = {cap, cls.quick.get("seeds", cap)}
        seeds = FIRST_LOOK
        while seeds < cap:
            looks.add(seeds)
            seeds *= 2
        return tuple(sorted(looks))

    @classmethod
    def level(cls) -> float:
        """The confidence at which each look decides, so that all looks together fool nobody."""
        return 1 - MAY_FAIL / (len(cls.looks()) * max(cls._statements(), 1))

    def run(self, store: str | Path) -> tuple[pd.DataFrame, list[Verdict]]:
        """The rows, and the verdicts on them.

        The paper's number of seeds is a limit: seeds are added look by look until every statement is
        decided. Any other number is run as it is.

        Parameters
        ----------
        store : path
            Holds what has been run, and is added to.
        """
        for figure in self._runs():
            rows = figure.rows(store)
            verdicts = figure.judge(rows)
            if all(verdict.outcome != claims.UNDECIDED for verdict in verdicts):
                break
        return rows, verdicts

    def _runs(self) -> Iterable[Self]:
        """Itself at the number of seeds of each look, as far as its effort is the paper's."""
        cap = self._default_seeds()
        if not self._statements() or cap is None or self.off_paper() or self._own_seeds != cap:
            return [self]
        least = max(self.quick.get("seeds", cap), min(FIRST_LOOK, cap))
        return [replace(self, seeds=look) for look in self.looks() if look >= least]

    def rows_of_seeds(self, rows: pd.DataFrame, seeds: int) -> pd.DataFrame:
        """The rows of its first seeds, as a look sees them; those without a seed belong to all."""
        return rows[~(rows.seed >= seeds)] if "seed" in rows else rows

    def datasets_used(self) -> list[Any]:
        """The datasets that its sweeps run on, each once, without what sorts them or adds them up."""
        if type(self).sweeps is Figure.sweeps:
            return []
        used = (x for sweep in self.sweeps().values() for x in sweep.datasets)
        return list(dict.fromkeys(map(unwrapped, used)))

    def has_file(self, name: str, rows: pd.DataFrame) -> bool:
        """Whether rows rest on a published file: on that class of `datasets`, or on one around it."""
        used = rows.dataset.dropna().unique() if "dataset" in rows else []
        return any(re.search(rf"\b{name}\(", configuration) for configuration in used)

    def judge(self, rows: pd.DataFrame) -> list[Verdict]:
        """A verdict on each statement; off the paper's path none is judged.

        Each is decided by the first look that decides it, on the rows of that look's seeds alone.
        """
        off = self.off_paper()
        if off:
            why = f"not {self.usual}: {describe(off)}"
            return [v for claim in self.claims for v in claim.not_judged(why)]
        looks = self._looks_at(rows)
        has_file = partial(self.has_file, rows=rows)
        verdicts = [v for c in self.claims for v in c.judge(looks, self.level(), has_file)]
        smaller = {name: getattr(self, name) for name in self.sized_by if self._is_less(name)}
        if smaller:
            why = f"{describe(smaller)} is not the paper's size"
            verdicts = [claims.left_open(verdict, why) for verdict in verdicts]
        return self._with_remarks(verdicts, rows)

    def _with_remarks(self, verdicts: list[Verdict], rows: pd.DataFrame) -> list[Verdict]:
        """Verdicts on files that differ from what is published of them say so."""
        try:
            used = self.datasets_used()
        except (FileNotFoundError, ValueError):  # rows of a machine that has the files
            return verdicts
        remarks = []
        for dataset in used:
            if self.has_file(type(dataset).__name__, rows):
                about = ", ".join(remarks_on(dataset))
                remarks += [f"{dataset!r} has {about}"] if about else []
        return [replace(v, why="; ".join(filter(None, [v.why, *remarks]))) for v in verdicts]

    def _looks_at(self, rows: pd.DataFrame) -> list[pd.DataFrame]:
        """The rows of each look that they reach."""
        if self._default_seeds() is None:
            return [rows]
        seeds = int(rows.seed.max()) + 1 if "seed" in rows else self._own_seeds
        return [self.rows_of_seeds(rows, n) for n in self.looks() if n <= seeds]

    def _is_less(self, name: str) -> bool:
        """Whether a parameter of effort is less than the paper's."""
        return not _at_least(getattr(self, name), self.parameters()[name].default)


def describe(values: Mapping[str, Any]) -> str:
    """Parameters in words.

    >>> describe({"epsilon": 0.5, "theta": (10, 20)})
    'epsilon = 0.5, theta = 10, 20'
    """
    return ", ".join(
        f"{name} = {option_grammar.parameter_text(x, ', ')}" for name, x in values.items()
    )


def _at_least(x: Any, usual: Any) -> bool:
    """Whether a value of effort is no less than the usual one."""
    if isinstance(usual, tuple):
        return set(x) >= set(usual)
    if isinstance(usual, int | float) and not isinstance(usual, bool):
        return x >= usual
    return x == usual
