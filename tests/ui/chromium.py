"""The browser of the tests: a Chromium that is there, else the distribution's own; run as a module it sees to that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = "apt-get update && apt-get install -y --no-install-recommends chromium"


def found() -> str | None:
    """Path of a Chromium."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def main() -> int:
    """Install one where none is found and we may; otherwise say how."""
    if found():
        return 0
    if shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["sh", "-c", INSTALL], check=True)
        return 0 if found() else 1
    print(f"the browser tests need a Chromium: sudo sh -c '{INSTALL}'")
    return 1


if __name__ == "__main__":
    sys.exit(main())
