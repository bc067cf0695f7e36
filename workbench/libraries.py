"""Libraries of tables, figures and notebooks, each of which loads when something of it is first used."""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet
else:

    class _Library:
        def __init__(self, name: str):
            self._name = name

        def __getattr__(self, attribute: str) -> Any:
            return getattr(import_module(self._name), attribute)

    mpl = _Library("matplotlib")
    plt = _Library("matplotlib.pyplot")
    pd = _Library("pandas")
    pl = _Library("polars")
    pa = _Library("pyarrow")
    pc = _Library("pyarrow.compute")
    csv = _Library("pyarrow.csv")
    parquet = _Library("pyarrow.parquet")


def load_nbformat() -> Any:
    """The library of notebooks, for whoever imports it, papermill or nbconvert next.

    It loads jsonschema, which would take two seconds to compile how links are written; where that
    grammar is not to be had jsonschema does without, and nothing asks it about links.
    """
    grammar = "rfc3987_syntax"
    if "jsonschema" not in sys.modules and grammar not in sys.modules:
        vars(sys)["modules"][grammar] = (
            None  # who imports it meanwhile is told that it is not there
        )
        try:
            import_module("jsonschema")
        finally:
            del sys.modules[grammar]
    return import_module("nbformat")
