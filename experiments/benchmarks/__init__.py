"""Benchmarks of time and memory, compared with the usual methods. There is one script per benchmark."""
