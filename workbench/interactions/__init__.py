"""Many records a unit: which user had which item in which context, and how many records one user has.

A unit is a user with all their records. What a mechanism publishes are counts of items and of
edges (item × context); a user with many records moves them far, so that most mechanisms first keep
a few records of each user. That sampling happens here, for each user on their own and with draws
that are independent across users: run an ε-DP mechanism on what is kept, and the whole is ε-DP
(Fan & Jin, WWW 2015, Lemma 6).
"""

from workbench.interactions.value import Interactions
