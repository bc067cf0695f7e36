"""Laws of summaries that are enumerated where a cell is empty under one neighbour alone."""

import math
from dataclasses import replace

import pytest

from workbench import DP, ZCDP, Dyadic, Haar
from workbench.mechanisms import HighPassFilter, ThresholdSampling
from workbench.noise import empty_cell, parts
from workbench.owner.audit import audit, pairs_for
from workbench.owner.audit.cuts import gaussian_parts, upper_tail
from workbench.owner.audit.enumeration import output_laws

FILTER = HighPassFilter(DP(1.0), theta=4)
GAUSSIAN = HighPassFilter(ZCDP(0.05), theta=6)
SAMPLE = ThresholdSampling(DP(1.0), tau=10.0)
SUMMARIES = [
    FILTER,
    replace(FILTER, sides=1),
    replace(FILTER, transform=Dyadic()),
    replace(FILTER, transform=Haar()),
    GAUSSIAN,
    replace(GAUSSIAN, sides=1),
    SAMPLE,
    replace(SAMPLE, theta=3),
    ThresholdSampling(ZCDP(0.05), tau=10.0),
]
each = pytest.mark.parametrize("mechanism", SUMMARIES, ids=lambda m: repr(m)[:70])


def lone_cell(mechanism):
    """Cell 3 has one record, or none."""
    return pairs_for(mechanism)[0]


@pytest.mark.slow
@each
def test_a_cell_that_is_empty_under_one_neighbour_is_computed(mechanism):
    for place in (0, 4, 6):  # the last cell, and empty data
        found = audit(mechanism, pairs_for(mechanism)[place], method="exact")
        assert found.exact is not None and not found.leaks, found
        if mechanism in (FILTER, SAMPLE):
            assert math.isclose(found.exact, 1.0, rel_tol=1e-9)


@pytest.mark.slow
@each
def test_empty_cells_that_survive_too_rarely_are_a_leak(mechanism, monkeypatch):
    """A mistake planted: their noise is compared with a threshold that is four too high."""

    def rarer(law, theta, *rest):
        return empty_cell(law, theta + 4, *rest)

    monkeypatch.setattr(parts, "empty_cell", rarer)
    pairs = pairs_for(mechanism)
    found = [audit(mechanism, pairs[place], method="exact") for place in (0, 6)]
    if mechanism.transform is None:  # of nodes a unit moves each by a part of ε alone
        assert found[0].leaks, found
    assert found[1].leaks, found


def likely(mechanism, data, of):
    """The probability that cell 3 is released, by the enumerated law of one of both inputs."""
    law = output_laws(mechanism, data)._asdict()[of].values()
    return math.fsum(p for p, output in law if "estimate at 3" in output.numbers)


def test_how_likely_a_cell_is_released_follows_from_its_law():
    rate = 1.0
    two_sided = [upper_tail(4 - x, rate) + upper_tail(4 + x, rate) for x in (1, 0)]
    for of, expected in zip(("one", "other"), two_sided, strict=True):
        assert math.isclose(likely(FILTER, lone_cell(FILTER), of), expected, rel_tol=1e-9)
    for of, x in (("one", 1), ("other", 0)):
        inside = gaussian_parts(0.05, (-5 - x, 6 - x))[1]
        found = likely(GAUSSIAN, lone_cell(GAUSSIAN), of)
        assert math.isclose(found, 1 - inside, rel_tol=1e-9)


def test_samples_are_kept_by_the_chance_of_each_value():
    def law(v, x):
        return math.exp(-abs(v - x)) * math.tanh(0.5)

    for of, x in (("one", 1), ("other", 0)):
        expected = math.fsum(law(v, x) * min(abs(v) / 10, 1) for v in range(-60, 61))
        found = likely(SAMPLE, lone_cell(SAMPLE), of)
        assert math.isclose(found, expected, rel_tol=1e-9)
