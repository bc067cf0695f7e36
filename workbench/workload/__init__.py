"""What is asked: sets of counting queries over a domain, concrete or as recipes.

A concrete workload sums any sparse vector over each of its queries, so that truth and estimates are
asked in the same way. A recipe is a small hashable value whose `on(domain)` draws the same concrete
workload everywhere; it is what metrics and trials carry. Workloads are public.
"""

from workbench.workload.products import First as First
from workbench.workload.products import Marginals as Marginals
from workbench.workload.products import Products as Products
from workbench.workload.products import RandomMarginalRanges as RandomMarginalRanges
from workbench.workload.products import RandomTables as RandomTables
from workbench.workload.products import TableQueries as TableQueries
from workbench.workload.products import Together as Together
from workbench.workload.products import linear_queries as linear_queries
from workbench.workload.queries import Boxes as Boxes
from workbench.workload.queries import Level as Level
from workbench.workload.queries import Nodes as Nodes
from workbench.workload.queries import RandomBoxes as RandomBoxes
from workbench.workload.queries import RandomRanges as RandomRanges
from workbench.workload.queries import RandomSubsets as RandomSubsets
from workbench.workload.queries import Ranges as Ranges
from workbench.workload.queries import Shuffle as Shuffle
from workbench.workload.queries import Subsets as Subsets
from workbench.workload.queries import Workload as Workload
from workbench.workload.queries import key_runs as key_runs
from workbench.workload.queries import queries_on_hierarchy as queries_on_hierarchy
