"""How long the page takes on a large record, and what its server holds.

Run: `python -m tests.benchmarks page`. The record has 1,000,000 kernel events, 100,000 posts, 200,000 comments and
votes and 333,000 decisions; it is made in the folder for temporary files on first use. A view is loaded from its
address in a fresh browser tab until everything on it is drawn; beside it stands the same of a record of a hundredth of
the size, and the processor time of the server, which other work on the machine does not stretch.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from sim.record.store import Store
from tests.sim.rows import decision, event, fact, manifest, member
from tests.ui import chromium
from tests.ui.test_browser import server

POSTS = 100_000
MEMBERS = 200
TICKS = 10 * POSTS
"""Kernel events; one post in ten ticks."""
LAST = TICKS - 1
VIEWS = {
    "list of runs": "",
    "feed, at the end": "live?run={}",
    "feed, in the middle": f"live?run={{}}&tick={TICKS // 200}",
    "feed, at the start": "live?run={}&tick=300",
    "one agent": "agent?run={}&agent=m-7",
    "measures": "measures?run={}",
    "what if": "whatif?run={}",
    "two runs compared": "compare?runs={},small",
}
DRAWN = '[data-testid="stApp"][data-test-script-state="notRunning"]'


def main() -> Iterator[str]:
    """Seconds for each view, then the server's memory."""
    folder = Path(tempfile.gettempdir()) / "agora-page"
    for name, ticks in (("small", TICKS // 100), ("large", TICKS)):
        if not (folder / f"{name}.db").exists():
            record(folder / f"{name}.db", ticks)
    yield f"record of {(folder / 'large.db').stat().st_size / 1e6:,.0f} MB; load average {os.getloadavg()[0]:.1f}"
    process, base = server(folder)
    path = chromium.found()
    assert path, chromium.INSTALL
    watched = psutil.Process(process.pid)
    before = watched.memory_info().rss
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name, address in VIEWS.items():
            took = [loaded(browser, f"{base}/{address.format(run)}", watched) for run in ("large", "large", "small")]
            words = [f"{wall:5.2f} s ({busy:4.2f})" for wall, busy in took]
            yield f"{name:<22} first {words[0]}   again {words[1]}   a hundredth of it {words[2]}"
        page = browser.new_page()
        yield from paging(page, base)
        browser.close()
    after = watched.memory_info().rss
    yield f"server's memory {before / 1e6:,.0f} MB at start, {after / 1e6:,.0f} MB after all views"
    process.terminate()
    process.wait(10)


def loaded(browser: Browser, address: str, watched: psutil.Process) -> tuple[float, float]:
    """Seconds until a view is drawn, and those of the server's processor time."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    begin, busy = monotonic(), sum(watched.cpu_times()[:2])
    drawn(page, address)
    took = monotonic() - begin, sum(watched.cpu_times()[:2]) - busy
    page.close()
    return took


def drawn(page: Page, address: str) -> None:
    """Load a view to its end."""
    page.goto(address)
    page.wait_for_selector(".ag h1", timeout=120_000)
    page.wait_for_selector(DRAWN, timeout=120_000)


def paging(page: Page, base: str) -> Iterator[str]:
    """Turning pages of the feed, and a search through all that was said."""
    drawn(page, f"{base}/live?run=large")
    begin = monotonic()
    for _ in range(5):
        page.get_by_role("button", name="Older").first.click()
        page.wait_for_timeout(100)
        page.wait_for_selector(DRAWN)
    yield f"five pages on          {(monotonic() - begin) / 5:5.2f} s each"
    begin = monotonic()
    page.get_by_label("Words").fill("word 777 of")
    page.get_by_label("Words").press("Enter")
    page.wait_for_timeout(100)
    page.wait_for_selector(DRAWN, timeout=120_000)
    yield f"search for words       {monotonic() - begin:5.2f} s"


def record(path: Path, ticks: int) -> None:
    """A forum of so many ticks: at every third one a decision, at every tenth a post, two answers to it after it."""
    begun = manifest(id=path.stem, name="large", status="finished", params={"communities": {"a": "", "b": ""}})
    with Store.create(path, begun) as store:
        for place in range(MEMBERS):
            store.put("cast", member(place, f"m-{place}"))
        seq, number, post = -1, -1, 0
        for tick in range(ticks):
            agent = f"m-{tick * 7 % MEMBERS}"
            if tick % 3 == 0:
                seq += 1
                store.put(
                    "decisions", decision(seq, agent, tick=tick, seen=tick, shows=range(max(0, number - 5), number + 1))
                )
            kind = {0: "post", 3: "comment", 6: "vote"}.get(tick % 10)
            if kind:
                seq, number = seq + 1, number + 1
                post = number if kind == "post" else post
                data = {"text": f"Said at {tick}: word {tick % 1000} of many", "post": f"p{post}", "way": 1}
                answers = () if kind == "post" else (post,)
                about = {
                    "actor": agent,
                    "tick": tick,
                    "audience": f"#{'ab'[tick % 2]}",
                    "data": data,
                    "answers": answers,
                }
                store.put("facts", fact(seq, number, kind, **about))
            seq += 1
            store.put("events", event(seq, "tick", f"{tick:032x}", tick=tick))
