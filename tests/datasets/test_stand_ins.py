"""Datasets say what they are; stand-ins and generators have the published numbers, the same for a seed."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from tests.datasets.files import dataset, held
from workbench import datasets
from workbench.data import Bound
from workbench.datasets import (
    CommuteTwin,
    GaussianSparse,
    InteractionsTwin,
    KeywordFrequencies,
    KeywordFrequenciesTwin,
    NetTrace,
    NetTraceTwin,
    OnTheMap,
    OnTheMapTwin,
    QueryLogTwin,
    SearchLogs,
    SearchLogsTwin,
    SocialNetwork,
    SocialNetworkTwin,
    Surnames,
    SurnameStrings,
    Towns,
    commuting_twins,
    interactions_twin,
)
from workbench.datasets.kinds import GENERATOR, REAL_FILE, TWIN, kind_of
from workbench.spaces import SYMBOLS, Prefixes, Quadtree
from workbench.trials.inputs import modules_of

# What datasets say


@pytest.mark.parametrize("cls", datasets.ALL, ids=lambda d: d.__name__)
def test_a_dataset_is_a_value_that_says_what_it_is_and_where_it_is_from(cls):
    one = cls()
    assert repr(one) == f"{cls.__name__}()"
    assert dataset(repr(one)) == one and hash(one) == hash(cls())
    assert cls.truth_public is True and cls.cite
    assert all(word in cls.__doc__ for word in ("protected unit is", "Source"))
    assert one.kind == cls.kind == kind_of(one)
    assert (one.kind == REAL_FILE) == hasattr(one, "files")
    if one.kind == TWIN:
        assert one.original and {*one.invented}
    for file in one.files() if hasattr(one, "files") else ():
        known = file.sha256 or file.renderings
        assert file.how or file.url.startswith("https://") and known
        assert "Terms:" in cls.__doc__


def test_what_wraps_a_dataset_is_of_its_kind():
    assert kind_of(datasets.Ranked(datasets.NetTraceTwin())) == TWIN
    assert datasets.Ranked(datasets.NetTrace()).kind == REAL_FILE
    assert kind_of(OnTheMap().points()) == REAL_FILE
    twins = (
        datasets.InteractionsTwin.netflix().slice(2000),
        datasets.InteractionsTwin.gowalla(),
    )
    assert ["Netflix" in twin.original for twin in twins] == [True, False]

    class Somebodys:
        def load(self):
            return None

    assert kind_of(Somebodys()) == GENERATOR


@pytest.mark.parametrize(
    "text",
    [
        'OnTheMap(states=("xx",))',
        'OnTheMap(states=("ri", "ri"))',
        'Adult(attributes=("Age", "Weight"))',
        "CensusIncome(attributes=())",
        'CommutePoints(dataset=OnTheMap(part="aux"))',
        "CommutePoints(dataset=Surnames())",
        "Ranked(dataset=3)",
        "QueryLogTwin(distinct=11, queries=10)",
        "InteractionsTwin(records=1000)",
        "InteractionsTwin(records=1_000_000_000)",
        "InteractionsTwin(min_per_user=2000)",
        "InteractionsTwin(max_per_user=1303, once=True, items=1000)",
    ],
)
def test_fields_say_what_they_allow(text):
    cls, field = text.split("=")[0].split("(")
    with pytest.raises(ValueError, match=f"{cls}.{field}"):
        dataset(text)


def test_importing_the_room_loads_no_reader():
    code = (
        "import sys, workbench.datasets; "
        "print([m for m in ('polars', 'pooch', 'pandas', 'scipy', 'requests') if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]", run.stderr


VIEWS = (
    OnTheMap(("ma", "ri"), 2010).points(12), Surnames(2010).strings(9), SurnameStrings(),
    CommuteTwin(100, 8, seed=3), Towns(100, 3, 0.5, 8, seed=3),
    QueryLogTwin(1000, distinct=50, depth=20),
)  # fmt: skip


def test_the_text_of_a_view_can_be_pasted():
    assert [dataset(repr(one)) for one in VIEWS] == [*VIEWS]
    points = OnTheMap(year=2010).points()
    assert repr(points) == "CommutePoints(dataset=OnTheMap(year=2010))"
    assert points.truth_public and "protected unit is" in type(points).__doc__
    assert points.files() == OnTheMap(year=2010).files()


SMALL = (
    CommuteTwin(10_000), Towns(10_000), QueryLogTwin(1000), GaussianSparse(), NetTraceTwin(),
    SearchLogsTwin(), SocialNetworkTwin(), KeywordFrequenciesTwin(), datasets.IPUMSTwin(1000),
    InteractionsTwin(100, 50, 2000, 300, 2),
)  # fmt: skip


def arrays(one):
    """What a dataset holds."""
    data = one.load()
    names = ("users", "items", "contexts") if hasattr(data, "users") else ("keys", "counts")
    assert data.truth_public
    return [np.asarray(getattr(data, name)).tolist() for name in names]


@pytest.mark.parametrize("one", SMALL, ids=lambda x: type(x).__name__)
def test_what_is_made_up_is_the_same_for_the_same_seed(one):
    assert arrays(one) == arrays(replace(one)) != arrays(replace(one, seed=1))


# Generators


def test_gaussian_sparse_has_the_law_of_the_paper():
    """Seeded: never by chance; sees a mean that is off by six standard errors (0.4 counts)."""
    table = GaussianSparse().load()
    assert len(table) == 100_000 and table.domain.size == 10**6 and table.density == 0.1
    assert table.bound == Bound(1, 1) and table.truth_public
    assert abs(table.counts.mean() - 100) < 6 * 20 / 100_000**0.5
    assert abs(table.counts.std() - 20) < 0.3
    in_thousands = np.bincount(table.keys // 1000, minlength=1000)  # hypergeometric
    assert abs(in_thousands - 100).max() < 6 * (100 * 0.9) ** 0.5
    assert abs(in_thousands.var() / (100 * 0.9) - 1) < 6 * (2 / 1000) ** 0.5
    assert GaussianSparse(mean=0.0, std=40.0, m=10**4).load().counts.min() == 1


@pytest.mark.parametrize("placement", ["uniform", "skewed"])
def test_gaussian_sparse_never_stores_the_domain(placement):
    for m, n in ((10**12, 10**6), (2**63 - 1, 10**5), (7, 7), (5, 0), (10, 9)):
        table = GaussianSparse(m=m, density=n / m, placement=placement).load()
        assert len(table) == n and table.domain.size == m


def test_every_cell_is_as_likely_as_any_other():
    """Seeded: never by chance; sees a cell that is off by six standard errors (19 %)."""
    hits = np.zeros(12)
    for seed in range(3000):
        hits[GaussianSparse(m=12, density=1 / 4, seed=seed).load().keys] += 1
    assert hits.sum() == 9000
    assert abs(hits - 750).max() < 6 * (750 * 3 / 4) ** 0.5


@pytest.mark.parametrize("regions", [1, 10, 100])
def test_skewed_cells_lie_in_regions_half_full(regions):
    data = GaussianSparse(m=10**9, density=1e-4, placement="skewed", regions=regions)
    table = data.load()
    gaps = np.sort(np.diff(table.keys))[::-1]
    between = gaps[: regions - 1].sum()
    assert gaps[regions - 1] < 100  # inside the regions every second cell is taken
    assert 1e9 - 3e5 < between + table.keys[0] + (10**9 - table.keys[-1]) < 1e9 - 1e5


@pytest.mark.slow
def test_the_twin_has_the_published_statistics():
    """Seeded: never by chance; sees a mean count that is off by 0.1."""
    for seed in (0, 1):
        table = OnTheMapTwin(seed=seed).load()
        assert table.domain.attributes == ("work", "home") and table.domain.shape == (
            4001,
            4001,
        )
        assert len(table) == 820_000 and round(table.density, 3) == 0.051
        assert abs(table.counts.mean() - 150) < 0.1
        assert 0.4 < (table.counts <= 2).mean() < 0.6  # "many cells have frequency 1 or 2"
        assert table.counts.std() > 10 * 150  # "with very high variance"
        assert table.bound == Bound(1, 1) and table.truth_public
        work, home = table.domain.codes(table.keys).T
        jobs = np.bincount(work, table.counts, 4001)
        assert table.counts[work == home].sum() > 0.5 * table.total
        assert table.counts[abs(work - home) < 200].sum() > 0.7 * table.total  # ids by state
        assert np.sort(jobs)[-400:].sum() > 0.4 * table.total and (jobs > 0).all()
    assert (OnTheMapTwin(seed=1).load().keys == table.keys).all()


@pytest.mark.slow
def test_the_twin_with_attributes_is_the_same_jobs_in_sparser_cells():
    table = OnTheMapTwin(attributes=True).load()
    plain = OnTheMapTwin().load()
    assert table.domain.shape == (4001, 4001, 3, 3, 3)
    assert table.domain.attributes[2:] == ("age", "salary", "industry")
    assert table.density < 0.01 and table.total == plain.total
    home = table.project(("work", "home"))
    assert (home.keys == plain.keys).all() and (home.counts == plain.counts).all()
    for name, shares in commuting_twins.ATTRIBUTES.items():
        found = table.project((name,)).counts / table.total
        assert abs(found - list(shares.values())).max() < 0.05


# CommuteTwin, Towns


def test_the_commute_twin_has_its_statistics(monkeypatch):
    """Seeded: never by chance; sees a mean distance that is off by 0.3 km, a Zipf slope by 0.02."""
    made = []
    keep = commuting_twins._commutes
    monkeypatch.setattr(
        commuting_twins, "_commutes", lambda *of: made.append((of[0], keep(*of))) or made[-1][1]
    )
    twin = CommuteTwin(300_000)
    records = twin.load()
    assert (len(records), records.total, records.left_out) == (300_000, 300_000, {})
    assert records.counts is None and records.bound == Bound(1) and records.truth_public
    ((city, points),) = made
    assert (points >= twin.hierarchy.low).all() and (points <= twin.hierarchy.high).all()
    north, east = (points[:, 2:] - points[:, :2]).T * commuting_twins.KM
    away = np.hypot(north, east * np.cos(np.radians(points[:, 0])))
    assert abs(np.median(away) - 10) < 0.2 and abs(away.mean() - 16.5) < 0.3
    assert away.max() < 301
    people = np.bincount(city)
    assert abs(people[-1] / 300_000 - 0.15) < 0.005
    slope, _ = np.polyfit(np.log(np.arange(1, 101)), np.log(people[:100]), 1)
    assert abs(slope + 1) < 0.02  # Zipf
    centre = twin.places()[["latitude", "longitude"]].to_numpy()
    assert abs(np.median(points[city == 0, :2], axis=0) - centre[0]).max() < 0.02
    to_centre = centre[city[city < 3000]] - points[city < 3000, :2]
    inward = (to_centre * (points[:, 2:] - points[:, :2])[city < 3000]).sum(axis=1) > 0
    assert 0.6 < inward.mean() < 0.9


def test_the_commute_twin_is_the_same_at_any_depth():
    keys = CommuteTwin(10_000).load().keys
    coarse = CommuteTwin(10_000, depth=3).load()
    assert (coarse.keys == keys >> np.uint64(4 * 13)).all()
    assert len(CommuteTwin(1).load()) == 1
    places = CommuteTwin(10_000).places()
    assert len(places) == 3000 and (np.diff(places["population"]) <= 0).all()
    assert abs(places["population"].sum() - 8500) < 600  # rounded


def test_towns_have_their_law():
    """Seeded: never by chance; sees a town that is off by five standard errors, a share by 0.006."""
    records = Towns(200_000, spread=0.0, depth=20).load()  # everybody at a centre, or anywhere
    assert (records.total, records.bound, records.left_out) == (200_000, Bound(1), {})
    assert records.counts is None and records.truth_public
    people = np.sort(records.level(20)[1])[::-1][:21]
    expected = 200_000 * 0.85 / np.arange(1, 21) / (1 / np.arange(1, 21)).sum()
    assert (np.abs(people[:20] - expected) < 5 * np.sqrt(expected)).all() and people[20] < 5
    one = Towns(100_000, 1, spread=2.0).load()
    assert one.hierarchy == one.domain == Quadtree(2, 10, (0, 0), (64, 64), ("east", "north"))
    centre = np.random.default_rng(0).uniform(0, 64, (1, 2))
    points = one.to_frame()[["east_from", "north_from"]].to_numpy() + 64 / 2**11
    off = np.hypot(*((points - centre + 32) % 64 - 32).T)  # the short way round
    for radius in (1.0, 2.0, 4.0):
        near = 1 - np.exp(-((radius / 2) ** 2) / 2)
        rural = np.pi * (radius / 64) ** 2
        assert abs((off < radius).mean() - 0.85 * near - 0.15 * rural) < 0.006


def test_towns_are_the_same_at_any_depth():
    keys = Towns(10_000).load().keys
    assert (Towns(10_000, depth=4).load().keys == keys >> np.uint64(2 * 6)).all()
    assert len(Towns(1).load()) == 1 and Towns(1000, spread=1e4, depth=32).load().total == 1000


# QueryLogTwin


@pytest.fixture(scope="module")
def log():
    return QueryLogTwin(900_000).load()


def test_the_query_log_has_the_published_statistics(log):
    """Seeded: never by chance; sees a Zipf slope that is off by 0.01."""
    assert log.total == 900_000 and not log.left_out
    assert len(log) == round(900_000**0.865) == 141_390  # Heaps
    assert log.hierarchy == Prefixes(depth=24, attribute="query") == QueryLogTwin().hierarchy
    assert log.bound == Bound(1) and log.truth_public
    frame = log.to_frame()
    assert set("".join(frame["query"])) == set(SYMBOLS) and len(SYMBOLS) == 38
    falling = np.sort(log.counts)[::-1]
    ranks = np.arange(1, 2001)
    slope, _ = np.polyfit(np.log(ranks), np.log(falling[:2000]), 1)
    assert abs(slope + 0.9) < 0.01 and falling[-1] == 1  # Zipf
    length = frame["query"].str.len()
    mean = (length * frame["count"]).sum() / 900_000
    assert 12 < mean < 14 and length.max() == 24
    assert 0.02 < frame["count"][length > 20].sum() / 900_000 < 0.04
    assert 0.5 < log.level(4)[1][np.argsort(-log.level(4)[1])[:100]].sum() / 900_000 < 0.8
    assert frame["query"].str.contains(r"\.").mean() > 0.1
    assert frame["query"].str.contains(" ").mean() > 0.3


@pytest.mark.slow
def test_the_query_log_at_another_depth_leaves_out_and_says_so(log):
    frame = log.to_frame()
    long = int(frame["count"][frame["query"].str.len() > 20].sum())
    at_20 = QueryLogTwin(900_000, depth=20).load()
    assert at_20.left_out == {"too long": long} and at_20.total == 900_000 - long
    assert held(at_20) <= held(log)


# InteractionsTwin

TABLE4 = [
    # users, items, records, most and least of a user
    (InteractionsTwin.gowalla, (12_579, 15_200, 739_600, 14_380, 1)),
    (InteractionsTwin.foursquare, (45_289, 17_967, 1_276_988, 1303, 1)),
    (InteractionsTwin.movielens, (6040, 3706, 1_000_209, 2314, 20)),
    (InteractionsTwin.netflix, (480_189, 17_700, 100_480_507, 17_000, 1)),
]


@pytest.mark.slow
@pytest.mark.parametrize("preset, printed", TABLE4, ids=lambda x: getattr(x, "__name__", ""))
def test_a_twin_has_the_printed_numbers_exactly(preset, printed):
    twin = preset()
    users, items, records, most, least = printed
    data = twin.load()
    assert len(data.users) == len(data.items) == len(data.contexts) == records
    sizes = np.bincount(data.users)
    popular = np.bincount(data.items)
    assert len(sizes) == users and (sizes.min(), sizes.max()) == (least, most)
    assert len(popular) == items == data.domain.shape[0] and popular.min() >= 1
    assert (np.diff(data.users) >= 0).all() and data.items.dtype == np.uint16
    assert data.truth_public and dataset(repr(twin)) == twin
    assert data.contexts.max() == data.domain.shape[1] - 1
    assert data.bound == (Bound(most, 1) if twin.once else Bound(most, most, most))
    assert (-np.sort(-sizes) == twin.sizes()).all()
    if twin.once:
        pairs = np.sort(data.users.astype(np.int64) * items + data.items)
        assert (np.diff(pairs) > 0).all()
    # heavy tails, on both sides
    assert sizes.mean() > 1.3 * np.median(sizes)
    assert popular.mean() > 1.3 * np.median(popular)
    shares = np.array(list(interactions_twin.PROFILES[twin.contexts].values()))
    assert abs(np.bincount(data.contexts) / records - shares).max() < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("preset, printed", TABLE4, ids=lambda x: getattr(x, "__name__", ""))
@pytest.mark.parametrize("users", [50, 1000])
def test_slices_keep_the_means(preset, printed, users):
    twin = preset().slice(users)
    assert twin.users == users and twin.records == printed[2] * users // printed[0]
    data = twin.load()
    assert np.bincount(data.users, minlength=users).max() == twin.max_per_user
    assert np.bincount(data.items).min() >= 1 and data.items.max() == twin.items - 1
    assert dataset(repr(twin)) == twin
    assert preset().slice(10**9) == preset()


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("contexts", list(interactions_twin.PROFILES))
@pytest.mark.parametrize(
    "numbers",
    [
        (2, 1, 2, 1),
        (2, 5, 6, 4),
        (5, 5, 25, 5, 5),  # everyone has everything
        (10, 6, 60, 6),
        (10, 20, 195, 20, 1),
        (10, 20, 28, 19),  # one has nearly all
        (300, 7, 700, 6, 2),
        (100, 100, 5000, 100),  # half of all pairs
    ],
)
def test_twins_at_the_edges(numbers, contexts, once):
    if once and numbers[3] > numbers[1]:
        numbers = (*numbers[:3], numbers[1], *numbers[4:])
    try:
        twin = InteractionsTwin(*numbers, contexts=contexts, once=once)
    except ValueError as e:
        assert "InteractionsTwin.records" in str(e)
        return
    data = twin.load()
    sizes = twin.sizes()
    assert sizes.sum() == twin.records and sizes[0] == twin.max_per_user
    assert sizes[-1] == twin.min_per_user or numbers[2] == numbers[0] * numbers[3]
    assert sorted(np.bincount(data.users)) == sorted(sizes)
    assert len(set(data.items.tolist())) == twin.items
    if once:
        assert len(set(zip(data.users, data.items, strict=True))) == twin.records


@pytest.mark.slow
def test_both_ways_to_draw_without_replacement_have_one_law():
    """Seeded: never by chance; sees a chance that is off by 0.04."""
    from workbench.datasets import interactions_twin as kernels

    m = 24
    users = 60_000
    rng = np.random.default_rng(0)
    popular = 1.0 / np.arange(1, m + 1)
    none = np.empty(0, np.int64)
    groups = np.zeros(users, np.uint8)
    found = []
    for count, size in ((4, m), (3, 1000 * m)):  # items that are never drawn change the way
        weights = np.full((1, size), 1e-12)
        weights[:, :m] = popular
        law = [part[None] for part in kernels.alias_tables(weights[0])]
        items = np.empty(users * count, np.int32)
        starts = np.arange(0, len(items) + 1, count)
        kernels.draw_distinct_items(rng, starts, groups, none, none, weights, *law, items)
        found.append(np.bincount(items[items < m], minlength=m) / users)
    for count, ours in ((4, found[0]), (3, found[1])):
        slow = np.zeros(m)
        for _ in range(4000):
            slow[rng.choice(m, count, replace=False, p=popular / popular.sum())] += 1
        assert abs(ours - slow / 4000).max() < 5 * (0.25 / 4000) ** 0.5


# Hay et al. 2010

TWINS = [
    # twin, of, cells that are not empty, share that is, sum, largest
    (NetTraceTwin, NetTrace, 2_228, 0.966, 25_714, 1423),
    (SearchLogsTwin, SearchLogs, 15_696, 0.521, 335_889, 496),
    (SocialNetworkTwin, SocialNetwork, 11_342, 0.0, 674_708, 1678),
]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("twin, of, full, empty, total, largest", TWINS)
def test_twins_have_the_published_statistics(twin, of, full, empty, total, largest, seed):
    table = twin(seed).load()
    assert table.domain == of().domain and table.truth_public
    assert (len(table), table.total, table.counts.max()) == (full, total, largest)
    assert round(1 - table.density, 3) == empty
    other = twin(seed + 2).load()
    assert (other.dense() != table.dense()).any()
    assert (np.sort(other.counts) == np.sort(table.counts)).all()  # sizes are the law's


def test_social_network_twin_is_the_degrees_of_a_graph():
    table = SocialNetworkTwin().load()
    assert table.bound == Bound(2, 1) and table.counts.min() >= 1 and table.total % 2 == 0
    assert np.median(table.counts) == 37
    degrees = np.sort(table.counts)[::-1]
    k = np.arange(1, len(degrees) + 1)  # Erdős and Gallai's condition, for every k
    rest = [np.minimum(degrees[i:], i).sum() for i in k]
    assert (np.cumsum(degrees) <= k * (k - 1) + rest).all()
    assert abs(np.corrcoef(table.keys, table.counts)[0, 1]) < 0.05


def test_keyword_frequencies_twin_follows_zipf():
    table = KeywordFrequenciesTwin().load()
    assert table.domain == KeywordFrequencies().domain and table.bound == Bound(1)
    assert len(table) == 20_000 and table.total == 3_141_763
    falling = np.sort(table.counts)[::-1]
    rank = np.arange(1, 20_001)
    slope, _ = np.polyfit(np.log(rank[:5000]), np.log(falling[:5000]), 1)
    assert abs(slope + 1) < 0.05 and len(np.unique(falling)) < 1200


def test_ranked_is_the_sorted_counts_of_any_dataset():
    ranked = datasets.Ranked(datasets.NetTraceTwin())
    assert repr(ranked) == "Ranked(dataset=NetTraceTwin())" and ranked.truth_public
    table = ranked.load()
    own = datasets.NetTraceTwin().load()
    assert table.domain == ranked.domain == own.ranked().domain
    assert (table.dense() == np.sort(own.dense())).all() and table.bound == own.bound
    assert table.truth_public and ranked.files() == ()
    files = datasets.Ranked(datasets.NetTrace()).files()
    assert [f.name for f in files] == [f.name for f in datasets.NetTrace().files()]


def test_rows_of_a_ranked_dataset_follow_the_sources_of_what_it_wraps():
    modules = modules_of([datasets.Ranked(datasets.NetTraceTwin())])
    assert "workbench.datasets.hay2010" in modules
