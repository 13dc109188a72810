"""Numbers and dates in a text, however they are written: 84.5k, 84,500 and eighty-four thousand five hundred are one.

Of a date in figures alone, as 09/03/1987, either of the first two may be the day: both are read. Numbers in words are
English ones; digits read out, as "nine one one", are as many numbers, and a year in two halves is two. Ranges are those
with two ends (80-90k, between eighty and ninety thousand) and with one (at most 90k, more than 80,000).
"""

from __future__ import annotations

import re
from datetime import date
from math import inf
from typing import NamedTuple

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
_ISO = re.compile(rf"\b{_YEAR}(?P<mark>[-/.])(?P<m>\d{{1,2}})(?P=mark)(?P<d>\d{{1,2}})\b")
_FIGURES = re.compile(rf"(?<![\w/.-])(?P<d>\d{{1,2}})(?P<mark>[-/.])(?P<m>\d{{1,2}})(?P=mark){_YEAR}(?![\w/])")
_DAY_FIRST = re.compile(rf"\b{_DAY}\s+{_MONTH},?\s+{_YEAR}\b", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"\b{_MONTH}\s+{_DAY},?\s+{_YEAR}\b", re.IGNORECASE)
_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_WORTH = {word: n for n, word in enumerate(_SMALL.split())}
_WORTH |= {word: 10 * n for n, word in enumerate(_TENS.split(), 2)} | _SCALES
_FIRST = "".join(sorted({word[0] for word in _WORTH}))
_WORD = re.compile(rf"\b(?=[{_FIRST}a])(?:{'|'.join(_WORTH)}|a(?=\s+(?:{'|'.join(_SCALES)})\b))\b", re.IGNORECASE)
_JOINED = re.compile(r"\s+|[-‐‑]|\s+and\s+|-and-", re.IGNORECASE)
_END = rf"[$€£¥]?\s?(?:{_NUMBER.pattern}|{_WORD.pattern}(?:[\s-]+{_WORD.pattern})*)"
_BETWEEN = re.compile(rf"\bbetween\s+(?P<low>{_END})\s+and\s+(?P<high>{_END})", re.IGNORECASE)
_TO = re.compile(rf"(?P<low>{_END})[\s-]+to[\s-]+(?P<high>{_END})", re.IGNORECASE)
_DASH = re.compile(rf"(?P<low>{_NUMBER.pattern})\s*[-‐‑–—]\s*[$€£¥]?\s?(?P<high>{_NUMBER.pattern})", re.IGNORECASE)
_AT_MOST = re.compile(
    r"(?:\bat most|\bup to|\b(?:no|not) (?:more|higher) than|\bnot (?:above|over)|\bmaximum of|"
    rf"(?<!\bno )(?<!\bnot )\b(?:less than|lower than|below|under))\s+(?P<high>{_END})",
    re.IGNORECASE,
)
_AT_LEAST = re.compile(
    r"(?:\bat least|\b(?:no|not) (?:less|lower) than|\bnot (?:below|under)|\bminimum of|"
    rf"(?<!\bno )(?<!\bnot )\b(?:more than|higher than|above|over))\s+(?P<low>{_END})",
    re.IGNORECASE,
)
_UNITS = {name: float(times) for name, times in (*_TIMES.items(), *_SCALES.items()) if name}
_UNIT = re.compile(rf"(?:{'|'.join(_UNITS)})$", re.IGNORECASE)


class Range(NamedTuple):
    """What a text says that a number lies between, and from where to where in it that stands."""

    low: float
    high: float
    start: int
    end: int


def ranges(text: str) -> list[Range]:
    """All ranges of numbers, those with two ends first; an end without a unit has that of the other, if it can."""
    found = []
    for pattern in (_BETWEEN, _TO, _DASH, _AT_MOST, _AT_LEAST):
        for at in pattern.finditer(text):
            least, most = (at.groupdict().get(end, "") for end in ("low", "high"))
            low, high = _end(least, -inf), _end(most, inf)
            in_unit = low * _unit(most)
            low = in_unit if _unit(least) == 1 and in_unit <= high else low
            if low <= high:
                found.append(Range(low, high, at.start(), at.end()))
    return found


def _end(text: str, otherwise: float) -> float:
    """The number that an end of a range is."""
    return next((number for number, _ in numbers(text)), otherwise)


def _unit(text: str) -> float:
    """What a number is told in: 1,000 of one in thousands."""
    found = _UNIT.search(text)
    return _UNITS[found[0].lower()] if found else 1


def numbers(text: str) -> list[tuple[float, int]]:
    """All numbers in figures, thousands' marks and suffixes resolved, then all in words, each with its place."""
    in_figures = [
        (float(_MARKS.sub("", found[1])) * _TIMES[(found[2] or "").lower()], found.start())
        for found in _NUMBER.finditer(text)
    ]
    return in_figures + spelled(text)


def in_words(plain: str) -> bool:
    """Whether a text in its normal form may hold a number in words."""
    return not _WORTH.keys().isdisjoint(plain.split())


def spelled(text: str) -> list[tuple[float, int]]:
    """All numbers in words, as two hundred and five or twelve hundred, each with its place in the text."""
    found: list[tuple[float, int]] = []
    reading, end = _Reading(0), 0
    for word in _WORD.finditer(text):
        between = text[end : word.start()]
        joined = reading.begun and _JOINED.fullmatch(between) is not None
        if not joined or not reading.takes(word[0].lower(), after_and="and" in between.lower()):
            found += reading.whole
            reading = _Reading(word.start())
            reading.takes(word[0].lower(), after_and=False)
        end = word.end()
    return found + reading.whole


class _Reading:
    """A number in words as far as it has been read."""

    def __init__(self, start: int) -> None:
        self._start, self._done, self._group = start, 0, 0
        self._room, self._scale = 1_000, 1_000_000_000_000
        """What the next word must be below: what is open of this group, and the last scale named."""
        self.begun = False

    @property
    def whole(self) -> list[tuple[float, int]]:
        """The number and its place; nothing before the first word."""
        return [(float(self._done + self._group), self._start)] if self.begun else []

    def takes(self, word: str, *, after_and: bool) -> bool:
        """Add a word, if the number can go on with it."""
        worth = _WORTH.get(word, 1)  # a
        if word in _SCALES:
            limit = 100 if worth == 100 else 1_000
            if after_and or not 0 < self._group < limit or worth >= self._scale:
                return False
            if worth == 100:
                self._group, self._room = 100 * self._group, 100
            else:
                self._done, self._group, self._room, self._scale = self._done + worth * self._group, 0, 1_000, worth
            return True
        goes_on = worth < self._room and (worth > 0 or not self.begun)
        if self.begun and (not goes_on or (after_and and self._room < 100)):
            return False
        self._group, self._room, self.begun = self._group + worth, 10 if worth >= 20 else 0, True
        return True


def dates(text: str) -> list[tuple[date, int]]:
    """All dates with a day, a month and a year (2024-05-03, 3 May 2024, May 3rd, 2024, 3/5/2024), with their places.

    Where figures can be read as day and month or as month and day, both dates are there.
    """
    found = []
    for pattern in (_ISO, _DAY_FIRST, _MONTH_FIRST, _FIGURES):
        for at in pattern.finditer(text):
            read = [_date(at["y"], at["m"], at["d"])] + [_date(at["y"], at["d"], at["m"])] * (pattern is _FIGURES)
            found += [(day, at.start()) for day in dict.fromkeys(read) if day is not None]
    return found


def as_number(text: str) -> float | None:
    """The number that a text in figures is and nothing else; None for another text."""
    return numbers(text)[0][0] if _NUMBER.fullmatch(text.strip()) else None


def as_dates(text: str) -> tuple[date, ...]:
    """The date that a text is and nothing else; two, where it can be read both ways."""
    whole = any(pattern.fullmatch(text.strip()) for pattern in (_ISO, _DAY_FIRST, _MONTH_FIRST, _FIGURES))
    return tuple(day for day, _ in dates(text)) if whole else ()


def _date(year: str, month: str, day: str) -> date | None:
    number = int(month) if month.isdigit() else _MONTHS.index(month.lower()) + 1
    try:
        return date(int(year), number, int(day))
    except ValueError:
        return None
