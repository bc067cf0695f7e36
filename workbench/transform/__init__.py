"""Counts in another basis: dyadic sums and Haar differences, with their sensitivity.

A transform placed on a domain is a *basis*: numbered nodes, the blocks of them that share one noise law,
the sparse transform of a table's counts, and which nodes a query needs. Nodes are numbered from the
root down, level by level, and only those that meet the domain exist: a domain that is no power of two
is padded with cells that are publicly empty, get no noise and are in no answer.

Source  Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 3 and Theorem 4 (appendix C.5); Haar:
        Xiao, Wang & Gehrke, ICDE 2010, in its unnormalised form.
Differs a cell lies in log₂m + 1 dyadic intervals, leaf and root included, where the paper counts log₂m;
        Haar coefficients stay whole numbers, so that all of them get the same noise.
Cost    O(n·log(m/n)) nodes for n non-empty cells out of m; nothing depends on m alone but log m.
"""

from workbench.transform.axis import level_sizes
from workbench.transform.basis import Basis, Cells, TransformBasis, basis_of
from workbench.transform.dyadic import Dyadic
from workbench.transform.haar import Haar

TRANSFORMS_BY_NAME = {cls.__name__: cls for cls in (Dyadic, Haar)}
TRANSFORMS = (
    Dyadic(),
    Haar(),
    Dyadic(2),
    Dyadic(split="geometric"),
    Dyadic(2, "geometric"),
)
