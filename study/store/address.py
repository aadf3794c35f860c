"""Where a study's ratings database lies."""

import os

from study.config import Study

VARIABLE = "CROSSED_DATABASE"  # a URL that replaces the file ratings.db in the study folder


def database_url(study: Study) -> str:
    """The URL in CROSSED_DATABASE, or ratings.db in the study's folder."""
    return os.environ.get(VARIABLE) or f"sqlite:///{study.path('ratings.db').resolve()}"


def stands(study: Study) -> bool:
    """Whether there is such a database, without making one."""
    return bool(os.environ.get(VARIABLE)) or study.path("ratings.db").is_file()
