"""Private data: tables, records and interactions with a stated bound, and the reader of rows.

Whatever one user has, at most so much of it stays: `bounded_contributions` cuts each user on their own,
by a function of a secret key and of that user's records alone. Users are numbers that identify them
(`users.UserNumbers`); what a user's draws come from is `users.seeds`.

A unit is a user with all their records. What a mechanism publishes are counts of items and of
edges (item × context); a user with many records moves them far, so that most mechanisms first keep
a few records of each user. That sampling happens here, for each user on their own and with draws
that are independent across users: run an ε-DP mechanism on what is kept, and the whole is ε-DP
(Fan & Jin, WWW 2015, Lemma 6).
"""

from workbench.data.checks import (
    RefusedColumn,
    TableCheck,
    check_table,
    draft_domain,
    observed_domain,
)
from workbench.data.frontier import Frontier
from workbench.data.interactions import Interactions
from workbench.data.reading import (
    CountedRows,
    Progress,
    all_rows,
    counted_rows,
    files_of,
    row_batches,
)
from workbench.data.records import Records
from workbench.data.table import (
    BELIEVED,
    ENFORCED,
    PUBLIC,
    STATED,
    UNBOUNDED,
    Bound,
    Public,
    SparseTable,
    Unbounded,
)
from workbench.data.truncation import BoundedContributions, bounded_contributions
from workbench.data.users import (
    UserNumbers,
    Users,
    cut_key,
    in_words,
    refuse_cut_of_nobody,
    seeds,
    users_of,
    without_column,
)
from workbench.data.wide import WideTable

__all__ = [
    "CountedRows",
    "Progress",
    "RefusedColumn",
    "TableCheck",
    "all_rows",
    "check_table",
    "counted_rows",
    "draft_domain",
    "files_of",
    "observed_domain",
    "row_batches",
]
