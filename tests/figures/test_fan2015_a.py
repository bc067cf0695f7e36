"""Specs of Fan & Jin, Figures 1, 5, 6, 10, 11 and Table 4: what they compute themselves."""

import numpy as np
import pytest

from experiments.fan2015 import fig5 as fan2015_fig5
from experiments.fan2015 import fig6 as fan2015_fig6
from experiments.fan2015 import fig10 as fan2015_fig10
from experiments.fan2015 import table4 as fan2015_table4
from experiments.fan2015.data import cases
from tests.figures.worlds import figure_of
from tests.reference import sampling
from workbench import DP, Bound, Domain
from workbench.data import Interactions
from workbench.datasets import InteractionsTwin
from workbench.mechanisms import HPA
from workbench.trials.metrics import TopPrecision, sampling_error, weighted_counts

SMALL = InteractionsTwin(40, 12, 400, 30, contexts="check-in week")


pytestmark = pytest.mark.usefixtures("no_files")


# --- the data


def test_twins_stand_in_and_files_take_their_place(tmp_path):
    twins = cases()
    assert list(twins) == [f"{of} twin" for of in fan2015_table4.TABLE]
    for case in twins.values():
        users, items, records, most, least, _ = fan2015_table4.TABLE[case.of]
        assert case.dataset.max_per_user == case.most == most and case.d == least
        assert (case.dataset.users, case.dataset.items) == (users, items)
        assert case.dataset.records == records and case.twin
        assert case.l == (30 if case.of == "MovieLens" else 10)
    assert list(cases(netflix_users=20_000))[2] == "Netflix twin, 20,000 users"
    for folder, name in (("movielens/ml-1m", "ratings.dat"), ("gowalla", "Gowalla_train.txt")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / name).write_text("1\n")
    for name in ("users", "movies"):
        (tmp_path / f"movielens/ml-1m/{name}.dat").write_text("1\n")
    for name in ("tune", "test", "poi_coos"):
        (tmp_path / f"gowalla/Gowalla_{name}.txt").write_text("1\n")
    found = cases()
    assert list(found)[0] == "Gowalla (LGLMF)" and "MovieLens" in found
    assert not found["MovieLens"].twin and found["MovieLens"].d == 20


def test_weighted_counts_weigh_each_record_by_its_user(monkeypatch):
    monkeypatch.setattr("workbench.trials.metrics.contributions._BLOCK", 7)
    domain = Domain(("item", "context"), (5, 3))
    rng = np.random.default_rng(0)
    columns = rng.choice([3, 9, 40], 30), rng.integers(5, size=30), rng.integers(3, size=30)
    data = Interactions.from_codes(domain, *columns, Bound(30, 30, 30), truth_public=True)
    weights = np.array([1.0, 0.5, 4.0])
    of = np.repeat(weights, data.records_per_user())
    slow = np.zeros((5, 3))
    np.add.at(slow, (data.items, data.contexts), of)
    assert weighted_counts(data, weights) == pytest.approx(slow.sum(axis=1))
    assert weighted_counts(data, weights, "edges") == pytest.approx(slow.ravel())


# --- what the specs compute themselves


def records_of(data):
    told = {}
    for user, item, context in zip(data.users, data.items, data.contexts, strict=True):
        told.setdefault(int(user), []).append((int(item), int(context)))
    return told


@pytest.mark.slow
@pytest.mark.parametrize("once", [False, True])
def test_the_expected_error_is_that_of_the_literal_reference(once):
    twin = InteractionsTwin(40, 12, 240, 10, once=once, contexts="check-in week")
    data = twin.load()
    records = records_of(data)
    edges = {user: [((i, c), 0) for i, c in mine] for user, mine in records.items()}
    for l in (1, 3, 10):  # noqa: E741
        for of, mine, cells in (
            ("items", records, range(12)),
            ("edges", edges, [(i, c) for i in range(12) for c in range(7)]),
        ):
            (ours,) = len(cells) * sampling_error(data, [l], of)
            ours += len(cells) * sampling.noise_variance(l, 0.5, "geometric")
            assert ours == pytest.approx(sampling.error_sra(mine, cells, l, 0.5))


def test_the_formulas_are_those_of_the_literal_reference():
    data = SMALL.load()
    p, n, most = data.item_counts() / len(data), 40, 10
    ours = fan2015_fig6.formulas(data, 2.0)
    for name, form in (("Equation 22", "printed"), ("corrected", "actual count")):
        best = sampling.best_l(n, most, list(p), 2.0, form)
        assert ours[name] == pytest.approx(np.clip(best, 1, most))


@pytest.mark.slow
def test_the_exponent_of_figure_6_gives_what_figure_5_prints():
    figure = figure_of(fan2015_fig6).at("paper", data="Foursquare")
    (case,) = figure.cases().values()
    assert figure.laws(case) == {"×1": case.dataset}
    step = fan2015_fig5.FirstStep(HPA(DP(1.0), case.l, case.d, popularity_share=0.1))
    data = case.dataset.load()
    scores = [step(data, np.random.default_rng(seed)).estimate for seed in range(20)]
    found = {k: np.mean([TopPrecision(k)(data, x) for x in scores]) for k in (20, 100)}
    assert found[100] == pytest.approx(0.4, abs=0.02) and found[20] > 0.6
    (as_built,) = figure_of(fan2015_fig6).at("quick", data="Foursquare").cases().values()
    assert as_built.dataset == InteractionsTwin.foursquare()


def test_real_data_that_are_not_at_hand_cannot_be_chosen():
    with pytest.raises(ValueError, match="no file of these is at hand"):
        figure_of(fan2015_fig10).at("quick", data="Gowalla (LGLMF)").sweeps()
