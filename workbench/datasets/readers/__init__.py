"""Readers: where published files are, and what stands in them; no dataset is here."""
