"""`python -m tests.fuzz.memory FORMAT SHAPE [--mb 8]`: what reading a made-up file takes, beyond what one
of the same kind takes that is almost empty. Shapes are few wide rows, many narrow ones, each of another
user or all alike, long texts, quotes; of packed files what they hold counts, not their own size.
"""

import argparse
import gc
import gzip
import json
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fuzz.format import DOMAIN
from tests.fuzz.published import HEAD
from tests.fuzz.saved import parquet_bytes
from tests.fuzz.stated import pack_zstd
from workbench import DP, Bound, Domain, Marginals, Release, SparseTable, mechanisms
from workbench.data import UNBOUNDED, Interactions
from workbench.data.reading import open_sources
from workbench.datasets import (
    Foursquare,
    Gowalla,
    MovieLens,
    NetflixPrize,
    OnTheMap,
    checkins,
    ratings,
)
from workbench.inference.answer_bank import AnswerBank
from workbench.inference.bank_fits import METHODS
from workbench.mechanisms.laws import seeded
from workbench.owner import Session
from workbench.owner.price import key_of, load_fits
from workbench.queries.stated import read_queries

MB = 2**20


class Kind(NamedTuple):
    """`write(folder, shape, size)` makes files of about `size` bytes, and says what they hold."""

    shapes: tuple[str, ...]
    write: Callable[[Path, str, int], int]
    use: Callable[[Path], None]
    mb: float = 8  # that a test makes


class Most(NamedTuple):
    """What reading takes at most: so many MB, and so many times what a file holds."""

    base: int
    times: int

    def megabytes(self, held: float) -> float:
        """Of a file that holds so many."""
        return self.base + self.times * held


MOST = {
    "csv": Most(128, 28),
    "gz": Most(128, 28),
    "zst": Most(128, 28),
    "parquet": Most(64, 30),
    "release": Most(16, 30),
    "release-csv": Most(16, 16),
    "domain": Most(16, 40),
    "queries": Most(16, 66),
    "session": Most(8, 2),
    "recall": Most(32, 13),
    "fits": Most(8, 5),
    "interactions": Most(64, 30),
    "lodes": Most(8, 20),
    "movielens": Most(16, 12),
    "netflix": Most(64, 2),
    "gowalla": Most(16, 20),
    "gowalla-snap": Most(16, 10),
    "foursquare-city": Most(16, 10),
    "foursquare-world": Most(16, 10),
}


def taken(name: str, shape: str, size: float) -> dict[str, float]:
    """MB of the file, of what it holds, and of memory beyond that for an almost empty one."""
    kind = KINDS[name]
    with pytest.MonkeyPatch.context() as monkeypatch, tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr("workbench.datasets.published.raw", lambda: Path(folder))
        for what in ("small", "large"):
            place = Path(folder) / what
            place.mkdir()
            monkeypatch.setenv("WORKBENCH_DATA", str(place))
            held = kind.write(place, shape, 1000 if what == "small" else int(size * MB))
            gc.collect()
            pa.default_memory_pool().release_unused()
            Path("/proc/self/clear_refs").write_text("5")
            before = _status("VmRSS")
            kind.use(place)
            peak = _status("VmHWM") - before
        files = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    return {"file": files / MB, "held": held / MB, "memory": peak / MB}


def _status(field: str) -> int:
    (line,) = (x for x in Path("/proc/self/status").open() if x.startswith(field))
    return 1024 * int(line.split()[1])


# Tables

_HOME = Domain(("a",), (3,))
_ROWS = ("one user", "users")


def _table_text(shape: str, size: int) -> bytes:
    match shape:
        case "narrow":
            return b"a\n" + b"1\n" * (size // 2)
        case "one user":
            return b"a,u\n" + b"1,7\n" * (size // 4)
        case "users":
            rows = np.arange(10**6, 10**6 + size // 10)
            return b"a,u\n" + b"".join(b"1,%d\n" % x for x in rows.tolist())
        case "wide":
            names = ["a", "u", *(f"n{i}" for i in range(300))]
            row = b",".join([b"1"] * len(names)) + b"\n"
            return ",".join(names).encode() + b"\n" + row * (size // len(row))
        case "long":
            row = b"1," + b"x" * 100_000 + b"\n"
            return b"a,u\n" + row * max(1, size // len(row))
        case "quotes":
            return b"a,u\n" + b'1,""""\n' * (size // 7)
    raise ValueError(shape)


def _csv(pack: Callable[[bytes], bytes], ending: str, shapes: tuple[str, ...]) -> Kind:
    def write(folder: Path, shape: str, size: int) -> int:
        text = _table_text(shape, size)
        (folder / f"a.{ending}").write_bytes(pack(text))
        return len(text)

    return Kind(shapes, write, _use_table)


def _use_table(folder: Path) -> None:
    (path,) = folder.iterdir()
    SparseTable.read(path, _HOME, Bound())
    if "u" not in open_sources(path)[0].names:
        return
    SparseTable.read(path, _HOME, Bound(1, 1), user="u")


def _write_parquet(folder: Path, shape: str, size: int) -> int:
    rows = max(2, size // 16)
    a = np.arange(rows) % 3
    u = np.arange(rows) * 7919
    how = {"use_dictionary": False, "compression": "none"}
    match shape:
        case "numbers":
            table = {"a": a, "u": u}
        case "one user":
            table = {"a": a * 0, "u": u * 0}
        case "texts":
            table = {"a": a.astype(str), "u": u.astype(str)}
        case "dictionary":
            table = {"a": a.astype(str), "u": (u % 1000).astype(str)}
            how = {"compression": "zstd"}
        case "wide":
            rows = max(2, size // 1600)
            table = {"a": a[:rows], "u": u[:rows]} | {f"n{i}": u[:rows] for i in range(198)}
        case "long":
            table = {
                "a": a[: rows // 64 + 1],
                "u": [f"p{i:0999}" for i in range(rows // 64 + 1)],
            }
    whole = pa.table(table)
    pq.write_table(whole, folder / "a.parquet", **how)
    return whole.nbytes


# Interactions

_FILMS = Domain(("film", "day"), (5000, 7))


def _write_interactions(folder: Path, shape: str, size: int) -> int:
    rows = max(2, size // 24)
    who = np.arange(rows) * 7919 % (2**40 + 15)  # in no order
    table: dict[str, Any] = {"who": who, "film": who % 5000, "day": who % 7}
    match shape:
        case "one user":
            table["who"] = who * 0
        case "texts":
            table = {name: column.astype(str) for name, column in table.items()}
        case "long":
            table = {name: column[: rows // 32 + 2] for name, column in table.items()}
            table["who"] = [f"p{i:0999}" for i in table["who"].tolist()]
    whole = pa.table(table)
    pq.write_table(whole, folder / "a.parquet", use_dictionary=False, compression="none")
    return whole.nbytes


def _use_interactions(folder: Path) -> None:
    path = folder / "a.parquet"
    named: dict[str, Any] = {"user": "who", "domain": _FILMS, "bound": UNBOUNDED}
    repr(Interactions.read(path, item="film", context="day", **named))
    repr(Interactions.read(path, **named))


# Releases

_CELLS = Domain(("cell",), (2**40,))


def _release(cells: int) -> Release:
    table = SparseTable.from_keys(_CELLS, np.arange(cells) * 97, np.full(cells, 900), Bound())
    return mechanisms.HighPassFilter(DP(1.0), theta=40)(table, seeded())


def _write_release(folder: Path, shape: str, size: int) -> int:
    release = _release(max(2, size // 16) if shape == "cells" else 2)
    record = json.loads(json.dumps(release._record()))
    table = release.estimate.to_arrow()
    if shape == "record":
        record["versions"] = {f"{i:07}": "1" for i in range(max(2, size // 16))}
    (folder / "a.parquet").write_bytes(parquet_bytes(table, record))
    return table.nbytes + len(json.dumps(record))


def _write_release_csv(folder: Path, shape: str, size: int) -> int:
    release = _release(max(2, size // 16) if shape == "cells" else 2)
    path = release.save(folder / "a.csv", simulated=True)
    if shape == "record":
        beside = path.with_name("a.csv.json")
        record = json.loads(beside.read_text())
        record["versions"] = {f"{i:07}": "1" for i in range(max(2, size // 16))}
        beside.write_text(json.dumps(record))
    return sum(p.stat().st_size for p in folder.iterdir())


def _use_release(folder: Path) -> None:
    path = next(p for p in folder.iterdir() if p.suffix != ".json")
    release = Release.load(path)
    repr(release), release.privacy
    release._repr_html_()
    release.to_frame()


# What is stated: domains, queries


def _write_domain(folder: Path, shape: str, size: int) -> int:
    beside = {}
    match shape:
        case "labels":
            domain = {"home": [f"{i:07}" for i in range(max(2, size // 11))]}
        case "edges":
            domain = {
                "c": {"column": "c", "edges": list(range(10**6, 10**6 + max(2, size // 9)))}
            }
        case "map":
            domain = {
                "c": {"column": "c", "map": {f"{i:06}": "x" for i in range(max(2, size // 13))}}
            }
        case "file":
            domain = {"home": {"file": "labels.txt"}}
            beside["labels.txt"] = "".join(f"{i:07}\n" for i in range(max(2, size // 8)))
        case "attributes":
            domain = {f"a{i:06}": 1 for i in range(max(2, size // 14))}
    (folder / "domain.json").write_text(json.dumps(domain))
    for name, text in beside.items():
        (folder / name).write_text(text)
    return sum(p.stat().st_size for p in folder.iterdir())


def _use_domain(folder: Path) -> None:
    domain = Domain.read(folder / "domain.json")
    repr(domain), hash(domain)


def _write_queries(folder: Path, shape: str, size: int) -> int:
    match shape:
        case "lines":
            text = "home=Bern\n" * max(1, size // 10)
            (folder / "queries.txt").write_text(text)
        case "all":
            (folder / "queries.txt").write_text("*\n" * max(1, size // 2))
        case "json":
            queries = [{"hour": {"from": 7, "to": 9}}] * max(1, size // 34)
            (folder / "queries.json").write_text(json.dumps(queries))
    return sum(p.stat().st_size for p in folder.iterdir())


def _use_queries(folder: Path) -> None:
    (path,) = folder.iterdir()
    read_queries(str(path), DOMAIN)


# Sessions and budgets


def _write_session(folder: Path, shape: str, size: int) -> int:
    path = folder / "a.session"
    answers = 2 if size < 10**4 else size // 90
    domain = Domain(("a",), (answers,))
    table = SparseTable.from_keys(domain, [0], [4], Bound())
    Session.create(path, DP(1e6), people="customers", unit="a trip")
    session = Session.open(path, table, unit="a trip")
    session.ask(Marginals(1), 0.5)
    if shape == "matrix":
        return 8 * answers**2
    return sum(p.stat().st_size for p in folder.iterdir())


def _use_session(folder: Path) -> None:
    session = Session.open(folder / "a.session")
    repr(session), session.remaining, session.ledger


def _use_bank(folder: Path) -> None:
    session = Session.open(folder / "a.session")
    repr(session), session.remaining, session.ledger
    session.recall(Marginals(1))


def _bank(answers: int) -> AnswerBank:
    table = SparseTable.from_keys(Domain(("a",), (answers,)), [0], [4], Bound())
    paid = mechanisms.LaplaceQueries(DP(1.0), Marginals(1))(table, seeded())
    return AnswerBank(paid.estimate, 4.0)


def _write_fits(folder: Path, shape: str, size: int) -> int:
    """What a bank of so many answers keeps, its numbers made up; or something that it does not."""
    n = 2 if size < 10**4 else math.isqrt(size // 8) if shape == "basis" else 100
    arrays = {
        "count": np.array(n),
        "key": np.array(key_of(_bank(n).history, n, _bank(n))),
        "methods": np.array([METHODS[0]]),
        **{name: np.zeros(1) for name in ("parameters", "scales", "stopped")},
        **{name: np.zeros((1, n)) for name in ("at_bought", "at_new")},
        **{name: np.zeros(n) for name in ("squares", "answers", "means")},
        "basis": np.zeros((n, n)),
    }
    if shape == "more":
        arrays["more"] = np.zeros(size // 8)
    with (folder / "a.fits").open("wb") as file:
        np.savez(file, **arrays)
    (folder / "answers").write_text(str(n))
    return sum(p.stat().st_size for p in folder.iterdir())


def _use_fits(folder: Path) -> None:
    bank = _bank(int((folder / "answers").read_text()))
    load_fits(folder / "a.fits", bank)
    assert "candidates" in vars(bank)


# Published files


def _write_lodes(folder: Path, shape: str, size: int) -> int:
    folder = folder / "onthemap"
    folder.mkdir()
    n = max(3, size // 100) if shape == "blocks" else 3
    blocks = [f"01{i:013}" for i in range(n)]
    names = "\n".join(["tabblk2010,createdate", *(f"{b},20211018" for b in blocks), ""])
    row = f"{blocks[0]},{blocks[1]},1,{'1,' * 9}20211018\n"
    rows = row * (max(1, size // len(row)) if shape != "blocks" else 1)
    (folder / "al_xwalk.csv").write_text(names)
    (folder / "al_od_main_JT00_2019.csv").write_text(HEAD + "\n" + rows)
    return sum(p.stat().st_size for p in folder.iterdir())


def _write_movielens(folder: Path, shape: str, size: int) -> int:
    folder = folder / "ml-1m"
    folder.mkdir()
    rows = [
        b"%d::%d::5::978300760\n" % (1 + i % 6040, 1 + i // 6040 % 3952)
        for i in range(max(1, size // 21))
    ]
    users = [b"%d::F::1::10::48067\n" % (1 + i) for i in range(6040)]
    (folder / "ratings.dat").write_bytes(b"".join(rows))
    (folder / "users.dat").write_bytes(b"".join(users))
    return sum(p.stat().st_size for p in folder.iterdir())


def _write_netflix(folder: Path, shape: str, size: int) -> int:
    n = max(1, size // 17)
    ratings.PARTS = ((1, 1, n),)
    rows = [b"%d,3,2005-09-06\n" % i for i in range(1, n + 1)]
    folder = folder / "netflix_prize"
    folder.mkdir()
    (folder / "combined_data_1.txt").write_bytes(b"1:\n" + b"".join(rows))
    return sum(p.stat().st_size for p in folder.iterdir())


def _write_gowalla(folder: Path, shape: str, size: int) -> int:
    folder = folder / "gowalla"
    folder.mkdir()
    n = max(1, size // 12)
    checkins.PLACES = 1 + n // 5000
    checkins.CHECKINS = {"train": n, "tune": 1, "test": 1}
    rows = [f"{i % 5000}\t{i // 5000}\t1\n" for i in range(n)]
    (folder / "Gowalla_train.txt").write_text("".join(rows))
    (folder / "Gowalla_tune.txt").write_text("5001\t0\t1\n")
    (folder / "Gowalla_test.txt").write_text("5002\t0\t1\n")
    places = (f"{i}\t30.2\t-97.7\n" for i in range(checkins.PLACES))
    (folder / "Gowalla_poi_coos.txt").write_text("".join(places))
    return sum(p.stat().st_size for p in folder.iterdir())


def _write_snap(folder: Path, shape: str, size: int) -> int:
    folder = folder / "gowalla"
    folder.mkdir()
    rows = (f"{i}\t2010-10-19T23:55:27Z\t30\t-97\t{i}\n" for i in range(max(1, size // 41)))
    (folder / "loc-gowalla_totalCheckins.txt").write_text("".join(rows))
    return sum(p.stat().st_size for p in folder.iterdir())


def _write_foursquare(folder: Path, shape: str, size: int) -> int:
    folder = folder / "foursquare"
    folder.mkdir()
    time = "Tue Apr 03 18:00:09 +0000 2012"
    if shape.startswith("nyc"):
        row = f"%d\t%024x\tc\tk\t40\t-74\t-240\t{time}\n"
        name = "dataset_TSMC2014_NYC.txt"
    else:
        row = f"%d\t%024x\t{time}\t240\n"
        name = "dataset_TIST2015_Checkins.txt"
    n = max(1, size // 70)
    for city in ("nyc", "world"):
        checkins.FORMS[city] = checkins.FORMS[city]._replace(check_ins=n)
    venues = n if shape.endswith("venues") else 1
    (folder / name).write_text("".join(row % (1 + i % 1000, i % venues) for i in range(n)))
    return sum(p.stat().st_size for p in folder.iterdir())


def _load(dataset: Callable) -> Callable[[Path], None]:
    return lambda folder: repr(dataset().load())


KINDS = {
    "csv": _csv(bytes, "csv", ("narrow", *_ROWS, "wide", "long", "quotes")),
    "gz": _csv(lambda text: gzip.compress(text, 6, mtime=0), "csv.gz", _ROWS),
    "zst": _csv(pack_zstd, "csv.zst", _ROWS),
    "parquet": Kind(
        ("numbers", "one user", "texts", "dictionary", "wide", "long"),
        _write_parquet,
        _use_table,
    ),
    "release": Kind(("cells", "record"), _write_release, _use_release),
    "release-csv": Kind(("cells", "record"), _write_release_csv, _use_release),
    "domain": Kind(
        ("labels", "edges", "map", "file", "attributes"), _write_domain, _use_domain
    ),
    "queries": Kind(("lines", "all", "json"), _write_queries, _use_queries, 2),
    "session": Kind(("answers",), _write_session, _use_session, 1),
    "recall": Kind(("matrix",), _write_session, _use_bank, 0.09),
    "fits": Kind(("basis", "more"), _write_fits, _use_fits),
    "interactions": Kind(
        ("numbers", "one user", "texts", "long"), _write_interactions, _use_interactions
    ),
    "lodes": Kind(("jobs", "blocks"), _write_lodes, _load(lambda: OnTheMap(states=("al",)))),
    "movielens": Kind(("ratings",), _write_movielens, _load(MovieLens)),
    "netflix": Kind(("ratings",), _write_netflix, _load(NetflixPrize)),
    "gowalla": Kind(("check-ins",), _write_gowalla, _load(Gowalla)),
    "gowalla-snap": Kind(("check-ins",), _write_snap, _load(lambda: Gowalla("snap"))),
    "foursquare-city": Kind(("nyc", "nyc, venues"), _write_foursquare, _load(Foursquare)),
    "foursquare-world": Kind(
        ("world", "world, venues"), _write_foursquare, _load(lambda: Foursquare("world"))
    ),
}


def main() -> None:
    """Prints what one file took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("format", choices=KINDS)
    parser.add_argument("shape")
    parser.add_argument("--mb", type=float)
    asked = parser.parse_args()
    print(json.dumps(taken(asked.format, asked.shape, asked.mb or KINDS[asked.format].mb)))


if __name__ == "__main__":
    main()
