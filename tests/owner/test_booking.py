"""What was booked pays for no more, and for nothing that may not leave."""

import copy
import os
import pickle
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest

from workbench.owner import Booking
from workbench.privacy import ADD_REMOVE, DP, Receipt

BUDGET = SimpleNamespace(limit=DP(2.0, 1e-3))


def booked():
    return Booking(BUDGET, (1,), Fraction(1), Fraction(1, 10**6), ADD_REMOVE)


def test_what_was_booked_is_paid_for_once():
    booking = booked()
    receipts = [Receipt("a", DP(0.5)), Receipt("b", DP(0.5, 1e-7))]
    booking.check(receipts)
    with pytest.raises(ValueError, match="withheld: this booking has already paid for another"):
        booking.check(receipts)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_booking_has_no_copies(duplicate):
    with pytest.raises(TypeError, match="cannot be copied or pickled.*pays for one release"):
        duplicate(booked())


def test_a_replaced_booking_pays_for_the_same_release():
    booking = booked()
    other = replace(booking, questions=(2,))
    other.check([Receipt("a", DP(0.5))])
    with pytest.raises(ValueError, match="already paid for another"):
        booking.check([Receipt("a", DP(0.5))])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_does_not_use_a_booking():
    booking = booked()
    child = os.fork()
    if child == 0:
        try:
            booking.check([Receipt("a", DP(0.5))])
            os._exit(0)
        except ValueError as e:
            os._exit(7 if "another process booked its cost" in str(e) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    booking.check([Receipt("a", DP(0.5))])


@pytest.mark.parametrize(
    "receipt",
    [
        Receipt("dearer", DP(1.0000000000000002)),
        Receipt("fails more often", DP(0.5, 1e-5)),
        Receipt("idealised", DP(0.5), idealised=True),
        Receipt("simulated", DP(0.5), simulated=True),
        Receipt("about others", DP(0.5), "replace-one-unit"),
        Receipt("nothing", DP(float("inf"))),
    ],
    ids=lambda receipt: receipt.name,
)
def test_anything_else_is_withheld(receipt):
    with pytest.raises(ValueError, match="withheld"):
        booked().check([receipt])
