"""Metadata of an estimate in a release file. There is a schema (names and types of fields) for each kind of
estimate.

In files of older versions, fields that have a default may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from functools import partial
from math import isnan, nan
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from workbench.compiled import pa
from workbench.estimates.linear_noise import noise_from_json, noise_to_json
from workbench.noise import hashes
from workbench.noise.law import law_from_json, law_to_json
from workbench.queries import TRANSFORMS_BY_NAME, Dyadic, Haar
from workbench.spaces import Domain, from_dict, to_dict
from workbench.spaces.statements import field_in_words
from workbench.value import Int, shown

_MOST_WHOLE = 2**62  # the sum of two is still a number of 64 bits
_MOST = 1e100  # its square is still a float
_FINITE = "finite numbers up to 10^100"
_NAMES = {  # of fields, as files have always had them
    "law": "decay",
    "hash_parameters": "words",
    "retention": "kept",
    "flip_probability": "flipped",
}

_Finite = Annotated[float, Meta(ge=-_MOST, le=_MOST)]
_Variance = Annotated[float, Meta(ge=0, le=_MOST)]
_Probability = Annotated[float, Meta(ge=0, le=1)]
_Law = float | dict[str, Any]  # ε/Δ, or kind and rate
# counts of an integer stay whole
_Positive = Annotated[int, Meta(gt=0, le=_MOST_WHOLE)] | Annotated[float, Meta(gt=0, le=_MOST)]
_Amount = (
    Annotated[int, Meta(ge=0, le=_MOST_WHOLE)] | Annotated[float, Meta(ge=0, le=_MOST_WHOLE)]
)

# Schemas


class _Stored(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, rename=_NAMES):
    pass


class _OverDomain(_Stored):
    domain: dict[str, Any]


class _OverHierarchy(_Stored):
    hierarchy: dict[str, Any]


class _Summary(_OverDomain):
    law: _Law | None
    theta: _Amount = 0.0
    tau: _Amount = 0.0
    sides: Annotated[int, Meta(ge=1, le=2)] = 2
    scale: _Positive = 1.0


class _Tree(_Summary, kw_only=True):
    law: _Law
    transform: dict[str, Any]
    consistent: bool = False


class _Sequence(_OverDomain):
    variance: _Variance | None
    noise: dict[str, Any] | None = None


class _Intervals(_OverDomain):
    branching: Annotated[int, Meta(ge=2)]
    variance: _Variance | None


class _Tables(_OverDomain):
    variances: tuple[_Variance | None, _Variance | None]
    covariance: _Finite
    sampled: bool
    noise: tuple[dict[str, Any] | None, dict[str, Any] | None] = (None, None)


class _Leaves(_OverHierarchy):
    law: _Law | None


class _Microdata(_OverDomain):
    gap: _Finite | None = None
    lacks: _Finite | None = None


class _Model(_OverDomain):
    total: _Amount
    prior: list[list[_Probability]]
    sets: tuple[tuple[int, ...], ...]
    explicit: bool
    gap: _Finite | None
    sweeps: Annotated[int, Meta(ge=0, le=10**6)]
    steps: Annotated[int, Meta(ge=0, le=10**9)] = 0
    lacks: _Finite | None = None


class _Sketch(_OverDomain):
    law: _Law
    estimate: Literal["mean", "median"]
    hash_parameters: str


class _Projection(_OverDomain):
    step: _Positive
    hash_parameters: str


class _Reports(_OverDomain):
    retention: tuple[Annotated[float, Meta(gt=0, le=1)], ...]


class _BitReports(_OverDomain):
    flip_probability: Annotated[float, Meta(gt=0, lt=1)]


class _Values(_Stored):
    attribute: str
    variance: _Variance | None = None


_SCHEMAS: dict[str, type[_Stored]] = {
    "summary": _Summary,
    "tree": _Tree,
    "sequence": _Sequence,
    "intervals": _Intervals,
    "tables": _Tables,
    "partition": _OverHierarchy,
    "leaves": _Leaves,
    "microdata": _Microdata,
    "model": _Model,
    "tree-model": _Model,
    "sketch": _Sketch,
    "projection": _Projection,
    "reports": _Reports,
    "bit-reports": _BitReports,
    "answers": _OverDomain,
    "derived-answers": _OverDomain,
    "values": _Values,
}


# Fields in JSON


def _transform_to_dict(transform: Dyadic | Haar) -> dict[str, Any]:
    return {"name": type(transform).__name__, **asdict(transform)}


def _transform_from_dict(stated: dict[str, Any]) -> Dyadic | Haar:
    arguments = {name: x for name, x in stated.items() if name != "name"}
    return TRANSFORMS_BY_NAME[stated["name"]](**arguments)


def _or_none(x: float) -> float | None:
    return None if isnan(x) else x


def _or_nan(x: float | None) -> float:
    return nan if x is None else x


_CODECS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "domain": (Domain.to_dict, partial(Domain.from_dict, folder=None)),
    "hierarchy": (to_dict, from_dict),
    "law": (law_to_json, law_from_json),
    "transform": (_transform_to_dict, _transform_from_dict),
    "noise": (noise_to_json, noise_from_json),
    "tables.noise": (lambda x: [*map(noise_to_json, x)], lambda x: [*map(noise_from_json, x)]),
    "gap": (_or_none, _or_nan),
    "lacks": (_or_none, _or_nan),
    "prior": (lambda x: [p.tolist() for p in x], lambda x: tuple(map(np.array, x))),
    "sketch.hash_parameters": (hashes.to_hex, partial(hashes.from_hex, parameters=8)),
    "projection.hash_parameters": (hashes.to_hex, partial(hashes.from_hex, parameters=3)),
}
_AS_IT_IS = (lambda x: x, lambda x: x)


def _fields(kind: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the fields of a kind of estimates. Each item consists of the name of the field, its name in
    files, and a pair of functions that convert its value for writing and after reading.
    """
    schema = _SCHEMAS[kind]
    names = zip(schema.__struct_fields__, schema.__struct_encode_fields__, strict=True)
    for field, name in names:
        codec = _CODECS.get(f"{kind}.{field}", _CODECS.get(field, _AS_IT_IS))
        yield field, name, codec


def encode(estimate: Any) -> dict[str, Any]:
    """Return the metadata of an estimate in the form in which a file stores the metadata."""
    return {
        name: write(getattr(estimate, field))
        for field, name, (write, _) in _fields(estimate.kind)
    }


def decode(kind: str, metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an estimate from the metadata that `encode` returned. If a field is invalid, raise a
    ValueError that names the place of the field in the file.
    """
    try:
        stored = msgspec.convert(metadata, _SCHEMAS[kind])
    except msgspec.ValidationError as e:
        raise ValueError(f"$.estimate{field_in_words(e)}") from None
    given = {}
    for field, name, (_, read) in _fields(kind):
        try:
            given[field] = read(getattr(stored, field))
        except LookupError as e:
            raise ValueError(f"$.estimate.{name}: {e} is missing or unknown") from None
        except (ValueError, TypeError) as e:
            raise ValueError(f"$.estimate.{name}: {e}") from None
    return given


# Columns

_ARRAY = re.compile(r"(Int|UInt64|Float|Num)\[np\.ndarray, ['\"](.*)['\"]\]$")
_KINDS = {"Int": "iu", "UInt64": "u", "Float": "iuf", "Num": "iuf"}  # integers are numbers


def read_keys(domain: Domain, table: pa.Table) -> Int[np.ndarray, " cells"]:
    """Return the key (number) of the cell in each row of a table. The keys are computed from the columns with
    labels.
    """
    codes = []
    for name in domain.attributes:
        column = table[name].combine_chunks()
        if hasattr(column, "dictionary"):
            code_of_entry = domain.encode(name, column.dictionary.to_pylist())
            entries = column.indices.to_numpy(zero_copy_only=False)
            codes.append(code_of_entry[entries])
        else:
            codes.append(domain.encode(name, column.to_numpy(zero_copy_only=False)))
    return domain.keys(np.stack(codes, axis=1))


def check_arrays(cls: type, given: dict[str, Any]) -> None:
    """Raise a ValueError if an array from a file does not have the type and shape of its field."""
    sizes: dict[str, int] = {}
    for field in fields(cls):
        if field.name in given and (match := _ARRAY.match(_array_type(field.type))):
            x = given[field.name]
            if need := _array_need(match[1], match[2].split(), x, sizes):
                raise ValueError(f"{field.name} = {shown(x)} is not allowed: need {need}")


def _array_type(kind: Any) -> str:
    return "UInt64[np.ndarray, 'words n']" if kind == "Keys" else str(kind)


def refuse_unless(holds: Any, name: str, need: str) -> None:
    """Raise a ValueError if the condition `holds` is false. The message contains `name`, the field of a file
    that has a wrong value, and `need`, the allowed values.
    """
    if not holds:
        raise ValueError(f"{name} are not allowed: need {need}")


def refuse_unless_finite(x: np.ndarray, name: str) -> None:
    """Raise a ValueError if some numbers from a file are NaN, infinite or too large."""
    refuse_unless(_is_finite(x), name, _FINITE)


def _is_finite(x: np.ndarray) -> bool:
    return bool((np.abs(x) <= _MOST).all())


def _array_need(kind: str, names: list[str], x: Any, sizes: dict[str, int]) -> str:
    """Check the type and shape of an array. If they are wrong, return a text that describes the right ones.
    Otherwise return "". Dimensions with the same name must have the same length.
    """
    kinds = _KINDS[kind]
    if not isinstance(x, np.ndarray) or x.dtype.kind not in kinds:
        return "numbers" if "f" in kinds else "integers"
    if "i" in kinds and x.dtype == np.uint64:
        return "numbers that may be below 0"
    if x.ndim != len(names):
        return f"{len(names)} dimensions"
    for name, size in zip(names, x.shape, strict=True):
        if sizes.setdefault(name, size) != size:
            return f"{sizes[name]} numbers, as others have"
    if x.dtype.kind == "f":
        return "" if _is_finite(x) else _FINITE
    if "i" in kinds and x.size and not -_MOST_WHOLE <= x.min() <= x.max() <= _MOST_WHOLE:
        return "integers up to 2^62"
    return ""
