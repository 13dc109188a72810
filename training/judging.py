"""A judge pays: any model, under a rubric, gives one of a few verdicts on what a learner answered.

It is asked between two updates, outside of any run, so no run depends on it. Equal questions are asked once. Every
question and verdict stands in a file beside the runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

import orjson

from sim.answers import parse
from sim.calls import Voice
from sim.streams import Streams
from sim.types import JSON, Choice, Completion, Message, Request
from training.extras import PerRow
from training.hindsight import telling
from training.keys import learnable
from training.paths import Trajectory, trajectories
from training.retold import Past
from training.reward import Judge
from training.trajectory import Row

ATTEMPTS = 3
"""How often a question is asked before it counts as not to be judged."""


class Bench:
    """One judge. `folder`: where its verdicts are kept."""

    def __init__(self, judge: Judge, voice: Voice, folder: Path, luck: Streams) -> None:
        self._judge, self._voice, self._folder, self._luck = judge, voice, folder, luck

    def scores(self, rows: Sequence[Row], past: Past, update: int) -> PerRow:
        """Each row's score, 0 where there is nothing to judge. Raises ValueError where no verdict comes.

        Of a decision that stands in several rows all get the same. About an episode, it stands at the last decision.
        """
        questions: dict[tuple[Message, ...], list[Trajectory]] = {}
        for path in trajectories(rows):
            if any(learnable(rows[index]) for decision in path for index in decision):
                said = [decision for decision in path if learnable(rows[decision[-1]])]
                parts = [path] if self._judge.about == "episode" else [(decision,) for decision in said]
                for part in parts:
                    questions.setdefault(self._asked(rows, part, past), []).append(part)
        found, kept = [0.0] * len(rows), []
        for (messages, parts), verdict in zip(questions.items(), self._verdicts(list(questions)), strict=True):
            for part in parts:
                for index in part[-1]:
                    found[index] = self._judge.scores[verdict]
                kept.append(self._line(rows[part[-1][-1]], messages, verdict))
        self._keep(kept, update)
        return tuple(found)

    def _asked(self, rows: Sequence[Row], part: Trajectory, past: Past) -> tuple[Message, ...]:
        """The rubric, and what an agent was told and answered."""
        asked = f"{telling(rows, part, past)}\n\nYour verdict, one of: {', '.join(self._judge.scores)}"
        return Message(role="system", text=self._judge.rubric), Message(role="user", text=asked)

    def _verdicts(self, questions: Sequence[tuple[Message, ...]]) -> list[str]:
        found: dict[int, str] = {}
        for attempt in range(ATTEMPTS):
            asked = {n: self._ask(one, attempt) for n, one in enumerate(questions) if n not in found}
            for number, future in asked.items():
                said = future.result()
                answer, _ = (None, "") if said.error else parse(Choice(options=tuple(self._judge.scores)), said.text)
                if answer is not None:
                    found[number] = answer
        if missing := [n for n in range(len(questions)) if n not in found]:
            about = questions[missing[0]][-1].text.splitlines()[-3]
            raise ValueError(f"models.{self._judge.model} gave no verdict in {ATTEMPTS} attempts, asked of {about!r}")
        return [found[number] for number in range(len(questions))]

    def _ask(self, messages: tuple[Message, ...], attempt: int) -> Future[Completion]:
        return self._voice.engine.submit(
            Request(
                messages=messages,
                format=Choice(options=tuple(self._judge.scores)),
                purpose="judge",
                model=self._judge.model,
                sampling=self._voice.sampling,
                seed=self._luck.seed("judge", messages[-1].text, attempt),
                policy=self._voice.policy,
            )
        )

    def _line(self, row: Row, messages: tuple[Message, ...], said: str) -> Mapping[str, JSON]:
        return {
            "episode": row.episode,
            "seat": row.seat,
            "turn": row.turn,
            "judge": self._judge.model,
            "weights": self._voice.policy or self._voice.model,
            "messages": [[message.role, message.text] for message in messages],
            "verdict": said,
            "score": self._judge.scores[said],
        }

    def _keep(self, lines: Sequence[Mapping[str, JSON]], update: int) -> None:
        """All verdicts of an update in one file, whole or not at all; a repeated update replaces them."""
        self._folder.mkdir(parents=True, exist_ok=True)
        place = self._folder / f"update-{update + 1:06d}.jsonl"
        new = place.with_suffix(".new")
        new.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
        new.replace(place)
