"""A named table of a DuckDB or SQLite file as rows.

Views and queries are not read: they could make the rows of one user depend on another's. Nor are tables
with computed columns: a few bytes of them may compute gigabytes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from workbench.compiled import pa
from workbench.data.source import BATCH, Columns, FileSource, names_shown
from workbench.value import shown

_ROWS = 2**16  # of SQLite, as Python's values
_LONGEST_ROW = 2**24  # bytes, of SQLite
_EXACT = 2**53  # a float of this size may be a rounded integer

_SQLITE = {  # parts of words
    "BOOL": "bool",
    "INT": "int64",
    "CHAR": "string",
    "CLOB": "string",
    "TEXT": "string",
    "REAL": "double",
    "FLOA": "double",
    "DOUB": "double",
    "NUMERIC": "double",
    "DECIMAL": "double",
    "TIMESTAMP": "timestamp[us]",
    "DATETIME": "timestamp[us]",
    "DATE": "date32",
    "TIME": "time64[us]",
}


def _text(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


class DatabaseTable(FileSource):
    """The rows of a table, counted from 1 in the order of the database.

    Parameters
    ----------
    path : Path
        The database.
    table : str, optional
        The name of one of its tables, written as it is there.
    """

    tables: str  # a query for the names of tables that are stored, and are no view

    def __init__(self, path: Path, table: str | None):
        super().__init__(path)
        self.table = table
        with self._connection() as connection:
            tables = [name for (name,) in self._run(connection, self.tables).fetchall()]
            if table is None or table not in tables:
                what = "a table is needed (views, queries and computed columns are not read)"
                stated = f"{self.path} has no table {shown(table)}" if table else str(self.path)
                raise ValueError(f"{stated}: {what}; it has {names_shown(sorted(tables))}")
            cursor = self._run(connection, f"SELECT * FROM {_quoted(table)} LIMIT 0")
            self.names = [column[0] for column in cursor.description]

    def __str__(self) -> str:
        return f"{self.path}, table {self.table}" if self.table else str(self.path)

    def _connection(self) -> Any:
        """To read the database, and no more."""
        raise NotImplementedError

    def _run(self, connection: Any, sql: str) -> Any:
        raise NotImplementedError

    def _damaged(self, e: Exception) -> ValueError:
        return ValueError(f"{self}: it cannot be read ({str(e)[:80]})")

    def _select(self, columns: Sequence[str]) -> str:
        return f"SELECT {', '.join(map(_quoted, columns))} FROM {_quoted(self.table or '')}"


class DuckDbTable(DatabaseTable):
    """A table of a DuckDB file."""

    tables = (
        "SELECT table_name FROM duckdb_tables() "
        "WHERE schema_name = 'main' AND database_name = current_database() AND NOT internal "
        "AND sql NOT LIKE '%GENERATED ALWAYS AS%'"
    )

    def types(self) -> dict[str, pa.DataType]:
        """Those of its columns."""
        with self._connection() as connection:
            rows = connection.sql(f"{self._select(self.names)} LIMIT 0")
            return dict(zip(self.names, rows.to_arrow_reader().schema.types, strict=True))

    def batches(self, columns: Sequence[str], user: str | None = None) -> Generator[Columns]:
        """Arrow's batches, as they come."""
        import duckdb

        with self._connection() as connection:
            try:
                for batch in connection.sql(self._select(columns)).to_arrow_reader(BATCH):
                    yield {name: batch.column(place) for place, name in enumerate(columns)}
            except (duckdb.Error, pa.ArrowException, OSError) as e:
                raise self._damaged(e) from None

    def _connection(self) -> Any:
        try:
            import duckdb
        except ImportError:
            raise ValueError(
                f"{self.path} is a DuckDB file: pip install 'dp-workbench[duckdb]' to read it"
            ) from None
        try:
            return duckdb.connect(
                str(self.path), read_only=True, config={"enable_external_access": "false"}
            )
        except duckdb.Error as e:
            raise self._damaged(e) from None

    def _run(self, connection: Any, sql: str) -> Any:
        import duckdb

        try:
            return connection.execute(sql)
        except duckdb.Error as e:
            raise self._damaged(e) from None


class SqliteTable(DatabaseTable):
    """A table of a SQLite file; its values are read as text, except users declared as integers."""

    tables = (
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' "
        "ESCAPE '\\' AND sql NOT LIKE 'CREATE VIRTUAL%' AND NOT EXISTS "
        "(SELECT 1 FROM pragma_table_xinfo(sqlite_master.name) WHERE hidden > 1)"
    )

    def types(self) -> dict[str, pa.DataType]:
        """By the words with which columns were declared; values may be of other types."""
        query = f"SELECT name, upper(type) FROM pragma_table_info({_text(self.table or '')})"
        with self._connection() as connection:
            declared = dict(self._run(connection, query))
        return {
            name: pa.type_for_alias(kind)
            for name, words in declared.items()
            if (kind := next((kind for part, kind in _SQLITE.items() if part in words), None))
        }

    def batches(self, columns: Sequence[str], user: str | None = None) -> Generator[Columns]:
        """So many rows at a time."""
        import sqlite3

        is_whole = user in columns and self.types().get(str(user)) == pa.int64()
        with self._connection() as connection:
            cursor = self._run(connection, self._select(columns))
            try:
                while rows := cursor.fetchmany(_ROWS):
                    fields = zip(columns, zip(*rows, strict=True), strict=True)
                    yield {
                        name: self._whole_users(name, field)
                        if name == user and is_whole
                        else pa.array([self._as_text(name, x) for x in field], pa.string())
                        for name, field in fields
                    }
            except sqlite3.Error as e:
                raise self._damaged(e) from None

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        import sqlite3
        from urllib.parse import quote

        name = f"file:{quote(str(self.path.absolute()))}?mode=ro"
        with closing(sqlite3.connect(name, uri=True)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_ROW)
            yield connection

    def _run(self, connection: Any, sql: str) -> Any:
        import sqlite3

        try:
            return connection.execute(sql)
        except sqlite3.Error as e:
            raise self._damaged(e) from None

    def _whole_users(self, name: str, field: Sequence[Any]) -> pa.Array:
        """Users of a column that is declared to hold integers; anything else in it is refused by itself."""
        for x in field:
            if not (x is None or isinstance(x, int)):
                raise ValueError(
                    f"{self}, column {shown(name)}: found {shown(x)}, need an integer as declared"
                )
        return pa.array(field, pa.int64())

    def _as_text(self, name: str, x: Any) -> str | None:
        """A value as text, by itself: SQLite keeps a type with each value, not with a column."""
        if x is None or isinstance(x, str):
            return x
        if isinstance(x, bytes):
            raise ValueError(f"{self}, column {shown(name)} holds bytes: need text or numbers")
        is_whole = isinstance(x, float) and abs(x) < _EXACT and x.is_integer()
        return str(int(x) if is_whole else x)
