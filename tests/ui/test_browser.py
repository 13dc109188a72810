"""The page in a real browser: every view of every world, and runs that are started, followed, stopped and killed."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from agents.engines.synthetic import SyntheticEngine
from sim.record.committed import held
from sim.record.reader import Run
from sim.report.compose import composed
from sim.runs import create, go
from sim.scenarios.scenario import load
from tests.ui import chromium
from tests.ui.conftest import SCENARIOS, WORLDS, played
from tests.ui.corpus import hostile_copy
from ui.report.html import as_html

AGORA = "from sim.commands.cli import main; main()"
PATIENCE = 60_000
"""Milliseconds that a page may take on a busy machine."""
PROBED = "/_stcore/"
"""Streamlit looks for its server below the address of a view first, and is told that it is not there."""


@dataclass
class Watched:
    """A page, and what went wrong in it."""

    page: Page
    base: str
    errors: list[str] = field(default_factory=list)

    def open(self, address: str) -> None:
        """Go to a view and wait until it is drawn."""
        self.page.goto(f"{self.base}/{address}")
        self.settle()

    def settle(self) -> None:
        """Wait until the page is drawn to its end."""
        self.page.wait_for_selector(".ag h1", timeout=PATIENCE)
        self.page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]', timeout=PATIENCE)

    def said(self, message: ConsoleMessage) -> None:
        """Take note of an error in the console."""
        if message.type == "error" and PROBED not in message.location.get("url", ""):
            self.errors.append(message.text)

    def failed(self, request: Request) -> None:
        """Take note of a request that went wrong or went outside."""
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.errors.append(f"asks {request.url}")

    def check(self) -> None:
        """Nothing is broken."""
        assert self.errors == []
        boxes = self.page.locator('[data-testid="stException"], [data-testid="stAlert"], .ag .failure')
        assert boxes.all_inner_texts() == []


def server(runs: Path, *, password: str = "") -> tuple[subprocess.Popen[bytes], str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {**os.environ, "AGORA_UI_PASSWORD": password}
    words = ["ui", "--runs", str(runs), "--port", str(port)]
    process = subprocess.Popen(
        [sys.executable, "-c", AGORA, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=env,
        cwd=runs.parent,
    )
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    return process, f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium.found()
    assert path, f"no Chromium; {chromium.INSTALL}"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def base(folder: Path) -> Iterator[str]:
    process, address = server(folder)
    yield address
    process.terminate()
    process.wait(10)


@pytest.fixture
def watched(browser: Browser, base: str) -> Iterator[Watched]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE)
    found = Watched(page, base)
    page.on("console", found.said)
    page.on("pageerror", lambda error: found.errors.append(str(error)))
    page.on("request", found.failed)
    page.on("dialog", lambda dialog: found.errors.append(f"dialog: {dialog.message}"))
    yield found
    page.close()


def test_every_view_of_every_world_is_drawn_without_an_error(watched: Watched) -> None:
    watched.open("")
    for run in WORLDS:
        watched.open(f"live?run={run}")
        expect(watched.page.locator(".ag h1").first).to_have_text("Live")
        assert "can draw; these are the latest" not in watched.page.inner_text("body")
        watched.check()
    for view in ("agent?run=forum&agent=patient-1", "measures?run=market", "whatif?run=bargaining"):
        watched.open(view)
        watched.check()
    watched.open("compare?runs=bargaining,bargaining-at10-r1")
    watched.check()


def test_views_are_reached_by_links_that_keep_the_run(watched: Watched) -> None:
    watched.open("live?run=forum")
    for name, words in (
        ("Agent", "Decisions, newest first"),
        ("Measures", "posting gini"),
        ("What if", "Fork and run"),
    ):
        watched.page.get_by_role("link", name=name, exact=True).click()
        watched.page.get_by_text(words).first.wait_for()
        watched.settle()
        assert "run=forum" in watched.page.url
        watched.check()


def test_hostile_texts_are_only_text_in_a_browser(watched: Watched) -> None:
    watched.page.add_init_script("window.hit = () => { window.wasHit = true }")
    for view in ("", "live?run=hostile", "agent?run=hostile", "measures?run=hostile"):
        watched.open(view)
        watched.page.wait_for_timeout(300)
        assert not watched.page.evaluate("window.wasHit === true")
        main = watched.page.locator('[data-testid="stMain"]')
        assert main.locator("img, iframe, script, a[href^='javascript'], a[href*='outside.example']").count() == 0
        assert watched.errors == []
    watched.open("live?run=hostile")
    said = watched.page.locator('[data-testid="stMain"]').inner_text()
    for text in ("<script>hit()</script>", "[click](javascript:hit())", ":red[red] :material/home: :smile: $x^2$"):
        assert text in said


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (1920, "light"), (390, "light")])
def test_a_report_opens_offline_and_shows_only_text(
    width: int, scheme: Literal["dark", "light"], browser: Browser, report: Path
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    context.add_init_script("window.hit = () => { window.wasHit = true }")
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    found = Watched(page, report.as_uri())
    page.on("console", found.said)
    page.on("pageerror", lambda error: found.errors.append(str(error)))
    page.on("request", found.failed)
    page.goto(report.as_uri())
    page.locator("figure[data-drawn] .main-svg").first.wait_for()
    page.wait_for_function(
        "document.querySelectorAll('figure').length === document.querySelectorAll('.js-plotly-plot').length"
    )
    assert found.errors == []
    assert not page.evaluate("window.wasHit === true")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(18, 22, 27)" if scheme == "dark" else "rgb(255, 255, 255)"
    )
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the numbers"
    context.close()


@pytest.fixture(scope="module")
def report(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a run whose texts are all hostile."""
    where = tmp_path_factory.mktemp("report")
    file = where / "report.html"
    file.write_text(as_html(composed([hostile_copy(folder / "forum.db", where)], "agora report")), encoding="utf-8")
    return file


# --- runs that go on -----------------------------------------------------------------------------------

SLOW = ("models.small.engine=synthetic", "models.small.latency=1s", "models.small.slots=1")


BARGAIN = """
name: bargain
clock: {until: 2h}
world: {use: worlds.negotiation.bargaining:Bargaining, pie: 100, discounts: [0.9, 0.9], pairing: across}
cast:
  - {name: host, agent: worlds.negotiation.strategies:Greedy, role: first mover}
  - {name: guest, agent: worlds.negotiation.strategies:FiftyFifty, role: second mover}
"""
POKER = """
name: poker
clock: {until: 2h}
world: {use: worlds.games.openspiel:OpenSpielGame, game: kuhn_poker}
cast:
  - {name: me, agent: "worlds.games.openspiel_strategies:AlwaysBet"}
  - {name: bettor, agent: "worlds.games.openspiel_strategies:AlwaysBet"}
"""


@pytest.fixture
def own(browser: Browser, tmp_path: Path) -> Iterator[Watched]:
    """A page of a folder of its own, without runs."""
    (tmp_path / "scenarios").mkdir()
    text = (SCENARIOS / WORLDS["forum"]).read_text().replace("../personas", str(SCENARIOS / "personas"))
    (tmp_path / "scenarios" / "talk.yaml").write_text(text)
    (tmp_path / "scenarios" / "bargain.yaml").write_text(BARGAIN)
    (tmp_path / "scenarios" / "poker.yaml").write_text(POKER)
    process, address = server(tmp_path / "runs")
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE)
    found = Watched(page, address)
    page.on("pageerror", lambda error: found.errors.append(str(error)))
    yield found
    page.close()
    process.terminate()
    process.wait(10)


def begun(own: Watched) -> None:
    """Start a slow run by the form."""
    own.open("")
    pick(own, "Scenario", "talk.yaml")
    own.page.get_by_label("Other changes, one KEY=VALUE a line").fill("\n".join(SLOW))
    own.page.get_by_label("Name of the run").fill("talk")
    own.page.get_by_role("button", name="Start", exact=True).click()
    own.page.wait_for_url(re.compile("run=talk"))
    own.settle()


def status(own: Watched, words: str, timeout: float = PATIENCE) -> None:
    expect(own.page.locator(".ag .chip", has_text=words).first).to_be_visible(timeout=timeout)


def test_a_run_is_started_followed_reloaded_stopped_resumed_and_killed(own: Watched, tmp_path: Path) -> None:
    begun(own)
    status(own, "running")
    path = tmp_path / "runs" / "talk.db"
    with Run(path) as run:
        pid = run.manifest().pid
        for _ in range(20):
            own.page.reload(wait_until="domcontentloaded")
        assert run.manifest().pid == pid
        assert run.status == "running"
    own.open("?search=talk")
    choose_first(own)
    own.page.get_by_role("button", name="Stop").click()
    status(own, "stopped, resumable")
    assert not held(path)
    own.page.get_by_role("button", name="Resume").click()
    status(own, "running")
    own.open("live?run=talk")
    status(own, "running")
    with Run(path) as run:
        pid = run.manifest().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    status(own, "stopped, resumable", timeout=5_000)
    assert own.errors == []
    assert ended(path) == ended(create(load(tmp_path / "scenarios" / "talk.yaml", SLOW), tmp_path / "again", "again"))


def ended(path: Path) -> str:
    """Hash of a run that is brought to its end at once: nothing that was done by the page has left a trace in it."""
    go(path, engines={"small": SyntheticEngine()})
    with Run(path) as run:
        assert run.status == "finished"
        return run.manifest().hash


def test_a_person_plays_a_bargaining_and_a_hand_of_poker(own: Watched) -> None:
    sit(own, "bargain.yaml", "host")
    own.page.get_by_role("spinbutton").fill("50")
    own.page.get_by_role("button", name="Answer").click()
    own.page.get_by_text("The game is over. You have earned 0.5.").wait_for()
    own.check()
    sit(own, "poker.yaml", "me")
    own.page.get_by_text("bet", exact=True).or_(own.page.get_by_role("combobox", name="Answer")).first.click()
    own.page.get_by_role("option", name="bet").click()
    own.page.get_by_role("button", name="Answer").click()
    own.page.get_by_text("The game is over. You have earned").wait_for()
    own.check()


def test_a_change_is_forked_beside_what_would_have_been(own: Watched, tmp_path: Path) -> None:
    played(tmp_path / "runs", "talk", WORLDS["bargaining"], "models.small.engine=synthetic")
    own.open("whatif?run=talk")
    own.page.get_by_text("a parameter of the world").click()
    pick(own, "What", "max_rounds")
    own.page.get_by_role("textbox", name="At").fill("10")
    own.page.get_by_role("textbox", name="New value").fill("1")
    own.page.get_by_role("spinbutton", name="Replicates").fill("2")
    own.page.get_by_role("textbox", name="New value").press("Enter")
    own.page.wait_for_timeout(500)
    own.page.get_by_role("button", name="Fork and run").click()
    own.page.get_by_role("heading", name="At 10s").wait_for()
    own.page.locator(".js-plotly-plot").first.wait_for()
    own.check()


def sit(own: Watched, file: str, seat: str) -> None:
    """Take a seat of a new game, and wait until it is asked something."""
    own.open("play")
    pick(own, "Scenario", file)
    pick(own, "Your seat", seat)
    own.page.get_by_role("button", name="Take the seat").click()
    own.page.get_by_text("The rules, and who you are").wait_for()
    own.settle()


def pick(own: Watched, label: str, words: str) -> None:
    """Choose from a box."""
    box = own.page.get_by_role("combobox", name=label)
    box.click()
    own.page.get_by_role("option", name=re.compile(words)).first.click()
    own.page.wait_for_timeout(500)
    own.settle()


def choose_first(own: Watched) -> None:
    """Tick the first row of the list."""
    own.page.locator('[data-testid="stDataFrame"] .dvn-scroller').first.click(position={"x": 18, "y": 52})
    own.page.get_by_text("Watch", exact=True).wait_for()


def test_a_password_is_asked_for_before_anything_is_shown(browser: Browser, folder: Path) -> None:
    process, address = server(folder, password="open sesame")
    page = browser.new_page()
    try:
        page.goto(f"{address}/live?run=forum")
        page.get_by_role("textbox", name="Password").fill("wrong")
        page.get_by_role("button", name="Enter").click()
        page.get_by_text("that is not the password").wait_for(timeout=PATIENCE)
        assert page.locator(".ag h1").count() == 0
        page.get_by_role("textbox", name="Password").fill("open sesame")
        page.get_by_role("button", name="Enter").click()
        page.wait_for_selector(".ag h1", timeout=PATIENCE)
    finally:
        page.close()
        process.terminate()
        process.wait(10)
