"""The essay for a table of one's own: its files, its rehearsal, its lines, and what it says of them."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments import your_data as spec
from workbench import DP, PUBLIC, Bound, Domain, Release, SparseTable, noise, widgets
from workbench.claims import DIFFERS, HOLDS
from workbench.mechanism import noise_blocks
from workbench.mechanisms import HighPassFilter, PrioritySampling
from workbench.metrics import MeanAbsoluteError
from workbench.option_grammar import release_options
from workbench.transform import basis_of

CELLS = json.loads((Path(__file__).parents[2] / "notebooks/02_your_data.ipynb").read_text())[
    "cells"
]
PROSE = "\n".join("".join(c["source"]) for c in CELLS if c["cell_type"] == "markdown")


@pytest.fixture(scope="module")
def folder():
    return spec.example_files()


@pytest.fixture(scope="module")
def table(folder):
    domain = Domain.read(folder / "domain.json")
    frame = spec.read(folder / "commutes.csv")
    return SparseTable.from_frame(frame, domain, spec.BOUND, count="people")


@pytest.fixture(scope="module")
def advice():
    return spec.example_advice()


@pytest.fixture(scope="module")
def rows(tmp_path_factory, advice):
    return spec.rows("quick", tmp_path_factory.mktemp("store"), advice)


def test_the_files_hold_a_private_table_in_the_domain_that_is_advised_on(table, advice):
    assert table.domain == advice.domain and table.bound == advice.bound == Bound(2, 1)
    assert not table.truth_public and f"{len(table):,}" not in repr(table)
    again = spec.read(spec.example_files() / "commutes.csv")
    assert again.equals(table.to_frame().rename(columns={"count": "people"}))


def test_the_panel_opens_on_the_private_table_with_the_beliefs(table):
    told = dict(epsilon=spec.EPSILON, size=spec.SIZE, believed=True)
    panel = widgets.advice(table, **told, **spec.BELIEFS)
    assert panel.values.items() >= (told | spec.BELIEFS).items()


def blocks_of(mechanism, domain, l1):
    basis = basis_of(getattr(mechanism, "transform", None), domain)
    return noise_blocks(basis, l1=l1, epsilon=mechanism.budget.epsilon)


def test_the_rehearsal_has_the_noise_and_the_cuts_of_the_release(advice):
    rehearsed = spec.sweep(advice)
    line, l1 = rehearsed.datasets[0].domain, rehearsed.datasets[0].load().bound.l1
    assert line.size == advice.domain.size and l1 == 1 != advice.bound.l1
    for option, ours in zip(advice.ranked, rehearsed.mechanisms, strict=False):
        (there,) = blocks_of(option.mechanism, advice.domain, advice.bound.l1)
        (here,) = blocks_of(ours, line, l1)
        decays = [noise.decay(block.l1, block.epsilon) for block in (there, here)]
        assert decays[0] == decays[1] and there.size == here.size
        if isinstance(ours, HighPassFilter):
            assert ours.threshold(line, l1) == option.mechanism.threshold(
                advice.domain, advice.bound.l1
            )


@pytest.mark.slow
def test_rows_carry_what_is_expected_of_their_own_summary(rows, advice):
    assert len(rows) == 2 * spec.BEST * 5 * len(spec.QUERIES) and rows.truth_public.all()
    told = {
        (
            o.mechanism.transform is not None,
            isinstance(o.mechanism, HighPassFilter),
            off.query,
        ): off
        for o in advice.ranked[: spec.BEST]
        for off in o.query_errors
    }
    assert len(told) == spec.BEST * len(spec.QUERIES)
    for row in rows.itertuples():
        kind = "Dyadic" in row.trial, "HighPassFilter" in row.trial, row.query_size
        assert row.expected == told[kind].error
    assert (rows.panel == spec.CROWDED).equals(rows.trial.str.contains("skewed"))


def test_the_dashes_go_through_what_is_expected_and_no_further(rows):
    for panel in spec.panels(rows):
        for (_, law), (_, some) in zip(panel.theory, rows.groupby("series"), strict=True):
            expected = some.groupby("query_size").expected.first()
            assert np.allclose(law(expected.index.to_numpy(float)), expected)
            assert np.isnan(law(np.array([0.5, 1e6]))).all()


def test_closed_forms_are_what_is_measured(rows):
    assert spec.CLAIMS[0].judge(rows, "quick").outcome == HOLDS


def made():
    """Rows of which both claims hold."""
    laws = {"filter-priority": 1.0, "filter": 1.5, "filter-priority, dyadic": 2.0}
    return pd.DataFrame(
        dict(panel=panel, series=series, query_size=q, seed=seed, expected=x * q, value=y * q)
        for panel in (spec.BELIEVED, spec.CROWDED)
        for series, x in laws.items()
        for q in spec.QUERIES
        for seed in range(5)
        for y in [x * (1 + 0.01 * (seed - 2))]
    )


def test_both_claims_hold_where_they_should():
    assert [c.judge(made(), "quick").outcome for c in spec.CLAIMS] == [HOLDS, HOLDS]


@pytest.mark.parametrize(
    ("claim", "where", "factor"),
    [
        (0, {"panel": spec.BELIEVED, "series": "filter", "query_size": 24}, 1.12),
        (0, {"panel": spec.BELIEVED, "series": "filter-priority", "query_size": 1}, 0.88),
        (1, {"panel": spec.BELIEVED, "series": "filter-priority"}, 1.6),
        (1, {"panel": spec.CROWDED, "series": "filter-priority, dyadic"}, 0.4),
        (1, {"panel": spec.CROWDED, "series": "filter", "query_size": 2_880}, 0.05),
    ],
)
def test_a_claim_differs_once_one_part_of_it_is_broken(claim, where, factor):
    rows = made()
    some = np.logical_and.reduce([rows[c] == x for c, x in where.items()])
    rows.loc[some, "value"] *= factor
    outcomes = [c.judge(rows, "paper").outcome for c in spec.CLAIMS]
    assert outcomes[claim] == DIFFERS


def test_what_is_believed_wrongly_breaks_no_closed_form():
    rows = made()
    rows.loc[rows.panel == spec.CROWDED, "value"] *= 3
    assert spec.CLAIMS[0].judge(rows, "quick").outcome == HOLDS


@pytest.mark.slow
def test_a_filter_has_no_error_bars_and_a_sample_has_true_ones(table, advice):
    filtered = spec.answer_table(advice.mechanism(table), advice)
    assert filtered["±"].isna().all() and filtered.cells.tolist() == [1, 240, 2_880]
    assert (filtered["off, on average"] < filtered["at worst"]).all()
    sample = PrioritySampling(advice.budget, advice.size)
    truth = table.answer(spec.Products.of(table.domain, [*spec.ASKED.values()]))
    inside = []
    for seed in range(100):
        told = spec.answer_table(sample(table, np.random.default_rng(seed)))
        inside.append(abs(told["answer"] - truth) <= 2 * told["±"])
    assert (np.mean(inside, axis=0) > 0.85).all()


@pytest.mark.slow
def test_the_lines_run_on_these_very_files(folder, table, advice):
    asking, releasing = spec.command_lines(advice)
    assert spec.run_command(asking, folder).strip().endswith(release_options(advice.mechanism))
    said = spec.run_command(releasing, folder)
    again = Release.load(folder / "unbiased.parquet")
    assert said.startswith(f"$ {releasing}\n") and "\nunbiased.parquet" in said
    assert "1-DP" in said
    assert again.privacy == DP(spec.EPSILON) and not again.simulated
    assert again.bound == table.bound and again.estimate.domain == table.domain
    assert "unbiased.parquet exists" in spec.run_command(releasing, folder)


def test_what_is_refused(table, advice, tmp_path):
    release = advice.mechanism(table, np.random.default_rng(0))
    error = MeanAbsoluteError(spec.RandomRanges(24, count=100))
    assert "truth_public" in spec.refusal(error, table, release.estimate)
    assert "seeded rng" in spec.refusal(release.save, tmp_path / "seeded.parquet")
    shown = release.to_frame().query("noisy > 0")
    public = SparseTable.from_frame(shown, table.domain, PUBLIC, count="noisy")
    assert "the table is PUBLIC" in spec.refusal(advice.mechanism, public)


def test_what_is_to_be_replaced_is_there():
    names = set(re.findall(r"`([A-Z]{3,})`", PROSE))
    assert names >= {"EPSILON", "SIZE", "QUERIES", "BELIEFS", "ASKED"}
    assert all(hasattr(spec, name) for name in names)
