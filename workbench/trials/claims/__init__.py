"""Checks of the sentences that a paper writes about its figures. A claim is a sentence of the paper. A
statement is one assertion in this sentence. The check of a statement compares the assertion with our results
(the rows of the figure). A `Finding` is the result of one check. A `PaperFinding` is a main result of the
paper, which follows from several statements.

We translate the words of statements to numbers before we first run a figure. *About*, *comparable* and
*alike* mean that two values differ by at most the factor 1.25. *Much*, *far* and *considerably* mean a factor
of at least 3. *Orders of magnitude* means a factor of at least 10. *Often* and *generally* mean at three
quarters of the points of the figure or more. *In all cases* means at all points, and *can* means at one point
or more. If our results do not decide a statement, it does not count as contradicted.
"""

from workbench.trials.claims.checks import EVERYWHERE as EVERYWHERE
from workbench.trials.claims.checks import OFTEN as OFTEN
from workbench.trials.claims.checks import SOMEWHERE as SOMEWHERE
from workbench.trials.claims.checks import all_of as all_of
from workbench.trials.claims.checks import any_of as any_of
from workbench.trials.claims.checks import check_between as check_between
from workbench.trials.claims.checks import check_lower as check_lower
from workbench.trials.claims.checks import check_printed as check_printed
from workbench.trials.claims.checks import check_similar as check_similar
from workbench.trials.claims.checks import over as over
from workbench.trials.claims.claim import ALIKE as ALIKE
from workbench.trials.claims.claim import BY_DEFINITION as BY_DEFINITION
from workbench.trials.claims.claim import DEPENDS as DEPENDS
from workbench.trials.claims.claim import DIFFERS as DIFFERS
from workbench.trials.claims.claim import HOLDS as HOLDS
from workbench.trials.claims.claim import NOT_JUDGED as NOT_JUDGED
from workbench.trials.claims.claim import ORDERS as ORDERS
from workbench.trials.claims.claim import OUTCOMES as OUTCOMES
from workbench.trials.claims.claim import UNDECIDED as UNDECIDED
from workbench.trials.claims.claim import UNTESTABLE as UNTESTABLE
from workbench.trials.claims.claim import Check as Check
from workbench.trials.claims.claim import Claim as Claim
from workbench.trials.claims.claim import Finding as Finding
from workbench.trials.claims.claim import MissingPoints as MissingPoints
from workbench.trials.claims.claim import Printed as Printed
from workbench.trials.claims.claim import Statement as Statement
from workbench.trials.claims.claim import Strip as Strip
from workbench.trials.claims.claim import Verdict as Verdict
from workbench.trials.claims.claim import decide as decide
from workbench.trials.claims.claim import decide_all as decide_all
from workbench.trials.claims.claim import left_open as left_open
from workbench.trials.claims.claim import to_frame as to_frame
from workbench.trials.claims.claim import verdict_table as verdict_table
from workbench.trials.claims.declared import read as read
from workbench.trials.claims.findings import COLUMNS as COLUMNS
from workbench.trials.claims.findings import PaperFinding as PaperFinding
from workbench.trials.claims.findings import add_up as add_up
from workbench.trials.claims.findings import agreement as agreement
from workbench.trials.claims.findings import count_outcomes as count_outcomes
from workbench.trials.claims.findings import read_findings as read_findings
from workbench.trials.claims.findings import share_that_holds as share_that_holds
from workbench.trials.claims.intervals import Intervals as Intervals
from workbench.trials.claims.intervals import confidence_intervals as confidence_intervals
from workbench.trials.claims.intervals import crossing as crossing
from workbench.trials.claims.intervals import ends as ends
from workbench.trials.claims.intervals import exact as exact
from workbench.trials.claims.intervals import interpolate_log_log as interpolate_log_log
from workbench.trials.claims.intervals import mean_curve as mean_curve
from workbench.trials.claims.intervals import means as means
from workbench.trials.claims.intervals import paired_ratios as paired_ratios
from workbench.trials.claims.intervals import ratios as ratios
from workbench.trials.claims.intervals import select as select
from workbench.trials.claims.intervals import steps as steps
from workbench.value import format_number as format_number
