"""Drop what lies below nothing: nodes of a filtered tree some ancestor of which was not released.

Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 4.3: a node whose ancestor did not
           pass the filter more likely passed by noise alone.
Differs    nothing; over two attributes every coarser node on either axis is an ancestor.
"""

from __future__ import annotations

import numpy as np

from workbench.estimates import Summary, TransformedSummary
from workbench.transform.dyadic import DyadicBasis


def consistent(tree: Summary) -> Summary:
    """The released nodes all of whose ancestors are released too.

    Of a filter's output only: in a sample, ancestors are absent by chance and say nothing.

    Parameters
    ----------
    tree : TransformedSummary
        By a `Dyadic()` transform, filtered at theta >= 1 and not sampled.

    Returns
    -------
    TransformedSummary
        A smaller one.

    Raises
    ------
    ValueError
        For another estimate, transform, or way of release.
    """
    basis = tree.basis if isinstance(tree, TransformedSummary) else None
    if not isinstance(basis, DyadicBasis):
        raise ValueError(
            f"{tree!r} has no ancestors: need the TransformedSummary of a Dyadic() transform"
        )
    if tree.tau > 1 or tree.theta < 1:
        raise ValueError(
            f"theta = {tree.theta}, tau = {tree.tau} are not allowed: consistency needs the output "
            "of a filter with theta >= 1, before sampling"
        )
    remains = np.zeros(len(tree), bool)
    for nodes, parents_by_axis in basis.parents(tree.keys):
        remains[nodes] = True
        for parents in parents_by_axis:
            at = np.minimum(np.searchsorted(tree.keys, parents), max(len(tree) - 1, 0))
            remains[nodes] &= remains[at] & (tree.keys[at] == parents)
    return tree.where(remains, consistent=True)
