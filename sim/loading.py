"""Threads in which a model is loaded, which nothing stops: the end of the process does not wait for them."""

from __future__ import annotations

import threading
from collections.abc import Callable

_NAME = "agora-loading"


def load(work: Callable[[], None]) -> None:
    """Begin in a thread of its own."""
    threading.Thread(target=work, name=_NAME, daemon=True).start()


def loading() -> bool:
    """Whether anything is still being loaded."""
    return any(thread.name == _NAME for thread in threading.enumerate())
