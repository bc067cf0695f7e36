"""The order in which a command books, draws, checks and saves."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from workbench import DP, Bound, Domain, SparseTable
from workbench.cli import publishing
from workbench.mechanisms import GeometricHistogram
from workbench.owner import Budget


def test_it_is_booked_before_noise_is_drawn_and_drawn_before_it_is_saved(monkeypatch, tmp_path):
    steps = []
    for step in ("read", "save"):
        monkeypatch.setattr(publishing, step, lambda *_, step=step: steps.append(step))
    room = SimpleNamespace(close=lambda: steps.append("close"))
    monkeypatch.setattr(
        "workbench.owner.budget.reserve", lambda *_: steps.append("reserve") or room
    )
    budget = Budget.create(tmp_path / "b.sqlite", DP(1), people="riders", unit="a rider")
    budget.check = Mock()
    budget.book = lambda *_, **__: steps.append("book")
    how = dict(is_in_parts=False, user=None, report_cut=None, domain_from_data=False)
    request = Mock(**how, budget=budget, out=tmp_path / "x.parquet")
    mechanism = Mock(side_effect=lambda *_: steps.append("draw"))
    publishing.publish(request, mechanism)
    assert steps == ["read", "reserve", "book", "draw", "close", "save"]


def test_what_costs_more_than_was_booked_is_not_saved(tmp_path):
    budget = Budget.create(tmp_path / "b.sqlite", DP(1), people="riders", unit="a rider")
    table = SparseTable.from_keys(Domain(("zone",), (5,)), [0], [3], Bound())
    request = SimpleNamespace(
        folder=None, out=tmp_path / "x.parquet", simulated=False, seed=None, force=False
    )
    for cost in (0.25, 0.5):
        release = GeometricHistogram(DP(cost))(table)
        booking = budget.book(DP(0.25), "a histogram")
        if cost == 0.25:
            publishing.save(request, release, booking)
            request.out.unlink()
        else:
            with pytest.raises(ValueError, match="withheld"):
                publishing.save(request, release, booking)
    assert not request.out.exists() and budget.ledger.answered.tolist() == [True, False]
