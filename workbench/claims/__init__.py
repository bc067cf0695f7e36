"""What a paper says its figure shows, as something that can be checked, and what checking found.

A claim's words become numbers before the first run: *about, comparable, alike* = within 1.25× (or
95 % intervals overlap); *better* = lower with intervals apart at three quarters of the points;
*much, far, considerably* >= 3×; *orders of magnitude* >= 10×; *uniformly* = at every point.
"""

from workbench.claims.checks import all_of as all_of
from workbench.claims.checks import check_decreasing as check_decreasing
from workbench.claims.checks import check_lower as check_lower
from workbench.claims.checks import check_printed as check_printed
from workbench.claims.checks import check_similar as check_similar
from workbench.claims.checks import confidence_intervals as confidence_intervals
from workbench.claims.checks import crossing as crossing
from workbench.claims.checks import format_number as format_number
from workbench.claims.checks import interpolate_log_log as interpolate_log_log
from workbench.claims.checks import mean_curve as mean_curve
from workbench.claims.claim import ALIKE as ALIKE
from workbench.claims.claim import DIFFERS as DIFFERS
from workbench.claims.claim import HOLDS as HOLDS
from workbench.claims.claim import MUCH as MUCH
from workbench.claims.claim import NOT_JUDGED as NOT_JUDGED
from workbench.claims.claim import ORDERS as ORDERS
from workbench.claims.claim import OUTCOMES as OUTCOMES
from workbench.claims.claim import UNDECIDED as UNDECIDED
from workbench.claims.claim import UNTESTABLE as UNTESTABLE
from workbench.claims.claim import Claim as Claim
from workbench.claims.claim import Finding as Finding
from workbench.claims.claim import MissingPoints as MissingPoints
from workbench.claims.claim import Printed as Printed
from workbench.claims.claim import Verdict as Verdict
from workbench.claims.claim import compare_with_paper as compare_with_paper
from workbench.claims.claim import judge as judge
from workbench.claims.claim import to_frame as to_frame
from workbench.claims.claim import verdict_table as verdict_table
from workbench.claims.decisions import decide as decide
from workbench.claims.decisions import decide_all as decide_all
from workbench.claims.decisions import decide_printed as decide_printed
