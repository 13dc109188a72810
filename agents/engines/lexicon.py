"""The bytes of every token of a vocabulary, and from them which tokens may come next in a bounded text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

from agents.engines.bounds import START, Progress, fits, may_end, piece, walk
from sim.types import Tokens


def token_bytes(tokenizer: Any, size: int) -> list[bytes]:
    """What each of `size` tokens stands for; nothing for special tokens and for places past the vocabulary.

    Raises ValueError for a tokenizer that is neither byte-level (GPT-2's alphabet) nor falls back to bytes (Llama's).
    """
    added = tokenizer.added_tokens_decoder
    spelled = tokenizer.convert_ids_to_tokens(range(min(size, len(tokenizer))))
    decoder = str(tokenizer.backend_tokenizer.decoder)
    if "ByteLevel" in decoder:
        alphabet = _byte_alphabet()
    elif "ByteFallback" in decoder:
        alphabet = {"▁": b" "} | {f"<0x{byte:02X}>": bytes([byte]) for byte in range(256)}
    else:
        raise ValueError(f"a tokenizer whose tokens can't be read as bytes: {decoder[:80]}")
    hidden = set(tokenizer.all_special_ids) | {i for i, mark in added.items() if mark.special}
    found = []
    for i, token in enumerate(spelled):
        if i in hidden or token is None:
            found.append(b"")
        elif i in added:
            found.append(token.encode())
        elif token in alphabet:
            found.append(alphabet[token])
        else:
            found.append(b"".join(alphabet.get(char) or char.encode() for char in token))
    return found + [b""] * (size - len(found))


def _byte_alphabet() -> dict[str, bytes]:
    """GPT-2's printable character for every byte: itself where it has a shape, else one of those from U+0100 on."""
    shown = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    spare = iter(range(0x100, 0x200))
    return {chr(byte if byte in shown else next(spare)): bytes([byte]) for byte in range(256)}


class Lexicon:
    """The tokens of a vocabulary, grouped by what they do to a text. `size` is the number of the model's logits."""

    def __init__(self, tokenizer: Any, size: int, device: torch.device | str) -> None:
        self.pieces = [piece(data) for data in token_bytes(tokenizer, size)]
        self._kinds = sorted({known for known in self.pieces if known is not None})
        number = {kind: i for i, kind in enumerate(self._kinds)}
        self._kind = torch.tensor([number[p] if p else len(number) for p in self.pieces], device=device)
        self._widest = max(kind.chars for kind in self._kinds)
        self.banned = lru_cache(1024)(self._banned)
        self._listed = lru_cache(1024)(self._list)

    def mask(self, progress: Progress, chars: int, tokens: int, end: int) -> torch.Tensor:
        """True (shape: size) where a token may not come next; texts equally far from their bounds share one tensor."""
        return self.banned(*self._left(progress, chars, tokens), end)

    def along(self, ids: Sequence[int], chars: int, tokens: int, end: int) -> tuple[Tokens, ...]:
        """The tokens that could not come at each place of a text, whose bounds these are."""
        progress, found = START, []
        for token in ids:
            found.append(self._listed(*self._left(progress, chars, tokens), end))
            progress = walk(self.pieces, [token], progress)
        return tuple(found)

    def _left(self, progress: Progress, chars: int, tokens: int) -> tuple[Progress, int, int]:
        """What the mask depends on: the state of the text, and how far off its bounds are."""
        start = Progress(progress.open, 0, 0, progress.visible)
        return start, min(chars - progress.chars, self._widest), min(tokens - progress.tokens, 8)

    def _list(self, progress: Progress, chars: int, tokens: int, end: int) -> Tokens:
        return tuple(self.banned(progress, chars, tokens, end).nonzero()[:, 0].tolist())

    def _banned(self, progress: Progress, chars: int, tokens: int, end: int) -> torch.Tensor:
        allowed = [fits(progress, kind, chars, tokens) for kind in self._kinds]
        banned = ~torch.tensor([*allowed, False], device=self._kind.device)[self._kind]
        banned[end] = not may_end(progress)
        return banned
