"""Noise that came onto cells by a linear map: its variance is that of the map, written out as a matrix."""

import numpy as np
import pytest

from tests.agreement import seeded
from workbench import DP, Bound, Domain, Interactions, Ranges, Release, SparseTable
from workbench.estimates.linear_noise import (
    FourierNoise,
    GroupNoise,
    HaarNoise,
    Pieces,
    TreeNoise,
    noise_from_json,
    noise_to_json,
    query_variances,
)
from workbench.inference import tree_least_squares
from workbench.inference.consistency import tree_sums
from workbench.mechanisms import FPA, GS, SRA, HierarchicalHistogram, Privelet, UniformSampling
from workbench.mechanisms.smoothing import inverse
from workbench.queries import Haar, labelled_queries

RUNS = 200


def maps(size, law):
    """The map from independent noise to cells, a column a number that had noise."""
    domain = Domain(("x",), (size,))
    if isinstance(law, TreeNoise):
        nodes = len(tree_sums(np.zeros(size), law.branching))
        columns = [tree_least_squares(unit, law.branching)[-size:] for unit in np.eye(nodes)]
    elif isinstance(law, HaarNoise):
        columns = [Haar().on(domain).inverse(unit) for unit in np.eye(size)]
    else:
        columns = [inverse(unit) for unit in np.eye(size)[: law.coefficients]]
    return np.transpose(columns)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 13, 16, 27, 31])
@pytest.mark.parametrize(
    "law",
    [
        TreeNoise(2, 1.0),
        TreeNoise(3, 2.0),
        TreeNoise(5, 1.0),
        HaarNoise(3.0),
        FourierNoise(3, 1.0),
    ]
    + [FourierNoise(2**20, 0.5)],
    ids=str,
)
def test_variances_are_those_of_the_matrix(law, size):
    """Of all ranges, of queries of several ranges, of none, and of each cell."""
    if isinstance(law, FourierNoise) and law.coefficients > size:
        law = FourierNoise(size, law.variance)
    covariance = law.variance * maps(size, law) @ maps(size, law).T
    lo, hi = np.triu_indices(size + 1)
    masks = (np.arange(size) >= lo[:, None]) & (np.arange(size) < hi[:, None])
    masks = np.concatenate([masks, seeded(1).random((60, size)) < 0.6])
    domain = Domain(("x",), (size,))
    queries = [{"x": np.flatnonzero(mask).tolist()} for mask in masks if mask.any()]
    given = query_variances(law, domain, labelled_queries(domain, queries))
    masks = masks[masks.any(axis=1)].astype(float)
    assert given == pytest.approx(np.einsum("qi,ij,qj->q", masks, covariance, masks), abs=1e-12)
    none = Pieces(np.zeros(0, np.int64), Ranges(np.zeros(0, int), np.zeros(0, int)), 2)
    assert law.variances(domain, none).tolist() == [0, 0]
    assert noise_from_json(noise_to_json(law)) == law


def test_a_query_that_counts_a_cell_twice_is_not_known():
    domain = Domain(("x",), (8,))

    class Twice:
        def intervals(self, domain):
            return np.array([0, 0, 1]), Ranges([0, 2, 0], [4, 6, 8])

        def __len__(self):
            return 2

    known = query_variances(TreeNoise(2, 1.0), domain, Twice())
    assert np.isnan(known[0]) and known[1] > 0


DOMAIN = Domain(("town", "hour"), (5, 11))
QUERIES = [{"town": 2, "hour": 3}, {"town": (1, 3)}, {"hour": [1, 2, 7]}, {}]


@pytest.mark.parametrize(
    "mechanism",
    [
        HierarchicalHistogram(DP(0.5), branching=3, nonnegative=False),
        HierarchicalHistogram(DP(0.5), noise="geometric", nonnegative=False),
        Privelet(DP(0.5)),
    ],
    ids=str,
)
def test_two_deviations_cover_the_truth(mechanism, tmp_path):
    """95.4 % is what ±2σ hold of sums of many; 94.1 % of one Laplace; five errors of 200 runs are 8.3 %."""
    rng = seeded(5)
    keys = np.arange(0, DOMAIN.size, 3)
    table = SparseTable.from_keys(DOMAIN, keys, rng.geometric(0.02, len(keys)), Bound())
    queries = labelled_queries(DOMAIN, QUERIES)
    truth = queries.sums(DOMAIN, table.keys, table.counts)
    releases = [mechanism(table, rng) for _ in range(RUNS)]
    answers = [release.answer(QUERIES, error=True) for release in releases]
    bars = answers[0].noise
    errors = np.array([x.values - truth for x in answers])
    assert ((np.abs(errors) <= 2 * bars).mean(axis=0) >= 0.941 - 0.083).all()
    assert (errors**2).mean(axis=0) == pytest.approx(
        bars**2, rel=0.6
    )  # five errors of a variance
    assert np.array_equal(bars, answers[0].errors) and not answers[0].absent.any()
    cells = releases[0].answer([{"town": 4, "hour": h} for h in range(11)], error=True).noise
    assert releases[0].deviations()[-11:] == pytest.approx(cells)
    assert not releases[0].estimate.why_unknown
    file = tmp_path / "r.parquet"
    releases[0].save(file, simulated=True)
    assert Release.load(file).answer(QUERIES, error=True).noise == pytest.approx(bars)


def records():
    rng = seeded(2)
    users = np.repeat(np.arange(60), 3)
    columns = (rng.integers(0, n, 180) for n in (6, 4))
    return Interactions.from_codes(
        Domain(("film", "day"), (6, 4)), users, *columns, Bound(9, 3, 9)
    )


@pytest.mark.parametrize(
    "mechanism", [FPA(DP(1.0), bound=3, k=5), GS(DP(1.0), bound=3, width=4)], ids=str
)
def test_the_noise_of_smoothed_counts_is_known_and_what_smoothing_took_is_not(
    mechanism, tmp_path
):
    """Two deviations of noise cover the mean of many releases, which is what smoothing left."""
    data = records()
    queries = [{"film": 1, "day": 2}, {"film": (0, 2)}, {"day": 3}, {}]
    rng = seeded(3)
    file = tmp_path / "r.parquet"
    releases = [mechanism(data, rng) for _ in range(RUNS)]
    answers = [release.answer(queries, error=True) for release in releases]
    bars = answers[0].noise
    assert np.isnan(answers[0].errors).all() and np.isnan(answers[0].absent).all()
    values = np.array([x.values for x in answers])
    if isinstance(mechanism, FPA):
        assert values.var(axis=0) == pytest.approx(bars**2, rel=0.8)
    assert "smoothed away" in releases[0].estimate.why_unknown
    assert "dropped" in SRA(DP(1.0), 2)(data, rng).estimate.why_unknown
    releases[0].save(file, simulated=True)
    assert Release.load(file).answer(queries, error=True).noise == pytest.approx(bars)


def test_groups_are_never_noisier_than_said():
    """Whatever the groups of at least w cells: σ²·Σ (t_G/|G|)² is at most what is given."""
    rng = seeded(4)
    for width in (1, 3, 4):
        for _ in range(50):
            sizes = rng.integers(width, 2 * width + 1, 5)
            groups = rng.permutation(np.repeat(np.arange(5), sizes))
            cells = rng.integers(1, len(groups) + 1)
            covered = np.bincount(groups[:cells], minlength=5)
            exact = ((covered / sizes) ** 2).sum()
            domain = Domain(("x",), (len(groups),))
            piece = Pieces(np.array([0]), Ranges([0], [cells]), 1)
            assert exact <= GroupNoise(width, 1.0).variances(domain, piece)[0] + 1e-12


def test_a_uniform_sample_knows_its_noise_and_nothing_of_what_it_left_out():
    table = SparseTable.from_keys(DOMAIN, np.arange(40), np.arange(1, 41), Bound())
    release = UniformSampling(DP(0.5), size=11)(table, seeded(1))
    answers = release.answer(QUERIES, error=True)
    inside = answers.absent_cells - [1, 33, 15, 55]
    sigma = release.estimate.law.variance**0.5
    assert answers.noise == pytest.approx(5 * sigma * np.sqrt(-inside))
    assert (
        np.isnan(answers.absent).all() and "stands for 5 cells" in release.estimate.why_unknown
    )
    assert release.to_frame().sd.to_numpy() == pytest.approx(5 * sigma)
