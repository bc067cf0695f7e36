"""Logic of the six steps of `workbench publish`, from a table to a publication. The module `publishing_page`
shows these steps in a browser.

All choices are stored in publication.json and in the domain file that it names. Both files are read before
each step and written after it. So nothing is lost if you close the browser, and two tabs show the same state.
Before a release has been paid for, the page shows values from the private table in two cases only. The owner
may press a button that checks the rules against the table. If publishing fails, the error message may show a
refused row.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import msgspec

from workbench.data import Bound, Interactions, draft_domain
from workbench.figures.saved import write_json
from workbench.mechanisms.options import mechanism_options
from workbench.owner import Budget
from workbench.owner.advice import Advice, Beliefs, BoundAdvice, advise, advise_bounds
from workbench.owner.publication import (
    About,
    Recipe,
    alone_in,
    read_about,
    refuse_folder,
)
from workbench.privacy import DP
from workbench.spaces import Domain
from workbench.spaces.statements import BLANK
from workbench.value import stated

STEPS = ("Table", "Who is protected", "Columns", "Bound", "Privacy", "Publish")
_TABLES = (".csv", ".csv.gz", ".csv.zst", ".parquet", ".duckdb", ".sqlite", ".db")
_CODES = {  # code lists that everybody knows
    "weekdays": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "months": "January February March April May June July August September October November "
    "December".split(),
    "hours": [str(hour) for hour in range(24)],
}
_PARTS = ("hour", "weekday", "day", "month", "quarter")  # that recur
_SPANS = {
    "year": "2015, 2016",
    "year-month": "2016-01, 2016-12",
    "date": "2016-01-01, 2016-12-31",
}
_FORMAT = "%d.%m.%Y %H:%M"
RULES = {  # of each kind, its words and an example of what is typed for it
    "labels": ("typed labels", "F, M"),
    "file": ("labels from a file of codes", "codes.txt, with one label per line"),
    "map": ("values that share labels", "Bern=BE, Thun=BE, or a file of lines value,label"),
    "range": ("integers from, to", "0, 17"),
    "edges": ("bins of numbers", "0, 18, 65"),
    **{f"time {x}": (f"date: {x}", f"{_FORMAT}, or nothing for dates") for x in _PARTS},
    **{
        f"time {x}": (f"date: {x}, from, to", f"{span}, {_FORMAT}")
        for x, span in _SPANS.items()
    },
    **{f"list {name}": (f"code list: {name}", "") for name in _CODES},
}
_TEXTS = ("title", "publisher", "contact", "licence", "source", "period", "one_count")
_WORDS = ("person", "people", "row", "rows")
BELIEFS = {"users": 10_000, "per_user": 2.0, "spread": 2.0}
_FIELDS = {  # names of fields on the page
    "users": "Number of people",
    "per_user": "Mean number",
    "spread": "Standard deviation",
    "limit": "Bound",
    "epsilon": "ε",
    "total": "ε of all editions together",
}
_LEFT_OUT = "the bound leaves out about"  # begins the belief that step 4 writes
_SIMULATED = 2.0  # seconds
SHOWN = 8  # labels, cells and mechanisms
MARK = "Not for publication: this is your own look at the table."


class State:
    """Content of publication.json and of its domain file, stored on disk.

    Parameters
    ----------
    source : path
        File publication.json. It may not exist yet.
    home : path
        Folder whose tables can be chosen.
    tables : sequence of str
        Additional tables, named when the page was started.
    """

    def __init__(self, source: str | Path, home: str | Path, tables: Sequence[str] = ()):
        self.source, self.home = Path(source), Path(home)
        named = map(Path, tables)
        self.named = [p.name if p.parent == self.home else str(p) for p in named]
        self.about = About(title="", publisher="", contact="", licence="")
        self.columns: dict[str, Any] = {}
        self.process: subprocess.Popen[bytes] | None = None
        self.read()
        if self.named:
            self.set_page(table=self.named[0])

    def read(self) -> None:
        """Read the current state from disk. Another tab or an earlier edition may have written the files."""
        if self.source.exists():
            try:
                self.about = msgspec.json.decode(self.source.read_bytes(), type=About)
            except msgspec.MsgspecError as e:
                raise ValueError(f"{self.source}: {e}") from None
        if self.about.release is None:
            free = "domain.json" if not self.beside("domain.json").exists() else "columns.json"
            self.set(release=Recipe(mechanism="GeometricHistogram", domain=free))
        self.columns = {}
        if self.domain_file.exists():
            self.columns = json.loads(self.domain_file.read_text(encoding="utf-8"))

    def beside(self, name: str) -> Path:
        """Return the path of a file next to publication.json."""
        return self.source.parent / name

    def write(self) -> None:
        """Write all choices to disk."""
        write_json(self.source, msgspec.to_builtins(self.about))
        if self.columns:
            write_json(self.domain_file, self.columns)

    @property
    def recipe(self) -> Recipe:
        """Recipe for the release of each edition (publication of the table at one time). It names the
        mechanism, the domain file and the options.
        """
        assert self.about.release is not None
        return self.about.release

    @property
    def options(self) -> dict[str, Any]:
        """Options of `workbench release`."""
        return self.recipe.options

    @property
    def page(self) -> dict[str, Any]:
        """Values that only the page needs."""
        return self.recipe.page

    @property
    def domain_file(self) -> Path:
        """Path of the domain file, with columns and their rules."""
        return self.beside(self.recipe.domain)

    @property
    def domain(self) -> Domain:
        """Domain (all possible cells), from the domain file."""
        return Domain.from_dict(dict(self.columns), self.source.parent)

    @property
    def user(self) -> str:
        """Name of the user column. It is empty if each row is one person."""
        return str(self.options.get("user", ""))

    @property
    def epsilon(self) -> float:
        """Privacy loss of one edition."""
        return float(self.options.get("epsilon", 1.0))

    @property
    def bound(self) -> Bound:
        """Bound, which is the largest change of the table that one person can cause. Its `l0` is the largest
        number of records or cells that are used for each person.
        """
        return Bound(*(int(x) for x in str(self.options.get("bound", "1,1")).split(",")))

    @property
    def beliefs(self) -> dict[str, Any]:
        """Beliefs of the publisher: the number of people, and the mean and the spread of their numbers of
        records.
        """
        return {name: self.page.get(name, x) for name, x in BELIEFS.items()}

    @property
    def believed(self) -> Beliefs:
        """Beliefs about the table, derived from the beliefs about people."""
        records = max(
            2.0, self.beliefs["users"] * (self.beliefs["per_user"] if self.user else 1)
        )
        cells = max(1, min(self.domain.size, int(records / 2)))
        return Beliefs(self.domain, records=records, cells=cells, bound=self.bound)

    @property
    def counts_people(self) -> bool:
        """Whether a count is a number of people, so that a person counts at most once per cell."""
        words = str(self.options.get("bound", "1,1")).split(",")
        return not self.user or words[1:] == ["1"]

    @property
    def folder(self) -> Path | None:
        """Folder of the publication."""
        return self.beside(self.page["folder"]) if self.page.get("folder") else None

    @property
    def is_running(self) -> bool:
        """Whether a process is publishing from this folder."""
        if self.process is not None and self.process.poll() is None:
            return True  # which may not hold the folder yet
        try:
            with alone_in(self.source.resolve().parent):
                return False
        except BlockingIOError:
            return True

    @property
    def is_paid(self) -> bool:
        """Whether the release for the publication was paid for and saved."""
        return self.folder is not None and Path(f"{self.folder}.parquet").exists()

    @property
    def is_published(self) -> bool:
        """Whether the publication is complete. Its folder is written first, and then its zip file."""
        folder = self.folder
        return bool(folder and folder.is_dir() and Path(f"{folder}.zip").exists())

    def set(self, **fields: Any) -> None:
        """Replace fields of the information about the publication, for example its title."""
        self.about = msgspec.structs.replace(self.about, **fields)

    def set_recipe(self, **fields: Any) -> None:
        """Replace fields of the recipe."""
        self.set(release=msgspec.structs.replace(self.recipe, **fields))

    def set_options(self, **options: Any) -> None:
        """Replace options of `workbench release`. An empty value removes the option."""
        kept = {name: x for name, x in (self.options | options).items() if x not in ("", None)}
        self.set_recipe(options=kept)

    def set_page(self, **kept: Any) -> None:
        """Replace values that only the page needs."""
        self.set_recipe(page=self.page | kept)

    def tables(self) -> list[str]:
        """Return the paths of the tables in the folder, and of the tables that were named at the start. The
        budget file and earlier releases are left out.
        """
        ours = {self.recipe.budget, *(f"{p.stem}.parquet" for p in self.home.glob("*.zip"))}
        found = [p.name for p in self.home.iterdir() if p.name.endswith(_TABLES)]
        return [*dict.fromkeys([*self.named, *sorted({*found} - ours)])]

    def draft(self) -> dict[str, Any]:
        """Draft attributes for the chosen table, from the names and declared types of its columns. No value
        is read.
        """
        table = self.page.get("table")
        if not table:
            return {}
        return draft_domain(self.home / table, self.options.get("table") or None)

    def attributes(self) -> dict[str, Any]:
        """Return the drafted attributes, and the attributes that only the domain file has."""
        drafted = self.draft()
        others = self.columns.keys() - drafted.keys() - {"missing_user"}
        return drafted | {name: self.columns[name] for name in sorted(others)}

    def lacks(self, columns: Sequence[str]) -> list[str]:
        """Return those of some columns that the chosen table does not have."""
        known = {_column(x) or name for name, x in self.draft().items()}
        return [column for column in columns if column and column not in known]


# Steps: each takes the fields of its form


def choose_table(state: State, fields: Mapping[str, str]) -> None:
    """Step 1: choose a table from the list."""
    table = fields.get("table", "")
    if not table:
        raise ValueError("Choose a table.")
    if table not in state.tables():
        raise ValueError(f"{table} is not in the list. Choose a table of {state.home}")
    inside = fields.get("table_name", "").strip()
    draft_domain(state.home / table, inside or None)  # refuses what is no table
    state.set_page(table=table)
    state.set_options(table=inside)


def choose_people(state: State, fields: Mapping[str, str]) -> None:
    """Step 2: choose the protected unit, and the words for it."""
    user = fields.get("user", "")
    words = {name: fields.get(name, "").strip() for name in _WORDS}
    words |= {"person": words["person"] or "person", "row": words["row"] or "record"}
    state.set(**words)
    default = "10,10,10" if user else "1,1"
    bound = state.options.get("bound", default) if user and state.user else default
    kind = "text" if user and fields.get("text") else ""
    state.set_options(user=user, unit=state.about.unit, bound=bound, **{"user-type": kind})
    state.columns.pop(user, None)
    state.columns.pop("missing_user", None)
    if user:  # the page offers no rule that ends in a message about the data
        state.columns["missing_user"] = "drop"


def choose_columns(state: State, fields: Mapping[str, str]) -> None:
    """Step 3: choose a rule for each counted column."""
    columns = {name: x for name, x in state.columns.items() if name == "missing_user"}
    meanings = {}
    for i, (name, drafted) in enumerate(state.attributes().items()):
        if fields.get(f"on{i}") and name != state.user:
            old = state.columns.get(name)
            if meaning := fields.get(f"says{i}", "").strip().rstrip("."):
                meanings[name] = meaning
            kind = fields.get(f"rule{i}", "kept")
            if kind == "kept" and old is not None:
                columns[name] = old
                continue
            rule = rule_of(kind, fields.get(f"text{i}", ""))
            action = "label" if fields.get(f"other{i}") else "drop"
            column = _column(old) or _column(drafted)
            columns[name] = rule | {"other": action, "missing": action}
            columns[name] |= {"column": column} if column else {}
    state.columns = columns
    state.set(columns=meanings)


def lacks_labels(rule: Any) -> bool:
    """Return whether a rule has no labels yet, because its column was only ticked."""
    return isinstance(rule, dict) and rule.get("labels") == []


def need_labels(state: State) -> None:
    """Raise a ValueError if a chosen column has no labels yet. Call this function when step 3 ends."""
    names = [name for name, rule in state.columns.items() if lacks_labels(rule)]
    if names:
        raise ValueError(f"List the labels of {', '.join(names)}.")


def _column(rule: Any) -> str | None:
    """Return the column that a rule names, if it is not the attribute itself."""
    return rule.get("column") if isinstance(rule, dict) else None


def rule_of(kind: str, text: str) -> dict[str, Any]:
    """Return a rule in the form of the domain file, from its kind and its typed text.

    >>> rule_of("edges", "0, 18, 65"), rule_of("map", "Bern=BE, Thun=BE")
    ({'edges': [0.0, 18.0, 65.0]}, {'map': {'Bern': 'BE', 'Thun': 'BE'}})
    """
    kind, _, part = kind.partition(" ")
    words = [word.strip() for word in text.split(",") if word.strip() not in ("", BLANK)]
    match kind:
        case "edges" | "range":
            try:
                if kind == "edges":
                    return {"edges": [float(word) for word in words]}
                first, last = map(int, words) if words else (BLANK, BLANK)
            except ValueError:
                raise ValueError(
                    f"{text!r}: need numbers in ascending order, for example {RULES[kind][1]}"
                ) from None
            return {"from": first, "to": last}
        case "time":
            ends = words[:2] if part in _SPANS else []
            written = ", ".join(words[len(ends) :])
            stated = dict(zip(("first", "last"), ends, strict=False)) | {"format": written}
            return {"time": part} | {name: x for name, x in stated.items() if x}
        case "map" if "=" in text:
            pairs = [word.partition("=") for word in words]
            return {"map": {value.strip(): label.strip() for value, _, label in pairs}}
        case "map" | "file":
            return {kind: text.strip() or BLANK}
    return {"labels": _CODES[part] if kind == "list" else words}


def words_of(rule: Any) -> tuple[str, str]:
    """Return the kind and the typed text of a rule. The kind is "kept" if the page cannot edit the rule."""
    stated = rule
    if isinstance(rule, dict):
        stated = {n: x for n, x in rule.items() if n not in ("other", "missing", "column")}
    kind, words = "labels", []
    match stated:
        case {"edges": edges}:
            kind, words = "edges", [f"{x:g}" for x in edges]
        case {"from": first, "to": last}:
            kind, words = "range", [first, last]
        case {"time": part}:
            kind, words = f"time {part}", [*stated.values()][1:]
        case {"map": dict() as pairs}:
            kind, words = "map", [f"{value}={label}" for value, label in pairs.items()]
        case {"map": name} | {"file": name}:
            kind, words = next(iter(stated)), [name]
        case {"labels": list() as labels}:
            known = (f"list {name}" for name, codes in _CODES.items() if codes == labels)
            kind, words = next(known, "labels"), labels
    text = ", ".join(map(str, words))
    if kind in RULES and rule_of(kind, text) == stated:
        return kind, text
    return "kept", json.dumps(rule, ensure_ascii=False)


def choose_bound(state: State, fields: Mapping[str, str]) -> None:
    """Step 4: choose the meaning of a count, the beliefs, and the limit per person."""
    beliefs = tuple(text for text in state.about.beliefs if not text.startswith(_LEFT_OUT))
    if not state.user:
        state.set_page(**_numbers(fields, "users"))
    else:
        state.set_page(**_numbers(fields, *BELIEFS))
        limit = int(_numbers(fields, "limit")["limit"])
        people = fields.get("count") == "people"
        state.set_options(bound=f"{limit},1" if people else f"{limit},{limit},{limit}")
        lost = f"{100 * bounds(state, limit).errors[0].lost:.2g} %"
        beliefs += (
            f"{_LEFT_OUT} {lost} of what would be counted, so counts are too low by about {lost} in all.",
        )
    state.set(beliefs=beliefs)


def choose_privacy(state: State, fields: Mapping[str, str]) -> None:
    """Step 5: choose ε, the ledger (budget file) and the mechanism."""
    epsilon = _numbers(fields, "epsilon")["epsilon"]
    state.set_options(epsilon=epsilon)
    state.set_recipe(budget=fields.get("budget", "").strip())
    asked = fields.get("mechanism")
    if asked and asked != state.recipe.mechanism:
        words = shlex.split(mechanism_options(row_of(state, asked).mechanism))
        own = dict(zip(words[::2], words[1::2], strict=True))
        del own["--mechanism"], own["--epsilon"]
        common = ("user", "user-type", "unit", "bound", "epsilon", "table")
        options = {name: x for name, x in state.options.items() if name in common}
        options |= {name.removeprefix("--"): x for name, x in own.items()}
        state.set_recipe(mechanism=asked, options=options)


def new_ledger(state: State, fields: Mapping[str, str]) -> None:
    """Create the ledger (budget file) that step 5 names."""
    if not state.recipe.budget:
        raise ValueError("Name a file for the ledger, for example editions.sqlite")
    limit = DP(_numbers(fields, "total")["total"])
    path, about = state.beside(state.recipe.budget), state.about
    Budget.create(path, limit, people=about.persons, unit=about.unit)


def choose_words(state: State, fields: Mapping[str, str]) -> None:
    """Step 6: write the information for readers, and choose the folder."""
    state.set(**{name: fields[name].strip() for name in _TEXTS if name in fields})
    name = fields.get("folder", state.page.get("folder", "")).strip()
    if name != state.page.get("folder", ""):
        if name:
            if Path(name).name != name:
                raise ValueError(f"{name}: need the name of a folder without a path")
            refuse_folder(state.beside(name))
        state.set_page(folder=name)


CHOOSE: tuple[Callable[[State, Mapping[str, str]], None], ...] = (
    choose_table,
    choose_people,
    choose_columns,
    choose_bound,
    choose_privacy,
    choose_words,
)


def _numbers(fields: Mapping[str, str], *names: str) -> dict[str, float]:
    """Return the typed numbers in the named fields, which must be positive."""
    found = {}
    for name in names:
        try:
            x = float(fields.get(name, "").replace(",", ""))
        except ValueError:
            x = 0.0
        if not 0 < x < 2**40:
            raise ValueError(f"{_FIELDS.get(name, name)}: need a number > 0")
        found[name] = int(x) if x == int(x) else x
    return found


# What the page shows


def bounds(state: State, *limits: int) -> BoundAdvice:
    """Return the errors for different bounds, which follow from beliefs alone. By default, a grid of bounds
    is used.
    """
    users, *each = state.beliefs.values()
    how: dict[str, Any] = dict(order=2 if state.domain.size <= 2**22 else 1)
    if limits:
        how["bounds"] = limits
    return _bounds(state.domain, state.epsilon, int(users), *each, **how)


_bounds = lru_cache(8)(advise_bounds)


def mechanisms(state: State) -> list[Any]:
    """Return the rows of the advice, one per mechanism, for the mechanisms that the page can run."""
    found: dict[str, Any] = {}
    for row in simulation(state.believed, state.epsilon).result().rows:
        if row.mechanism.takes is not Interactions and mechanism_options(row.mechanism):
            found.setdefault(type(row.mechanism).__name__, row)
    return [*found.values()][:SHOWN]


def row_of(state: State, name: str) -> Any:
    """Return the row of a mechanism in the advice. If there is no such row, return the first row."""
    rows = mechanisms(state)
    return next((row for row in rows if type(row.mechanism).__name__ == name), rows[0])


_ahead = ThreadPoolExecutor(1)  # so that the page answers meanwhile


@lru_cache(8)
def simulation(believed: Beliefs, epsilon: float) -> Future[Advice]:
    """Return the advice of step 5. The simulation runs while the page answers."""
    return _ahead.submit(advise, believed, epsilon, task="cells", seconds=_SIMULATED)


def warm() -> None:
    """Compile the code for the simulation of step 5 in the background, during the earlier steps."""
    simulation(Beliefs(Domain(("x",), (100,)), records=1000, cells=50), 1.0)


def ledger(state: State) -> tuple[str, str]:
    """Return two texts: what remains of the ledger's budget, and why the budget cannot pay for this release.
    The second text is empty if the budget suffices.
    """
    name = state.recipe.budget
    if not name:
        return "No ledger: nothing limits the sum of what you publish about these people.", ""
    path = state.beside(name)
    if not path.exists():
        return "", f"{name} does not exist yet. Create it with the ε of all editions together."
    budget = Budget(path)
    left, spent = budget.remaining, budget.ledger
    text = f"{name}: ε = {stated(left)} of {stated(getattr(budget.limit, 'epsilon', 0.0))} remains."
    if state.epsilon <= left:
        return text, ""
    why = f"This release needs ε = {state.epsilon:g}, and {name} has only {stated(left)}."
    since = [f" The last spend was at {x[:16].replace('T', ' ')} UTC." for x in spent.time[-1:]]
    return text, why + "".join(since)


def missing(state: State) -> list[str]:
    """Return a list of the inputs that are missing. Until they are complete, the button of step 6 is
    disabled.
    """
    chosen = {
        "Choose a table (step 1)": state.page.get("table"),
        "Say who is protected (step 2)": state.options.get("unit"),
        "Choose a bound (step 4)": state.options.get("bound"),
        "Choose ε (step 5)": state.options.get("epsilon"),
        "Name the folder": state.folder,
    }
    todo = [text for text, choice in chosen.items() if not choice]
    try:
        read_about(state.about)
        if gone := state.lacks([*state.domain.columns, state.user]):
            todo.append(f"The table has no column {', '.join(gone)} (steps 2 and 3)")
        if not state.is_paid and (why := ledger(state)[1]):
            todo.append(why)
    except (ValueError, OSError) as e:
        todo.append(str(e).removeprefix("about: "))
    return todo


# Publishing


def start(state: State) -> None:
    """Publish in a separate process. Further calls while it runs have no effect."""
    if state.is_published or state.is_running:
        return
    if todo := missing(state):
        raise ValueError(". ".join(todo))
    assert state.folder is not None
    words = ["publish", state.page["table"], "--publish", str(state.folder)]
    log_file(state).unlink(missing_ok=True)  # an earlier file or link keeps its mode
    private = partial(os.open, mode=0o600)  # it may show a row that was refused
    with open(log_file(state), "x", encoding="utf-8", opener=private) as log:
        state.process = _begun(state, [*words, "--from", str(state.source)], log)


def _begun(state: State, words: Sequence[str], out: Any) -> subprocess.Popen[bytes]:
    """Start a command of the workbench in a new process, which writes plain text to a file. The process
    continues if the page is closed.
    """
    return subprocess.Popen(
        [sys.executable, "-c", "from workbench.cli import main; main()", *words],
        cwd=state.home,
        env=os.environ | {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "80"},
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def log_file(state: State) -> Path:
    """Return the log file of the publishing process. It is for the owner only."""
    return Path(f"{state.folder}.log")


def look(state: State) -> str:
    """Return the output of `domain check --look` for the table. It is private and meant for the owner only."""
    given = {n: str(x) for n, x in state.options.items() if n in ("user", "user-type", "table")}
    words = [word for name, text in given.items() for word in (f"--{name}", text)]
    check = ["domain", "check", str(state.domain_file), str(state.page["table"]), "--look"]
    shown, _ = _begun(state, [*check, *words], subprocess.PIPE).communicate()
    return f"{MARK}\n\n{shown.decode().strip()}"
