"""A bench that fails is skipped only where the machine is disturbed, and only if an assertion has failed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.bench import conftest


def reported(unrest: float, error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the report of a bench that raises an error on a machine."""
    monkeypatch.setattr(conftest, "unrest", lambda: unrest)
    try:
        raise error("assert 3 <= 2")
    except error:
        failure = pytest.ExceptionInfo[Exception].from_current()
    item: Any = SimpleNamespace(path=Path("test_ratios.py"), location=("test_ratios.py", 7, "test"))
    call: Any = SimpleNamespace(excinfo=failure)
    report: Any = SimpleNamespace(outcome="failed", longrepr=None)
    hook = conftest.pytest_runtest_makereport(item, call)
    next(hook)
    with pytest.raises(StopIteration) as returned:
        hook.send(report)
    return returned.value.value


def test_a_ratio_beyond_its_bound_on_a_disturbed_machine_is_skipped_with_what_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = reported(1.5, AssertionError, monkeypatch)
    assert report.outcome == "skipped"
    assert report.longrepr[:2] == ("test_ratios.py", 7)
    assert "1.50 times as long as at best: AssertionError: assert 3 <= 2" in report.longrepr[2]


@pytest.mark.parametrize(("unrest", "error"), [(1.1, AssertionError), (1.5, ValueError)])
def test_on_a_quiet_machine_and_with_any_other_error_it_fails(
    unrest: float, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert reported(unrest, error, monkeypatch).outcome == "failed"


def test_equal_programs_are_compared() -> None:
    assert 1 <= conftest.unrest() < 100
