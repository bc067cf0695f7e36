"""What is asked: sets of counting queries over a domain, concrete or as recipes.

A concrete workload sums any sparse vector over each of its queries, so that truth and estimates are
asked in the same way. A recipe is a small hashable value whose `on(domain)` draws the same concrete
workload everywhere; it is what metrics and trials carry. Workloads are public.
"""

from workbench.workload.conversion import linear_queries
from workbench.workload.labels import (
    TypedQuestion,
    as_workload,
    labelled_queries,
    marginal_queries,
    typed_question,
)
from workbench.workload.linear import Linear, Margins, TableMargins
from workbench.workload.marginals import Marginals, NamedMarginals
from workbench.workload.nodes import Level, Nodes, key_runs, queries_on_hierarchy
from workbench.workload.products import Products
from workbench.workload.queries import Boxes, Ranges, Recipe, Subsets, Workload
from workbench.workload.random import (
    RandomBoxes,
    RandomMarginalRanges,
    RandomRanges,
    RandomSubsets,
    RandomTables,
)
from workbench.workload.selections import CodeSets, Selections
from workbench.workload.sensitivity import workload_l2_squared, workload_sensitivity
from workbench.workload.shuffle import Shuffle
from workbench.workload.tables import TableQueries
from workbench.workload.together import First, Together
from workbench.workload.typed import typed_query
