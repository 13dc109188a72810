"""How often metrics raise an alarm at 5%: of 200 societies where nothing happens, and of 200 with something planted.

Run: `python -m tests.benchmarks alarms`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.metrics.apart import APART
from tests.metrics.dealings import DEALINGS
from tests.metrics.known import CASES, alarms
from tests.metrics.recorded import RECORDED

SEEDS = 200


def main() -> Iterator[str]:
    """Lines for the README."""
    for name, case in (CASES | DEALINGS | RECORDED | APART).items():
        null, found = alarms(case, SEEDS, 0.0), alarms(case, SEEDS, case.effect)
        yield f"alarms: {name}: {null / SEEDS:.1%} of null societies, {found / SEEDS:.1%} of planted ones"
