"""Loaders read what publishers publish, and say where a file is refused."""

import numpy as np
import polars as pl
import pytest

from tests.datasets.files import (
    ADULT,
    BARRINGTON,
    CENSUS,
    FILMS,
    GOOD,
    ISLAND,
    PROVIDENCE,
    VENUES,
    A,
    B,
    C,
    P,
    R,
    S,
    alabama,
    census,
    dataset,
    held,
    od,
    pack,
    refuses,
    write_good,
    xwalk,
    zipped,
)
from workbench import DP
from workbench.data import UNBOUNDED, Bound, Interactions, Records, SparseTable
from workbench.datasets import (
    Adult,
    CommutingFlows,
    Foursquare,
    Gowalla,
    KeywordFrequencies,
    MovieLens,
    NetflixPrize,
    NetTrace,
    OnlineRetail,
    OnTheMap,
    RetailHours,
    SearchLogs,
    SnapDegrees,
    SocialNetwork,
    Surnames,
    SurnameStrings,
    commuting,
    hay2010,
    published,
    retail,
)
from workbench.datasets import ratings as netflix_prize
from workbench.datasets.checkins import REGIONS as _REGIONS
from workbench.mechanisms import LPA, BasicAdaptiveHistogram, StabilityHistogram
from workbench.mechanisms.laws import differences_in_replay
from workbench.spaces import Prefixes, Quadtree

REGIONS = tuple(_REGIONS)
FOUR = '("Age", "Birthplace", "Occupation", "Income")'
ALABAMA = {(A, C): 3, (B, C): 2, (C, A): 1}
RHODE_ISLAND = {(P, R): 3, (R, P): 2, (P, P): 5}
RATED = [
    (6, 1, "Tuesday"),
    (6, 2, "Thursday"),
    (6, 3, "Saturday"),
    (30878, 3, "Monday"),
    (2649429, 1, "Sunday"),
]
MORE_LINES = "".join(  # of one customer, who buys at more hours than are kept
    f"600{h},D,Discount,2010-12-03 {h}:30:00,15000,UK\n" for h in range(10, 22)
)
LOADS = {  # the bound, and what is held
    'OnTheMap(("al",))': (Bound(1), ALABAMA),
    'OnTheMap(("al",), level="tract2")': (
        Bound(1),
        {("0100102", "0100301"): 5, ("0100301", "0100102"): 1},
    ),
    'OnTheMap(("al",), level="county")': (
        Bound(1),
        {("01001", "01003"): 5, ("01003", "01001"): 1},
    ),
    'OnTheMap(("ri", "al"))': (Bound(1), ALABAMA | RHODE_ISLAND),
    'OnTheMap(("al",), part="aux", level="county")': (
        Bound(1),
        {("01001", "06"): 3, ("01003", "44"): 1},
    ),
    "OnTheMap().points(2)": (
        Bound(1),
        {  # cells of a quarter of a degree; home first
            (41.0, -71.5, 41.0, -71.5): 5,
            (41.0, -71.5, 41.5, -71.75): 2,
            (41.5, -71.75, 41.0, -71.5): 3,
        },
    ),
    "CommutingFlows()": (
        Bound(1),
        {
            ("01001", "01001"): 8635,
            ("72153", "01001"): 16,
            ("Canada", "01009"): 8,
            ("elsewhere abroad", "01003"): 51,
            ("Mexico", "01039"): 7,
        },
    ),
    'Adult(("Income", "Age"))': (
        Bound(1),
        {("<=50K", 25): 1, ("<=50K", 39): 1, (">50K", 54): 1},
    ),
    'Adult(("Workclass", "Race"))': (
        Bound(1),
        {
            ("Private", "Black"): 1,
            ("State-gov", "White"): 1,
            ("?", "Asian-Pac-Islander"): 1,
        },
    ),
    f"CensusIncome({FOUR}, age_band=5)": (
        Bound(1),
        {("70-74", "Vietnam", 30, "- 50000"): 2, ("90+", "?", 30, "50000+"): 1},
    ),
    "NetflixPrize()": (Bound(3, 1), RATED),
    "MovieLens()": (
        Bound(3952, 1),
        [(1, 1193, "F under 25"), (1, 3952, "F under 25"), (2, 1, "M above 34")],
    ),
    "Gowalla()": (
        UNBOUNDED,
        {
            (0, 1, REGIONS[1]): 28,
            (0, 0, REGIONS[0]): 2,
            (0, 4, REGIONS[4]): 1,
            (3, 2, REGIONS[2]): 1,
            (3, 3, REGIONS[3]): 1,
            (1, 5, REGIONS[5]): 3,
        },
    ),
    'Gowalla("snap")': (
        UNBOUNDED,
        [
            (0, 22847, "Tuesday"),
            (0, 22847, "Wednesday"),
            (0, 420315, "Monday"),
            (2, 9410, "Monday"),
        ],
    ),
    'Gowalla("austin")': (UNBOUNDED, [(0, 22847, "Tuesday"), (0, 22847, "Wednesday")]),
    "Foursquare()": (
        UNBOUNDED,
        [
            (470, VENUES[0], "Tuesday"),
            (470, VENUES[0], "Wednesday"),
            (1083, VENUES[1], "Tuesday"),
        ],
    ),
    'Foursquare("tky")': (UNBOUNDED, [(470, VENUES[0], "Wednesday")]),
    "OnlineRetail()": (
        UNBOUNDED,
        {(14527, "D", "Thursday"): 1, (17850, "85123A", "Wednesday"): 2},
    ),
    "RetailHours()": (Bound(10, 10, 10), {(8,): 2, (33,): 1}),
    "RetailHours(most=1)": (Bound(1, 1, 1), {(8,): 1, (33,): 1}),
    "SearchLogs()": (Bound(1), {(1,): 5}),
    "SnapDegrees()": (Bound(2, 1), {(0,): 2, (1,): 2, (2,): 1, (4,): 1}),
    "Surnames(n=3)": (Bound(1), {(1,): 2442977, (2,): 15, (3,): 14}),
    "SurnameStrings()": (Bound(1), {("smith",): 2442977, ("null",): 15, ("smithson",): 14}),
}


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zip"])
def test_loaders_read_files_as_published(folder, monkeypatch, suffix):
    write_good(folder, monkeypatch, suffix)
    for text, (bound, rows) in LOADS.items():
        data = dataset(text).load()
        assert data.bound == bound and data.truth_public, text
        assert held(data) == (rows if isinstance(rows, dict) else dict.fromkeys(rows, 1)), text
        if hasattr(data, "users"):
            assert (np.diff(data.users) >= 0).all() and data.distinct == (bound != UNBOUNDED)
            assert data.users.dtype == np.int32 and data.contexts.dtype == np.uint8
            assert data.domain == dataset(text).domain and data.items.dtype == np.uint16


ONE_MORE = {  # a unit more: in which file, in place of what
    'OnTheMap(("al",))': ("al_od_main_JT00_2019.csv", f"{A},{C},3", f"{A},{C},4"),
    "OnTheMap().points(2)": ("ri_od_main_JT00_2019.csv", f"{P},{R},3", f"{P},{R},4"),
    "CommutingFlows()": ("jtw2009_2013.csv", "153,16,", "153,17,"),
    'Adult(("Income", "Age"))': ("adult.data", ADULT, ADULT + ADULT.splitlines()[1]),
    f"CensusIncome({FOUR}, age_band=5)": ("census-income.data", census(72), 2 * census(72)),
    "MovieLens()": ("ratings.dat", "1::3952", "3::1::1::9\n3::3952::1::9\n1::3952"),
    'Gowalla("snap")': (
        "loc-gowalla_totalCheckins.txt",
        "2\t2010",
        "7\t2010-05-31T23:59:59Z\t30.23\t-97.79\t22847\n2\t2010",
    ),
    "OnlineRetail()": ("online_retail.csv", "536366", MORE_LINES + "536366"),
    "RetailHours()": ("online_retail.csv", "536366", MORE_LINES + "536366"),
    "SearchLogs()": ("search_logs.txt", "5", "6"),
    "SnapDegrees()": ("ca-GrQc.txt", "3\t3", "3\t3\n3\t1"),
    "Surnames(n=3)": ("Names_2010Census.csv", "NULL,2,15", "NULL,2,16"),
    "SurnameStrings()": ("Names_2010Census.csv", "NULL,2,15", "NULL,2,16"),
}


@pytest.mark.parametrize("text", ONE_MORE)
def test_one_unit_more_in_a_published_file_moves_what_noise_hides(good, monkeypatch, text):
    """Noise is recorded on one file and replayed on the other, which has one more person, job or edge."""
    one = dataset(text).load()
    file, old, new = ONE_MORE[text]
    assert GOOD[file].count(old) == 1
    pack(good / file, GOOD[file].replace(old, new).encode("latin-1"))
    monkeypatch.setattr(retail, "LINES", 4 + MORE_LINES.count("\n"))
    other = dataset(text).load()
    mechanism = {
        SparseTable: StabilityHistogram(DP(1.0, 1e-6)),
        Records: BasicAdaptiveHistogram(DP(1.0), threshold=30, depth=2),
        Interactions: LPA(DP(1.0), bound=3),
    }[type(one)]
    assert held(one) != held(other)
    for pair in ((one, other), (other, one)):
        assert differences_in_replay(mechanism, *pair) == []


# Variations


def test_the_domain_of_jobs_is_the_crosswalk_and_not_the_file(good):
    pack(good / "al_od_main_JT00_2019.csv", od())
    data = OnTheMap(("al",), level="tract")
    assert data.domain.labels[0] == ("01001020100", "01003010200")
    with pytest.warns(UserWarning, match="al_od_main_JT00_2019.csv has no row below the names"):
        assert len(data.load()) == 0
    assert len(OnTheMap(("al",), part="aux").domain.labels[1]) == 52


@pytest.mark.parametrize("year", [2008, 2019, 2022])
def test_the_crosswalk_and_not_the_year_says_which_blocks_there_are(good, year):
    new = "010010201001005"  # of the 2020 census
    path = pack(good / f"al_od_main_JT00_{year}.csv", od((A, new, 3)))
    words = (path, "row 1", new, "al_xwalk.csv, which is of LODES 7 (tabblk2010)")
    refuses(OnTheMap(("al",), year), *words, f"is {path.name} of that version?")
    assert all("/LODES7/al/" in file.url for file in OnTheMap(("al",), year).files())
    pack(good / "al_xwalk.csv", alabama(A, new, field="tabblk2020"))
    assert held(OnTheMap(("al",), year).load()) == {(A, new): 3}
    assert all("/LODES8/al/" in file.url for file in OnTheMap(("al",), year).files())
    words = ("al_xwalk.csv, which is of LODES 8 (tabblk2020)", "ri_xwalk.csv", "LODES 7")
    refuses(OnTheMap(("al", "ri"), year), *words, "need one version")
    (good / "al_xwalk.csv").unlink()
    version = 7 if year < 2020 else 8
    assert f"/LODES{version}/al/" in OnTheMap(("al",), year).files()[0].url
    with pytest.raises(FileNotFoundError, match="al_xwalk.csv.*workbench data fetch onthemap"):
        OnTheMap(("al",), year).load()


def test_the_tree_and_the_places_of_points_are_public(good):
    (good / "ri_od_main_JT00_2019.csv").unlink()
    points = OnTheMap().points(2)
    box = dict(low=(41.0, -72.0) * 2, high=(42.0, -71.0) * 2)
    names = ("home_lat", "home_lon", "work_lat", "work_lon")
    assert points.hierarchy == points.domain == Quadtree(4, 2, **box, attributes=names)
    assert [*points.blocks] == ["block", "place", "latitude", "longitude"]
    assert len(points.blocks) == 4 and points.blocks["place"].isna().tolist()[-1]
    assert points.places().values.tolist() == [
        [PROVIDENCE, 178_042, 1, 41.5, -71.75],
        [BARRINGTON, 16_310, 2, 41.125, -71.25],
    ]
    with pytest.raises(FileNotFoundError, match="ri_od_main_JT00_2019"):
        points.load()
    alone = ("01" + A[2:], "0100100001", "Newport town (Newport, AL)", "33", "-86")
    pack(good / "al_xwalk.csv", xwalk(alone))
    places = OnTheMap(("al", "ri")).points().places()
    assert places["population"].isna().tolist() == [False, False, True]  # of Rhode Island only
    assert str(places["population"].dtype) == "Int64"


def test_jobs_of_one_cell_add_up(good):
    assert len(OnTheMap().points(1).load()) == 3
    pack(good / "ri_xwalk.csv", xwalk(*ISLAND[:3], (S, "", "", "90", "180")))
    one = OnTheMap().points(1).load()  # far away from all others, that now share a cell
    assert (len(one), one.total) == (1, 10)
    pack(good / "ri_xwalk.csv", xwalk(ISLAND[1]))
    with pytest.raises(ValueError, match="Quadtree.low.*below high"):
        _ = OnTheMap().points().hierarchy


def test_populations_and_counties_are_those_of_the_census():
    towns = commuting.populations()
    assert len(towns) == 39 and towns["population"].sum() == 1_052_567
    by_county = towns.group_by(pl.col("place").str.extract(r"\((.*), RI")).agg(
        pl.sum("population")
    )
    assert dict(by_county.iter_rows()) == {
        "Bristol": 49_875,
        "Kent": 166_158,
        "Newport": 82_888,
        "Washington": 126_979,
        "Providence": 626_667,
    }
    counties = commuting.counties()
    assert len(counties) == len(set(counties)) == 3221 and list(counties) == sorted(counties)
    states = ("48", "13", "11", "10", "15", "72")
    found = [sum(c[:2] == s for c in counties) for s in states]
    assert found == [254, 159, 1, 3, 5, 78] and {c[:2] for c in counties} == {*commuting.STATES}


def test_the_other_form_of_commuting_flows(good):
    text = (
        "h_state_fips,h_county_fips,w_state_fips,w_county_fips,flow,moe\n"
        "01,001,001,001,8635,597\n01,001,072,153,16,23\n01,009,301,NA,8,12\n01,003,NA,NA,51,53\n"
        "01,039,303,NA,7,10\nNA,NA,NA,NA,NA,NA\n"
        '"Source: U.S. Census Bureau, 2009-2013.",NA,NA,NA,NA,NA\n'
    )
    pack(good / "jtw2009_2013.csv", text)
    table = CommutingFlows().load()
    assert table.domain.shape == (3224, 3221)
    assert held(table) == LOADS["CommutingFlows()"][1]


def test_adults_of_whom_something_is_not_known(good):
    assert Adult().load().domain.shape == (9, 16, 7, 15, 6, 5, 2)
    with pytest.warns(UserWarning, match="left out 1 of 3 people"):
        table = Adult(missing="drop").load()
    assert table.domain.shape == (8, 16, 7, 14, 6, 5, 2) and table.total == 2
    assert Adult(("Sex",), missing="drop").load().total == 3  # nothing chosen is unknown
    assert Adult(("Sex",), part="training").load().total == 2


def test_netflix_of_a_file_a_film_and_from_an_archive(good):
    zipped(good / "archive.zip", {f"combined_data_{k}.txt": "" for k in (1, 2)})
    assert held(NetflixPrize().load()) == dict.fromkeys(RATED, 1)  # plain files come first
    (good / "combined_data_1.txt").unlink()
    (good / "combined_data_2.txt").unlink()
    texts = {f"combined_data_{k}.txt": GOOD[f"combined_data_{k}.txt"] for k in (1, 2)}
    path = zipped(good / "archive.zip", texts | {"movie_titles.csv": b""})
    assert held(NetflixPrize().load()) == dict.fromkeys(RATED, 1)
    zipped(path, texts | {"combined_data_2.txt": "3:\n6,5,2000-01-01x\n"})
    refuses(NetflixPrize(), path / "combined_data_2.txt", "row 2", "customer,rating,date")
    path.unlink()
    for film, text in FILMS.items():
        text = text.replace("\n", "\r\n")
        pack(good / f"netflix_prize/training_set/mv_{film:07}.txt.gz", text)
    assert held(NetflixPrize().load()) == dict.fromkeys(RATED, 1)
    (good / "netflix_prize/training_set/mv_0000002.txt.gz").unlink()
    with pytest.raises(FileNotFoundError, match="no training_set/mv_0000002.txt.*withdrawn"):
        NetflixPrize().load()


def test_netflix_cut_anywhere_is_refused(good):
    path = good / "combined_data_1.txt"
    whole = path.read_bytes()
    for size in (0, 1, 3, 10, 17, 30, 37, 39, 42, 50, len(whole) - 2):
        path.write_bytes(whole[:size])
        refuses(NetflixPrize(), path)
    path.write_bytes(whole[:-1])  # the last line's end
    assert held(NetflixPrize().load()) == dict.fromkeys(RATED, 1)
    assert sum(count for *_, count in netflix_prize.PARTS) == 5


def test_archives_are_read_as_they_are_published(folder, good):
    names = ("ml-1m/movies.dat", "ml-1m/ratings.dat", "ml-1m/users.dat")
    members = {name: GOOD[name[6:]].encode("latin-1") for name in names}
    for name in names:
        (good / name[6:]).unlink()
    path = zipped(folder / "movielens/ml-1m.zip", members | {"ml-1m/README": "cite"})
    assert len(MovieLens().load()) == 3 and MovieLens().files()[0].find() == path
    assert MovieLens().titles() == {1: "Toy Story (1995)", 1193: "Cuckoo's Nést\x85 (1975)"}
    numbers = ("2 users (published: 6,040)", "3 ratings (published: 1,000,209)")
    assert MovieLens().remarks() == numbers
    assert {f.name for f in MovieLens().files()} == {*names}
    del members["ml-1m/users.dat"]
    zipped(path, members)
    with pytest.raises(FileNotFoundError, match="no ml-1m/users.dat.*need not be unpacked"):
        MovieLens().load()
    name = "dataset_TSMC2014_NYC.txt"
    text = GOOD[name].encode("latin-1")
    (good / name).unlink()
    members = {f"dataset_tsmc2014/{name}": text, "dataset_tsmc2014/readme.txt": "cite"}
    path = zipped(folder / "foursquare/dataset_tsmc2014.zip", members)
    assert len(Foursquare().load()) == 3
    (row,) = published.verify(Foursquare())
    assert row.state == "unknown" and row.size == path.stat().st_size
    zipped(path, {f"dataset_tsmc2014/{name}": text + b"470\tx\n"})
    refuses(Foursquare(), path / name, "Expected 8 columns, got 2")
    path.write_bytes(path.read_bytes()[:-30])
    refuses(Foursquare(), path, "damaged")


def test_lines_without_a_customer_are_left_out_but_their_items_are_known(good):
    data = OnlineRetail()
    assert len(data.load()) == 3 and data.domain.labels[0] == ("22139", "85123A", "D")
    assert Gowalla("snap").domain.labels[0] == (9410, 22847, 420315)


def test_a_customer_keeps_at_most_so_many_lines_whatever_the_others_do(folder):
    rng = np.random.default_rng(1)
    rows = [(f"c{u}", int(h)) for u in range(40) for h in rng.integers(0, 200, 3 * u)]

    def table(rows, **more):
        text = "".join(f"2010-12-{1 + h // 24:02} {h % 24:02}:00:00,{u}\n" for u, h in rows)
        pack(folder / "online_retail.csv", "InvoiceDate,CustomerID\n" + text)
        return RetailHours(**more).load().dense()

    whole = table(rows, most=10)
    assert whole.sum() == sum(min(10, 3 * u) for u in range(40))
    assert (table(rows[::-1], most=10) == whole).all()  # nor does the file's order matter
    for customer in ("c39", "c20", "c2"):
        moved = abs(whole - table([r for r in rows if r[0] != customer], most=10))
        assert moved.sum() <= 10
        alone = table([r for r in rows if r[0] == customer], most=10)
        assert (moved == alone).all()
    assert (table(rows, most=10, seed=1) != whole).any()
    assert (table(rows, most=10**6) == np.bincount([h for _, h in rows], minlength=8976)).all()


@pytest.mark.slow
def test_every_line_of_a_customer_is_as_likely_as_any_other(folder):
    """Seeded: never by chance; sees an event that is off by six standard errors (37 %)."""
    text = "".join(f"2010-12-01 {h:02}:00:00,a\n" for h in range(12))
    pack(folder / "online_retail.csv", "InvoiceDate,CustomerID\n" + text)
    kept = sum(RetailHours(most=3, seed=s).load().dense()[:12] for s in range(800))
    assert kept.sum() == 2400 and abs(kept - 200).max() < 6 * (200 * 3 / 4) ** 0.5


def test_one_edge_more_moves_two_degrees_by_one(good, monkeypatch):
    monkeypatch.setitem(hay2010.SNAP, "ca-GrQc", (50, ""))
    rng = np.random.default_rng(0)
    ends = np.concatenate([rng.integers(0, 50, (300, 2)), np.stack([np.arange(50)] * 2, 1)])
    for last in ((3, 4), (49, 0), (7, 7)):
        both = []
        for more in (ends, np.concatenate([ends, [last]])):
            pack(good / "ca-GrQc.txt", "".join(f"{a} {b}\n" for a, b in more))
            both.append(SnapDegrees().load().dense())
        moved = abs(both[1] - both[0])
        assert moved.sum() in (0, 2) and moved.max() <= 1
    assert both[0].sum() == 2 * len({frozenset(e) for e in ends.tolist() if e[0] != e[1]})


HAY = [
    (NetTrace, 65_536, "michaelghay/vldb2010data"),
    (SearchLogs, 32_768, "be cited"),
    (SocialNetwork, 11_342, "cited and not redistributed"),
    (KeywordFrequencies, 20_000, "nobody publishes it"),
]


@pytest.mark.parametrize("cls, size, how", HAY)
def test_a_file_of_another_length_loads_and_says_so(folder, cls, size, how):
    with pytest.raises(FileNotFoundError, match=f"{cls.name}.*{how}.*{size:,} lines") as error:
        cls().load()
    assert "workbench data fetch" not in str(error.value)
    with pytest.raises(FileNotFoundError, match="cannot be fetched: .* publish"):
        published.fetch(cls.__name__)
    assert cls().domain.shape == (size,)
    path = pack(folder / cls.name, "1\n" * size)
    assert cls().remarks() == () and cls().is_sorted()
    assert published.verify(cls())[0].state == "unknown"
    pack(path, "2\n0\n" * 4000)
    table = cls().load()
    assert table.domain == cls().domain and table.domain.shape == (8000,)
    assert (table.total, table.bound) == (8000, cls.bound) and not cls().is_sorted()
    assert cls().remarks() == (f"8,000 lines (published: {size:,})",)
    pack(path, "9\n4\n4\n0\n")
    assert cls().is_sorted()


def test_surnames_of_an_archive_a_rendering_and_so_many_ranks(good):
    assert Surnames(2010) == Surnames() and Surnames(2010).domain.size == 20_000
    assert Surnames(n=3).strings() == SurnameStrings()  # all names, whatever n
    short = SurnameStrings(depth=5).load()
    assert short.hierarchy == Prefixes("abcdefghijklmnopqrstuvwxyz", 5, "name")
    assert short.total == 2442992 and short.left_out == {"too long": 14}
    refuses("Surnames(n=4)", "Names_2010Census.csv: found 3 names, need 4")
    (good / "Names_2010Census.csv").unlink()
    with pytest.raises(FileNotFoundError, match="workbench data fetch surnames"):
        Surnames().load()
    frame = pl.DataFrame({"name": ["A", "B", "ALL OTHER NAMES"], "count": [9, 7, 100]})
    path = good / "census_2010.parquet"
    frame.with_columns(rank=pl.Series([1, 2, 0])).write_parquet(path)
    assert Surnames(n=2).load().counts.tolist() == [9, 7]
    frame.with_columns(count=pl.Series([9, None, 100])).write_parquet(path)
    refuses("Surnames(n=2)", path, "row 2", "'count'", "nothing")
    frame.drop("count").write_parquet(path)
    refuses("Surnames(n=2)", path, "has no column count")
    archive = {"Names_2010Census.xlsx": b"PK", "Names_2010Census.csv": CENSUS}
    zipped(good / "surnames/names.zip", archive)
    assert Surnames(n=2).load().counts.tolist() == [2442977, 15]
    assert published.verify("surnames")[0].state == "unknown"


# Refusals

JOBS, BLOCKS = "al_od_main_JT00_2019.csv", "al_xwalk.csv"
N1, M, G = "combined_data_1.txt", "ratings.dat", "Gowalla_tune.txt"
SNAP, F, SHOP = "loc-gowalla_totalCheckins.txt", "dataset_TSMC2014_NYC.txt", "online_retail.csv"
FLOW, WEST, GRAPH = "jtw2009_2013.csv", "Gowalla_poi_coos.txt", "ca-GrQc.txt"
READ_BY = {
    JOBS: 'OnTheMap(("al",))',
    BLOCKS: 'OnTheMap(("al",))',
    "al_od_aux_JT00_2019.csv": 'OnTheMap(("al",), part="aux")',
    "ri_xwalk.csv": "OnTheMap().points()",
    "adult.data": "Adult()",
    "census-income.data": f"CensusIncome({FOUR})",
    FLOW: "CommutingFlows()",
    N1: "NetflixPrize()",
    M: "MovieLens()",
    "users.dat": "MovieLens()",
    **{f"Gowalla_{part}.txt": "Gowalla()" for part in ("train", "tune", "test", "poi_coos")},
    SNAP: 'Gowalla("snap")',
    F: "Foursquare()",
    SHOP: "OnlineRetail()",
    "search_logs.txt": "SearchLogs()",
    GRAPH: "SnapDegrees()",
    "Names_2010Census.csv": "SurnameStrings()",
}
RATED_LAST, LAST = "1::3952::4::978220760", "6,1,1999-11-11"
REFUSED = [  # the file, what is replaced by what, and what is said
    (JOBS, f"{C},2", f"{C[1:]},2", "row 2", "h_geocode", repr(C[1:])),  # a spreadsheet ate the zero
    *[(JOBS, f"{C},2", f"{C},{bad}", "row 2", "S000", "integer >= 1") for bad in ("x", "0", "1.5")],
    (JOBS, f"{C},2", ",2", "row 2", "h_geocode", "nothing"),
    (JOBS, f"{A},", f"{P},", "row 1", "w_geocode", P, BLOCKS),
    (JOBS, "S000", "jobs", "no column S000", "jobs"),
    (JOBS, A, '"' + A, "a quote is left open"),
    (BLOCKS, f"{A},", f"{P},", "row 2", "tabblk2010", P, "with 01"),
    (BLOCKS, "2010", "2000", "no field tabblk2010 or tabblk2020", "tabblk2000"),
    ("al_od_aux_JT00_2019.csv", "0600102", "0100102", "row 1", "h_geocode", "outside state 01"),
    *[("ri_xwalk.csv", "41.0,-71.5", f"{bad},-71", "row 2", "blklatdd", "degrees from -90 to 90")
      for bad in ("x", "91", "nan", "")],
    ("adult.data", "White", "Blue", "row 1", "Race", "'Blue'", "Amer-Indian-Eskimo"),
    ("adult.data", " White,", "", "Expected 15 columns, got 14"),
    ("census-income.data", "90", "91", "row 2", "Age", "from 0 to 90"),
    (FLOW, "1,1,72,153,16,23", "1,2,1,1,5,5", "row 2", "home county", "'01002'", "counties.txt"),
    (FLOW, "1,1,72,153,16,23", "1,1,302,,5,5", "row 2", "work county", "nothing", "or abroad"),
    *[(N1, LAST, bad, "row 5", bad[:50], "a customer from 1 to 2649429", "a day (YYYY-MM-DD) from")
      for bad in ("6,3,2005-09-31", "6,3,1998-09-30", "6,3,2006-01-01", "6,3,2005-9-06",
                  "7,3,2005-09-06x", "6,3,", "6", "x,3,2005-09-06", "7,10,2005-09-06", "2;",
                  "9" * 5000, "99999999999,3,2005-09-06", "0,3,2005-09-06")],
    (N1, LAST, "", "found 2 ratings of films 1 to 2, need 3"),
    (N1, "6,3,2005-09-06", "2649429,3,2005-09-06", "user 2649429 has item 1 a second time"),
    (N1, "1:\n6,3,2005-09-06", "6,3,2005-09-06\n1:", "row 1", "its number and a colon, then"),
    (N1, "2:\n", "1:\n", "row 4", "films 1 to 2, each once and in order"),
    (N1, "2:\n" + LAST + "\n", "", "found 1 as its last film, need 2"),
    (N1, "2:\n" + LAST, "2:\n" + LAST + "\n3:", "row 6", "films 1 to 2"),
    (M, RATED_LAST, "1::1193::5::978300761", "user 1 has item 1193 a second time"),
    (M, RATED_LAST, "4::1::5::978300760", "user 4 is not in users.dat"),
    (M, RATED_LAST, "1::3953::5::978300760", "row 3", "'movieId'", "'3953'", "1 to 3952"),
    (M, RATED_LAST, "1::1::::978300760", "row 3", "'rating'", "nothing"),
    ("users.dat", "3::M::25", "3::X::25", "row 3", "'gender'"),
    ("Gowalla_train.txt", "28", "2", "found 3 check-ins", "need 29"),
    ("Gowalla_train.txt", "28", str(2**53), "row 1", "'count'", "1 to 29"),
    (G, "0\t0\t2", "0\t7\t2", "row 1", "'place'", "0 to 6"),
    (WEST, "-97.7", "x", "row 1", "'longitude'"),
    (WEST, "1\t32.7", "0\t32.7", "found 6 different places, need 7"),
    (SNAP, "2010-10-18T", "2010-02-30T", "row 3", "'time'", "2010-02-30"),
    (SNAP, "9410", "9410x", "row 3", "'place'"),
    (SNAP, GOOD[SNAP], "", "found 0 rows"),
    (F, "Tue Apr 03", "Wed Apr 03", "row 1", "'time'", "Wed Apr 03"),
    (F, "1083\t", "1084\t", "row 2", "'user'", "1 to 1083"),
    (F, "4a43c0ae", "4A43c0ae", "row 2", "'venue'"),
    (F, GOOD[F], GOOD[F].split("\n")[0], "found 1 rows, need 3"),
    *[(SHOP, "2010-12-02 09:41:00", bad, "row 2", "'InvoiceDate'", bad or "nothing", "2011-12-10")
      for bad in ("12/1/2010 8:26", "", "2010-11-30 23:59:59", "2011-12-10 00:00:00")],
    (SHOP, "14527", "99999", "row 2", "'CustomerID'", "12346 to 18287"),
    (SHOP, ",D,", ",,", "row 2", "'StockCode'"),
    (SHOP, "536414,22139,,2011-12-09 23:59:59,,UK\n", "", "found 3 rows, need 4"),
    *[("search_logs.txt", "5", bad, "row 2", bad, "an integer >= 0")
      for bad in ("-1", "1.5", "1,2", "3 4", '"5', "9" * 20)],
    *[(GRAPH, " 4\t0\t", bad, "row 6", "two node ids") for bad in ("1", "1 2 3", "-1 2", "1.0 2")],
    (GRAPH, "3\t3", "3\t9", "found 6 nodes, need 5"),
    ("Names_2010Census.csv", "SMITHSON", "", "row 3", "'name'", "nothing"),
    ("Names_2010Census.csv", ",14,", ",1x,", "row 3", "'count'", "'1x'"),
]  # fmt: skip


@pytest.mark.parametrize(
    "refused", REFUSED, ids=lambda x: f"{x[0]} {x[2]}"[:40].replace("\n", " ")
)
def test_loaders_refuse(good, refused):
    name, old, new, *words = refused
    assert old in GOOD[name]
    pack(good / name, GOOD[name].replace(old, new, 1).encode("latin-1"))
    refuses(READ_BY[name], *words)
