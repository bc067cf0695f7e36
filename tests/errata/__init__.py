"""Each entry of docs/errata.md in numbers: what is printed fails, what is right holds."""
