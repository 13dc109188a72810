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
from dataclasses import dataclass, field, replace
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
from tests.engines.fake_server import Flavour, serving
from tests.ui import chromium
from tests.ui.conftest import CLASS, SCENARIOS, WORLDS, played
from tests.ui.corpus import CORPUS, hostile_copy
from ui.report.html import as_html

AGORA = "from sim.commands.cli import main; main()"
PATIENCE = 120_000
"""Milliseconds that a page may take on a busy machine."""
CANNOT = "can draw; these are the latest"
"""What stands where a scene does not fit."""
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

    def follow(self, link: str, words: str | re.Pattern[str]) -> None:
        """Go to a view by its link at the side, once the page stands still: a click while it is drawn may get lost."""
        self.settle()
        self.page.get_by_role("link", name=link, exact=True).click()
        expect(self.page.locator(".ag h1").first).to_have_text(link)
        self.page.get_by_text(words).first.wait_for(state="attached")
        self.settle()

    def press(self, words: str) -> None:
        """Press a button that says so."""
        self.page.get_by_text(words, exact=True).first.click()

    def said(self, message: ConsoleMessage) -> None:
        """Take note of an error in the console."""
        if message.type == "error" and PROBED not in message.location.get("url", ""):
            self.errors.append(message.text)

    def failed(self, request: Request) -> None:
        """Take note of a request that went wrong or went outside."""
        if not request.url.startswith((self.base, "data:", "blob:")):
            self.errors.append(f"asks {request.url}")

    def check(self, but: str = "") -> None:
        """Nothing is broken; nor does anything say so, but for one that starts with these words."""
        assert self.errors == []
        boxes = self.page.locator('[data-testid="stException"], [data-testid="stAlert"], .ag .failure')
        assert [one for one in boxes.all_inner_texts() if not (but and one.startswith(but))] == []

    def only_text(self) -> None:
        """Whatever others wrote has become nothing but text."""
        assert not self.page.evaluate("window.wasHit === true")
        main = self.page.locator('[data-testid="stMain"]')
        assert main.locator("img, iframe, script, a[href^='javascript'], a[href*='outside.example']").count() == 0
        assert self.errors == []


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
    for _ in range(PATIENCE // 100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    return process, f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium.found()
    assert path, f"no Chromium; {chromium.INSTALL}"
    expect.set_options(timeout=PATIENCE)
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
    """A page of the recorded runs."""
    yield from looked_at(browser, base)


def looked_at(browser: Browser, base: str) -> Iterator[Watched]:
    """A page of a server, until the test is over."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.add_init_script("window.hit = () => { window.wasHit = true }")
    found = Watched(page, base)
    page.on("console", found.said)
    page.on("pageerror", lambda error: found.errors.append(str(error)))
    page.on("request", found.failed)
    page.on("dialog", lambda dialog: found.errors.append(f"dialog: {dialog.message}"))
    yield found
    page.close()


OF_A_RUN = {
    "Agent": re.compile("Decisions, newest first|not decided anything"),
    "Measures": "Choose a row",
    "Interview": "Question",
    "What if": "Fork and run",
}
"""Views of one run by their links, each with words that it shows last."""
OTHERS = {"Play": "Take the seat", "Compare": "First divergence", "Training": "Exploitability", "Runs": "Start a run"}


def test_the_list_of_runs_has_an_address_that_the_bare_one_leads_to(watched: Watched) -> None:
    for address in ("runs?search=forum", "?search=forum"):
        watched.open(address)
        watched.page.wait_for_url("**/runs?search=forum")
        expect(watched.page.locator(".ag h1").first).to_have_text("Runs")
        watched.check()


def test_every_page_of_every_world_is_drawn_without_an_error(watched: Watched) -> None:
    """Every view is reached by its link, which keeps the run."""
    for run in WORLDS:
        watched.open(f"live?run={run}")
        expect(watched.page.locator(".ag h1").first).to_have_text("Live")
        assert CANNOT not in watched.page.inner_text("body")
        watched.check()
        for name, words in OF_A_RUN.items():
            watched.follow(name, words)
            assert f"run={run}" in watched.page.url
            watched.check()
    for name, words in OTHERS.items():
        watched.follow(name, words)
        watched.check(but="stopped after update")
    watched.page.get_by_text("Start a run").first.click()
    watched.page.get_by_role("button", name="Show the plan").wait_for()
    watched.check()


def test_a_decision_is_followed_back_and_a_league_is_looked_at(watched: Watched) -> None:
    watched.open("agent?run=forum&agent=patient-1")
    watched.press("Why: back to the origin")
    watched.page.get_by_text("lead to this one").wait_for()
    watched.open("training")
    watched.press("League")
    watched.page.get_by_text("Win rate of the player in the row").wait_for()
    expect(watched.page.locator(".js-plotly-plot .heatmaplayer .hm").first).to_be_attached()
    focused = []
    for _ in range(6):
        watched.page.keyboard.press("Tab")
        focused.append(watched.page.evaluate("getComputedStyle(document.activeElement).outlineStyle"))
    assert set(focused) == {"solid"}, "who uses the keyboard sees where they are"
    watched.press("Games")
    watched.page.get_by_text(re.compile(r"^Hand \d")).wait_for()
    watched.check(but="stopped after update")


def test_hostile_texts_are_only_text_in_a_browser(watched: Watched) -> None:
    hostile = ("live", "agent", "measures", "interview", "whatif")
    addresses = [
        "",
        *(f"{view}?run=hostile" for view in hostile),
        "compare?runs=hostile,market",
        f"training?training={CLASS}",
    ]
    for address in addresses:
        watched.open(address)
        watched.page.wait_for_timeout(200)
        watched.only_text()
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
BARGAIN = f"""
name: bargain
clock: {{until: 2h}}
world: {{use: worlds.negotiation.bargaining:Bargaining, pie: 100, discounts: [0.9, 0.9], pairing: across}}
cast:
  - name: host
    agent: worlds.negotiation.strategies:Greedy
    role: first mover
    persona: {{name: {CORPUS[1]!r}, occupation: {CORPUS[8]!r}, style: {CORPUS[0]!r}}}
  - {{name: guest, agent: worlds.negotiation.strategies:FiftyFifty, role: second mover}}
interventions:
  - {{at: 0, do: say, text: {CORPUS[7]!r}, to: all}}
"""
POKER = """
name: poker
clock: {until: 2h}
world: {use: worlds.games.openspiel:OpenSpielGame, game: kuhn_poker}
cast:
  - {name: me, agent: "worlds.games.openspiel_strategies:AlwaysBet"}
  - {name: bettor, agent: "worlds.games.openspiel_strategies:AlwaysBet"}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with scenarios and, at first, without runs."""
    where = tmp_path_factory.mktemp("home")
    (where / "scenarios").mkdir()
    text = (SCENARIOS / WORLDS["forum"]).read_text().replace("../personas", str(SCENARIOS / "personas"))
    for name, words in (("talk", text), ("bargain", BARGAIN), ("poker", POKER)):
        (where / "scenarios" / f"{name}.yaml").write_text(words)
    return where


@pytest.fixture(scope="module")
def home_base(home: Path) -> Iterator[str]:
    process, address = server(home / "runs")
    yield address
    process.terminate()
    process.wait(10)


@pytest.fixture
def own(browser: Browser, home_base: str) -> Iterator[Watched]:
    """A page whose runs are made by it."""
    yield from looked_at(browser, home_base)


def begun(own: Watched, name: str, *changes: str) -> None:
    """Start a run by the form, and follow it."""
    own.open("")
    empty = own.page.get_by_text("There are no runs in")
    empty.or_(own.page.get_by_role("textbox", name="Search")).first.wait_for()
    if not empty.count():  # where there are runs the form is folded
        own.press("Start a run")
    pick(own, "Scenario", "talk.yaml")
    own.page.get_by_label("Other changes, one KEY=VALUE a line").fill("\n".join(changes))
    own.page.get_by_label("Name of the run").fill(name)
    own.page.get_by_role("button", name="Start", exact=True).click()
    own.page.wait_for_url(re.compile(f"run={name}"))
    own.settle()
    status(own, "running")


def status(own: Watched, words: str, timeout: float = PATIENCE) -> None:
    expect(own.page.locator(".ag .chip", has_text=words).first).to_be_visible(timeout=timeout)


def test_a_run_is_started_paused_stepped_reloaded_stopped_resumed_and_killed(own: Watched, home: Path) -> None:
    begun(own, "talk", *SLOW)
    path = home / "runs" / "talk.db"
    paused_and_stepped(own, path)
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
    own.check()
    assert ended(path) == ended(create(load(home / "scenarios" / "talk.yaml", SLOW), home / "again", "again"))


def paused_and_stepped(own: Watched, path: Path) -> None:
    """Nothing happens while a run is paused, by the page; a step is a step, and then it is paused still."""
    own.page.get_by_role("button", name="Pause").click()
    own.page.get_by_text(re.compile("^paused ·")).wait_for()
    with Run(path) as run:
        before = run.last_seq(0)
        own.page.wait_for_timeout(1_500)
        assert run.last_seq(0) == before
        own.page.get_by_role("button", name="Step").click()
        for _ in range(300):
            if run.last_seq(0) > before:
                break
            own.page.wait_for_timeout(100)
        assert run.last_seq(0) > before
    own.page.get_by_text(re.compile("^paused ·")).wait_for()
    measured_meanwhile(own)
    own.page.get_by_role("button", name="Go on").click()
    own.page.get_by_role("button", name="Pause").wait_for()


def measured_meanwhile(own: Watched) -> None:
    """Numbers so far come by the press of a button, and by themselves after it."""
    own.open("measures?run=talk")
    own.page.get_by_text("Nothing is measured on this run").wait_for()
    own.page.get_by_role("button", name="Measure while it runs").click()
    own.page.get_by_text(re.compile("^so far, at ")).wait_for()
    expect(own.page.locator(".ag .card").first).to_be_visible()
    expect(own.page.get_by_role("button", name="Measure while it runs")).to_be_disabled()
    own.open("live?run=talk")
    own.page.get_by_text(re.compile("^paused ·")).wait_for()


def ended(path: Path) -> str:
    """Hash of a run that is brought to its end at once: nothing that was done by the page has left a trace in it."""
    go(path, engines={"small": SyntheticEngine()})
    with Run(path) as run:
        assert run.status == "finished"
        return run.manifest().hash


def test_where_the_model_server_dies_the_page_says_so(own: Watched) -> None:
    with serving(lambda call: replace(Flavour().answer(call), delay=0.3)) as model:
        settings = (f"base_url={model.url}", "model=m", "patience=1", "backoff=0.1", "concurrency=[1, 1]")
        begun(own, "served", "models.small.engine=openai", *(f"models.small.{one}" for one in settings))
    status(own, "paused, resumable")
    expect(own.page.locator(".ag .failure").first).to_contain_text("no connection")
    assert own.errors == []


def test_a_person_plays_a_bargaining_and_a_hand_of_poker(own: Watched) -> None:
    sit(own, "bargain.yaml", "host")
    own.press("The rules, and who you are")
    for text in (CORPUS[0], CORPUS[7], CORPUS[8]):
        own.page.get_by_text(text).first.wait_for()
    own.only_text()
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


def test_an_agent_is_asked_and_a_change_is_forked_beside_what_would_have_been(own: Watched, home: Path) -> None:
    played(home / "runs", "deal", WORLDS["bargaining"], "models.small.engine=synthetic")
    own.open("whatif?run=deal")
    own.press("a parameter of the world")
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
    own.follow("Interview", "Nobody has asked this agent anything yet.")
    own.page.get_by_role("textbox", name="Question").fill("Why did you offer that?")
    own.page.get_by_role("button", name="Ask").click()
    expect(own.page.locator(".ag .left .said").first).to_have_text(re.compile(r"\w"))
    assert own.page.locator(".ag .right .said").first.inner_text() == "Why did you offer that?"
    own.check()
    own.follow("What if", "Fork and run")
    own.press("an agent")
    own.settle()
    own.page.get_by_role("textbox", name="At").fill("10")
    own.page.get_by_role("spinbutton", name="Replicates").fill("1")
    own.page.get_by_role("textbox", name="More of its persona").fill("style: curt")
    own.page.get_by_role("textbox", name="More of its persona").press("Control+Enter")
    own.page.wait_for_timeout(500)
    own.page.get_by_role("button", name="Fork and run").click()
    own.page.locator(".ag .mono", has_text="do: become").wait_for()
    expect(own.page.get_by_text("replicates are not finished")).to_have_count(0)
    own.check()
    changed = 0
    for path in (home / "runs").glob("deal-at10*.db"):
        with Run(path) as run:
            changed += "style: curt" in run.manifest().scenario
    assert changed == 1


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
