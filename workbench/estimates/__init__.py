"""What a release holds; every estimate is public and answers the workloads it can."""

from workbench.estimates.intervals import Intervals as Intervals
from workbench.estimates.leaves import Leaves as Leaves
from workbench.estimates.model import Model as Model
from workbench.estimates.noisy_answers import NoisyAnswers as NoisyAnswers
from workbench.estimates.partition import Partition as Partition
from workbench.estimates.projection import Projection as Projection
from workbench.estimates.reports import BitReports as BitReports
from workbench.estimates.reports import Reports as Reports
from workbench.estimates.sequence import Sequence as Sequence
from workbench.estimates.sketch import Sketch as Sketch
from workbench.estimates.summary import Summary as Summary
from workbench.estimates.tables import Tables as Tables
from workbench.estimates.tree import Tree as Tree
from workbench.transform import Basis, Cells

ALL = (
    Summary, Tree, Sketch, Projection, Sequence, Intervals, Tables, Leaves, Partition, NoisyAnswers,
    Model, Reports, BitReports,
)  # fmt: skip


def held(basis: Basis, keys, values, decay: float, theta=0.0, tau=0.0, sides=2) -> Summary:
    """What was released of a noisy table in a basis: a summary of cells, or a tree."""
    if isinstance(basis, Cells):
        return Summary(basis.domain, keys, values, decay, theta, tau, sides)
    told = dict(decay=decay, theta=theta, tau=tau, sides=sides, transform=basis.transform)
    return Tree(basis.domain, keys, values, **told)
