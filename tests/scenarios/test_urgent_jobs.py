"""The study of urgent jobs runs small, and its table is the one that is checked in; the page has the stored one.

After a deliberate change: ``python scenarios/urgent_jobs.py --jobs 500 --replications 2 --workers 1 --json
tests/scenarios/urgent_jobs.json``; after a new run that is stored in docs/figures: ``python scenarios/urgent_jobs.py
--stored docs/figures/urgent_jobs_kth.json --figure docs/figures/urgent_jobs_kth.png --into docs/urgent_jobs.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.scenarios.conftest import FIGURES, ROOT, Study

KTH = "urgent_jobs_kth"
SAVING = {"checkpoint", "restart"}


def claim_what_preemption_costs(runs: Any) -> None:
    """Claim that each way to preempt is charged to its own accounts, and that only policies that preempt do."""
    paid = {"bgs": set(), "bgs:urgent=kill": {"lost"}, "easy": set(), "ss": set()}
    for row in runs.rows:
        spent = {account for account in ("checkpoint", "restart", "lost") if row[account]}
        assert spent == paid.get(row["policy"], SAVING)
        assert bool(row["preempted"]) == (row["policy"] not in ("bgs", "mbgs", "easy"))
        assert bool(row["context switch"]) == (row["policy"] != "easy")


def claim_that_killing_bounds_the_wait(runs: Any) -> None:
    """Claim that with ``urgent=kill`` only other urgent jobs can keep an urgent job waiting."""
    for row in runs.at(policy="bgs:urgent=kill").rows:
        assert row["longest alone"] == 0


def test_small(small_study: Callable[[str], Study]) -> None:
    study = small_study("urgent_jobs")
    assert study.figure.stat().st_size > 10_000
    for title in (
        "Waits, responses and mean bounded",
        "Paired differences to bgs",
        "What urgent jobs wait for",
        "What preemption",
    ):
        assert title in study.printed
    claim_what_preemption_costs(study.runs)
    claim_that_killing_bounds_the_wait(study.runs)


def test_the_urgent_jobs_of_a_seed_are_the_same_for_all_policies(load: Callable[[str], ModuleType]) -> None:
    script = load("urgent_jobs")
    workload = load("traces").Jobs(None, 128, 500).workload(1)
    drawn = [script.with_urgent_jobs(workload, seed, share=0.2).column("priority").tolist() for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert set(drawn[0]) == {0, 1}
    assert 50 < sum(drawn[0]) < 150


@pytest.mark.parametrize("value", ["0", "1", "x", "nan", "-0.5"])
def test_a_share_that_is_none_is_refused(
    load: Callable[[str], ModuleType], value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        load("urgent_jobs").main([f"--share={value}"])
    assert stopped.value.code == 2
    assert f"argument --share: {value!r} is not allowed; it must be a number > 0 and < 1" in capsys.readouterr().err


def test_stored(load: Callable[[str], ModuleType]) -> None:
    script = load("urgent_jobs")
    runs = load("reporting").read(FIGURES / f"{KTH}.json")
    assert len(runs.rows) == 10 * len(script.POLICIES)
    assert runs.facts["share"] == script.SHARE
    claim_what_preemption_costs(runs)
    claim_that_killing_bounds_the_wait(runs)
    for row in runs.rows:
        assert row["urgent jobs"] == runs.at(policy="bgs", replication=row["replication"]).rows[0]["urgent jobs"]


def test_the_page_has_the_stored_tables(load: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str]) -> None:
    load("urgent_jobs").main(["--stored", str(FIGURES / f"{KTH}.json"), "--markdown"])
    page = (ROOT / "docs" / "urgent_jobs.md").read_text()
    assert f"<!-- urgent_jobs KTH-SP2-1996-2.2 -->\n\n{capsys.readouterr().out}\n<!-- end -->" in page
    assert (FIGURES / f"{KTH}.png").stat().st_size > 10_000


def test_what_the_page_says_of_kth(load: Callable[[str], ModuleType]) -> None:
    script, reporting = load("urgent_jobs"), load("reporting")
    runs = reporting.read(FIGURES / f"{KTH}.json")

    def mean(policy: str, name: str) -> float:
        return float(runs.at(policy=policy).interval(name).mean)

    kill, checkpoint, suspend = (f"bgs:urgent={mode}" for mode in ("kill", "checkpoint", "suspend"))
    assert script.ROTATION_S == 864
    assert round(100 * mean("bgs", "at once")) == 95
    assert round(100 * mean(checkpoint, "at once")) == 45
    responses = [mean(policy, "urgent: response_s") for policy in (kill, suspend, checkpoint)]
    assert [round(response) for response in responses] == [8112, 8219, 8364]
    assert max(responses) < mean("bgs", "urgent: response_s") / 2
    assert mean("mbgs:urgent=checkpoint", "urgent: response_s") < max(responses)
    assert round(mean("easy", "urgent: slowdown"), 1) == 34.0
    assert [round(mean(policy, "urgent: wait_s")) for policy in ("bgs", checkpoint)] == [634, 323]
    assert [round(mean(policy, "longest alone")) for policy in (checkpoint, suspend)] == [2065, 1251]
    assert [round(100 * mean(policy, "beyond a rotation"), 2) for policy in (checkpoint, suspend)] == [5.82, 0.61]
    longer = [mean(policy, "others: response_s") / mean("bgs", "others: response_s") for policy in (checkpoint, suspend, kill)]
    assert [round(ratio, 2) for ratio in longer[:2]] == [1.08, 1.10]
    assert round(longer[2]) == 7
    saving = [100 * (mean(policy, "checkpoint") + mean(policy, "restart")) for policy in (checkpoint, suspend)]
    assert [round(share, 2) for share in saving] == [0.23, 0.18]
    assert round(100 * mean(kill, "lost")) == 30
    assert round(mean("bgs", "large: slowdown"), 1) == 43.7
    assert round(mean(kill, "large: slowdown")) == 1525


def test_what_the_page_says_of_differences(load: Callable[[str], ModuleType]) -> None:
    script, reporting = load("urgent_jobs"), load("reporting")
    runs = reporting.read(FIGURES / f"{KTH}.json")

    def apart(policy: str, base: str, name: str) -> tuple[int, int]:
        found = reporting.interval(runs.at(policy=policy).values(name) - runs.at(policy=base).values(name))
        return round(found.mean), round(found.half)

    assert apart("bgs:urgent=checkpoint", "bgs", "urgent: p95_s") == (709, 294)
    assert apart("bgs:urgent=checkpoint", "bgs", "others: response_s") == (1463, 223)
    assert apart("bgs:urgent=suspend", "bgs", "others: response_s") == (1931, 441)
    assert apart("mbgs:urgent=checkpoint", "mbgs", "urgent: response_s") == (-5092, 450)
    assert apart("mbgs:urgent=checkpoint", "mbgs", "others: response_s") == (307, 178)
    assert len(script.PAIRED) * (len(script.POLICIES) - 1) == 49
    for policy, name in (("ss", "urgent"), ("bgs:urgent=checkpoint", "others"), ("bgs:urgent=suspend", "others")):
        difference = script.difference(runs, policy, f"{name}: slowdown")
        assert abs(difference.mean) < difference.half
