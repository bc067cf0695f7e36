"""Session: a gatekeeper before a private table, with a budget, a ledger and every answer ever paid for.

Ledger and bank are one SQLite file. A spend is on disk before any noise is drawn: a process killed at
any instruction may lose an answer, and never forgets a spend. Processes on one file share its budget.
The file holds what has left already (questions, prices, noisy answers) and no private data.

A file that belongs to people instead of a table is a budget: `release` spends from it for any mechanism.
What is booked is never given back; a release that cost more than was booked is withheld.

What it cannot do: a copy of the file does not know what is spent on the other, and neither does a
second file on the same people; each would spend the budget anew, and the losses add up. A counter
outside the file, beside it or beside the data (`data=`), is against the accident: a copy that lacks a
spend, or has another, is refused. Nothing here stops intent, nor a disk that lies about writes.

Questions may be chosen by earlier answers: pure ε stays additive. Error bars do not survive that: they
assume questions not chosen by the noise in the very answers that they are then recalled from.

Source     Chen, Zhou & Bhowmick, EDBT 2012, section 3, for `recall`. `price` is the same posterior
           before the answer is there: its errors depend on the noise's variance, not on answers.
"""

from workbench.owner.budget import Booking as Booking
from workbench.owner.session import Session as Session
