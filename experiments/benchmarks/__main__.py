"""Command that runs benchmarks and prints their results: `python -m experiments.benchmarks NAME`. Without a
name, it runs all benchmarks.
"""

import sys
from importlib import import_module
from pkgutil import iter_modules

from experiments import benchmarks
from experiments.benchmarks._timing import print_results

if __name__ == "__main__":
    every = [m.name for m in iter_modules(benchmarks.__path__) if m.name[0] != "_"]
    for name in sys.argv[1:] or every:
        print_results(import_module(f"experiments.benchmarks.{name}").main())
