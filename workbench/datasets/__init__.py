"""Every dataset, a line each: a frozen value with a public `domain` and `load()`, its table.

A dataset's file is loaded when its name is asked for. `ALL` are those that need no argument, `OWN` those
of a file of your own, which take its path; `published` finds, fetches and checks published files.
"""

from importlib import import_module
from typing import Any

_FILES = {
    "census": "Adult CensusIncome",
    "checkins": "Foursquare Gowalla",
    "commuting": "CommutePoints CommutingFlows OnTheMap",
    "commuting_twins": "CommuteTwin OnTheMapTwin Towns",
    "event_series": "EventSeries",
    "graph_degrees": "GraphDegrees",
    "hay2010": (
        "KeywordFrequencies NetTrace SearchLogs SocialNetwork "
        "KeywordFrequenciesTwin NetTraceTwin SearchLogsTwin SocialNetworkTwin SnapDegrees"
    ),
    "interactions_twin": "InteractionsTwin",
    "numpy_histogram": "NumpyHistogram",
    "ratings": "MovieLens NetflixPrize",
    "retail": "OnlineRetail RetailHours",
    "string_counts": "StringCounts",
    "strings": "QueryLogTwin SurnameStrings Surnames",
    "synthetic": "GaussianSparse IPUMSTwin Projected Ranked",
}
_FILE_OF = {name: file for file, names in _FILES.items() for name in names.split()}
_OWN = "EventSeries GraphDegrees NumpyHistogram StringCounts".split()
_OF_A_DATASET = "CommutePoints Projected Ranked SurnameStrings".split()
_GROUPS = {
    "ALL": sorted({*_FILE_OF} - {*_OWN, *_OF_A_DATASET}, key=str.lower),
    "OWN": _OWN,
}

__all__ = sorted([*_FILE_OF, *_GROUPS, "published"])


def __getattr__(name: str) -> Any:
    if name in _FILE_OF:
        value = getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)
    elif name in _GROUPS:
        value = tuple(__getattr__(dataset) for dataset in _GROUPS[name])
    elif name == "published":
        value = import_module(f"{__name__}.published")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
