"""The one choice mask, and the bound on free text."""

from __future__ import annotations

import math
from math import log

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


SELL, WA = tuple(spell("sell")), tuple(spell("wa"))
WORDS = ChoiceMask(("sell", "sell all", "wait", "walk"), spell, END)
"""Forks: se or w; after sell its end or all; after wa i or l."""


def chances(*options: float | None) -> list[float | None]:
    return [None if one is None else pytest.approx(log(one)) for one in options]


def test_the_forks_of_options_by_hand() -> None:
    start, sold, wa = ((), SELL[0]), (SELL, END), (WA, ord("i"))
    assert WORDS.forks == (
        (start, sold),
        (start, (SELL, ord(" "))),
        (((), ord("w")), wa),
        (((), ord("w")), (WA, ord("l"))),
    )
    assert WORDS.widest == 2
    assert (ChoiceMask(("sell",), spell, END).forks, ChoiceMask(("sell",), spell, END).widest) == (((),), 1)


def test_options_whose_forks_are_all_known_have_the_products() -> None:
    first = {SELL[0]: log(0.6), ord("w"): log(0.4)}
    after = {END: log(0.25), ord(" "): log(0.75)}
    wa = {ord("i"): log(0.9), ord("l"): log(0.1)}
    assert list(WORDS.option_logprobs({(): first, SELL: after, WA: wa})) == chances(0.15, 0.45, 0.36, 0.04)


def test_what_was_sampled_tells_of_every_option_that_left_its_path_alone() -> None:
    """The path of `sell` says of `sell all` as well; of `wait` and `walk`, that they have 0.4 together."""
    first = {SELL[0]: log(0.6), ord("w"): log(0.4)}
    after = {END: log(0.25), ord(" "): log(0.75)}
    certain = {SELL[:1]: {SELL[1]: 0.0}}
    assert list(WORDS.option_logprobs({(): first, SELL: after} | certain)) == chances(0.15, 0.45, None, None)
    wa = {ord("i"): log(0.9), ord("l"): log(0.1)}
    assert list(WORDS.option_logprobs({(): first, WA: wa})) == chances(None, None, 0.36, 0.04)
    alone = ChoiceMask(("sell", "wait", "walk"), spell, END)
    assert list(alone.option_logprobs({(): first, WA: wa})) == chances(0.6, 0.36, 0.04)
    assert alone.option_logprobs({}) == (None,) * 3
    assert ChoiceMask(("sell",), spell, END).option_logprobs({}) == (0.0,)


def test_of_a_fork_too_wide_to_be_told_whole_the_options_left_out_are_not_known() -> None:
    letters = "abcdefghijklmnopqrstuvwxy"
    mask = ChoiceMask(tuple(letters), spell, END)
    assert mask.widest == 25
    told = {ord(letter): log(1 / 25) for letter in letters[:20]} | {ord("y"): log(1 / 25)}
    assert list(mask.option_logprobs({(): told})) == chances(*[0.04] * 20, None, None, None, None, 0.04)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.text("abselyu ", max_size=6), min_size=1, max_size=8, unique=True),
    st.randoms(use_true_random=False),
)
def test_options_that_are_known_sum_to_one_with_what_branches_have_together(options: list[str], random: object) -> None:
    """From the whole trie everything is known; from one path, the same of some, and nothing else."""
    mask = ChoiceMask(options, spell, END)
    whole: dict[tuple[int, ...], dict[int, float]] = {}
    for sequence in mask.sequences:
        for n, allowed in enumerate(mask.along(sequence)):
            if sequence[:n] not in whole:
                weights = [1 + random.random() for _ in allowed]  # type: ignore[attr-defined]
                whole[sequence[:n]] = {t: log(w / sum(weights)) for t, w in zip(allowed, weights, strict=True)}
    every = mask.option_logprobs(whole)
    assert math.fsum(math.exp(one) for one in every if one is not None) == pytest.approx(1.0)
    for said, path in enumerate(mask.sequences):
        some = mask.option_logprobs({path[:n]: whole[path[:n]] for n in range(len(path))})
        assert some[said] == every[said]
        for place, sequence in enumerate(mask.sequences):
            left = next((n for n, (a, b) in enumerate(zip(sequence, path, strict=False)) if a != b), len(path))
            alone = [other[: left + 1] for other in mask.sequences].count(sequence[: left + 1]) == 1
            assert some[place] == (every[place] if alone or place == said else None)


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
