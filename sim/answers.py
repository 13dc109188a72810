"""Answers of minds: what is legal, how to ask for it, and how to read it from a model's text.

Parsing is total: text in, a legal answer or nothing out, never an exception and never a guess. An explicit but illegal
answer is never turned into some other legal one, so prose counts only where it marks its answer plainly. Text takes
time linear in its length. Left out on purpose: repairing JSON, reading numbers out of words or quotes, look-alike
letters of other alphabets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NoReturn

from sim.forms import UNSAFE, Schema, branches, misfit, schema
from sim.samples import sample
from sim.types import JSON, Choice, Form, Format, Text

__all__ = ["describe", "illegal", "max_tokens", "parse", "sample", "schema"]

_OVERHEAD = 16
"""Tokens for the end of the turn, a stray space or newline."""


def illegal(format: Format, answer: JSON) -> str | None:
    """Why an answer is not legal, in words a model can act on; None if it is legal."""
    if isinstance(format, Choice):
        legal = type(answer) is str and answer in format.options
        return None if legal else f"the answer must be {_quoted(format.options)}"
    if isinstance(format, Form):
        return misfit(format, answer)
    return _unreadable(format, answer)


def _unreadable(format: Text, answer: JSON) -> str | None:
    if type(answer) is not str:
        return "the answer must be text"
    if len(answer) > format.max_chars:
        return f"the text has {len(answer)} characters; at most {format.max_chars} are allowed"
    if UNSAFE.search(answer):
        return "the text holds a control character"
    if not any(char.isprintable() and not char.isspace() for char in answer):
        return "the text is empty"
    return None


def parse(format: Format, text: str | None) -> tuple[JSON | None, str]:
    """The one legal answer that a model's text gives and "", or None and the reason why there is none."""
    if text is None or not text.strip():
        return None, "the answer is empty"
    if isinstance(format, Choice):
        return (text, "") if text in format.options else _choice(format, text)
    if isinstance(format, Form):
        return _form(format, text)
    rest, reason = _spoken(text)
    if rest is None:
        return None, reason
    return _judged(format, rest.replace("\r\n", "\n"))


def _judged(format: Format, answer: JSON) -> tuple[JSON | None, str]:
    reason = illegal(format, answer)
    return (answer, "") if reason is None else (None, reason)


# --- thinking and fences --------------------------------------------------------------------------

_SPACE = " \t\r\n\u00a0\ufeff"
_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_FENCE = re.compile(r"```[\w-]*\n(.*?)\n?```", re.DOTALL)


def _spoken(text: str) -> tuple[str | None, str]:
    """The text after the model's thinking. Thinking comes first; its opening tag may have stood in the prompt."""
    depth = end = 0
    for tag in _TAG.finditer(text):
        opened_before = end == 0 and tag[1]
        if depth == 0 and not opened_before and text[end : tag.start()].strip(_SPACE):
            return None, "the answer and the thinking are mixed"
        depth = max(0, depth + (-1 if tag[1] else 1))
        end = tag.end()
    if depth:
        return None, "the thinking does not end, so there is no answer"
    rest = text[end:].strip(_SPACE)
    return (rest, "") if rest else (None, "there is no answer after the thinking")


# --- objects --------------------------------------------------------------------------------------

_DEPTH = 32
_NOTHING = object()
_OPENING = re.compile(r"\{")
_INSIDE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}]', re.DOTALL)


def _form(form: Form, text: str) -> tuple[JSON | None, str]:
    if (whole := _loaded(text)) is not _NOTHING:
        return _judged(form, whole)
    rest, reason = _spoken(text)
    if rest is None:
        return None, reason
    fenced = _FENCE.fullmatch(rest)
    if (whole := _loaded(fenced[1] if fenced else rest)) is not _NOTHING:
        return _judged(form, whole)
    found: JSON = None
    known: set[str] = set()
    for span in _objects(rest):
        if span in known:
            continue
        known.add(span)
        value = _loaded(span)
        if value is _NOTHING:
            return None, "the answer is not one complete, valid JSON object"
        if (reason := misfit(form, value) or "") or (found is not None and value != found):
            return None, reason or "the text holds several different answers"
        found = value
    return (found, "") if found is not None else (None, "there is no JSON object in the answer")


def _objects(text: str) -> Iterator[str]:
    """Every outermost {…} of a text, in order; an empty one where an object does not end or nests too deep."""
    depth = start = at = 0
    while token := (_INSIDE if depth else _OPENING).search(text, at):
        at = token.end()
        mark = token[0]
        if mark == "{":
            start = start if depth else token.start()
            depth += 1
        elif mark == "}":
            depth -= 1
            if depth == 0:
                yield text[start:at]
        if mark == '"' or depth > _DEPTH:  # a text without end
            break
    if depth:
        yield ""


def _loaded(text: str) -> JSON:
    """The JSON value that a whole text is, or `_NOTHING`."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return _NOTHING


def _once(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key stands twice: two answers")
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_number)


# --- choices --------------------------------------------------------------------------------------

_PAIRS = {"'": "'", '"': '"', "`": "`", "*": "*", "_": "_", "(": ")", "“": "”", "‘": "’", "«": "»"}
_STOPS = ".,;:!"
_LABEL = re.compile(r"\(?(?:[A-Za-z]|\d{1,2})[.)][ \t]+")
_WHAT = r"(?:answer|choice|decision|action|move|option)"
_MARK = re.compile(
    rf"(?:^|[.!?][ \t]+)(?:(?:my |the )?(?:final )?{_WHAT}(?: is)?[ \t]*(?::|=|(?<= is)[ \t])"
    rf"|I(?: will|['’]ll| would| want to)? (?:choose|pick|select|take|play|go with|opt for)[ \t])"
    rf"\**[ \t]*(?:the )?(?:{_WHAT} )?(.+)$",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:not|no|never|neither|nor|none|but|except|rather|instead|avoid|against|wrong|illegal|bad|worst|without|unless"
    r"|exclud\w+|refus\w+|forbidden)\b|n['’]t\b",
    re.IGNORECASE,
)
_KEYS = frozenset({"answer", "choice", "decision", "action", "act", "move", "option"})


def _choice(format: Choice, text: str) -> tuple[JSON | None, str]:
    rest, reason = _spoken(text)
    if rest is None:
        return None, reason
    fenced = _FENCE.fullmatch(rest)
    rest = (fenced[1] if fenced else rest).strip(_SPACE)
    named = _named(format.options, rest) or _keyed(format.options, rest) or _concluded(format.options, rest)
    return (named, "") if named else (None, f"the answer must be {_quoted(format.options)} and nothing else")


def _keyed(options: tuple[str, ...], text: str) -> str | None:
    """The option in an object such as {"answer": "b"}."""
    value = _loaded(text)
    if type(value) is not dict or len(value) != 1 or not value.keys() <= _KEYS:
        return None
    (only,) = value.values()
    return _named(options, only) if type(only) is str else None


def _concluded(options: tuple[str, ...], text: str) -> str | None:
    """The option which the last line states, where all lines that state an answer state the same.

    A line states an answer by "Answer: b", "I choose b." and the like, or by standing alone after a colon.
    """
    lines = [line for raw in text.split("\n") if (line := _unmarked(raw)) and not line.startswith("```")]
    stated = [(line, mark[1]) for line in lines if (mark := _MARK.search(line))]
    if stated:
        answers = {_named(options, words) for _, words in stated}
        return answers.pop() if len(answers) == 1 and stated[-1][0] == lines[-1] else None
    if len(lines) < 2 or not lines[-2].endswith((":", ":**")) or _DOUBT.search("\n".join(lines[:-1])):
        return None
    named = _named(options, lines[-1])
    return None if any(_named(options, line) for line in lines[:-1]) else named


def _unmarked(line: str) -> str:
    """A line without the marks of a heading, a quotation or strong emphasis."""
    line = line.strip(_SPACE).lstrip("#> ")
    if line.startswith("**"):
        line = line[2:].removesuffix("**")
    return line


def _named(options: tuple[str, ...], words: str) -> str | None:
    """The option that the words are, apart from case, quotes, emphasis, a final stop and a label such as "b)"."""
    table, longest, labelled = _spellings(options)
    if words in options:
        return words
    if len(words) > longest + 16:
        return None
    found = table.get(_core(words))
    if found or labelled or (label := _LABEL.match(words)) is None:
        return found
    return table.get(_core(words[label.end() :]))


def _core(words: str) -> str:
    """The words without quotes, emphasis and stops around them; lower case if ASCII, so look-alikes stay different."""
    words = _unstopped(words.strip(_SPACE))
    while len(words) > 2 and _PAIRS.get(words[0]) == words[-1]:
        words = _unstopped(words[1:-1])
    if words.endswith(")") and "(" not in words:
        words = words[:-1]
    return words.lower() if words.isascii() else words


def _unstopped(words: str) -> str:
    return words[:-1] if len(words) > 1 and words[-1] in _STOPS else words


@lru_cache(maxsize=4096)
def _spellings(options: tuple[str, ...]) -> tuple[dict[str, str | None], int, bool]:
    """Core → option (None where two share it), length of the longest, whether a label could be taken for an option."""
    table: dict[str, str | None] = {}
    for option in options:
        core = _core(option)
        table[core] = None if core in table else option
    labelled = any(len(option) == 1 or any(map(str.isdigit, option)) for option in options)
    return table, max(map(len, options), default=0), labelled


# --- asking ---------------------------------------------------------------------------------------


def describe(format: Format) -> str:
    """How to answer, in words for a small model."""
    if isinstance(format, Choice):
        return f"Answer with {_quoted(format.options)} and nothing else."
    if isinstance(format, Text):
        return f"Answer with plain text of at most {format.max_chars} characters and nothing else."
    shapes = [_shape(one) + _about(one) for _, one in branches(format).pairs]
    if len(shapes) == 1:
        return f"Answer with one JSON object of this form and nothing else:\n{shapes[0]}"
    return "Answer with one JSON object, in one of these forms, and nothing else:\n" + "\n".join(shapes)


def _about(one: Schema) -> str:
    words = " ".join(one.get("description", "").split())
    return f"  ({words})" if words else ""


def _shape(one: Schema) -> str:
    """A schema as an example with the values described in angle brackets."""
    if "anyOf" in one:
        return " or ".join(_shape(part) for part in one["anyOf"])
    if "enum" in one:
        return " or ".join(json.dumps(value, ensure_ascii=False) for value in one["enum"])
    kind = one["type"]
    if kind == "object":
        return "{" + ", ".join(f"{json.dumps(name)}: {_shape(part)}" for name, part in one["properties"].items()) + "}"
    if kind == "array":
        return f"[{one['minItems']} to {one['maxItems']} of {_shape(one['items'])}]"
    if kind == "string":
        return f"<text of at most {one['maxLength']} characters>"
    if kind in ("integer", "number"):
        return f"<{'whole ' if kind == 'integer' else ''}number{_limits(one)}>"
    return "true or false" if kind == "boolean" else "null"


def _limits(one: Schema) -> str:
    low, high = (one.get(word, one.get(f"exclusive{word.title()}")) for word in ("minimum", "maximum"))
    return "".join(f" {word} {value}" for word, value in (("from", low), ("to", high)) if value is not None)


def _quoted(options: tuple[str, ...]) -> str:
    """Options in words, the first thirty of many."""
    named = [json.dumps(option, ensure_ascii=False) for option in options[:30]] + (["…"] if len(options) > 30 else [])
    return named[0] if len(named) == 1 else f"one of {', '.join(named)}"


def max_tokens(format: Format) -> int:
    """Tokens within which a constrained answer always ends.

    One token per character of the longest answer plus 16. Ordinary text takes about one token per four characters, so
    only a text that is nearly all rare symbols (up to four tokens each) could be cut. Numbers count 24 characters.
    """
    if isinstance(format, Choice):
        return max((len(option.encode()) for option in format.options), default=0) + _OVERHEAD
    if isinstance(format, Text):
        return format.max_chars + _OVERHEAD
    return max(_longest(one) for _, one in branches(format).pairs) + _OVERHEAD


def _longest(one: Schema) -> int:
    """Characters of the longest value a schema allows, with the punctuation around it."""
    if "anyOf" in one:
        return max(_longest(part) for part in one["anyOf"])
    if "enum" in one:
        return max(len(json.dumps(value)) for value in one["enum"])
    kind = one["type"]
    if kind == "object":
        return 2 + sum(len(name) + 6 + _longest(part) for name, part in one["properties"].items())
    if kind == "array":
        return 2 + int(one["maxItems"]) * (_longest(one["items"]) + 2)
    return int(one["maxLength"]) + 2 if kind == "string" else 24
