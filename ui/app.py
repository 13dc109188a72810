"""The page's router: which views there are, who may see them, and one clear line where something goes wrong."""

from __future__ import annotations

import hmac
import os
import time
from collections.abc import Callable
from pathlib import Path

import streamlit as st

from sim.commands.failures import BadInput
from sim.library import NoSuchRun
from sim.record.committed import SchemaMismatch
from sim.record.sqlite import FileFailure
from sim.scenarios.located import ScenarioError
from sim.steering.live import Refused
from ui.controls import PASSWORD
from ui.markup import failure, style
from ui.views import agent, compare, interview, live, measures, play, runs, training, whatif

KNOWN = (BadInput, NoSuchRun, SchemaMismatch, FileFailure, ScenarioError, Refused, FileNotFoundError)
"""What goes wrong by nobody's defect; its text says what."""
VIEWS: dict[str, dict[str, tuple[Callable[[], None], str, str]]] = {
    "Runs": {
        "runs": (runs.page, "Runs", ":material/list:"),
        "play": (play.page, "Play", ":material/sports_esports:"),
    },
    "One run": {
        "live": (live.page, "Live", ":material/play_circle:"),
        "agent": (agent.page, "Agent", ":material/person:"),
        "measures": (measures.page, "Measures", ":material/monitoring:"),
        "interview": (interview.page, "Interview", ":material/forum:"),
        "whatif": (whatif.page, "What if", ":material/fork_right:"),
    },
    "Several": {
        "compare": (compare.page, "Compare", ":material/compare_arrows:"),
        "training": (training.page, "Training", ":material/model_training:"),
    },
}
"""By section and address: what draws the page, its title, its icon."""
WRONG = 1.0
"""Seconds that a wrong password costs."""


def main() -> None:
    """Draw the page that was asked for."""
    st.set_page_config(page_title="Agora", page_icon=Path(__file__).with_name("icon.svg"), layout="wide")
    style()
    if not _let_in():
        return
    pages = {
        section: [
            st.Page(_guarded(draw), title=title, icon=icon, url_path=address)
            for address, (draw, title, icon) in views.items()
        ]
        for section, views in VIEWS.items()
    }
    st.session_state["pages"] = {one.url_path: one for group in pages.values() for one in group}
    st.navigation({"": [st.Page(_home, title="Agora", default=True, visibility="hidden")], **pages}).run()


def _home() -> None:
    """Lead to the list of runs: this page is the only one without an address of its own."""
    st.switch_page(st.session_state["pages"]["runs"], query_params=dict(st.query_params))


def _guarded(draw: Callable[[], None]) -> Callable[[], None]:
    def drawn() -> None:
        try:
            draw()
        except KNOWN as problem:
            failure(str(problem))

    return drawn


def _let_in() -> bool:
    """Whether this browser may see anything: always, where no password is set."""
    password = os.environ.get(PASSWORD, "")
    if not password or st.session_state.get("let-in"):
        return True
    with st.form("password"):
        given = st.text_input("Password", type="password")
        if st.form_submit_button("Enter"):
            if hmac.compare_digest(given.encode(), password.encode()):
                st.session_state["let-in"] = True
                st.rerun()
            time.sleep(WRONG)
            failure("that is not the password")
    return False


if __name__ == "__main__":
    main()
