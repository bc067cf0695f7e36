"""Histograms, degrees and event counts: read as published, bounded; twins have their numbers."""

import io
import zipfile

import numpy as np
import polars as pl
import pooch
import pytest

from tests.datasets.test_datasets import cells, pack, real, refuses
from workbench import datasets
from workbench.data import Bound
from workbench.datasets import (
    KeywordFrequencies,
    KeywordFrequenciesTwin,
    NetTrace,
    NetTraceTwin,
    RetailHours,
    SearchLogs,
    SearchLogsTwin,
    SnapDegrees,
    SocialNetwork,
    SocialNetworkTwin,
    Surnames,
    hay2010,
    published,
)

# Hay et al. 2010

HAY = [
    (NetTrace, "nettrace.txt", 65_536, Bound(1)),
    (SearchLogs, "search_logs.txt", 32_768, Bound(1)),
    (SocialNetwork, "social_network.txt", 11_342, Bound(2, 1)),
    (KeywordFrequencies, "keywords.txt", 20_000, Bound(1)),
]


@pytest.mark.parametrize("dataset, name, size, bound", HAY)
def test_a_file_of_another_length_loads_and_says_so(folder, dataset, name, size, bound):
    assert dataset().domain.shape == (size,)
    path = pack(folder / name, "1\n" * size)
    assert dataset().remarks() == ()
    pack(path, "2\n0\n" * 4000)
    table = dataset().load()
    assert table.domain == dataset().domain and table.domain.shape == (8000,)
    assert (table.total, table.bound) == (8000, bound)
    assert dataset().remarks() == (f"8,000 lines (published: {size:,})",)
    pack(path, "")
    refuses(dataset(), path, "found 0 rows")


def test_a_file_knows_whether_its_order_says_anything(folder):
    path = pack(folder / "nettrace.txt", "9\n4\n4\n0\n")
    assert NetTrace().is_sorted()
    pack(path, "0\n4\n4\n9\n")
    assert NetTrace().is_sorted()
    pack(path, "4\n0\n4\n9\n")
    assert not NetTrace().is_sorted()


@pytest.mark.parametrize(
    "dataset, words",
    [
        (NetTrace, ("nettrace.txt", "michaelghay/vldb2010data", "65,536 lines", "25,714")),
        (SocialNetwork, ("social_network.txt", "cited and not redistributed", "11,342 lines")),
        (KeywordFrequencies, ("keywords.txt", "nobody publishes it", "20,000 lines")),
    ],
)
def test_a_missing_file_says_how_to_get_it_and_what_it_should_be(folder, dataset, words):
    with pytest.raises(FileNotFoundError) as error:
        dataset().load()
    for word in (*words, folder):
        assert str(word) in str(error.value)
    assert "workbench data fetch" not in str(error.value)
    for fetched in (dataset.__name__, dataset()):
        with pytest.raises(FileNotFoundError, match="cannot be fetched: .* publish"):
            published.fetch(fetched)
    pack(folder / dataset.name, "1\n")
    (row,) = published.verify(dataset())
    assert row.state == "unknown"
    assert [r.state for r in published.verify("hay2010")].count("by hand") == 3


# Twins

TWINS = [
    # twin, of, cells that are not empty, share that is, sum, largest
    (NetTraceTwin, NetTrace, 2_228, 0.966, 25_714, 1423),
    (SearchLogsTwin, SearchLogs, 15_696, 0.521, 335_889, 496),
    (SocialNetworkTwin, SocialNetwork, 11_342, 0.0, 674_708, 1678),
]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("twin, of, full, empty, total, largest", TWINS)
def test_twins_have_the_published_statistics(twin, of, full, empty, total, largest, seed):
    table = twin(seed).load()
    assert table.domain == of().domain and table.truth_public
    assert (len(table), table.total, table.counts.max()) == (full, total, largest)
    assert round(1 - table.density, 3) == empty
    assert (twin(seed).load().keys == table.keys).all()
    assert (twin(seed).load().counts == table.counts).all()
    other = twin(seed + 2).load()
    assert (other.dense() != table.dense()).any()
    assert (np.sort(other.counts) == np.sort(table.counts)).all()  # sizes are the law's


@pytest.mark.parametrize("seed", range(4))
def test_net_trace_twin_is_few_values_in_clusters(seed):
    table = NetTraceTwin(seed).load()
    assert table.bound == Bound(1)
    assert len(np.unique(table.counts)) < 150 and (table.counts == 1).mean() > 0.5
    assert np.sort(table.counts)[-223:].sum() > 0.7 * table.total  # the busiest tenth
    blocks = np.bincount(table.keys >> 8, minlength=256)
    assert (blocks == 0).sum() > 80  # of 256; uniform hosts would leave none empty


def test_search_logs_twin_rises_late_and_in_bursts():
    table = SearchLogsTwin().load()
    assert table.bound == Bound(1)
    by_day = table.dense().reshape(2048, 16).sum(axis=1)
    assert by_day[:1096].sum() < 0.01 * table.total  # 2004 to 2006
    assert by_day[208] > 20 * by_day[:200].mean()  # the keynote
    assert by_day[1461:].sum() > 0.9 * table.total  # 2008 and 2009
    assert by_day.argmax() in (1769, 1770)  # the election
    hours = table.dense().reshape(2048, 16)[1461:].sum(axis=0)
    assert hours.max() > 1.5 * hours.min()


def test_social_network_twin_is_the_degrees_of_a_graph():
    table = SocialNetworkTwin().load()
    assert table.bound == Bound(2, 1) and table.counts.min() >= 1 and table.total % 2 == 0
    assert np.median(table.counts) == 37
    degrees = np.sort(table.counts)[::-1]
    k = np.arange(1, len(degrees) + 1)  # Erdős and Gallai's condition, for every k
    rest = [np.minimum(degrees[i:], i).sum() for i in k]
    assert (np.cumsum(degrees) <= k * (k - 1) + rest).all()
    assert abs(np.corrcoef(table.keys, table.counts)[0, 1]) < 0.05


def test_keyword_frequencies_twin_follows_zipf():
    table = KeywordFrequenciesTwin().load()
    assert table.domain == KeywordFrequencies().domain and table.bound == Bound(1)
    assert len(table) == 20_000 and table.total == 3_141_763
    falling = np.sort(table.counts)[::-1]
    rank = np.arange(1, 20_001)
    slope, _ = np.polyfit(np.log(rank[:5000]), np.log(falling[:5000]), 1)
    assert abs(slope + 1) < 0.05 and len(np.unique(falling)) < 1200


# Surnames

CENSUS = (
    "name,rank,count,prop100k,cum_prop100k,pctwhite\r\n"
    "SMITH,1,2442977,828.19,828.19,70.9\r\nNULL,2,15,1,1,(S)\r\nCHE,3,14,1,1,(S)\r\n"
    "ALL OTHER NAMES,0,29312001,9936.97,9936.97,66.65\r\n"
)


def archive(text: str) -> bytes:
    """As the Census Bureau has it: a table beside its spreadsheet."""
    with zipfile.ZipFile(out := io.BytesIO(), "w") as made:
        made.writestr("Names_2010Census.xlsx", b"PK")
        made.writestr("Names_2010Census.csv", text)
    return out.getvalue()


def test_surnames_from_the_publishers_archive_or_table(folder):
    path = folder / "surnames" / "names.zip"
    path.parent.mkdir()
    path.write_bytes(archive(CENSUS))
    table = Surnames(n=3).load()
    assert table.dense().tolist() == [2442977, 15, 14] and table.bound == Bound(1)
    assert cells(table) == {(1,): 2442977, (2,): 15, (3,): 14}
    assert Surnames(n=2).load().total == 2442992
    refuses(Surnames(n=4), path, "ends after 3 names; need 4")
    assert published.verify("surnames")[0].state == "unknown"
    path.unlink()
    path = pack(folder / "Names_2010Census.csv.gz", CENSUS.replace(",14,", ",1x,"))
    refuses(Surnames(n=1), path, "row 3", "'count'", "'1x'")
    path.unlink()
    with pytest.raises(FileNotFoundError, match="workbench data fetch surnames"):
        Surnames().load()


def test_surnames_from_the_rendering(folder):
    path = folder / "surnames" / "census_2010.parquet"
    path.parent.mkdir()
    frame = pl.DataFrame({"name": ["A", "B", "ALL OTHER NAMES"], "count": [9, 7, 100]})
    frame.with_columns(rank=pl.Series([1, 2, 0])).write_parquet(path)
    assert Surnames(n=2).load().counts.tolist() == [9, 7]
    frame.with_columns(count=pl.Series([9, None, 100])).write_parquet(path)
    refuses(Surnames(n=2), path, "row 2", "'count'", "nothing")
    frame.drop("count").write_parquet(path)
    refuses(Surnames(n=2), path, "has no column count")
    path.write_bytes(b"PAR1 and then nothing")
    refuses(Surnames(n=2), path, "cannot be read")


def test_a_fetched_file_without_a_recorded_sha256_is_taken_as_it_comes(folder, monkeypatch):
    monkeypatch.setattr(
        pooch, "HTTPDownloader",
        lambda *_, **more: lambda url, part, _: part.write_bytes(archive(CENSUS)),
    )  # fmt: skip
    (path,) = published.fetch("surnames")
    assert path.name == "names.zip" and Surnames(n=3).load().counts[0] == 2442977
    assert published.verify("surnames")[0].state == "unknown"


# Degrees

EDGES = """# Directed graph, each pair twice, say: "toy.txt
# FromNodeId\tToNodeId
0\t1
1 0
2   1

0\t1
3\t3
 4\t0\t
"""


@pytest.fixture
def graph(folder, monkeypatch):
    """Degrees of the edges in a file, of so many nodes."""

    def degrees(text, nodes):
        monkeypatch.setitem(hay2010.SNAP, "ca-GrQc", (nodes, ""))
        pack(folder / "graphs/ca-GrQc.txt", text)
        return SnapDegrees().load().dense()

    return degrees


def test_degrees_of_an_undirected_graph(graph):
    assert graph(EDGES.replace("\n", "\r\n"), 5).tolist() == [2, 2, 1, 0, 1]
    assert graph(EDGES.replace("2", "50"), 5).tolist() == [2, 2, 0, 1, 1]


def test_one_edge_more_moves_two_degrees_by_one(graph):
    rng = np.random.default_rng(0)
    ends = np.concatenate([rng.integers(0, 50, (300, 2)), np.stack([np.arange(50)] * 2, 1)])
    for last in ((3, 4), (49, 0), (7, 7)):
        both = []
        for more in (ends, np.concatenate([ends, [last]])):
            both.append(graph("".join(f"{a} {b}\n" for a, b in more), 50))
        moved = abs(both[1] - both[0])
        assert moved.sum() in (0, 2) and moved.max() <= 1
    assert both[0].sum() == 2 * len({frozenset(e) for e in ends.tolist() if e[0] != e[1]})


def test_snap_graphs_are_read_by_name(folder):
    path = pack(folder / "graphs/ca-GrQc.txt.gz", EDGES)
    refuses(SnapDegrees(), path, "5 nodes", "need 5242")
    chain = "".join(f"{7 * i}\t{7 * i + 7}\n" for i in range(5241))
    pack(path, "# FromNodeId\tToNodeId\n" + chain)
    table = SnapDegrees().load()
    assert table.domain == SnapDegrees().domain and table.total == 2 * 5241
    assert table.bound == Bound(2, 1) and table.truth_public
    states = {r.file: r.state for r in published.verify("graphs")}
    assert states["ca-GrQc.txt"] == "different" and states["ca-HepTh.txt"] == "missing"
    with pytest.raises(FileNotFoundError, match="workbench data fetch graphs"):
        SnapDegrees("ca-HepTh").load()


# Events

RETAIL_FILE = "online_retail/online_retail.csv"
SHOP = """InvoiceNo,Description,InvoiceDate,CustomerID,Country
1,"RED, WHITE",2010-12-01 00:00:00,17850.0,UK
1,BLUE,2010-12-01 00:59:59,17850.0,UK
2,LAMP,2010-12-01 01:00:00,17850.0,UK
2,LAMP,2010-12-01 01:30:00,,UK
3,LAMP,2011-12-09 23:59:00,12347.0,FR
"""


def test_a_customer_keeps_at_most_so_many_lines_whatever_the_others_do(folder):
    rng = np.random.default_rng(1)
    rows = [(f"c{u}", int(h)) for u in range(40) for h in rng.integers(0, 200, 3 * u)]

    def table(rows, **more):
        text = "".join(f"2010-12-{1 + h // 24:02} {h % 24:02}:00:00,{u}\n" for u, h in rows)
        pack(folder / RETAIL_FILE, "InvoiceDate,CustomerID\n" + text)
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
    pack(folder / RETAIL_FILE, "InvoiceDate,CustomerID\n" + text)
    kept = sum(RetailHours(most=3, seed=s).load().dense()[:12] for s in range(800))
    assert kept.sum() == 2400 and abs(kept - 200).max() < 6 * (200 * 3 / 4) ** 0.5


def test_retail_hours(folder):
    with pytest.raises(FileNotFoundError, match=r"spreadsheet.*online\+retail.zip.*save"):
        RetailHours().load()
    pack(folder / RETAIL_FILE, SHOP)
    assert cells(RetailHours().load()) == {
        (0,): 2,
        (1,): 1,
        (8975,): 1,
    }  # who has no number is out
    table = RetailHours(most=2).load()
    assert table.domain == RetailHours().domain and table.domain.shape == (8976,)
    assert table.total == 3 and table.bound == Bound(2, 2, 2) and table.truth_public
    assert published.verify("online_retail")[0].state == "unknown"


# The real thing


@real(NetTrace())
def test_real_net_trace():
    table = NetTrace().load()
    assert (table.total, table.counts.max()) == (25_714, 1423)
    assert round(1 - table.density, 3) == 0.966


@real(SearchLogs())
def test_real_search_logs():
    table = SearchLogs().load()
    assert (table.total, table.counts.max()) == (335_889, 496)
    assert round(1 - table.density, 3) == 0.521


@real(SocialNetwork())
def test_real_social_network():
    table = SocialNetwork().load()
    assert (table.total, table.counts.max()) == (674_708, 1678)


@real(KeywordFrequencies())
def test_real_keyword_frequencies():
    assert len(KeywordFrequencies().load()) == 20_000


@real(SnapDegrees())
@pytest.mark.parametrize(
    "graph, full, edges, largest",
    [
        ("ca-GrQc", 5241, 14_484, 81),
        ("ca-HepTh", 9875, 25_973, 65),
        ("p2p-Gnutella08", 6301, 20_777, 97),
    ],
)
def test_real_graphs(graph, full, edges, largest):
    table = SnapDegrees(graph).load()
    assert (len(table), table.total, table.counts.max()) == (full, 2 * edges, largest)


@real(Surnames())
def test_real_surnames():
    table = Surnames().load()
    assert len(table) == 20_000 and table.counts[0] == 2_442_977
    assert (np.diff(table.counts) <= 0).all()
    if Surnames().files()[0].find().name == "census_2010.parquet":
        assert (table.total, table.counts[-1]) == (222_342_652, 1339)


@pytest.mark.slow
@real(RetailHours())
def test_real_retail_hours():
    table = RetailHours().load()
    assert (len(table), table.total) == (2758, 40_802)
    everything = RetailHours(most=7983).load()
    assert (len(everything), everything.total) == (2893, 541_909 - 135_080)
    assert (RetailHours(seed=1).load().dense() != table.dense()).any()
    by_hour = everything.dense().reshape(-1, 24).sum(axis=0)
    assert by_hour[:6].sum() == 0 and by_hour.argmax() == 12


def test_ranked_is_the_sorted_counts_of_any_dataset():
    ranked = datasets.Ranked(datasets.NetTraceTwin())
    assert repr(ranked) == "Ranked(dataset=NetTraceTwin())" and ranked.truth_public
    table = ranked.load()
    own = datasets.NetTraceTwin().load()
    assert table.domain == ranked.domain == own.ranked().domain
    assert (table.dense() == np.sort(own.dense())).all() and table.bound == own.bound
    assert table.truth_public and ranked.files() == ()
    files = datasets.Ranked(datasets.NetTrace()).files()
    assert [f.name for f in files] == [f.name for f in datasets.NetTrace().files()]
    with pytest.raises(ValueError, match="need a dataset"):
        datasets.Ranked(3)


def test_rows_of_a_ranked_dataset_follow_the_sources_of_what_it_wraps(tmp_path, monkeypatch):
    from workbench import DP, Sweep, run
    from workbench.mechanisms import UnattributedHistogram
    from workbench.trials import inputs
    from workbench.trials.metrics import SquaredError

    asked = []
    monkeypatch.setattr(inputs, "source_hash", lambda modules: asked.append(modules) or "")
    monkeypatch.setattr(inputs, "edited", lambda modules: "")
    data = datasets.Ranked(datasets.NetTraceTwin())
    sweep = Sweep([data], [UnattributedHistogram(DP(1.0))], [SquaredError()], 1)
    assert len(run(sweep, tmp_path)) == 1
    assert "workbench.datasets.hay2010" in asked[0]
