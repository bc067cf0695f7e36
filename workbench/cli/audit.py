"""Commands for authors of mechanisms: `workbench audit`, `workbench laws` and `workbench new`."""

from __future__ import annotations

import re
from inspect import getsource
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench import compiled, mechanisms
from workbench.cli import options, screen
from workbench.compiled import thread_count

# Audit


def audit(
    names: list[str] | None = None,
    *,
    epsilon: options.Numbers = "0.3,1,3",
    runs: Annotated[int | None, typer.Option(min=80)] = None,
    seconds: Annotated[float, typer.Option(min=0.01)] = 10.0,
    thorough: bool = False,
    workers: options.Positive = None,
    out: Path | None = None,
) -> None:
    """Test whether mechanisms keep their privacy guarantee.

    The command needs no table of yours. It runs each mechanism many times on two small tables that differ in
    one unit, and compares the outputs. Each printed line is about a mechanism, a pair of tables and an ε. The
    line shows a lower bound on the true ε, as a number and as a share of the stated ε. If the command can
    list all possible outputs of a mechanism, the line also shows the exact ε. The exit code is 1 if a
    mechanism breaks its guarantee, or if the command cannot test it.

    Parameters
    ----------
    names : NAME
        Mechanisms to test, for example HighPassFilter or module:Class. With module:name you can test an
        object with its own parameters, or a function of a table. By default all mechanisms of the workbench.
    epsilon : E,E,…
        Values of ε with which the command tests each mechanism.
    runs
        Number of runs with each of the two tables. By default as many as the time limit allows.
    seconds
        Time limit of a single run, in seconds. All runs for one line of the output take at most a minute of
        processor time.
    thorough
        Test all pairs of tables, and all options of each mechanism. This takes hours.
    workers
        Number of worker processes. By default one per core of your computer.
    out
        CSV file for the results. The command does not repeat tests whose results are already in the file.
    """
    if min(epsilon) <= 0:
        raise ValueError(f"--epsilon {min(epsilon)} is not allowed: need numbers > 0")
    audited = [_named(name) for name in names or ()]

    from workbench.owner.audit import default_jobs, run_audits
    from workbench.owner.audit.measure import add_row, read_rows
    from workbench.owner.audit.plan import MOST_SECONDS, RUNS

    jobs = default_jobs(audited or None, epsilon, thorough)
    most = float("inf") if runs else MOST_SECONDS
    audits = [] if out is None else read_rows(out)
    done = {
        (a.name, a.pair, a.epsilon if a.budget_epsilon is None else a.budget_epsilon)
        for a in audits
    }
    jobs = [job for job in jobs if job.key not in done]
    screen.say(f"{len(jobs)} audits, most of which take a few seconds of processor time")
    for result in run_audits(
        jobs,
        workers=workers or thread_count(),
        runs=runs or RUNS,
        seconds=seconds,
        most_seconds=most,
    ):
        audits.append(result)
        seen = result.exact is not None or result.bound
        mark = "✗" if result.leaks else "✓" if seen else "?"
        reached = f"reached {result.reached:.0%} of ε"
        screen.say(f"{mark} {result.name}, {result.pair}: {result.measured}; {reached}")
        if out is not None:
            add_row(result, out)
    refused = [a for a in audits if a.exact is None and a.bound is None]
    leaks = [result for result in audits if result.leaks]
    for result in leaks:
        screen.complain(str(result))
    screen.say(
        f"\n{len(audits)} audits, {len(leaks)} leaks. A bound from runs is wrong once in a million."
    )
    if leaks or (refused and not thorough):
        raise typer.Exit(1)


def _named(name: str) -> Any:
    """Return the mechanism or function with this name. It may be in the workbench, in another installed
    package, or in a module of the current folder.
    """
    compiled.use_current_folder()
    thing: Any = mechanisms.find(name)
    for module in compiled.stated_modules() if name not in mechanisms.__all__ else ():
        thing = vars(module).get(name, thing)
    if thing is None:
        raise ValueError(
            f"no mechanism {name!r}. Give module:Class or module:function, or name its module by --with"
        )
    if not callable(thing):
        raise ValueError(f"{name} cannot be called: need a mechanism, or a function of a table")
    return thing


# Laws


def laws(name: str) -> None:
    """Check that a mechanism follows the rules for mechanisms.

    Each printed line is about one rule. The exit code is 1 if the mechanism breaks a rule.

    Parameters
    ----------
    name : MODULE:CLASS
        Class of the mechanism to check, for example my_module:MyHistogram.
    """
    cls = _named(name)
    if not hasattr(cls, "takes") or not hasattr(cls, "example"):
        raise ValueError(f"{name} is no mechanism: need a class derived from `Mechanism`")

    from workbench.mechanisms.laws import check_laws

    broken = 0
    for outcome in check_laws(cls):
        mark = "✗" if outcome.broken else "✓"
        screen.say(f"{mark} {outcome.law}")
        if outcome.broken:
            broken += 1
            screen.complain(screen.plain(outcome.broken))
    if broken:
        raise typer.Exit(1)


# New

app = typer.Typer(no_args_is_help=True, help="Create a file for your own mechanism.")

_ABOUT = '"""{name}: what it does, in one sentence in the field\'s words."""'
_PROMISES = """Guarantee  ε-DP per unit; which part of the budget pays for what.
    Assumes    the table's bound; a domain that fits in memory.
    Source     authors, venue, year; the theorem or algorithm.
    Differs    where and why it departs from the source, or "nothing".
    Cost       time and memory, in non-empty cells, output size and domain size."""


@app.callback()
def new() -> None:
    """Create a file for your own mechanism."""


@app.command()
def mechanism(name: str) -> None:
    """Write a file with a working mechanism to the current folder.

    The file contains a short mechanism, which adds noise to every count. You choose its name. Change the code
    as you need. Then run `workbench laws` to check that your mechanism still follows the rules for
    mechanisms.

    Parameters
    ----------
    name : NAME
        Name of the new class, for example MyHistogram.
    """
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
        raise ValueError(
            f"NAME = {name!r} is not allowed: need the name of a class, for example MyHistogram"
        )
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*", name)
    path = Path(f"{'_'.join(words).lower()}.py")
    if path.exists():
        raise ValueError(f"{path} exists: choose another name")

    from workbench.mechanisms import LaplaceHistogram, protocol

    body = re.sub(
        r"Guarantee  .*?Cost  [^\n]*", _PROMISES, getsource(LaplaceHistogram), flags=re.S
    )
    body = body.replace("LaplaceHistogram", name).replace("Laplace histogram", " ".join(words))
    body = re.sub(r'cite = "\w+"', 'cite = ""  # the key of its source', body)
    names = {*re.findall(r"(?<![.\w])\w+", body)} - {"np"}
    used = sorted(names & {*vars(protocol)}, key=str.lower)
    imports = "".join(f"    {x},\n" for x in used)
    imports = f"from workbench.mechanisms.protocol import (\n{imports})"
    text = f"{_ABOUT.format(name=name)}\n\nimport numpy as np\n\n{imports}\n\n\n{body}"
    path.write_text(text, encoding="utf-8")
    module = path.stem
    screen.say(
        f"{path}: change it, then try\n  workbench laws {module}:{name}\n"
        f"  workbench audit {module}:{name} --epsilon 1\n"
        f"  workbench release {name} TABLE --with {module} …"
    )
