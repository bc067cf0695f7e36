"""Reader for a table in a DuckDB or SQLite database.

Only stored tables are read. In a view or query, the rows of one user could depend on the rows of other users,
and then the guarantee would not hold. Tables with computed columns are also refused, because such a column can
produce gigabytes from a few bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from workbench.compiled import pa, pl
from workbench.data.sources import BATCH, FileSource, Frame, names_shown
from workbench.value import shown

_ROWS = 2**16  # of SQLite, as Python's values
_LONGEST_ROW = 2**24  # bytes, of SQLite
_EXACT = 2**53  # a float of this size may be a rounded integer


def _quoted(name: str) -> str:
    """Return the name of a table or column in quotes, for use in an SQL query."""
    return '"' + name.replace('"', '""') + '"'


class DatabaseTable(FileSource):
    """Base class of sources that read a table of a database. Rows are numbered from 1, in the order of the
    database.

    Parameters
    ----------
    path : Path
        Path of the database file.
    table : str, optional
        Exact name of a table in the database. Without a name, a ValueError lists the tables.
    """

    tables: str  # a query for the names of tables that are stored, and are no view
    _library: Callable[[], Any]
    _connect: Callable[[], Any]  # to read the database, and no more
    _selected: Callable[[Any, str, Sequence[str]], Iterator[pl.DataFrame]]

    def __init__(self, path: Path, table: str | None):
        super().__init__(path)
        self.table = table
        try:
            with closing(self._connect()) as connection:
                tables = [name for (name,) in connection.execute(self.tables).fetchall()]
                if table is None or table not in tables:
                    what = (
                        "a table is needed (views, queries and computed columns are not read)"
                    )
                    stated = f"{path} has no table {shown(table)}" if table else str(path)
                    raise ValueError(f"{stated}: {what}; it has {names_shown(sorted(tables))}")
                cursor = connection.execute(f"SELECT * FROM {_quoted(table)} LIMIT 0")
                self.names = [column[0] for column in cursor.description]
        except self._library().Error as e:
            raise self.damaged(e) from None

    def __str__(self) -> str:
        return f"{self.path}, table {self.table}" if self.table else str(self.path)

    def batches(self, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the given columns in batches of rows, in the order of the database."""
        names = ", ".join(map(_quoted, columns))
        select = f"SELECT {names} FROM {_quoted(self.table or '')}"
        try:
            with closing(self._connect()) as connection:
                yield from self._selected(connection, select, columns)
        except (self._library().Error, pa.ArrowException) as e:
            raise self.damaged(e) from None


class DuckDbTable(DatabaseTable):
    """Source that reads a table of a DuckDB database."""

    tables = (
        "SELECT table_name FROM duckdb_tables() "
        "WHERE schema_name = 'main' AND database_name = current_database() AND NOT internal "
        "AND sql NOT LIKE '%GENERATED ALWAYS AS%'"
    )

    def types(self) -> dict[str, pl.DataType]:
        """Return the type of each column of the table."""
        with closing(self._connect()) as connection:
            none = connection.sql(f"SELECT * FROM {_quoted(self.table or '')} LIMIT 0")
            return Frame(none.to_arrow_table()).types()

    def _selected(
        self, connection: Any, select: str, columns: Sequence[str]
    ) -> Iterator[pl.DataFrame]:
        for batch in connection.sql(select).to_arrow_reader(BATCH):
            yield Frame(pa.table(batch.columns, [*columns])).columns(columns)

    def _connect(self) -> Any:
        return self._library().connect(
            str(self.path), read_only=True, config={"enable_external_access": "false"}
        )

    def _library(self) -> Any:
        try:
            import duckdb
        except ImportError:
            raise ValueError(
                f"{self.path} is a DuckDB file: pip install 'dp-workbench[duckdb]' to read it"
            ) from None
        return duckdb


class SqliteTable(DatabaseTable):
    """Source that reads a table of an SQLite database. All values are converted to text.

    SQLite stores a type with each value and not with the column, so each value is converted on its own. For
    example, the float 7.0 becomes the text "7".
    """

    tables = (
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' "
        "ESCAPE '\\' AND sql NOT LIKE 'CREATE VIRTUAL%' AND NOT EXISTS "
        "(SELECT 1 FROM pragma_table_xinfo(sqlite_master.name) WHERE hidden > 1)"
    )

    def types(self) -> dict[str, pl.DataType]:
        """Return the type that the table declares for each column. The values may have other types."""
        with closing(self._connect()) as connection:
            query = "SELECT name, upper(type) FROM pragma_table_info(?)"
            declared = dict(connection.execute(query, [self.table]))
        kinds = {  # by parts of words; the first that fits
            "BOOL": pl.Boolean(),
            "INT": pl.Int64(),
            **dict.fromkeys(("CHAR", "CLOB", "TEXT"), pl.String()),
            **dict.fromkeys(("REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL"), pl.Float64()),
            **dict.fromkeys(("TIMESTAMP", "DATETIME"), pl.Datetime()),
            "DATE": pl.Date(),
            "TIME": pl.Time(),
        }
        return {
            name: kind
            for name, words in declared.items()
            if (kind := next((kinds[part] for part in kinds if part in words), None))
        }

    def _selected(
        self, connection: Any, select: str, columns: Sequence[str]
    ) -> Iterator[pl.DataFrame]:
        cursor = connection.execute(select)
        while rows := cursor.fetchmany(_ROWS):
            fields = zip(columns, zip(*rows, strict=True), strict=True)
            yield pl.DataFrame(
                [
                    pl.Series(name, [self._text(name, x) for x in values], pl.String)
                    for name, values in fields
                ]
            )

    def _connect(self) -> Any:
        sqlite3 = self._library()
        name = f"file:{quote(str(self.path.absolute()))}?mode=ro"
        connection = sqlite3.connect(name, uri=True, check_same_thread=False)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_ROW)
        return connection

    def _library(self) -> Any:
        import sqlite3

        return sqlite3

    def _text(self, name: str, x: Any) -> str | None:
        if x is None or isinstance(x, str):
            return x
        if isinstance(x, bytes):
            raise ValueError(f"{self}, column {shown(name)} holds bytes: need text or numbers")
        is_whole = isinstance(x, float) and abs(x) < _EXACT and x.is_integer()
        return str(int(x) if is_whole else x)
