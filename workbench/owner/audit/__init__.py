"""Audits: measurements of the privacy loss of any mechanism or function. They give lower bounds on ε.

An audit needs no table. It generates two neighbouring inputs, runs the mechanism on both many times, and
searches all outputs for an event whose probabilities under the two inputs differ by more than ε allows.

`audit`            one mechanism or callable on one pair of neighbours
`pairs_for`        the synthetic pairs for a mechanism
`run_audits`       many audits, in one process or several
"""

from workbench.mechanisms.neighbours import Pair, pairs_for
from workbench.owner.audit.measure import Audit, audit
from workbench.owner.audit.plan import Job, default_jobs, run_audits

__all__ = [
    "Audit",
    "Job",
    "Pair",
    "audit",
    "default_jobs",
    "pairs_for",
    "run_audits",
]
