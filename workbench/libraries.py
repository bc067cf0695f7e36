"""Libraries of tables and figures, each of which loads when something of it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

    plt = _Library("matplotlib.pyplot")
    pd = _Library("pandas")
    pl = _Library("polars")
    pa = _Library("pyarrow")
    pc = _Library("pyarrow.compute")
    csv = _Library("pyarrow.csv")
    parquet = _Library("pyarrow.parquet")
