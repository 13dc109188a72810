"""Runs the benchmarks named on the command line, or all: `python -m tests.benchmarks [kernel] [schedule] [memory]`."""

from __future__ import annotations

import sys
from importlib import import_module

for name in sys.argv[1:] or ("kernel", "schedule", "memory"):
    for line in import_module(f"tests.benchmarks.{name}").main():
        print(line, flush=True)
