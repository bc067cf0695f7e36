"""One reader of tables, in batches: files, folders, globs, databases and frames."""

from workbench.reading.batches import CountedRows, Progress, all_rows, counted_rows, row_batches
from workbench.reading.checks import RefusedColumn, TableCheck, check_table
from workbench.reading.drafts import draft_domain
from workbench.reading.observed import observed_domain
from workbench.reading.sources import files_of

__all__ = [
    "CountedRows",
    "Progress",
    "RefusedColumn",
    "TableCheck",
    "all_rows",
    "check_table",
    "counted_rows",
    "draft_domain",
    "files_of",
    "observed_domain",
    "row_batches",
]
