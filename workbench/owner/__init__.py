"""Tools for the owner of private data: a budget, a bank of answers, and sessions that ask questions to a table.

`Budget` records the cost of releases and refuses a cost that exceeds the limit. `Bank` stores the noisy answers
that you have paid for. `Session(budget, bank, table)` asks questions to a private table, pays from the budget
and puts the answers into the bank. All three use the same SQLite file. Before the workbench draws any noise, it
writes the *spend* (the cost that it takes from the budget) to disk. If a process is killed after the spend and
before the answer, the answer is lost, but the spend stays recorded. Several processes can use the same file,
and then share one budget. The file contains questions, prices (privacy costs) and noisy answers. The workbench
treats the content of the file as released. The file contains no private data.

To *book* a cost means to record it in the budget before the release is made. A booked cost pays for exactly one
release, and is never refunded. If the finished release costs more than was booked, the workbench withholds it.

Use only one budget file for the same people. With a copy of the file, or with a second file, you could spend
more than the limit, because the privacy losses from all files add up. To detect accidental copies, the
workbench also writes a counter file, which contains the number of the latest spend. `Budget.create` writes the
counter next to the budget file. `Session.open` writes a counter only if you pass `data=`, and then next to the
data. The workbench raises an error if the budget file does not contain the spend with this number, or contains
a different spend with this number. The counter cannot detect a copy if somebody deliberately resets both files.
The counter also cannot help if a disk reports that data are written although they are not.

You may choose a question after you have seen earlier answers. The privacy guarantee still holds, because the
costs of such questions also add up. But the error bars of the answers are then no longer valid. Error bars
assume that you did not choose the question because of the noise in earlier answers.

Source     `Bank.recall` follows section 3 of Chen, Zhou & Bhowmick, EDBT 2012. This section computes a
           posterior distribution of the counts. `Bank.price` uses the same distribution to predict errors
           before you ask new questions. This prediction is possible because the posterior variance depends on
           the variance of the noise, and not on the values of the answers.
"""

from workbench.owner.bank import Bank as Bank
from workbench.owner.budget import Booking as Booking
from workbench.owner.budget import Budget as Budget
from workbench.owner.session import Session as Session
