"""The panel of summaries: where it asks, what its size means, and what is too much to draw."""

import numpy as np
import pytest

from workbench import DP, Bound, RandomRanges, SparseTable, widgets
from workbench.datasets import GaussianSparse
from workbench.mechanisms import HighPassFilter, ThresholdSampling
from workbench.trials.metrics import MeanAbsoluteError
from workbench.value import format_number
from workbench.widgets.scenes import summaries


def test_queries_are_placed_apart_from_the_data():
    """Seeded: never by chance; sees a mean that is off by three standard errors."""
    table = GaussianSparse(30_000, 0.01).load()
    before = np.append(0, np.cumsum(table.dense(), dtype=float))
    for q in (1, 10, 100):
        asked = RandomRanges(q, summaries.QUERIES[True], summaries.QUERY_SEED)
        one = (before[q:] - before[:-q]).std() / np.sqrt(asked.count)
        assert (
            abs(table.answer(asked).mean() - q * 0.01 * 100) < 3 * one
        )  # by the data's seed 3.8
    shown = widgets.summaries(m=30_000, density=0.01, size=1000)
    errors = shown.rows[shown.rows.panel == "error"].set_index("query_size").value
    assert errors[100] == MeanAbsoluteError(asked)(table, shown.release.estimate)


def test_what_is_too_much_to_draw_is_refused_before_it_is_loaded(monkeypatch):
    shown = widgets.summaries()
    monkeypatch.setattr(GaussianSparse, "load", lambda self: pytest.fail("it was loaded"))
    for told in (dict(m=10**9), dict(m=10**7 + 10, density=1.0)):
        with pytest.raises(
            ValueError, match="m = .* density = .* need at most 10,000,000 non-empty"
        ):
            shown.set(**told)
    monkeypatch.undo()
    shown.set(m=10**12, density=1e-8)
    assert len(shown.release.estimate)


def test_the_cut_that_a_size_chooses_is_told():
    told = {}
    for some in ("filter", "threshold", "priority"):
        shown = widgets.summaries(summary=some, size=30_000, theta=0.0)
        told |= {k: v for k, v in shown.view["facts"] if k.endswith("of the release")}
        made, table = shown.release.mechanism, GaussianSparse().load()
        empty = SparseTable(table.domain, table.keys[:0], table.counts[:0], Bound(1), True)
        assert len(made(empty, np.random.default_rng(0)).estimate) == pytest.approx(
            30_000, rel=0.2
        )
        assert (len(shown.release.estimate) > 50_000) == (some != "priority")
    cuts = [HighPassFilter(DP(0.1), size=30_000).threshold(table.domain, 1)]
    cuts += [ThresholdSampling(DP(0.1), size=30_000).threshold(table.domain, 1)]
    cuts += [shown.release.estimate.tau]
    names = ["θ", "τ", "τ_s"]
    assert told == {
        f"{n} of the release": f"{format_number(x)} counts"
        for n, x in zip(names, cuts, strict=True)
    }


def test_laws_end_where_their_numbers_do():
    shown = widgets.summaries()
    law = shown.setting.panels(shown.rows)[0].theory[0][1]
    known = shown.rows[shown.rows.panel == "error"].query_size
    ends = np.array([known.min(), known.max()])
    assert np.isfinite(law(ends)).all() and np.isnan(law(ends * [0.9, 1.1])).all()
