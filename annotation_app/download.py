"""Writes ratings.parquet and ratings.csv into a folder: `python -m annotation_app.download FOLDER`."""

import os
import sys
from pathlib import Path

from study.store import export
from study.store.database import open_database

if __name__ == "__main__":
    export.write(open_database(os.environ["CROSSED_DATABASE"]), Path(sys.argv[1]) / "ratings.parquet")
