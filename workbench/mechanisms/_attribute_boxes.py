"""Nodes that are boxes of several attributes, each of which may be split by another one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.arrays import Bool, Int
from workbench.hierarchy import Hierarchy
from workbench.records import Records


class AttributeBoxes(NamedTuple):
    """Boxes of codes, how often each attribute was split, and the synthetic records of each."""

    lo: Int[np.ndarray, "boxes attributes"]
    hi: Int[np.ndarray, "boxes attributes"]
    splits: Int[np.ndarray, "boxes attributes"]
    allotted: Int[np.ndarray, " boxes"]

    @classmethod
    def root(cls, tree: Hierarchy, total: int) -> AttributeBoxes:
        """One box, of everything."""
        zeros = np.zeros((1, len(tree.shape)), np.int64)
        return cls(zeros, np.array([tree.shape], np.int64), zeros, np.array([total]))

    def where(self, rows: Bool[np.ndarray, " boxes"]) -> AttributeBoxes:
        """Some of them."""
        return AttributeBoxes(*(array[rows] for array in self))

    def parts(self, tree: Hierarchy) -> Int[np.ndarray, "attributes boxes"]:
        """Into how many parts each attribute would split each box; 1 where it has no finer codes."""
        radices = [np.array([*axis, 1]) for axis in tree.axes]
        return np.stack([r[self.splits[:, axis]] for axis, r in enumerate(radices)])

    def cut(
        self,
        chosen: Int[np.ndarray, " boxes"],
        children: Int[np.ndarray, " boxes"],
        allotted: Int[np.ndarray, " children"],
    ) -> AttributeBoxes:
        """The equal parts of each box along its chosen attribute, in order."""
        box = np.repeat(np.arange(len(children)), children)
        first = np.cumsum(children) - children
        row = np.arange(len(box))
        axis = chosen[box]
        width = (self.hi - self.lo)[box, axis] // children[box]
        lo = self.lo[box]
        hi = self.hi[box]
        splits = self.splits[box]
        lo[row, axis] += (row - first[box]) * width
        hi[row, axis] = lo[row, axis] + width
        splits[row, axis] += 1
        return AttributeBoxes(lo, hi, splits, allotted)


class LocatedRecords(NamedTuple):
    """Records with the box that each lies in; `alike` says how many are."""

    box: Int[np.ndarray, " n"]
    codes: Int[np.ndarray, "attributes n"]
    alike: Int[np.ndarray, " n"]

    @classmethod
    def root(cls, records: Records) -> LocatedRecords:
        """All records, in one box."""
        count = records.counts
        if count is None:
            count = np.ones(len(records), np.int64)
        box = np.zeros(len(records), np.int64)
        return cls(box, records.hierarchy.corners(records.keys), count)

    def within(self, boxes: Bool[np.ndarray, " boxes"]) -> LocatedRecords:
        """The records of boxes that stay, which are numbered anew."""
        stays = boxes[self.box]
        number = np.cumsum(boxes) - 1
        return LocatedRecords(number[self.box[stays]], self.codes[:, stays], self.alike[stays])

    def digits(
        self, boxes: AttributeBoxes, parts: Int[np.ndarray, "attributes boxes"]
    ) -> Int[np.ndarray, "attributes n"]:
        """In which part each record lies, were its box split by each attribute."""
        widths = (boxes.hi - boxes.lo).T // parts
        return (self.codes - boxes.lo.T[:, self.box]) // widths[:, self.box]

    def largest_parts(
        self, digits: Int[np.ndarray, "attributes n"], boxes: int
    ) -> Int[np.ndarray, "boxes attributes"]:
        """How many records the largest part of each box holds, by each attribute."""
        largest = [self._largest_part(digit, boxes) for digit in digits]
        return np.stack(largest, axis=1)

    def _largest_part(
        self, digit: Int[np.ndarray, " n"], boxes: int
    ) -> Int[np.ndarray, " boxes"]:
        largest = np.zeros(boxes, np.int64)
        if not len(digit):
            return largest
        order = np.lexsort((digit, self.box))
        box = self.box[order]
        digit = digit[order]
        changes = (np.diff(box) != 0) | (np.diff(digit) != 0)
        first = np.append(0, np.flatnonzero(changes) + 1)
        np.maximum.at(largest, box[first], np.add.reduceat(self.alike[order], first))
        return largest

    def in_children(
        self,
        digits: Int[np.ndarray, "attributes n"],
        chosen: Int[np.ndarray, " boxes"],
        children: Int[np.ndarray, " boxes"],
    ) -> LocatedRecords:
        """The same records, each in a part of its box along the chosen attribute."""
        first = np.cumsum(children) - children
        digit = digits[chosen[self.box], np.arange(len(self.box))]
        return self._replace(box=first[self.box] + digit)

    def totals(self, boxes: int) -> Int[np.ndarray, " boxes"]:
        """How many records lie in each box."""
        return np.bincount(self.box, self.alike, boxes).astype(np.int64)
