"""Published files, packed in several ways, are read as they are; damaged or endless ones are refused."""

import gzip
import lzma
import zipfile

import pytest

from tests.datasets.test_datasets import pack
from tests.fuzz.run import limited
from workbench.data import sources
from workbench.data.sources import Layout
from workbench.datasets.published import File
from workbench.datasets.reading import LINE, LINES

PACKS = {".gz": gzip.compress, ".xz": lzma.compress}


def packed(folder, suffix, *parts):
    """A file whose parts were packed one after another; each is (text, times)."""
    path = folder / f"a.csv{suffix}"
    path.write_bytes(b"".join(PACKS[suffix](text) * times for text, times in parts))
    return path


def zipped(path, members):
    """An archive with these files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
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
    packed(folder, suffix, (b"a,b\n1,2\n", 1), (b"1" * 2**24, 400))
    refuses(lambda: values(("a",)), "a.csv", "cannot be read")
    packed(folder, suffix, (b"a," * 2**23, 400))
    refuses(lambda: values(("a",)), "a.csv", "the row of names has more than")
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
