"""Numbers and dates in a text, however they are written: 84.5k, 84,500 and 84500 are one.

Left out: numbers spelled as words.
"""

from __future__ import annotations

import re
from datetime import date

_NUMBER = re.compile(
    r"(?<![\w.])(\d{1,3}(?:[,'’\u00a0\u2009 ]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"\s?(k|m|bn|thousand|million|billion)?(?!\w)",
    re.IGNORECASE,
)
_TIMES = {"": 1, "k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "bn": 1e9, "billion": 1e9}
_MARKS = re.compile(r"[,'’\u00a0\u2009 ]")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_MONTH = rf"(?P<m>{'|'.join(_MONTHS)})[a-z]*\.?"
_YEAR = r"(?P<y>\d{4})"
_ISO = re.compile(rf"\b{_YEAR}-(?P<m>\d{{1,2}})-(?P<d>\d{{1,2}})\b")
_DAY_FIRST = re.compile(rf"\b{_DAY}\s+{_MONTH},?\s+{_YEAR}\b", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"\b{_MONTH}\s+{_DAY},?\s+{_YEAR}\b", re.IGNORECASE)


def numbers(text: str) -> list[tuple[float, int]]:
    """All numbers, thousands' marks and suffixes resolved, each with its place in the text."""
    return [
        (float(_MARKS.sub("", found[1])) * _TIMES[(found[2] or "").lower()], found.start())
        for found in _NUMBER.finditer(text)
    ]


def dates(text: str) -> list[tuple[date, int]]:
    """All dates with a day, a month and a year (2024-05-03, 3 May 2024, May 3rd, 2024), each with its place."""
    found = []
    for pattern in (_ISO, _DAY_FIRST, _MONTH_FIRST):
        for at in pattern.finditer(text):
            if (day := _date(at["y"], at["m"], at["d"])) is not None:
                found.append((day, at.start()))
    return found


def as_number(text: str) -> float | None:
    """The number that a text is and nothing else; None for another text."""
    return numbers(text)[0][0] if _NUMBER.fullmatch(text.strip()) else None


def as_date(text: str) -> date | None:
    """The date that a text is and nothing else."""
    whole = any(pattern.fullmatch(text.strip()) for pattern in (_ISO, _DAY_FIRST, _MONTH_FIRST))
    return found[0][0] if whole and (found := dates(text)) else None


def _date(year: str, month: str, day: str) -> date | None:
    number = int(month) if month.isdigit() else _MONTHS.index(month.lower()) + 1
    try:
        return date(int(year), number, int(day))
    except ValueError:
        return None
