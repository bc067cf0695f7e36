"""The kinds of files that strangers may hand over: whole ones, damaged ones, and what is done with them."""

from tests.fuzz import banks, saved, stated
from tests.fuzz.format import Format
from tests.fuzz.published import PUBLISHED

FORMATS = {
    "release": Format(saved.write_release, saved.use_release),
    "release-csv": Format(saved.write_csv_release, saved.use_release),
    "session": Format(banks.write_session, banks.use_session),
    "budget": Format(banks.write_budget, banks.use_budget),
    "domain": Format(stated.write_domain, stated.use_domain),
    "queries": Format(stated.write_queries, stated.use_queries),
    "csv": stated.table_format("csv"),
    "gz": stated.table_format("csv.gz"),
    "zst": stated.table_format("csv.zst"),
    "parquet": stated.table_format("parquet"),
    "interactions": stated.table_format("parquet")._replace(use=stated.use_columns),
    **PUBLISHED,
}
