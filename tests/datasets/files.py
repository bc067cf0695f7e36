"""Small files in their publishers' formats, of which each loader reads some."""

import gzip
import lzma
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from workbench import datasets
from workbench.data import Interactions, Records
from workbench.datasets import checkins, hay2010, ratings, retail


def dataset(text):
    """The dataset that a text spells, made anew: it may keep what it has read."""
    names = {name: getattr(datasets, name) for name in datasets.__all__}
    return eval(text, names) if isinstance(text, str) else text


def real(text):
    """Skips a test where the dataset's files are not at hand."""
    try:
        lacks = [file.find() for file in dataset(text).files()] and ""
    except FileNotFoundError as e:
        lacks = str(e)
    return pytest.mark.skipif(bool(lacks), reason=lacks)


def zipped(path: Path, members) -> Path:
    """An archive with these files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def pack(path: Path, text: str | bytes) -> Path:
    """Writes `text`, compressed as the suffix says."""
    data = text.encode() if isinstance(text, str) else text
    if path.suffix == ".zip":
        return zipped(path, {path.stem: data})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes({".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)(data))
    return path


def held(data) -> Counter:
    """What is in a table (labels), records (places or strings) or records of users, and how often."""
    if isinstance(data, Interactions):
        items = data.domain.decode("item", data.items).tolist()
        contexts = data.domain.decode("context", data.contexts).tolist()
        return Counter(zip(data.users.tolist(), items, contexts, strict=True))
    frame = data.to_frame()
    names = [
        x for x in frame if not x.endswith("_to") and x != "count" and frame[x].dtype != bool
    ]
    if not isinstance(data, Records):
        names = [*data.domain.attributes]
    rows = frame[[*names, "count"]].to_numpy().tolist()
    return Counter({tuple(row[:-1]): row[-1] for row in rows})


def refuses(text, *words):
    """Loading is a ValueError that has all these words."""
    with pytest.raises(ValueError) as error:
        dataset(text).load()
    for word in words:
        assert str(word) in str(error.value), error.value


# OnTheMap: Alabama and Rhode Island

A, B, C = "010010201001000", "010010201001001", "010030102002003"
P, Q, R, S = (f"4400{x}" for x in ("10301001000", "10301001001", "70102002003", "90415001034"))
BARRINGTON = "Barrington town (Bristol, RI)"
PROVIDENCE = "Providence city (Providence, RI)"
HEAD = "w_geocode,h_geocode,S000,SA01,SA02,SA03,SE01,SE02,SE03,SI01,SI02,SI03,createdate"
ISLAND = [
    (R, "4400759000", PROVIDENCE, "41.5", "-71.75"),
    (P, "4400105140", BARRINGTON, "41.0", "-71.5"),
    (Q, "4400105140", BARRINGTON, "41.25", "-71.0"),
    (S, "9999999999", "", "42.0", "-72.0"),  # at sea
]


def od(*rows) -> str:
    """A LODES file: each row is (work, home, jobs)."""
    return "\n".join([HEAD, *(f"{w},{h},{n},{n},{'0,' * 8}20211018" for w, h, n in rows), ""])


def xwalk(*rows, field="tabblk2010") -> str:
    """A crosswalk, with quoted fields that hold commas."""
    head = f"{field},ctycsub,ctycsubname,blklatdd,blklondd,createdate\n"
    return head + "".join(f'{b},{c},"{p}",{y},{x},20211018\n' for b, c, p, y, x in rows)


def alabama(*blocks, **more) -> str:
    """A crosswalk with letters that are not ASCII."""
    return xwalk(*((b, "0", "Cañon, AL", "33", "-86") for b in blocks), **more)


FILMS = {
    1: "1:\n6,3,2005-09-06\n2649429,5,2004-02-29\n",
    2: "2:\n6,1,1999-11-11\n",
    3: "3:\n30878,4,2005-12-26\n6,4,2005-12-31\n",
}
PLACES = [
    (30.2, -97.7),
    (32.7, -97),
    (37.7, -122.4),
    (47, -122),
    (40.7, -74),
    (51, 0),
    (-37, 144),
]
VENUES = "49bbd6c0f964a520f4531fe3", "4a43c0aef964a520c6a61fe3"
CENSUS = (
    "name,rank,count,prop100k,cum_prop100k,pctwhite\r\n"
    "SMITH,1,2442977,828.19,828.19,70.9\r\nNULL,2,15,1,1,(S)\r\nSMITHSON,3,14,1,1,(S)\r\n"
    "ALL OTHER NAMES,0,29312001,9936.97,9936.97,66.65\r\n"
)
FLOWS = (
    "Home State FIPS CODE,HOME COUNTY FIPS CODE,WORK STATE FIPS CODE,WORK COUNTY FIPS CODE,"
    "Workers in Commuting Flow,Margin of Error\r\n"
    '1,1,1,1,"8,635",597\r\n1,1,72,153,16,23\r\n1,9,301,,8,12\r\n1,3,,,51,53\r\n1,39,303,,7,10\r\n'
    ',,,,,\r\n"Source: U.S. Census Bureau, 2009-2013.",,,,,\r\n'
    '"Data are based on a sample. A measure of an estimate\x92s variability.",,,,,\r\n'
)
ADULT = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male,"
    " 2174, 0, 40, United-States, <=50K\n"
    "54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian-Pac-Islander, Male,"
    " 0, 0, 60, South, >50K\n\n"
)


def census(age=73, birthplace="Vietnam", income="- 50000.") -> str:
    """A row of Census Income."""
    fields = dict.fromkeys(range(42), "0") | {0: age, 34: birthplace, 3: 30, 41: income}
    return ", ".join(str(fields[i]) for i in range(42)) + "\n"


def check_in(user, venue, offset, time) -> str:
    """A row of Foursquare."""
    return f'{user}\t{venue}\t4bf58dd8\tCaf"\xe9\t40.60\t-74.04\t{offset}\t{time} +0000 2012\n'


GOOD = {  # by name; in latin-1
    "al_od_main_JT00_2019.csv": od((A, C, 3), (B, C, 2), (C, A, 1)),
    "al_od_aux_JT00_2019.csv": od(
        (A, "060010201001000", 2), (B, "060750102002003", 1), (C, "440010301001008", 1)
    ),
    "al_xwalk.csv": alabama(C, A, B),
    "ri_od_main_JT00_2019.csv": od((P, R, 3), (R, P, 2), (P, P, 5)),
    "ri_xwalk.csv": xwalk(*ISLAND),
    "jtw2009_2013.csv": FLOWS,
    "adult.data": ADULT,
    "adult.test": "|1x3 Cross validator\n25, Private, 226802, 11th, 7, Never-married, "
    "Machine-op-inspct, Own-child, Black, Male, 0, 0, 40, United-States, <=50K.\n\n",
    "census-income.data": census() + census(90, "?", "50000+.") + census(72),
    "combined_data_1.txt": FILMS[1] + FILMS[2],
    "combined_data_2.txt": FILMS[3],
    "ratings.dat": "1::1193::5::978300760\n2::1::3::978300760\n1::3952::4::978220760\n",
    "users.dat": "1::F::1::10::48067\n2::M::56::16::70072\n3::M::25::15::55117\n",
    "movies.dat": "1::Toy Story (1995)::Animation\n1193::Cuckoo's N\xe9st\x85 (1975)::Drama\n",
    "Gowalla_train.txt": "0\t1\t28\r\n3\t2\t1",
    "Gowalla_tune.txt": "0\t0\t2\r\n",
    "Gowalla_test.txt": "0\t4\t1\r\n3\t3\t1\r\n1\t5\t3",
    "Gowalla_poi_coos.txt": "\n".join(f"{k}\t{y}\t{x}" for k, (y, x) in enumerate(PLACES)),
    "loc-gowalla_totalCheckins.txt": "0\t2010-10-19T23:55:27Z\t30.23\t-97.79\t22847\n"
    "0\t2010-05-31T23:59:59Z\t30.23\t-97.79\t420315\n"
    "2\t2010-10-18T22:17:43Z\t59.2\t18.0\t9410\n0\t2010-10-20T00:00:00Z\t30.2\t-97.8\t22847\n",
    "dataset_TSMC2014_NYC.txt": check_in(470, VENUES[0], -240, "Tue Apr 03 18:00:09")
    + check_in(1083, VENUES[1], -240, "Wed Apr 04 03:00:25")
    + check_in(470, VENUES[0], 540, "Tue Apr 03 18:00:09"),
    "dataset_TSMC2014_TKY.txt": check_in(470, VENUES[0], 540, "Tue Apr 03 18:00:09"),
    "online_retail.csv": "InvoiceNo,StockCode,Description,InvoiceDate,CustomerID,Country\n"
    '536365,85123A,"HEART, WHITE",2010-12-01 08:26:00,17850.0,UK\n'
    "C536379,D,Discount,2010-12-02 09:41:00,14527,UK\n"
    "536366,85123A,HEART,2010-12-01 08:28:00,17850.0,UK\n"
    "536414,22139,,2011-12-09 23:59:59,,UK\n",
    "search_logs.txt": "0\n5\n",
    "ca-GrQc.txt": '# Directed graph, each pair twice, say: "toy.txt\n# FromNodeId\tToNodeId\n'
    "0\t1\n1 0\n2   1\n\n0\t1\n3\t3\n 4\t0\t\n",
    "Names_2010Census.csv": CENSUS,
}


def write_good(folder: Path, monkeypatch, suffix="") -> None:
    """All good files, and what the loaders know of their size."""
    monkeypatch.setattr(ratings, "PARTS", ((1, 2, 3), (3, 3, 2)))
    monkeypatch.setattr(checkins, "PLACES", 7)
    monkeypatch.setattr(checkins, "CHECKINS", {"train": 29, "tune": 2, "test": 5})
    monkeypatch.setattr(checkins, "FORMS", {"nyc": (1083, 3), "tky": (1083, 1)})
    monkeypatch.setattr(retail, "LINES", 4)
    monkeypatch.setitem(hay2010.SNAP, "ca-GrQc", (5, ""))
    for name, text in GOOD.items():
        pack(folder / (name + suffix), text.encode("latin-1"))
