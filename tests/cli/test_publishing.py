"""The order in which a command books, draws, checks and saves."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from workbench.cli import publishing


def test_it_is_booked_before_noise_is_drawn_and_drawn_before_it_is_saved(monkeypatch):
    steps = []
    for step in ("book", "make", "save"):
        monkeypatch.setattr(publishing, step, lambda *_, step=step: steps.append(step))
    publishing.publish(SimpleNamespace(budget=None), None, None)
    assert steps == ["book", "make", "save"]


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
