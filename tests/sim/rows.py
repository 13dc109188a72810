"""Rows of a record for tests, and a process whose children write them until they are killed."""

import os
import resource
import sys
import time
from pathlib import Path

import orjson

from sim.blobs import encode_ids, encode_logprobs, encode_options, encode_tokens
from sim.record.schema import Manifest
from sim.record.store import RecordFailure, Store

PYTHON = [sys.executable, "-m", "tests.sim.rows"]


def manifest(**fields):
    return Manifest(**{"id": "r1", "name": "test", "scenario": "name: test", "seed": 7, **fields})


def event(seq, kind="start", data=None, *, tbl=0, tick=0, agent=""):
    return (tbl, seq, tick, 0, kind, agent, orjson.dumps(data).decode())


def fact(seq, number, kind="say", *, tbl=0, tick=0, actor="", audience="all", data=None, answers=()):
    to = orjson.dumps(audience).decode()
    return (tbl, seq, tick, 0, number, kind, actor, to, orjson.dumps(data or {}).decode(), encode_ids(answers))


def decision(
    seq, agent, *, tbl=0, tick=5, seen=0, how="chosen", status="applied", shows=(), recalls=(), calls=0, feels=None
):
    why = "sold" if status == "stale" else ""
    reason = "" if how == "chosen" else "no legal answer"
    blobs = (encode_ids(shows), encode_ids(recalls))
    return (
        *(tbl, seq, tick, 0, agent, seen, 0, '"yes"', how, reason, status, why, *blobs),
        *(None, None, calls, None, None, feels),
    )


SAMPLING = '{"temperature":0.8,"top_p":1.0,"max_tokens":9}'


def call(agent, number=0, *, messages="[]", form='{"choice":["yes","no"]}', purpose="act", finish="stop", **more):
    error = "refused" if finish == "error" else ""
    return (
        *(more.get("tbl", 0), agent, more.get("tick", 0), 0, number, purpose, "small", ""),
        more.get("digest", b"\x01" * 16),
        *(messages, form, more.get("sampling", SAMPLING), 5, more.get("text", "yes"), finish, error),
        *(None, encode_tokens(more.get("ids", (5, 49151))), encode_logprobs(more.get("logprobs", (-0.5, -0.1)))),
        *(more.get("distribution", "processed"), encode_options(more.get("options", ()))),
        *(more.get("prompt_tokens", 10), 4, 2, 0.25, "", more.get("source", "engine")),
    )


def member(place, agent, *, tbl=0, secrets="[]", joined=0):
    return (tbl, place, agent, "buyer", '{"value":3}', '{"name":"A"}', '{"age":40}', secrets, "small", "5s", joined, "")


def numbered(seq, tbl=0):
    """Table name and log row that are a function of the seq."""
    if seq % 3 == 0:
        return "facts", fact(seq, seq // 3, tbl=tbl, tick=seq // 7, data={"text": "x" * (seq % 50)})
    if seq % 3 == 1:
        return "decisions", decision(seq, f"a{seq % 11}", tbl=tbl, tick=seq // 7, shows=range(seq % 5))
    return "events", event(seq, "tick", f"{seq:x}", tbl=tbl, tick=seq // 7)


def write(path, count, limit_bytes=0):
    """Put numbered rows without ever waiting for them, then commit."""
    with Store.create(path, manifest()) as store:
        if limit_bytes:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
        for seq in range(count):
            store.put(*numbered(seq))
            if seq % 200 == 0:
                time.sleep(0.01)
        store.flush()


def serve():
    """For each line "count limit path" make a process that writes, tell its id, then what became of it."""
    for line in sys.stdin:
        count, limit, path = line.rstrip("\n").split(" ", 2)
        child = os.fork()
        if child == 0:
            try:
                write(Path(path), int(count), int(limit))
            except RecordFailure as problem:
                say(f"RecordFailure: {problem}")
            os._exit(0)
        say(child)
        os.waitpid(child, 0)
        say("gone")


def say(what):
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve()
