"""The study of selective suspension runs small, and its table is the one that is checked in; the page has the stored one.

After a deliberate change: ``python scenarios/selective_suspension.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/selective_suspension.json``; after a new run that is stored in docs/figures: ``python
scenarios/selective_suspension.py --stored docs/figures/selective_suspension_kth.json --figure
docs/figures/selective_suspension_kth.png --into docs/selective_suspension.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.scenarios.conftest import FIGURES, ROOT, Study

KTH = "selective_suspension_kth"


def mode_of(policy: str) -> str:
    return policy.partition("mode=")[2]


def claim_what_preemption_costs(runs: Any) -> None:
    """Claim that each way to preempt is charged to its own accounts, and that EASY pays for none of them."""
    paid = {
        "": set(),
        "suspend": {"context switch"},
        "suspend, at no cost": set(),
        "checkpoint": {"checkpoint", "restart"},
        "kill": {"lost"},
    }
    for row in runs.rows:
        spent = {account for account in ("context switch", "checkpoint", "restart", "lost") if row[account]}
        assert spent == paid[mode_of(row["policy"])]
        assert bool(row["preempted"]) == (row["policy"] != "easy")


def claim_that_classes_are_all_jobs(script: ModuleType, runs: Any) -> None:
    for row in runs.rows:
        jobs = [row[f"jobs: {name}"] for name in script.CLASSES]
        assert sum(jobs) == runs.facts["jobs"]
        total = sum(number * row[name] for number, name in zip(jobs, script.CLASSES, strict=True) if number)
        assert total / sum(jobs) == pytest.approx(row["slowdown"])


def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("selective_suspension")
    assert study.figure.stat().st_size > 10_000
    for title in ("Selective suspension and what it costs", "Mean bounded slowdown by class of run time and size"):
        assert title in study.printed
    claim_what_preemption_costs(study.runs)
    claim_that_classes_are_all_jobs(study.script, study.runs)


def test_stored(load: Callable[[str], ModuleType], stored_study: Callable[[str], str]) -> None:
    script = load("selective_suspension")
    runs = load("reporting").read(FIGURES / f"{KTH}.json")
    assert len(runs.rows) == 2 + len(script.FACTORS) * len(script.MODES)
    claim_what_preemption_costs(runs)


def test_the_page_has_the_stored_tables(load: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str]) -> None:
    load("selective_suspension").main(["--stored", str(FIGURES / f"{KTH}.json"), "--markdown"])
    page = (ROOT / "docs" / "selective_suspension.md").read_text()
    assert f"<!-- selective_suspension KTH-SP2-1996-2.2 -->\n\n{capsys.readouterr().out}\n<!-- end -->" in page
    assert (FIGURES / f"{KTH}.png").stat().st_size > 10_000


def test_what_the_page_says_of_kth(load: Callable[[str], ModuleType]) -> None:
    script = load("selective_suspension")
    runs = load("reporting").read(FIGURES / f"{KTH}.json")
    row = {one["policy"]: one for one in runs.rows}
    claim_that_classes_are_all_jobs(script, runs)
    easy, suspend, checkpoint = (row[policy] for policy in ("easy", "ss:sf=2,mode=suspend", "ss:sf=2,mode=checkpoint"))
    assert (round(easy["slowdown"], 1), round(checkpoint["slowdown"], 1)) == (92.8, 16.1)
    assert round(checkpoint["response_s"] / easy["response_s"], 2) == 1 - 0.26
    paying = [name for name in script.CLASSES if checkpoint[name] >= easy[name]]
    assert paying == ["very long, sequential", "very long, very wide"]
    assert checkpoint[paying[0]] / easy[paying[0]] < 1.01
    assert (round(checkpoint[paying[1]], 2), round(easy[paying[1]], 2)) == (2.14, 1.84)
    assert easy["jobs: very long, very wide"] == 68
    losing = [name for name in script.CLASSES if suspend[name] >= easy[name]]
    assert losing == ["short, wide", *(name for name in script.CLASSES if name.startswith(("long", "very long")))]
    assert (round(suspend["very long, wide"], 2), round(easy["very long, wide"], 2)) == (5.75, 1.34)
    assert round(suspend["response_s"] / easy["response_s"], 1) == 2.0
    assert round(100 * suspend["context switch"], 2) == 0.37
    assert row[script.FREE]["response_s"] > suspend["response_s"]
    reluctant = row["ss:sf=10,mode=suspend"]
    assert round(reluctant["slowdown"], 1) == 23.4
    assert round(reluctant["response_s"] / easy["response_s"], 2) == 0.93
    killing = [one for policy, one in row.items() if mode_of(policy) == "kill"]
    assert [round(100 * share) for share in (min(one["lost"] for one in killing), max(one["lost"] for one in killing))] == [
        19,
        31,
    ]
    assert all(one["slowdown"] > easy["slowdown"] and one["response_s"] > easy["response_s"] for one in killing)
