"""Metrics of known answers, and truths that are not public."""

import pytest

from workbench import PUBLIC, Bound, Domain, RandomRanges, Ranges, SparseTable
from workbench.trials import metrics


def test_truth_leaves_by_no_side_door():
    domain = Domain(("x",), (9,))
    private = SparseTable.from_keys(domain, [1], [5], Bound())
    for metric in (
        metrics.MeanAbsoluteError(RandomRanges(2)),
        metrics.MedianRelativeError(RandomRanges(2)),
        metrics.MeanSignedError(RandomRanges(2)),
        metrics.HeldCells(),
    ):
        with pytest.raises(ValueError, match="truth_public"):
            metric(private, private)


def test_errors_of_known_answers():
    domain = Domain(("x",), (4,))
    truth = SparseTable.from_keys(domain, [0, 1], [10, 20], Bound(), truth_public=True)
    other = SparseTable.from_keys(domain, [0, 1, 3], [13, 16, 5], PUBLIC)
    cells = Ranges([0, 1, 2, 3], [1, 2, 3, 4])
    estimate = _estimate(other)
    assert metrics.MeanAbsoluteError(cells)(truth, estimate) == 3.0
    assert metrics.MedianRelativeError(cells)(truth, estimate) == pytest.approx(0.25)
    assert metrics.MeanSignedError(cells)(truth, estimate) == 1.0


class _estimate:
    def __init__(self, table):
        self.table = table

    def answer(self, workload, weights):
        return self.table.answer(workload)
