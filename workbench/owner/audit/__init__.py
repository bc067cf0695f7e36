"""Audits measure privacy loss from outside: lower bounds on ε for any mechanism or callable.

No table is asked for: two neighbours are made up, released again and again, and everything that comes
out is searched for an event that one of them makes likelier than ε allows.

`audit`            one mechanism or callable on one pair of neighbours
`pairs_for`        the pairs that are made up for a mechanism
`run_audits`       many audits, in one process or several
"""

from workbench.owner.audit.measure import Audit, audit
from workbench.owner.audit.pairs import Pair, pairs_for
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
