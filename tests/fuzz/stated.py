"""Domains, questions and tables, as users write them."""

import gzip
import io
import json
from functools import cache, partial
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from tests.fuzz.damage import as_text, damaged, damaged_json, damaged_table
from tests.fuzz.format import DOMAIN, Draw, Format
from workbench import Bound, Domain, SparseTable
from workbench.data import Interactions
from workbench.queries.stated import read_marginals, read_queries

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
    texts = pl.Series(["Bern", "1", "", None, "2025-03-01"])
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
            packs = {"csv.gz": gzip.compress, "csv.zst": pack_zstd}
            content = packs[ending](text)
        (folder / f"a.{ending}").write_bytes(content)

    return Format(write, partial(use_table, ending=ending))


def use_table(folder: Path, ending: str) -> None:
    """Read as a table with users, as one without, and as interactions."""
    path = folder / f"a.{ending}"
    SparseTable.read(path, DOMAIN, Bound(2, 3), count="count", user="person")
    SparseTable.read(path, DOMAIN, Bound())
    Interactions.read(path, user="person", domain=DOMAIN, bound=Bound(2, 1))


def use_columns(folder: Path) -> None:
    """Read as interactions, of which three columns of a Parquet file are named."""
    Interactions.read(
        folder / "a.parquet",
        user="person",
        item="home",
        context="hour",
        domain=DOMAIN,
        bound=Bound(2, 1),
    )


def pack_zstd(text: bytes) -> bytes:
    return pa.compress(text, codec="zstd", asbytes=True)
