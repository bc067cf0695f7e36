"""Loaders read what publishers publish, and say where a file is refuses; twins have their numbers."""

import gzip
import hashlib
import http.server
import io
import lzma
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from workbench import datasets
from workbench.data import Bound
from workbench.datasets import (
    Adult,
    CensusIncome,
    CommutingFlows,
    GaussianSparse,
    OnTheMap,
    OnTheMapTwin,
    commuting,
    commuting_twins,
    published,
)
from workbench.datasets.census import ADULT as ADULT_DOMAIN
from workbench.datasets.kinds import GENERATOR, REAL_FILE, TWIN, kind_of


def real(dataset):
    """Skips a test where the dataset's files are not at hand."""
    try:
        lacks = [file.find() for file in dataset.files()] and ""
    except FileNotFoundError as e:
        lacks = str(e)
    return pytest.mark.skipif(bool(lacks), reason=lacks)


def pack(path: Path, text: str | bytes) -> Path:
    """Writes `text`, compressed as the suffix says."""
    data = text.encode() if isinstance(text, str) else text
    path.parent.mkdir(parents=True, exist_ok=True)
    match path.suffix:
        case ".gz":
            with gzip.open(path, "wb") as file:  # keeps the name, as the publisher's tool does
                file.write(data)
        case ".xz":
            path.write_bytes(lzma.compress(data))
        case ".zip":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr(path.stem, data)
        case _:
            path.write_bytes(data)
    return path


def cells(table) -> dict:
    """What is in a table: labels to count."""
    frame = table.to_frame()
    names = [*table.domain.attributes]
    return {tuple(row[:-1]): row[-1] for row in frame[[*names, "count"]].to_numpy().tolist()}


def refuses(dataset, *texts):
    """Loading is a ValueError that has all these texts."""
    with pytest.raises(ValueError) as error:
        dataset.load()
    for text in texts:
        assert str(text) in str(error.value), error.value


# Every dataset


@pytest.mark.parametrize("dataset", datasets.ALL, ids=lambda d: d.__name__)
def test_a_dataset_is_a_value_that_says_where_it_is_from(dataset):
    one = dataset()
    assert repr(one) == f"{dataset.__name__}()"
    assert eval(repr(one), vars(datasets)) == one and hash(one) == hash(dataset())
    assert dataset.truth_public is True and dataset.cite
    assert all(word in dataset.__doc__ for word in ("One unit is", "Source"))
    if hasattr(one, "files"):
        assert "Terms:" in dataset.__doc__
        for file in one.files():
            known = file.sha256 or file.renderings
            assert file.how or file.url.startswith("https://") and known


@pytest.mark.parametrize("dataset", datasets.ALL, ids=lambda d: d.__name__)
def test_a_dataset_says_whether_it_is_a_file_a_twin_or_a_generator(dataset):
    one = dataset()
    assert one.kind == dataset.kind == kind_of(one)
    assert (one.kind == REAL_FILE) == hasattr(one, "files")
    if one.kind == TWIN:
        assert one.original and {*one.invented}


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


def test_files_of_somebody_elses_dataset_are_found_by_its_name(folder, monkeypatch):
    module = """
from workbench.datasets.published import File


class Trips:
    def files(self):
        return (File("trips", "trips.csv", how="ask for it"),)
"""
    (folder.parent / "somebodys_trips.py").write_text(module)
    monkeypatch.syspath_prepend(folder.parent)
    with pytest.raises(ValueError, match="dataset 'Trips' has no published files"):
        published.path("Trips")
    monkeypatch.setenv("WORKBENCH_WITH", "somebodys_trips")
    with pytest.raises(FileNotFoundError, match="ask for it"):
        published.path("Trips")
    path = pack(folder / "trips/trips.csv.gz", "x")
    assert published.path("Trips") == (path,)
    assert published.verify("somebodys_trips:Trips")[0].state == "unknown"


def test_fields_say_what_they_allow():
    for make, field in [
        (lambda: OnTheMap(states=("xx",)), "OnTheMap.states"),
        (lambda: OnTheMap(states=["ri"]), "OnTheMap.states"),
        (lambda: OnTheMap(states=("ri", "ri")), "OnTheMap.states"),
        (lambda: OnTheMap(year=2001), "OnTheMap.year"),
        (lambda: OnTheMap(level="zip"), "OnTheMap.level"),
        (lambda: Adult(("Age", "Weight")), "Adult.attributes"),
        (lambda: CensusIncome(()), "CensusIncome.attributes"),
        (lambda: CensusIncome(age_band=10), "CensusIncome.age_band"),
        (lambda: GaussianSparse(m=2**63), "GaussianSparse.m"),
        (lambda: GaussianSparse(density=1.1), "GaussianSparse.density"),
    ]:
        with pytest.raises(ValueError, match=field):
            make()


def test_importing_the_room_loads_no_reader():
    code = (
        "import sys, workbench.datasets; "
        "print([m for m in ('polars', 'pooch', 'pandas', 'scipy', 'requests') if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]", run.stderr


# Made-up data


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
    again = GaussianSparse(seed=1).load()
    assert (again.keys != table.keys).any()
    assert (GaussianSparse().load().keys == table.keys).all()
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


# OnTheMap

HEAD = "w_geocode,h_geocode,S000,SA01,SA02,SA03,SE01,SE02,SE03,SI01,SI02,SI03,createdate"
A = "010010201001000"
B = "010010201001001"
C = "010030102002003"  # Alabama: 01


def od(*rows, date="20211018") -> str:
    """A LODES file: each row is (work, home, jobs)."""
    return "\n".join([HEAD, *(f"{w},{h},{n},{n},{'0,' * 8}{date}" for w, h, n in rows), ""])


def xwalk(*blocks, field="tabblk2010") -> str:
    """A crosswalk, with quoted fields that hold commas, and letters that are not ASCII."""
    rows = (f'{b},{b[:2]},"Cañon, AL",{b[:5]},20211018' for b in blocks)
    return "\n".join([f"{field},st,ctyname,cty,createdate", *rows, ""])


@pytest.fixture
def alabama(folder):
    pack(folder / "onthemap/al_xwalk.csv.gz", xwalk(C, A, B).encode("latin-1"))
    return folder / "onthemap" / "al_od_main_JT00_2019.csv.gz"


def test_onthemap_keeps_leading_zeros_and_linearises_by_work(alabama):
    pack(alabama, od((A, C, 3), (B, C, 2), (C, A, 1)))
    blocks = OnTheMap(states=("al",)).load()
    assert blocks.domain.attributes == ("work", "home")
    assert blocks.domain.labels == ((A, B, C), (A, B, C))
    assert cells(blocks) == {(A, C): 3, (B, C): 2, (C, A): 1}
    assert blocks.keys.tolist() == [2, 5, 6] and blocks.bound == Bound(1, 1)
    tracts = OnTheMap(states=("al",), level="tract2").load()
    assert cells(tracts) == {("0100102", "0100301"): 5, ("0100301", "0100102"): 1}
    assert cells(OnTheMap(states=("al",), level="county").load()) == {
        ("01001", "01003"): 5,
        ("01003", "01001"): 1,
    }


def test_onthemap_domain_is_the_crosswalk_and_not_the_file(alabama):
    pack(alabama, od((A, A, 1)))
    dataset = OnTheMap(states=("al",), level="tract")
    assert dataset.domain.labels[0] == ("01001020100", "01003010200")
    pack(alabama, od())
    assert len(dataset.load()) == 0


def test_onthemap_joins_states(alabama):
    other = "440010301001008"
    pack(alabama, od((A, B, 1)))
    pack(alabama.with_name("ri_xwalk.csv.gz"), xwalk(other))
    pack(alabama.with_name("ri_od_main_JT00_2019.csv.gz"), od((other, other, 4)))
    table = OnTheMap(states=("ri", "al")).load()
    assert table.domain.labels[0] == (A, B, C, other)
    assert cells(table) == {(A, B): 1, (other, other): 4}


@pytest.mark.parametrize("year", [2008, 2019, 2022])
def test_the_crosswalk_and_not_the_year_says_which_blocks_there_are(folder, year):
    new = "010010201001005"  # of the 2020 census
    pack(folder / "onthemap/al_xwalk.csv.gz", xwalk(A, new, field="tabblk2020"))
    path = pack(folder / f"al_od_main_JT00_{year}.csv.gz", od((A, new, 3), date="20240920"))
    dataset = OnTheMap(states=("al",), year=year)
    assert cells(dataset.load()) == {(A, new): 3}
    urls = [file.url for file in dataset.files()]
    assert all("/LODES8/al/" in url for url in urls) and len(urls) == 3
    pack(folder / "onthemap/al_xwalk.csv.gz", xwalk(A, B))
    assert all("/LODES7/al/" in file.url for file in dataset.files())
    words = (path, "row 1", new, "al_xwalk.csv.gz, which is of LODES 7 (tabblk2010)")
    refuses(OnTheMap(states=("al",), year=year), *words, f"is {path.name} of that version?")
    pack(folder / "onthemap/al_xwalk.csv.gz", xwalk(A, B, field="tabblk2000"))
    words = ("al_xwalk.csv.gz, line 1", "no field tabblk2010 or tabblk2020", "tabblk2000")
    refuses(OnTheMap(states=("al",), year=year), *words)


def test_without_a_crosswalk_what_is_fetched_has_the_year(folder):
    for year, version in ((2019, 7), (2020, 8)):
        files = OnTheMap(states=("al",), year=year).files()
        assert all(f"/LODES{version}/al/" in file.url for file in files)


def test_onthemap_aux_homes_are_states(alabama):
    path = alabama.with_name("al_od_aux_JT00_2019.csv.gz")
    dataset = OnTheMap(states=("al",), part="aux", level="county")
    pack(
        path,
        od((A, "060010201001000", 2), (B, "060750102002003", 1), (C, "440010301001008", 1)),
    )
    table = dataset.load()
    assert len(table.domain.labels[1]) == 52
    assert cells(table) == {("01001", "06"): 3, ("01003", "44"): 1}
    pack(path, od((A, C, 1)))
    refuses(dataset, path, "row 1", "h_geocode", C, "outside state 01")
    pack(path, od((A, "990010201001000", 1)))
    refuses(dataset, path, "row 1", "h_geocode", "99")


def test_onthemap_without_its_crosswalk(folder):
    pack(folder / "onthemap/al_od_main_JT00_2019.csv.gz", od((A, B, 1)))
    with pytest.raises(FileNotFoundError) as error:
        OnTheMap(states=("al",)).load()
    for word in ("al_xwalk.csv", ".xz", folder, "raw", "workbench data fetch onthemap"):
        assert str(word) in str(error.value)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zip"])
def test_files_are_found_compressed_or_not_in_their_folder_or_beside_it(folder, suffix):
    pack(folder / f"al_xwalk.csv{suffix}", xwalk(A, B))
    pack(published.raw() / "onthemap" / f"al_od_main_JT00_2019.csv{suffix}", od((A, B, 5)))
    assert OnTheMap(states=("al",)).load().total == 5
    pack(folder / f"al_od_main_JT00_2019.csv{suffix}", od((A, B, 6)))  # WORKBENCH_DATA is first
    assert OnTheMap(states=("al",)).load().total == 6


# CommutingFlows

FLOWS = (
    "Home State FIPS CODE,HOME COUNTY FIPS CODE,WORK STATE FIPS CODE,WORK COUNTY FIPS CODE,"
    "Workers in Commuting Flow,Margin of Error\r\n"
    '1,1,1,1,"8,635",597\r\n1,1,72,153,16,23\r\n1,9,301,,8,12\r\n1,3,,,51,53\r\n1,39,303,,7,10\r\n'
    ',,,,,\r\n"Source: U.S. Census Bureau, 2009-2013.",,,,,\r\n'
    '"Data are based on a sample. A measure of an estimate\x92s variability.",,,,,\r\n'
).encode("latin-1")
ARCHIVED = (
    b"h_state_fips,h_county_fips,w_state_fips,w_county_fips,flow,moe\n"
    b"01,001,001,001,8635,597\n01,001,072,153,16,23\n01,009,301,NA,8,12\n01,003,NA,NA,51,53\n"
    b"01,039,303,NA,7,10\nNA,NA,NA,NA,NA,NA\n"
    b'"Source: U.S. Census Bureau, 2009-2013.",NA,NA,NA,NA,NA\n'
)


@pytest.mark.parametrize("text", [FLOWS, ARCHIVED], ids=["spreadsheet", "archived"])
def test_commuting_flows_in_both_forms(folder, text):
    pack(folder / "commuting_flows/jtw2009_2013.csv.gz", text)
    table = CommutingFlows().load()
    assert table.domain.shape == (3224, 3221)
    assert cells(table) == {
        ("01001", "01001"): 8635,
        ("72153", "01001"): 16,
        ("Canada", "01009"): 8,
        ("elsewhere abroad", "01003"): 51,
        ("Mexico", "01039"): 7,
    }


def test_the_list_of_counties_is_the_public_one():
    counties = commuting.counties()
    assert len(counties) == len(set(counties)) == 3221 and list(counties) == sorted(counties)
    in_state = {
        s: sum(c[:2] == s for c in counties) for s in ("48", "13", "11", "10", "15", "72")
    }
    assert in_state == {"48": 254, "13": 159, "11": 1, "10": 3, "15": 5, "72": 78}
    assert {c[:2] for c in counties} == set(commuting.STATES)


# Adult and CensusIncome

ADULT = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male,"
    " 2174, 0, 40, United-States, <=50K\n"
    "54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian-Pac-Islander, Male,"
    " 0, 0, 60, South, >50K\n\n"
)
TEST = (
    "|1x3 Cross validator\n"
    "25, Private, 226802, 11th, 7, Never-married, Machine-op-inspct, Own-child, Black, Male,"
    " 0, 0, 40, United-States, <=50K.\n\n"
)


def test_adult_reads_both_files_as_published(folder):
    pack(folder / "adult/adult.data.xz", ADULT)
    pack(folder / "adult/adult.test", TEST)
    table = Adult().load()
    assert table.domain.shape == (9, 16, 7, 15, 6, 5, 2) and table.total == 3
    assert ("?", "Some-college", "Married-civ-spouse", "?", "Husband", "Asian-Pac-Islander",
            "Male") in cells(table)  # fmt: skip
    assert cells(Adult(("Income", "Age")).load()) == {
        ("<=50K", 25): 1,
        ("<=50K", 39): 1,
        (">50K", 54): 1,
    }
    with pytest.warns(UserWarning, match="left out 1 of 3 people"):
        table = Adult(missing="drop").load()
    assert table.domain.shape == (8, 16, 7, 14, 6, 5, 2) and table.total == 2
    assert Adult(("Sex",), missing="drop").load().total == 3  # nothing chosen is unknown
    pack(folder / "adult/adult.test", TEST.replace("Black", "Blue"))
    refuses(Adult(), "adult.test, row 1", "Race", "'Blue'", "Amer-Indian-Eskimo")
    assert Adult(("Sex",)).load().total == 3


def census(age=73, birthplace="Vietnam", occupation=30, income="- 50000.") -> str:
    fields = ["0"] * 42
    fields[0] = age
    fields[34] = birthplace
    fields[3] = occupation
    fields[41] = income
    return ", ".join(map(str, fields)) + "\n"


def test_census_income_by_column_number_and_age_band(folder):
    path = folder / "census_income/census-income.data.gz"
    rows = census() + census(age=90, income="50000+.", birthplace="?") + census(age=72)
    four = ("Age", "Birthplace", "Occupation", "Income")
    pack(path, rows)
    assert cells(CensusIncome(four, age_band=5).load()) == {
        ("70-74", "Vietnam", 30, "- 50000"): 2,
        ("90+", "?", 30, "50000+"): 1,
    }
    assert CensusIncome(four).load().domain.shape == (91, 43, 47, 2)
    assert CensusIncome(four, age_band=5).load().domain.shape == (19, 43, 47, 2)


# Published files


class Publisher(http.server.BaseHTTPRequestHandler):
    """Serves `content`; stops after `stop` bytes if told to."""

    content = b""
    stop = None
    seen = []

    def do_GET(self):
        cls = type(self)
        cls.seen.append(self.headers.get("Range"))
        if not cls.content:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(cls.content)))
        self.end_headers()
        self.wfile.write(cls.content[: cls.stop])

    def log_message(self, *_):
        pass


@pytest.fixture
def publisher(folder, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    handler = type("Here", (Publisher,), {"seen": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    handler.url = f"http://127.0.0.1:{server.server_address[1]}/some/numbers.csv.gz"
    yield handler
    server.shutdown()
    server.server_close()


def gz(text: bytes) -> bytes:
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as file:
        file.write(text)
    return out.getvalue()


NUMBERS = np.random.default_rng(0).integers(0, 10, 300_000, dtype=np.uint8).tobytes()
SHA256 = hashlib.sha256(NUMBERS).hexdigest()


def numbers(publisher, *sha256) -> published.File:
    publisher.content = gz(NUMBERS)
    return published.File("numbers", "numbers.csv", publisher.url, sha256)


def kept() -> list[str]:
    return sorted(p.name for p in published.raw().rglob("*") if p.is_file())


@pytest.mark.parametrize("sha256", [(), ("0" * 64, SHA256)], ids=["unrecorded", "recorded"])
def test_fetch_brings_a_file_once(publisher, sha256):
    file = numbers(publisher, *sha256)
    assert published.verify(file)[0].state == "missing"
    (path,) = published.fetch(file)
    assert path == published.raw() / "numbers" / "numbers.csv.gz" == file.find()
    assert gzip.decompress(path.read_bytes()) == NUMBERS and kept() == ["numbers.csv.gz"]
    assert published.verify(file)[0].state == ("ok" if sha256 else "unknown")
    assert published.fetch(file) == [path] and len(publisher.seen) == 1
    assert published.fetch(file, force=True) == [path] and len(publisher.seen) == 2
    path.write_bytes(gz(b"other"))
    assert published.verify(file)[0].state == ("different" if sha256 else "unknown")
    path.write_bytes(path.read_bytes()[:-4])
    assert published.verify(file)[0].state == "different"


def test_fetch_refuses_a_wrong_sha256_and_what_cannot_be_read(publisher):
    file = numbers(publisher, "0" * 64)
    with pytest.raises(ValueError, match=f"{SHA256}, none of the recorded {'0' * 64}"):
        published.fetch(file)
    assert kept() == []
    file = numbers(publisher)
    publisher.content = b"<html>be patient</html>"
    with pytest.raises(ValueError, match="sent something that cannot be read"):
        published.fetch(file)
    assert kept() == []
    publisher.content = b""
    with pytest.raises(OSError, match="404"):
        published.fetch(file)
    assert kept() == []


def test_an_interrupted_fetch_keeps_nothing_and_begins_anew(publisher):
    file = numbers(publisher, SHA256)
    publisher.stop = 100_000
    with pytest.raises(OSError, match="the download stopped.*run it again"):
        published.fetch(file)
    assert kept() == [] and published.verify(file)[0].state == "missing"
    publisher.stop = None
    published.fetch(file)
    assert publisher.seen == [None, None] and kept() == ["numbers.csv.gz"]
    assert published.verify(file)[0].state == "ok"


def test_status_names_every_file_and_datasets_go_by_their_folder(folder):
    rows = published.status()
    assert {row.dataset for row in rows} == {
        "adult",
        "census_income",
        "commuting_flows",
        "foursquare",
        "gowalla",
        "graphs",
        "hay2010",
        "movielens",
        "netflix_prize",
        "online_retail",
        "onthemap",
        "surnames",
    }
    assert len(rows) == len({(row.dataset, row.file) for row in rows}) == 28
    assert ("movielens", "ml-1m/movies.dat") in {(row.dataset, row.file) for row in rows}
    assert {row.state for row in rows} == {"missing", "by hand"}
    by_hand = {row.dataset for row in rows if row.state == "by hand"}
    assert by_hand == {
        "foursquare",
        "gowalla",
        "hay2010",
        "movielens",
        "netflix_prize",
        "online_retail",
    }
    pack(folder / "adult/adult.test.gz", TEST)
    assert published.path("adult") == (folder / "adult/adult.test.gz",)
    assert [r.state for r in published.verify("Adult")] == ["missing", "different"]
    with pytest.raises(FileNotFoundError, match="workbench data fetch onthemap"):
        published.path("onthemap")
    with pytest.raises(ValueError, match="'gaussian'.*adult.*onthemap"):
        published.fetch("gaussian")


# The real thing


def test_real_files_are_the_recorded_ones():
    assert {row.state for row in published.status()} <= {"ok", "missing", "by hand"}


@pytest.mark.slow
@real(OnTheMap())
def test_real_onthemap():
    table = OnTheMap().load()
    assert table.domain.shape == (25181, 25181)
    assert (len(table), table.total) == (372_191, 406_052)  # the main file alone
    tracts = OnTheMap(level="tract").load()
    assert tracts.domain.shape == (244, 244) and (len(tracts), tracts.total) == (
        41_649,
        406_052,
    )
    assert OnTheMap(level="county").load().domain.shape == (5, 5)
    assert OnTheMap(level="tract2").load().domain.shape == (10, 10)
    aux = OnTheMap(part="aux").load()
    assert aux.domain.shape == (25181, 52) and (len(aux), aux.total) == (11_928, 70_737)
    assert aux.project(("home",)).to_frame().set_index("home")["count"].idxmax() == "25"


@real(CommutingFlows())
def test_real_commuting_flows():
    table = CommutingFlows().load()
    assert (len(table), table.total) == (137_492, 140_843_659)
    by_work = table.project(("work",)).to_frame().set_index("work")["count"]
    assert by_work["Canada"] == 11_510 and by_work[-3:].sum() == 105_262
    assert cells(table)["01001", "01001"] == 8635


@real(Adult())
def test_real_adult():
    table = Adult().load()
    assert (table.total, table.domain.size, len(table)) == (48_842, 907_200, 8_619)
    assert 0.0075 < table.density <= 0.0096 and 4.8 < table.counts.mean() < 5.7
    assert Adult(("Income",)).load().counts.tolist() == [37_155, 11_687]
    with pytest.warns(UserWarning, match="left out 2809 of 48842"):
        assert round(Adult(missing="drop").load().density, 4) == 0.0108
    assert Adult(ADULT_DOMAIN.attributes).load().total == 48_842


@pytest.mark.slow
@real(CensusIncome())
def test_real_census_income():
    table = CensusIncome().load()
    assert (table.total, table.domain.size, len(table)) == (199_523, 3_939_373_620, 77_508)
    table = CensusIncome(("Age", "Birthplace", "Occupation", "Income"), age_band=5).load()
    assert (table.total, table.domain.size, len(table)) == (199_523, 76_798, 7_098)
    assert CensusIncome(("Income",)).load().counts.tolist() == [187_141, 12_382]  # 93.8 %
