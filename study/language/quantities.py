"""Quantities in Korean: 사흘, 3일, 석 달, 24주, 39.1도. Whether two texts state different ones."""

import re

_NATIVE = {
    "한": 1, "두": 2, "세": 3, "석": 3, "네": 4, "넉": 4, "다섯": 5, "여섯": 6, "일곱": 7, "여덟": 8,
    "아홉": 9, "열": 10, "스무": 20, "반": 0.5, "일": 1, "이": 2, "삼": 3, "사": 4, "오": 5, "육": 6,
    "칠": 7, "팔": 8, "구": 9, "십": 10, "이십": 20, "삼십": 30, "사십": 40, "오십": 50,
}  # fmt: skip
_DAYS = {
    "이틀": 2, "사흘": 3, "나흘": 4, "닷새": 5, "엿새": 6, "이레": 7, "열흘": 10, "보름": 15,
    "그저께": 2, "그제": 2,
}  # fmt: skip
_UNITS = {
    "년": "년", "월": "월", "일": "일", "주": "주", "주일": "주", "개월": "달", "달": "달", "도": "도",
    "갑": "갑", "번": "번", "살": "살", "세": "살", "점": "점", "병": "병", "캔": "캔", "알": "알",
    "킬로": "kg", "kg": "kg", "킬로그램": "kg", "시간": "시간", "분": "분", "잔": "잔",
}  # fmt: skip
_NUMBER = re.compile(
    r"(?P<n>\d+(?:\.\d+)?|" + "|".join(sorted(_NATIVE, key=len, reverse=True)) + r")\s?(?P<u>"
    + "|".join(sorted(_UNITS, key=len, reverse=True)) + r")(?!까지)"
)


def quantities(text: str) -> dict[str, set[float]]:
    """The numbers of a text by unit; days that have names of their own count as days."""
    found: dict[str, set[float]] = {}
    for match in _NUMBER.finditer(text):
        written = match["n"]
        if not written[0].isdigit() and match.start() and "가" <= text[match.start() - 1] <= "힣":
            continue
        number = float(written) if written[0].isdigit() else float(_NATIVE[written])
        found.setdefault(_UNITS[match["u"]], set()).add(number)
    for name, days in _DAYS.items():
        if name in text:
            found.setdefault("일", set()).add(float(days))
    return found


def conflict(one: str, other: str) -> bool:
    """Whether both texts count in one unit and agree in no number of it: 두 갑 against 한 갑."""
    mine, theirs = quantities(one), quantities(other)
    return any(not mine[unit] & theirs[unit] for unit in mine.keys() & theirs.keys())
