"""The rule patient with one fault: it answers negative questions as English does, by the answer's own polarity."""

from pathlib import Path

from generation.sources.ledger import RulePatient
from generation.sources.speaker import check_settings
from study.language.question import Particle, polarity_particle
from study.language.reading import Reading
from study.records import Content, Source


def open_source(source: Source, content: Content, folder: Path) -> "EnglishPolarity":
    check_settings(source)
    return EnglishPolarity(content)


class EnglishPolarity(RulePatient):
    """통증은 없으세요? — 아니요, 없어요."""

    def particle(self, reading: Reading) -> Particle:
        if reading.question.form != "negative" or reading.proposition is None:
            return reading.particle
        return polarity_particle(reading.question, reading.proposition)
