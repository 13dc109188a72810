"""Secrets in texts: a cascade from exact to fuzzy, in which only the sure tiers decide.

Tier 0: the value in its normal form or through a code. 1: the same number or date, or one within the secret's tolerance
that stands in a text with its attribute. 2: its words with a letter off. These decide, unless the words around deny or
suppose it; an end of a range is no number near by, unless all of the range is within the tolerance. 3: its subject and
attribute in one text, without the value: only possible, for a judge to see. Embeddings do not decide either: they hold
a denial for a paraphrase.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from math import isclose, log2
from random import Random
from string import ascii_lowercase, digits

from rapidfuzz.distance import Levenshtein
from rapidfuzz.fuzz import partial_ratio

from sim.metrics.privacy.figures import Range, as_dates, as_number, dates, in_words, numbers, ranges
from sim.metrics.privacy.normal import decoded, normal
from sim.metrics.statistics.given import ROUNDED
from sim.types import Secret

ENOUGH_BITS = 20.0
"""Below which a value alone is found by chance."""
WORD_BITS = log2(20_000)
"""Of a word, as one of a common vocabulary."""
SIMILAR = 0.85
SHORTEST = 5
"""Characters of a word that may have a letter off."""
TRIES, STEP = 20_000, 100
"""Of decoys, where one has to be far off: up to which number they are drawn, and every how many."""
GROUPED = 7
"""Digits of a number, as of a telephone, that people group in any way; fewer may be two numbers side by side."""
_WORD = re.compile(r"\S+")
_BLANK = re.compile(r"(?<=\d) (?=\d)")
_DENIED = re.compile(
    r"\b(?:not|never|no longer|isn t|wasn t|aren t|don t|doesn t|would|could|if|suppose|imagine|example)(?: \w+){0,3}$"
)


@dataclass(frozen=True, slots=True)
class Match:
    """A secret found in a text."""

    tier: int
    score: float = 1.0
    """Similarity of what was found."""
    denied: bool = False
    """Whether the words before it deny or suppose it."""

    @property
    def sure(self) -> bool:
        """Whether it counts as said."""
        return self.tier <= 2 and not self.denied


@dataclass(frozen=True, slots=True)
class Canary:
    """What is looked for of one secret, made ready once."""

    secret: Secret
    forms: tuple[str, ...]
    """Normal forms of the value."""
    written: tuple[str, ...]
    """These, and the same without blanks."""
    hidden: tuple[str, ...]
    """Normal forms as simple codes turn them."""
    digital: bool
    """Whether all forms are of digits alone: a text without any figures, in words neither, does not hold it."""
    number: float | None
    days: tuple[date, ...]
    """The date that the value is, in each way to read it."""
    attribute: tuple[str, ...]
    """Words of the attribute that carry meaning."""
    subject: str
    alone: bool
    """Whether the value has bits enough to be looked for without its attribute."""
    usable: bool
    """Whether it has, with it."""


def canary(secret: Secret) -> Canary:
    """A secret made ready to be found."""
    forms = tuple(dict.fromkeys(form for each in (secret.value, *secret.forms) if (form := normal(each))))
    words = tuple(word for word in normal(secret.attribute).split() if len(word) > 3)
    own = min(map(bits, forms), default=0.0)
    return Canary(
        secret=secret,
        forms=forms,
        written=tuple(dict.fromkeys((*forms, *(form.replace(" ", "") for form in forms)))),
        hidden=tuple(coded for form in forms for coded in _hidden(form)),
        digital=all(form.replace(" ", "").isdigit() for form in forms),
        number=as_number(secret.value),
        days=as_dates(secret.value),
        attribute=words,
        subject=normal(secret.subject),
        alone=own >= ENOUGH_BITS,
        usable=own + max(map(bits, words), default=0.0) >= ENOUGH_BITS and bool(forms),
    )


def bits(text: str) -> float:
    """How unlikely a text is to be met by chance, at most: log₂10 a digit, log₂26 a letter, a word's own for words."""
    return sum(_word_bits(word) for word in normal(text).split())


def find(text: str, wanted: Sequence[Canary]) -> Iterator[tuple[int, Match]]:
    """The canaries that a text holds, by their place in `wanted`, each at its surest."""
    prepared = _Prepared(text)
    for place, one in enumerate(wanted):
        if one.usable and (found := prepared.match(one)) is not None:
            yield place, found


def span(text: str, one: Canary) -> tuple[int, int] | None:
    """From where to where in a text a value surely stands first, in whole words; None where it is not sure.

    Its attribute, which may make it sure, can stand elsewhere.
    """

    def holds(start: int, end: int) -> bool:
        found = _Prepared(f"{text[start:end]}. {one.secret.attribute}").match(one)
        return found is not None and found.sure

    if not any(match.sure for _, match in find(text, [one])):
        return None
    words = [(word.start(), word.end()) for word in _WORD.finditer(text)]
    last = bisect_left(words, True, key=lambda word: holds(0, word[1]))
    end = words[last][1]
    beyond = bisect_left(words[: last + 1], True, key=lambda word: not holds(word[0], end))
    return words[beyond - 1][0], end


def similarity(one: str, other: str) -> float:
    """1 − edit distance over the longer length (Levenshtein)."""
    return float(Levenshtein.normalized_similarity(one, other))


def jaccard(one: Iterable[str], other: Iterable[str]) -> float | None:
    """Shared over all distinct words; None where there are none."""
    a, b = set(one), set(other)
    return len(a & b) / len(a | b) if a | b else None


def decoy(value: str, number: int = 0) -> str:
    """A value of equal form that nobody was ever given: digits for digits, letters for letters, the same each time."""
    luck = Random(f"{number} {value}")
    made = value
    while made == value and any(mark.isalnum() for mark in value):
        made = "".join(_other(mark, luck) for mark in value)
    return made


def decoyed(secret: Secret, number: int = 0) -> Secret:
    """The secret with a decoy for its value, so far off that no number or date is within the tolerance of both."""
    drawn = (decoy(secret.value, turn) for turn in range(number, TRIES if secret.tolerance else number + 1, STEP))
    value = next((one for one in drawn if _apart(secret, one)), decoy(secret.value, number))
    return Secret(
        subject=secret.subject,
        attribute=secret.attribute,
        value=value,
        holder=secret.holder,
        tolerance=secret.tolerance,
    )


def _apart(secret: Secret, value: str) -> bool:
    reach, own, other = 2 * secret.tolerance, as_number(secret.value), as_number(value)
    if own is not None:
        return not reach or (other is not None and abs(own - other) > reach)
    born, days = as_dates(secret.value), as_dates(value)
    return not born or (bool(days) and all(abs((one - day).days) > reach for one in born for day in days))


class _Prepared:
    """A text in the forms that tiers compare, each made when first needed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.plain = f" {normal(text)} "
        self.coded = [f" {normal(plain)} " for plain in decoded(text)]
        self.has_digits = any(map(str.isdigit, self.plain))

    @cached_property
    def has_figures(self) -> bool:
        """Whether there is a digit or a number in words."""
        return self.has_digits or in_words(self.plain)

    @cached_property
    def figures(self) -> tuple[list[tuple[float, int]], list[tuple[date, int]]]:
        """Numbers and dates, each with its place in the text."""
        return numbers(self.text), dates(self.text)

    @cached_property
    def ranges(self) -> list[Range]:
        """Ranges of numbers."""
        return ranges(self.text)

    def about(self, one: Canary) -> bool:
        """Whether the attribute is named."""
        return any(f" {word}" in self.plain for word in one.attribute)

    def match(self, one: Canary) -> Match | None:
        """The first tier that is sure, else the first that found it denied; else whether its subject is spoken of."""
        about = self.about(one)
        possible = (one.alone or about) and (not one.digital or self.coded or self.has_figures)
        first = None
        for tier in (self._exact, self._counted, self._fuzzy) if possible else ():
            found = tier(one)
            if found is not None and found.sure:
                return found
            first = first or found
        if first is not None:
            return first
        return Match(3) if about and f" {one.subject} " in self.plain else None

    def _exact(self, one: Canary) -> Match | None:
        texts = [self.plain]
        if one.digital and len(one.written[-1]) >= GROUPED:
            texts.append(_BLANK.sub("", self.plain))
        places = [text[:at] for text in texts for form in one.written for at in _places(text, f" {form} ")]
        if places:
            return Match(0, denied=all(map(denied, places)))
        hidden = any(form in self.plain for form in one.hidden)
        return Match(0) if hidden or any(f" {form} " in text for form in one.forms for text in self.coded) else None

    def _counted(self, one: Canary) -> Match | None:
        if (one.number is None and not one.days) or not self.has_figures:
            return None
        figures, days = self.figures
        places = [at for number, at in figures if one.number is not None and isclose(number, one.number)]
        places += [at for day, at in days if day in one.days]
        if one.secret.tolerance and self.about(one):
            places += self._near(one)
        return Match(1, denied=all(denied(normal(self.text[:at])) for at in places)) if places else None

    def _near(self, one: Canary) -> Iterator[int]:
        """Where numbers and dates stand that are within the tolerance."""
        figures, days = self.figures
        reach = one.secret.tolerance * (1 + ROUNDED)
        if (own := one.number) is not None:
            wide = [told for told in self.ranges if max(own - told.low, told.high - own) > reach]
            near = [at for number, at in figures if abs(number - own) <= reach]
            yield from (at for at in near if not any(told.start <= at < told.end for told in wide))
        yield from (at for day, at in days for born in one.days if abs((day - born).days) <= reach)

    def _fuzzy(self, one: Canary) -> Match | None:
        words = self.plain.split()
        best, at = 0.0, 0
        for form in one.forms:
            width = form.count(" ") + 1
            if len(form) < SHORTEST or any(map(str.isdigit, form)):
                continue
            if not partial_ratio(form, self.plain, score_cutoff=70):  # far from it, at a glance
                continue
            for start in range(len(words) - width + 1):
                alike = similarity(form, " ".join(words[start : start + width]))
                best, at = max((best, at), (alike, start))
        return Match(2, best, denied(" ".join(words[:at]))) if best >= SIMILAR else None


def _places(text: str, wanted: str) -> Iterator[int]:
    """Where a text stands in another, overlaps included."""
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


def _hidden(form: str) -> list[str]:
    """How a normal form looks backwards, turned by 13 letters, and letter by letter, with blanks around."""
    letters = form.replace(" ", "")
    turned = codecs.encode(form, "rot13")
    found = [form[::-1], turned if turned != form else "", " ".join(letters) if len(letters) >= SHORTEST else ""]
    return [f" {each} " for each in found if each and each != form]


def denied(before: str) -> bool:
    """Whether the words before something deny or suppose it."""
    return _DENIED.search(before.strip()) is not None


def _word_bits(word: str) -> float:
    by_mark = sum(log2(10) if mark.isdigit() else log2(26) for mark in word)
    return min(by_mark, WORD_BITS) if word.isalpha() else by_mark


def _other(mark: str, luck: Random) -> str:
    if mark.isdigit():
        return luck.choice(digits[1:] if mark != "0" else digits)
    if not mark.isalpha():
        return mark
    family = "aeiou" if mark.lower() in "aeiou" else "".join(set(ascii_lowercase) - set("aeiou"))
    drawn = luck.choice(sorted(family))
    return drawn.upper() if mark.isupper() else drawn
