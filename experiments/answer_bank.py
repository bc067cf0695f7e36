"""A tour, not a figure of a paper: a session whose noisy answers keep working after they are paid for.

Words   cheaper = after some questions, the least ε for a further one is below that of an empty bank
        wherever that has to pay, and never above it; recalled with less error = the error bar that
        `recall` gives is below the deviation of the noise that was bought.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from workbench import DP, Session, SparseTable
from workbench.claims import Claim, Finding, all_of, format_number, mean_curve
from workbench.datasets import IPUMSTwin
from workbench.plots import Panel
from workbench.workload import Marginals, Products

STEM = "03_answer_bank"
TITLE = "What the next answer costs, the more a session has bought"
PAGE = "no paper"
PAPER: tuple = ()

DATA = IPUMSTwin(records=20_000)
BUDGET, TOTAL = DP(1.0), 20_000
COUNTS = Marginals(1)
ERRORS = np.geomspace(300, 3000, 9)  # tuples
WANTED = {  # ages from 16, salaries in thousands
    "46 to 55, salary from 20": {"Age": (30, 40), "Salary": (20, 50)},
    "49 to 62, salary 15 to 34": {"Age": (33, 47), "Salary": (15, 35)},
    "women of 46 to 55": {"Age": (30, 40), "Gender": {0}},
}


def folder() -> Path:
    """A new folder for a session's file, to be deleted with everything in /tmp or its like."""
    return Path(tempfile.mkdtemp(prefix="session-"))


def blocks() -> Products:
    """Ages by tens and salaries by tens, together: 40 boxes, of which a person is in one."""
    ages, salaries = ([(a, min(a + 10, n)) for a in range(0, n, 10)] for n in (79, 50))
    return Products.of(DATA.domain, [{"Age": a, "Salary": s} for a in ages for s in salaries])


def unasked_queries() -> Products:
    """Three questions that nobody has asked."""
    return Products.of(DATA.domain, [*WANTED.values()])


def recalled_answers(session: Session, truth: SparseTable | None = None) -> pd.DataFrame:
    """What the bank says of them, with and without bias; the truth if it is public."""
    values, errors = session.recall(unasked_queries())
    found = {"recalled": values.round(), "±": errors.round()}
    values, errors = session.recall(unasked_queries(), alpha=np.inf)
    found |= {"unbiased": values.round(), "± ": errors.round()}
    if truth is not None:
        found |= {"truth": truth.answer(unasked_queries())}
    return pd.DataFrame(found, index=[*WANTED])


def refusal(call, *args, **more) -> str:
    """What a refusal says."""
    try:
        call(*args, **more)
    except (ValueError, OSError) as e:
        return f"{type(e).__name__}: {e}"
    raise AssertionError("nothing was refused")


def rows(profile: str, store) -> pd.DataFrame:
    """Prices of the second question in three sessions, whose banks hold more and more."""
    table, found = DATA.load(), []
    bought = [(COUNTS, 0.1), (blocks(), 0.1)]
    for held, name in enumerate(("an empty bank", "marginals", "marginals and blocks")):
        with tempfile.TemporaryDirectory() as where:
            path = Path(where) / "prices.session"
            with Session.open(path, table, DP(100.0), total=TOTAL) as session:
                for workload, epsilon in bought[:held]:
                    session.ask(workload, epsilon)
                asked = unasked_queries()[np.array([1])]
                for error in ERRORS.tolist():
                    price = session.price(asked, error)
                    found.append({"series": name, "error": error, "value": price})
                if held == 2:
                    bars = {"recalled": session.recall(COUNTS)[1].mean()}
                    bars |= {"bought": np.sqrt(session.bank.variances[0])}
                    one = {"panel": "bars", "metric": "bar"}
                    found += [one | {"series": s, "value": v} for s, v in bars.items()]
    about = dict(dataset=repr(DATA), truth_public=True, seed=0)
    return pd.DataFrame(found).fillna({"panel": "price", "metric": "Price"}).assign(**about)


def panels(rows: pd.DataFrame) -> list[Panel]:
    """Price over the error that is asked for."""
    return [Panel("", {"panel": "price"}, "error", log="x")]


def _cheaper(rows) -> Finding:
    names = rows[rows.panel == "price"].series.unique()
    empty, *others = (mean_curve(rows, "error", panel="price", series=s)["mean"] for s in names)
    parts = {}
    for name, price in zip(names[1:], others, strict=True):
        share = price / empty
        share = share[empty > 0]
        words = f"{format_number(share.min())}–{format_number(share.max())}× the price"
        holds = (share < 1).all() and (price <= empty).all()
        parts[name] = Finding(bool(holds), words)
    return all_of(parts)


def _better(rows) -> Finding:
    bars = mean_curve(rows, "series", panel="bars")["mean"]
    words = f"±{format_number(bars['recalled'])} against ±{format_number(bars['bought'])}"
    return Finding(bool(bars["recalled"] < bars["bought"]), words)


CLAIMS = (
    Claim("bank-1", "What is in the bank makes a further answer cheaper.", _cheaper),
    Claim("bank-2", "An answer that was bought is recalled with less error.", _better),
)
