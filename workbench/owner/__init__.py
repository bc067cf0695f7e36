"""Tools for an owner of private data: a budget, a bank of answers, and sessions that ask a table.

`Budget` books what releases cost, `Bank` keeps noisy answers, and `Session(budget, bank, table)` asks
questions. All three use one SQLite file. A spend is on disk before any noise is drawn, so a process that
is killed may lose an answer but never forgets a spend. Processes that use one file share its budget. The
file holds what has left already (questions, prices, noisy answers) and no private data.

A booking is never given back, and pays for one release. A release that cost more than was booked is
withheld.

A copy of the file does not know what is spent on the other. Neither does a second file about the same
people: each would spend the budget anew, and the losses add up. A counter outside the file, next to it or
next to the data (`data=`), guards against the accident: a copy that lacks a spend, or has another, is
refused. Nothing here prevents intent, nor a disk that reports writes that it did not do.

You may choose questions after earlier answers, because pure ε stays additive. The error bars do not
survive that: they assume that the noise in the answers did not influence the questions.

Source     Chen, Zhou & Bhowmick, EDBT 2012, section 3, for `recall`. `price` uses the same posterior
           before the answer exists: its errors depend on the variance of the noise, not on answers.
"""

from workbench.owner.bank import Bank as Bank
from workbench.owner.budget import Booking as Booking
from workbench.owner.budget import Budget as Budget
from workbench.owner.session import Session as Session
