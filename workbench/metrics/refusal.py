"""Exact truth leaves by no side door: comparisons need data whose truth is public."""

from __future__ import annotations

from typing import Any

from workbench.interactions import Interactions
from workbench.records import Records
from workbench.table import PUBLIC, SparseTable


def refuse_private(truth: SparseTable | Interactions | Records) -> None:
    """A ValueError unless the truth may be shown beside a release."""
    if truth.bound is not PUBLIC and not truth.truth_public:
        raise ValueError(
            "this table does not say truth_public: an error against it is an exact function of private "
            "data and would leak it; `advise` works from public quantities"
        )


def refuse_other_domain(truth: SparseTable | Interactions | Records, estimate: Any) -> None:
    """A ValueError if the estimate is over another domain than the truth."""
    domain = getattr(estimate, "domain", truth.domain)
    if domain != truth.domain:
        ours = " × ".join(domain.attributes)
        theirs = " × ".join(truth.domain.attributes)
        raise ValueError(f"an estimate over {ours} has no error against a truth over {theirs}")
