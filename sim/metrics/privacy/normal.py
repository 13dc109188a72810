"""Texts as they are compared: one spelling of alike characters, blanks for punctuation, and what codes hide."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterator

_ALIKE = str.maketrans("аеорсухіјѕԁкοανιρυκ", "aeopcyxijsdkoavipuk")
"""Letters of other scripts that look Latin."""
_HIDDEN = re.compile("[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]")
_OTHER = re.compile(r"[\W_]+")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[,.'’](?=\d{3}\b)")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{12,}={0,2}")
_HEX = re.compile(r"\b(?:[0-9a-fA-F]{2}){4,}\b")


def normal(text: str) -> str:
    """NFKC, case-folded, lookalikes and hidden characters resolved, thousands joined, punctuation as single blanks."""
    plain = unicodedata.normalize("NFKC", _HIDDEN.sub("", unicodedata.normalize("NFKC", text)).casefold())
    plain = plain.translate(_ALIKE)
    return _OTHER.sub(" ", _BETWEEN_DIGITS.sub("", plain)).strip()


def decoded(text: str) -> Iterator[str]:
    """What stands in a text in base64 or in hex, as far as it is text."""
    for pattern, decode in ((_BASE64, _from_base64), (_HEX, bytes.fromhex)):
        for found in pattern.finditer(text):
            try:
                plain = decode(found[0]).decode()
            except (binascii.Error, ValueError):
                continue
            if plain.isprintable():
                yield plain


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
