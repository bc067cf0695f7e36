"""Data sheet of a publication. The sheet contains questions that readers may have. The answers follow from the
release and from facts that the publisher gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, isclose, isfinite, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.data import BELIEVED, ENFORCED, STATED
from workbench.privacy import LOCAL, REPLACE, ZCDP
from workbench.spaces import Domain
from workbench.value import cell, counted, format_number, number, stated_at_most

if TYPE_CHECKING:
    import pandas as pd

    from workbench.estimates.release import Release
    from workbench.owner.publication.about import About

_DELTA = 1e-6  # at which a price in ρ is said as an ε, unless it spends half of that itself
_MARGIN = 0.1  # added to ε if there is a δ: only rare outcomes have a larger loss
_SHOWN = 10  # rows of the table
_SUMS = (1, 2, 4, 16, 64, 256, 1024)  # rows that are added up
_LABELS = 4
# Kinds of estimates whose rows are cells. Rows of other estimates add cells up.
_OF_CELLS = (
    "summary",
    "sequence",
    "tables",
    "values",
)
_LARGE = (
    "Rows are shown because their noisy counts are large, so their noise is larger than usual, and rows with "
    "the smallest counts may be noise alone."
)
_SIMULATED = "Simulated: the noise comes from a seed. Do not publish this table as protected. "
_NEVER = (
    "A small count does not show that anybody was there.",
    "The largest of many small rows is probably large because of its noise.",
    "A percentage of two small counts means little.",
)


@dataclass(frozen=True)
class Answer:
    """Question of a reader, with an answer. The answer consists of paragraphs, then a list, then a table. The
    list and the table may be empty.

    Parameters
    ----------
    question : str
        Question of the reader, which becomes the heading.
    texts : sequence of str
        Paragraphs of the answer.
    points : sequence of str
        Items of the list.
    head, rows : sequences of str
        Column names and rows of the table.
    """

    question: str
    texts: Sequence[str] = ()
    points: Sequence[str] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


class Sheet:
    """Content of the data sheet of a publication.

    Parameters
    ----------
    release : Release
        Release that is published.
    about : About
        Information from the publisher.
    tables : mapping of str to DataFrame
        Published tables by file name.
    """

    def __init__(self, release: Release, about: About, tables: Mapping[str, pd.DataFrame]):
        self.release = release
        self.about = about
        self.tables = tables
        self.table = next(iter(tables.values()))
        self.absent = self.table.attrs.get("absent_cells", 0)
        cost = release.privacy
        is_rho = isinstance(cost, ZCDP)
        delta: Any = max(_DELTA, float(f"{2 * cost.delta:.0e}")) if is_rho else None
        self.price = release.at(delta) if isinstance(cost, ZCDP) else cost
        self.strength = f"ε = {stated_at_most(self.price.epsilon)}"
        self.said = dict(release.describe(delta))
        noise = np.asarray(release.deviations(), float)
        self.sd = float(noise.flat[0]) if noise.size and np.ptp(noise) == 0 else float("nan")
        self.noise, self.within = format_number(self.sd), format_number(2 * self.sd)
        domain = getattr(release.estimate.domain, "domain", release.estimate.domain)
        self.domain: Any = domain if isinstance(domain, Domain) else None
        made = (self.domain and self.domain.preparation) or ()
        self.rules = dict(zip(domain.attributes, made, strict=True)) if made else {}
        bound = release.bound
        self.bound = bound if bound and bound.status == ENFORCED else None
        self.counted, self.others, one = about.several, about.persons, about.row
        most = 0 if self.bound is None else self.bound.linf
        if self.bound is not None and release.estimate.kind not in _OF_CELLS:
            most *= self.bound.l0
        self.counts_people = most == 1  # each is once in a row
        if self.counts_people:
            self.counted, self.others, one = about.persons, about.several, about.person
        self.one_count = about.one_count or f"One count is one {one}."

    @property
    def are_counts(self) -> bool:
        """Whether each row of the table is a noisy count. Other releases consist of people's reports, a
        sketch or synthetic records.
        """
        return self.release.estimate.rows_are_counts and "sd" in self.table.columns

    @property
    def limit(self) -> str:
        """Text that states how much one person adds at most to the table. The text is empty if nobody's rows
        were truncated.
        """
        about, bound = self.about, self.bound
        if bound is None:
            return ""
        if self.counts_people:
            most = f"counts once in a row, and in at most {counted(bound.l0, 'row')}"
        elif bound.l1 <= min(bound.l0, bound.linf):
            most = f"adds at most {counted(bound.l1, about.row, about.several)}"
        else:
            most = f"adds at most {bound.limit_in_words}"
        return f"Each {about.person} {most}"

    @property
    def is_selection(self) -> bool:
        """Whether the rows are values that were found in the data, and not values from a public list."""
        return bool(self.release.estimate.kind == "values")

    @property
    def is_filtered(self) -> bool:
        """Whether the table contains only rows with large noisy counts. The noise of such rows is larger than
        average, because the noise helped to select these rows.
        """
        return bool(self.absent) and not self.is_selection and "Sampled" not in self.said

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Basic facts of the publication, for example publisher and source, as pairs of a name and a text."""
        about = self.about
        facts = [
            ("Publisher", about.publisher),
            ("Questions to", about.contact),
            ("Licence", about.licence),
            ("Published", f"{about.date}, edition {about.edition}"),
            ("Source", about.source),
            ("Period", about.period),
            ("Protection", f"{self.strength} for each {about.person}"),
        ]
        return [(name, text) for name, text in facts if text]

    @property
    def statement(self) -> str:
        """Statement for the public in three sentences, without formulas. If the release is simulated, the
        statement says so first.
        """
        about = self.about
        simulated = _SIMULATED if self.release.simulated else ""
        what, before, epsilon = next(odds for odds in self._odds if odds[1] == 0.5)
        exception = f",{self._exception}" if self._exception else ""
        counts = f"counts {self.counted}"
        if self.is_selection:
            counts = f"lists values that enough {self.counted} have, chosen"
        noise = "Noise changes small counts by more, in proportion, than large ones."
        if isfinite(self.sd) and self.is_filtered:
            noise = (
                f"Noise has a standard deviation of {self.noise}, and only combinations with large noisy "
                "counts are shown, so the smallest counts may be noise alone."
            )
        elif isfinite(self.sd):
            noise = (
                f"Noise changes a single count by at most {self.within} in about 19 of 20 cases, so large "
                "counts are more exact in proportion than small ones."
            )
        last = f"{about.publisher} answers questions ({about.contact})."
        if self.limit:
            last = f"{self.limit}, because the rest was left out at random."
        elif (bound := self.release.bound) and bound.status == BELIEVED:
            last = f"It assumes that each {about.person} adds at most {bound.limit_in_words}."
        return (
            f"{simulated}The table “{about.title.rstrip('.')}” {counts} with random noise, so a reader who is "
            f"{_percent(before)} sure {what} becomes at most {certainty(epsilon, before)} sure by reading it"
            f"{exception}, whatever else the reader knows. {noise} {last}"
        )

    @property
    def answers(self) -> list[Answer]:
        """All questions with their answers."""
        about = self.about
        use = f"Nothing that you compute from the table weakens the protection of any {about.person}."
        citation = (
            f"{about.publisher} ({about.date[:4]}). {about.title.rstrip('.')}. Edition {about.edition}. "
            f"Counts with differential privacy, {self.strength} per {about.person}. {about.licence}."
        )
        contact = "The publisher can explain the table, but it cannot give you exact counts."
        return [
            self._one_count(),
            self._protected(),
            self._missing(),
            *(self._of_counts() if self.are_counts else self._of_rows()),
            Answer("What may I do with it?", [f"The licence is {about.licence}. {use}"]),
            Answer("How do I cite it?", [citation]),
            Answer("Whom do I ask?", [f"Write to {about.contact}. {contact}"]),
        ]

    @property
    def head(self) -> list[str]:
        """Names of the table's columns."""
        return [str(name) for name in self.table.columns]

    @property
    def first_rows(self) -> list[list[str]]:
        """First rows of the table, as text."""
        rows = self.table.head(_SHOWN).itertuples(index=False)
        return [[cell(x) for x in row] for row in rows]

    def _one_count(self) -> Answer:
        about = self.about
        kind = " (cells)" if self.are_counts else ""
        texts = [f"{name} has {len(x):,} rows{kind}." for name, x in self.tables.items()]
        if self.are_counts:
            shown = f"A row shows how many {self.counted} have its labels, with noise."
            texts.insert(0, f"{self.one_count} {shown}")
        elif self.is_selection:
            texts.append("They are values. No row is a count.")
        else:
            rows = self.release.estimate.contents
            if self.release.estimate.rows_are_counts:
                rows = "synthetic records, drawn from noisy counts"
            texts.append(
                f"They are {rows}. No row is a count, and the notebook estimates counts from them."
            )
        domain, points = self.domain, []
        for name, size in zip(domain.attributes, domain.shape, strict=True) if domain else ():
            labels = [str(x) for x in domain.decode(name, np.arange(min(size, _LABELS)))]
            more = f" and {size - len(labels):,} more" if size > len(labels) else ""
            meaning = f"{about.columns[name]}. " if name in about.columns else ""
            rule = self.rules.get(name)
            if rule and rule.column:
                meaning += f"from the column {rule.column}. "
            if rule and rule.other == "label":
                more += f" (“{rule.other_label}” is any other value)"
            points.append(f"{name}: {meaning}{', '.join(labels)}{more}")
        one = "count" if self.are_counts else "row"
        return Answer(f"What is one {one}?", texts, points)

    def _protected(self) -> Answer:
        about, price = self.about, self.price
        of_two = f" and δ = {stated_at_most(min(1.0, self._two_steps))}" if price.delta else ""
        texts = [
            "The strength of the protection is called ε (epsilon). A smaller ε protects more.",
            self.said["Guarantee"],
            f"Two {about.persons} together have ε = {stated_at_most(2 * price.epsilon)}{of_two}. "
            "The table shows facts about whole groups, and such facts are not hidden.",
        ]
        if about.earlier:
            named = [f"“{x.title}” with ε = {number(x.epsilon)}" for x in about.earlier]
            total = price.epsilon + sum(x.epsilon for x in about.earlier)
            delta = price.delta + sum(x.delta for x in about.earlier)
            also = f", and δ is {number(delta)}" if delta else ""
            texts.append(
                f"The same people are in {', '.join(named)}. For one {about.person} who is in all of them, ε "
                f"is {stated_at_most(total)} in total{also}."
            )
        if "At δ" in self.said:
            texts.insert(2, self.said["At δ"])
        if price.delta:
            texts.append(f"The limits below hold{self._exception}.")
        rows = [(what, _percent(p), certainty(e, p)) for what, p, e in self._odds]
        head = ("a reader believes", "before", "after, at most")
        return Answer("Who is protected, and how strongly?", texts, (), head, rows)

    @property
    def _two_steps(self) -> float:
        """The δ of a change in two steps, each of which costs the price: δ for one, and up to e^ε·δ for the
        other.
        """
        return (1 + exp(min(self.price.epsilon, 700))) * self.price.delta

    @property
    def _exception(self) -> str:
        """Text with the probability that an example of `_odds` does not hold, or no text if it always holds."""
        if not self.price.delta:
            return ""
        is_one_step = self.release.relation in (REPLACE, LOCAL)
        delta = self.price.delta if is_one_step else self._two_steps
        # Of outcomes B that are more than e^(ε+s) times as likely, Pr[B] <= e^ε·e^(−ε−s)·Pr[B] + δ.
        failed = stated_at_most(min(1.0, delta / (1 - exp(-_MARGIN))))
        return f" except with a probability of at most {failed}"

    @property
    def _odds(self) -> list[tuple[str, float, float]]:
        """Examples of what a reader may believe about one person. Each example has a probability before the
        release, and the privacy loss that limits how much the probability changes. With a δ, the loss of a rare
        outcome may be larger than ε, so the limit is a little larger.
        """
        loss, margin = self.price.epsilon, _MARGIN if self.price.delta else 0.0
        fact = f"that one of two possible facts about {self.about.unit} in the data is true"
        if self.release.relation in (REPLACE, LOCAL):
            return [(fact, 0.5, loss + margin)]
        there = f"that one particular {self.about.person} is in the data"
        every = [(there, before, loss + margin) for before in (0.1, 0.5, 0.9)]
        return [*every, (fact, 0.5, 2 * loss + margin)]  # one is removed and another added

    def _missing(self) -> Answer:
        about = self.about
        bound = self.release.bound
        texts = [self.said.get(name, "") for name in ("Protected", "Truncated")]
        if self.limit:
            of_counts = "the counts and the columns sd, low and high"
            described = of_counts if self.are_counts else "the rows"
            texts[0] = (
                f"{self.limit}. The rest was left out at random, so {described} describe only what was kept. "
                f"This lowers the numbers of {self.counted}, most in groups whose {about.persons} have many "
                f"{about.several}. By how much exactly is private."
            )
        elif bound and bound.status == STATED and not texts[1]:
            texts[1] = f"No {about.several} were left out to limit one {about.person}."
        domain = self.domain
        if domain and self.bound and domain.missing_user != "refuse":
            texts.append(f"Left out: {about.several} that name no {about.person}.")
        leaves = [(name, x) for name, rule in self.rules.items() if rule for x in rule.leaves]
        drops = dict.fromkeys(name for name, x in leaves if "drop" in (x.other, x.missing))
        if drops:
            named = " or ".join(drops)
            texts.append(f"Left out: {about.several} whose {named} is none of the labels.")
        if "Sampled" in self.said:
            texts.append(f"Rows of the table were sampled: {self.said['Sampled']}.")
        believed = [f"The publisher believes, without looking: {x}" for x in about.beliefs]
        who = " and ".join(dict.fromkeys((about.persons, about.several)))
        return Answer(f"Which {who} are missing?", [*filter(None, texts)], believed)

    def _of_counts(self) -> list[Answer]:
        """Return the questions and answers for a table of counts."""
        sums, conclude = [self._sums()], []
        if len(self.tables) > 1:
            sums.append(
                f"Each file counts the same {self.counted}, so add rows of one file only."
            )
        if self.counts_people:
            sums.append(
                f"A sum counts one {self.about.person} again in each row, so it is not a number of "
                f"{self.counted}."
            )
        if self.counted != self.others:
            conclude.append(f"No row counts {self.others}.")
        names = ("Caution", "By chance") if self.absent else ("Caution",)
        conclude += [self.said[name] for name in names if name in self.said]
        return [
            self._noise(),
            Answer("Is 12 different from 9?", [self._different()]),
            Answer("May I add rows?", sums),
            Answer("What does a missing row or a zero mean?", [self._empty()]),
            Answer("What must I not conclude?", (), [*_NEVER, *conclude]),
        ]

    def _of_rows(self) -> list[Answer]:
        """Answer about synthetic records and reports. A list of selected values has no such answer."""
        if self.is_selection:
            return []
        never = (
            f"A single row says nothing reliable about any {self.about.person}.",
            "A rare combination of values may be in the table by chance alone, and a combination that is not "
            "in the table may occur among the people.",
        )
        return [Answer("What must I not conclude?", (), never)]

    def _noise(self) -> Answer:
        rows: list[Sequence[str]] = []
        if not isfinite(self.sd):
            texts = ["Column sd has the standard deviation of each row's noise, where known."]
            if "Unknown" in self.said:
                texts.append(f"Here: {self.said['Unknown']}.")
            if self.is_filtered:
                texts.append(_LARGE)
        elif self.is_filtered:
            texts = [
                f"The noise of each combination has a standard deviation of {self.noise}. Columns low and high "
                f"are ± {self.within}. These limits hold for about 19 of 20 combinations, and for fewer of "
                f"those that are shown. {_LARGE}"
            ]
        else:
            limits = "limits"
            if "count_for_sums" in self.table.columns:
                limits = "limits around count_for_sums, or 0 where a limit is negative"
            texts = [
                f"The noise of each row has a standard deviation of {self.noise}. It stays within ± "
                f"{self.within} in about 19 of 20 rows. Columns low and high are these {limits}."
            ]
            if self._adds_up():
                texts.append(
                    "Noise is drawn for each row by itself, so in a sum it grows with the square root of the "
                    "number of rows."
                )
                for k in [k for k in _SUMS if k < len(self.table)] + [len(self.table)]:
                    error = self.sd * sqrt(k)
                    rows.append(
                        (f"{k:,}", format_number(error), f"± {format_number(2 * error)}")
                    )
        head = ("rows in the sum", "standard deviation", "about 19 times in 20 within")
        return Answer("How large is the noise?", texts, (), head, rows)

    def _adds_up(self) -> bool:
        """Return whether the noise of the sum of all rows has the standard deviation that rows with
        independent noise would give.
        """
        try:
            total = self.release.answer({}, error=True)
        except (ValueError, TypeError):
            return False
        independent = self.sd * sqrt(len(self.table))
        return not np.any(total.absent_cells) and isclose(float(total[1][0]), independent)

    def _different(self) -> str:
        if not isfinite(self.sd):
            return "Compare two rows only if their intervals from low to high do not overlap."
        alone = self._adds_up() or self.absent or len(self.tables) > 1
        deviations = 2 * sqrt(2) if alone else 4  # the most, where rows share noise
        apart = ceil(deviations * self.sd)
        return (
            f"{'No' if apart > 3 else 'Yes'}. Two rows differ with confidence only if their counts are at "
            f"least {apart:,} apart. If they are closer, noise alone may have made the difference."
        )

    def _sums(self) -> str:
        if "level" in self.table.columns:
            return (
                "Add rows of one level only, because a row contains those of the level below."
            )
        if self.is_filtered:
            return f"Only as a rough guide. A sum lacks the missing rows. {_LARGE}"
        if "count_for_sums" not in self.table.columns:
            return "Yes. The column count is right for sums."
        if "Sampled" in self.said:
            return (
                "Yes, with the column count_for_sums, which makes up for rows that were not drawn. The column "
                "count does not, so its sums are too low."
            )
        return (
            "Yes, with the column count_for_sums. It may be negative, and in sums negative and positive "
            "noise cancel. The column count shows negative values as 0, so its sums are too high."
        )

    def _empty(self) -> str:
        if self.is_selection:
            return (
                "A value without a row was not chosen. This does not show whether it occurred."
            )
        if not self.absent:
            return (
                "No row is missing. Every row is there whether or not anything occurred. A count of 0 does not "
                "show that nothing occurred, because the noise may have hidden it."
            )
        why = "rows were sampled" if "Sampled" in self.said else "their noisy count was small"
        most = self.table.attrs["absent_at_most"]
        limit = f" Each probably holds at most {ceil(most):,}." if isfinite(most) else ""
        return (
            f"{self.absent:,} combinations have no row. They were left out because {why}. A missing row is "
            f"not a zero.{limit}"
        )


def certainty(epsilon: float, before: float = 0.5) -> str:
    """Return the largest probability that a reader can give to a fact after a release, in per cent. The
    function computes this probability from ε and from the probability before the release.

    >>> certainty(1.0), certainty(2.0), certainty(1.0, before=0.1)
    ('73 %', '88 %', '23 %')
    """
    return _percent(1 / (1 + (1 - before) / before * exp(-epsilon)))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
