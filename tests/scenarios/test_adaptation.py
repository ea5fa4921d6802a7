"""The study of adaptation runs small, and its table is the one that is checked in.

After a deliberate change: ``python scenarios/adaptation.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/adaptation.json``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from clustermodel.policies.backfilling.scheduler import Backfilling
from tests.scenarios.conftest import Study


def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("adaptation")
    assert study.figure.stat().st_size > 10_000
    for title in ("Figure 7", "Figure 8", "Figure 9"):
        assert title in study.printed
    script, runs = study.script, study.runs
    for algorithm in runs.distinct("algorithm"):
        asked, half, quarter = (script.at(runs, algorithm, name) for name in ("as asked", "half", "quarter"))
        assert (half.values("response_s") > asked.values("response_s")).all()  # jobs run twice as long
        assert (quarter.values("wait_s") < asked.values("wait_s")).all()
        assert (asked.values("waste") == 0).all()


def test_every_technique_is_a_scheduler(load: Callable[[str], ModuleType]) -> None:
    script = load("adaptation")
    for arguments in script.TECHNIQUES.values():
        Backfilling(**arguments)
    shown = {technique for techniques in script.FIGURES.values() for technique in techniques}
    assert shown == set(script.TECHNIQUES)
