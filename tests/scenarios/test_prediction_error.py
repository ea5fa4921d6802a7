"""The study of prediction errors runs small, and its table is the one that is checked in.

After a deliberate change: ``python scenarios/prediction_error.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/prediction_error.json``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.scenarios.conftest import FIGURES, Study

STORED = ("prediction_error_kth", "prediction_error_ctc")


def claim_strict_fairness(runs: Any) -> None:
    """Claim that however bad the predictions, PV-EASY is fair; and that EASY keeps promises only if they are perfect."""
    for error in runs.distinct("error"):
        pv_easy = runs.at(policy="PV-EASY", error=error)
        assert not pv_easy.values("delayed").any()
        assert not pv_easy.values("violations").any()
        for policy in ("FCFS-EASY", "SJF-EASY"):
            here = runs.at(policy=policy, error=error)
            assert here.values("delayed").sum() > 0
            assert here.values("wasted").sum() == 0
            if error is not None:
                assert (here.values("violations").sum() > 0) == (error > 0), (policy, error)


def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("prediction_error")
    assert study.figure.stat().st_size > 10_000
    for title in ("Figure 4, MBS", "Figure 4, MWBS", "PV-EASY's MBS", "Reservation violations"):
        assert title in study.printed
    claim_strict_fairness(study.runs)


@pytest.mark.parametrize("name", STORED)
def test_stored(load: Callable[[str], ModuleType], name: str) -> None:
    script = load("prediction_error")
    runs = load("reporting").read(FIGURES / f"{name}.json")
    assert script.errors_of(runs) == list(script.ERRORS)
    for policy in script.POLICIES:
        assert len(script.at(runs, policy, None).rows) == 1
        assert all(len(script.at(runs, policy, error).rows) == (10 if error else 1) for error in script.ERRORS)
    claim_strict_fairness(runs)


@pytest.mark.parametrize("value", ["-0.1", "1.1", "x", "nan", "inf", ""])
def test_errors_outside_the_range_are_refused(
    load: Callable[[str], ModuleType], value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        load("prediction_error").main(["--errors", value] if not value.startswith("-") else [f"--errors={value}"])
    assert stopped.value.code == 2
    *_, last = capsys.readouterr().err.strip().splitlines()
    assert last.endswith(f"error: argument --errors: {value!r} is not allowed; it must be a number in [0, 1]")
