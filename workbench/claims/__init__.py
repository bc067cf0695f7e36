"""What a paper says its figure shows, as something that can be checked, and what checking found.

A claim's words become numbers before the first run: *about, comparable, alike* = within 1.25× (or
95 % intervals overlap); *better* = lower with intervals apart at three quarters of the points;
*much, far, considerably* >= 3×; *orders of magnitude* >= 10×; *uniformly* = at every point.
"""

from workbench.claims.checks import agrees as agrees
from workbench.claims.checks import alike as alike
from workbench.claims.checks import better as better
from workbench.claims.checks import crossing as crossing
from workbench.claims.checks import curve as curve
from workbench.claims.checks import every as every
from workbench.claims.checks import falls as falls
from workbench.claims.checks import interpolate_log_log as interpolate_log_log
from workbench.claims.checks import intervals as intervals
from workbench.claims.checks import number as number
from workbench.claims.claim import ALIKE as ALIKE
from workbench.claims.claim import DIFFERS as DIFFERS
from workbench.claims.claim import HOLDS as HOLDS
from workbench.claims.claim import MUCH as MUCH
from workbench.claims.claim import ORDERS as ORDERS
from workbench.claims.claim import OUTCOMES as OUTCOMES
from workbench.claims.claim import UNDECIDED as UNDECIDED
from workbench.claims.claim import UNTESTABLE as UNTESTABLE
from workbench.claims.claim import Claim as Claim
from workbench.claims.claim import Finding as Finding
from workbench.claims.claim import Printed as Printed
from workbench.claims.claim import Verdict as Verdict
from workbench.claims.claim import beside as beside
from workbench.claims.claim import judge as judge
from workbench.claims.claim import table as table
from workbench.claims.claim import to_frame as to_frame
