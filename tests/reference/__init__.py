"""Slow, literal reference procedures, written from the papers without reading the project."""
