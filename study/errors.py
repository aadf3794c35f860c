"""What a user can mend, said in one sentence."""


class StudyError(Exception):
    """Something the user must change. The message says what is wrong, where, and what would be right."""


class TableError(StudyError):
    """A table that breaks its contract: a column, a key, a type or an allowed value."""


def joined(problems: list[str]) -> str:
    """All problems of one file as one message, a line each."""
    return "\n".join(problems)
