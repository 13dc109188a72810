"""A chat-completions server on loopback that does what a script says: slow, cut off, over quota, or picky."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agents.engines.legal import legal_value
from sim.streams import Streams


@dataclass(kw_only=True)
class Call:
    """One request as it arrived."""

    number: int
    """Counted from 0, probes apart."""
    body: dict[str, Any]
    headers: dict[str, str]
    at: float
    """Monotonic seconds."""
    under_way: int = 0
    """Requests in the server when it arrived, itself included."""

    @property
    def text(self) -> str:
        return str(self.body["messages"][-1]["content"])

    @property
    def probing(self) -> bool:
        return "Say hello" in self.text


@dataclass(kw_only=True)
class Answer:
    """What is sent back."""

    status: int = 200
    body: Any = None
    """Encoded as JSON unless bytes."""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: int | None = None
    """Break the connection after so many bytes of the body."""


def said(text: str | None, **message: Any) -> Answer:
    """A well-formed completion with this content."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}
    usage = {"prompt_tokens": 11, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}}
    return Answer(body={"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage})


def error(status: int, message: str = "no", code: str | None = None, **headers: str) -> Answer:
    """An error in the usual envelope; header names take _ for -."""
    body = {"error": {"message": message, "type": "invalid_request_error", "code": code}}
    return Answer(status=status, body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})


@dataclass(kw_only=True)
class Flavour:
    """What an endpoint accepts; the default takes everything."""

    formats: tuple[str, ...] = ("json_schema", "json_object")
    """Response formats it obeys."""
    ignores_formats: bool = False
    """Whether it takes the others without a word, instead of refusing them."""
    rejects: tuple[str, ...] = ()
    """Fields that are an error."""
    silent: tuple[str, ...] = ()
    """Fields that it takes and does nothing about."""
    thinks: str = "no"

    def answer(self, call: Call, text: str = "hello") -> Answer:
        """What this kind of endpoint says."""
        for name in self.rejects:
            if name in call.body:
                return error(400, f"Unsupported parameter: '{name}' is not supported with this model.")
        wanted = call.body.get("response_format", {"type": "text"})
        kind = wanted["type"]
        if kind in self.formats:
            node = wanted["json_schema"]["schema"] if kind == "json_schema" else None
            text = json.dumps(legal_value(node, Streams(call.number)) if node else {"hello": "you"})
        elif kind != "text" and not self.ignores_formats:
            return error(400, f"response_format type {kind} is not available")
        if self.thinks == "inline":
            return said(f"<think>hm</think>{text}")
        reply = said(text, **({"reasoning_content": "hm"} if self.thinks == "apart" else {}))
        if call.body.get("logprobs") and "logprobs" not in self.silent:
            tokens = [{"token": part, "logprob": -0.5} for part in text.split()]
            reply.body["choices"][0]["logprobs"] = {"content": tokens}
        return reply


Script = Callable[[Call], Answer | None]


def by_flavour(call: Call) -> None:
    """The script that leaves every answer to the flavour."""


class FakeServer:
    """Serves until closed; `script` answers a call, or None for what its flavour says. Probes are not scripted."""

    def __init__(self, script: Script = by_flavour, flavour: Flavour | None = None, port: int = 0) -> None:
        self.script = script
        self.flavour = flavour or Flavour()
        self.probe_script: Script = by_flavour
        self.calls: list[Call] = []
        self.probes: list[Call] = []
        self.under_way = 0
        self.connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._server = _Quiet(("127.0.0.1", port), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        """Stop listening and break every connection, as a killed process does."""
        self._server.shutdown()
        self._server.server_close()
        for connection in list(self.connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()

    def enter(self, body: dict[str, Any], headers: dict[str, str]) -> Call:
        with self._lock:
            self.under_way += 1
            call = Call(number=0, body=body, headers=headers, at=time.monotonic(), under_way=self.under_way)
            seen = self.probes if call.probing else self.calls
            call.number = len(seen)
            seen.append(call)
        return call

    def leave(self) -> None:
        with self._lock:
            self.under_way -= 1

    def reply(self, call: Call) -> Answer:
        script = self.probe_script if call.probing else self.script
        return script(call) or self.flavour.answer(call)

    def _handler(fake) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                super().setup()
                fake.connections.add(self.connection)

            def finish(self) -> None:
                fake.connections.discard(self.connection)
                super().finish()

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                call = fake.enter(body, dict(self.headers))
                try:
                    answer = fake.reply(call)
                    time.sleep(answer.delay)
                finally:
                    fake.leave()
                self._send(answer)

            def _send(self, answer: Answer) -> None:
                raw = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in {"content-type": "application/json", **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw[: answer.cut])
                self.close_connection = answer.cut is not None

            def log_message(self, format: str, *args: object) -> None:
                """Stay silent."""

        return Handler


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 512

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is part of the game."""


@contextmanager
def serving(script: Script = by_flavour, flavour: Flavour | None = None, port: int = 0) -> Iterator[FakeServer]:
    """A server for the length of a with block."""
    server = FakeServer(script, flavour, port)
    try:
        yield server
    finally:
        server.close()
