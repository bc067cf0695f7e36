"""What is run for each figure, what the paper printed beside it, and what it is said to show.

A spec exposes `TITLE` and `PAGE` (where in the paper), `rows(profile, store)`, which runs what the
store does not hold and returns one tidy DataFrame, `PAPER` (numbers that the paper prints, with their
reading error) and `CLAIMS`. Numbers, words turned into numbers and open parameters were written
down before the first run; a claim that differs stays, with what was measured and why.
"""
