"""Points and strings in hierarchies: read as published, nothing mangled; twins have their numbers."""

import numpy as np
import pytest

from tests.datasets.test_datasets import pack, real, refuses
from workbench import datasets
from workbench.data import PUBLIC, Bound
from workbench.datasets import (
    CommutePoints,
    CommuteTwin,
    OnTheMap,
    QueryLogTwin,
    Surnames,
    SurnameStrings,
    Towns,
    commuting_twins,
)
from workbench.datasets import strings as query_log_twin
from workbench.datasets.commuting import populations
from workbench.spaces import SYMBOLS, Prefixes, Quadtree


def held(records) -> dict[str, int]:
    """What is in records of strings: string to count."""
    frame = records.to_frame()
    return dict(zip(frame.iloc[:, 0], frame["count"], strict=True))


def test_the_text_of_a_view_can_be_pasted():
    for one in (
        OnTheMap(("ma", "ri"), 2010).points(12),
        Surnames(2010).strings(9),
        SurnameStrings(),
        CommuteTwin(100, 8, seed=3),
        Towns(100, 3, 0.5, 8, seed=3),
        QueryLogTwin(1000, distinct=50, depth=20),
    ):
        assert eval(repr(one), vars(datasets) | {"Bound": Bound, "PUBLIC": PUBLIC}) == one
    assert repr(OnTheMap(year=2010).points()) == "CommutePoints(dataset=OnTheMap(year=2010))"
    assert CommutePoints.truth_public is True and "One unit is" in CommutePoints.__doc__
    assert {f.name for f in OnTheMap().points().files()} == {f.name for f in OnTheMap().files()}


@pytest.mark.parametrize(
    "make, field",
    [
        (lambda: OnTheMap(part="aux").points(), "CommutePoints.dataset.*block"),
        (lambda: OnTheMap(level="tract").points(), "CommutePoints.dataset.*block"),
        (lambda: CommutePoints(Surnames()), "CommutePoints.dataset"),
        (lambda: OnTheMap().points(0), "CommutePoints.depth = 0"),
        (lambda: OnTheMap().points(33), "CommutePoints.depth = 33"),
        (lambda: CommuteTwin(0), "CommuteTwin.records = 0"),
        (lambda: CommuteTwin(depth=17), "CommuteTwin.depth = 17"),
        (lambda: Towns(0), "Towns.records = 0"),
        (lambda: Towns(spread=-1), "Towns.spread = -1"),
        (lambda: Towns(depth=33), "Towns.depth = 33"),
        (lambda: Surnames(5000), "Surnames.year = 5000"),
        (lambda: SurnameStrings(2000), "SurnameStrings.year = 2000"),
        (lambda: SurnameStrings(depth=0), "SurnameStrings.depth = 0"),
        (lambda: QueryLogTwin(10, distinct=11), "QueryLogTwin.distinct = 11.*queries = 10"),
        (lambda: QueryLogTwin(depth=25), "QueryLogTwin.depth = 25"),
        (lambda: QueryLogTwin(0), "QueryLogTwin.queries = 0"),
    ],
)
def test_fields_say_what_they_allow(make, field):
    with pytest.raises(ValueError, match=field):
        make()


# OnTheMap as points

HEAD = "w_geocode,h_geocode,S000,createdate"
A, B, C, D = (f"4400{x}" for x in ("10301001000", "10301001001", "70102002003", "90415001034"))
BARRINGTON = "Barrington town (Bristol, RI)"
PROVIDENCE = "Providence city (Providence, RI)"
XWALK = [
    (C, "4400759000", PROVIDENCE, "41.5", "-71.75"),
    (A, "4400105140", BARRINGTON, "41.0", "-71.5"),
    (B, "4400105140", BARRINGTON, "41.25", "-71.0"),
    (D, "9999999999", "", "42.0", "-72.0"),  # at sea
]


def xwalk(rows=XWALK) -> str:
    head = "tabblk2010,ctycsub,ctycsubname,blklatdd,blklondd,createdate\n"
    return head + "".join(f'{b},{c},"{p}",{y},{x},20211018\n' for b, c, p, y, x in rows)


@pytest.fixture
def island(folder):
    pack(folder / "onthemap/ri_xwalk.csv.gz", xwalk())
    rows = [(A, C, 3), (C, A, 2), (A, A, 5)]
    text = "\n".join([HEAD, *(f"{w},{h},{n},20211018" for w, h, n in rows)])
    pack(folder / "onthemap/ri_od_main_JT00_2019.csv.gz", text)
    return folder / "onthemap"


def test_jobs_are_points_of_home_and_work(island):
    points = OnTheMap().points(depth=2)
    box = dict(low=(41.0, -72.0) * 2, high=(42.0, -71.0) * 2)
    names = ("home_lat", "home_lon", "work_lat", "work_lon")
    assert points.hierarchy == points.domain == Quadtree(4, 2, **box, attributes=names)
    records = points.load()
    assert records.bound == Bound(1) and records.truth_public and records.hierarchy.depth == 2
    assert (len(records), records.total, records.left_out) == (3, 10, {})
    # Cells of a quarter of a degree: A is (0, 2), C is (2, 1).
    frame = records.to_frame()
    found = frame[[f"{n}_from" for n in names] + ["count"]].to_numpy().tolist()
    assert sorted(found) == [
        [41.0, -71.5, 41.0, -71.5, 5],
        [41.0, -71.5, 41.5, -71.75, 2],  # C, A: lives in A
        [41.5, -71.75, 41.0, -71.5, 3],
    ]


def test_points_of_lodes_8_are_those_of_its_blocks(island):
    old = OnTheMap().points(2).load()
    pack(island / "ri_xwalk.csv.gz", xwalk().replace("tabblk2010", "tabblk2020"))
    new = OnTheMap().points(2).load()
    assert (new.keys == old.keys).all() and new.hierarchy == old.hierarchy


def test_jobs_of_one_cell_add_up(island):
    assert len(OnTheMap().points(1).load()) == 3
    pack(island / "ri_xwalk.csv.gz", xwalk([*XWALK[:3], (D, "", "", "90", "180")]))
    one = OnTheMap().points(1).load()  # far away from all others, that now share a cell
    assert (len(one), one.total) == (1, 10)


def test_the_tree_and_the_places_are_public(island):
    (island / "ri_od_main_JT00_2019.csv.gz").unlink()
    points = OnTheMap().points()
    assert points.hierarchy.depth == 16 and points.hierarchy.digits.word_count == 1
    blocks = points.blocks
    assert [*blocks] == ["block", "place", "latitude", "longitude"]
    assert list(blocks["block"]) == [A, B, C, D] and blocks["place"].isna().tolist()[-1]
    places = points.places()
    assert places.values.tolist() == [
        [PROVIDENCE, 178_042, 1, 41.5, -71.75],
        [BARRINGTON, 16_310, 2, 41.125, -71.25],
    ]
    blocks.loc[:, "latitude"] = 0.0  # nobody else's
    assert points.blocks["latitude"][0] == 41.0
    with pytest.raises(FileNotFoundError, match="ri_od_main_JT00_2019"):
        points.load()


def test_populations_are_those_of_rhode_island_only(island):
    text = xwalk([("01" + A[2:], "0100100001", "Newport town (Newport, AL)", "33", "-86")])
    pack(island / "al_xwalk.csv", text)
    places = OnTheMap(("al", "ri")).points().places()
    assert list(places["place"]) == [PROVIDENCE, BARRINGTON, "Newport town (Newport, AL)"]
    assert places["population"].isna().tolist() == [False, False, True]
    assert str(places["population"].dtype) == "Int64"


def test_the_populations_add_up_to_those_of_the_counties():
    counties = {
        49_875: ("Barrington", "Bristol", "Warren"),
        166_158: ("Coventry", "East Greenwich", "Warwick", "West Greenwich", "West Warwick"),
        82_888: ("Jamestown", "Little Compton", "Middletown", "Newport", "Portsmouth", "Tiverton"),
        126_979: (
            "Charlestown", "Exeter", "Hopkinton", "Narragansett", "New Shoreham",
            "North Kingstown", "Richmond", "South Kingstown", "Westerly",
        ),
    }  # fmt: skip
    population = populations()
    for people, towns in counties.items():
        assert sum(population[town] for town in towns) == people
    assert len(population) == 39 and sum(population.values()) == 1_052_567
    assert 1_052_567 - sum(counties) == 626_667  # Providence County


def test_all_blocks_in_one_point_cannot_be_halved(island):
    pack(island / "ri_xwalk.csv.gz", xwalk(XWALK[1:2]))
    with pytest.raises(ValueError, match="Quadtree.low.*below high"):
        _ = OnTheMap().points().hierarchy


@pytest.mark.slow
@real(OnTheMap())
def test_real_points():
    points = OnTheMap().points()
    records = points.load()
    blocks = points.blocks
    places = points.places()
    assert (len(records), records.total) == (372_191, 406_052) and not records.left_out
    assert points.hierarchy.low == (41.129706, -71.8949018) * 2
    assert points.hierarchy.high == (42.0180951, -71.1216728) * 2
    assert len(blocks) == 25_181 and blocks["place"].isna().sum() == 30
    assert list(places["place"][:2]) == [PROVIDENCE, "Warwick city (Kent, RI)"]
    assert places["population"].sum() == 1_052_567
    assert places["population"].isna().sum() == 1  # two blocks that are now of Massachusetts
    assert places.dropna()["place"].iloc[-1] == "New Shoreham town (Washington, RI)"
    assert places["blocks"].sum() == 25_181 - 30
    coarse = OnTheMap().points(3).load()
    assert coarse.total == 406_052 and len(coarse) == records.level(3)[0].shape[1]


# CommuteTwin


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


def test_the_commute_twin_is_the_same_for_the_same_parameters():
    keys = CommuteTwin(10_000).load().keys
    assert (CommuteTwin(10_000).load().keys == keys).all()
    assert (CommuteTwin(10_000, seed=1).load().keys != keys).any()
    coarse = CommuteTwin(10_000, depth=3).load()
    assert (coarse.keys == keys >> np.uint64(4 * 13)).all()
    assert len(CommuteTwin(1).load()) == 1
    places = CommuteTwin(10_000).places()
    assert len(places) == 3000 and (np.diff(places["population"]) <= 0).all()
    assert abs(places["population"].sum() - 8500) < 600  # rounded


def test_the_commute_twin_is_made_in_parts(monkeypatch):
    monkeypatch.setattr(commuting_twins, "_AT_ONCE", 1000)
    records = CommuteTwin(10_500).load()
    assert len(records) == 10_500 and (np.diff(records.keys.astype(float)) >= 0).all()


# Towns


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


def test_towns_are_the_same_for_the_same_parameters():
    keys = Towns(10_000).load().keys
    assert (Towns(10_000).load().keys == keys).all()
    assert (Towns(10_000, seed=1).load().keys != keys).any()
    assert (Towns(10_000, depth=4).load().keys == keys >> np.uint64(2 * 6)).all()
    assert len(Towns(1).load()) == 1 and Towns(1000, spread=1e4, depth=32).load().total == 1000


# Surnames as strings

CENSUS = (
    "name,rank,count,prop100k\r\nSMITH,1,2442977,828\r\nNULL,2,15,1\r\nSMITHSON,3,14,1\r\n"
    "ALL OTHER NAMES,0,29312001,9936.97\r\n"
)


def test_surnames_of_a_census_and_of_so_many_ranks():
    assert Surnames(2010) == Surnames() and Surnames(2010).domain.size == 20_000
    assert Surnames(n=2010).domain.size == 2010
    assert Surnames(n=3).strings() == SurnameStrings()  # all names, whatever n


def test_surnames_letter_by_letter(folder):
    path = pack(folder / "surnames" / "Names_2010Census.csv.gz", CENSUS)
    records = Surnames(2010).strings().load()
    assert records.hierarchy == Prefixes("abcdefghijklmnopqrstuvwxyz", 15, "name")
    assert records.hierarchy == SurnameStrings().hierarchy == SurnameStrings().domain
    assert held(records) == {"smith": 2442977, "null": 15, "smithson": 14}
    assert records.bound == Bound(1) and records.truth_public and not records.left_out
    short = SurnameStrings(depth=5).load()
    assert short.total == 2442992 and short.left_out == {"too long": 14}
    pack(path, CENSUS.replace("SMITHSON,3,14", ",3,14"))
    refuses(SurnameStrings(), path, "row 3", "'name'", "nothing")
    pack(path, CENSUS.replace(",14,", ",-14,"))
    refuses(SurnameStrings(), path, "row 3", "'count'", "'-14'")
    path.unlink()
    with pytest.raises(FileNotFoundError, match="workbench data fetch surnames"):
        SurnameStrings().load()


@real(SurnameStrings())
def test_real_surnames_letter_by_letter():
    records = SurnameStrings().load()
    assert not records.left_out and (records.counts.max(), records.counts.min()) == (
        2442977,
        100,
    )
    if SurnameStrings().files()[0].find().name == "census_2010.parquet":
        assert (len(records), records.total) == (162_252, 265_660_058)
    names = held(records)
    assert names["smith"] == 2442977 and names["garcia"] == 1166120
    assert SurnameStrings(depth=14).load().left_out.keys() == {"too long"}
    ranks = np.sort(records.counts)[::-1][:20_000]
    assert (ranks == Surnames(2010).load().counts).all()


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
    assert held(at_20).items() <= held(log).items()


def test_the_query_log_is_the_same_for_the_same_parameters(log):
    again = QueryLogTwin(900_000).load()
    assert (again.keys == log.keys).all() and (again.counts == log.counts).all()
    other = QueryLogTwin(900_000, seed=1).load()
    assert (other.keys != log.keys).any()
    assert (np.sort(other.counts) == np.sort(log.counts)).all()  # the law's


@pytest.mark.slow
@pytest.mark.parametrize(
    "queries, distinct", [(1, 1), (7, 7), (100, 1), (1000, 999), (10**9, 5)]
)
def test_small_query_logs_are_exact_too(queries, distinct):
    records = QueryLogTwin(queries, distinct).load()
    assert (len(records), records.total) == (distinct, queries)


def test_different_choices_spell_different_queries():
    www, stems, numbers, endings, *later = query_log_twin._parts()
    for part in (www, stems, numbers, endings, *later):
        assert len(set(part)) == len(part)
    assert all(stem.isalpha() for stem in stems) and all(n.isdigit() for n in numbers[1:])
    assert all(end.startswith(".") for end in endings[1:])
    assert all(word[0] == " " and word[1:].isalpha() for word in later[0][1:])


@pytest.mark.slow
def test_a_query_log_of_millions_of_strings():
    records = QueryLogTwin(20_000_000, distinct=3_000_000).load()
    assert (len(records), records.total) == (3_000_000, 20_000_000)
    assert records.hierarchy.digits.word_count == 2
