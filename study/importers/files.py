"""Any table a person may hand over, as a frame of text or numbers: CSV, TSV or Parquet."""

from pathlib import Path

import pandas as pd

from study.errors import StudyError
from study.tables import read_parquet

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def frame(path: Path) -> pd.DataFrame:
    """The table in a file.

    Raises
    ------
    StudyError : if the file is absent, a folder, of another kind, empty, or not a table
    """
    if path.is_dir():
        raise StudyError(f"{path}: is a folder; give a .csv, .tsv or .parquet file")
    if not path.is_file():
        raise StudyError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise StudyError(f"{path}: is empty; a ratings file has a header and a row for each rating")
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        table = read_parquet(path)
    elif suffix in _SEPARATORS:
        table = _text_table(path, _SEPARATORS[suffix])
    else:
        raise StudyError(f"{path}: is of a kind not known here; give a .csv, .tsv or .parquet file")
    if table.empty:
        raise StudyError(f"{path}: has a header and no rows; a ratings file has a row for each rating")
    return table


def _text_table(path: Path, separator: str) -> pd.DataFrame:
    try:
        table = pd.read_csv(path, sep=separator, encoding="utf-8-sig", dtype_backend="numpy_nullable")
    except UnicodeDecodeError:
        raise StudyError(f"{path}: is not UTF-8 text; save it as CSV in UTF-8") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise StudyError(f"{path}: is not a table: {str(error).strip()}") from None
    if "\0" in "".join(map(str, table.columns)):
        raise StudyError(f"{path}: is not text; save it as CSV in UTF-8")
    return table
