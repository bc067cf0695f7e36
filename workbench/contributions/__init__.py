"""How much each user may contribute, enforced: people, not rows, are what a release protects.

Whatever one user has, at most so much of it stays: `bounded_contributions` cuts each user on their own,
by a function of a secret key and of that user's records alone. Users are numbers that identify them
(`users.UserNumbers`); what a user's draws come from is `users.seeds`.
"""

from workbench.contributions.cut import BoundedContributions, bounded_contributions
from workbench.contributions.users import (
    UserNumbers,
    Users,
    cut_key,
    in_words,
    refuse_cut_of_nobody,
    seeds,
    users_of,
    without_column,
)
