"""The data sheet of a publication: readers' questions, with answers from the release and its publisher."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, isfinite, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import estimates
from workbench.privacy import LOCAL, REPLACE, ZCDP
from workbench.spaces import Domain
from workbench.value import format_number, number

if TYPE_CHECKING:
    import pandas as pd

    from workbench.estimates.release import Release
    from workbench.owner.publication.about import About

_DELTA = 1e-6  # at which a price in ρ is said as an ε
_SHOWN = 10  # rows of the table
_SUMS = (1, 2, 4, 16, 64, 256, 1024)  # rows that are added up
_LABELS = 4


@dataclass(frozen=True)
class Answer:
    """A reader's question, with paragraphs, points and a table that answer it.

    Parameters
    ----------
    question : str
        The heading.
    texts : sequence of str
        Paragraphs.
    points : sequence of str
        Items of a list after the paragraphs.
    head, rows : sequences of str
        A table after the list.
    """

    question: str
    texts: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


class Sheet:
    """The sentences of a data sheet.

    Parameters
    ----------
    release : Release
        What is published.
    about : About
        What its publisher says.
    table : DataFrame
        The published table.
    """

    def __init__(self, release: Release, about: About, table: pd.DataFrame):
        self.release = release
        self.about = about
        self.table = table
        self.said = dict(release.describe())
        cost = release.privacy
        self.delta = _DELTA if isinstance(cost, ZCDP) else cost.delta
        self.epsilon = (release.at(_DELTA) if isinstance(cost, ZCDP) else cost).epsilon
        noise = np.asarray(release.deviations(), float)
        self.sd = float(noise.flat[0]) if noise.size and np.ptp(noise) == 0 else float("nan")

    @property
    def are_counts(self) -> bool:
        """Whether rows of the table are counts, and not reports, a sketch or synthetic records."""
        return self.release.estimate.rows_are_counts and "sd" in self.table.columns

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Who publishes what, a line each."""
        about = self.about
        facts = [
            ("Publisher", about.publisher),
            ("Questions to", about.contact),
            ("Licence", about.licence),
            ("Published", f"{about.date}, edition {about.edition}"),
            ("Source", about.source),
            ("Period", about.period),
            ("Protection", f"ε = {number(self.epsilon)} for each {about.person}"),
        ]
        return [(name, text) for name, text in facts if text]

    @property
    def statement(self) -> str:
        """Three sentences for the public, without a formula."""
        about = self.about
        what, before, epsilon = self._odds[-1] if len(self._odds) == 1 else self._odds[1]
        first = (
            f"{about.title.rstrip('.')} counts {about.several} with random noise, which protects each "
            f"{about.person}. "
            f"A reader who believes with {_percent(before)} certainty {what} reaches at most "
            f"{_percent(_after(before, epsilon))} from the table, whatever else the reader knows."
        )
        second = "Noise changes small counts by more, in proportion, than large ones."
        if isfinite(self.sd):
            second = (
                f"Noise changes a single count by at most {ceil(2 * self.sd):,} in about 19 of 20 "
                "cases, so large "
                "counts are more exact in proportion than small ones."
            )
        bound = self.release.bound
        third = f"Questions are answered by {about.publisher} ({about.contact})."
        if bound is not None and bound.status == "enforced":
            third = (
                f"If a {about.person} had more {about.several} than the limit of {number(bound.l1)}, "
                "some were kept "
                "at random and the others were left out."
            )
        return " ".join([first, second, third])

    @property
    def answers(self) -> list[Answer]:
        """All questions with their answers."""
        of_counts = [
            self._noise(),
            self._different(),
            self._sums(),
            self._empty(),
            self._not_to_conclude(),
        ]
        return [
            self._one_count(),
            self._protected(),
            self._missing(),
            *(of_counts if self.are_counts else ()),
            self._use(),
            self._citation(),
            self._contact(),
        ]

    @property
    def head(self) -> list[str]:
        """The names of the columns of the table."""
        return [str(name) for name in self.table.columns]

    @property
    def first_rows(self) -> list[list[str]]:
        """The first rows of the table, as text."""
        rows = self.table.head(_SHOWN).itertuples(index=False)
        return [[x if isinstance(x, str) else _shown(x) for x in row] for row in rows]

    def _one_count(self) -> Answer:
        about = self.about
        says = about.one_count or f"One count is one {about.row}."
        counts = f"The table has {len(self.table):,} rows."
        if not self.are_counts:
            rows = self.release.estimate.contents
            if self.release.estimate.rows_are_counts:
                rows = "synthetic records, drawn from noisy counts"
            counts += f" They are {rows}. No row is a count, and the notebook estimates counts from them."
        domain = getattr(self.release.estimate.domain, "domain", self.release.estimate.domain)
        points = []
        for name in domain.attributes if isinstance(domain, Domain) else ():
            size = domain.shape[domain.axis(name)]
            labels = [str(x) for x in domain.decode(name, np.arange(min(size, _LABELS)))]
            more = f" and {size - len(labels):,} more" if size > len(labels) else ""
            meaning = about.columns.get(name, "")
            points.append(
                f"{name}: {f'{meaning}. ' if meaning else ''}{', '.join(labels)}{more}"
            )
        return Answer("What is one count?", (says, counts), tuple(points))

    def _protected(self) -> Answer:
        about = self.about
        epsilon = self.epsilon
        unless = f", except with a probability of {number(self.delta)}" if self.delta else ""
        moves = f"all {about.several} of one {about.person} were added or removed"
        if self.release.relation == REPLACE:
            moves = f"the {about.several} of one {about.person} were others"
        if self.release.relation == LOCAL:
            moves = f"the answer of one {about.person} were another"
        texts = [
            "The strength of the protection is called ε (epsilon). A smaller ε protects more. Here "
            f"ε = {number(epsilon)}, so no published outcome becomes more than "
            f"{format_number(exp(epsilon))} times as "
            f"likely if {moves}{unless}. This holds whatever a reader knows already.",
            f"Two {about.persons} together, for example a couple, have ε = {number(2 * epsilon)}. The "
            "table shows "
            "facts about whole groups, and such facts are not hidden.",
        ]
        if about.earlier:
            named = ", ".join(
                f"“{x.title}” with ε = {number(x.epsilon)}" for x in about.earlier
            )
            total = epsilon + sum(x.epsilon for x in about.earlier)
            texts.append(
                f"The same people are in {named}. For a {about.person} who is in all of them, ε is "
                f"{number(total)} in total."
            )
        bound = self.release.bound
        if bound is not None and bound.status not in ("enforced", "as stated"):
            texts.append(
                f"This rests on a belief that was not enforced: no {about.person} adds more than the "
                "limit below."
            )
        table = tuple((what, _percent(p), _percent(_after(p, e))) for what, p, e in self._odds)
        head = ("a reader believes", "before", "after, at most")
        return Answer("Who is protected, and how strongly?", tuple(texts), (), head, table)

    @property
    def _odds(self) -> list[tuple[str, float, float]]:
        """Beliefs about one person: what, how certain before, and the loss that limits the change."""
        fact = "that one of two facts about somebody in the data is true"
        if self.release.relation in (REPLACE, LOCAL):
            return [(fact, 0.5, self.epsilon)]
        there = f"that one {self.about.person} is in the data"
        every = [(there, before, self.epsilon) for before in (0.1, 0.5, 0.9)]
        return [*every, (fact, 0.5, 2 * self.epsilon)]  # one is removed and another added

    def _missing(self) -> Answer:
        about = self.about
        texts = [self.said[name] for name in ("Protected", "Truncated") if name in self.said]
        bound = self.release.bound
        if bound is not None and bound.status == "enforced":
            texts.append(
                f"The true numbers of {about.several} are therefore somewhat higher than the "
                "published ones. Groups "
                "in which many people have many rows lose more than others."
            )
        if "Sampled" in self.said:
            texts.append(f"Rows of the table were sampled: {self.said['Sampled']}.")
        believed = tuple(
            f"The publisher believes, without having looked at the table: {x}"
            for x in about.beliefs
        )
        return Answer(
            f"Which {about.persons} and {about.several} are missing?", tuple(texts), believed
        )

    def _noise(self) -> Answer:
        if not isfinite(self.sd):
            said = "The column sd has the standard deviation of the noise of each row, where it is known."
            why = self.said.get("Unknown", "")
            return Answer(
                "How large is the noise?", tuple(filter(None, [said, why and f"Here: {why}."]))
            )
        texts = [
            f"The noise of each row has a standard deviation of {format_number(self.sd)}. It stays within "
            f"± {ceil(2 * self.sd):,} in about 19 of 20 rows. The columns low and high are these limits."
        ]
        if not self._independent:
            return Answer("How large is the noise?", tuple(texts))
        texts.append(
            "Noise is drawn for each row by itself. In a sum it grows with the square root of the "
            "number of rows:"
        )
        counts = [k for k in _SUMS if k < len(self.table)] + [len(self.table)]
        rows = tuple(
            (f"{k:,}", format_number(self.sd * sqrt(k)), f"± {ceil(2 * self.sd * sqrt(k)):,}")
            for k in counts
        )
        head = ("rows in the sum", "standard deviation", "about 19 times in 20 within")
        return Answer("How large is the noise?", tuple(texts), (), head, rows)

    def _different(self) -> Answer:
        text = "Compare two rows only if their intervals from low to high do not overlap."
        if isfinite(self.sd):
            apart = ceil(2 * sqrt(2) * self.sd)
            verdict = "No." if apart > 3 else "Yes."
            text = (
                f"{verdict} Two rows differ with confidence only if their counts are at least "
                f"{apart:,} apart. If "
                "they are closer, noise alone may have made the difference."
            )
        return Answer("Is 12 different from 9?", (text,))

    def _sums(self) -> Answer:
        if "level" in self.table.columns:
            return Answer(
                "May I add rows?",
                (
                    "Add rows of one level only. A row of a lower level is contained in a row of the "
                    "level above.",
                ),
            )
        if "count_for_sums" not in self.table.columns:
            return Answer(
                "May I add rows?",
                ("Yes. The counts are unbiased, so their sums are unbiased as well.",),
            )
        return Answer(
            "May I add rows?",
            (
                "Yes, with the column count_for_sums. It is unbiased and may be negative, and in "
                "sums negative and "
                "positive noise cancel. The column count shows negative values as 0, so its sums are too high.",
            ),
        )

    def _empty(self) -> Answer:
        absent = self.table.attrs.get("absent_cells", 0)
        if not absent:
            text = (
                "Every combination that was asked for has a row, whether or not anything occurred. A "
                "count of 0 does "
                "not show that nothing occurred, because the noise may have hidden it."
            )
        else:
            most = self.table.attrs.get("absent_at_most", float("nan"))
            least = (
                f" Each of them holds at most {ceil(most):,} with near certainty."
                if isfinite(most)
                else ""
            )
            text = (
                f"{absent:,} combinations have no row. They were left out because their noisy count "
                "was small or "
                f"because rows were sampled. A missing row is not a zero.{least}"
            )
        return Answer("What does a missing row or a zero mean?", (text,))

    def _not_to_conclude(self) -> Answer:
        about = self.about
        points = [
            "A small count does not show that anybody was there.",
            "The largest of many small rows is probably large because of its noise.",
            "A percentage of two small counts means little.",
            f"No row counts {about.persons}, unless one {about.row} is one {about.person}.",
        ]
        if "By chance" in self.said:
            points.append(f"{self.said['By chance'][:1].upper()}{self.said['By chance'][1:]}.")
        return Answer("What must I not conclude?", (), tuple(points))

    def _use(self) -> Answer:
        text = (
            f"The licence is {self.about.licence}. Nothing that you compute from the table weakens "
            "the protection of "
            f"a {self.about.person}."
        )
        return Answer("What may I do with it?", (text,))

    def _citation(self) -> Answer:
        about = self.about
        text = (
            f"{about.publisher} ({about.date[:4]}). {about.title.rstrip('.')}. Edition "
            f"{about.edition}. Counts with "
            f"differential privacy, ε = {number(self.epsilon)} per {about.person}. {about.licence}."
        )
        return Answer("How do I cite it?", (text,))

    def _contact(self) -> Answer:
        text = (
            f"Write to {self.about.contact}. The publisher can explain the table, but it cannot "
            "give you exact counts."
        )
        return Answer("Whom do I ask?", (text,))

    @property
    def _independent(self) -> bool:
        """Whether rows have independent noise and each is a cell of its own."""
        estimate: Any = self.release.estimate
        if isinstance(estimate, estimates.Summary):
            plain = getattr(estimate, "transform", None) is None
            return plain and estimate.scale == 1 and not estimate.absent_cells
        return isinstance(estimate, estimates.Histogram)


def _after(before: float, epsilon: float) -> float:
    """The largest belief after the release, of one before it."""
    odds = before / (1 - before) * exp(min(epsilon, 700))
    return odds / (1 + odds)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _shown(x: Any) -> str:
    return (
        ""
        if x != x
        else format_number(float(x))
        if isinstance(x, float | np.floating)
        else number(int(x))
    )
