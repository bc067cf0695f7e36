"""The kinds of files that strangers may hand over: whole ones, damaged ones, and what is done with them."""

import gzip
import io
import json
import sqlite3
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from tests.fuzz.damage import as_text, damaged, damaged_json, damaged_table
from workbench import DP, Bound, Domain, Marginals, Release, SparseTable, mechanisms
from workbench.datasets import (
    Gowalla,
    MovieLens,
    NetflixPrize,
    OnTheMap,
    gowalla,
    movielens,
    netflix_prize,
)
from workbench.estimates import Microdata
from workbench.estimates.estimate import Estimate
from workbench.hierarchy import Attributes, Prefixes, Taxonomy
from workbench.inference import MaximumEntropy
from workbench.interactions import Interactions
from workbench.laws.subject import Subject, seeded
from workbench.records import Records
from workbench.session import Session
from workbench.transform import Dyadic, Haar
from workbench.workload.stated import read_marginals, read_queries

DOMAIN = Domain(("home", "hour"), (3, 24), (("Bern", "Genf", "Chur"), None))
Draw = Callable[[st.SearchStrategy], Any]


class Format(NamedTuple):
    """`write` puts a damaged file (or several) into a folder; `use` reads what is there, as a user does."""

    write: Callable[[Path, Draw], None]
    use: Callable[[Path], None]
    patch: Callable[[Any], None] = lambda monkeypatch: None


# Release files


@cache
def releases() -> list[tuple[pa.Table, dict]]:
    """Of every mechanism of which a release may be saved, the rows and the record."""
    pairs = []
    for cls in mechanisms.ALL:
        subject = Subject(cls)
        bound = Bound(2, 1) if cls.__name__ == "SRA" else Bound()
        release = subject.release(subject.table([4, 1, 9], bound), seeded())
        if not release.idealised:
            pairs.append(
                (release.estimate.to_arrow(), json.loads(json.dumps(release._record())))
            )
    record = pairs[0][1]
    for estimate in _others():
        fields = {"kind": estimate.kind, "estimate": estimate.metadata()}
        pairs.append((estimate.to_arrow(), json.loads(json.dumps(record | fields))))
    return pairs


def _others() -> list[Estimate]:
    """Estimates that no example holds: of other hierarchies and transforms, and of models."""
    budget = DP(4.0)
    table = SparseTable.from_keys(DOMAIN, [1, 30, 60], [40, 90, 10], Bound())
    made = []
    for transform in (Dyadic(), Haar(), Dyadic(2)):
        filtered = mechanisms.HighPassFilter(budget, theta=5, transform=transform)
        made.append(filtered(table, seeded()))
    taxonomy = Taxonomy.of({"A": None, "B": None, "A1": "A", "A2": "A", "A21": "A2"})
    for tree, values in (
        (Prefixes("abc", 60), ["ab", "ab", "c" * 60, ""]),
        (taxonomy, ["A1", "A21", "A21", "B"]),
        (
            Attributes(Domain(("x", "y"), (4, 9))),
            pd.DataFrame({"x": [0, 3, 3], "y": [8, 1, 1]}),
        ),
    ):
        records = Records.from_values(tree, values, Bound(), counts=[30] * len(values))
        made.append(mechanisms.PrivTree(budget)(records, seeded()))
    made.append(
        mechanisms.DirectSynthesis(budget, depth=2, split="exponential")(records, seeded())
    )
    answers = mechanisms.LaplaceQueries(budget, Marginals(1))(table, seeded()).estimate
    model = MaximumEntropy(0.01, 140.0)(answers)
    return [
        *(release.estimate for release in made),
        model,
        Microdata(DOMAIN, np.array([1, 1, 60])),
    ]


def parquet_bytes(table: pa.Table, record: Any) -> bytes:
    """A file as `Release.save` writes it, whatever its record is."""
    metadata = {**(table.schema.metadata or {}), b"workbench": as_text(record)}
    out = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), out, compression="zstd")
    return out.getvalue()


def write_release(folder: Path, draw: Draw) -> None:
    """Bytes, the record, the rows, or the record of another kind."""
    table, record = draw(st.sampled_from(releases()))
    match draw(st.sampled_from(["bytes", "record", "record", "table", "table", "other"])):
        case "bytes":
            other = draw(st.sampled_from(releases()))
            wholes = [parquet_bytes(table, record), parquet_bytes(*other)]
            (folder / "a.parquet").write_bytes(draw(damaged(wholes)))
            return
        case "record":
            record = draw(damaged_json([record]))
        case "table":
            table = draw(damaged_table(table))
        case "other":
            record = draw(st.sampled_from(releases()))[1]
    (folder / "a.parquet").write_bytes(parquet_bytes(table, record))


def use_release(folder: Path) -> None:
    """All that is shown of a release, and an answer."""
    (path,) = (p for p in folder.iterdir() if p.suffix in (".parquet", ".csv"))
    release = Release.load(path)
    show(release)


def show(release: Release) -> None:
    """What the command line and notebooks do with one."""
    repr(release), release.privacy, release.relation, release.by_theorem
    release._repr_html_()
    release.to_frame()
    for use in (
        lambda: release.answer([{}], error=True),
        lambda: release.largest(3),
        lambda: release.to_frame(error=True),
        lambda: (release.cells_from_nothing, release.mostly_noise),
    ):
        try:
            use()
        except ValueError:  # what this kind does not have
            pass


@cache
def csv_releases() -> list[tuple[bytes, dict]]:
    """The same as CSV with what stands beside it."""
    import tempfile

    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        for i, cls in enumerate(mechanisms.ALL):
            subject = Subject(cls)
            release = subject.release(subject.table([4, 1, 9]), seeded())
            if not release.idealised:
                path = release.save(Path(folder) / f"{i}.csv", simulated=True)
                beside = json.loads(path.with_name(f"{i}.csv.json").read_text())
                pairs.append((path.read_bytes(), beside))
    return pairs


def write_csv_release(folder: Path, draw: Draw) -> None:
    """The rows, the sidecar, or both; its digest fits, or nothing else would be looked at."""
    from hashlib import sha256

    rows, record = draw(st.sampled_from(csv_releases()))
    match draw(st.sampled_from(["rows", "record", "bytes", "other"])):
        case "rows":
            rows = draw(damaged([rows]))
            record = record | {"sha256": {"a.csv": sha256(rows).hexdigest()}}
        case "record":
            record = draw(damaged_json([record]))
        case "other":
            digest = record["sha256"]
            record = draw(st.sampled_from(csv_releases()))[1] | {"sha256": digest}
    beside = as_text(record)
    if draw(st.integers(0, 3)) == 3:
        beside = draw(damaged([beside]))
    (folder / "a.csv").write_bytes(rows)
    (folder / "a.csv.json").write_bytes(beside)


# Budget files


@cache
def session_files() -> dict[str, bytes]:
    """A session with a bank, and its counter."""
    import tempfile

    from workbench import Marginals

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.session"
        table = SparseTable.from_keys(DOMAIN, [1, 30], [4, 9], Bound())
        Session.create(path, DP(2.0, 1e-6), people="customers", unit="a trip")
        session = Session.open(path, table, unit="a trip")
        session.ask(Marginals(1), 0.5)
        session.release(mechanisms.HighPassFilter(DP(0.25), theta=5), table, unit="a trip")
        return {p.name: p.read_bytes() for p in Path(folder).iterdir()}


def write_session(folder: Path, draw: Draw) -> None:
    """Bytes of the file or of its counter; or what it says of itself, with a checksum that fits."""
    files = session_files()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    kind = draw(st.sampled_from(["bytes", "about", "counter", "cells"]))
    if kind in ("bytes", "counter"):
        name = "a.session" if kind == "bytes" else draw(st.sampled_from(sorted(files)))
        (folder / name).write_bytes(draw(damaged([files[name]])))
        return
    db = sqlite3.connect(folder / "a.session")
    if kind == "about":
        texts = dict(db.execute("SELECT name, value FROM about"))
        record = {n: json.loads(text) for n, text in texts.items() if n != "checksum"}
        record = draw(damaged_json([record]))
        if isinstance(record, dict):
            from workbench.session import file

            try:
                db.execute("DELETE FROM about")
                file._write_about(db, record)
            except (sqlite3.Error, ValueError):
                pass
    else:
        table, column = draw(
            st.sampled_from(
                [
                    ("bank", "query"),
                    ("bank", "variance"),
                    ("bank", "value"),
                    ("ledger", "asked"),
                ]
            )
        )
        strange = draw(
            st.sampled_from([None, 0, -1, 1e308, "nan", "{", b"\xff", '["r", 0, 1e99]'])
        )
        try:
            db.execute(f"UPDATE {table} SET {column} = ?", (strange,))
        except sqlite3.Error:
            pass
    db.commit()
    db.close()


def use_session(folder: Path) -> None:
    """What is left, what was spent, and what the bank answers."""
    from workbench import Marginals

    session = Session.open(folder / "a.session")
    repr(session), session.remaining, session.ledger
    session.recall(Marginals(1))


# Domains, queries


DOMAINS = [
    {
        "home": ["Bern", "Genf", "Chur"],
        "hour": 24,
        "age": {"low": 0, "high": 90, "width": 30, "missing": "label"},
        "year": {"from": 2000, "to": 2008, "step": 2},
        "day": {"column": "when", "time": "weekday", "format": "%Y-%m-%d", "other": "drop"},
        "kind": {"column": "code", "map": {"a": "x", "b": "y"}, "other": "refuse"},
        "both": {
            "cross": [{"column": "c", "labels": ["a"]}, {"column": "d", "edges": [0, 1, 5]}]
        },
    },
    {"place": {"file": "places.txt"}, "kind": {"column": "c", "map": "map.csv"}},
]
BESIDE = {"places.txt": b"Bern\nGenf\n", "map.csv": b"from,to\na,x\nb,y\n"}


def write_domain(folder: Path, draw: Draw) -> None:
    """A domain's file, and the lists of labels and maps beside it."""
    domain = draw(st.sampled_from(DOMAINS))
    content = as_text(domain)
    beside = dict(BESIDE)
    match draw(st.sampled_from(["bytes", "json", "json", "beside"])):
        case "bytes":
            content = draw(damaged([content]))
        case "json":
            content = as_text(draw(damaged_json([domain])))
        case "beside":
            content = as_text(DOMAINS[1])
            name = draw(st.sampled_from(sorted(beside)))
            beside[name] = draw(damaged([beside[name]]))
    (folder / "domain.json").write_bytes(content)
    for name, text in beside.items():
        (folder / name).write_bytes(text)


def use_domain(folder: Path) -> None:
    """Its text, a copy, and rows of it."""
    domain = Domain.read(folder / "domain.json")
    repr(domain), hash(domain)
    assert Domain.from_dict(json.loads(json.dumps(domain.to_dict()))) == domain
    texts = pa.array(["Bern", "1", "", None, "2025-03-01"])
    rows = dict.fromkeys(domain.columns, texts)
    domain.refusals(rows)


QUERIES = [b"home=Bern hour=7..9\n# all\n*\nhome=Bern|Genf\n", b'"home"="Chur", hour=3\n']
QUERIES_JSON = [["home=Bern", {"hour": {"from": 7, "to": 9}, "home": ["Bern", "Genf"]}, {}]]
MARGINALS = [b"home, hour\nhour\n", b"hour\n"]
MARGINALS_JSON = [[["home", "hour"], ["hour"]]]


def write_queries(folder: Path, draw: Draw) -> None:
    """Queries or marginals, as text or JSON."""
    kind = draw(st.sampled_from(["queries", "marginals"]))
    lines, records = (
        (QUERIES, QUERIES_JSON) if kind == "queries" else (MARGINALS, MARGINALS_JSON)
    )
    match draw(st.sampled_from(["lines", "json", "bytes"])):
        case "lines":
            (folder / f"{kind}.txt").write_bytes(draw(damaged(lines)))
        case "json":
            (folder / f"{kind}.json").write_bytes(as_text(draw(damaged_json(records))))
        case "bytes":
            wholes = [as_text(record) for record in records]
            (folder / f"{kind}.json").write_bytes(draw(damaged(wholes)))


def use_queries(folder: Path) -> None:
    """They are read, and answered."""
    (path,) = folder.iterdir()
    table = SparseTable.from_keys(DOMAIN, [1, 30], [4, 9], Bound())
    if path.stem == "queries":
        table.answer(read_queries(str(path), DOMAIN))
    else:
        table.answer(read_marginals(str(path), DOMAIN))


# Tables


FRAME = pd.DataFrame(
    {
        "home": ["Bern", "Genf", "Bern", "Chur"],
        "hour": [0, 7, 7, 23],
        "person": [1, 1, 2, 3],
        "count": [1, 2, 1, 40],
    }
)
CSV_TEXT = FRAME.to_csv(index=False).encode()
MORE_TEXT = b'home,hour,person,count\r\n"Bern","7","x ""y""",1\r\n Genf ,8,"a\nb",2\n\n,,,\n'


@cache
def table_files() -> dict[str, list[bytes]]:
    """Whole tables by their endings."""
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(FRAME), out, row_group_size=2)
    other = io.BytesIO()
    frame = FRAME.astype({"home": "category", "hour": "uint8", "count": "float"})
    pq.write_table(pa.Table.from_pandas(frame), other, compression="zstd")
    texts = [CSV_TEXT, MORE_TEXT]
    return {
        "csv": texts,
        "csv.gz": [gzip.compress(text, mtime=0) for text in texts],
        "csv.zst": [pa.compress(text, codec="zstd", asbytes=True) for text in texts],
        "parquet": [out.getvalue(), other.getvalue()],
    }


def table_format(ending: str) -> Format:
    """Tables of users' rows in a file of this ending."""

    def write(folder: Path, draw: Draw) -> None:
        content = draw(damaged(table_files()[ending]))
        if ending == "parquet" and draw(st.booleans()):
            table = draw(damaged_table(pa.Table.from_pandas(FRAME)))
            out = io.BytesIO()
            pq.write_table(table, out)
            content = out.getvalue()
        elif ending != "csv" and ending != "parquet" and draw(st.booleans()):
            text = draw(damaged(table_files()["csv"]))  # damaged before it was packed
            packs = {"csv.gz": gzip.compress, "csv.zst": _zstd}
            content = packs[ending](text)
        (folder / f"a.{ending}").write_bytes(content)

    def use(folder: Path) -> None:
        path = folder / f"a.{ending}"
        SparseTable.read(path, DOMAIN, Bound(2, 3), count="count", user="person")
        SparseTable.read(path, DOMAIN, Bound())
        Interactions.read(path, user="person", domain=DOMAIN, bound=Bound(2, 1))

    return Format(write, use)


def _zstd(text: bytes) -> bytes:
    return pa.compress(text, codec="zstd", asbytes=True)


# Published files

HEAD = "w_geocode,h_geocode,S000,SA01,SA02,SA03,SE01,SE02,SE03,SI01,SI02,SI03,createdate"
BLOCKS = ("010010201001000", "010010201001001", "010030102002003")


def _lodes() -> dict[str, bytes]:
    rows = ((0, 2, 3), (1, 2, 2), (2, 0, 1))
    flows = [f"{BLOCKS[w]},{BLOCKS[h]},{n},{n},{'0,' * 8}20211018" for w, h, n in rows]
    names = [f'{b},{b[:2]},"Cañon, AL",{b[:5]},20211018' for b in BLOCKS]
    crosswalk = ["tabblk2010,st,ctyname,cty,createdate", *names, ""]
    return {
        "onthemap/al_od_main_JT00_2019.csv": "\n".join([HEAD, *flows, ""]).encode(),
        "onthemap/al_xwalk.csv": "\n".join(crosswalk).encode("latin-1"),
    }


MOVIELENS = {
    "ml-1m/ratings.dat": b"1::1193::5::978300760\n2::1::3::978300760\n1::3952::4::978220760\n",
    "ml-1m/users.dat": b"1::F::1::10::48067\n2::M::56::16::70072\n3::M::25::15::55117\n",
}
NETFLIX = {
    "netflix_prize/combined_data_1.txt": b"1:\n6,3,2005-09-06\n2649429,5,2004-02-29\n2:\n6,1,1999-11-11\n",
    "netflix_prize/combined_data_2.txt": b"3:\n30878,4,2005-12-26\n6,4,2005-12-31\n",
}
GOWALLA = {
    "gowalla/Gowalla_train.txt": b"0\t1\t28\r\n3\t2\t1",
    "gowalla/Gowalla_tune.txt": b"0\t0\t2\r\n",
    "gowalla/Gowalla_test.txt": b"0\t2\t1\r\n3\t1\t4",
    "gowalla/Gowalla_poi_coos.txt": b"0\t30.2\t-97.7\r\n1\t32.7\t-97\r\n2\t37.7\t-122.4",
}
SNAP = {
    "gowalla/loc-gowalla_totalCheckins.txt": b"0\t2010-10-19T23:55:27Z\t30.23\t-97.79\t22847\n"
    b"0\t2010-05-31T23:59:59Z\t30.23\t-97.79\t420315\n2\t2010-10-18T22:17:43Z\t59.2\t18.0\t9410\n"
}


def _movielens_as_small(monkeypatch) -> None:
    form = movielens.FORMS["1m"]._replace(count=3)
    monkeypatch.setitem(movielens.FORMS, "1m", form)


def _netflix_as_small(monkeypatch) -> None:
    monkeypatch.setattr(netflix_prize, "PARTS", ((1, 2, 3), (3, 3, 2)))


def _gowalla_as_small(monkeypatch) -> None:
    monkeypatch.setattr(gowalla, "PLACES", 3)
    monkeypatch.setattr(gowalla, "CHECKINS", {"train": 29, "tune": 2, "test": 5})


def published(dataset, files: dict[str, bytes], patch=lambda monkeypatch: None) -> Format:
    """Files as their publisher packs them, one of them damaged, before it was packed or after."""

    def write(folder: Path, draw: Draw) -> None:
        hurt = draw(st.sampled_from(sorted(files)))
        suffix = draw(st.sampled_from(["", ".gz", ".xz", ".zip"]))
        for name, content in files.items():
            if name == hurt and (not suffix or draw(st.booleans())):
                content = draw(damaged([content]))
                packed = _packed(content, suffix, Path(name).name)
            else:
                packed = _packed(content, suffix, Path(name).name)
                packed = draw(damaged([packed])) if name == hurt else packed
            path = folder / (name + suffix)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(packed)

    def use(folder: Path) -> None:
        data = dataset().load()  # made anew: it may keep what it has read
        repr(data)

    return Format(write, use, patch)


def _packed(content: bytes, suffix: str, name: str) -> bytes:
    import lzma
    import zipfile

    match suffix:
        case ".gz":
            return gzip.compress(content, mtime=0)
        case ".xz":
            return lzma.compress(content)
        case ".zip":
            out = io.BytesIO()
            with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(name, content)
            return out.getvalue()
    return content


FORMATS = {
    "release": Format(write_release, use_release),
    "release-csv": Format(write_csv_release, use_release),
    "session": Format(write_session, use_session),
    "domain": Format(write_domain, use_domain),
    "queries": Format(write_queries, use_queries),
    "csv": table_format("csv"),
    "gz": table_format("csv.gz"),
    "zst": table_format("csv.zst"),
    "parquet": table_format("parquet"),
    "lodes": published(lambda: OnTheMap(states=("al",)), _lodes()),
    "movielens": published(MovieLens, MOVIELENS, _movielens_as_small),
    "netflix": published(NetflixPrize, NETFLIX, _netflix_as_small),
    "gowalla": published(Gowalla, GOWALLA, _gowalla_as_small),
    "gowalla-snap": published(lambda: Gowalla("snap"), SNAP),
}
