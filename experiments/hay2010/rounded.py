"""Hay et al. 2010: answers that are rounded to integers, and never below 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench import Domain
from workbench.value import value


@value
class WholeAnswers:
    """Turns an estimate into one whose answers are rounded to integers, and never below 0."""

    def __call__(self, released: Any) -> _Whole:
        """Post-process, at no cost."""
        return _Whole(released)


@dataclass(frozen=True)
class _Whole:
    estimate: Any

    @property
    def domain(self) -> Domain:
        return self.estimate.domain

    def answer(self, workload, **options):
        return np.maximum(np.rint(self.estimate.answer(workload, **options)), 0)
