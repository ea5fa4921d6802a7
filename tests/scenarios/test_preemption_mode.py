"""The study of preemption modes runs small, and its table is the one that is checked in.

After a deliberate change: ``python scenarios/preemption_mode.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/preemption_mode.json``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.scenarios.conftest import FIGURES, Study

STORED = ("preemption_mode_kth", "preemption_mode_ctc")


def claim_what_is_saved(runs: Any) -> None:
    """Claim what the modes promise: nothing is lost where work is saved; what is free delays nobody; what costs does."""
    killed = runs.at(mode="kill")
    assert killed.values("lost").all()
    assert not killed.values("delayed").any()
    for mode in (name for name in runs.distinct("mode") if name != "kill"):
        for cost in runs.at(mode=mode).distinct("cost_s"):
            here = runs.at(mode=mode, cost_s=cost)
            assert not here.values("lost").any()
            assert here.values("taken").all() == here.values("delayed").all() == bool(cost)
            assert "store" in mode or not here.values("waiting for the store").any()
            if not cost:
                assert not here.values("violations").any()
    # At no cost it does not matter where the work is kept.
    free = [runs.at(mode=mode, cost_s=0) for mode in ("checkpoint", "suspend")]
    for name in ("mbs", "mwbs", "wait_s", "preempted"):
        assert free[0].values(name) == pytest.approx(free[1].values(name))


def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("preemption_mode")
    assert study.figure.stat().st_size > 10_000
    for title in ("PV-EASY by mode and cost", "Cost up to which a mode is better than killing"):
        assert title in study.printed
    claim_what_is_saved(study.runs)


def test_break_even(load: Callable[[str], ModuleType]) -> None:
    break_even = load("preemption_mode").break_even
    assert break_even([0, 10, 100], [1, 2, 4], 3) == "55 s"
    assert break_even([0, 10, 100], [1, 3, 4], 3) == "10 s"
    assert break_even([0, 10, 100], [1, 2, 2.9], 3) == "not in this range"
    assert break_even([0, 10, 100], [3, 2, 4], 3) == "at no cost"


@pytest.mark.parametrize("name", STORED)
def test_stored(load: Callable[[str], ModuleType], name: str) -> None:
    script = load("preemption_mode")
    runs = load("reporting").read(FIGURES / f"{name}.json")
    assert all(runs.at(mode=mode).distinct("cost_s") == list(script.COSTS_S) for mode in script.saving_modes(runs))
    claim_what_is_saved(runs)


def test_a_store(load: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str]) -> None:
    script = load("preemption_mode")
    script.main(["--jobs", "200", "--replications", "1", "--workers", "1", "--store", "4", "--markdown"])
    assert "| checkpoint, a store of 4 tasks, 60 s |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        script.main(["--store", "0"])
    *_, last = capsys.readouterr().err.strip().splitlines()
    assert last.endswith("error: argument --store: '0' is not allowed; it must be a whole number >= 1")
