"""Texts that try to be more than text, and a run that is made of them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from sim.library import PROJECT
from sim.record.project import Project
from sim.record.store import Store
from sim.types import Measurement
from tests.sim.rows import call, decision, event, fact, manifest

LONG = "lorem<b>" * 131_072
"""1 MB in one line."""
CORPUS = (
    "<script>hit()</script>",
    "<img src=x onerror=hit()>",
    "<svg/onload=hit()>",
    '"><iframe srcdoc="<script>parent.hit()</script>"></iframe>',
    "<style>*{display:none}</style>",
    "<div onmouseover=hit() style=position:fixed;inset:0>over</div>",
    "</div></div><h1>out</h1>",
    "![alt](https://outside.example/pixel.png)",
    "[click](javascript:hit())",
    "<a href='javascript:hit()'>click</a>",
    "<https://outside.example/auto>",
    ":red[red] :material/home: :smile: $x^2$",
    "# Heading\n\n| a | b |\n|---|---|",
    "\x1b[31mred\x1b[0m\x1b]8;;https://outside.example\x07link\x1b]8;;\x07",
    "abc\u202edcba\u202c\u2066\u200b\ufeff",
    "nul\x00 del\x7f",
    "{{7*7}} ${7*7} %s %(x)s {0}",
    '=HYPERLINK("https://outside.example")',
    LONG,
)
NAMES = [text for text in CORPUS if len(text) < 200 and "\x00" not in text]


def hostile_run(folder: Path) -> Path:
    """A forum whose members, posts, prompts, answers, numbers and tags are all of this kind."""
    path = folder / "hostile.db"
    params = {"communities": {CORPUS[2]: CORPUS[3]}}
    about = manifest(id="hostile", name=CORPUS[1], status="finished", cause=CORPUS[0], params=params)
    with Store.create(path, about) as store:
        for place, name in enumerate(NAMES):
            secret = {"subject": name, "attribute": name, "value": name, "holder": name, "norms": [{"to": name}]}
            persona = {"name": name, "style": LONG, name: [name]}
            told = [json.dumps(one) for one in ({name: name}, {"name": name}, persona, [secret])]
            store.put("cast", (0, place, name, name, *told, name, "5s", 0, name))
        seq = 0
        messages = json.dumps([["system", store.text(LONG)], *(["user", store.text(text)] for text in NAMES)])
        store.put("events", event(seq))
        for number, text in enumerate(CORPUS):
            actor = NAMES[number % len(NAMES)]
            form = json.dumps({"choice": NAMES})
            store.put("calls", call(actor, tick=number, text=text, messages=messages, form=form))
            row = list(decision(seq + 1, actor, tick=number, seen=number, shows=range(number), calls=1, how="retried"))
            row[7], row[9], row[15], row[19] = json.dumps({"text": text}), text, text, text
            store.put("decisions", tuple(row))
            kind = ("post", "comment", "message")[number % 3]
            data = {"text": text, "post": text, "to": text, text: text}
            audience = (actor, NAMES[0]) if kind == "message" else actor
            said = {"data": data, "audience": audience, "answers": range(number)[:1]}
            store.put("facts", fact(seq + 2, number, kind, actor=actor, tick=number, **said))
            store.put("events", event(seq + 3, "tick", f"{number:x}", tick=number))
            seq += 3
    project = Project(folder / PROJECT)
    for text in NAMES:
        about_it = {text: text, "agent": text}
        one = Measurement(metric=text, value=1.0, unit=text, flags=(text,), of=about_it, events=(0, 1))
        other = Measurement(metric=text, value=2.0, unit=text, excluded={text: 1}, of={"agent": "b"})
        project.measure("hostile", [one, other, Measurement(metric=text, value=2.0, unit=text)])
        project.tag("hostile", text)
    project.close()
    return path


def hostile_copy(run: Path, folder: Path) -> Path:
    """A run of a world that there is, whose actors, personas, secrets, texts, reasons and numbers are of this kind."""
    path = folder / "taken.db"
    shutil.copyfile(run, path)
    with closing(sqlite3.connect(path)) as db, db:
        agents = [agent for (agent,) in db.execute("SELECT agent FROM cast ORDER BY place")]
        for name, agent in zip(NAMES, agents, strict=False):
            persona = json.dumps({"name": name, "style": LONG, "goals": [name]})
            secret = {
                "subject": name,
                "attribute": name,
                "value": "never told",
                "holder": name,
                "norms": [{"to": name}],
            }
            told = (name, persona, json.dumps([secret]), agent)
            db.execute("UPDATE cast SET role = ?, persona = ?, secrets = ? WHERE agent = ?", told)
            for table, column in (("decisions", "agent"), ("facts", "actor")):
                db.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (name, agent))
        facts = [seq for (seq,) in db.execute("SELECT seq FROM facts WHERE kind IN ('post', 'comment') ORDER BY seq")]
        decisions = [seq for (seq,) in db.execute("SELECT seq FROM decisions ORDER BY seq")]
        for number, text in enumerate(CORPUS):
            data = json.dumps({"text": text, "post": text, text: text})
            db.execute("UPDATE facts SET data = ?, kind = ? WHERE seq = ?", (data, text[:50], facts[number]))
            how = ("retried", "defaulted", "faulted")[number % 3]
            changed = (how, text, json.dumps(text), text, decisions[number])
            db.execute("UPDATE decisions SET how = ?, reason = ?, answer = ?, feels = ? WHERE seq = ?", changed)
        db.execute(
            "UPDATE run SET id = ?, name = ?, cause = ?, created = ?", ("taken", CORPUS[0], CORPUS[1], CORPUS[2])
        )
    project = Project(folder / PROJECT)
    for text in NAMES:
        excluded, null = {text: 1}, {text: text}
        one = Measurement(
            metric=text, value=1.0, unit=text, flags=(text,), excluded=excluded, null=null, of={text: text}
        )
        other = Measurement(
            metric=text, value=2.0, unit=text, denominator=text, ci=(1.0, 3.0), ci_method=text, events=(20,)
        )
        project.measure("taken", [one, other])
    project.close()
    return path


def hostile_interview(folder: Path, run: Path) -> None:
    """An interview with one of its members, whose questions and answers are all of this kind."""
    name = f"hostile-{NAMES[1]}-at5"
    about = manifest(id=name, status="finished", parent=str(run.resolve()), params={"questions": list(CORPUS)})
    with Store.create(folder / f"{name}.db", about) as store:
        store.put("cast", (0, 0, NAMES[1], "", "{}", "{}", "{}", "[]", "", "0", 0, ""))
        store.put("events", event(0))
        for number, text in enumerate(CORPUS):
            row = list(decision(number + 1, NAMES[1], tick=number, seen=number, calls=1, how="retried"))
            row[7], row[9] = json.dumps(text), text
            store.put("decisions", tuple(row))
