"""Private data: tables, records and interactions with a stated bound, and the reader of rows.

`bounded_contributions` truncates each user to a stated bound. Which records stay depends only on a secret
key and on that user's records. `UserNumbers` turns identifiers into numbers, and `users.seeds` gives each
user random bits for these choices.

A unit is a user with all their records. Mechanisms publish counts of items and of edges (item ×
context). A user with many records can change these counts by a large amount, so most mechanisms first
keep a few records of each user. This package samples them, separately and independently for each user.
If a mechanism is ε-DP on the kept records, the sampling and the mechanism together are ε-DP (Fan & Jin,
WWW 2015, Lemma 6).
"""

from workbench.data.bound import (
    BELIEVED,
    ENFORCED,
    PUBLIC,
    STATED,
    UNBOUNDED,
    Bound,
    Public,
    Unbounded,
)
from workbench.data.checks import (
    check_table,
    draft_domain,
    observed_domain,
)
from workbench.data.frontier import Frontier
from workbench.data.interactions import Interactions
from workbench.data.reading import (
    counted_rows,
    files_of,
    row_batches,
)
from workbench.data.records import Records
from workbench.data.table import SparseTable, WideTable
from workbench.data.truncation import bounded_contributions
from workbench.data.users import (
    UserNumbers,
    Users,
    cut_key,
    in_words,
    refuse_cut_of_nobody,
    seeds,
    without_column,
)
from workbench.data.values import UnlistedColumn, UnlistedValues

__all__ = [
    "check_table",
    "counted_rows",
    "draft_domain",
    "files_of",
    "observed_domain",
    "row_batches",
]
