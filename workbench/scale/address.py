"""Where a scheduler is, and whether what is sent there can be read on the way."""

from __future__ import annotations

import json
from ipaddress import ip_address
from pathlib import Path


def scheduler_address(address: str | Path) -> str:
    """The address itself, or that in a scheduler file."""
    text = str(address)
    if not isinstance(address, Path) and not text.endswith(".json"):
        return text if "://" in text else f"tcp://{text}"
    try:
        return str(json.loads(Path(address).read_text())["address"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ValueError(f"{address} is no file that a Dask scheduler has written") from None


def refuse_open(place: str, insecure: bool) -> None:
    """A ValueError for what is neither encrypted nor on this machine."""
    kind, _, rest = place.partition("://")
    host = rest.rpartition(":")[0].strip("[]")
    try:
        local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        local = False
    if kind not in ("tcp", "tls") or (kind == "tcp" and not (local or insecure)):
        raise ValueError(
            f"{place} is not allowed: private rows and keys would cross the network in the clear; need "
            "tls://, a loopback address, or --insecure (insecure=True) where nobody else can listen"
        )
