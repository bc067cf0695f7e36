"""Published and synthetic datasets for experiments. A dataset is an object, for example `Adult()`. Its
property `domain` lists all possible cells. Its method `load()` returns the data.

`ALL` contains the classes of all datasets that need no argument, for example `Adult`. The module `published`
finds, downloads and verifies the files of published datasets. To read a table of your own, use
`SparseTable.read` for counts, `Records.read` for points and strings, or `Interactions.read` for records of
users and items.
"""

from importlib import import_module
from typing import Any

_FILES = {
    "census": "Adult CensusIncome",
    "checkins": "Foursquare Gowalla",
    "commuting": "CommutePoints CommutingFlows OnTheMap",
    "commuting_twins": "CommuteTwin OnTheMapTwin Towns",
    "hay2010": (
        "KeywordFrequencies NetTrace SearchLogs SocialNetwork "
        "KeywordFrequenciesTwin NetTraceTwin SearchLogsTwin SocialNetworkTwin SnapDegrees"
    ),
    "interactions_twin": "InteractionsTwin",
    "ratings": "MovieLens NetflixPrize",
    "retail": "OnlineRetail RetailHours",
    "strings": "QueryLogTwin SurnameStrings Surnames",
    "synthetic": "GaussianSparse IPUMSTwin Projected Ranked",
}
_FILE_OF = {name: file for file, names in _FILES.items() for name in names.split()}
_OF_A_DATASET = "CommutePoints Projected Ranked SurnameStrings".split()
_ALL = sorted({*_FILE_OF} - {*_OF_A_DATASET}, key=str.lower)

__all__ = sorted([*_FILE_OF, "ALL", "published"])


def __getattr__(name: str) -> Any:
    if name == "ALL":
        return tuple(__getattr__(dataset) for dataset in _ALL)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_FILE_OF.get(name, name)}")
    return getattr(module, name, module)


def __dir__() -> list[str]:
    return __all__
