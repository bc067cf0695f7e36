"""What is asked: sets of counting queries over a domain, concrete or as recipes.

A concrete workload sums any sparse vector over each of its queries, so that truth and estimates are
asked in the same way. A recipe is a small hashable value whose `on(domain)` draws the same concrete
workload everywhere; it is what metrics and trials carry. Workloads are public.
"""

from workbench.workload.conversion import linear_queries as linear_queries
from workbench.workload.linear import Margins as Margins
from workbench.workload.nodes import Level as Level
from workbench.workload.nodes import Nodes as Nodes
from workbench.workload.nodes import key_runs as key_runs
from workbench.workload.nodes import queries_on_hierarchy as queries_on_hierarchy
from workbench.workload.products import Products as Products
from workbench.workload.queries import Boxes as Boxes
from workbench.workload.queries import Ranges as Ranges
from workbench.workload.queries import Subsets as Subsets
from workbench.workload.queries import Workload as Workload
from workbench.workload.random import RandomBoxes as RandomBoxes
from workbench.workload.random import RandomMarginalRanges as RandomMarginalRanges
from workbench.workload.random import RandomRanges as RandomRanges
from workbench.workload.random import RandomSubsets as RandomSubsets
from workbench.workload.random import RandomTables as RandomTables
from workbench.workload.sensitivity import workload_sensitivity as workload_sensitivity
from workbench.workload.shuffle import Shuffle as Shuffle
from workbench.workload.tables import First as First
from workbench.workload.tables import Marginals as Marginals
from workbench.workload.tables import TableQueries as TableQueries
from workbench.workload.tables import Together as Together
