"""Lists of queries on a table, and transforms of a table's counts. With a transform, a mechanism can answer
some queries with less noise.

A *workload* is a list of queries. A query adds up the counts of some cells. The same functions compute true
answers from the counts of a table, and estimates from noisy counts. A *recipe* is a short description of a
workload, for example of 200 random ranges. `recipe.on(domain)` creates the workload. The same recipe gives
the same workload on every machine. Experiments store recipes, because a recipe is much smaller than its
workload. Workloads are public, so they must not depend on private data.

A transform replaces the counts of the cells by other numbers, for example by sums over intervals of cells. A
mechanism can add noise to these sums instead of the counts. Then it computes the answer to a range query from
a few noisy sums instead of many noisy counts. There are two transforms, `Dyadic` and `Haar`.

A transform on a domain is called a *basis*, and the transformed counts are called *nodes*. The basis computes
the values of the nodes from the counts of a table. The basis also finds the nodes that are needed for the
answer to a query. Nodes form a tree, and they are numbered level by level, beginning with the root. A basis
also divides its nodes into blocks. The noise has the same distribution for all nodes of a block. If the
number of cells is not a power of two, the tree extends to the next power of two. The additional cells are
always empty, so they get no noise and do not change any answer.

Source  Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 3 and Theorem 4 (appendix C.5). The Haar
        transform is from Xiao, Wang & Gehrke, ICDE 2010, here without normalisation.
Differs In a domain with m cells, a cell is in log₂m + 1 dyadic intervals: one per level, from the single
        cell to the whole domain. The paper counts log₂m. The workbench does not scale the Haar coefficients,
        so they stay integers and all get noise from the same distribution.
Cost    For a table with m cells, of which n are not empty, a transform takes time and memory for
        O(n·log(m/n)) nodes. Everything else takes time and memory that grow only with log m.
"""

from workbench.queries.basis import Basis, Cells, TransformBasis, basis_of, level_sizes
from workbench.queries.conversion import Together, linear_queries
from workbench.queries.dyadic import Dyadic
from workbench.queries.haar import Haar
from workbench.queries.linear import Linear, Margins, TableMargins
from workbench.queries.nodes import Level, Nodes, key_runs, queries_on_hierarchy
from workbench.queries.products import Products
from workbench.queries.ranges import Boxes, Ranges, Recipe, Shuffle, Subsets, Workload
from workbench.queries.recipes import (
    Marginals,
    NamedMarginals,
    RandomBoxes,
    RandomMarginalRanges,
    RandomRanges,
    RandomSubsets,
    RandomTables,
)
from workbench.queries.selections import CodeSets, Selections
from workbench.queries.sensitivity import workload_l2_squared, workload_sensitivity
from workbench.queries.tables import TableQueries
from workbench.queries.typed import (
    TypedQuestion,
    as_workload,
    labelled_queries,
    marginal_queries,
    typed_query,
    typed_question,
)

TRANSFORMS_BY_NAME = {cls.__name__: cls for cls in (Dyadic, Haar)}
TRANSFORMS = (
    Dyadic(),
    Haar(),
    Dyadic(2),
    Dyadic(split="geometric"),
    Dyadic(2, "geometric"),
)
