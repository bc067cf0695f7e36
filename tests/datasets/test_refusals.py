"""What loaders refuse: a good file, what is changed in it, and the words of the error."""

import pytest

from tests.datasets import test_adaptive2009 as points
from tests.datasets.test_datasets import (
    ADULT,
    FLOWS,
    TEST,
    A,
    B,
    C,
    census,
    od,
    pack,
    refuses,
    xwalk,
)
from tests.datasets.test_fan2015 import CHECKINS, NETFLIX, PARTS, RATINGS, SHOP, USERS, WHERE
from tests.datasets.test_hay2010 import EDGES
from workbench import datasets
from workbench.datasets import (
    Adult,
    CensusIncome,
    CommutingFlows,
    Foursquare,
    Gowalla,
    MovieLens,
    NetflixPrize,
    OnlineRetail,
    OnTheMap,
    RetailHours,
    SearchLogs,
    SnapDegrees,
    checkins,
    hay2010,
    ratings,
    retail,
)

ALABAMA = OnTheMap(states=("al",))
JOBS, BLOCKS = "al_od_main_JT00_2019.csv", "al_xwalk.csv"
RHODE_ISLAND = "440010301001008"
SNAP = (
    "0\t2010-10-19T23:55:27Z\t30.2\t-97.7\t22847\n2\t2010-10-18T22:17:43Z\t59.2\t18.0\t9410\n"
)
FILMS = {k: f"{k}:\n{text}" for k, text in NETFLIX.items()}
GOOD = {
    JOBS: od((A, B, 1), (B, B, 2)),
    BLOCKS: xwalk(C, A, B),
    "ri_od_main_JT00_2019.csv": points.HEAD + f"\n{points.A},{points.B},1,20211018\n",
    "ri_xwalk.csv": points.xwalk(),
    "adult.data": ADULT,
    "adult.test": TEST,
    "census-income.data": census() + census(age=90, income="50000+.", birthplace="?"),
    "jtw2009_2013.csv": FLOWS.decode("latin-1"),
    "combined_data_1.txt": FILMS[1] + FILMS[2],
    "combined_data_2.txt": FILMS[3],
    "ratings.dat": RATINGS,
    "users.dat": USERS,
    "movies.dat": "1::Toy Story (1995)::Animation\n",
    **{f"Gowalla_{part}.txt": text for part, text in PARTS.items()},
    "Gowalla_poi_coos.txt": "\n".join(f"{k}\t{y}\t{x}" for k, (y, x) in enumerate(WHERE)),
    "loc-gowalla_totalCheckins.txt": SNAP,
    "dataset_TSMC2014_NYC.txt": CHECKINS,
    "online_retail.csv": SHOP,
    "search_logs.txt": "0\n5\n",
    "ca-GrQc.txt": EDGES,
}
DATASETS = {
    JOBS: ALABAMA,
    BLOCKS: ALABAMA,
    "ri_xwalk.csv": OnTheMap().points(),
    "adult.data": Adult(),
    "census-income.data": CensusIncome(("Age", "Birthplace", "Occupation", "Income")),
    "jtw2009_2013.csv": CommutingFlows(),
    "combined_data_1.txt": NetflixPrize(),
    "ratings.dat": MovieLens(),
    "users.dat": MovieLens(),
    **{f"Gowalla_{part}.txt": Gowalla() for part in (*PARTS, "poi_coos")},
    "loc-gowalla_totalCheckins.txt": Gowalla("snap"),
    "dataset_TSMC2014_NYC.txt": Foursquare(),
    "online_retail.csv": OnlineRetail(),
    "search_logs.txt": SearchLogs(),
    "ca-GrQc.txt": SnapDegrees(),
}
N1, M, G = "combined_data_1.txt", "ratings.dat", "Gowalla_tune.txt"
S, F, R = "loc-gowalla_totalCheckins.txt", "dataset_TSMC2014_NYC.txt", "online_retail.csv"
FLOW, WEST, GRAPH = "jtw2009_2013.csv", "Gowalla_poi_coos.txt", "ca-GrQc.txt"
RATED, LAST = "1::3952::4::978220760", "6,1,1999-11-11"
REFUSED = [  # the file, what is replaced by what, and what is said
    (JOBS, B + ",2", f"{C[1:]},2", "row 2", "h_geocode", repr(C[1:])),  # a spreadsheet ate the zero
    (JOBS, f"{B},2", f"{B},x", "row 2", "S000", "'x'"),
    (JOBS, f"{B},2", f"{B},0", "row 2", "S000", "'0'"),
    (JOBS, f"{B},2", f"{B},-1", "row 2", "S000", "'-1'"),
    (JOBS, f"{B},2", f"{B},1.5", "row 2", "S000", "'1.5'"),
    (JOBS, f"{B},2", f"{B},", "row 2", "S000", "nothing"),
    (JOBS, B + ",2", ",2", "row 2", "h_geocode", "nothing"),
    (JOBS, A + ",", RHODE_ISLAND + ",", "row 1", "w_geocode", RHODE_ISLAND, "al_xwalk.csv"),
    (JOBS, ",20211018", "", "Expected 13 columns, got 12"),
    (JOBS, "20211018", "20211018,1", "Expected 13 columns, got 14"),
    (JOBS, "S000", "jobs", "no column S000", "jobs"),
    (JOBS, A, '"' + A, "cannot be read"),
    (BLOCKS, A + ",", RHODE_ISLAND + ",", "row 2", "tabblk2010", RHODE_ISLAND, "with 01"),
    (BLOCKS, "2010", "2000", "no field tabblk2010 or tabblk2020", "tabblk2000"),
    (BLOCKS, f"{B},01", "010010201001009,01", JOBS, "row 2", "w_geocode", "of LODES 7 (tabblk2010)"),
    *[
        ("ri_xwalk.csv", "41.0,-71.5", bad, "row 2", field, "degrees from")
        for bad, field in [
            ("x,-71", "blklatdd"),
            ("91,-71", "blklatdd"),
            ("nan,-71", "blklatdd"),
            ("41,", "blklondd"),
            ("41,-180.5", "blklondd"),
        ]
    ],
    ("adult.data", "White", "Blue", "row 1", "Race", "'Blue'", "Amer-Indian-Eskimo"),
    ("adult.data", " White,", "", "Expected 15 columns, got 14"),
    ("census-income.data", "90", "91", "row 2", "Age", "from 0 to 90"),
    ("census-income.data", "30", "47", "row 1", "Occupation", "from 0 to 46"),
    (FLOW, "1,1,72,153,16,23", "1,2,1,1,5,5", "row 2", "home county", "'01002'", "counties.txt"),
    (FLOW, "1,1,72,153,16,23", "1,1,302,,5,5", "row 2", "work county", "nothing", "or abroad"),
    (FLOW, "1,1,72,153,16,23", "1,1,99,1,5,5", "row 2", "work county", "'99001'"),
    (FLOW, "8,635", "5,x", "row 1", "workers", "'5x'"),
    (FLOW, '"8,635"', "", "row 1", "workers", "nothing"),
    *[
        (N1, LAST, bad, "row 5", "a day (YYYY-MM-DD) from 1998-10-01")
        for bad in ("6,3,2005-09-31", "6,3,2003-02-29", "6,3,2005-13-01", "6,3,1998-09-30",
                    "6,3,2006-01-01")
    ],
    *[
        (N1, LAST, bad, "row 5", bad[:50], "customer,rating,date")
        for bad in ("6,3,2005-9-06", "6,3,2005/01/01", "7,3,2005-09-06x", "6,3,", "6,3", "6",
                    "x,3,2005-09-06", "-7,3,2005-09-06", "7,10,2005-09-06", "7,0,2005-09-06",
                    "7,6,2005-09-06", "2;", "9" * 5000, "99999999999,3,2005-09-06")
    ],
    (N1, LAST, "0,3,2005-09-06", "row 5", "a customer from 1 to 2649429"),
    (N1, LAST, "2649430,3,2005-09-06", "row 5", "a customer from 1 to 2649429"),
    (N1, LAST, "", "films 1 to 2 have 2 ratings; need 3"),
    (N1, LAST, f"{LAST}\n7,1,1999-11-11", "films 1 to 2 have 4 ratings; need 3"),
    (N1, "6,3,2005-09-06", "2649429,3,2005-09-06", "user 2649429 has item 1 a second time"),
    (N1, "1:\n6,3,2005-09-06", "6,3,2005-09-06\n1:", "row 1", "after the film 1 and a colon"),
    (N1, "1:\n", "", "row 3", "films 1 to 2, each once and in order"),
    (N1, "2:\n", "1:\n", "row 4", "films 1 to 2, each once and in order"),
    (N1, "2:\n", "3:\n", "row 4", "films 1 to 2, each once and in order"),
    (N1, "2:\n" + LAST + "\n", "", "ends before film 2"),
    (N1, "2:\n" + LAST, "2:\n" + LAST + "\n3:", "row 6", "films 1 to 2"),
    (M, RATED, "1::1193::5::978300761", "user 1 has item 1193 a second time"),
    (M, RATED, "1::1::5", "row 3", "userId::movieId::rating::timestamp"),
    (M, RATED, RATED + "::1", "row 3", "userId::movieId::rating::timestamp"),
    (M, RATED, "4::1::5::978300760", "user 4 is not in users.dat"),
    (M, RATED, "6041::1::5::978300760", "row 3", "'userId'", "1 to 6040"),
    (M, RATED, "1::3953::5::978300760", "row 3", "'movieId'", "'3953'", "1 to 3952"),
    (M, RATED, "1::0::5::978300760", "row 3", "'movieId'"),
    (M, RATED, "1::1::6::978300760", "row 3", "'rating'"),
    (M, RATED, "1::1::3.5::978300760", "row 3", "'rating'"),
    (M, RATED, "1::1::::978300760", "row 3", "'rating'", "nothing"),
    (M, RATED, "1::1::5::97830076", "row 3", "'timestamp'", "'97830076'"),
    (M, RATED, "1::1::5::yesterday", "row 3", "'timestamp'"),
    ("users.dat", "3::M::25", "3::X::25", "row 3", "'gender'"),
    ("users.dat", "3::M::25", "3::M::26", "row 3", "'age'"),
    ("users.dat", "3::M::25", "9999::M::25", "row 3", "'userId'"),
    ("users.dat", "3::M::25::15", "3::M::25", "row 3", "userId::gender::age"),
    ("Gowalla_test.txt", "1\t5\t3", "1\t5", "Expected 3 columns, got 2"),
    ("Gowalla_test.txt", "1\t5\t3", "1\t5\t", "row 3", "'count'"),
    ("Gowalla_train.txt", "28", "2", "found 3 check-ins", "need 29"),
    ("Gowalla_train.txt", "28", "30", "row 1", "'count'", "1 to 29"),
    (G, "0\t0\t2", "0\t7\t2", "row 1", "'place'", "0 to 6"),
    (G, "0\t0\t2", "5628\t0\t2", "row 1", "'user'", "0 to 5627"),
    (G, "0\t0\t2", "0\t0\t0", "row 1", "'count'"),
    (G, "0\t0\t2", "0\t0\t1.5", "row 1", "'count'"),
    (WEST, "30.2", "91", "row 1", "'latitude'"),
    (WEST, "-97.7", "x", "row 1", "'longitude'"),
    (WEST, "1\t32.7", "0\t32.7", "need each place from 0 to 6 once"),
    (S, "2010-10-18T", "2010-02-30T", "row 2", "'time'", "2010-02-30"),
    (S, "2010-10-18T22:17:43Z", "2010-10-18", "row 2", "'time'"),
    (S, "\t9410", "", "Expected 5 columns, got 4"),
    (S, "2\t2010", "x\t2010", "row 2", "'user'"),
    (S, "9410", "9410x", "row 2", "'place'"),
    (S, SNAP, "", "found 0 rows"),
    (F, "Tue Apr 03", "Wed Apr 03", "row 1", "'time'", "Wed Apr 03"),
    (F, "Tue Apr 03", "Tue Apr 31", "row 1", "'time'"),
    (F, "-240\tWed", "x\tWed", "row 2", "'offset'"),
    (F, "1083\t", "1084\t", "row 2", "'user'", "1 to 1083"),
    (F, "4a43c0ae", "4A43c0ae", "row 2", "'venue'"),
    (F, "40.60\t", "", "Expected 8 columns, got 7"),
    (F, CHECKINS, CHECKINS.split("\n")[0], "found 1 rows, need 3"),
    (R, "2010-12-02 09:41:00", "12/2/2010 9:41", "row 2", "'InvoiceDate'", "12/2/2010"),
    (R, "14527", "x", "row 2", "'CustomerID'", "'x'"),
    (R, "14527", "99999", "row 2", "'CustomerID'", "12346 to 18287"),
    (R, ",D,", ",,", "row 2", "'StockCode'"),
    (R, "536414,22139,,56,2010-12-05 11:52:00,0.0,,UK\n", "", "found 3 rows, need 4"),
    *[
        ("search_logs.txt", "5", bad, "row 2", bad, "an integer >= 0")
        for bad in ("-1", "1.5", "x", "1,2", "3 4", "nan", '"5', "9" * 20)
    ],
    *[
        (GRAPH, " 4\t0\t", bad, "row 6", "two node ids")
        for bad in ("1", "1 2 3", "a b", "1,2", "-1 2", "1.0 2", "1 2 # no")
    ],
    (GRAPH, "3\t3", "3\t9", "6 nodes; need 5"),
]  # fmt: skip


@pytest.fixture
def good(folder, monkeypatch):
    """A folder of small files that all load."""
    monkeypatch.setattr(ratings, "PARTS", ((1, 2, 3), (3, 3, 2)))
    monkeypatch.setattr(checkins, "PLACES", 7)
    monkeypatch.setattr(checkins, "CHECKINS", {"train": 29, "tune": 2, "test": 5})
    monkeypatch.setitem(checkins.FORMS, "nyc", (1083, 3))
    monkeypatch.setattr(retail, "LINES", 4)
    monkeypatch.setitem(hay2010.SNAP, "ca-GrQc", (5, ""))
    for name, text in GOOD.items():
        pack(folder / name, text.encode("latin-1"))
    return folder


def test_good_files_load(good):
    for text in {*map(repr, DATASETS.values())}:
        assert len(eval(text, vars(datasets)).load())


@pytest.mark.parametrize(
    "refused", REFUSED, ids=lambda x: f"{x[0]} {x[2]}"[:40].replace("\n", " ")
)
def test_loaders_refuse(good, refused):
    name, old, new, *words = refused
    text = GOOD[name]
    assert old in text
    pack(good / name, text.replace(old, new, 1).encode("latin-1"))
    anew = eval(repr(DATASETS[name]), vars(datasets))  # it may keep what it has read
    refuses(anew, *words)


def test_crosswalks_of_two_versions_are_refused(good):
    pack(good / "ri_xwalk.csv", points.xwalk().replace("tabblk2010", "tabblk2020"))
    words = ("ri_xwalk.csv, which is of LODES 8 (tabblk2020)", "al_xwalk.csv", "LODES 7")
    refuses(OnTheMap(states=("al", "ri")), *words, "need one version")


@pytest.mark.parametrize(
    "bad", ["12/1/2010 8:26", "", "2010-12-01", "2010-11-30 23:59:59", "2011-12-10 00:00:00"]
)
def test_a_time_outside_the_period_or_badly_written_is_refused(good, bad):
    pack(good / R, SHOP.replace("2010-12-02 09:41:00", bad))
    found = repr(bad) if bad else "nothing"
    refuses(RetailHours(), R, "row 2", "'InvoiceDate'", found, "2011-12-10")
