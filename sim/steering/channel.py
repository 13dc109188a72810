"""The channel through which other processes control a run that is going on: one line of JSON a command and a reply.

The process that holds a run listens on the loopback address, at a port of the system's choice. Port and a key stand in
a file beside the run that only its owner can read; a line without the key ends the connection. A line is
`{"key": …, "command": {"do": …}}`, its reply `{"ok": …}` or `{"error": why}`. Why not a Unix socket:
paths of runs are often longer than the names of sockets may be. Nothing is encrypted, for nothing leaves the machine.
"""

from __future__ import annotations

import hmac
import os
import socket
import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from sim.record.committed import held
from sim.runs import Session
from sim.steering.control import Control
from sim.steering.live import Refused
from sim.types import JSON

HOST = "127.0.0.1"
LONGEST = 1_000_000
"""Bytes of a line."""
PATIENCE = 60.0
"""Seconds that a client waits for a reply."""


class NotRunning(ValueError):
    """No process holds the run, or the one that does has no channel."""


def address_file(path: Path) -> Path:
    """The file with a running run's port and key, beside the run."""
    return path.with_name(path.name + ".control")


# --- the run's side -------------------------------------------------------------------------------


@contextmanager
def served(session: Session) -> Iterator[Control]:
    """Offer the control of a session to other processes while it lasts; for `sim.runs.go(beside=…)`."""
    control = Control(session)
    key = os.urandom(16).hex()
    with _Server((HOST, 0), _handler(control, key)) as server:
        port, file = server.server_address[1], address_file(session.path)
        listening = threading.Thread(target=_listen, args=(server, control), name="run control", daemon=True)
        listening.start()
        try:
            _write(file, {"port": port, "key": key})
            yield control
        finally:
            control.close()
            file.unlink(missing_ok=True)
            with suppress(OSError):
                socket.create_connection((HOST, port)).close()  # the last one to be let in ends the wait
                listening.join()


def _listen(server: socketserver.BaseServer, control: Control) -> None:
    """Let clients in; the thread sleeps in between, for the run's own is not to be disturbed by looks at a clock."""
    while not control.over:
        server.handle_request()


def _write(file: Path, address: JSON) -> None:
    """Write the file so that nobody else can ever read it, whole or not at all."""
    new = file.with_name(file.name + ".new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
        opened.write(orjson.dumps(address))
    new.replace(file)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


def _handler(control: Control, key: str) -> type[socketserver.StreamRequestHandler]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):  # the other side is gone
                while (line := self.rfile.readline(LONGEST)) and (reply := _reply(control, key, line)):
                    self.wfile.write(reply + b"\n")

    return Handler


def _reply(control: Control, key: str, line: bytes) -> bytes:
    """What a line of a client comes to; empty for one without the key."""
    try:
        said = orjson.loads(line)
    except orjson.JSONDecodeError:
        return b""
    if (
        control.over
        or not isinstance(said, dict)
        or not hmac.compare_digest(str(said.get("key")).encode(), key.encode())
    ):
        return b""
    try:
        return orjson.dumps({"ok": control.obey(said.get("command"))})
    except Refused as refused:
        return orjson.dumps({"error": str(refused)})
    except Exception as defect:  # the client is told, the run goes on
        return orjson.dumps({"error": f"the command broke: {type(defect).__name__}: {defect}"})


# --- the other side -------------------------------------------------------------------------------


def connect(path: Path) -> Channel:
    """The channel of the process that runs the run at `path`. Raises NotRunning."""
    file = address_file(path)
    if not held(path):
        raise NotRunning(f"{path.stem} is not running; go on with it: agora resume {path.stem}")
    try:
        address = orjson.loads(file.read_bytes())
        return Channel(path.stem, socket.create_connection((HOST, address["port"]), PATIENCE), address["key"])
    except (OSError, ValueError, LookupError) as problem:
        raise NotRunning(f"{path.stem} is running, but cannot be reached: {problem}") from problem


class Channel:
    """Commands to a run in another process. Each raises Refused with the reason, or NotRunning where the run ends."""

    def __init__(self, run: str, connection: socket.socket, key: str) -> None:
        self._run = run
        self._connection = connection
        self._key = key
        self._replies = connection.makefile("rb")

    def status(self) -> dict[str, Any]:
        """How the run stands.

        run, phase (starting, running, stopping, closing), paused, waiting (for a model or a person), speed (simulated
        seconds a second; None: no limit), tick and time of the table that is furthest behind, until (the last tick, or
        None), tick_ms, events that have happened, tables and how many of them are going, counts (decisions, retried,
        defaulted, faulted, stale), calls, those in_flight, tokens spent, and the questions to people.

        A question has its id, table, agent, tick and time; `about`, what never changes for the seat, and `text`, what
        it sees now; how to answer in words, and the answer's `format` as a JSON schema.
        """
        found: dict[str, Any] = self.send({"do": "status"})
        return found

    def pause(self) -> None:
        """Let nothing more happen; models go on answering what they were asked."""
        self.send({"do": "pause"})

    def go(self) -> None:
        """Go on after a pause."""
        self.send({"do": "go"})

    def step(self, by: str = "event") -> None:
        """Let one event happen, or all of the next tick that has any (`tick`), and then nothing more."""
        self.send({"do": "step", "by": by})

    def speed(self, speed: float | None) -> None:
        """So many simulated seconds a second; None: as fast as it goes."""
        self.send({"do": "speed", "speed": speed})

    def stop(self, now: bool = False) -> None:
        """End the run's session after the event that is happening; it can be resumed.

        Calls in flight are waited for, people are not; with `now`, neither.
        """
        self.send({"do": "stop", "now": now})

    def intervene(self, spec: Mapping[str, JSON], table: int | None = None) -> list[dict[str, Any]]:
        """An intervention as in a scenario file, without `at`: {"do": "say", "text": …, "to": …}, {"do": "set", "key":
        …, "value": …} or {"do": "leave", "agent": …}. What it came to: of each table, the tick and the change."""
        found: list[dict[str, Any]] = self.send({**spec, **({} if table is None else {"table": table})})
        return found

    def answer(self, question: str, answer: JSON) -> None:
        """Answer a question to a person, by its id or its agent's: a text, or an object where a form is asked for.

        It is committed when this returns; Refused says why it is no legal answer.
        """
        self.send({"do": "answer", "question": question, "answer": answer})

    def send(self, command: Mapping[str, JSON]) -> Any:
        """A command with its kind in `do`; what it came to."""
        try:
            self._connection.sendall(orjson.dumps({"key": self._key, "command": command}) + b"\n")
            reply = orjson.loads(self._replies.readline() or b"null")
        except (OSError, ValueError) as problem:
            raise NotRunning(f"{self._run} does not answer: {problem}") from problem
        if reply is None:
            raise NotRunning(f"{self._run} has ended")
        if "error" in reply:
            raise Refused(reply["error"])
        return reply["ok"]

    def close(self) -> None:
        """Hang up."""
        self._replies.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
