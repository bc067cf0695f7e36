"""Domains: their keys and labels, and what is refused before anything is counted."""

import json
from itertools import product
from math import inf, nan

import numpy as np
import pytest

from workbench import Domain
from workbench.spaces.domain import MAX_CELLS, states_public_truth

NO_LIST = r"Domain\(attributes=.*need a list of names"
NO_NAME = "Domain.attributes holds .*: need text"
NO_LABELS = "Domain.labels of 'a': "


@pytest.mark.parametrize(
    ("attributes", "shape", "labels", "said"),
    [
        ("a", 3, None, NO_LIST),
        (("a",), (3.5,), None, NO_LIST),
        (("a",), ("x",), None, NO_LIST),
        (None, (3,), None, NO_LIST),
        (("a",), None, None, NO_LIST),
        ((), (), None, NO_LIST),
        (("a",), (0,), None, NO_LIST),
        (("a", "a"), (2, 2), None, NO_LIST),
        (("a",), (2, 3), None, NO_LIST),
        (("count", "x"), (2, 2), None, NO_NAME),
        (("noisy", "x"), (2, 2), None, NO_NAME),
        (("home", 3), (3, 2), None, NO_NAME),
        (("home", "\ud800"), (3, 2), None, "surrogates not allowed"),
        (("b", "a"), (3, 2), (None, ("x", "\udc80")), NO_LABELS + ".* surrogates not allowed"),
        (("b", "a"), (3, 2), (None, (1.0, inf)), NO_LABELS + ".* all finite numbers"),
        (("b", "a"), (3, 2), (None, (1.0, nan)), NO_LABELS + ".* all finite numbers"),
        (("a",), (2,), (("x", "x"),), NO_LABELS + "'x' occurs twice"),
        *(
            (("a",), (2,), (labels,), NO_LABELS + ".*must be all text, all integers")
            for labels in ((1, 2.5), (None, "a"), (1, "1"), (2**63, 1), (0, True))
        ),
    ],
)
def test_a_domain_that_makes_no_sense_is_refused(attributes, shape, labels, said):
    with pytest.raises(ValueError, match=said):
        Domain(attributes, shape, labels)


def test_keys_are_row_major_and_invert():
    domain = Domain(("a", "b", "c"), (3, 4, 5))
    codes = np.array(list(product(range(3), range(4), range(5))))
    assert (domain.keys(codes) == np.arange(60)).all() and (
        domain.codes(np.arange(60)) == codes
    ).all()


def test_the_largest_domain_has_keys_and_a_larger_one_has_none():
    big = Domain(("a", "b"), (7, MAX_CELLS // 7))
    codes = np.array([[6, MAX_CELLS // 7 - 1], [0, 0]])
    assert big.size == MAX_CELLS and (big.codes(big.keys(codes)) == codes).all()
    wide = Domain(("a", "b"), (2**32, 2**31))
    assert wide.is_wide and [part.attributes for part in wide.parts] == [("a",), ("b",)]
    with pytest.raises(ValueError, match="only 2\\^63 can be numbered"):
        wide.keys(np.zeros((1, 2), int))
    with pytest.raises(ValueError, match="a size from 1 to"):
        Domain(("a",), (2**63,))


def test_labels_in_and_out():
    domain = Domain(("sex", "age", "code"), (2, 100, 7), (("F", "M"), range(100), None))
    assert domain.encode("sex", ["M", "X", "F", None]).tolist() == [1, -1, 0, -1]
    assert domain.encode("age", [5, 100, -1, 99]).tolist() == [5, -1, -1, 99]
    assert domain.encode("age", ["5", "05", "99", "5.0", "x"]).tolist() == [5, 5, 99, 5, -1]
    assert domain.encode("code", [6, 7]).tolist() == [6, -1]
    assert domain.decode("sex", [1, 0]).tolist() == ["M", "F"]
    for name in domain.attributes:
        codes = np.arange(2)
        assert (domain.encode(name, domain.decode(name, codes)) == codes).all()


def test_labels_may_be_numpys_and_ranges_are_never_spelt_out():
    assert Domain(("x",), (2,), (np.array([3, 4]),)).labels == ((3, 4),)
    huge = Domain(("x",), (10**12,), (range(0, 2 * 10**12, 2),))
    assert Domain.from_dict(huge.to_dict()) == huge
    assert huge.encode("x", [4, 5, "6"]).tolist() == [2, -1, 3]


def test_a_domains_file_may_state_that_the_truth_is_public(tmp_path):
    path = tmp_path / "domain.json"
    for stated, public in (
        ({}, False),
        ({"truth_public": False}, False),
        ({"truth_public": True}, True),
    ):
        path.write_text(json.dumps({"x": 9} | stated))
        assert states_public_truth(path) is public
        assert Domain.read(path) == Domain(("x",), (9,))
    for wrong in ("true", 1, None, ["yes", "no"]):
        path.write_text(json.dumps({"x": 9, "truth_public": wrong}))
        for read in (Domain.read, states_public_truth):
            with pytest.raises(ValueError, match="truth_public = .* need true .* or false"):
                read(path)
    path.write_text("[1, 2]")
    with pytest.raises(ValueError, match="a domain is an object of attributes"):
        Domain.read(path)
