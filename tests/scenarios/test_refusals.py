"""What a study refuses, it refuses in one line."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

STUDIES_OF_TRACES = [
    "slack_kth", "slack_factor", "queue_order", "speculation", "adaptation", "flurry", "randomization",
    "pv_easy", "prediction_error", "preemption_mode", "easy_readings", "selective_suspension", "urgent_jobs",
]  # fmt: skip


@pytest.mark.parametrize("name", STUDIES_OF_TRACES)
def test_a_trace_that_is_not_there_is_named_in_one_line(load: Callable[[str], ModuleType], name: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        load(name).main(["--trace", "nowhere.swf", "--workers", "1"])
    assert stopped.value.code == "error: nowhere.swf: cannot be read: No such file or directory"


@pytest.mark.parametrize("option", ["--workers", "--jobs"])
@pytest.mark.parametrize("value", ["0", "-1", "x", "1.5", ""])
@pytest.mark.parametrize("name", ["speculation", "slack_kth", "table1_migration"])
def test_numbers_below_one_are_refused_by_the_name_of_the_option(
    load: Callable[[str], ModuleType], name: str, option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        load(name).main([f"{option}={value}"])
    assert stopped.value.code == 2
    *_, last = capsys.readouterr().err.strip().splitlines()
    assert last.endswith(f"error: argument {option}: {value!r} is not allowed; it must be a whole number >= 1")
