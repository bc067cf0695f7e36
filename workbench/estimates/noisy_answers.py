"""Noisy answers to linear queries (weighted sums of counts). From these answers, the package `inference`
estimates answers to other queries, or models of the table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from workbench.compiled import pa, pd
from workbench.estimates.estimate import Estimate, by_name
from workbench.queries import (
    Linear,
    Products,
    Recipe,
    TableQueries,
    Together,
    linear_queries,
    stated,
)
from workbench.queries.sensitivity import largest_weights
from workbench.spaces import Domain
from workbench.value import Bool, Float, Int, finite_array, read_only, sealed


class _MergedAnswers(NamedTuple):
    """Distinct queries with merged answers. For each query, the object contains the position of the query's
    text, the weighted mean of all noisy answers to the query, and the variance of this mean.
    """

    places: dict[str, int]
    means: Float[np.ndarray, " different"]
    variances: Float[np.ndarray, " different"]

    def find(self, texts: Iterable[str]) -> Int[np.ndarray, " queries"]:
        """Return the position of each query, given as text, among the stored queries. The position is −1 if
        the query was not asked.
        """
        return np.array([self.places.get(text, -1) for text in texts], int)


@dataclass(frozen=True, eq=False, repr=False)
class NoisyAnswers(Estimate):
    """Linear queries (weighted sums of counts) over a domain, with their noisy answers. The noise of
    different answers is independent. `variances` contains the variance of the noise on each answer.

    If you asked a query twice, the object keeps both noisy answers. For such a query, the method `answer`
    returns the mean of the two answers, weighted by inverse variance. The method `answer` can answer only
    queries that you asked. There is one exception: if you asked for the count of every cell of the domain, the
    method can also answer queries that add up cells. For any other query, the method raises a ValueError. To
    estimate the answer to such a query, use the package `inference`.
    """

    domain: Domain
    workload: Linear
    values: Float[np.ndarray, " queries"]
    variances: Float[np.ndarray, " queries"]
    kind: ClassVar[str] = "answers"
    contents: ClassVar[str] = "queries"

    def __post_init__(self) -> None:
        workload = linear_queries(self.workload, self.domain)
        values = finite_array("NoisyAnswers.values", self.values)
        variances = finite_array("NoisyAnswers.variances", self.variances)
        object.__setattr__(self, "workload", workload)
        object.__setattr__(self, "values", read_only(values))
        variances = np.broadcast_to(variances, self.values.shape).copy()
        object.__setattr__(self, "variances", sealed(variances))
        if self.values.shape != (len(self.workload),):
            raise ValueError(
                f"NoisyAnswers.values of shape {self.values.shape} do not fit "
                f"{len(self.workload)} queries"
            )
        bad = ~(self.variances > 0)
        if bad.any():
            i = int(bad.argmax())
            raise ValueError(
                f"NoisyAnswers.variances[{i}] = {self.variances[i]} is not allowed: need numbers > 0"
            )

    @classmethod
    def history(cls, answers: NoisyAnswers | Iterable[NoisyAnswers]) -> NoisyAnswers:
        """Join the answers of several releases into one object, in the given order.

        Parameters
        ----------
        answers : NoisyAnswers, or several
            Answers to join. All must be over the same domain.

        Returns
        -------
        NoisyAnswers
            All queries of all releases, with their answers.

        Raises
        ------
        ValueError
            If there are no answers, or if they are over different domains.
        """
        releases = [answers] if isinstance(answers, NoisyAnswers) else list(answers)
        for other in releases:
            if not isinstance(other, NoisyAnswers) or isinstance(other, DerivedAnswers):
                raise ValueError(f"{other!r} is not allowed in a history: need NoisyAnswers")
            if other.domain != releases[0].domain:
                raise ValueError(
                    f"answers over {releases[0]._attribute_names} and over {other._attribute_names} "
                    "cannot be joined: need one domain"
                )
        if not sum(map(len, releases)):
            raise ValueError("the history is empty: need at least one noisy answer")
        if len(releases) == 1:
            return releases[0]
        return cls(
            releases[0].domain,
            Together(tuple(release.workload for release in releases)),
            sealed(np.concatenate([release.values for release in releases])),
            sealed(np.concatenate([release.variances for release in releases])),
        )

    def without_repeats(self) -> NoisyAnswers:
        """Return an object that contains each query only once. Queries are in the order in which they were
        first asked.

        Returns
        -------
        NoisyAnswers
            Distinct queries with their answers. If a query was answered several times, the new answer is the
            mean, weighted by inverse variance.
        """
        merged = self._merged
        if len(merged.places) == len(self):
            return self
        _, first = np.unique(merged.find(self._texts), return_index=True)
        return NoisyAnswers(self.domain, self.workload[first], merged.means, merged.variances)

    @property
    def deviations_in_counts(self) -> Float[np.ndarray, " queries"]:
        """Standard deviations of the noise on all answers, as numbers of records. The standard deviation of
        each answer is divided by the largest weight with which the query counts a record. For example, suppose
        that a query adds up ages, which are at most 90 years, and that the noise has a standard deviation of
        180 years. The result is then 180/90 = 2 records.
        """
        weights = largest_weights(self.workload)
        return np.sqrt(self.variances) / np.where(weights > 0, weights, 1.0)

    def __getitem__(self, rows: Int[np.ndarray, " k"] | Bool[np.ndarray, " queries"]) -> Self:
        """Return the queries in the given rows, with their answers."""
        rows = np.arange(len(self))[rows]
        return type(self)(
            self.domain, self.workload[rows], self.values[rows], self.variances[rows]
        )

    @property
    def scales(self) -> Float[np.ndarray, " queries"]:
        """One scale b per answer. Laplace noise of scale b has the variance 2b², which is the variance of the
        noise on this answer.
        """
        return np.sqrt(self.variances / 2)

    @cached_property
    def _texts(self) -> list[str]:
        return stated.to_text(self.workload)

    @cached_property
    def _asked(self) -> list[dict[str, str] | None]:
        """For each query, the labels that the query counts, by attribute. The entry is None if the query has
        weights.
        """
        return [_counted_labels(self.domain, text) for text in self._texts]

    @cached_property
    def _merged(self) -> _MergedAnswers:
        places: dict[str, int] = {}
        at = np.array([places.setdefault(text, len(places)) for text in self._texts], int)
        weights = np.bincount(at, 1 / self.variances, len(places))
        means = np.bincount(at, self.values / self.variances, len(places)) / weights
        single = np.bincount(at, minlength=len(places))[at] == 1
        means[at[single]] = self.values[single]  # as they are, without rounding
        return _MergedAnswers(places, means, 1 / weights)

    @cached_property
    def _cells(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Pair of arrays: the answers for all single cells, and their variances. The property is None if a
        cell of the domain has no answer.
        """
        if self.domain.size > len(self):
            return None
        codes = self.domain.codes(np.arange(self.domain.size))
        at = self._merged.find(stated.to_text(Products.boxes(self.domain, codes, codes + 1)))
        if (at < 0).any():
            return None
        return self._merged.means[at], self._merged.variances[at]

    def _answer(self, workload: Recipe, error: bool) -> Any:
        queries = workload.on(self.domain)
        is_linear = isinstance(queries, Products | TableQueries | Together)
        if self._cells is not None and not is_linear:
            keys = np.arange(self.domain.size)
            means, variances = self._cells
            answers = queries.sums(self.domain, keys, means)
            if not error:
                return answers
            return answers, np.sqrt(queries.sums(self.domain, keys, variances))
        texts = stated.to_text(linear_queries(queries, self.domain))
        at = self._merged.find(texts)
        new = at < 0
        if new.any():
            first = int(new.argmax())
            labels = _counted_labels(self.domain, texts[first])
            typed = " ".join(f"{name}={x}" for name, x in (labels or {}).items())
            raise ValueError(
                f"{int(new.sum())} of {len(at)} queries were never asked, first query {first + 1}"
                f"{f' ({typed})' if typed else ''}. In Python, the package inference can estimate them, for "
                "example with KernelPCA"
            )
        return self._merged.means[at], np.sqrt(self._merged.variances[at])

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with all queries and their noisy answers.

        Returns
        -------
        pandas.DataFrame
            One row per query and one column per attribute. A column contains the labels that the query
            counts: a single label, a range `first..last`, a list `one|other`, or `*` for all labels. Queries
            that cannot be written in this way are in the column `query`. The last column, `noisy`, contains
            the noisy answer.
        """
        asked = self._asked
        used = [a for a in self.domain.attributes if any(x and a in x for x in asked)]
        columns: dict[str, Any] = {
            a: ["" if x is None else x.get(a, "*") for x in asked] for a in used
        }
        if not used or None in asked:
            others = zip(asked, self._texts, strict=True)
            columns["query"] = [text if x is None or not used else "" for x, text in others]
        return pd.DataFrame(columns | {"noisy": self.values})

    def marginals(self, frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """Divide a data frame, which has one row per query, into one table per marginal (the counts for one set
        of attributes). Each table has only the attributes of its marginal. If the queries are not exactly the
        cells of two or more marginals, the result is empty.
        """
        groups: dict[tuple[str, ...], list[int]] = {}
        for row, labels in enumerate(self._asked):
            if labels is None:
                return {}
            names = tuple(name for name in self.domain.attributes if name in labels)
            groups.setdefault(names, []).append(row)
        sizes = dict(zip(self.domain.attributes, self.domain.shape, strict=True))
        are_whole = all(
            len(rows) == prod(sizes[name] for name in x) for x, rows in groups.items()
        )
        if len(groups) < 2 or not are_whole:
            return {}
        used = {name for names in groups for name in names}
        return by_name(
            (names, frame.iloc[rows].drop(columns=[*used.difference(names)]))
            for names, rows in groups.items()
        )

    def deviations(self) -> Float[np.ndarray, " queries"]:
        """Return the standard deviation of the noise on each answer."""
        return np.sqrt(self.variances)

    def _columns(self) -> dict[str, Any]:
        """Return the columns of the release file. They have one row per query, with its text, its variance
        and its noisy answer.
        """
        texts = pa.array(self._texts, pa.large_string())
        return {"query": texts, "variance": self.variances, "noisy": self.values}

    @classmethod
    def _from_columns(cls, table: pa.Table, fields: dict[str, Any]) -> dict[str, Any]:
        return {
            "workload": stated.from_text(fields["domain"], table["query"].to_pylist()),
            "values": table["noisy"].to_numpy(),
            "variances": table["variance"].to_numpy(),
        }


class DerivedAnswers(NoisyAnswers):
    """Answers to linear queries that were computed from other noisy answers by least squares. The errors of
    different answers are correlated.

    `variances` contains the variance of each answer. Because the errors are correlated, the standard error of
    a sum of answers is unknown. For the same reason, the methods of the package `inference` do not accept
    these answers.
    """

    kind = "derived-answers"
    _cells = None


def _counted_labels(domain: Domain, text: str) -> dict[str, str] | None:
    """Return the labels that a query counts, by attribute, for example {"hour": "7..9"}. Return None if the
    query has weights.
    """
    match json.loads(text):
        case [[1, factors]]:
            pass
        case _:
            return None
    labels = {}
    for name, factor in factors.items():
        match factor:
            case [lo, hi] if lo < hi:
                ends = domain.decode(name, np.array([lo, hi - 1]))
                labels[name] = str(ends[0]) if hi - lo == 1 else f"{ends[0]}..{ends[1]}"
            case {"codes": codes}:
                labels[name] = "|".join(map(str, domain.decode(name, np.array(codes))))
            case _:
                return None
    return labels
