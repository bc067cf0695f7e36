"""The order in which a command books, draws, checks and saves."""

from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from workbench.cli import publishing


def test_it_is_booked_before_noise_is_drawn_and_drawn_before_it_is_saved(monkeypatch):
    steps = []
    for step in ("read", "book", "save"):
        monkeypatch.setattr(publishing, step, lambda *_, step=step: steps.append(step))
    room = SimpleNamespace(close=lambda: steps.append("close"))
    monkeypatch.setattr(publishing, "reserve", lambda *_: steps.append("reserve") or room)
    request = Mock(is_in_parts=False, user=None, report_cut=None, domain_from_data=False)
    publishing.publish(request, lambda *_: steps.append("draw"))
    assert steps == ["read", "reserve", "book", "draw", "close", "save"]


def test_what_costs_more_than_was_booked_is_not_saved():
    def check(release):
        raise ValueError("withheld")

    saved = []
    release = SimpleNamespace(save=lambda *_, **__: saved.append(1))
    request = SimpleNamespace(
        folder=None, out="x.parquet", simulated=False, seed=None, force=False
    )
    booking = SimpleNamespace(check=check, saving=nullcontext, confirm=lambda: None)
    with pytest.raises(ValueError, match="withheld"):
        publishing.save(request, release, booking)
    assert not saved
