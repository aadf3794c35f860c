"""How far a study's responses have come, source by source, from the journal."""

from dataclasses import dataclass

from generation.answers import Answers, Attempts, Sums
from generation.run import JOURNAL, grid, opened, row
from study.config import Study


@dataclass(frozen=True)
class Standing:
    """One source: how many of its questions have which outcome, what they cost, what was sent for them."""

    source: str
    cells: int
    sums: Sums
    attempts: Attempts
    open: int

    def plain(self) -> dict[str, object]:
        """The standing as plain data."""
        return {
            "source": self.source,
            "cells": self.cells,
            "open": self.open,
            "statuses": dict(self.sums.statuses),
            "flags": dict(self.sums.flags),
            "cost": self.sums.cost,
            "answers_without_cost": self.sums.unpriced,
            "requests": vars(self.attempts) | {"lost": self.attempts.lost},
            "first_answer": self.sums.first,
            "last_answer": self.sums.last,
        }


def standings(study: Study) -> list[Standing]:
    """Each source's standing under the settings of today; nothing is asked.

    Raises
    ------
    StudyError : if study.toml or the journal cannot be read
    """
    content = study.content()
    answers = Answers.read(study.path(JOURNAL))
    cells = list(grid(study, content, opened(study, content)))
    sums = {s.source_id: Sums() for s in study.sources}
    still_open = dict.fromkeys(sums, 0)
    for cell, record in zip(cells, answers.known(cells), strict=True):
        sums[cell.source.source_id].add(row(cell, record, {}))
        still_open[cell.source.source_id] += not answers.settled(cell.key)
    return [
        Standing(name, len(content.prompts), one, answers.attempts.get(name, Attempts()), still_open[name])
        for name, one in sums.items()
    ]
