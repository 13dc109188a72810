"""The one choice mask, and the bound on free text."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.engines.bounds import HIDDEN, Piece, Progress, fits, follow, may_end, piece, walk
from agents.engines.choices import ChoiceMask, Trie

END = 0


def spell(text: str) -> list[int]:
    """Tokens of one or two letters, longest first, as a merging tokenizer has them."""
    pairs = {"bu": 300, "y ": 301, "se": 302, "ll": 303}
    ids, rest = [], text
    while rest:
        size = 2 if rest[:2] in pairs else 1
        ids.append(pairs.get(rest[:2], ord(rest[0])))
        rest = rest[size:]
    return ids


def test_trie_by_hand() -> None:
    trie = Trie([(1, 2, END), (1, 3, END), (4, END)])
    assert trie.allowed(()) == (1, 4)
    assert trie.allowed((1,)) == (2, 3)
    assert trie.allowed((1, 2)) == (END,)
    assert trie.allowed((1, 2, END)) == ()
    assert trie.allowed((9,)) == ()
    assert trie.allowed((9, 1)) == ()


def test_an_option_that_begins_another_may_end_or_go_on() -> None:
    mask = ChoiceMask(("buy", "buy more"), spell, END)
    assert mask.allowed(spell("bu")) == (ord("y"), 301)
    only = ChoiceMask(("sell", "sell all"), spell, END)
    assert only.allowed(spell("sell")) == (END, ord(" "))
    assert only.option((*spell("sell"), END)) == "sell"
    assert only.option(tuple(spell("sell"))) is None
    assert only.longest == len(spell("sell all")) + 1


def test_along_is_the_support_of_every_conditional() -> None:
    mask = ChoiceMask(("ab", "ac"), spell, END)
    assert mask.along((97, 98, END)) == ((97,), (98, 99), (END,))


@pytest.mark.parametrize("options", [(), ("a", "a")])
def test_options_must_be_there_and_differ(options: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="options must be"):
        ChoiceMask(options, spell, END)


def test_an_option_cannot_hold_the_end() -> None:
    with pytest.raises(ValueError, match="end-of-turn"):
        ChoiceMask(("a\x00b",), spell, END)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.text("abselyu ", min_size=0, max_size=6), min_size=1, max_size=8, unique=True), st.integers(0, 2**32)
)
def test_probabilities_of_all_options_sum_to_one(options: list[str], salt: int) -> None:
    """Whatever the logits, the products of masked conditionals are a distribution over the options."""

    def logit(prefix: tuple[int, ...], token: int) -> float:
        return (hash((salt, prefix, token)) % 1000) / 100

    def probability(mask: ChoiceMask, ids: tuple[int, ...]) -> float:
        product = 1.0
        for position, allowed in enumerate(mask.along(ids)):
            weights = {token: math.exp(logit(ids[:position], token)) for token in allowed}
            product *= weights[ids[position]] / sum(weights.values())
        return product

    mask = ChoiceMask(options, spell, END)
    assert sum(probability(mask, ids) for ids in mask.sequences) == pytest.approx(1.0)
    assert [mask.option(ids) for ids in mask.sequences] == options


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.text("abselyu ", max_size=6), min_size=1, max_size=8, unique=True), st.randoms(use_true_random=False)
)
def test_every_walk_over_the_mask_ends_in_an_option(options: list[str], random: object) -> None:
    mask = ChoiceMask(options, spell, END)
    ids: list[int] = []
    while allowed := mask.allowed(ids):
        ids.append(random.choice(allowed))  # type: ignore[attr-defined]
    assert mask.option(ids) in options
    assert len(ids) <= mask.longest


# --- bounded text -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b" hi", Piece(0, 0, 3, True, False)),
        (b"  ", Piece(0, 0, 2, False, False)),
        ("é".encode(), Piece(0, 0, 1, True, False)),
        (b"\xf0\x9f", Piece(0, 2, 1, True, False)),
        (b"\xe2", Piece(0, 2, 1, False, False)),
        (b"\x98\x80", Piece(2, 0, 0, False, True)),
        (b"\x80a", Piece(1, 0, 1, True, False)),
        (b"a\xc3", Piece(0, 1, 2, True, False)),
    ],
)
def test_what_a_token_does_to_a_text(data: bytes, expected: Piece) -> None:
    assert piece(data) == expected


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"a\x00", b"\x7f", "\u200b".encode(), "\u202e".encode(), b"\xff", b"\x80" * 4, b"\xc3a"]
)
def test_tokens_that_never_stand_in_an_answer(data: bytes) -> None:
    assert piece(data) is None


def test_a_continuation_needs_an_open_character() -> None:
    tail = Piece(1, 0, 0, False, True)
    assert follow(Progress(), tail) is None
    assert follow(Progress(open=2, chars=1), tail) == Progress(1, 1, 1, False)
    letter = Piece(0, 0, 1, True, False)
    assert follow(Progress(open=2, chars=1), letter) is None


def test_room_is_kept_for_the_missing_bytes_and_the_end() -> None:
    emoji = Piece(0, 3, 1, True, False)
    assert fits(Progress(), emoji, 10, 5)
    assert not fits(Progress(), emoji, 10, 4)
    assert not fits(Progress(), Piece(0, 0, 1, False, False), 10, 10), "the first token shows something"
    assert not may_end(Progress(open=1, visible=True))


BYTES = [bytes([byte]) for byte in range(256)] + [b" the", "☀".encode(), "é".encode(), b"\xf0\x9f", b"  "]
PIECES = [piece(data) for data in BYTES]


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 12), st.integers(2, 12), st.randoms(use_true_random=False))
def test_bounded_texts_end_by_themselves(max_chars: int, max_tokens: int, random: object) -> None:
    """Any path of allowed tokens gives a visible text within both bounds, and the end is reached in time."""
    ids: list[int] = []
    progress = Progress()
    while True:
        able = [i for i, p in enumerate(PIECES) if p and fits(progress, p, max_chars, max_tokens)]
        end = may_end(progress)
        assert able or end
        if not able or (end and random.random() < 0.1):  # type: ignore[attr-defined]
            break
        ids.append(random.choice(able))  # type: ignore[attr-defined]
        progress = walk(PIECES, ids[-1:], progress)
    assert len(ids) + 1 <= max_tokens
    assert progress == walk(PIECES, ids)
    text = b"".join(BYTES[i] for i in ids).decode(errors="replace")
    assert any(not char.isspace() for char in text)
    assert not any(ord(char) < 32 or ord(char) == 127 for char in text)
    assert progress.chars <= max_chars
    assert "Cc" in HIDDEN
