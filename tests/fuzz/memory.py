"""`python -m tests.fuzz.memory FORMAT SHAPE [--mb 8]`: what reading a made-up file takes, beyond what one
of the same kind takes that is almost empty. Shapes are few wide rows, many narrow ones, each of another
user or all alike, long texts, quotes; of packed files what they hold counts, not their own size.
"""

import argparse
import gc
import gzip
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fuzz.banks import use_budget, use_session
from tests.fuzz.format import DOMAIN
from tests.fuzz.published import HEAD
from tests.fuzz.saved import parquet_bytes
from tests.fuzz.stated import pack_zstd
from workbench import DP, Bound, Domain, Marginals, Release, SparseTable, datasets, mechanisms
from workbench.data import UNBOUNDED, Interactions
from workbench.data.reading import open_sources
from workbench.datasets import checkins, ratings
from workbench.mechanisms.laws import seeded
from workbench.owner import Budget, Session
from workbench.queries.stated import read_queries

MB = 2**20


class Kind(NamedTuple):
    """`write(folder, shape, size)` makes files of about `size` bytes, and says what they hold if it is more."""

    shapes: tuple[str, ...]
    write: Callable[[Path, str, int], int | None]
    use: Callable[[Path], None]
    mb: float = 8  # that a test makes


def taken(name: str, shape: str, size: float) -> dict[str, float]:
    """MB of what a file holds, and of memory beyond that for an almost empty one."""
    kind = KINDS[name]
    with pytest.MonkeyPatch.context() as monkeypatch, tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr("workbench.datasets.published.raw", lambda: Path(folder))
        for what in ("small", "large"):
            place = Path(folder) / what
            place.mkdir()
            monkeypatch.setenv("WORKBENCH_DATA", str(place))
            held = kind.write(place, shape, 1000 if what == "small" else int(size * MB))
            held = held or sum(p.stat().st_size for p in place.rglob("*") if p.is_file())
            gc.collect()
            pa.default_memory_pool().release_unused()
            Path("/proc/self/clear_refs").write_text("5")
            before = _status("VmRSS")
            kind.use(place)
            peak = _status("VmHWM") - before
    return {"held": held / MB, "memory": peak / MB}


def _status(field: str) -> int:
    (line,) = (x for x in Path("/proc/self/status").open() if x.startswith(field))
    return 1024 * int(line.split()[1])


# Tables and interactions

_HOME = Domain(("a",), (3,))
_FILMS = Domain(("film", "day"), (5000, 7))
_PRIME = 2**40 + 15
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


def _parquet(sizes: dict[str, int]) -> Callable[[Path, str, int], int]:
    """Of a column for each of the names, with so many values, and one of users in no order."""

    def write(folder: Path, shape: str, size: int) -> int:
        width = 8 * (1 + len(sizes))
        rows = max(2, size // {"long": 1000, "wide": 1600}.get(shape, width))
        users = np.arange(rows) * 7919 % _PRIME
        table = {name: users % n for name, n in sizes.items()} | {"u": users}
        how = {"use_dictionary": False, "compression": "none"}
        match shape:
            case "one user":
                table["u"] = users * 0
            case "texts":
                table = {name: column.astype(str) for name, column in table.items()}
            case "dictionary":
                table = {name: (column % 1000).astype(str) for name, column in table.items()}
                how = {"compression": "zstd"}
            case "wide":
                table |= {f"n{i}": users for i in range(198)}
            case "long":
                table["u"] = [f"p{i:0999}" for i in users.tolist()]
        whole = pa.table(table)
        pq.write_table(whole, folder / "a.parquet", **how)
        return whole.nbytes

    return write


def _use_interactions(folder: Path) -> None:
    for columns in ({"item": "film", "context": "day"}, {}):
        repr(
            Interactions.read(
                folder / "a.parquet", user="u", domain=_FILMS, bound=UNBOUNDED, **columns
            )
        )


# Releases

_CELLS = Domain(("cell",), (2**40,))


def _release(shape: str, size: int) -> tuple[Release, dict]:
    """One of many cells or of few, and what stands in its record besides."""
    many = max(2, size // 16)
    cells = many if shape == "cells" else 2
    table = SparseTable.from_keys(_CELLS, np.arange(cells) * 97, np.full(cells, 900), Bound())
    release = mechanisms.HighPassFilter(DP(1.0), theta=40)(table, seeded())
    more = {"versions": {f"{i:07}": "1" for i in range(many)}} if shape == "record" else {}
    return release, more


def _write_release(folder: Path, shape: str, size: int) -> int:
    release, more = _release(shape, size)
    record = json.loads(json.dumps(release._record())) | more
    table = release.estimate.to_arrow()
    (folder / "a.parquet").write_bytes(parquet_bytes(table, record))
    return table.nbytes + len(json.dumps(record))


def _write_release_csv(folder: Path, shape: str, size: int) -> None:
    release, more = _release(shape, size)
    beside = release.save(folder / "a.csv", simulated=True).with_name("a.csv.json")
    beside.write_text(json.dumps(json.loads(beside.read_text()) | more))


def _use_release(folder: Path) -> None:
    path = next(p for p in folder.iterdir() if p.suffix != ".json")
    release = Release.load(path)
    repr(release), release.privacy
    release._repr_html_()
    release.to_frame()


# What is stated: domains, queries

_DOMAINS = {
    "labels": lambda size: {"home": [f"{i:07}" for i in range(max(2, size // 11))]},
    "edges": lambda size: {
        "c": {"column": "c", "edges": list(range(10**6, 10**6 + max(2, size // 9)))}
    },
    "map": lambda size: {
        "c": {"column": "c", "map": {f"{i:06}": "x" for i in range(max(2, size // 13))}}
    },
    "file": lambda size: {"home": {"file": "labels.txt"}},
    "attributes": lambda size: {f"a{i:06}": 1 for i in range(max(2, size // 14))},
}
_QUERIES = {
    "lines": lambda size: "home=Bern\n" * max(1, size // 10),
    "all": lambda size: "*\n" * max(1, size // 2),
    "json": lambda size: json.dumps([{"hour": {"from": 7, "to": 9}}] * max(1, size // 34)),
}


def _write_domain(folder: Path, shape: str, size: int) -> None:
    (folder / "domain.json").write_text(json.dumps(_DOMAINS[shape](size)))
    if shape == "file":
        labels = (f"{i:07}\n" for i in range(max(2, size // 8)))
        (folder / "labels.txt").write_text("".join(labels))


def _use_domain(folder: Path) -> None:
    domain = Domain.read(folder / "domain.json")
    repr(domain), hash(domain)


def _write_queries(folder: Path, shape: str, size: int) -> None:
    ending = "json" if shape == "json" else "txt"
    (folder / f"queries.{ending}").write_text(_QUERIES[shape](size))


def _use_queries(folder: Path) -> None:
    (path,) = folder.iterdir()
    read_queries(str(path), DOMAIN)


# Sessions and budgets


def _write_session(folder: Path, shape: str, size: int) -> int | None:
    path = folder / "a.session"
    answers = 2 if size < 10**4 else size // 90
    domain = Domain(("a",), (answers,))
    table = SparseTable.from_keys(domain, [0], [4], Bound())
    Budget.create(path, DP(1e6), people="customers", unit="a trip")
    session = Session.open(path, table)
    session.ask(Marginals(1), 0.5)
    return 8 * answers**2 if shape == "matrix" else None


# Published files: of so many rows, the lines of each


def _lodes(shape: str, rows: int) -> dict:
    blocks = [f"01{i:013}" for i in range(max(3, rows if shape == "blocks" else 0))]
    row = f"{blocks[0]},{blocks[1]},1,{'1,' * 9}20211018\n"
    return {
        "onthemap/al_xwalk.csv": ["tabblk2010,createdate\n", *(f"{b},20211018\n" for b in blocks)],
        "onthemap/al_od_main_JT00_2019.csv": [f"{HEAD}\n", row * (rows if shape == "jobs" else 1)],
    }  # fmt: skip


def _movielens(shape: str, rows: int) -> dict:
    films = (f"{1 + i % 6040}::{1 + i // 6040 % 3952}::5::978300760\n" for i in range(rows))
    users = (f"{1 + i}::F::1::10::48067\n" for i in range(6040))
    return {"ml-1m/ratings.dat": films, "ml-1m/users.dat": users}


def _netflix(shape: str, rows: int) -> dict:
    ratings.PARTS = ((1, 1, rows),)
    lines = (f"{i},3,2005-09-06\n" for i in range(1, rows + 1))
    return {"netflix_prize/combined_data_1.txt": ["1:\n", *lines]}


def _gowalla(shape: str, rows: int) -> dict:
    checkins.PLACES = 1 + rows // 5000
    checkins.CHECKINS = {"train": rows, "tune": 1, "test": 1}
    return {
        "gowalla/Gowalla_train.txt": (f"{i % 5000}\t{i // 5000}\t1\n" for i in range(rows)),
        "gowalla/Gowalla_tune.txt": ["5001\t0\t1\n"],
        "gowalla/Gowalla_test.txt": ["5002\t0\t1\n"],
        "gowalla/Gowalla_poi_coos.txt": (f"{i}\t30.2\t-97.7\n" for i in range(checkins.PLACES)),
    }


def _snap(shape: str, rows: int) -> dict:
    lines = (f"{i}\t2010-10-19T23:55:27Z\t30\t-97\t{i}\n" for i in range(rows))
    return {"gowalla/loc-gowalla_totalCheckins.txt": lines}


def _foursquare(shape: str, rows: int) -> dict:
    row = "%d\t%024x\tc\tk\t40\t-74\t-240\tTue Apr 03 18:00:09 +0000 2012\n"
    checkins.FORMS["nyc"] = (1083, rows)
    venues = rows if shape.endswith("venues") else 1
    lines = (row % (1 + i % 1000, i % venues) for i in range(rows))
    return {"foursquare/dataset_TSMC2014_NYC.txt": lines}


def _published(shapes: tuple, files: Callable, width: int, dataset: Callable) -> Kind:
    """Of rows of about `width` bytes."""

    def write(folder: Path, shape: str, size: int) -> None:
        for name, lines in files(shape, max(1, size // width)).items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(lines))

    return Kind(shapes, write, lambda folder: repr(dataset().load()))


KINDS = {
    "csv": _csv(bytes, "csv", ("narrow", *_ROWS, "wide", "long", "quotes")),
    "gz": _csv(lambda text: gzip.compress(text, 6, mtime=0), "csv.gz", _ROWS),
    "zst": _csv(pack_zstd, "csv.zst", _ROWS),
    "parquet": Kind(
        ("numbers", "one user", "texts", "dictionary", "wide", "long"),
        _parquet({"a": 3}),
        _use_table,
    ),
    "release": Kind(("cells", "record"), _write_release, _use_release),
    "release-csv": Kind(("cells", "record"), _write_release_csv, _use_release),
    "domain": Kind(tuple(_DOMAINS), _write_domain, _use_domain),
    "queries": Kind(tuple(_QUERIES), _write_queries, _use_queries, 2),
    "session": Kind(("answers",), _write_session, use_budget, 1),
    "recall": Kind(("matrix",), _write_session, use_session, 0.09),
    "interactions": Kind(
        ("numbers", "one user", "texts", "long"),
        _parquet({"film": 5000, "day": 7}),
        _use_interactions,
    ),
    "lodes": _published(
        ("jobs", "blocks"), _lodes, 60, lambda: datasets.OnTheMap(states=("al",))
    ),
    "movielens": _published(("ratings",), _movielens, 21, datasets.MovieLens),
    "netflix": _published(("ratings",), _netflix, 17, datasets.NetflixPrize),
    "gowalla": _published(("check-ins",), _gowalla, 12, datasets.Gowalla),
    "gowalla-snap": _published(("check-ins",), _snap, 41, lambda: datasets.Gowalla("snap")),
    "foursquare": _published(("nyc", "nyc, venues"), _foursquare, 70, datasets.Foursquare),
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
