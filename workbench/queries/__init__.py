"""Queries: workloads over a domain, and the transforms (dyadic sums, Haar wavelets) that answer them.

A *workload* is a list of queries. It adds up a sparse vector over each query, so the same code computes
true answers and estimates. A *recipe* describes a workload that is drawn later: `recipe.on(domain)` gives
the same workload on every machine. Metrics and trials hold recipes, because these are small and hashable.
Workloads are public, so they must not depend on private data.

A transform on a domain is a *basis*. It numbers its nodes, transforms the counts of a table, and finds the
nodes that a query needs. It groups nodes into blocks, and the noise in a block has one distribution. Nodes
are numbered from the root down, level by level, and only nodes that overlap the domain exist. If the size
of the domain is not a power of two, the basis adds cells up to the next power of two. These cells are
publicly empty, get no noise, and contribute to no answer.

Source  Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 3 and Theorem 4 (appendix C.5); Haar:
        Xiao, Wang & Gehrke, ICDE 2010, in its unnormalised form.
Differs A cell is in log₂m + 1 dyadic intervals, including leaf and root. The paper counts log₂m. Haar
        coefficients stay integers, so all of them get the same noise.
Cost    O(n·log(m/n)) nodes for n non-empty cells out of m. Every other cost depends on m through log m
        only.
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
