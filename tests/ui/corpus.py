"""Texts that try to be more than text, and a run that is made of them."""

from __future__ import annotations

import json
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
            row[7], row[9], row[15] = json.dumps({"text": text}), text, text
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
