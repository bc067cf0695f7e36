"""Private data in three forms (tables of counts, records, and interactions of users), and a reader for files
and data frames.

For each data set, you state a bound, which limits how much one unit can change the data. A unit is a person or
thing that a guarantee protects, for example a person with all their records. If each row names a user, the
workbench enforces the bound. If a user has more records than the bound allows, the workbench leaves out some of
these records at random. The choice of a user's records depends only on a secret key, on the identity of the
user and on the records of this user. The function `bounded_contributions` chooses the kept records.
`UserNumbers` turns the names of users into numbers, and `seeds` computes the random bits for the choice.

An interaction is a record of a user, an item and a context. For example, a user rated a film (the item) on a
weekday (the context). A user with many interactions can change counts by a large amount. So most mechanisms for
interactions first keep only a few records of each user. The workbench chooses these records independently for
each user. If a mechanism is ε-differentially private on the kept records, then the choice followed by the
mechanism is ε-differentially private on all records (Lemma 6 of Fan & Jin, WWW 2015).
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
from workbench.data.checks import check_table, draft_domain, observed_domain
from workbench.data.frontier import Frontier
from workbench.data.interactions import Interactions
from workbench.data.reading import counted_rows, files_of, row_batches
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
