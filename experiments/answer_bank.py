"""Tour of a session whose noisy answers can be used again after they were paid for. It is not a figure of a
paper.

Words   A question is cheaper if, after other questions were paid for, its smallest ε is below the one for an
        empty bank (wherever that one is above 0), and never above it. An answer is recalled with less error
        if the error bar that `recall` gives is smaller than the standard deviation of the noise that was
        bought.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench import DP, Session, SparseTable
from workbench.compiled import pd
from workbench.datasets import Adult, IPUMSTwin, Projected
from workbench.estimates.files import process_folder
from workbench.figures import Figure
from workbench.figures.fields import choice, epsilon, number, whole
from workbench.figures.plots import Panel
from workbench.queries import Marginals, NamedMarginals, Products, labelled_queries
from workbench.trials import first_available
from workbench.trials.claims import Claim, Finding
from workbench.value import format_number, value

ADULT = "Adult"
TWIN = "IPUMS twin"
COUNTS = Marginals(1)
UNASKED = {  # ages from 16, salaries in thousands
    "46 to 55, salary from 20": {"Age": (30, 40), "Salary": (20, 50)},
    "49 to 62, salary 15 to 34": {"Age": (33, 47), "Salary": (15, 35)},
    "women of 46 to 55": {"Age": (30, 40), "Gender": {0}},
}


class Story(NamedTuple):
    """Table with four attributes and a public number of people, and questions about it that nobody
    has asked.
    """

    dataset: Any
    people: int
    questions: tuple[str, ...]

    @property
    def pairs(self) -> NamedMarginals:
        """Four pairs of attributes, whose counts are asked."""
        one, two, three, four = self.dataset.attributes
        return NamedMarginals(((one, four), (two, three), (two, four), (three, four)))

    @property
    def better(self) -> NamedMarginals:
        """Pair of attributes whose counts are asked later."""
        one, _, three, _ = self.dataset.attributes
        return NamedMarginals(((one, three),))


STORY = Story(
    Adult(("Education", "Relationship", "Sex", "Income")),
    48_842,
    (
        'Sex=Female & Income=">50K"',
        "Education in Bachelors..Doctorate & Sex=Female",
        'Education in Bachelors..Doctorate & Sex=Female & Income=">50K"',
    ),
)


def made_up(people: int) -> Story:
    """Return a story about simulated people, for the case that the real table is missing."""
    return Story(
        Projected(IPUMSTwin(records=people), ("Education", "Marital", "Gender", "Race")),
        people,
        (
            "Gender=Female & Race=0",
            "Education in 10..16 & Gender=Female",
            "Education in 10..16 & Gender=Female & Race=0",
        ),
    )


def refusal(call, *args, **more) -> str:
    """Call a function that must raise an error, and return the error as text."""
    try:
        call(*args, **more)
    except (ValueError, OSError) as e:
        return f"{type(e).__name__}: {e}"
    raise AssertionError("nothing was refused")


def cheaper(rows: pd.DataFrame, level: float) -> Finding:
    """Check whether each price is lower than with an empty bank, wherever an empty bank has a price above 0.
    Prices follow from formulas.
    """
    curves = rows[rows.panel == "price"]
    empty, *others = (
        own.set_index("error").value for _, own in curves.groupby("series", sort=False)
    )
    shares = pd.concat([(price / empty)[empty > 0] for price in others])
    free = all((price <= empty).all() for price in others)
    measured = f"{format_number(shares.min())}–{format_number(shares.max())}× the price"
    return Finding(bool((shares < 1).all() and free), measured)


def less_error(rows: pd.DataFrame, level: float) -> Finding:
    """Check whether the error bar of a recalled answer is smaller than that of the bought answer. Error bars
    follow from formulas.
    """
    bars = rows[rows.panel == "bars"].groupby("series").value.mean()
    measured = f"±{format_number(bars['recalled'])} against ±{format_number(bars['bought'])}"
    return Finding(bool(bars["recalled"] < bars["bought"]), measured)


CLAIMS = (
    Claim.of_one("bank-1", "What is in the bank makes a further answer cheaper.", cheaper),
    Claim.of_one(
        "bank-2", "An answer that was bought is recalled with less error.", less_error
    ),
)


@value
class AnswerBank(Figure):
    """Prices of a further question in three sessions, whose banks contain more and more answers."""

    id = "03_answer_bank"
    title = "What the next answer costs, the more a session has bought"
    page = "no paper"
    claims = CLAIMS
    columns = 1

    data: str = choice(ADULT, (ADULT, TWIN), "table (simulated if its file is missing)")
    people: int = whole(20_000, "simulated people")
    epsilon: float = epsilon(1.0, "privacy budget ε of the session")
    counts_epsilon: float = number(0.1, "ε of the counts of single attributes", 1e-6, 1000)
    blocks_epsilon: float = number(
        0.1, "ε of the blocks, where prices are compared", 1e-6, 1000
    )
    errors: tuple[float, ...] = number(
        (300.0, 400.0, 530.0, 710.0, 950.0, 1270.0, 1690.0, 2250.0, 3000.0),
        "requested errors",
        strict=True,
        unit="people",
    )

    counts = COUNTS
    refusal = staticmethod(refusal)

    @property
    def dataset(self) -> IPUMSTwin:
        """Simulated people for which prices are drawn."""
        return IPUMSTwin(records=self.people)

    def datasets_run(self) -> list[IPUMSTwin]:
        """Return the simulated people for which prices are drawn."""
        return [self.dataset]

    @property
    def story(self) -> Story:
        """Story that the notebook tells, about the real table if it is available, and otherwise about
        simulated people.
        """
        real = self.data == ADULT and first_available(STORY.dataset, None) is not None
        return STORY if real else made_up(self.people)

    @property
    def budget(self) -> DP:
        """Budget of the session."""
        return DP(self.epsilon)

    def folder(self) -> Path:
        """Return a new folder for a session's file. It is removed when this process ends."""
        return process_folder()

    def blocks(self) -> Products:
        """Return queries for 40 blocks of ten ages and ten salaries. Each person is in one block."""
        ages = [(a, min(a + 10, 79)) for a in range(0, 79, 10)]
        salaries = [(s, min(s + 10, 50)) for s in range(0, 50, 10)]
        boxes = [{"Age": a, "Salary": s} for a in ages for s in salaries]
        return Products.of(self.dataset.domain, boxes)

    def unasked_queries(self) -> Products:
        """Return three questions that nobody has asked."""
        return Products.of(self.dataset.domain, [*UNASKED.values()])

    def recalled_answers(
        self, session: Session, truth: SparseTable | None = None
    ) -> pd.DataFrame:
        """Return a table with the bank's answers to questions that nobody has asked, and with the true
        answers if they are passed.
        """
        queries = labelled_queries(session.bank.domain, self.story.questions)
        values, errors = session.bank.recall(queries)
        columns = {"recalled": values.round(), "±": errors.round()}
        if truth is not None:
            columns["truth"] = truth.answer(queries)
        return pd.DataFrame(columns, index=[*self.story.questions])

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results: prices of the second question, and error bars from the bank with most
        answers.
        """
        marginals = (COUNTS, self.counts_epsilon)
        banks = {
            "an empty bank": [],
            "marginals": [marginals],
            "marginals and blocks": [marginals, (self.blocks(), self.blocks_epsilon)],
        }
        frame = pd.DataFrame([row for bank in banks.items() for row in self.bank_rows(*bank)])
        return frame.assign(dataset=repr(self.dataset), truth_public=True, seed=0)

    def bank_rows(self, name: str, purchases: list[tuple]) -> list[dict]:
        """Return the prices and error bars of one session's bank after its purchases."""
        second = self.unasked_queries()[np.array([1])]
        table = self.dataset.load()
        cap = DP(max(10.0, 2 * (self.counts_epsilon + self.blocks_epsilon)))
        with tempfile.TemporaryDirectory() as home:
            path = Path(home) / "prices.session"
            with Session.open(path, table, cap, total=self.people) as session:
                for workload, epsilon in purchases:
                    session.ask(workload, epsilon)
                about = {"panel": "price", "metric": "Price", "series": name}
                rows = [
                    about
                    | {"error": error, "value": session.bank.price(second, error, self.people)}
                    for error in self.errors
                ]
                if len(purchases) == 2:
                    bars = {"panel": "bars", "metric": "bar"}
                    recalled = session.bank.recall(COUNTS, self.people).errors.mean()
                    bought = np.sqrt(session.bank.answers.variances[0])
                    rows.append(bars | {"series": "recalled", "value": recalled})
                    rows.append(bars | {"series": "bought", "value": bought})
        return rows

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return one panel with the price by the requested error."""
        return [Panel("", {"panel": "price"}, "error", log="x")]
