"""A report as a page: the same numbers, nothing but text of others, and one line where Plotly is missing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from msgspec.structs import replace

from sim.report.compose import composed
from sim.report.model import Line, Plot, Report, lines
from tests.ui.corpus import CORPUS, hostile_copy
from ui.report.html import HEADS, as_html

PLAIN = {
    *("html", "head", "meta", "title", "style", "body", "a", "div", "header", "strong", "h1", "h2", "h3", "nav", "ol"),
    *("li", "details", "summary", "main", "section", "table", "caption", "thead", "tbody", "tr", "th", "td", "figure"),
    *("figcaption", "script", "pre", "dl", "dt", "dd", "footer", "code", "span", "b"),
}
"""Elements of a report."""
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "role", "tabindex", "aria-label"),
    *("scope", "open", "type"),
}
BEFORE = "agora report forum"


class Page(HTMLParser):
    """What a page is made of, and the rows of its tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: set[str] = set()
        self.links: set[str] = set()
        self.ids: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.text = ""
        self._skipped = 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements.append(tag)
        self.attributes |= given.keys()
        self.links |= {str(given["href"])} if "href" in given else set()
        self.ids += [str(given["id"])] if "id" in given else []
        self._skipped += tag in ("script", "style")
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._skipped -= tag in ("script", "style")

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self.text += data
            if self.tables and self.tables[-1] and self.tables[-1][-1]:
                self.tables[-1][-1][-1] += data

    def measures(self) -> set[tuple[str, ...]]:
        """Rows of tables of measures: measure, of, value, n, interval."""
        found = set()
        for heads, *rows in self.tables:
            if {"measure", "clusters"} <= set(heads):
                for row in rows:
                    cells = dict(zip(heads, row, strict=True))
                    found.add(tuple(cells.get(name, "") for name in ("measure", "of", "value", "n", "95% interval")))
        return found


def key(line: Line) -> tuple[str, ...]:
    return line.metric, line.about, line.shown, f"{line.n:,}", line.interval


@pytest.fixture(scope="module")
def forum(folder: Path) -> Report:
    return composed([folder / "forum.db"], BEFORE)


def test_the_page_has_the_same_numbers(forum: Report) -> None:
    page = Page(as_html(forum))
    assert page.measures() == {key(one) for one in lines(forum)}
    assert set(HEADS) >= {"measure", "clusters", "95% interval"}


def test_the_page_is_whole_and_asks_for_nothing(forum: Report) -> None:
    text = as_html(forum)
    page = Page(text)
    assert set(page.elements) <= PLAIN
    assert page.attributes <= ATTRIBUTES
    assert all(link.startswith("#") for link in page.links)
    assert {link[1:] for link in page.links} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert page.elements.count("h1") == 1
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy.split("style-src")[0]
    drawn = sum(isinstance(block, Plot) for section in forum.sections() for block in section.blocks)
    assert page.elements.count("figure") == drawn > 2
    assert page.elements.count("script") == drawn + 2, "Plotly once, and what draws"


def test_honesty_stands_before_all_else(forum: Report) -> None:
    unfit = replace(forum, verdict=("not fit for claims: default rate 9.0% > 5%",))
    body = Page(as_html(unfit)).text.partition("Skip to the numbers")[2]
    assert body.startswith("Not fit for claims")
    plain = Page(as_html(forum)).text
    assert "Not fit for claims" not in plain
    assert plain.index("How honest the run is", plain.index("How these numbers came about")) < plain.index("Rewards by")


def test_hostile_texts_change_nothing_but_text(folder: Path, tmp_path: Path) -> None:
    report = composed([hostile_copy(folder / "forum.db", tmp_path)], CORPUS[0])
    text = as_html(report)
    page = Page(text)
    assert set(page.elements) <= PLAIN
    assert page.attributes <= ATTRIBUTES
    assert page.elements.count("style") == 1
    assert all(link.startswith("#") for link in page.links)
    for mark in ("\x1b", "\u202e", "\x00", "\u200b"):
        assert mark not in page.text
    for said in ("<script>hit()</script>", "[click](javascript:hit())", "</div></div><h1>out</h1>"):
        assert said in page.text
    assert len(page.measures()) == len({key(line) for line in lines(report)})
    figures = re.findall(r'<script type="application/json">(.*?)</script>', text, re.S)
    assert figures
    assert not any("<script" in json.dumps(json.loads(one)) for one in figures)
    assert len(text) < 6_500_000, "texts of a megabyte are cut"


def test_several_runs_are_folded_below_what_they_come_to(folder: Path) -> None:
    report = composed([folder / "bargaining.db", folder / "bargaining-at10.db"], "")
    page = Page(as_html(report))
    assert page.text.index("How honest each run is") < page.text.index("Run bargaining")
    assert len(page.ids) == len(set(page.ids))


def test_without_plotly_the_other_forms_work(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "plotly.py").write_text("raise ImportError('no plotly')\n")
    code = (
        "import sys; from sim.commands.cli import app; from sim.commands.failures import exit_code\n"
        "for form in ('html', 'md', 'json', 'csv'): print(exit_code(lambda: app(args=[*sys.argv[1:], form])))"
    )
    words = ["report", "forum", "--runs", str(folder), "--format"]
    path = {"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"}
    ask = [sys.executable, "-c", code, *words]
    done = subprocess.run(ask, capture_output=True, text=True, cwd=tmp_path, env=path, check=True)
    assert done.stdout.split() == [
        "2",
        *(word for form in ("md", "json", "csv") for word in (f"forum-report.{form}", "0")),
    ]
    need = "an HTML report needs plotly: pip install -e '.[ui]', or write --format md, json or csv"
    assert done.stderr == f"agora: {need}\n"


def test_the_page_needs_no_streamlit() -> None:
    code = "import sys, ui.report.html; print('streamlit' in sys.modules)"
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == "False"
