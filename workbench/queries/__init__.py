"""Queries: workloads over a domain, and the transforms (dyadic sums, Haar wavelets) that answer them.

A concrete workload sums any sparse vector over each of its queries, so the truth and an estimate are asked
in the same way. A recipe is a small hashable value whose `on(domain)` draws the same concrete workload
everywhere. Metrics and trials hold recipes. Workloads are public.

A transform placed on a domain is a *basis*. It has numbered nodes, blocks of nodes with one noise
distribution each, the sparse transform of a table's counts, and the nodes that a query needs. Nodes are
numbered from the root down, level by level, and only nodes that meet the domain exist. A domain whose size
is not a power of two is padded with cells that are publicly empty, get no noise and are in no answer.

Source  Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 3 and Theorem 4 (appendix C.5); Haar:
        Xiao, Wang & Gehrke, ICDE 2010, in its unnormalised form.
Differs a cell is in log₂m + 1 dyadic intervals, leaf and root included, where the paper counts log₂m;
        Haar coefficients stay integers, so that all of them get the same noise.
Cost    O(n·log(m/n)) nodes for n non-empty cells out of m. Only log m enters otherwise.
"""

from workbench.queries.basis import Basis, Cells, TransformBasis, basis_of, level_sizes
from workbench.queries.conversion import First, Together, linear_queries
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
