"""Tools for the owner of private data: a budget, a bank of answers, and sessions that ask questions to a table.

`Budget` records the cost of releases, `Bank` keeps noisy answers, and `Session(budget, bank, table)` asks
questions. All three use one SQLite file. Every spend is written to disk before any noise is drawn. A
process that is killed may therefore lose an answer, but the spend stays recorded. Processes that use the
same file share its budget. The file contains only released information (questions, prices, noisy answers)
and no private data.

A booked cost pays for one release, and is never refunded. If a release costs more than was booked, you do
not get it.

A copy of the file has no record of later spends from the original. The same is true for a second file about
the same people. Each file would spend the budget again, and the privacy losses would add up. A counter
protects against accidental copies. It is outside the file, next to it or next to the data (`data=`). If the
file lacks a recorded spend, or contains a different one, it raises an error. The counter does not protect
against a deliberate reset, or against a disk that reports writes without making them.

You may choose questions after seeing earlier answers, because the costs of adaptive questions still add up.
The error bars are then no longer valid, because they assume that the noise in earlier answers did not
influence the questions.

Source     Chen, Zhou & Bhowmick, EDBT 2012, section 3, for `recall`. `price` uses the same posterior before
           the answer exists. This is possible because posterior errors depend on the variance of the noise,
           and not on the answers.
"""

from workbench.owner.bank import Bank as Bank
from workbench.owner.budget import Booking as Booking
from workbench.owner.budget import Budget as Budget
from workbench.owner.session import Session as Session
