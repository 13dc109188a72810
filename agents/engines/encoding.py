"""From a request to token ids: the chat, the choices, and how much room is left for the answer.

Shared by the engines that hold a model and its tokenizer; safe to use from several threads.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from agents.engines.choices import ChoiceMask
from sim.types import EngineFailure, Message, Text, Tokens

_PLACE = "[the text]"
"""Stands for a message's text in a template."""


class Refused(Exception):
    """This request cannot be answered; others can."""


class Encoder:
    """One model's tokenizer. `name` is the model's, for errors; `limit` the tokens of prompt and answer together."""

    def __init__(self, tokenizer: Any, name: str, limit: int) -> None:
        self.end: int = tokenizer.eos_token_id
        self._tokenizer, self._name, self._limit = tokenizer, name, limit
        marks = [str(mark) for mark in tokenizer.added_tokens_decoder.values() if mark.special]
        self._mark = re.compile("|".join(map(re.escape, sorted(marks, key=len, reverse=True))) or r"(?!)")
        # A tokenizer in use by one thread refuses another.
        self._lock = threading.Lock()
        self.mask = lru_cache(4096)(self._build_mask)
        self.chat = lru_cache(4096)(self._chat)
        self._frame = lru_cache(8)(self._build_frame)

    def prompt(self, messages: tuple[Message, ...]) -> Tokens:
        """The chat as token ids. Texts that spell a special token are broken up: nobody but the engine takes turns.

        Raises Refused where the prompt fills the context, EngineFailure where the template takes no such messages.
        """
        ids = self.chat(messages)
        if len(ids) >= self._limit:
            raise Refused(f"a prompt of {len(ids)} tokens leaves no room in a context of {self._limit}")
        return ids

    def turn(self, message: Message, most: int | None = None) -> Tokens:
        """A message alone, as a turn that nobody is asked to answer, its text cut to a turn of `most` tokens.

        Empty where no text fits. Raises EngineFailure where the template takes no such message alone.
        """
        before, after = self._frame(message.role)
        ids = self._canonical(message.text)
        room = len(ids) if most is None else most - len(before) - len(after)
        return (*before, *ids[:room], *after) if room > 0 else ()

    def cut(self, text: str, most: int) -> str:
        """The text's first `most` tokens."""
        ids = self._canonical(text)
        return self.decode(ids[: max(0, most)]) if len(ids) > most else text

    def choices(self, options: tuple[str, ...], room: int) -> ChoiceMask:
        """The options as token sequences of this model. Raises Refused where they're ambiguous or too long."""
        try:
            mask = self.mask(options)
        except ValueError as error:
            raise Refused(str(error)) from error
        if mask.longest > room:
            raise Refused(f"the longest option takes {mask.longest} tokens, the context has room for {room}")
        return mask

    def text_tokens(self, form: Text, wanted: int, room: int) -> int:
        """Most tokens of a text, end-of-turn included. Raises Refused where not even a short one fits."""
        if room < 2 or form.max_chars < 1:
            raise Refused(f"no room for a text of {form.max_chars} characters in {room} tokens")
        return max(min(wanted, room), 2)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of sampled ids, without special tokens."""
        with self._lock:
            text: str = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def _build_frame(self, role: str) -> tuple[Tokens, Tokens]:
        """What stands before and after the text of a message that is alone."""
        try:
            with self._lock:
                chat = [{"role": role, "content": _PLACE}]
                shown = self._tokenizer.apply_chat_template(chat, tokenize=False)
                before, place, after = shown.partition(_PLACE)
                parts = [tuple(self._tokenizer.encode(part, add_special_tokens=False)) for part in (before, after)]
        except Exception as error:
            raise EngineFailure(
                f"the chat template of {self._name} takes no message of {role} alone: {error}"
            ) from error
        if not place:
            raise EngineFailure(f"the chat template of {self._name} leaves out a message of {role} that is alone")
        return parts[0], parts[1]

    def _chat(self, messages: tuple[Message, ...]) -> Tokens:
        chat = [{"role": m.role, "content": self._mark.sub(_broken, m.text)} for m in messages]
        try:
            with self._lock:
                return tuple(
                    self._tokenizer.apply_chat_template(
                        chat, add_generation_prompt=True, tokenize=True, return_dict=False
                    )
                )
        except Exception as error:
            raise EngineFailure(f"the chat template of {self._name} refused the messages: {error}") from error

    def _build_mask(self, options: tuple[str, ...]) -> ChoiceMask:
        """The options as token sequences of this model. Raises ValueError."""
        return ChoiceMask(options, self._canonical, self.end)

    def _canonical(self, text: str) -> list[int]:
        with self._lock:
            ids: list[int] = self._tokenizer.encode(self._mark.sub(_broken, text), add_special_tokens=False)
        return ids


def _broken(mark: re.Match[str]) -> str:
    """A special token's text with a space in it, so that it is read as text."""
    return f"{mark[0][:1]} {mark[0][1:]}"
