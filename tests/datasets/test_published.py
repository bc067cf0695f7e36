"""Published files are found, read in any packing, fetched and checked; damaged or endless ones are refused."""

import gzip
import hashlib
import http.server
import lzma
import threading

import numpy as np
import pytest

from tests.datasets.files import GOOD, pack, zipped
from tests.fuzz.run import limited
from workbench.data import sources
from workbench.data.sources import Layout
from workbench.datasets import published
from workbench.datasets.published import LINE, LINES, File

PACKS = {".gz": gzip.compress, ".xz": lzma.compress}


def packed(folder, suffix, *parts):
    """A file whose parts were packed one after another; each is (text, times)."""
    path = folder / f"a.csv{suffix}"
    path.write_bytes(b"".join(PACKS[suffix](text) * times for text, times in parts))
    return path


def values(columns, layout=sources.CSV, name="a.csv", **more):
    file = File("a", name, layout=layout, **more)
    return [row for batch in file.batches(columns) for row in batch.frame.rows()]


def refuses(call, *words):
    with limited(), pytest.raises(ValueError) as caught:
        call()
    for word in words:
        assert word in str(caught.value), caught.value


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zip"])
def test_files_are_read_as_they_are_written(folder, suffix):
    path = folder / f"a.csv{suffix}"
    pack(path, '\ufeff"home, city",n\r\n a ,1\r\n\r\n"b ""c""",2')
    assert values(("n", "home, city")) == [("1", "a"), ("2", 'b "c"')]
    notes = Layout(
        ("a", "b"), "\t", notes="^#", missing=("NA",), strip=" .", encoding="latin-1"
    )
    pack(path, b'# one\nx.\t"\xe9\n# two\tof two\nNA\tNA\n NA\ty ')
    assert values(("b",), notes) == [('"é',), ("y",)]
    assert values(("b", "a"), notes) == [('"é', "x"), ("y", None)]
    pack(path, "1,2\n\n 3\n")
    assert values((LINE,), LINES) == [("1,2",), ("3",)]
    pack(path, "n\n")
    with pytest.warns(UserWarning, match="no row below"):
        assert values(("n",)) == []


@pytest.mark.parametrize("suffix", PACKS)
def test_files_that_end_early_or_are_something_else_are_refused(folder, suffix):
    path = packed(folder, suffix, (b"a,b\n" + b"1,2\n" * 2000, 1))
    whole = path.read_bytes()
    for content in (whole[:-9], b"<html>not found</html>"):
        path.write_bytes(content)
        refuses(lambda: values(("a",)), str(path))
        refuses(lambda: File("a", "a.csv").sha256_at(path), "is damaged or ends early")


@pytest.mark.parametrize("suffix", PACKS)
def test_endless_text_is_refused_early(folder, monkeypatch, suffix):
    """It unpacks to 6.4 GB, of which no more than the memory of `limited` can be had."""
    packed(folder, suffix, (b"a,b\n1,2\n", 1))
    assert values(("a",)) == [
        ("1",)
    ]  # threads of libraries, which the limit would not let start
    packed(folder, suffix, (b"a,b\n1,2\n", 1), (b"1" * 2**24, 400))
    refuses(lambda: values(("a",)), "a.csv", "a row is longer than")
    packed(folder, suffix, (b"a," * 2**23, 400))
    refuses(lambda: values(("a",)), "a.csv", "the row of names does not end within")
    monkeypatch.setitem(sources._FEW, "bytes", 2**20)
    packed(folder, suffix, (b"a,b\n", 1), (b"1,2\n" * 2**21, 1))
    refuses(lambda: values(("a",)), "a.csv", "bytes are too many")


def test_an_archive_is_read_by_the_name_of_the_file(folder):
    path = zipped(folder / "b.zip", {"a": "", "inside/a.csv": "n\n1\n", "c.csv": "n\n2\n"})
    assert values(("n",), also=("b",)) == [("1",)]
    assert File("a", "c.csv", also=("b",)).find() == path
    with pytest.raises(FileNotFoundError, match=r"no d.csv or b \(.*\.zip that holds it"):
        File("a", "d.csv", also=("b",)).find()
    pack(folder / "a.csv", "n\n3\n")  # a file of the name comes first
    assert values(("n",), also=("b",)) == [("3",)]


@pytest.mark.parametrize(
    "place, byte, why", [(10, 99, "compression"), (8, 1, "encrypted"), (6, 148, "14.8")]
)
def test_a_zip_that_is_packed_in_an_unknown_way_is_refused(folder, place, byte, why):
    path = zipped(folder / "a.csv.zip", {"a.csv": "n\n1\n"})
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + place] = byte  # of the list at the end
    path.write_bytes(content)
    refuses(lambda: values(("n",)), "a.csv.zip is damaged", why)


def test_a_name_in_a_zip_leads_to_no_other_file(folder):
    other = folder / "ratings.dat"
    other.write_bytes(b"a\n")
    for name in (str(other), "./ratings.dat", "b//ratings.dat", "../ratings.dat"):
        zipped(folder / "a.zip", {name: "b\nc\n"})
        assert values(("b",), name="nothing", also=("b/ratings.dat", "a")) == [("c",)]


@pytest.mark.parametrize("suffix", published.SUFFIXES)
def test_files_are_found_compressed_or_not_in_their_folder_or_beside_it(folder, suffix):
    file = File("a", "a.csv")
    for place in (
        published.raw(),
        published.raw() / "a",
        folder,
        folder / "a",
    ):  # the last is first
        path = pack(place / f"a.csv{suffix}", "n\n")
        assert file.find() == path


# Fetching


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


NUMBERS = np.random.default_rng(0).integers(0, 10, 300_000, dtype=np.uint8).tobytes()
SHA256 = hashlib.sha256(NUMBERS).hexdigest()


def numbers(publisher, *sha256) -> published.File:
    publisher.content = gzip.compress(NUMBERS)
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
    path.write_bytes(gzip.compress(b"other"))
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
    rows = published.verify()
    by_hand = "foursquare gowalla hay2010 movielens netflix_prize online_retail".split()
    fetched = "adult census_income commuting_flows graphs onthemap surnames".split()
    assert len(rows) == len({(row.dataset, row.file) for row in rows}) == 28
    assert {(row.dataset, row.state) for row in rows} == {
        *((name, "by hand") for name in by_hand),
        *((name, "missing") for name in fetched),
    }
    pack(folder / "adult/adult.test.gz", GOOD["adult.test"])
    assert published.path("adult") == (folder / "adult/adult.test.gz",)
    assert [r.state for r in published.verify("Adult")] == ["missing", "different"]
    with pytest.raises(FileNotFoundError, match="workbench data fetch onthemap"):
        published.path("onthemap")
    with pytest.raises(ValueError, match="'gaussian'.*adult.*onthemap"):
        published.fetch("gaussian")


def test_files_of_somebody_elses_dataset_are_found_by_its_name(folder, monkeypatch):
    module = """
from workbench.datasets.published import File, LINE, LINES


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
