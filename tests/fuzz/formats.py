"""The kinds of files that strangers may hand over: whole ones, and what is done with them."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from tests.fuzz.damage import PACKS, as_text, parquet_bytes
from workbench import DP, ZCDP, Bound, Domain, Marginals, Release, SparseTable, mechanisms
from workbench.data import Interactions, Records
from workbench.datasets import (
    Foursquare,
    Gowalla,
    MovieLens,
    NetflixPrize,
    OnTheMap,
    checkins,
    ratings,
)
from workbench.estimates import DerivedAnswers, Microdata, SelectedValues
from workbench.inference import MaximumEntropy
from workbench.mechanisms.laws import Subject, seeded
from workbench.owner import Budget, Session
from workbench.queries import Dyadic, Haar
from workbench.queries.stated import read_marginals, read_queries
from workbench.spaces import Attributes, Prefixes, Taxonomy

DOMAIN = Domain(("home", "hour"), (3, 24), (("Bern", "Genf", "Chur"), None))


class Format(NamedTuple):
    """Whole folders of files, the main one first; `use` reads what is there, as a user does."""

    wholes: Callable[[], list[dict[str, bytes]]]
    use: Callable[[Path], Any]
    patch: Callable[[Any], None] = lambda monkeypatch: None


def _made(write: Callable[[Path], Any]) -> dict[str, bytes]:
    """The files that `write` leaves in a folder."""
    with TemporaryDirectory() as folder:
        write(Path(folder))
        files = [path for path in sorted(Path(folder).iterdir()) if path.is_file()]
        return {path.name: path.read_bytes() for path in files}


# Releases


@cache
def releases() -> list[Release]:
    """Of every mechanism of which a release may be saved, and of estimates that no example holds."""
    made = []
    for cls in mechanisms.ALL:
        subject = Subject(cls)
        bound = Bound(2, 1) if cls.__name__ == "SRA" else Bound()
        release = subject.release(subject.table([4, 1, 9], bound), seeded())
        made += [] if release.idealised else [release]
    budget = DP(4.0)
    table = SparseTable.from_keys(DOMAIN, [1, 30, 60], [40, 90, 10], Bound())
    others = []
    for transform in (Dyadic(), Haar(), Dyadic(2)):
        filtered = mechanisms.HighPassFilter(budget, theta=5, transform=transform)
        others.append(filtered(table, seeded()).estimate)
    taxonomy = Taxonomy((("A", None), ("B", None), ("A1", "A"), ("A2", "A"), ("A21", "A2")))
    points = pd.DataFrame({"x": [0, 3, 3], "y": [8, 1, 1]})
    for tree, values in (
        (Prefixes("abc", 60), ["ab", "ab", "c" * 60, ""]),
        (taxonomy, ["A1", "A21", "A21", "B"]),
        (Attributes(Domain(("x", "y"), (4, 9))), points),
    ):
        records = Records.from_values(tree, values, Bound(), counts=[30] * len(values))
        others.append(mechanisms.PrivTree(budget)(records, seeded()).estimate)
    synthesis = mechanisms.DirectSynthesis(budget, depth=2, split="exponential")
    others.append(synthesis(records, seeded()).estimate)
    answers = mechanisms.LaplaceQueries(budget, Marginals(1))(table, seeded()).estimate
    others.append(MaximumEntropy(0.01, 140.0)(answers))
    derived = (DOMAIN, answers.workload, answers.values, answers.variances)
    others.append(DerivedAnswers(*derived))
    others.append(Microdata(DOMAIN, np.array([1, 1, 60])))
    others.append(SelectedValues("word", ("axe", "hut"), np.array([90, 400]), 2.0))
    others.append(SelectedValues("word", ("axe", "hut"), np.zeros(0, int)))
    ledger = tuple(made[0].ledger)
    return made + [replace(made[0], estimate=other, ledger=ledger) for other in others]


@cache
def saved() -> list[tuple[pa.Table, dict[str, Any]]]:
    """The rows and the record of each."""
    return [
        (release.estimate.to_arrow(), json.loads(json.dumps(release._record())))
        for release in releases()
    ]


@cache
def parquet_releases() -> list[dict[str, bytes]]:
    return [{"a.parquet": parquet_bytes(table, as_text(record))} for table, record in saved()]


@cache
def csv_releases() -> list[dict[str, bytes]]:
    own = [release for release in releases() if release.estimate.kind != "model"]
    return [_made(lambda at, r=r: r.save(at / "a.csv", simulated=True)) for r in own]


def use_release(folder: Path) -> None:
    """What the command line and notebooks do with one."""
    (path,) = (p for p in folder.iterdir() if p.suffix in (".parquet", ".csv"))
    release = Release.load(path)
    repr(release), release.privacy, release.relation, release.by_theorem
    release._repr_html_()
    release.to_frame()
    for use in (
        lambda: release.answer([{}], error=True),
        lambda: release.largest(3),
        lambda: (release.cells_from_nothing, release.mostly_noise),
    ):
        try:
            use()
        except ValueError:  # what this kind does not have
            pass


# Sessions with a bank, and budgets


@cache
def session_files(budget: DP | ZCDP = DP(2.0, 1e-6)) -> list[dict[str, bytes]]:  # noqa: B008
    """One that was spent from, and its counter."""

    def spend(folder: Path) -> None:
        path = folder / "a.session"
        table = SparseTable.from_keys(DOMAIN, [1, 30], [4, 9], Bound())
        Budget.create(path, budget, people="customers", unit="a trip")
        session = Session.open(path, table)
        if isinstance(budget, DP):
            session.ask(Marginals(1), 0.5)
        session.budget.release(
            mechanisms.HighPassFilter(DP(0.25), theta=5), table, unit="a trip"
        )

    return [_made(spend)]


def use_session(folder: Path, *, recall: bool = True) -> None:
    """What is left, what was spent, and what the bank answers."""
    session = Session.open(folder / "a.session")
    repr(session), session.budget.remaining, session.budget.ledger
    if recall:
        session.bank.recall(Marginals(1))


# What is stated: domains, queries, tables

PREPARED = {
    "home": ["Bern", "Genf", "Chur"],
    "hour": 24,
    "age": {"low": 0, "high": 90, "width": 30, "missing": "label"},
    "year": {"from": 2000, "to": 2008, "step": 2},
    "day": {"column": "when", "time": "weekday", "format": "%Y-%m-%d", "other": "drop"},
    "kind": {"column": "code", "map": {"a": "x", "b": "y"}, "other": "refuse"},
    "both": {"cross": [{"column": "c", "labels": ["a"]}, {"column": "d", "edges": [0, 1, 5]}]},
}
DOMAINS = [
    {"domain.json": as_text(PREPARED)},
    {
        "domain.json": b'{"place": {"file": "places.txt"}, "kind": {"column": "c", "map": "map.csv"}}',
        "places.txt": b"Bern\nGenf\n",
        "map.csv": b"from,to\na,x\nb,y\n",
    },
]
QUERIES = [
    {"queries.txt": b"home=Bern hour=7..9\n# all\n*\nhome=Bern|Genf\n"},
    {"queries.txt": b'"home"="Chur", hour=3\n'},
    {"queries.json": b'["home=Bern", {"hour": {"from": 7, "to": 9}, "home": ["Bern"]}, {}]'},
    {"marginals.txt": b"home, hour\nhour\n"},
    {"marginals.json": b'[["home", "hour"], ["hour"]]'},
]
FRAME = pd.DataFrame(
    {
        "home": ["Bern", "Genf", "Bern", "Chur"],
        "hour": [0, 7, 7, 23],
        "person": [1, 1, 2, 3],
        "count": [1, 2, 1, 40],
    }
)
TEXTS = [
    FRAME.to_csv(index=False).encode(),
    b'home,hour,person,count\r\n"Bern","7","x ""y""",1\r\n Genf ,8,"a\nb",2\n\n,,,\n',
]


def use_domain(folder: Path) -> None:
    """Its text, a copy, and rows of it."""
    domain = Domain.read(folder / "domain.json")
    repr(domain), hash(domain)
    assert Domain.from_dict(json.loads(json.dumps(domain.to_dict()))) == domain
    texts = pl.Series(["Bern", "1", "", None, "2025-03-01"])
    domain.row_keys(dict.fromkeys(domain.columns, texts))


def use_queries(folder: Path) -> None:
    """They are read, and answered."""
    (path,) = folder.iterdir()
    read = read_queries if path.stem == "queries" else read_marginals
    table = SparseTable.from_keys(DOMAIN, [1, 30], [4, 9], Bound())
    table.answer(read(str(path), DOMAIN))


def packed_tables(ending: str) -> list[dict[str, bytes]]:
    return [{f"a.csv{ending}": PACKS[ending][0](text)} for text in TEXTS]


def parquet_tables() -> list[dict[str, bytes]]:
    other = FRAME.astype({"home": "category", "hour": "uint8", "count": "float"})
    tables = (pa.Table.from_pandas(frame) for frame in (FRAME, other))
    return [{"a.parquet": parquet_bytes(table)} for table in tables]


def use_table(folder: Path) -> None:
    """Read as a table with users, as one without, and as interactions."""
    (path,) = folder.iterdir()
    SparseTable.read(path, DOMAIN, Bound(2, 3), count="count", user="person")
    SparseTable.read(path, DOMAIN, Bound())
    Interactions.read(path, user="person", domain=DOMAIN, bound=Bound(2, 1))


def use_columns(folder: Path) -> None:
    """Read as interactions, of which three columns of a Parquet file are named."""
    columns = {"user": "person", "item": "home", "context": "hour"}
    Interactions.read(folder / "a.parquet", domain=DOMAIN, bound=Bound(2, 1), **columns)


# Published files, as those who read them find them

HEAD = "w_geocode,h_geocode,S000,SA01,SA02,SA03,SE01,SE02,SE03,SI01,SI02,SI03,createdate"
LODES = {
    "onthemap/al_od_main_JT00_2019.csv": HEAD.encode() + b"\n"
    b"010010201001000,010030102002003,3,3,0,0,0,0,0,0,0,0,20211018\n"
    b"010010201001001,010030102002003,2,2,0,0,0,0,0,0,0,0,20211018\n",
    "onthemap/al_xwalk.csv": b"tabblk2010,st,ctyname,cty,createdate\n"
    b'010010201001000,01,"Ca\xf1on, AL",01001,20211018\n'
    b'010010201001001,01,"Ca\xf1on, AL",01001,20211018\n'
    b'010030102002003,01,"Ca\xf1on, AL",01003,20211018\n',
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
TSMC = {
    "foursquare/dataset_TSMC2014_NYC.txt": b"470\t49bbd6c0f964a520f4531fe3\t4bf58dd8d48988d127951735\t"
    b"Arts & Crafts\t40.71\t-74.00\t-240\tTue Apr 03 18:00:09 +0000 2012\n"
    b"979\t4a43c0aef964a520c6a61fe3\t4bf58dd8d48988d1df941735\tCaf\xe9\t40.60\t-74.04\t-240\t"
    b"Tue Apr 03 18:00:25 +0000 2012\r\n"
}


def foursquare_as_small(monkeypatch) -> None:
    monkeypatch.setitem(checkins.FORMS, "nyc", (1083, 2))


def netflix_as_small(monkeypatch) -> None:
    monkeypatch.setattr(ratings, "PARTS", ((1, 2, 3), (3, 3, 2)))


def gowalla_as_small(monkeypatch) -> None:
    monkeypatch.setattr(checkins, "PLACES", 3)
    monkeypatch.setattr(checkins, "CHECKINS", {"train": 29, "tune": 2, "test": 5})


def published(dataset, files: dict[str, bytes], *patch) -> Format:
    """Files as their publisher packs them. A dataset is made anew: it may keep what it has read."""
    endings = ("", ".gz", ".xz", ".zip")
    wholes = [
        {name + ending: PACKS[ending][0](content) for name, content in files.items()}
        for ending in endings
    ]
    return Format(lambda: wholes, lambda folder: repr(dataset().load()), *patch)


FORMATS = {
    "release": Format(parquet_releases, use_release),
    "release-csv": Format(csv_releases, use_release),
    "session": Format(session_files, use_session),
    "budget": Format(
        lambda: session_files(ZCDP(2.0, 1e-6)), partial(use_session, recall=False)
    ),
    "domain": Format(lambda: DOMAINS, use_domain),
    "queries": Format(lambda: QUERIES, use_queries),
    "csv": Format(lambda: packed_tables(""), use_table),
    "gz": Format(lambda: packed_tables(".gz"), use_table),
    "zst": Format(lambda: packed_tables(".zst"), use_table),
    "parquet": Format(parquet_tables, use_table),
    "interactions": Format(parquet_tables, use_columns),
    "lodes": published(lambda: OnTheMap(states=("al",)), LODES),
    "movielens": published(MovieLens, MOVIELENS),
    "netflix": published(NetflixPrize, NETFLIX, netflix_as_small),
    "gowalla": published(Gowalla, GOWALLA, gowalla_as_small),
    "gowalla-snap": published(lambda: Gowalla("snap"), SNAP),
    "foursquare": published(Foursquare, TSMC, foursquare_as_small),
}
