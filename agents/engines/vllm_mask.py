"""The masks of `choices` and `bounds` inside vLLM's workers, as one request-level logits processor.

A request carries `extra_args = {KEY: {...}}` with `choices` (token sequences) or `text` (characters, tokens,
end-of-turn), and for scoring `prefix`: answer tokens that already stand in its prompt.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from vllm.tokenizers import cached_tokenizer_from_config
from vllm.v1.sample.logits_processor import AdapterLogitsProcessor

from agents.engines.bounds import walk
from agents.engines.choices import Trie
from agents.engines.lexicon import Lexicon
from agents.engines.vllm_environment import PARENT
from agents.engines.vllm_process import KEY

_Mask = Callable[[list[int], torch.Tensor], torch.Tensor]


class AnswerMask(AdapterLogitsProcessor):  # type: ignore[misc]
    """Leaves only the tokens that may come next in a request's answer."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        super().__init__(vllm_config, device, is_pin_memory)
        _end_with(os.environ.get(PARENT, ""))
        tokenizer = cached_tokenizer_from_config(vllm_config.model_config)
        self._lexicon = Lexicon(tokenizer, vllm_config.model_config.get_vocab_size(), device)

    def is_argmax_invariant(self) -> bool:
        """It can forbid the most likely token."""
        return False

    def new_req_logits_processor(self, params: Any) -> _Mask | None:
        """The mask of one request, or None where it has none."""
        wanted = (params.extra_args or {}).get(KEY)
        if not wanted:
            return None
        prefix = wanted.get("prefix", [])
        if "choices" in wanted:
            return _choice(Trie(wanted["choices"]), prefix)
        chars, tokens, end = wanted["text"]
        return _text(self._lexicon, chars, tokens, end, prefix)


def _end_with(program: str) -> None:
    """End this worker and the engine process above it when the program is gone without closing them (killed)."""
    if not program or not hasattr(os, "pidfd_open"):
        return
    engine, known = os.getppid(), select.poll()
    known.register(os.pidfd_open(int(program)), select.POLLIN)

    def wait() -> None:
        known.poll()
        if engine not in (1, int(program)):
            os.kill(engine, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="agora-program", daemon=True).start()


def _choice(trie: Trie, prefix: Sequence[int]) -> _Mask:
    def mask(sampled: list[int], logits: torch.Tensor) -> torch.Tensor:
        allowed = trie.allowed([*prefix, *sampled])
        if not allowed:
            return logits
        kept = torch.tensor(allowed, device=logits.device)
        masked = torch.full_like(logits, float("-inf"))
        masked[kept] = logits[kept]
        return masked

    return mask


def _text(lexicon: Lexicon, chars: int, tokens: int, end: int, prefix: Sequence[int]) -> _Mask:
    progress, seen = walk(lexicon.pieces, prefix), 0

    def mask(sampled: list[int], logits: torch.Tensor) -> torch.Tensor:
        nonlocal progress, seen
        progress, seen = walk(lexicon.pieces, sampled[seen:], progress), len(sampled)
        return logits.masked_fill(lexicon.mask(progress, chars, tokens, end), float("-inf"))

    return mask
