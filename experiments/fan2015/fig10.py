"""Fan & Jin 2015, Figure 10: how many records the sampled databases hold.

Paper   Fan & Jin, WWW 2015: section 6.4 and Figure 10.
Read    from the text; the plot is not in our copy.
Open    SRA and HPA keep equally many: min(l, |T_k|) of each user, whatever the seed, so that one is
        enough. From Table 4 alone it is at most l·users of the records, 4.8 % on Netflix.
Words   far smaller = at least 3 times, on every dataset; Netflix = below 5 %, as printed.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.fan2015.data import (
    cases,
    dataset_columns,
    panel_of,
    sampling_mechanisms,
    undecided_on_slice,
)
from workbench.claims import MUCH, Claim, Finding, Printed, all_of
from workbench.metrics import SampledSize
from workbench.plots import Panel

TITLE = "Sampled databases are small"
PAGE = "Fan & Jin, WWW 2015, section 6.4, Figure 10"
ORIGINAL = "original"

PAPER = {"Netflix": Printed("less than 5 %", 0, 0.05)}


def rows(profile: str, store) -> pd.DataFrame:
    """Records and fractions, a row a dataset and sampling, beside l·users of Table 4's counting."""
    entries = []
    size = SampledSize()
    for case in cases(profile).values():
        data = case.dataset.load()
        samples = {ORIGINAL: data}
        for mechanism in sampling_mechanisms(case):
            sample = mechanism.bounded_data(data, np.random.default_rng(0))
            samples[type(mechanism).__name__] = sample
        most = min(1.0, case.l * len(data.records_per_user()) / len(data))
        for series, sample in samples.items():
            columns = dataset_columns(case) | {"seed": 0, "l": case.l, "series": series}
            bound = 1.0 if series == ORIGINAL else most
            entries.append(columns | {"metric": "StoredRecords", "value": len(sample)})
            entries.append(columns | {"metric": "SampledSize", "value": size(data, sample)})
            entries.append(columns | {"metric": "bound", "value": bound})
    return pd.DataFrame(entries)


def panels(rows: pd.DataFrame) -> list[Panel]:
    """Records, as printed, and what is kept of them."""
    return [
        Panel("records", {"metric": "StoredRecords"}, "panel", bars=True),
        Panel("of all records", {"metric": "SampledSize"}, "panel", bars=True, log=""),
    ]


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """A line a dataset: what is kept, and at most."""
    lines = []
    for name in rows.panel.unique():
        line = {"dataset": name}
        line["records"] = f"{_value(rows, name, ORIGINAL, 'StoredRecords'):,.0f}"
        for series in ("SRA", "HPA"):
            line[series] = f"{_value(rows, name, series):.2%}"
        line["l · users"] = f"{_value(rows, name, 'SRA', 'bound'):.2%}"
        netflix = name == panel_of(rows, "Netflix")
        line["the paper prints"] = PAPER["Netflix"].says if netflix else ""
        lines.append(line)
    return pd.DataFrame(lines).set_index("dataset")


def _value(rows, name: str, series: str, metric: str = "SampledSize") -> float:
    chosen = (rows.panel == name) & (rows.series == series) & (rows.metric == metric)
    return float(rows[chosen].value.iloc[0])


def _smaller(rows) -> Finding:
    parts = {}
    for name in rows.panel.unique():
        share = max(_value(rows, name, series) for series in ("SRA", "HPA"))
        smaller = Finding(bool(share <= 1 / MUCH), f"{share:.1%} of the records")
        parts[name] = undecided_on_slice(name, smaller)
        if name == panel_of(rows, "Netflix"):
            below = Finding(bool(share < PAPER["Netflix"].high), f"{share:.2%}")
            parts["Netflix below 5 %"] = undecided_on_slice(name, below)
    return all_of(parts)


CLAIMS = (
    Claim(
        "f-10",
        "The sampled databases are far smaller than the original; Netflix' have less than 5 % of the "
        "records.",
        _smaller,
    ),
)
