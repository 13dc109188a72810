"""The page's server: where it listens, who may reach it, what it keeps quiet about."""

from __future__ import annotations

import importlib
import ipaddress
import os
from pathlib import Path

from sim.commands.failures import BadInput
from ui.controls import PASSWORD

LOOPBACK = "127.0.0.1"
SETTINGS = {
    "browser.gatherUsageStats": False,
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "global.developmentMode": False,
    "logger.level": "warning",
    "runner.magicEnabled": False,
    "server.fileWatcherType": "none",
    "server.headless": True,
    "server.maxUploadSize": 1,
    "theme.light.primaryColor": "#0072B2",
    "theme.dark.primaryColor": "#1C7ABA",
}
"""Of Streamlit: nothing is sent anywhere, nobody sees a traceback, no file is watched or taken in."""


def check(address: str) -> None:
    """Raises BadInput where anybody could reach the page without a password."""
    if not loopback(address) and not os.environ.get(PASSWORD):
        raise BadInput(
            f"--address {address} can be reached from outside: set a password in the environment, {PASSWORD}, "
            f"or leave it at {LOOPBACK}"
        )


def loopback(address: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def serve(runs: Path, address: str, port: int) -> None:
    """Serve the page of a folder of runs until it is interrupted. Raises BadInput."""
    check(address)
    try:
        bootstrap = importlib.import_module("streamlit.web.bootstrap")
        _warm()
    except ImportError as missing:
        raise BadInput(f"the page needs {missing.name}: pip install -e '.[ui]'") from missing
    os.environ["AGORA_RUNS"] = str(runs.resolve())
    settings = {**SETTINGS, "server.address": address, "server.port": port}
    flags = {key.replace(".", "_"): value for key, value in settings.items()}
    bootstrap.load_config_options(flags)
    bootstrap.run(str(Path(__file__).with_name("app.py")), False, [], flags)


def _warm() -> None:
    """Import what views import when they need it, before two need it at once.

    Plotly asks pandas whether an array is one of its own, also where another thread has only half imported it.
    """
    for name in ("numpy", "pandas", "pyarrow", "ui.app"):
        importlib.import_module(name)
    charts = importlib.import_module("ui.charts")
    charts.lines([charts.Series(name="", x=[0], y=[0])], "", "").to_json()
