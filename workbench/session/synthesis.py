"""Rows that nobody has, drawn from what a bank holds; written with what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workbench.estimates.model import Model
from workbench.libraries import pa, pd
from workbench.release_files import write_release
from workbench.table import SparseTable

_NOTE = (
    "Made-up rows: they agree with noisy answers that were paid for, and with nothing else of anybody. "
    "What was spent is the guarantee; drawing more rows costs nothing."
)


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticRows:
    """Rows of a model of the tuples.

    Parameters
    ----------
    table : SparseTable
        The rows, public.
    model : Model
        What they were drawn from.
    guarantee : dict
        What all answers cost of which budget, and whom it protects; `doubts`, where the answers
        contradict the total or each other, or the model did not converge.
    """

    table: SparseTable
    model: Model
    guarantee: dict[str, str]

    def __repr__(self) -> str:
        return f"<SyntheticRows {len(self):,} of {' × '.join(self.table.domain.attributes)}>"

    def __len__(self) -> int:
        return int(self.table.total)

    def to_frame(self) -> pd.DataFrame:
        """A row a record, a column an attribute, of labels.

        Returns
        -------
        pandas.DataFrame
        """
        return self.table.domain.frame(self.table.keys.repeat(self.table.counts))

    def save(self, path: str | Path, force: bool = False) -> None:
        """Write them: `.parquet` holds the guarantee itself, `.csv` has it in `.csv.json` beside.

        Parameters
        ----------
        path : path
            Ends in .csv or .parquet.
        force : bool
            Overwrite an existing file.

        Raises
        ------
        ValueError
            For another ending, or if a file is there.
        """
        table = pa.Table.from_pandas(self.to_frame(), preserve_index=False)
        record = {**self.guarantee, "note": _NOTE}
        write_release(table.replace_schema_metadata(None), record, Path(path), force)
