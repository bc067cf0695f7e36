"""Records of many a user: read as published, refuses lines named; twins have their numbers."""

from collections import Counter

import numpy as np
import pytest

from tests.datasets.test_datasets import pack, real, refuses
from tests.datasets.test_reading import zipped
from workbench import datasets
from workbench.data import UNBOUNDED, Bound
from workbench.datasets import (
    Foursquare,
    Gowalla,
    InteractionsTwin,
    MovieLens,
    NetflixPrize,
    OnlineRetail,
    checkins,
    interactions_twin,
    published,
    retail,
)
from workbench.datasets import ratings as netflix_prize

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def sorted_rows(data) -> list[tuple]:
    """The records in words, sorted; checks that they are as `Interactions` wants them."""
    assert (np.diff(data.users) >= 0).all() and data.users.dtype == np.int32
    assert data.items.dtype in (np.uint16, np.int32) and data.contexts.dtype == np.uint8
    items = data.domain.decode("item", data.items).tolist()
    contexts = data.domain.decode("context", data.contexts).tolist()
    return sorted(zip(data.users.tolist(), items, contexts, strict=True))


# Netflix

NETFLIX = {
    1: "6,3,2005-09-06\n2649429,5,2004-02-29\n",
    2: "6,1,1999-11-11\n",
    3: "30878,4,2005-12-26\n6,4,2005-12-31\n",
    4: "1,2,1998-10-01\n",
    5: "6,5,2000-01-01\n",
}


@pytest.fixture
def small_parts(folder, monkeypatch):
    """Five films in four parts."""
    parts = ((1, 2, 3), (3, 3, 2), (4, 4, 1), (5, 5, 1))
    monkeypatch.setattr(netflix_prize, "PARTS", parts)
    return folder / "netflix_prize"


def combined(small_parts, films=NETFLIX, suffix="", end="\n"):
    """The four files; says where the first is."""
    for k, (first, last, _) in enumerate(netflix_prize.PARTS):
        text = "".join(f"{film}:\n{films[film]}" for film in range(first, last + 1))
        pack(small_parts / f"combined_data_{k + 1}.txt{suffix}", text.replace("\n", end))
    return small_parts / f"combined_data_1.txt{suffix}"


RATED = [
    (1, 4, "Thursday"),
    (6, 1, "Tuesday"),
    (6, 2, "Thursday"),
    (6, 3, "Saturday"),
    (6, 5, "Saturday"),
    (30878, 3, "Monday"),
    (2649429, 1, "Sunday"),
]


@pytest.mark.parametrize(
    "suffix, end", [("", "\r\n"), (".gz", "\n"), (".xz", "\n"), (".zip", "\n")]
)
def test_netflix_in_both_forms(small_parts, suffix, end):
    combined(small_parts, suffix=suffix, end=end)
    data = NetflixPrize().load()
    assert sorted_rows(data) == RATED
    assert data.bound == Bound(5, 1) and data.truth_public and data.distinct
    assert data.domain == NetflixPrize().domain and data.domain.shape == (5, 7)
    for path in small_parts.iterdir():
        path.unlink()
    for film, text in NETFLIX.items():
        text = f"{film}:\n{text}".replace("\n", end)
        pack(small_parts / f"training_set/mv_{film:07}.txt{suffix}", text)
    assert sorted_rows(NetflixPrize().load()) == RATED
    (small_parts / f"training_set/mv_0000002.txt{suffix}").unlink()
    with pytest.raises(FileNotFoundError, match="no training_set/mv_0000002.txt"):
        NetflixPrize().load()


def test_netflix_cut_anywhere_is_refused(small_parts):
    path = combined(small_parts)
    whole = path.read_bytes()
    for size in (0, 1, 3, 10, 17, 30, 37, 39, 42, 50, len(whole) - 2):
        path.write_bytes(whole[:size])
        refuses(NetflixPrize(), path)
    path.write_bytes(whole[:-1])  # the last line's end
    assert sorted_rows(NetflixPrize().load()) == RATED


def test_netflix_from_the_archive_of_four_files(small_parts):
    combined(small_parts)
    rows = sorted_rows(NetflixPrize().load())
    members = {}
    for path in sorted(small_parts.iterdir()):
        members[path.name] = path.read_bytes()
        path.unlink()
    archive = zipped(small_parts / "archive.zip", members | {"movie_titles.csv": b""})
    assert sorted_rows(NetflixPrize().load()) == rows
    zipped(archive, members | {"combined_data_4.txt": b"5:\n6,5,2000-01-01x\n"})
    refuses(NetflixPrize(), archive / "combined_data_4.txt", "row 2", "customer,rating,date")


def test_netflix_domain_and_where_it_may_be_found():
    assert NetflixPrize().domain.shape == (17_770, 7)
    assert NetflixPrize().domain.labels == (range(1, 17_771), DAYS)
    assert sum(count for *_, count in netflix_prize.PARTS) == 100_480_507
    with pytest.raises(FileNotFoundError, match="withdrawn"):
        published.fetch("netflix_prize")


# MovieLens

RATINGS = """1::1193::5::978300760
2::1::3::978300760
1::3952::4::978220760
"""
USERS = """1::F::1::10::48067
2::M::56::16::70072
3::M::25::15::55117
"""
FILMS = "1::Toy Story (1995)::Animation\n1193::Cuckoo's N\xe9st\x85 (1975)::Drama\n"


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zip"])
@pytest.mark.parametrize("where", ["movielens/ml-1m", "movielens", "ml-1m", ""])
def test_movielens(folder, suffix, where):
    pack(folder / where / f"ratings.dat{suffix}", RATINGS)
    pack(folder / where / f"users.dat{suffix}", USERS)
    pack(folder / where / f"movies.dat{suffix}", FILMS.encode("latin-1"))
    data = MovieLens().load()
    assert sorted_rows(data) == [
        (1, 1193, "F under 25"),
        (1, 3952, "F under 25"),
        (2, 1, "M above 34"),
    ]
    assert data.bound == Bound(3952, 1) and data.truth_public and data.distinct
    assert data.domain == MovieLens().domain and data.domain.shape == (3952, 6)
    days = MovieLens(context="weekday")
    assert sorted_rows(days.load()) == [
        (1, 1193, "Sunday"),  # 31 December 2000, 22:12 UTC
        (1, 3952, "Saturday"),
        (2, 1, "Sunday"),
    ]
    assert [f.name for f in days.files()] == ["ml-1m/ratings.dat", "ml-1m/movies.dat"]
    assert MovieLens().titles() == {1: "Toy Story (1995)", 1193: "Cuckoo's Nést\x85 (1975)"}
    numbers = ("2 users (published: 6,040)", "3 ratings (published: 1,000,209)")
    assert MovieLens().remarks() == numbers


def test_movielens_from_its_archive(folder):
    members = {
        "ml-1m/movies.dat": FILMS.encode("latin-1"),
        "ml-1m/ratings.dat": RATINGS,
        "ml-1m/README": "cite",
        "ml-1m/users.dat": USERS,
    }
    archive = zipped(folder / "movielens/ml-1m.zip", members)
    assert [(u, f) for u, f, _ in sorted_rows(MovieLens().load())] == [
        (1, 1193),
        (1, 3952),
        (2, 1),
    ]
    assert MovieLens().titles()[1] == "Toy Story (1995)"
    assert MovieLens().files()[0].find() == archive
    del members["ml-1m/users.dat"]
    zipped(archive, members)
    with pytest.raises(FileNotFoundError, match="no ml-1m/users.dat .* that holds it"):
        MovieLens().load()
    archive.unlink()
    with pytest.raises(
        FileNotFoundError, match="ml-1m .*zip that holds it.*need not be unpacked"
    ):
        MovieLens().load()


# Gowalla

PARTS = {
    "train": "0\t1\t28\r\n3\t2\t1",
    "tune": "0\t0\t2\r\n",
    "test": "0\t4\t1\r\n3\t3\t1\r\n1\t5\t3",
}
WHERE = [
    (30.2, -97.7),
    (32.7, -97),
    (37.7, -122.4),
    (47, -122),
    (40.7, -74),
    (51, 0),
    (-37, 144),
]


@pytest.fixture
def places(folder, monkeypatch):
    """Seven places, a region each."""
    monkeypatch.setattr(checkins, "PLACES", 7)
    monkeypatch.setattr(checkins, "CHECKINS", {"train": 29, "tune": 2, "test": 5})
    for part, text in PARTS.items():
        pack(folder / f"gowalla/Gowalla_{part}.txt.gz", text)
    text = "\r\n".join(f"{k}\t{lat}\t{lon}" for k, (lat, lon) in enumerate(WHERE))
    pack(folder / "gowalla/Gowalla_poi_coos.txt.gz", text)
    return folder / "gowalla"


def test_gowalla_lglmf(places):
    data = Gowalla().load()
    regions = tuple(checkins.REGIONS)
    assert Counter(sorted_rows(data)) == {
        (0, 1, regions[1]): 28,
        (0, 0, regions[0]): 2,
        (0, 4, regions[4]): 1,
        (3, 2, regions[2]): 1,
        (3, 3, regions[3]): 1,
        (1, 5, regions[5]): 3,
    }
    assert data.bound is UNBOUNDED and data.truth_public and data.domain.shape == (7, 7)


def test_gowalla_of_snap(folder):
    text = (
        "0\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847\n"
        "0\t2010-05-31T23:59:59Z\t30.2359091167\t-97.7951395833\t420315\n"
        "2\t2010-10-18T22:17:43Z\t59.2\t18.0\t9410\n"
        "0\t2010-10-20T00:00:00Z\t30.2\t-97.8\t22847\n"
    )
    pack(folder / "gowalla/loc-gowalla_totalCheckins.txt.gz", text)
    data = Gowalla("snap").load()
    assert sorted_rows(data) == [
        (0, 22847, "Tuesday"),
        (0, 22847, "Wednesday"),
        (0, 420315, "Monday"),
        (2, 9410, "Monday"),
    ]
    assert data.domain.labels[0] == (9410, 22847, 420315) and data.bound is UNBOUNDED
    assert sorted_rows(Gowalla("austin").load()) == [
        (0, 22847, "Tuesday"),
        (0, 22847, "Wednesday"),
    ]
    assert Gowalla("austin").domain.shape == (1, 7)
    with pytest.raises(FileNotFoundError, match="LGLMF"):
        Gowalla().load()


# Foursquare

CHECKINS = (
    "470\t49bbd6c0f964a520f4531fe3\t4bf58dd8d48988d127951735\tArts & Crafts\t40.71\t-74.00\t-240\t"
    "Tue Apr 03 18:00:09 +0000 2012\n"
    '1083\t4a43c0aef964a520c6a61fe3\t4bf58dd8d48988d1df941735\tCaf"\xe9\t40.60\t-74.04\t-240\t'
    "Wed Apr 04 03:00:25 +0000 2012\n"
    "470\t49bbd6c0f964a520f4531fe3\t4bf58dd8d48988d127951735\tArts\t40.71\t-74.00\t540\t"
    "Tue Apr 03 18:00:09 +0000 2012\n"
)


def test_foursquare_from_its_archives(folder, monkeypatch):
    monkeypatch.setattr(checkins, "FORMS", {"nyc": (1083, 3), "tky": (2293, 1)})
    tokyo = CHECKINS.splitlines()[0].replace("-240", "540") + "\n"
    members = {
        "dataset_tsmc2014/dataset_TSMC2014_NYC.txt": CHECKINS.encode("latin-1"),
        "dataset_tsmc2014/dataset_TSMC2014_TKY.txt": tokyo,
        "dataset_tsmc2014/dataset_TSMC2014_readme.txt": "cite",
    }
    archive = zipped(folder / "foursquare/dataset_tsmc2014.zip", members)
    assert len(Foursquare().load()) == 3
    assert sorted_rows(Foursquare("tky").load()) == [
        (470, "49bbd6c0f964a520f4531fe3", "Wednesday")
    ]
    path = Foursquare().files()[0].find()
    assert path == archive
    (row,) = published.verify(Foursquare())
    assert row.state == "unknown" and row.size == archive.stat().st_size
    members["dataset_tsmc2014/dataset_TSMC2014_NYC.txt"] += b"470\tx\n"
    zipped(archive, members)
    refuses(Foursquare(), archive / "dataset_TSMC2014_NYC.txt", "Expected 8 columns, got 2")
    archive.write_bytes(archive.read_bytes()[:-30])
    refuses(Foursquare(), archive, "damaged")


# Online Retail

SHOP = """InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country
536365,85123A,"HEART, WHITE",6,2010-12-01 08:26:00,2.55,17850.0,UK
C536379,D,Discount,-1,2010-12-02 09:41:00,27.5,14527,UK
536366,85123A,HEART,6,2010-12-01 08:28:00,1.85,17850.0,UK
536414,22139,,56,2010-12-05 11:52:00,0.0,,UK
"""


def test_online_retail(folder, monkeypatch):
    monkeypatch.setattr(retail, "LINES", 4)
    pack(folder / "online_retail/online_retail.csv.xz", SHOP)
    dataset = OnlineRetail()
    data = dataset.load()
    assert sorted_rows(data) == [
        (14527, "D", "Thursday"),
        (17850, "85123A", "Wednesday"),
        (17850, "85123A", "Wednesday"),
    ]
    assert dataset.without_customer() == 1 and repr(dataset) == "OnlineRetail()"
    assert data.domain.labels == (("22139", "85123A", "D"), DAYS)
    assert data.bound is UNBOUNDED and data.truth_public


# Twins

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
    assert data.truth_public and eval(repr(twin), vars(datasets)) == twin
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


def test_means_are_records_over_users():
    means = [(p[2] / p[0]) for _, p in TABLE4]
    assert [round(mean, 1) for mean in means] == [58.8, 28.2, 165.6, 209.3]  # 60.2 is printed


def test_most_users_are_occasional_where_the_paper_says_so():
    assert np.median(InteractionsTwin.foursquare().sizes()) < 10
    sizes = InteractionsTwin.netflix().sizes()
    assert (sizes < 2000).mean() > 0.99 and sizes[0] == 17_000


@pytest.mark.slow
@pytest.mark.parametrize("preset, printed", TABLE4, ids=lambda x: getattr(x, "__name__", ""))
@pytest.mark.parametrize("users", [50, 1000])
def test_slices_keep_the_means(preset, printed, users):
    twin = preset().slice(users)
    assert twin.users == users and twin.records == printed[2] * users // printed[0]
    data = twin.load()
    assert np.bincount(data.users, minlength=users).max() == twin.max_per_user
    assert np.bincount(data.items).min() >= 1 and data.items.max() == twin.items - 1
    assert eval(repr(twin), vars(datasets)) == twin
    assert preset().slice(10**9) == preset()


def test_a_twin_is_the_same_for_the_same_seed():
    twin = InteractionsTwin(100, 50, 2000, 300, 2)
    one = twin.load()
    two = twin.load()
    other = InteractionsTwin(100, 50, 2000, 300, 2, seed=1)
    for name in ("users", "items", "contexts"):
        assert (getattr(one, name) == getattr(two, name)).all()
    assert (other.load().items != one.items).any()
    assert (other.sizes() == twin.sizes()).all()


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


def test_a_week_depends_on_the_item_and_on_nothing_else():
    """Seeded: never by chance; sees a share that is off by 0.02, a correlation of 0.05."""
    data = InteractionsTwin.foursquare().load()
    sizes = np.bincount(data.users)
    popular = np.bincount(data.items)
    late = data.contexts >= 4
    own = np.bincount(data.items, late) / popular
    assert own[popular > 100].std() > 0.05  # places have weeks of their own
    occasional = sizes[data.users] < 10
    assert abs(late[occasional].mean() - late.mean()) < 0.02
    everyone = popular > 20
    assert abs(np.corrcoef(own[everyone], np.log(popular[everyone]))[0, 1]) < 0.05


def test_returning_users_go_where_they_have_been():
    for chance in (0.0, 0.9):
        twin = InteractionsTwin(1000, 5000, 50_000, 200, returning=chance, popularity=0.0)
        data = twin.load()
        pairs = len(np.unique(data.users.astype(np.int64) * 5000 + data.items))
        assert abs(pairs / 50_000 - (1 - chance)) < 0.12


@pytest.mark.parametrize(
    "more, field",
    [
        (dict(users=1), "users"),
        (dict(items=0), "items"),
        (dict(items=2_000_000), "records"),
        (dict(records=1000), "records"),
        (dict(records=10**9), "records"),
        (dict(min_per_user=2000), "min_per_user"),
        (dict(min_per_user=100), "records"),
        (dict(once=True, items=1000), "max_per_user"),
        (dict(exponent=0), "exponent"),
        (dict(returning=1.5), "returning"),
        (dict(contexts="month"), "contexts"),
        (dict(alike=0.0), "alike"),
    ],
)
def test_a_twin_checks_its_fields(more, field):
    with pytest.raises(ValueError, match=f"InteractionsTwin.{field}"):
        InteractionsTwin(**more)


# The real thing


@real(Gowalla())
def test_real_gowalla():
    data = Gowalla().load()
    assert len(data.users) == 620_683 and data.domain.shape == (31_803, 7)
    sizes = np.bincount(data.users)
    assert (len(sizes), sizes.min(), sizes.max()) == (5628, 15, 1624)
    assert np.bincount(data.items).min() == 1 and np.bincount(data.contexts).min() > 2000
    assert {row.state for row in published.verify(Gowalla())} == {"ok"}


@real(OnlineRetail())
def test_real_online_retail():
    dataset = OnlineRetail()
    data = dataset.load()
    assert len(data.users) == 406_829 and dataset.without_customer() == 135_080
    assert len(np.unique(data.users)) == 4372 and np.bincount(data.users).max() == 7983
    assert data.domain.shape == (4070, 7) and len(np.unique(data.items)) == 3684
    assert np.bincount(data.contexts, minlength=7)[5] == 0  # no Saturdays


@real(NetflixPrize())
def test_real_netflix():
    data = NetflixPrize().load()
    assert len(data.users) == 100_480_507
    assert len(np.unique(data.users)) == 480_189 and np.bincount(data.users).max() == 17_653


@real(MovieLens())
def test_real_movielens():
    data = MovieLens().load()
    sizes = np.bincount(data.users)[1:]
    assert (len(sizes), sizes.min(), sizes.max()) == (6040, 20, 2314)
    assert len(np.unique(data.items)) == 3706


@real(Foursquare())
def test_real_foursquare():
    assert len(Foursquare().load().users) == 227_428
