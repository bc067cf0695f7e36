"""Tools for the owner of private data: a budget, a bank of answers, and sessions that ask questions to a table.

`Budget` records the cost of releases and refuses a cost that exceeds the limit. `Bank` stores the noisy
answers that you have paid for. `Session(budget, bank, table)` asks questions to a private table, pays from
the budget and puts the answers into the bank. All three use the same SQLite file. Every spend (a cost that is
taken from the budget) is written to disk before any noise is drawn. If a process is killed in between, the
answer is lost, but the spend stays recorded. Several processes can use the same file, and they then share its
budget. The file contains questions, prices (privacy costs) and noisy answers, all of which count as released.
It contains no private data.

To *book* a cost means to record it in the budget before the release is made. A booked cost pays for exactly
one release, and is never refunded. If it turns out that the release costs more than was booked, the workbench
withholds the release.

Use only one budget file for the same people. A copy of the file, or a second file, would spend the same
budget again, and the privacy losses would add up. To detect accidental copies, the workbench writes a second
file, the counter, which contains the number of the latest spend. The counter is next to the budget file, or
next to the data if you pass `data=`. If the budget file lacks the spend with the counter's number, or has a
different spend with this number, the workbench raises an error. The counter does not protect against somebody
who deliberately resets both files. It also does not protect against a disk that reports data as written
although they are not written.

You may choose a question after you have seen earlier answers. The privacy guarantee still holds, because the
costs of such questions also add up. But the error bars of the answers are then no longer valid. Error bars
assume that you did not choose the question because of the noise in earlier answers.

Source     `Bank.recall` follows section 3 of Chen, Zhou & Bhowmick, EDBT 2012. `Bank.price` predicts errors
           from the same posterior distribution of the counts, before the new answers exist. This is possible
           because the posterior variance depends on the variance of the noise, and not on the values of the
           answers.
"""

from workbench.owner.bank import Bank as Bank
from workbench.owner.budget import Booking as Booking
from workbench.owner.budget import Budget as Budget
from workbench.owner.session import Session as Session
