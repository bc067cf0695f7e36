"""What a release holds; every estimate is public and answers the workloads it can."""

from workbench.estimates.summary import Summary as Summary

ALL = (Summary,)
