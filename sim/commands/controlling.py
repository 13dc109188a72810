"""`agora control`: commands to a run that is going on, in another terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from sim.commands.failures import BadInput
from sim.commands.terminal import cell, plain
from sim.quantities import readable
from sim.scenarios.located import nearest, shown
from sim.scenarios.yaml_text import read_yaml
from sim.steering.channel import Channel, connect

WORDS: dict[str, int | tuple[str, ...]] = {
    "status": 0,
    "pause": 0,
    "go": 0,
    "step": ("event", "tick"),
    "speed": 1,
    "stop": ("now",),
    "say": 1,
    "set": 1,
    "leave": 1,
    "answer": 2,
}
"""Commands, and how many words each takes, or which one it may take."""
USAGE = {
    "speed": "speed 60 (simulated seconds a second) or speed max",
    "step": "step, or step tick",
    "stop": "stop, or stop now",
    "say": "say TEXT, in quotes",
    "set": "set KEY=VALUE",
    "leave": "leave AGENT",
    "answer": "answer AGENT ANSWER",
}


def controlled(path: Path, do: str, words: Sequence[str], to: Sequence[str], table: int | None) -> Iterator[Any]:
    """Send a command; what it came to. Raises BadInput, and what the channel raises."""
    _check(do, words, to)
    with connect(path) as channel:
        match do:
            case "status":
                yield from standing(channel.status())
                return
            case "step":
                channel.step(words[0] if words else "event")
            case "stop":
                channel.stop(now=words == ["now"])
            case "speed":
                channel.speed(_speed(words[0]))
            case "answer":
                channel.answer(words[0], words[1])
            case "say" | "set" | "leave":
                yield from _intervened(channel, _spec(do, words[0], to), table)
                return
            case _:
                channel.send({"do": do})
        yield plain(f"{path.stem}: {_done(do)}")


def _check(do: str, words: Sequence[str], to: Sequence[str]) -> None:
    if do not in WORDS:
        raise BadInput(f"{shown(do)} is no command; {nearest(do, WORDS)}")
    takes = WORDS[do]
    if takes != len(words) if isinstance(takes, int) else words and tuple(words) not in {(one,) for one in takes}:
        raise BadInput(f"{do} does not go with {shown(' '.join(words))}; write {USAGE.get(do, do)}")
    if to and do != "say":
        raise BadInput(f"--to goes with say, not with {do}")


def _speed(word: str) -> float | None:
    try:
        return None if word == "max" else float(word)
    except ValueError:
        raise BadInput(f"{shown(word)} is no speed; write {USAGE['speed']}") from None


def _spec(do: str, word: str, to: Sequence[str]) -> dict[str, Any]:
    """An intervention as a scenario file has it."""
    if do == "say":
        audience = {"to": to[0] if len(to) == 1 else list(to)} if to else {}
        return {"do": "say", "text": word, **audience}
    if do == "leave":
        return {"do": "leave", "agent": word}
    key, equals, value = word.partition("=")
    if not equals:
        raise BadInput(f"set {shown(word)}: not a setting; write key=value, like price_high=150")
    return {"do": "set", "key": key.removeprefix("world."), "value": read_yaml(value, f"set {key}").data}


def _intervened(channel: Channel, spec: dict[str, Any], table: int | None) -> Iterator[Text]:
    tick_ms = channel.status()["tick_ms"]
    for effect in channel.intervene(spec, table):
        where = f" at table {effect['table']}" if effect["table"] else ""
        yield plain(f"takes effect at {readable(effect['tick'], tick_ms)} (tick {effect['tick']}){where}, recorded")


def _done(do: str) -> str:
    return {
        "pause": "paused",
        "go": "goes on",
        "stop": "stops",
        "step": "one step",
        "speed": "speed set",
        "answer": "answered",
    }[do]


def standing(status: dict[str, Any]) -> Iterator[Text]:
    """How a run stands, in a few lines."""
    waits = ", waiting for answers" if status["waiting"] else ""
    phase = "paused" if status["paused"] and status["phase"] == "running" else status["phase"]
    speed = f", {status['speed']:g} simulated seconds a second" if status["speed"] else ""
    yield cell(f"{status['run']}  {phase}{waits}{speed}", "bold")
    end = f" of {readable(status['until'], status['tick_ms'])}" if status["until"] is not None else ""
    tables = f"  tables {status['tables'] - status['going']}/{status['tables']} done" if status["tables"] > 1 else ""
    yield cell(f"simulated {status['time']}{end} (tick {status['tick']}){tables}")
    counts = "  ".join(f"{key} {count:,}" for key, count in status["counts"].items() if count)
    for question in status["questions"]:
        yield cell(f"{question['agent']} is asked since {question['time']}: {question['text']}")
    yield cell(f"{counts or 'no decision yet'}  calls {status['calls']:,} ({status['in_flight']} in flight)")
