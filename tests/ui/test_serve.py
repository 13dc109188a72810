"""Where the page listens, and what it keeps from the processes that it starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.steering.live import Refused
from tests.commands import Agora
from ui import controls
from ui.serve import loopback


def test_another_address_needs_a_password(agora: Agora, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(controls.PASSWORD, raising=False)
    said = agora("ui", "--address", "0.0.0.0")
    assert said.code == 2
    assert "AGORA_UI_PASSWORD" in said.line


@pytest.mark.parametrize(
    ("address", "own"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False)]
)
def test_loopback(address: str, own: bool) -> None:
    assert loopback(address) == own


def test_a_command_that_fails_at_once_says_why(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("name: bad\nworld: {use: 5}\n")
    with pytest.raises(Refused, match=r"bad\.yaml"):
        controls.start(tmp_path / "bad.yaml", [], tmp_path / "runs", "bad", None)
    with pytest.raises(Refused, match="nobody is writing"):
        controls.stop(tmp_path / "bad.db", 1)
