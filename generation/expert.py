"""The human expert as a source: the list of questions out, the answers in; blind to every model's answer.

The list carries a hash of its questions, so that answers cannot slip to other questions than they were given to.
"""

import csv
import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from generation.asking import now
from study.config import FILE, Study
from study.errors import StudyError, joined
from study.records import Content

COLUMNS = ("list", "case", "turn", "prompt_id", "question", "answer")
ATTESTATION = "I wrote these answers myself and saw no model's answer to these questions before or while writing."


@dataclass(frozen=True)
class Expert:
    """One expert's answers with what was attested."""

    source_id: str
    list_hash: str
    answers: dict[str, str]
    attested_by: str


def list_hash(content: Content) -> str:
    """A name for the list of questions: it changes with any of them, or their order."""
    listed = [[p.prompt_id, p.case_id, p.turn, p.text] for p in _ordered(content)]
    return hashlib.sha256(json.dumps(listed, ensure_ascii=False).encode()).hexdigest()[:16]


def export(content: Content, path: Path) -> Path:
    """Write the questions for an expert to answer, as .csv or .xlsx; returns where the patients are described.

    Raises
    ------
    StudyError : for another kind of file
    """
    from study import tables

    name = list_hash(content)
    rows = [[name, p.case_id, str(p.turn), p.prompt_id, p.text, ""] for p in _ordered(content)]
    match path.suffix:
        case ".csv":
            text = io.StringIO()
            csv.writer(text, lineterminator="\r\n").writerows([COLUMNS, *rows])
            # With its mark, so that spreadsheets read Korean.
            tables.replaced(path, lambda half: half.write_text(text.getvalue(), encoding="utf-8-sig", newline=""))
        case ".xlsx":
            tables.replaced(path, lambda half: _write_xlsx(half, rows))
        case _:
            raise StudyError(f"{path}: name a .csv or an .xlsx file")
    cases = path.with_suffix(".cases.txt")
    tables.replaced(cases, lambda half: half.write_text(_sheets(content), encoding="utf-8"))
    return cases


def import_(study: Study, source_id: str, path: Path, attested_by: str) -> Expert:
    """Take an expert's answers: one to every question of the study's list as it stands.

    Raises
    ------
    StudyError : with all problems of the file, one a line; or if the expert's answers are there already
    """
    content = study.content()
    rows = _rows(path)
    known, problems, found = {p.prompt_id: p for p in content.prompts}, [], {}
    hashes = {row["list"] for _, row in rows}
    if rows and hashes != {list_hash(content)}:
        raise StudyError(
            f"{path}: was made for another list of questions ({', '.join(sorted(hashes))}; the study's is "
            f"{list_hash(content)}); export the list anew, or restore the study's prompts"
        )
    for number, row in rows:
        prompt, answer = row["prompt_id"], row["answer"].strip()
        if prompt not in known:
            problems.append(
                f"{path}:{number}: {prompt or 'a row without prompt_id'} is not a prompt of this study"
            )
        elif prompt in found:
            problems.append(f"{path}:{number}: {prompt} is answered twice; keep one row")
        elif row["question"].strip() != known[prompt].text:
            problems.append(f"{path}:{number}: the question of {prompt} was changed; restore it")
        elif not answer:
            problems.append(f"{path}:{number}: {prompt} has no answer")
        if prompt in known and prompt not in found:
            found[prompt] = answer
    problems += [f"{path}: lacks {p}" for p in known if p not in found]
    if problems:
        raise StudyError(joined(problems))
    return save(study, Expert(source_id, list_hash(content), found, attested_by))


def save(study: Study, expert: Expert) -> Expert:
    """Keep an expert's answers with the attestation; once, since what people wrote is not edited.

    Raises
    ------
    StudyError : if study.toml has no such expert, nobody attests, or the answers are there already
    """
    from study import tables

    source = next((s for s in study.sources if s.source_id == expert.source_id), None)
    if source is None or source.kind != "expert":
        raise StudyError(
            f'{study.folder / FILE}: has no source {expert.source_id} of kind "expert"; add one, then import again'
        )
    if not expert.attested_by.strip():
        raise StudyError(f"nobody attests for {expert.source_id}: give the writer's name or pseudonym")
    path = place(study.folder, expert.source_id)
    if path.exists():
        raise StudyError(f"{path}: holds the answers of {expert.source_id} already; they are not overwritten")
    document = {
        "source": expert.source_id,
        "list": expert.list_hash,
        "attestation": ATTESTATION,
        "attested_by": expert.attested_by,
        "at": now(),
        "answers": expert.answers,
    }
    text = json.dumps(document, ensure_ascii=False, indent=1) + "\n"
    tables.replaced(path, lambda half: half.write_text(text, encoding="utf-8"))
    return expert


def load(folder: Path, source_id: str, content: Content) -> dict[str, str]:
    """An expert's answers by prompt; none if there are none yet.

    Raises
    ------
    StudyError : if they were given to another list of questions, or cannot be read
    """
    path = place(folder, source_id)
    if not path.exists():
        return {}
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        answers, name = dict(document["answers"]), document["list"]
    except (ValueError, KeyError, TypeError):
        raise StudyError(f"{path}: cannot be read; restore it from a copy") from None
    if name != list_hash(content):
        raise StudyError(
            f"{path}: answers the list of questions {name}, and the study's is now {list_hash(content)}; "
            "restore the study's prompts, or have the expert answer the new list"
        )
    return answers


def place(folder: Path, source_id: str) -> Path:
    return folder / "experts" / f"{source_id}.json"


def _ordered(content: Content) -> list:
    order = {case_id: i for i, case_id in enumerate(content.cases)}
    return sorted(content.prompts, key=lambda p: (order[p.case_id], p.turn, p.prompt_id))


def _sheets(content: Content) -> str:
    """What an expert may read of each patient: the persona without how a model is told to play it."""
    parts = []
    for case in content.cases.values():
        p = case.persona
        told = (case.door_note, p.demographic_context, p.clinical_state, p.history, p.conversational_style)
        parts.append("\n\n".join([f"== {case.case_id}: {case.title}", *(text for text in told if text)]))
    return "\n\n\n".join(parts) + "\n"


def _write_xlsx(path: Path, rows: list[list[str]]) -> None:
    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    for row in [list(COLUMNS), *rows]:
        sheet.append(row)
    for cells in sheet.iter_rows():
        for cell in cells:
            cell.data_type = "s" if cell.value else cell.data_type  # a text that begins with = is no formula
    sheet.column_dimensions["E"].width, sheet.column_dimensions["F"].width = 60, 60
    sheet.freeze_panes = "A2"
    book.save(path)


def _rows(path: Path) -> list[tuple[int, Mapping[str, str]]]:
    """The rows of an expert's file with their numbers; empty cells are empty texts."""
    if not path.is_file():
        raise StudyError(f"{path}: no such file")
    table = _xlsx(path) if path.suffix == ".xlsx" else _csv(path)
    head = [str(name).strip() for name in table[0]] if table else []
    if missing := [c for c in COLUMNS if c not in head]:
        raise StudyError(f"{path}: lacks the column {', '.join(missing)}; export the list and fill in `answer`")
    found = [(n, dict(zip(head, row, strict=False))) for n, row in enumerate(table[1:], 2) if any(row)]
    return [(n, {c: row.get(c, "").strip() for c in COLUMNS}) for n, row in found]


def _csv(path: Path) -> list[list[str]]:
    raw = path.read_bytes()
    for encoding in ("utf-8-sig", "cp949"):  # cp949: what Korean spreadsheets write unasked
        try:
            return list(csv.reader(io.StringIO(raw.decode(encoding), newline="")))
        except UnicodeDecodeError:
            continue
    raise StudyError(f"{path}: is neither UTF-8 nor CP949 text; save it as CSV in UTF-8")


def _xlsx(path: Path) -> list[list[str]]:
    from zipfile import BadZipFile

    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (BadZipFile, InvalidFileException, KeyError):
        raise StudyError(f"{path}: is not an .xlsx file") from None
    try:
        return [["" if v is None else str(v) for v in row] for row in book.active.iter_rows(values_only=True)]
    finally:
        book.close()
