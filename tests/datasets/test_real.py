"""The published files, where they are at hand."""

import numpy as np
import pytest

from tests.datasets.files import dataset, held, real
from workbench.datasets import (
    Adult,
    CommutingFlows,
    Gowalla,
    OnlineRetail,
    OnTheMap,
    RetailHours,
    Surnames,
    SurnameStrings,
    published,
)

FOUR = '("Age", "Birthplace", "Occupation", "Income")'
TABLES = [  # cells of the domain, cells that are not empty, total
    ("OnTheMap()", (25_181**2, 372_191, 406_052)),  # the main file alone
    ('OnTheMap(level="tract")', (244**2, 41_649, 406_052)),
    ('OnTheMap(level="tract2")', (10**2, None, 406_052)),
    ('OnTheMap(level="county")', (5**2, None, 406_052)),
    ('OnTheMap(part="aux")', (25_181 * 52, 11_928, 70_737)),
    ("CommutingFlows()", (3224 * 3221, 137_492, 140_843_659)),
    ("Adult()", (907_200, 8_619, 48_842)),
    ('Adult(missing="drop")', (752_640, 8_114, 46_033)),
    ("CensusIncome()", (3_939_373_620, 77_508, 199_523)),
    (f"CensusIncome({FOUR}, age_band=5)", (76_798, 7_098, 199_523)),
    ("NetTrace()", (65_536, 2_228, 25_714)),
    ("SearchLogs()", (32_768, 15_696, 335_889)),
    ("SocialNetwork()", (11_342, None, 674_708)),
    ("KeywordFrequencies()", (20_000, 20_000, None)),
    ("SnapDegrees()", (5242, 5241, 2 * 14_484)),
    ('SnapDegrees("ca-HepTh")', (9877, 9875, 2 * 25_973)),
    ('SnapDegrees("p2p-Gnutella08")', (6301, 6301, 2 * 20_777)),
    ("RetailHours()", (8976, 2758, 40_802)),
    ("RetailHours(most=7983)", (8976, 2893, 541_909 - 135_080)),
]
RECORDS = [  # shape of the domain, records, users, most records of a user
    ("Gowalla()", ((31_803, 7), 620_683, 5628, 1624)),
    ("OnlineRetail()", ((4070, 7), 406_829, 4372, 7983)),
    ("NetflixPrize()", ((17_770, 7), 100_480_507, 480_189, 17_653)),
    ("MovieLens()", ((3952, 6), 1_000_209, 6040, 2314)),
    ("Foursquare()", (None, 227_428, None, None)),
]


def same(found, published):
    """All numbers that are published are as they are found."""
    return all(b in (None, a) for a, b in zip(found, published, strict=True))


def where_real(rows):
    """Each dataset's case, skipped where its files are not at hand."""
    return [pytest.param(*row, marks=real(row[0]), id=row[0]) for row in rows]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize("text, numbers", where_real(TABLES))
def test_real_tables(text, numbers):
    table = dataset(text).load()
    assert same((table.domain.size, len(table), table.total), numbers)


@pytest.mark.parametrize("text, numbers", where_real(RECORDS))
def test_real_records(text, numbers):
    data = dataset(text).load()
    sizes = np.bincount(data.users)
    assert same((data.domain.shape, len(data), (sizes > 0).sum(), sizes.max()), numbers)


def test_real_files_are_the_recorded_ones():
    assert {row.state for row in published.verify()} <= {"ok", "missing", "by hand"}


@pytest.mark.slow
@real("OnTheMap()")
def test_real_points():
    points = OnTheMap().points()
    records = points.load()
    places = points.places()
    assert (len(records), records.total) == (372_191, 406_052) and not records.left_out
    assert points.hierarchy.low == (41.129706, -71.8949018) * 2
    assert points.hierarchy.high == (42.0180951, -71.1216728) * 2
    assert len(points.blocks) == 25_181 and points.blocks["place"].isna().sum() == 30
    assert list(places["place"][:2]) == [
        "Providence city (Providence, RI)",
        "Warwick city (Kent, RI)",
    ]
    assert places["population"].sum() == 1_052_567
    assert places["population"].isna().sum() == 1  # two blocks that are now of Massachusetts
    assert places["blocks"].sum() == 25_181 - 30
    coarse = OnTheMap().points(3).load()
    assert coarse.total == 406_052 and len(coarse) == records.level(3)[0].shape[1]


@real("CommutingFlows()")
def test_real_commuting_flows():
    table = CommutingFlows().load()
    by_work = table.project(("work",)).to_frame().set_index("work")["count"]
    assert by_work["Canada"] == 11_510 and by_work[-3:].sum() == 105_262
    assert held(table)["01001", "01001"] == 8635


@real("Adult()")
def test_real_adult():
    assert Adult(("Income",)).load().counts.tolist() == [37_155, 11_687]
    with pytest.warns(UserWarning, match="left out 2809 of 48842"):
        Adult(missing="drop").load()


@real("Surnames()")
def test_real_surnames():
    table = Surnames().load()
    assert len(table) == 20_000 and table.counts[0] == 2_442_977
    assert (np.diff(table.counts) <= 0).all()
    records = SurnameStrings().load()
    assert not records.left_out and SurnameStrings(depth=14).load().left_out.keys() == {
        "too long"
    }
    assert (np.sort(records.counts)[::-1][:20_000] == table.counts).all()
    assert held(records)["garcia",] == 1166120 and records.counts.min() == 100
    if Surnames().files()[0].find().name == "census_2010.parquet":
        assert (table.total, table.counts[-1]) == (222_342_652, 1339)
        assert (len(records), records.total) == (162_252, 265_660_058)


@real("OnlineRetail()")
def test_real_shop():
    data = OnlineRetail().load()
    assert len(np.unique(data.items)) == 3684
    assert np.bincount(data.contexts, minlength=7)[5] == 0  # no Saturdays
    by_hour = RetailHours(most=7983).load().dense().reshape(-1, 24).sum(axis=0)
    assert by_hour[:6].sum() == 0 and by_hour.argmax() == 12


@real("Gowalla()")
def test_real_gowalla():
    data = Gowalla().load()
    assert np.bincount(data.users).min() == 15 and np.bincount(data.items).min() == 1
    assert np.bincount(data.contexts).min() > 2000
