"""Every dataset, a line each: a frozen value with a public `domain` and `load()`, its table."""

from workbench.datasets import published as published
from workbench.datasets.adult import Adult as Adult
from workbench.datasets.census_income import CensusIncome as CensusIncome
from workbench.datasets.commute_points import CommutePoints as CommutePoints
from workbench.datasets.commute_twin import CommuteTwin as CommuteTwin
from workbench.datasets.commuting_flows import CommutingFlows as CommutingFlows
from workbench.datasets.event_series import EventSeries as EventSeries
from workbench.datasets.event_series import RetailHours as RetailHours
from workbench.datasets.foursquare import Foursquare as Foursquare
from workbench.datasets.gaussian_sparse import GaussianSparse as GaussianSparse
from workbench.datasets.gowalla import Gowalla as Gowalla
from workbench.datasets.graph_degrees import GraphDegrees as GraphDegrees
from workbench.datasets.graph_degrees import SnapDegrees as SnapDegrees
from workbench.datasets.hay2010 import KeywordFrequencies as KeywordFrequencies
from workbench.datasets.hay2010 import NetTrace as NetTrace
from workbench.datasets.hay2010 import SearchLogs as SearchLogs
from workbench.datasets.hay2010 import SocialNetwork as SocialNetwork
from workbench.datasets.hay2010_twins import KeywordFrequenciesTwin as KeywordFrequenciesTwin
from workbench.datasets.hay2010_twins import NetTraceTwin as NetTraceTwin
from workbench.datasets.hay2010_twins import SearchLogsTwin as SearchLogsTwin
from workbench.datasets.hay2010_twins import SocialNetworkTwin as SocialNetworkTwin
from workbench.datasets.interactions_twin import InteractionsTwin as InteractionsTwin
from workbench.datasets.ipums_twin import IPUMSTwin as IPUMSTwin
from workbench.datasets.movielens import MovieLens as MovieLens
from workbench.datasets.netflix_prize import NetflixPrize as NetflixPrize
from workbench.datasets.numpy_histogram import NumpyHistogram as NumpyHistogram
from workbench.datasets.online_retail import OnlineRetail as OnlineRetail
from workbench.datasets.onthemap import OnTheMap as OnTheMap
from workbench.datasets.onthemap_twin import OnTheMapTwin as OnTheMapTwin
from workbench.datasets.projected import Projected as Projected
from workbench.datasets.query_log_twin import QueryLogTwin as QueryLogTwin
from workbench.datasets.ranked import Ranked as Ranked
from workbench.datasets.string_counts import StringCounts as StringCounts
from workbench.datasets.surnames import Surnames as Surnames
from workbench.datasets.surnames import SurnameStrings as SurnameStrings
from workbench.datasets.towns import Towns as Towns

ALL = (
    Adult, CensusIncome, CommuteTwin, CommutingFlows, Foursquare, GaussianSparse, Gowalla,
    InteractionsTwin, IPUMSTwin, KeywordFrequencies, KeywordFrequenciesTwin, MovieLens,
    NetflixPrize, NetTrace, NetTraceTwin, OnlineRetail, OnTheMap, OnTheMapTwin, QueryLogTwin,
    RetailHours, SearchLogs, SearchLogsTwin, SnapDegrees, SocialNetwork, SocialNetworkTwin, Surnames,
    Towns,
)  # fmt: skip

OWN = (
    EventSeries,
    GraphDegrees,
    NumpyHistogram,
    StringCounts,
)  # of files of your own, which take a path
