"""Tests of private data."""

from workbench.data.sources import Batch, Frame


def numbered(column, values):
    """The numbers of a column of users."""
    frame = values.alias(column.column).to_frame()
    return column.numbers(Batch(Frame(frame), 0, frame))
