"""Every dataset, a line each: a frozen value with a public `domain` and `load()`, its table."""

from workbench.datasets import published as published
from workbench.datasets.adult import Adult as Adult
from workbench.datasets.census_income import CensusIncome as CensusIncome
from workbench.datasets.commuting_flows import CommutingFlows as CommutingFlows
from workbench.datasets.gaussian_sparse import GaussianSparse as GaussianSparse
from workbench.datasets.onthemap import OnTheMap as OnTheMap
from workbench.datasets.onthemap_twin import OnTheMapTwin as OnTheMapTwin

ALL = (Adult, CensusIncome, CommutingFlows, GaussianSparse, OnTheMap, OnTheMapTwin)
