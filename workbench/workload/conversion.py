"""Ranges, boxes and subsets as linear queries over a domain's attributes."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.domain import Domain
from workbench.workload.linear import Linear
from workbench.workload.products import Products
from workbench.workload.queries import Boxes, Ranges, Subsets
from workbench.workload.selections import Selections

MAX_TERMS = 2**22  # that ranges, subsets or marginals may become


def linear_queries(workload: Any, domain: Domain) -> Linear:
    """Any workload over the domain, or recipe of one, as linear queries over its attributes.

    A range of keys becomes at most 2d − 1 boxes over d attributes; what is scattered over the domain is
    a ValueError.
    """
    workload = workload.on(domain)
    if isinstance(workload, Linear):
        return workload
    if isinstance(workload, Boxes):
        return Products.boxes(domain, workload.lo, workload.hi)
    if isinstance(workload, Selections):
        ones = np.ones(len(workload))
        ends = np.arange(len(workload) + 1)
        return Products(domain.attributes, workload.factors, workload.which, ones, ends)
    if isinstance(workload, Subsets) and len(workload.members) <= MAX_TERMS:
        codes = domain.codes(workload.members)
        return Products.boxes(domain, codes, codes + 1, workload.offsets)
    if isinstance(workload, Ranges) and len(workload) <= MAX_TERMS:
        return _products_of_ranges(workload, domain)
    raise ValueError(f"{workload!r} are no linear queries over {domain.attributes}")


def _products_of_ranges(ranges: Ranges, domain: Domain) -> Products:
    """Boxes that make up ranges of keys: attribute by attribute, part of a block at either end."""
    boxes = []
    owners = []
    queries = np.flatnonzero(ranges.hi > ranges.lo)
    lo = ranges.lo[queries]
    hi = ranges.hi[queries]
    for axis in range(len(domain.shape) - 1, -1, -1):
        n = domain.shape[axis]
        up = -(-lo // n) * n  # whole blocks lie between up and down
        down = hi // n * n
        within = (up > down) | (axis == 0)
        head = ~within & (lo < up)
        tail = ~within & (down < hi)
        for part, first, last in ((within, lo, hi), (head, lo, up), (tail, down, hi)):
            boxes.append(_boxes_of_block(domain.shape, axis, first[part], last[part]))
            owners.append(queries[part])
        rest = ~within & (up < down)
        queries = queries[rest]
        lo = up[rest] // n
        hi = down[rest] // n
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(ranges)))])
    lo = np.concatenate([box.lo for box in boxes])[order]
    hi = np.concatenate([box.hi for box in boxes])[order]
    return Products.boxes(domain, lo, hi, offsets)


def _boxes_of_block(
    shape: tuple[int, ...], axis: int, first: np.ndarray, last: np.ndarray
) -> Boxes:
    """Codes first … last − 1 of `axis`, numbered over it and all attributes before; all of the others."""
    lo = np.zeros((len(first), len(shape)), np.int64)
    hi = np.tile(shape, (len(first), 1))
    outer = first // shape[axis]
    lo[:, axis] = first - outer * shape[axis]
    hi[:, axis] = last - outer * shape[axis]
    for k in range(axis - 1, -1, -1):
        lo[:, k] = outer % shape[k]
        hi[:, k] = lo[:, k] + 1
        outer = outer // shape[k]
    return Boxes(lo, hi)
