"""Notebooks to executed notebooks: several at once, each in a kernel of its own.

A notebook is run by papermill with two parameters, `profile` ("quick" or "paper") and `results`
(a folder), in its own folder, by this very interpreter. Its executed copy takes its place in
`<results>/<profile>/<stem>/` when it has run to its end; until then, and after a failure, the
copy is called `<stem>.partial.ipynb`. A status record, renamed into place last, says under
which sources it ran: while these are the same, the notebook is not run again. Of several
processes on one results folder, one at a time makes a figure, and the others then take what it
made. A cell tagged `alone` keeps its notebook (a timing) from running beside others.
"""

from workbench.reproduction.batch import reproduce as reproduce
from workbench.reproduction.status import NotebookRun as NotebookRun
from workbench.reproduction.status import read_status as read_status
