"""Mistakes whose tests are quick, from many packages: `make test-all` plants these."""

SAMPLE = [
    "popularity without its noise",
    "scores without a floor",
    "a choice that one record prices",
    "levels that are rounded down",
    "seeded noise that may be published",
    "a theorem that makes noise fit to publish",
    "uniform by remainder",
    "intervals that round inwards",
    "everything in parallel",
    "a delta that budgets do not see",
    "a booking that sees no delta",
    "a budget with some slack",
    "more than was booked",
    "ranks that move like cells",
    "rounding that nobody pays for",
]
