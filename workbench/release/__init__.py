"""What a mechanism gives back: a public estimate with the receipts that paid for it, and its file."""

from workbench.release.answering import USERS_CUT, Largest
from workbench.release.release import Release, knows_users_cut, refuse_report_cut
