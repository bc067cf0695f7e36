"""Notebooks to executed notebooks: several at once, each in a kernel of its own (`forks`).

A notebook is run by papermill with the parameters `profile` ("quick" or "paper"), `results` (a folder)
and those of its figure that were asked for, in its own folder, by this very interpreter. Its executed
copy takes its place in `<results>/<profile>/<stem>/` when it has run to its end; until then, and after a
failure, the copy is called `<stem>.partial.ipynb`. A status record, renamed into place last, says under
which sources it ran: while these are the same, the notebook is not run again. Of several processes on one
results folder, one at a time makes a figure, and the others then take what it made. The longest goes first,
by the times of the last run. A cell tagged `alone` keeps its notebook from running beside others.
Runs at other settings than the profile's have folders of their own, `<id>,<name>=<value>…`.
"""

from workbench.reproduction.batch import reproduce as reproduce
from workbench.reproduction.settings import MANY as MANY
from workbench.reproduction.settings import Task as Task
from workbench.reproduction.settings import tasks as tasks
from workbench.reproduction.status import NotebookRun as NotebookRun
from workbench.reproduction.status import read_status as read_status
