"""A bench that fails while the machine is disturbed is skipped, with what it found: its ratio says nothing there."""

from __future__ import annotations

from collections.abc import Generator
from statistics import median
from time import process_time

import pytest

from tests.bench.floor import bare_simpy

MOST_UNREST = 1.15
"""Beyond it the machine is disturbed."""


def unrest() -> float:
    """Return how many times as long as the fastest of thirty equal programs the median one takes."""
    jobs = [(10 * number, 1_000) for number in range(3_000)]
    seconds = []
    for _ in range(30):
        began = process_time()
        bare_simpy(jobs)
        seconds.append(process_time() - began)
    return median(seconds) / min(seconds)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Skip a bench whose assertion fails on a disturbed machine."""
    report = yield
    if call.excinfo is not None and call.excinfo.errisinstance(AssertionError) and (found := unrest()) > MOST_UNREST:
        report.outcome = "skipped"
        why = f"the machine is disturbed, equal programs take {found:.2f} times as long as at best: {call.excinfo.exconly()}"
        report.longrepr = (str(item.path), item.location[1] or 0, why)
    return report
