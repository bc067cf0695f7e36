"""Domains: what is refused before anything is counted."""

import pytest

from workbench import Domain


@pytest.mark.parametrize(
    "attributes, shape",
    [("a", 3), (("a",), (3.5,)), (("a",), ("x",)), (None, (3,)), (("a",), None)],
)
def test_what_is_no_list_of_names_and_whole_numbers_is_refused(attributes, shape):
    with pytest.raises(ValueError, match=r"Domain\(attributes=.*need a list of names"):
        Domain(attributes, shape)
