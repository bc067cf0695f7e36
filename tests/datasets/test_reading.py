"""Published files, packed in several ways, are read as they are; damaged or endless ones are refused."""

import gzip
import lzma
import zipfile

import pytest

from tests.datasets.test_datasets import pack
from tests.fuzz.run import limited
from workbench.data import sources
from workbench.data.sources import Layout
from workbench.datasets.reading import LINE, LINES, TextFile, find_member, opened, rows

PACKS = {".gz": gzip.compress, ".xz": lzma.compress}


def packed(tmp_path, suffix, *parts):
    """A file whose parts were packed one after another; each is (text, times)."""
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(b"".join(PACKS[suffix](text) * times for text, times in parts))
    return path


def zipped(path, members, **how):
    with zipfile.ZipFile(path, "w", **how) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def values(path, columns, layout=sources.CSV):
    return [row for batch in rows(path, columns, layout) for row in batch.frame.rows()]


def refuses(call, *words):
    with limited(), pytest.raises(ValueError) as caught:
        call()
    for word in words:
        assert word in str(caught.value), caught.value


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zip"])
def test_files_are_read_as_they_are_written(tmp_path, suffix):
    text = '\ufeff"home, city",n\r\n a ,1\r\n\r\n"b ""c""",2'
    path = pack(tmp_path / f"x.csv{suffix}", text)
    assert values(path, ("n", "home, city")) == [("1", "a"), ("2", 'b "c"')]
    notes = Layout(
        ("a", "b"), "\t", notes="^#", missing=("NA",), strip=" .", encoding="latin-1"
    )
    pack(path, b'# one\nx.\t"\xe9\n# two\tof two\nNA\tNA\n NA\ty ')
    assert values(path, ("b",), notes) == [('"é',), ("y",)]
    assert values(path, ("b", "a"), notes) == [('"é', "x"), ("y", None)]
    pack(path, "1,2\n\n 3\n")
    assert values(path, (LINE,), LINES) == [("1,2",), ("3",)]
    pack(path, "n\n")
    assert values(path, ("n",)) == []


@pytest.mark.parametrize("suffix", PACKS)
def test_files_that_end_early_or_are_something_else_are_refused(tmp_path, suffix):
    path = packed(tmp_path, suffix, (b"a,b\n" + b"1,2\n" * 2000, 1))
    whole = path.read_bytes()
    for content in (whole[:-9], b"<html>not found</html>"):
        path.write_bytes(content)
        refuses(lambda: values(path, ("a",)), str(path))
        with (
            pytest.raises(ValueError, match="is damaged or ends early"),
            opened(path) as stream,
        ):
            stream.read()


@pytest.mark.parametrize("suffix", PACKS)
def test_endless_text_is_refused_early(tmp_path, monkeypatch, suffix):
    """It unpacks to 6.4 GB, of which no more than the memory of `limited` can be had."""
    path = packed(tmp_path, suffix, (b"a,b\n1,2\n", 1), (b"1" * 2**24, 400))
    refuses(lambda: values(path, ("a",)), "a.csv", "cannot be read")
    path = packed(tmp_path, suffix, (b"a," * 2**23, 400))
    refuses(lambda: TextFile(path), "a.csv", "the row of names has more than")
    monkeypatch.setitem(sources._FEW, "bytes", 2**20)
    path = packed(tmp_path, suffix, (b"a,b\n", 1), (b"1,2\n" * 2**21, 1))
    refuses(lambda: values(path, ("a",)), "a.csv", "bytes are too many")


def test_a_zip_is_read_by_name_or_must_hold_one_file(tmp_path):
    path = zipped(tmp_path / "a.csv.zip", {"readme.txt": "hello", "inside/a.csv": "n\n1\n"})
    assert values(path, ("n",)) == [("1",)]
    zipped(path, {"a": "", "b": ""})
    refuses(lambda: TextFile(path), "need one file, a.csv")


@pytest.mark.parametrize(
    "place, byte, why", [(10, 99, "compression"), (8, 1, "encrypted"), (6, 148, "14.8")]
)
def test_a_zip_that_is_packed_in_an_unknown_way_is_refused(tmp_path, place, byte, why):
    path = zipped(tmp_path / "a.csv.zip", {"a.csv": "n\n1\n"})
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + place] = byte  # of the list at the end
    path.write_bytes(content)
    refuses(lambda: TextFile(path), "a.csv.zip is damaged", why)


def test_a_name_in_a_zip_leads_to_no_other_file(tmp_path):
    other = tmp_path / "ratings.dat"
    other.write_bytes(b"a\n")
    for name in (str(other), "./ratings.dat", "b//ratings.dat", "../ratings.dat"):
        path = zipped(tmp_path / "a.zip", {name: "b\n"})
        assert find_member(path, "ratings.dat") is None
        zipped(path, {name: "b\n", "b/ratings.dat": "c\n"})
        with opened(find_member(path, "ratings.dat")) as stream:
            assert stream.read() == b"c\n"
    path.write_bytes(b"PK")
    refuses(lambda: find_member(path, "ratings.dat"), "a.zip is damaged")
