"""Runs the benchmarks named on the command line, or the usual ones: `python -m tests.benchmarks [NAME ...]`."""

from __future__ import annotations

import sys
from importlib import import_module

USUAL = ("kernel", "schedule", "memory")
"""What `make bench` takes."""
NAMES = (
    *USUAL, "alarms", "contagion", "duel", "equilibria", "leagues", "learner", "metrics", "opinions", "page", "pricing",
    "tabular",
)  # fmt: skip
"""All there are: modules of this package with a `main` that gives lines."""


def main(words: list[str]) -> int:
    """Print the lines of each; the exit code."""
    usage = f"python -m tests.benchmarks [NAME ...]: {', '.join(NAMES)}; without a name the first {len(USUAL)}"
    if {"-h", "--help"} & set(words):
        print(usage)
        return 0
    for name in words:
        if name not in NAMES:
            print(f"there is no benchmark {name!r}; {usage}", file=sys.stderr)
            return 2
    for name in words or USUAL:
        for line in import_module(f"tests.benchmarks.{name}").main():
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
