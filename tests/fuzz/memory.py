"""`python -m tests.fuzz.memory FORMAT SHAPE`: what reading a made-up file takes, beyond what one of the same
kind takes that is almost empty. Shapes are few wide rows, many narrow ones, each of another user or all
alike, long texts, quotes; of packed files what they hold counts, not their own size.
"""

import gc
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fuzz.damage import PACKS, as_text, parquet_bytes
from tests.fuzz.formats import DOMAIN, HEAD, use_release, use_session
from workbench import DP, Bound, Domain, Marginals, SparseTable, datasets, mechanisms
from workbench.data import UNBOUNDED, Interactions
from workbench.data.reading import open_sources
from workbench.datasets import checkins, ratings
from workbench.mechanisms.laws import seeded
from workbench.owner import Budget, Session
from workbench.queries.stated import read_queries

MB = 2**20
Writer = Callable[[Path, int], int | None]


class Kind(NamedTuple):
    """Each shape makes files of about so many bytes, and says what they hold if it is more."""

    use: Callable[[Path], Any]
    shapes: dict[str, Writer]
    mb: float = 8  # that a test makes


def taken(name: str, shape: str) -> dict[str, float]:
    """MB of what a file holds, and of memory beyond that for an almost empty one."""
    kind = KINDS[name]
    with pytest.MonkeyPatch.context() as monkeypatch, tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr("workbench.datasets.published.raw", lambda: Path(folder))
        for size in (1000, int(kind.mb * MB)):
            place = Path(folder) / str(size)
            place.mkdir()
            monkeypatch.setenv("WORKBENCH_DATA", str(place))
            held = kind.shapes[shape](place, size)
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
_WIDE = ["a", "u", *(f"n{i}" for i in range(300))]
_ROWS = {
    "one user": lambda size: b"a,u\n" + b"1,7\n" * (size // 4),
    "users": lambda size: (
        b"a,u\n" + b"".join(b"1,%d\n" % (10**6 + i) for i in range(size // 10))
    ),
}
_TEXTS = _ROWS | {
    "narrow": lambda size: b"a\n" + b"1\n" * (size // 2),
    "wide": lambda size: (
        f"{','.join(_WIDE)}\n".encode() + (b"1" + b",1" * 301 + b"\n") * (size // 604)
    ),
    "long": lambda size: b"a,u\n" + (b"1," + b"x" * 10**5 + b"\n") * max(1, size // 10**5),
    "quotes": lambda size: b"a,u\n" + b'1,""""\n' * (size // 7),
}


def _csv(ending: str, texts: dict[str, Callable[[int], bytes]]) -> Kind:
    def write(make: Callable[[int], bytes], folder: Path, size: int) -> int:
        text = make(size)
        (folder / f"a.csv{ending}").write_bytes(PACKS[ending][0](text))
        return len(text)

    return Kind(_use_table, {shape: partial(write, make) for shape, make in texts.items()})


def _use_table(folder: Path) -> None:
    (path,) = folder.iterdir()
    SparseTable.read(path, _HOME, Bound())
    if "u" in open_sources(path)[0].names:
        SparseTable.read(path, _HOME, Bound(1, 1), user="u")


def _parquet(sizes: dict[str, int], shape: str, folder: Path, size: int) -> int:
    """Of a column for each of the names, with so many values, and one of users in no order."""
    rows = max(2, size // {"long": 1000, "wide": 1600}.get(shape, 8 * (1 + len(sizes))))
    users = np.arange(rows) * 7919 % (2**40 + 15)
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


def _parquets(use: Callable[[Path], Any], sizes: dict[str, int], *shapes: str) -> Kind:
    shapes = ("numbers", "one user", "texts", "long", *shapes)
    return Kind(use, {shape: partial(_parquet, sizes, shape) for shape in shapes})


def _use_interactions(folder: Path) -> None:
    how = {"user": "u", "domain": _FILMS, "bound": UNBOUNDED}
    for columns in ({"item": "film", "context": "day"}, {}):
        repr(Interactions.read(folder / "a.parquet", **how, **columns))


# Releases, of many cells or with a long record; domains, queries, sessions


def _release(shape: str, ending: str, folder: Path, size: int) -> int | None:
    many = max(2, size // 16)
    keys = np.arange(many if shape == "cells" else 2) * 97
    domain = Domain(("cell",), (2**40,))
    table = SparseTable.from_keys(domain, keys, np.full(len(keys), 900), Bound())
    release = mechanisms.HighPassFilter(DP(1.0), theta=40)(table, seeded())
    more = {"versions": {f"{i:07}": "1" for i in range(many)}} if shape == "record" else {}
    if ending == "csv":
        beside = release.save(folder / "a.csv", simulated=True).with_name("a.csv.json")
        beside.write_text(json.dumps(json.loads(beside.read_text()) | more))
        return None
    record = as_text(release._record() | more)
    rows = release.estimate.to_arrow()
    (folder / "a.parquet").write_bytes(parquet_bytes(rows, record))
    return rows.nbytes + len(record)


def _releases(ending: str) -> Kind:
    shapes = {shape: partial(_release, shape, ending) for shape in ("cells", "record")}
    return Kind(use_release, shapes)


def _stated(make: Callable[[int], Any], name: str, folder: Path, size: int) -> None:
    """Text, or JSON; in lines beside it the labels that a domain names."""
    made = make(size)
    (folder / name).write_text(made if isinstance(made, str) else json.dumps(made))
    if made == _DOMAINS["file"](size):
        (folder / "labels.txt").write_text("".join(f"{i:07}\n" for i in range(size // 8)))


_DOMAINS = {
    "labels": lambda size: {"home": [f"{i:07}" for i in range(size // 11)]},
    "edges": lambda size: {"c": {"column": "c", "edges": [*range(10**6, 10**6 + size // 9)]}},
    "map": lambda size: {
        "c": {"column": "c", "map": {f"{i:06}": "x" for i in range(size // 13)}}
    },
    "file": lambda size: {"home": {"file": "labels.txt"}},
    "attributes": lambda size: {f"a{i:06}": 1 for i in range(size // 14)},
}
_QUERIES = {
    "lines.txt": lambda size: "home=Bern\n" * (size // 10),
    "all.txt": lambda size: "*\n" * (size // 2),
    "from.json": lambda size: [{"hour": {"from": 7, "to": 9}}] * (size // 34),
}


def _session(folder: Path, size: int) -> None:
    answers = 2 if size < 10**4 else size // 90
    table = SparseTable.from_keys(Domain(("a",), (answers,)), [0], [4], Bound())
    path = folder / "a.session"
    Budget.create(path, DP(1e6), people="customers", unit="a trip")
    Session.open(path, table).ask(Marginals(1), 0.5)


def _matrix(folder: Path, size: int) -> int:
    """What recalling all answers holds."""
    _session(folder, size)
    return 8 * (size // 90) ** 2


# Published files: of so many rows, the lines of each


def _lodes(jobs: int, blocks: int = 3) -> dict:
    names = [f"01{i:013}" for i in range(max(3, blocks))]
    row = f"{names[0]},{names[1]},1,{'1,' * 9}20211018\n"
    return {
        "onthemap/al_xwalk.csv": ["tabblk2010,createdate\n", *(f"{b},20211018\n" for b in names)],
        "onthemap/al_od_main_JT00_2019.csv": [f"{HEAD}\n", row * jobs],
    }  # fmt: skip


def _movielens(rows: int) -> dict:
    films = (f"{1 + i % 6040}::{1 + i // 6040 % 3952}::5::978300760\n" for i in range(rows))
    users = (f"{1 + i}::F::1::10::48067\n" for i in range(6040))
    return {"ml-1m/ratings.dat": films, "ml-1m/users.dat": users}


def _netflix(rows: int) -> dict:
    ratings.PARTS = ((1, 1, rows),)
    lines = (f"{i},3,2005-09-06\n" for i in range(1, rows + 1))
    return {"netflix_prize/combined_data_1.txt": ["1:\n", *lines]}


def _gowalla(rows: int) -> dict:
    checkins.PLACES = 1 + rows // 5000
    checkins.CHECKINS = {"train": rows, "tune": 1, "test": 1}
    return {
        "gowalla/Gowalla_train.txt": (f"{i % 5000}\t{i // 5000}\t1\n" for i in range(rows)),
        "gowalla/Gowalla_tune.txt": ["5001\t0\t1\n"],
        "gowalla/Gowalla_test.txt": ["5002\t0\t1\n"],
        "gowalla/Gowalla_poi_coos.txt": (f"{i}\t30.2\t-97.7\n" for i in range(checkins.PLACES)),
    }


def _snap(rows: int) -> dict:
    lines = (f"{i}\t2010-10-19T23:55:27Z\t30\t-97\t{i}\n" for i in range(rows))
    return {"gowalla/loc-gowalla_totalCheckins.txt": lines}


def _foursquare(rows: int, venues: int = 1) -> dict:
    row = "%d\t%024x\tc\tk\t40\t-74\t-240\tTue Apr 03 18:00:09 +0000 2012\n"
    checkins.FORMS["nyc"] = (1083, rows)
    lines = (row % (1 + i % 1000, i % venues) for i in range(rows))
    return {"foursquare/dataset_TSMC2014_NYC.txt": lines}


def _published(dataset: Callable, width: int, *shapes: Callable[[int], dict]) -> Kind:
    """Of rows of about `width` bytes."""

    def write(files: Callable[[int], dict], folder: Path, size: int) -> None:
        for name, lines in files(max(1, size // width)).items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("".join(lines))

    numbered = {str(i): partial(write, files) for i, files in enumerate(shapes)}
    return Kind(lambda folder: repr(dataset().load()), numbered)


KINDS = {
    "csv": _csv("", _TEXTS),
    "gz": _csv(".gz", _ROWS),
    "zst": _csv(".zst", _ROWS),
    "parquet": _parquets(_use_table, {"a": 3}, "dictionary", "wide"),
    "release": _releases("parquet"),
    "release-csv": _releases("csv"),
    "domain": Kind(
        lambda folder: repr(domain := Domain.read(folder / "domain.json")) + str(hash(domain)),
        {shape: partial(_stated, make, "domain.json") for shape, make in _DOMAINS.items()},
    ),
    "queries": Kind(
        lambda folder: read_queries(str(next(folder.iterdir())), DOMAIN),
        {name: partial(_stated, make, name) for name, make in _QUERIES.items()},
        2,
    ),
    "session": Kind(partial(use_session, recall=False), {"answers": _session}, 1),
    "recall": Kind(use_session, {"matrix": _matrix}, 0.09),
    "interactions": _parquets(_use_interactions, {"film": 5000, "day": 7}),
    "lodes": _published(
        lambda: datasets.OnTheMap(states=("al",)), 60, _lodes, lambda rows: _lodes(1, rows)
    ),
    "movielens": _published(datasets.MovieLens, 21, _movielens),
    "netflix": _published(datasets.NetflixPrize, 17, _netflix),
    "gowalla": _published(datasets.Gowalla, 12, _gowalla),
    "gowalla-snap": _published(lambda: datasets.Gowalla("snap"), 41, _snap),
    "foursquare": _published(
        datasets.Foursquare, 70, _foursquare, lambda rows: _foursquare(rows, rows)
    ),
}

if __name__ == "__main__":
    print(json.dumps(taken(*sys.argv[1:])))
