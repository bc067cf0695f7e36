"""What a paper says its figure shows, statement by statement, checked on rows, and what was found.

A statement's words become numbers before the first run: *about, comparable, alike* = within 1.25×;
*often, generally* = at three quarters of the points; *in all cases* = everywhere; *can* = somewhere;
*much, far, considerably* >= 3×; *orders of magnitude* >= 10×. What is undecided is never *differs*.
"""

from workbench.claims.checks import EVERYWHERE as EVERYWHERE
from workbench.claims.checks import OFTEN as OFTEN
from workbench.claims.checks import SOMEWHERE as SOMEWHERE
from workbench.claims.checks import all_of as all_of
from workbench.claims.checks import any_of as any_of
from workbench.claims.checks import check_between as check_between
from workbench.claims.checks import check_decreasing as check_decreasing
from workbench.claims.checks import check_lower as check_lower
from workbench.claims.checks import check_printed as check_printed
from workbench.claims.checks import check_similar as check_similar
from workbench.claims.checks import over as over
from workbench.claims.claim import Claim as Claim
from workbench.claims.claim import Printed as Printed
from workbench.claims.claim import Statement as Statement
from workbench.claims.claim import Verdict as Verdict
from workbench.claims.claim import compare_with_paper as compare_with_paper
from workbench.claims.claim import left_open as left_open
from workbench.claims.claim import to_frame as to_frame
from workbench.claims.claim import verdict_table as verdict_table
from workbench.claims.curves import confidence_intervals as confidence_intervals
from workbench.claims.curves import crossing as crossing
from workbench.claims.curves import interpolate_log_log as interpolate_log_log
from workbench.claims.curves import mean_curve as mean_curve
from workbench.claims.decisions import decide as decide
from workbench.claims.decisions import decide_all as decide_all
from workbench.claims.finding import ALIKE as ALIKE
from workbench.claims.finding import BY_DEFINITION as BY_DEFINITION
from workbench.claims.finding import DEPENDS as DEPENDS
from workbench.claims.finding import DIFFERS as DIFFERS
from workbench.claims.finding import HOLDS as HOLDS
from workbench.claims.finding import MUCH as MUCH
from workbench.claims.finding import NOT_JUDGED as NOT_JUDGED
from workbench.claims.finding import ORDERS as ORDERS
from workbench.claims.finding import OUTCOMES as OUTCOMES
from workbench.claims.finding import TICKS as TICKS
from workbench.claims.finding import UNDECIDED as UNDECIDED
from workbench.claims.finding import UNTESTABLE as UNTESTABLE
from workbench.claims.finding import Finding as Finding
from workbench.claims.finding import MissingPoints as MissingPoints
from workbench.claims.finding import Strip as Strip
from workbench.claims.intervals import Intervals as Intervals
from workbench.claims.intervals import ends as ends
from workbench.claims.intervals import exact as exact
from workbench.claims.intervals import means as means
from workbench.claims.intervals import paired_ratios as paired_ratios
from workbench.claims.intervals import steps as steps
from workbench.claims.intervals import unpaired_ratios as unpaired_ratios
from workbench.claims.statements import read as read
from workbench.wording import format_number as format_number
