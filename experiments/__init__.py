"""Experiments that recompute the figures, tables and theorems of five papers. There is one folder per paper.

A module of such a folder contains a figure: a class that says which mechanisms run on which datasets, and how
the results are drawn. `PAPER` in a module contains the numbers that the paper prints, with the error of
reading them. The file `statements.toml` of a folder contains the paper's claims and the statements that test
them. We wrote down the statements, and the values of parameters that the paper does not print, before the
first run. If our results contradict a statement, the statement stays, with the measured values and an
explanation.
"""
