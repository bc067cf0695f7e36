"""A domain's JSON file: its attributes, and whether the truth beside it may be shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.preparation.statements import read_json

_TRUTH_PUBLIC = "truth_public"  # the one key of a domain's file that is no attribute


def read_domain_file(path: Path) -> tuple[Any, bool]:
    """The attributes of a domain's file, and whether the truth is stated to be public."""
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such domain file") from None
    public = content.pop(_TRUTH_PUBLIC, False) if isinstance(content, dict) else False
    if not isinstance(public, bool):
        raise ValueError(
            f"{path}: {_TRUTH_PUBLIC} = {str(public)[:40]!r} is not allowed: need true (exact counts may "
            "be shown) or false; no attribute of a domain's file may be called so"
        )
    return content, public


def files_within(path: Path) -> list[Path]:
    """The files of labels and of maps that a domain's file names."""

    def named(stated: Any) -> Iterator[Path]:
        pairs = stated.items() if isinstance(stated, dict) else enumerate(stated)
        for word, x in pairs:
            if isinstance(x, dict | list):
                yield from named(x)
            elif word in ("file", "map") and isinstance(x, str):
                yield path.parent / x

    attributes, _ = read_domain_file(path)
    return list(named(attributes)) if isinstance(attributes, dict) else []


def states_public_truth(path: str | Path) -> bool:
    """Whether a domain's JSON file states that exact counts of the table beside it may be shown.

    It does by `"truth_public": true`. Without it they may not, and nothing compares with them.

    Raises
    ------
    ValueError
        If what it states is neither true nor false.
    """
    _, public = read_domain_file(Path(path))
    return public
