"""Release files, in Parquet and as CSV with what stands beside it."""

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from tests.fuzz.damage import as_text, damaged, damaged_json, damaged_table
from tests.fuzz.format import DOMAIN, Draw
from workbench import DP, Bound, Domain, Marginals, Release, SparseTable, mechanisms
from workbench.data import Records
from workbench.estimates import Microdata
from workbench.estimates.estimate import Estimate
from workbench.inference import MaximumEntropy
from workbench.mechanisms.laws import Subject, seeded
from workbench.queries import Dyadic, Haar
from workbench.spaces import Attributes, Prefixes, Taxonomy


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
    taxonomy = Taxonomy((("A", None), ("B", None), ("A1", "A"), ("A2", "A"), ("A21", "A2")))
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
