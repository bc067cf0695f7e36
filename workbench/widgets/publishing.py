"""The page of `workbench publish`: from a table to a publication in six steps.

Every choice is in publication.json and in the domain file that it names, both of which are read before and
written after each step. A closed browser therefore loses nothing, and two tabs show the same. Nothing of the
private table is shown before a release has been paid for.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import exp, log
from pathlib import Path
from typing import Any

import anywidget
import msgspec
import numpy as np
import traitlets

from workbench.compiled import pd
from workbench.data import PUBLIC, Bound, Interactions, SparseTable, draft_domain
from workbench.figures.saved import write_json
from workbench.mechanisms.options import mechanism_options
from workbench.owner import Session
from workbench.owner.advice import Advice, Beliefs, BoundAdvice, advise, advise_bounds
from workbench.owner.publication import (
    About,
    Recipe,
    alone_in,
    read_about,
    refuse_folder,
)
from workbench.spaces import Domain
from workbench.value import number, stated

STEPS = ("Table", "Who is protected", "Columns", "Bound", "Privacy", "Publish")
_TABLES = (".csv", ".csv.gz", ".csv.zst", ".parquet", ".duckdb", ".sqlite", ".db")
_CODES = {  # code lists that everybody knows
    "weekdays": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(),
    "months": "January February March April May June July August September October November "
    "December".split(),
    "hours": [str(hour) for hour in range(24)],
}
_PARTS = ("hour", "weekday", "day", "month", "quarter")
_RULES = {
    "labels": "typed labels",
    "file": "labels from a file of codes",
    "range": "integers from, to",
    "edges": "bins of numbers",
    **{f"time {part}": f"date: {part}" for part in _PARTS},
    **{f"list {name}": f"code list: {name}" for name in _CODES},
}
_TEXTS = ("title", "publisher", "contact", "licence", "source", "period", "one_count")
_WORDS = ("person", "people", "row", "rows")
_BELIEFS = {"users": 10_000, "per_user": 2.0, "spread": 2.0}
_SIMULATED = 2.0  # seconds
_SHOWN = 8  # labels, cells and mechanisms
_MARK = "Not for publication: this is your own look at the table."


class State:
    """The content of publication.json and of its domain file, kept on disk.

    Parameters
    ----------
    source : path
        The file publication.json. It need not exist.
    home : path
        Folder whose tables are offered.
    tables : sequence of str
        Tables named when the page was started.
    """

    def __init__(self, source: str | Path, home: str | Path, tables: Sequence[str] = ()):
        self.source, self.home = Path(source), Path(home)
        self.named = tuple(tables)
        self.about = About(title="", publisher="", contact="", licence="")
        self.columns: dict[str, Any] = {}
        self.process: subprocess.Popen[bytes] | None = None
        self.read()
        if self.named:
            self.set_page(table=self.named[0])

    def read(self) -> None:
        """Take what is on disk, perhaps from another tab or an earlier edition."""
        if self.source.exists():
            try:
                self.about = msgspec.json.decode(self.source.read_bytes(), type=About)
            except msgspec.MsgspecError as e:
                raise ValueError(f"{self.source}: {e}") from None
        if self.about.release is None:
            free = "domain.json" if not self._beside("domain.json").exists() else "columns.json"
            self.set(release=Recipe(mechanism="GeometricHistogram", domain=free))
        self.columns = {}
        if self.domain_file.exists():
            self.columns = json.loads(self.domain_file.read_text(encoding="utf-8"))

    def _beside(self, name: str) -> Path:
        return self.source.parent / name

    def write(self) -> None:
        """Keep all choices."""
        write_json(self.source, msgspec.to_builtins(self.about))
        if self.columns:
            write_json(self.domain_file, self.columns)

    @property
    def recipe(self) -> Recipe:
        """What each edition is released by."""
        assert self.about.release is not None
        return self.about.release

    @property
    def options(self) -> dict[str, Any]:
        """Options of the command."""
        return self.recipe.options

    @property
    def page(self) -> dict[str, Any]:
        """What only the page needs."""
        return self.recipe.page

    @property
    def domain_file(self) -> Path:
        """The file of columns and their rules."""
        return self._beside(self.recipe.domain)

    @property
    def domain(self) -> Domain:
        """Which cells there can be."""
        return Domain.from_dict(dict(self.columns), self.source.parent)

    @property
    def user(self) -> str:
        """The column that names the person; empty if each row is one."""
        return str(self.options.get("user", ""))

    @property
    def epsilon(self) -> float:
        """Privacy loss of one edition."""
        return float(self.options.get("epsilon", 1.0))

    @property
    def limit(self) -> int:
        """Records, or cells, that one person adds at most."""
        return int(str(self.options.get("bound", "1")).split(",")[0])

    @property
    def counts_people(self) -> bool:
        """Whether one count is a person, who counts once in a cell."""
        words = str(self.options.get("bound", "1,1")).split(",")
        return not self.user or words[1:] == ["1"]

    @property
    def folder(self) -> Path | None:
        """Where the publication goes."""
        return self._beside(self.page["folder"]) if self.page.get("folder") else None

    @property
    def is_running(self) -> bool:
        """Whether a process publishes from this folder."""
        if self.process is not None and self.process.poll() is None:
            return True  # which may not hold the folder yet
        try:
            with alone_in(self.source.resolve().parent):
                return False
        except BlockingIOError:
            return True

    @property
    def is_published(self) -> bool:
        """Whether the folder is there, which is written whole."""
        return self.folder is not None and (self.folder / "README.html").exists()

    def set(self, **fields: Any) -> None:
        """Replace fields of what the publisher says."""
        self.about = msgspec.structs.replace(self.about, **fields)

    def set_recipe(self, **fields: Any) -> None:
        """Replace fields of how each edition is released."""
        self.set(release=msgspec.structs.replace(self.recipe, **fields))

    def set_options(self, **options: Any) -> None:
        """Replace options of the command; an empty one is left out."""
        kept = {name: x for name, x in (self.options | options).items() if x not in ("", None)}
        self.set_recipe(options=kept)

    def set_page(self, **kept: Any) -> None:
        """Replace what only the page needs."""
        self.set_recipe(page=self.page | kept)

    def tables(self) -> list[str]:
        """Paths of tables in the folder, and of those named at the start."""
        found = [p.name for p in self.home.iterdir() if p.name.endswith(_TABLES) and p.is_file()]
        return [*self.named, *sorted(found)]

    def draft(self) -> dict[str, Any]:
        """Attributes of the chosen table by names and declared types of its columns; no value is read."""
        table = self.page.get("table")
        if not table:
            return {}
        return draft_domain(self.home / table, self.options.get("table") or None)


# Steps: each takes the fields of its form


def choose_table(state: State, fields: Mapping[str, str]) -> None:
    """Step 1: take a table from the list."""
    table = fields.get("table", "")
    if table not in state.tables():
        raise ValueError(f"{table} is not in the list. Choose a table of {state.home}")
    before = dict(state.page)
    state.set_page(table=table)
    state.set_options(table=fields.get("table_name", "").strip())
    try:
        state.draft()
    except BaseException:
        state.set_recipe(page=before)
        raise


def choose_people(state: State, fields: Mapping[str, str]) -> None:
    """Step 2: say who is protected, and in which words."""
    user = fields.get("user", "")
    person = fields.get("person", "").strip() or "person"
    state.set(**{name: fields.get(name, "").strip() for name in _WORDS} | {"person": person})
    if not state.about.row:
        state.set(row="record")
    bound = state.options.get("bound", "10,10,10") if user else "1,1"
    if user and not state.user:
        bound = "10,10,10"
    state.set_options(user=user, unit=f"a {person}", bound=bound)
    state.columns.pop(user, None)
    state.columns.pop("missing_user", None)
    if user:  # the page offers no rule that ends in a message about the data
        state.columns["missing_user"] = "drop"


def choose_columns(state: State, fields: Mapping[str, str]) -> None:
    """Step 3: a rule for each column that is counted."""
    columns = {name: x for name, x in state.columns.items() if name == "missing_user"}
    for i, (name, drafted) in enumerate(state.draft().items()):
        if fields.get(f"on{i}") and name != state.user:
            old = state.columns.get(name)
            kind = fields.get(f"rule{i}", "kept")
            if kind == "kept" and old is not None:
                columns[name] = old
                continue
            rule = rule_of(kind, fields.get(f"text{i}", ""))
            action = "label" if fields.get(f"other{i}") else "drop"
            column = drafted.get("column") if isinstance(drafted, dict) else None
            columns[name] = rule | {"other": action, "missing": action}
            columns[name] |= {"column": column} if column else {}
    state.columns = columns


def rule_of(kind: str, text: str) -> dict[str, Any]:
    """A rule as the domain file states it, from its kind and what was typed.

    >>> rule_of("edges", "0, 18, 65")
    {'edges': [0.0, 18.0, 65.0]}
    """
    kind, _, part = kind.partition(" ")
    words = [word.strip() for word in text.split(",") if word.strip()]
    try:
        match kind:
            case "edges":
                return {"edges": [float(word) for word in words]}
            case "range":
                first, last = map(int, words)
                return {"from": first, "to": last}
    except ValueError:
        raise ValueError(
            f"{text!r}: need numbers in ascending order, for example 0, 18, 65"
        ) from None
    if kind == "time":
        return {"time": part} | ({"format": text.strip()} if text.strip() else {})
    if kind == "file":
        return {"file": text.strip()}
    return {"labels": _CODES[part] if kind == "list" else words}


def words_of(rule: Any) -> tuple[str, str]:
    """The kind of a rule, and what is typed for it; "kept" for one that the page cannot edit."""
    match rule:
        case {"edges": edges}:
            return "edges", ", ".join(f"{x:g}" for x in edges)
        case {"from": int() as first, "to": int() as last}:
            return "range", f"{first}, {last}"
        case {"time": part} if part in _PARTS:
            return f"time {part}", rule.get("format", "")
        case {"file": name}:
            return "file", name
        case {"labels": list() as labels}:
            known = (f"list {name}" for name, codes in _CODES.items() if codes == labels)
            return next(known, "labels"), ", ".join(map(str, labels))
    return "kept", json.dumps(rule, ensure_ascii=False)


def choose_bound(state: State, fields: Mapping[str, str]) -> None:
    """Step 4: what one count is, what is believed, and how much one person may add."""
    if not state.user:
        state.set_page(**_numbers(fields, "users"))
        return
    state.set_page(**_numbers(fields, *_BELIEFS))
    limit = int(_numbers(fields, "limit")["limit"])
    people = fields.get("count") == "people"
    state.set_options(bound=f"{limit},1" if people else f"{limit},{limit},{limit}")


def choose_privacy(state: State, fields: Mapping[str, str]) -> None:
    """Step 5: ε, the ledger and the mechanism."""
    epsilon = _numbers(fields, "epsilon")["epsilon"]
    state.set_options(epsilon=epsilon)
    state.set_recipe(budget=fields.get("budget", "").strip())
    asked = fields.get("mechanism")
    if asked and asked != state.recipe.mechanism:
        row = next(row for row in mechanisms(state) if type(row.mechanism).__name__ == asked)
        words = shlex.split(mechanism_options(row.mechanism))
        given = dict(zip(words[::2], words[1::2], strict=True))
        of_mechanism = {n.removeprefix("--"): x for n, x in given.items()}
        del of_mechanism["mechanism"], of_mechanism["epsilon"]
        common = ("user", "unit", "bound", "epsilon", "table")
        kept = {name: x for name, x in state.options.items() if name in common}
        state.set_recipe(mechanism=asked, options=kept | of_mechanism)


def new_ledger(state: State, fields: Mapping[str, str]) -> str:
    """Create the ledger that step 5 names."""
    if not state.recipe.budget:
        raise ValueError("Name a file for the ledger, for example editions.sqlite")
    total = _numbers(fields, "total")["total"]
    words = ["--people", state.about.persons, "--unit", f"a {state.about.person}"]
    path = str(state._beside(state.recipe.budget))
    return _command(state, "budget", "new", path, *words, "--epsilon", f"{total}")


def choose_words(state: State, fields: Mapping[str, str]) -> None:
    """Step 6: what readers need to know, and the folder."""
    state.set(**{name: fields[name].strip() for name in _TEXTS if name in fields})
    name = fields.get("folder", state.page.get("folder", "")).strip()
    if name != state.page.get("folder", ""):
        if name:
            if Path(name).name != name:
                raise ValueError(f"{name}: need the name of a folder without a path")
            refuse_folder(state._beside(name))
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
    """Positive numbers that were typed."""
    found = {}
    for name in names:
        try:
            x = float(fields.get(name, "").replace(",", ""))
        except ValueError:
            x = 0.0
        if not 0 < x < 2**40:
            raise ValueError(f"{name.replace('_', ' ')}: need a number > 0")
        found[name] = int(x) if x == int(x) else x
    return found


# What the page shows


def preview(state: State, name: str, text: str) -> str:
    """What a rule makes of a typed example; no table is read."""
    domain = Domain.from_dict({name: state.columns[name]}, state.source.parent)
    frame = pd.DataFrame({column: [text] for column in domain.columns})
    table = SparseTable.read(frame, domain, PUBLIC)
    return f"→ {domain.decode(name, table.keys)[0]}" if len(table) else "→ the row is left out"


def bounds(state: State) -> BoundAdvice:
    """Errors over the bound, from beliefs alone."""
    believed = [float(state.page.get(name, x)) for name, x in _BELIEFS.items()]
    return _bounds(state.domain, state.epsilon, *believed)


@lru_cache(8)
def _bounds(
    domain: Domain, epsilon: float, users: float, per_user: float, spread: float
) -> BoundAdvice:
    order = 2 if domain.size <= 2**22 else 1
    return advise_bounds(domain, epsilon, int(users), per_user, spread, order=order)


def mechanisms(state: State) -> list[Any]:
    """Rows of advice whose mechanism the page can release."""
    users = int(state.page.get("users", _BELIEFS["users"]))
    per = float(state.page.get("per_user", _BELIEFS["per_user"])) if state.user else 1.0
    limits = [int(x) for x in str(state.options.get("bound", "1,1")).split(",")]
    found: dict[str, Any] = {}
    for row in _advice(state.domain, users * per, tuple(limits), state.epsilon).rows:
        if row.mechanism.takes is not Interactions and mechanism_options(row.mechanism):
            found.setdefault(type(row.mechanism).__name__, row)
    return [*found.values()][:_SHOWN]


def _believed(domain: Domain, records: float, limits: tuple[int, ...]) -> Beliefs:
    cells = max(1, min(domain.size, int(records / 2)))
    return Beliefs(domain, records=max(records, cells), cells=cells, bound=Bound(*limits))


@lru_cache(8)
def _advice(domain: Domain, records: float, limits: tuple[int, ...], epsilon: float) -> Advice:
    believed = _believed(domain, records, limits)
    return advise(believed, epsilon, task="cells", seconds=_SIMULATED)


def simulated(state: State) -> list[tuple[str, float, float]]:
    """The largest cells of simulated data, their counts, and a simulated release of them."""
    rows = mechanisms(state)
    row = next((r for r in rows if type(r.mechanism).__name__ == state.recipe.mechanism), rows[0])
    limits = tuple(int(x) for x in str(state.options.get("bound", "1,1")).split(","))
    users = int(state.page.get("users", _BELIEFS["users"]))
    small, _ = _believed(state.domain, float(users), limits).simulated()
    table = small.load()
    release = row.mechanism(table, np.random.default_rng(0))  # of beliefs: nothing private
    order = np.argsort(-table.counts, kind="stable")[:_SHOWN]
    keys = table.keys[order]
    from workbench.queries import Cells

    noisy = release.answer(Cells(keys))
    return [
        (f"cell {i + 1}", float(a), float(b))
        for i, (a, b) in enumerate(zip(table.counts[order], noisy, strict=True))
    ]


def chances(epsilon: float) -> tuple[str, str]:
    """What 50 % becomes at most: for being in the table, and for either of two values.

    >>> chances(1.0)
    ('73 %', '88 %')
    """
    after = [1 / (1 + exp(-x)) for x in (epsilon, 2 * epsilon)]
    return tuple(f"{100 * x:.0f} %" if x < 0.995 else "over 99 %" for x in after)  # type: ignore[return-value]


def ledger(state: State) -> str:
    """What the ledger has left, and since when it is used up."""
    name = state.recipe.budget
    if not name:
        return "No ledger: nothing limits the sum of what you publish about these people."
    path = state._beside(name)
    if not path.exists():
        return f"{name} does not exist yet. Create it with the ε of all editions together."
    session = Session.open(path)
    left, spent = session.remaining, session.ledger
    text = f"{name}: ε = {stated(left)} of {session.budget.epsilon:g} remains"
    if state.epsilon > left and len(spent):
        return f"{text}, which is less than this release costs. The last spend was {spent.time.iloc[-1]}."
    return f"{text}, before this release of ε = {state.epsilon:g}."


def missing(state: State) -> list[str]:
    """What is to be done before the button of step 6 works."""
    todo = []
    steps: list[Callable[[], Any]] = [
        lambda: state.page.get("table") or _refuse("Choose a table (step 1)"),
        lambda: state.options.get("unit") or _refuse("Say who is protected (step 2)"),
        lambda: state.domain,
        lambda: state.options.get("bound") or _refuse("Choose a bound (step 4)"),
        lambda: state.options.get("epsilon") or _refuse("Choose ε (step 5)"),
        lambda: state.folder or _refuse("Name the folder"),
        lambda: read_about(state.about),
        lambda: _refuse_unknown(state),
    ]
    for step in steps:
        try:
            step()
        except (ValueError, OSError) as e:
            todo.append(str(e))
    return todo


def _refuse(text: str) -> None:
    raise ValueError(text)


def _refuse_unknown(state: State) -> None:
    """Refuse rules of columns that this year's table does not have."""
    domain, names = state.domain, state.draft()
    known = {(x.get("column") if isinstance(x, dict) else None) or name for name, x in names.items()}
    unknown = [c for c in (*domain.columns, state.user) if c and c not in known]
    if unknown:
        raise ValueError(f"The table has no column {', '.join(unknown)} (steps 2 and 3)")


# Publishing


def start(state: State) -> None:
    """Publish in a process of its own, once, however often this is asked."""
    if state.is_published or state.is_running:
        return
    todo = missing(state)
    if todo:
        raise ValueError(". ".join(todo))
    assert state.folder is not None
    with open(_log(state), "w", encoding="utf-8") as log:
        state.process = subprocess.Popen(
            _words(state, "publish", state.page["table"], "--publish", str(state.folder)),
            cwd=state.home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # it outlives the page
        )


def _words(state: State, *words: str) -> list[str]:
    source = ["--from", str(state.source)] if words[0] == "publish" else []
    return [sys.executable, "-c", "from workbench.cli import main; main()", *words, *source]


def _log(state: State) -> Path:
    return Path(f"{state.folder}.log")


def _command(state: State, *words: str) -> str:
    """What a command says, to its owner."""
    done = subprocess.run(_words(state, *words), cwd=state.home, capture_output=True, text=True)
    said = (done.stdout + done.stderr).strip()
    if done.returncode and words[0] == "budget":
        raise ValueError(said)
    return said


def look(state: State) -> str:
    """What `domain check --look` says of the table, for its owner alone."""
    user = ["--user", state.user] if state.user else []
    words = ["domain", "check", str(state.domain_file), state.page["table"], "--look", *user]
    return f"{_MARK}\n\n{_command(state, *words)}"


# Page

_SCRIPT = Path(__file__).with_name("publishing.js")
_STYLE = Path(__file__).with_name("publishing.css")


class PublishingPage(anywidget.AnyWidget):
    """The six steps in a browser.

    Parameters
    ----------
    source : path
        The file publication.json.
    home : path
        Folder whose tables are offered.
    tables : sequence of str
        Tables named when the page was started.
    """

    _esm = _SCRIPT
    html = traitlets.Unicode().tag(sync=True)

    def __init__(self, source: str | Path, home: str | Path, tables: Sequence[str] = ()):
        self.state = State(source, home, tables)
        self.step = len(STEPS) - 1 if self.state.is_running else 0
        self.tried: dict[str, str] = {}
        self.looked = ""
        super().__init__()
        self.on_msg(lambda _, message, buffers: self.handle(message))
        self.show()

    def handle(self, message: Mapping[str, Any]) -> None:
        """Take the fields of the step that is shown, do what a button asks, and show the page."""
        state, fields, action = self.state, message.get("fields", {}), message.get("do", "")
        error = ""
        try:
            state.read()
            if fields and not state.is_running:
                self.tried = {n: x for n, x in fields.items() if n.startswith("try")}
                CHOOSE[self.step](state, fields)
                state.write()
            match action.split():
                case ["step", i]:
                    self.step, self.looked = int(i), ""
                case ["ledger"]:
                    new_ledger(state, fields)
                case ["recommended"]:
                    CHOOSE[3](state, dict(fields) | {"limit": f"{bounds(state).bound}"})
                    state.write()
                case ["look"]:
                    self.looked = look(state)
                case ["publish"]:
                    start(state)
                case ["next"]:
                    state.set_page(folder="")
                    state.write()
        except (ValueError, OSError) as e:
            error = str(e)
            if action == f"step {self.step - 1}":
                self.step -= 1  # back is always possible
        self.show(error)

    def show(self, error: str = "") -> None:
        """Draw the step."""
        from jinja2 import Environment, PackageLoader, StrictUndefined

        loader = PackageLoader("workbench", "widgets")
        how: dict[str, Any] = dict(autoescape=True, trim_blocks=True, lstrip_blocks=True)
        page = Environment(loader=loader, undefined=StrictUndefined, **how)
        try:
            shown = self._shown()
        except (ValueError, OSError) as e:
            shown, error = {"problem": True}, error or str(e)
        given = dict(state=self.state, step=self.step, steps=STEPS, error=error, number=number)
        text = page.get_template("publishing.html").render(given, style=_STYLE.read_text(), **shown)
        self.html = text

    def _shown(self) -> dict[str, Any]:
        """What the template of this step needs."""
        state = self.state
        match self.step:
            case 0:
                return dict(tables=state.tables(), columns=self._columns())
            case 1:
                return dict(columns=self._columns())
            case 2:
                return dict(
                    cards=[self._card(i, *each) for i, each in enumerate(state.draft().items())],
                    rules=_RULES,
                    looked=self.looked,
                )
            case 3:
                believed = {name: state.page.get(name, x) for name, x in _BELIEFS.items()}
                found = bounds(state) if state.user else None
                return dict(believed=believed, found=found, curve=found and curve(found, state.limit))
            case 4:
                return dict(
                    chances=chances(state.epsilon),
                    ledger=ledger(state),
                    rows=mechanisms(state),
                    simulated=simulated(state),
                    no_ledger=bool(state.recipe.budget)
                    and not state._beside(state.recipe.budget).exists(),
                )
        paid = state.folder is not None and Path(f"{state.folder}.parquet").exists()
        log = _log(state).read_text() if state.folder and _log(state).exists() else ""
        running, done = state.is_running, state.is_published
        return dict(
            running=running, done=done, paid=paid, log="" if running or done else log,
            missing=missing(state), ledger=ledger(state), chances=chances(state.epsilon), mark=_MARK,
            files=sorted(p.name for p in state.folder.iterdir()) if done and state.folder else [],
        )  # fmt: skip

    def _columns(self) -> list[tuple[str, str]]:
        """Columns with their declared types in words."""
        kinds = {"from": "integers", "low": "numbers", "time": "dates or times", "labels": "text"}
        return [
            (name, next((kinds[k] for k in kinds if isinstance(x, dict) and k in x), "not declared"))
            for name, x in self.state.draft().items()
        ]

    def _card(self, i: int, name: str, drafted: Any) -> dict[str, Any]:
        """One column of step 3: its rule, its labels and a typed example."""
        rule = self.state.columns.get(name)
        kind, text = ("labels", "") if rule is None else words_of(rule)
        tried, labels, size, seen = self.tried.get(f"try{i}", ""), [], 0, ""
        if rule is not None:
            try:
                domain = Domain.from_dict({name: rule}, self.state.source.parent)
                size = domain.shape[0]
                labels = domain.decode(name, np.arange(min(size, _SHOWN))).tolist()
                seen = preview(self.state, name, tried) if tried else ""
            except (ValueError, OSError) as e:
                seen = str(e)
        other = isinstance(rule, dict) and rule.get("other") == "label"
        return dict(i=i, name=name, on=rule is not None, kind=kind, text=text, other=other,
                    tried=tried, labels=labels, size=size, seen=seen,
                    is_user=name == self.state.user)  # fmt: skip


_WIDE, _HIGH = 600, 260


def curve(found: BoundAdvice, limit: int) -> dict[str, Any]:
    """Places of the curve of errors over the bound, on logarithmic axes."""
    errors = found.errors
    least = min(each.error for each in errors)
    low, high = log(least / 4), log(max(each.error for each in errors) * 1.3)
    last = log(max(errors[-1].bound, limit, 2))

    def x(bound: float) -> float:
        return round(50 + (_WIDE - 70) * log(bound) / last, 1)

    def y(error: float) -> float:
        share = (max(log(max(error, 1e-9)), low) - low) / (high - low)
        return round(15 + (_HIGH - 55) * (1 - share), 1)

    near = [each.bound for each in errors if each.error <= 1.2 * least]
    lines = {
        kind: " ".join(f"{x(e.bound)},{y(getattr(e, kind))}" for e in errors)
        for kind in ("truncation", "noise", "error")
    }
    best = next(e for e in errors if e.bound == found.bound)
    powers = [10.0**k for k in range(-2, 12) if low <= log(10.0**k) <= high]
    return dict(
        lines=lines, zone=(x(near[0]) - 4, x(near[-1]) + 4), best=(x(best.bound), y(best.error)),
        chosen=x(limit), ticks=[(x(b.bound), b.bound) for b in errors[:: 1 + len(errors) // 9]],
        grid=[(y(p), number(p)) for p in powers], wide=_WIDE, high=_HIGH,
    )  # fmt: skip
