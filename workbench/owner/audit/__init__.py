"""Audits: tests of whether a mechanism, or any function of private data, keeps its privacy guarantee. An
audit measures a lower bound on the true ε.

An audit needs no private table. The audit generates two small neighbouring inputs, which differ in one unit,
and runs the mechanism many times on each input. Then the audit searches the outputs for an event that is much
more frequent with one input than with the other. If the ratio of the event's two probabilities exceeds e^ε, the
mechanism is not ε-differentially private.

`audit` tests one mechanism or function on one pair of neighbouring inputs. `pairs_for` generates pairs of
neighbouring inputs for a mechanism. `run_audits` runs many audits in one or several processes.
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
