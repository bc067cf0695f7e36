"""The essay for a table of one's own: its files, its rehearsal, its lines, and what it says of them."""

import json

import numpy as np
import pytest

from experiments import your_data as spec
from tests.figures.worlds import noisy
from workbench import (
    DP,
    PUBLIC,
    Bound,
    Domain,
    RandomRanges,
    Release,
    SparseTable,
    Sweep,
    noise,
    trials,
    widgets,
)
from workbench.mechanisms import HighPassFilter, PrioritySampling
from workbench.mechanisms.options import release_options
from workbench.mechanisms.protocol import noise_blocks
from workbench.queries import basis_of, labelled_queries
from workbench.trials.claims import DIFFERS, HOLDS, NOT_JUDGED
from workbench.trials.metrics import MeanAbsoluteError

FIGURE = spec.YourData.at("quick")


@pytest.fixture(scope="module")
def files():
    return FIGURE.files()


@pytest.fixture(scope="module")
def table(files):
    return SparseTable.read(files.table, FIGURE.domain(), FIGURE.bound(), count=files.count)


@pytest.fixture(scope="module")
def advice():
    return FIGURE.advice()


def test_the_files_hold_a_private_table_in_the_domain_that_is_advised_on(files, table, advice):
    assert Domain.read(files.domain) == table.domain
    assert advice.beliefs.domain == table.domain
    assert table.bound == advice.beliefs.bound == Bound(2, 1)
    assert not table.truth_public and f"{len(table):,}" not in repr(table)
    assert FIGURE.files().table.read_bytes() == files.table.read_bytes()


def test_the_panel_opens_on_the_private_table_with_the_beliefs(table):
    told = dict(epsilon=FIGURE.epsilon, size=FIGURE.size)
    panel = widgets.advice(table, **told, **FIGURE.beliefs())
    assert panel.values.items() >= (told | FIGURE.beliefs()).items()


def blocks_of(mechanism, domain, l1):
    basis = basis_of(getattr(mechanism, "transform", None), domain)
    return noise_blocks(basis, l1=l1, epsilon=mechanism.budget.epsilon)


def test_the_rehearsal_has_the_noise_and_the_cuts_of_the_release():
    rehearsed = FIGURE.sweeps()[spec.BELIEVED]
    line, l1 = rehearsed.datasets[0].domain, rehearsed.datasets[0].load().bound.l1
    assert line.size == FIGURE.domain().size and l1 == 1 != FIGURE.bound().l1
    for row, ours in zip(FIGURE.rehearsed(), rehearsed.mechanisms, strict=True):
        (there,) = blocks_of(row.mechanism, FIGURE.domain(), FIGURE.bound().l1)
        (here,) = blocks_of(ours, line, l1)
        decays = [noise.decay(block.l1, block.epsilon) for block in (there, here)]
        assert decays[0] == decays[1] and there.size == here.size
        if isinstance(ours, HighPassFilter):
            assert ours.threshold(line, l1) == row.mechanism.threshold(
                FIGURE.domain(), FIGURE.bound().l1
            )


def made():
    """Rows of which both claims hold."""
    laws = {"filter-priority": 1.0, "filter": 1.5, "filter-priority, dyadic": 2.0}
    return noisy(
        dict(panel=panel, series=series, query_size=q, value=x * q)
        for panel in (spec.BELIEVED, spec.CROWDED)
        for series, x in laws.items()
        for q in FIGURE.query_sizes
    )


def test_the_claim_holds_where_it_should():
    assert [v.outcome for v in FIGURE.judge(made())] == [HOLDS]


@pytest.mark.parametrize(
    ("claim", "where", "factor"),
    [
        (0, {"panel": spec.BELIEVED, "series": "filter-priority"}, 1.6),
        (0, {"panel": spec.CROWDED, "series": "filter-priority, dyadic"}, 0.4),
        (0, {"panel": spec.CROWDED, "series": "filter", "query_size": 2_880}, 0.05),
    ],
)
def test_a_claim_differs_once_one_part_of_it_is_broken(claim, where, factor):
    rows = made()
    some = np.logical_and.reduce([rows[c] == x for c, x in where.items()])
    rows.loc[some, "value"] *= factor
    assert FIGURE.judge(rows)[claim].outcome == DIFFERS


@pytest.mark.slow
def test_a_filter_has_no_error_bars_and_a_sample_has_true_ones(table, advice):
    filtered = FIGURE.answer_table(advice.mechanism(table), advice)
    assert filtered["±"].isna().all() and filtered.cells.tolist() == [1, 240, 2_880]
    assert (filtered["off, simulated"] > 0).all()
    sample = PrioritySampling(DP(advice.epsilon), advice.size)
    truth = table.answer(labelled_queries(table.domain, spec.ASKED))
    inside = []
    for seed in range(100):
        told = FIGURE.answer_table(sample(table, np.random.default_rng(seed)))
        inside.append(abs(told["answer"] - truth) <= 2 * told["±"])
    assert (np.mean(inside, axis=0) > 0.85).all()


@pytest.mark.slow
def test_the_lines_run_on_these_very_files(files, table, advice):
    folder = files.folder
    asking, releasing = FIGURE.command_lines(advice, files)
    assert "commutes.csv --domain domain.json" in releasing and "--count people" in releasing
    assert (
        FIGURE.run_command(asking, folder).strip().endswith(release_options(advice.mechanism))
    )
    said = FIGURE.run_command(releasing, folder)
    again = Release.load(folder / "unbiased.parquet")
    assert said.startswith(f"$ {releasing}\n") and "\nunbiased.parquet" in said
    assert "1-DP" in said
    assert again.privacy == DP(FIGURE.epsilon) and not again.simulated
    assert again.bound == table.bound and again.estimate.domain == table.domain
    assert "unbiased.parquet exists" in FIGURE.run_command(releasing, folder)


def test_what_is_refused(table, advice, tmp_path):
    release = advice.mechanism(table, np.random.default_rng(0))
    error = MeanAbsoluteError(RandomRanges(24, count=100))
    assert "truth_public" in FIGURE.refusal(error, table, release.estimate)
    assert "seeded rng" in FIGURE.refusal(release.save, tmp_path / "seeded.parquet")
    shown = release.to_frame().query("count > 0")
    public = SparseTable.from_frame(shown, table.domain, PUBLIC, count="count")
    assert "the table is PUBLIC" in FIGURE.refusal(advice.mechanism, public)


# --- one's own files


@pytest.fixture
def mine(tmp_path):
    """A table and its domain, which says nothing of its truth."""
    (tmp_path / "mine.csv").write_text("shop,day,n\na,1,5\nb,3,2\nb,3,1\n")
    return write_domain(tmp_path)


def write_domain(folder, **more):
    attributes = {"shop": ["a", "b"], "day": {"from": 0, "to": 6}}
    (folder / "domain.json").write_text(json.dumps(attributes | more))
    paths = dict(table=str(folder / "mine.csv"), domain_file=str(folder / "domain.json"))
    return dict(count="n", l0=3, size=5, query_sizes=(1, 7, 99), seeds=1) | paths


def test_a_table_of_ones_own_takes_the_place_of_the_example(mine, tmp_path):
    figure = spec.YourData.at("quick", **mine)
    files = figure.files()
    table = SparseTable.read(files.table, figure.domain(), figure.bound(), count=files.count)
    assert table.total == 8 and table.bound == Bound(3, 1) and not table.truth_public
    advice = figure.advice()
    assert figure.sizes() == (1, 7) and advice.beliefs.domain.shape == (2, 7)
    told = figure.answer_table(advice.mechanism(table, np.random.default_rng(0)), advice)
    assert list(told.index) == ['"shop"="b" & "day"="3"', '"shop"="b"'] and list(
        told.cells
    ) == [1, 7]
    figure = spec.YourData.at("quick", **mine, asked="shop=a..b & day=2..4, day=0")
    told = figure.answer_table(advice.mechanism(table, np.random.default_rng(0)))
    assert list(told.cells) == [6, 2]
    asking, releasing = figure.command_lines(advice, files)
    assert str(tmp_path / "mine.csv") in releasing and "--count n" in releasing
    told = figure.judge(None)
    assert {v.outcome for v in told} == {NOT_JUDGED}
    assert all(v.why.startswith("not the example's setting: table = ") for v in told)


def test_a_private_table_is_never_compared_with(mine, tmp_path):
    figure = spec.YourData.at("quick", **mine)
    generated = figure.comparable_table()
    assert isinstance(generated, spec.BelievedTable)
    assert generated.load().domain.size == 14 and generated.load().bound == Bound(3, 1)
    for sweep in figure.sweeps().values():
        assert "mine.csv" not in repr(sweep.datasets)
    refused = spec.PublicTable(mine["table"], mine["domain_file"], Bound(3, 1), "n")
    with pytest.raises(ValueError, match='does not state "truth_public": true'):
        refused.load()


def test_where_the_domain_states_it_the_table_itself_is_swept(mine, tmp_path):
    figure = spec.YourData.at("quick", **write_domain(tmp_path, truth_public=True))
    dataset = figure.comparable_table()
    assert dataset.load().total == 8 and dataset.load().truth_public
    mechanisms = [PrioritySampling(DP(epsilon), size=5) for epsilon in figure.epsilons]
    sweep = Sweep([dataset], mechanisms, [MeanAbsoluteError(RandomRanges(7))], 1)
    rows = trials.run(sweep, tmp_path / "store")
    assert rows.truth_public.all() and len(rows) == 3 and "mine.csv" in rows.dataset[0]
    assert figure.domain().attributes == ("shop", "day")


def test_a_table_without_its_domain_is_refused(mine):
    figure = spec.YourData(**mine | {"domain_file": None})
    with pytest.raises(ValueError, match="domain_file = None: need both, or neither"):
        figure.files()
