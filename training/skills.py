"""Skills in words, which a policy finds in its own episodes: what made the best of an update go better than the worst.

It is asked between updates, outside of any run, so no run depends on it; question and answer stand in a file beside the
runs. Left out: a library of skills that grows; each update's own take the place of those before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import orjson
from msgspec.structs import replace

from agents.engines.encoding import Encoder
from sim.calls import Voice
from sim.streams import Streams
from sim.types import Message, Request, Text
from training.hindsight import telling
from training.keys import learnable
from training.paths import Trajectory, totals, trajectories
from training.retold import Past
from training.trajectory import Row

ASKED = """\
You look back on two episodes of your own, to do better in the next ones. Say in a few short sentences what to do and
what not to do. Name no episode: whoever reads it has seen neither."""
CHARS = 2000
"""Longest skills, in characters."""


class Finder:
    """Asks the policies that learn. `folder`: where what they said is kept; `context`: of their engine, in tokens."""

    def __init__(self, voice: Voice, encoder: Encoder, folder: Path, luck: Streams, *, context: int, most: int) -> None:
        self._voice, self._encoder, self._folder, self._luck = voice, encoder, folder, luck
        self._most = min(most, context // 4)
        self._room = (context - self._most - len(encoder.prompt(_asked("", "")))) // 2

    def texts(self, rows: Sequence[Row], past: Past, update: int) -> dict[int, str]:
        """By row, the skills of its policy; none where all its episodes earned the same. Raises ValueError."""
        own: defaultdict[str, list[Trajectory]] = defaultdict(list)
        for path in trajectories(rows):
            if any(learnable(rows[index]) for decision in path for index in decision):
                own[rows[path[0][-1]].asked].append(path)
        found: dict[int, str] = {}
        lines = []
        for label, paths in own.items():
            earned = totals(paths, [row.reward for row in rows])
            if min(earned) == max(earned):
                continue
            ends = (paths[earned.index(end)] for end in (max(earned), min(earned)))
            messages = _asked(*(self._encoder.cut(telling(rows, path, past), self._room) for path in ends))
            said = self._said(messages, label, update)
            lines.append({"policy": label, "messages": [[one.role, one.text] for one in messages], "skills": said})
            found |= dict.fromkeys([index for path in paths for decision in path for index in decision], said)
        self._folder.mkdir(parents=True, exist_ok=True)
        place = self._folder / f"update-{update + 1:06d}.jsonl"
        new = place.with_suffix(".new")
        new.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
        new.replace(place)
        return found

    def _said(self, messages: tuple[Message, ...], label: str, update: int) -> str:
        request = Request(
            messages=messages,
            format=Text(max_chars=CHARS),
            purpose="skills",
            sampling=replace(self._voice.sampling, max_tokens=self._most),
            seed=self._luck.seed("skills", label, update),
            policy=label,
        )
        completion = self._voice.engine.submit(request).result()
        if completion.text is None:
            raise ValueError(f"{label} was asked for skills and gave none: {completion.error}")
        return completion.text.strip()


def _asked(best: str, worst: str) -> tuple[Message, ...]:
    """What a policy is asked about its best and its worst episode."""
    text = f"This went well:\n\n{best}\n\nThis went badly:\n\n{worst}\n\nWhat is to be learnt from it?"
    return Message(role="system", text=ASKED), Message(role="user", text=text)
