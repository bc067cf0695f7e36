"""Domains: what is refused before anything is counted."""

import math

import pytest

from workbench import Domain


@pytest.mark.parametrize(
    "attributes, shape",
    [("a", 3), (("a",), (3.5,)), (("a",), ("x",)), (None, (3,)), (("a",), None)],
)
def test_what_is_no_list_of_names_and_whole_numbers_is_refused(attributes, shape):
    with pytest.raises(ValueError, match=r"Domain\(attributes=.*need a list of names"):
        Domain(attributes, shape)


@pytest.mark.parametrize(
    ("attributes", "labels", "said"),
    [
        (("home", "\ud800"), None, r"Domain.attributes holds '\\ud800': need valid Unicode"),
        (("home", 3), None, "Domain.attributes holds 3: need text"),
        (
            ("a", "b"),
            (None, ("x", "\udc80")),
            "Domain.labels of 'b': labels: need valid Unicode",
        ),
        (("a", "b"), (None, (1.0, math.inf)), "Domain.labels of 'b': .* all finite numbers"),
        (("a", "b"), (None, (1.0, math.nan)), "Domain.labels of 'b': .* all finite numbers"),
    ],
)
def test_names_and_labels_that_no_file_can_hold_are_refused(attributes, labels, said):
    with pytest.raises(ValueError, match=said):
        Domain(attributes, (3, 2), labels)
