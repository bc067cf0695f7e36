"""Small files that unpack to endless lines, headers, lists or dictionaries: refused, with little memory."""

import gzip
import io
import lzma
import tarfile
import tracemalloc
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fuzz.run import limited, looked_for_in
from workbench.data import sources
from workbench.datasets import (
    Gowalla,
    NetflixPrize,
    SurnameStrings,
    checkins,
    delimited,
    ratings,
)
from workbench.datasets.compressed import find_member, opened, read_whole, tar_members
from workbench.datasets.delimited import field_names, read_blocks, read_lines

PACKS = {".gz": gzip.compress, ".xz": lzma.compress}


def packed(tmp_path, suffix, *parts):
    """A file whose parts were packed one after another; each is (text, times)."""
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(b"".join(PACKS[suffix](text) * times for text, times in parts))
    return path


def zipped(path, content, **how):
    how = dict(compression=zipfile.ZIP_DEFLATED) | how
    with zipfile.ZipFile(path, "w", **how) as archive:
        archive.writestr("a.csv", content)
    return path


def refuses(call, *words):
    with limited(), pytest.raises(ValueError) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("suffix", PACKS)
def test_an_endless_line_is_refused_early(tmp_path, suffix):
    """It unpacks to 6.4 GB, of which no more than the memory of `limited` can be had."""
    path = packed(tmp_path, suffix, (b"a,b\n1,2\n", 1), (b"1" * 2**24, 400))
    refuses(
        lambda: [*read_blocks(path, ("a",))], "a.csv", "line 3", "more than 4,194,304 bytes"
    )


@pytest.mark.parametrize("suffix", PACKS)
@pytest.mark.parametrize("reader", [field_names, lambda path: [*read_blocks(path, ("b",))]])
def test_an_endless_header_is_refused_early(tmp_path, suffix, reader):
    path = packed(tmp_path, suffix, (b"a," * 2**23, 400))
    refuses(lambda: reader(path), "a.csv", "line 1", "more than 4,194,304 bytes")


@pytest.mark.parametrize("suffix", PACKS)
def test_a_published_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch, suffix):
    monkeypatch.setitem(sources._FEW, "bytes", 2**20)
    path = packed(tmp_path, suffix, (b"a,b\n", 1), (b"1,2\n" * 2**21, 1))
    refuses(lambda: [*read_blocks(path, ("a",))], "a.csv", "bytes are too many")
    few = packed(tmp_path, suffix, (b"a,b\n", 1), (b"1,2\n" * 2**17, 1))
    assert sum(len(block.lines) for block in read_blocks(few, ("a",))) == 2**17


def test_a_header_of_many_names_is_refused(tmp_path):
    path = zipped(tmp_path / "a.csv.zip", b"a," * 2**16 + b"a\n" + b"1," * 2**16 + b"1\n")
    refuses(lambda: [*read_blocks(path, ("a",))], "line 1: 65,537 names", "at most 16,384")
    names = [f"n{i}" for i in range(delimited.MOST_NAMES)]
    path = zipped(path, ",".join(names) + "\n" + "1," * (len(names) - 1) + "7\n")
    (block,) = read_blocks(path, (names[-1],))
    assert block.frame[names[-1]].to_list() == ["7"]
    refuses(lambda: [*read_blocks(path, ("a",))], "no field 'a' among ['n0', ", "…]")


def test_a_line_is_as_long_as_is_said(tmp_path):
    """Wherever it stands in what is read at once."""
    longest = delimited.LONGEST_LINE
    path = tmp_path / "a.csv"
    for first in (0, 3 * longest, 2**24 - longest // 2):
        before = [b"b" * (longest // 8)] * (first // (longest // 8))
        path.write_bytes(b"\n".join([*before, b"a" * longest, b"c"]))
        sizes = [size for b in read_lines(path) for size in b.frame["line"].str.len_bytes()]
        assert sizes == [*map(len, before), longest, 1]
        path.write_bytes(b"\n".join([*before, b"a" * (longest + 1), b"c"]))
        with pytest.raises(ValueError, match=f"line {len(before) + 1}: more than"):
            list(read_lines(path))


def test_many_short_lines_are_parsed_in_pieces(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_bytes(
        b"a,b\n" + b"\n" * 5 + b"".join(b"%d,1\n" % i for i in range(40)) + b"x,1,2"
    )
    whole = tmp_path / "b.csv"
    whole.write_bytes(path.read_bytes().removesuffix(b"x,1,2"))
    (together,) = read_blocks(whole, ("a",))
    monkeypatch.setattr(delimited, "_MOST_FIELDS", 28)  # seven lines of four fields
    apart = [*read_blocks(whole, ("a",))]
    assert len(apart) > 5
    assert [x for b in apart for x in b.frame["a"]] == together.frame["a"].to_list()
    assert [x for b in apart for x in b.lines.tolist()] == together.lines.tolist()
    refuses(lambda: [*read_blocks(path, ("a",))], "line 47: more than 2 fields")


def test_empty_lines_take_little_memory(tmp_path):
    """Two million of them, as fields of 40 columns, would be 3 GB."""
    names = [f"n{i}" for i in range(40)]
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(",".join(names).encode() + b"\n" * 2**21))
    with limited():
        assert not [*read_blocks(path, names)]


@pytest.mark.parametrize("begins", [b'"', b",", b'"a'])
def test_a_long_line_of_quotes_takes_little_memory(tmp_path, begins):
    line = begins + begins[-1:] * 2**21
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,2\n" + line + b'"x,1\n')
    refuses(lambda: [*read_blocks(path, ("a",))], "line 3")
    tracemalloc.start()
    delimited._QUOTED.match(line)
    assert tracemalloc.get_traced_memory()[1] < 2**23
    tracemalloc.stop()


def test_an_xz_file_of_a_large_dictionary_is_refused(tmp_path):
    path = tmp_path / "a.csv.xz"
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 2**29}]
    path.write_bytes(lzma.compress(b"a\n1\n", filters=filters))
    refuses(lambda: [*read_blocks(path, ("a",))], "a.csv.xz is damaged", "emory usage limit")


def test_an_xz_file_reads_as_the_library_has_it(tmp_path):
    text = bytes(np.random.default_rng(0).integers(0, 9, 2**18, np.uint8))
    path = tmp_path / "a.xz"
    streams = (
        lzma.compress(text, preset=9) + lzma.compress(b"") + bytes(8) + lzma.compress(b"x")
    )
    path.write_bytes(streams + bytes(4))
    with opened(path) as (stream, _):
        assert stream.read() == text + b"x"
    for cut in (streams[:1000], streams[:-1]):
        path.write_bytes(cut)
        refuses(lambda: read_whole(path), "a.xz is damaged or ends early")
    path.write_bytes(streams + b"more")
    refuses(lambda: read_whole(path), "a.xz is damaged or ends early")


def test_a_zip_packed_by_lzma_is_refused(tmp_path):
    path = zipped(tmp_path / "a.csv.zip", b"a\n1\n", compression=zipfile.ZIP_LZMA)
    refuses(
        lambda: [*read_blocks(path, ("a",))], "a.csv.zip is damaged", "LZMA is not unpacked"
    )


def test_a_zip_of_a_version_to_come_is_refused(tmp_path):
    """What unpacking needs is a version: 14.8 is not known to anybody."""
    path = zipped(tmp_path / "a.csv.zip", b"a\n1\n")
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\1\2") + 6] = 148
    path.write_bytes(content)
    refuses(lambda: [*read_blocks(path, ("a",))], "a.csv.zip is damaged", "version 14.8")
    refuses(lambda: find_member(path, "a.csv"), "a.csv.zip is damaged", "version 14.8")


def test_a_name_in_a_zip_leads_to_no_other_file(tmp_path):
    other = tmp_path / "ratings.dat"
    other.write_bytes(b"a\n")
    for name in (str(other), "./ratings.dat", "b//ratings.dat", "../ratings.dat"):
        path = tmp_path / "a.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(name, b"b\n")
        assert find_member(path, "ratings.dat") is None
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("b/ratings.dat", b"c\n")
        found = find_member(path, "ratings.dat")
        with opened(found) as (stream, _):
            assert stream.read() == b"c\n"


def test_a_zip_of_many_files_is_refused_in_few_words(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.csv.zip", "w") as archive:
        for i in range(3000):
            archive.writestr(f"{i}.txt", b"")
    with pytest.raises(ValueError, match="need one file") as caught:
        field_names(tmp_path / "a.csv.zip")
    assert len(str(caught.value)) < 600


def test_a_list_that_is_read_at_once_has_a_size(tmp_path):
    path = packed(tmp_path, ".gz", (bytes(2**24), 400))
    refuses(lambda: read_whole(path), "a.csv.gz has more than 67,108,864 bytes")


def netflix_tar(tmp_path, monkeypatch, *entries):
    """The Netflix Prize in an archive that begins with these bytes."""
    data = looked_for_in(tmp_path, monkeypatch)
    monkeypatch.setattr(ratings, "PARTS", ((1, 1, 2),))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        film = tarfile.TarInfo("training_set/mv_0000001.txt")
        text = b"1:\n6,3,2005-09-06\n7,5,2004-02-29\n"
        film.size = len(text)
        archive.addfile(film, io.BytesIO(text))
    path = data / "netflix_prize" / "nf_prize_dataset.tar.gz"
    path.parent.mkdir(parents=True)
    packs = [gzip.compress(content) * times for content, times in entries]
    path.write_bytes(b"".join(packs) + gzip.compress(out.getvalue()))
    return path


def header(name, kind, size=0, **how):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = size
    for field, x in how.items():
        setattr(info, field, x)
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_a_tar_archive_whose_names_are_endless_is_refused(tmp_path, monkeypatch, kind):
    long = header("././@LongLink", kind, 2**24 * 400)
    netflix_tar(tmp_path, monkeypatch, (long, 1), (b"a" * 2**24, 400))
    refuses(NetflixPrize().load, "nf_prize_dataset.tar.gz", "more than 1,048,576 bytes before")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE])
def test_a_tar_archive_of_links_is_refused(tmp_path, monkeypatch, kind):
    link = header("mv_0000001.txt", kind, linkname="mv_0000002.txt")
    netflix_tar(tmp_path, monkeypatch, (link, 1))
    refuses(NetflixPrize().load, "nf_prize_dataset.tar.gz is damaged")


def test_archives_in_archives_are_opened_once(tmp_path):
    content = b"x"
    for name in ("a.txt", "b.tar", "c.tar"):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        content = out.getvalue()
    found = tar_members(tmp_path / "d.tar", io.BytesIO(content))
    assert [path.name for path, _ in found] == ["b.tar"]


def test_ratings_beyond_the_published_ones_are_not_read(tmp_path, monkeypatch):
    data = looked_for_in(tmp_path, monkeypatch)
    monkeypatch.setattr(ratings, "PARTS", ((1, 1, 2), (2, 2, 1)))
    folder = data / "netflix_prize"
    folder.mkdir(parents=True)
    rows = b"".join(b"%d,3,2005-09-06\n" % i for i in range(1, 5))
    (folder / "combined_data_1.txt").write_bytes(b"1:\n" + rows)
    (folder / "combined_data_2.txt").write_bytes(b"nothing")
    refuses(NetflixPrize().load, "films 1 to 1 have 4 ratings; need 2")


def test_check_ins_beyond_the_published_ones_are_not_read(tmp_path, monkeypatch):
    """Their sum, past 2⁶⁴, would come out right, and each be laid out."""
    data = looked_for_in(tmp_path, monkeypatch)
    monkeypatch.setattr(checkins, "PLACES", 9)
    monkeypatch.setattr(checkins, "CHECKINS", {"train": 3})
    monkeypatch.setattr(checkins, "_regions", lambda: np.zeros(9, np.int64))
    (data / "gowalla").mkdir(parents=True)
    rows = [(0, 2**62), (1, 2**62), (2, 2**62), (3, 2**62), (4, 3)]
    text = "".join(f"0\t{place}\t{count}\n" for place, count in rows)
    (data / "gowalla" / "Gowalla_train.txt").write_text(text)
    refuses(Gowalla().load, "check-ins, need 3")


def test_surnames_of_very_many_rows_are_refused(tmp_path, monkeypatch):
    data = looked_for_in(tmp_path, monkeypatch) / "surnames"
    data.mkdir(parents=True)
    rows = pa.table({"name": pa.array(["A"] * 2**21), "count": pa.array([100] * 2**21)})
    pq.write_table(rows, data / "census_2010.parquet")
    refuses(
        SurnameStrings().load, "census_2010.parquet has 2,097,152 rows, need at most 1,048,576"
    )
    (data / "census_2010.parquet").write_bytes(b"PAR1")
    refuses(SurnameStrings().load, "no such Parquet file")
