"""One reader of tables, in batches: files, folders, globs, databases and frames."""

from workbench.reading.batches import CountedRows, Progress, all_rows, counted_rows, row_batches
