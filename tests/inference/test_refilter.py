"""Public in, better public out."""

import numpy as np
import pytest

from tests.agreement import same_counts, same_law
from workbench import DP, Bound, Domain, SparseTable
from workbench.inference import refilter
from workbench.mechanisms import HighPassFilter

TABLE = SparseTable.from_keys(Domain(("x",), (900,)), range(0, 90), [20] * 90, Bound())


def test_a_raised_cut_has_the_law_of_the_higher_filter():
    rng, low, high = (
        np.random.default_rng(0),
        HighPassFilter(DP(0.2), 5),
        HighPassFilter(DP(0.2), 14),
    )
    raised = [refilter(low(TABLE, rng).estimate, 14) for _ in range(300)]
    direct = [high(TABLE, rng).estimate for _ in range(300)]
    for field in ("keys", "values"):
        a, b = (np.concatenate([getattr(e, field) for e in s]) for s in (raised, direct))
        assert same_law(a, b) > 1e-5 and same_counts(a, b) > 1e-5
    assert same_law([len(e) for e in raised], [len(e) for e in direct]) > 1e-5


@pytest.mark.parametrize("theta", [4.9, -1, float("nan")])
def test_a_cut_is_never_lowered(theta):
    with pytest.raises(ValueError, match="theta"):
        refilter(HighPassFilter(DP(0.2), 5)(TABLE).estimate, theta)
