"""The numbers of a training as TensorBoard shows them, for those who have it installed."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

from training.loop import Done
from training.plan import TrainingError


class Board:
    """Writes every update's numbers as scalars; a repeated update takes the place of the one before. A context.

    Raises TrainingError where TensorBoard is not installed.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as missing:
            raise TrainingError("--tensorboard needs TensorBoard: pip install tensorboard") from missing
        self._make: Any = SummaryWriter
        self._folder = folder
        self._writer: Any = None

    def add(self, done: Done) -> None:
        """The numbers of an update."""
        if self._writer is None:
            self._writer = self._make(str(self._folder), purge_step=done.update)
        for name, value in done.numbers.items():
            self._writer.add_scalar(f"train/{name}", value, done.update)
        self._writer.add_scalar("train/seconds", done.seconds, done.update)
        self._writer.flush()

    def __enter__(self) -> Board:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._writer is not None:
            self._writer.close()
