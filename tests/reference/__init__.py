"""Slow, literal reference procedures, written without reading the project.

Sections of "methods.md" are those of the project's notes on the papers' formulas and errata, which the
docstrings of `workbench.noise` and `workbench.mechanisms` restate where they matter.
"""
