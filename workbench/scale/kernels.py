"""The compiled loops that deal rows out to ranges."""

from workbench.compiled import njit


@njit(cache=True, nogil=True)
def tally(ranges, sizes):
    """One more of each row's range."""
    for i in range(ranges.size):
        sizes[ranges[i]] += 1


@njit(cache=True, nogil=True)
def deal(ranges, places, column, out):
    """A column in the order of ranges; `places` says where each one's next row goes, and moves on."""
    for i in range(ranges.size):
        r = ranges[i]
        out[places[r]] = column[i]
        places[r] += 1
