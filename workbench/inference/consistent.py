"""Drop what lies below nothing: nodes of a filtered tree some ancestor of which was not released.

Source     Cormode, Procopiuc, Srivastava & Tran, ICDT 2012, section 4.3: a node whose ancestor did not
           pass the filter more likely passed by noise alone.
Differs    nothing; over two attributes every coarser node on either axis is an ancestor.
"""

from __future__ import annotations

import numpy as np

from workbench.estimates import TransformedSummary
from workbench.transform import Dyadic


def consistent(tree: TransformedSummary) -> TransformedSummary:
    """The released nodes all of whose ancestors are released too.

    Of a filter's output only: in a sample, ancestors are absent by chance and say nothing.
    """
    if not (isinstance(tree, TransformedSummary) and isinstance(tree.transform, Dyadic)):
        raise ValueError(f"{tree!r} has no ancestors: need the Tree of a Dyadic() transform")
    if tree.tau > 1 or tree.theta < 1:
        raise ValueError(
            f"theta = {tree.theta}, tau = {tree.tau} are not allowed: consistency needs the output "
            "of a filter with theta >= 1, before sampling"
        )
    kept = np.zeros(len(tree), bool)
    for own, parents in tree.basis.parents(tree.keys):
        kept[own] = True
        for node in parents:
            at = np.minimum(np.searchsorted(tree.keys, node), max(len(tree) - 1, 0))
            kept[own] &= kept[at] & (tree.keys[at] == node)
    return tree.where(kept, consistent=True)
