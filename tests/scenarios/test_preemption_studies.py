"""Selective suspension by class of jobs, and urgent jobs in gang scheduling: small runs, pages, and what the pages say."""

from typing import Any

import pytest

from clustermodel import StudyTable, synthetic_workload
from clustermodel.measure.statistics import Interval
from tests.scenarios.test_studies import Small
from tests.scenarios.test_studies import test_small_tables_are_those_that_are_checked_in as check_small_table
from tests.scenarios.test_yuan_2010 import MBS, SIZE
from tests.scripts import defined_in, mean, stored

RESPONSE = "mean_response_s"
SMALL = [
    Small("papers/kettimuthu_2005/job_classes.py", "selective_suspension", {**SIZE, "factors": "2"}),
    Small("hypothetical/urgent_jobs.py", "urgent_jobs", SIZE),
]


@pytest.mark.long
@pytest.mark.parametrize("small", SMALL, ids=lambda small: small.known)
def test_small_tables(small: Small) -> None:
    check_small_table(small)


def spent(row: dict[str, Any], *names: str) -> set[str]:
    return {name for name in names if row[f"{name}_share"]}


def test_each_mode_of_selective_suspension_pays_its_own_accounts() -> None:
    paid = {
        "": set(),
        "suspend": {"context_switch"},
        "suspend, free": set(),
        "checkpoint": {"checkpoint", "restart"},
        "kill": {"lost"},
    }
    for row in stored("job_classes_kth").frame.to_dict("records"):
        assert spent(row, "context_switch", "checkpoint", "restart", "lost") == paid[row["policy"].partition("mode=")[2]]
        assert bool(row["preempted"]) == (row["policy"] != "easy")


def test_classes_are_all_jobs() -> None:
    frame = stored("job_classes_kth").frame
    names = [name.removeprefix("jobs: ") for name in frame if str(name).startswith("jobs: ")]
    assert len(names) == 16
    counts = frame[[f"jobs: {name}" for name in names]].to_numpy()
    slowdowns = frame[[f"slowdown: {name}" for name in names]].to_numpy()
    assert (counts.sum(axis=1) == 28_481).all()
    assert ((counts * slowdowns).sum(axis=1) / 28_481).tolist() == pytest.approx(frame[MBS].tolist())


def test_selective_suspension_on_kth() -> None:
    frame = stored("job_classes_kth").frame.set_index("policy")
    row = {str(policy): frame.loc[str(policy)] for policy in frame.index}
    easy, suspend, checkpoint = (row[policy] for policy in ("easy", "ss:sf=2,mode=suspend", "ss:sf=2,mode=checkpoint"))
    names = [str(name) for name in frame if str(name).startswith("slowdown: ")]
    assert (round(easy[MBS], 1), round(checkpoint[MBS], 1)) == (92.8, 16.1)
    assert round(checkpoint[RESPONSE] / easy[RESPONSE], 2) == 1 - 0.26
    paying = [name for name in names if checkpoint[name] >= easy[name]]
    assert paying == ["slowdown: very long, sequential", "slowdown: very long, very wide"]
    assert checkpoint[paying[0]] / easy[paying[0]] < 1.01
    assert (round(checkpoint[paying[1]], 2), round(easy[paying[1]], 2)) == (2.14, 1.84)
    assert easy["jobs: very long, very wide"] == 68
    losing = [name for name in names if suspend[name] >= easy[name]]
    assert losing == ["slowdown: short, wide", *(name for name in names if " long, " in name)]
    assert (round(suspend["slowdown: very long, wide"], 2), round(easy["slowdown: very long, wide"], 2)) == (5.75, 1.34)
    assert round(suspend[RESPONSE] / easy[RESPONSE], 1) == 2.0
    assert round(100 * suspend["context_switch_share"], 2) == 0.37
    assert row["ss:sf=2,mode=suspend, free"][RESPONSE] > suspend[RESPONSE]
    reluctant = row["ss:sf=10,mode=suspend"]
    assert round(reluctant[MBS], 1) == 23.4
    assert round(reluctant[RESPONSE] / easy[RESPONSE], 2) == 0.93
    killing = [one for policy, one in row.items() if policy.endswith("kill")]
    lost = [round(100 * one["lost_share"]) for one in killing]
    assert (min(lost), max(lost)) == (19, 31)
    assert all(one[MBS] > easy[MBS] and one[RESPONSE] > easy[RESPONSE] for one in killing)


def test_urgent_jobs_of_a_seed_are_the_same_for_all_policies() -> None:
    workload = synthetic_workload(jobs=500)
    drawn = [
        defined_in("hypothetical/urgent_jobs").with_urgent_jobs(workload, 0.2, seed).column("priority").tolist()
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert set(drawn[0]) == {0, 1}
    assert 50 < sum(drawn[0]) < 150


def test_costs_of_preempting_for_urgent_jobs() -> None:
    """Each mode pays its own accounts; with ``urgent=kill`` only other urgent jobs keep an urgent job waiting."""
    table = stored("urgent_jobs_kth")
    paid: dict[str, set[str]] = {"bgs": set(), "bgs:urgent=kill": {"lost"}, "easy": set(), "ss": set()}
    for row in table.frame.to_dict("records"):
        assert spent(row, "checkpoint", "restart", "lost") == paid.get(row["policy"], {"checkpoint", "restart"})
        assert bool(row["preemptions"]) == (row["policy"] not in ("bgs", "mbgs", "easy"))
        assert bool(row["context_switch_share"]) == (row["policy"] != "easy")
    assert not table.at(policy="bgs:urgent=kill").frame["longest_wait_alone_s"].any()
    assert (table.frame.groupby("replication")["urgent_jobs"].nunique() == 1).all()
    assert {table.interval("kappa", policy=policy).count for policy in table.levels("policy")} == {10}


def test_urgent_jobs_on_kth() -> None:
    table = stored("urgent_jobs_kth")

    def of(policy: str, name: str) -> float:
        return mean(table, name, policy=policy)

    kill, checkpoint, suspend = (f"bgs:urgent={mode}" for mode in ("kill", "checkpoint", "suspend"))
    assert defined_in("hypothetical/urgent_jobs").ROTATION_S == 864
    assert [round(100 * of(policy, "start_at_once")) for policy in ("bgs", checkpoint)] == [95, 45]
    responses = [of(policy, f"{RESPONSE}: urgent") for policy in (kill, suspend, checkpoint)]
    assert [round(response) for response in responses] == [8112, 8219, 8364]
    assert max(responses) < of("bgs", f"{RESPONSE}: urgent") / 2
    assert of("mbgs:urgent=checkpoint", f"{RESPONSE}: urgent") < max(responses)
    assert round(of("easy", f"{MBS}: urgent"), 1) == 34.0
    assert [round(of(policy, "mean_wait_s: urgent")) for policy in ("bgs", checkpoint)] == [634, 323]
    assert [round(of(policy, "longest_wait_alone_s")) for policy in (checkpoint, suspend)] == [2065, 1251]
    assert [round(100 * of(policy, "over_a_rotation"), 2) for policy in (checkpoint, suspend)] == [5.82, 0.61]
    longer = [of(policy, f"{RESPONSE}: others") / of("bgs", f"{RESPONSE}: others") for policy in (checkpoint, suspend, kill)]
    assert [round(ratio, 2) for ratio in longer[:2]] == [1.08, 1.10]
    assert round(longer[2]) == 7
    saving = [100 * (of(policy, "checkpoint_share") + of(policy, "restart_share")) for policy in (checkpoint, suspend)]
    assert [round(share, 2) for share in saving] == [0.23, 0.18]
    assert round(100 * of(kill, "lost_share")) == 30
    assert [round(of(policy, f"{MBS}: large"), 1) for policy in ("bgs", kill)] == [43.7, pytest.approx(1525, abs=0.5)]


def test_differences_between_policies_with_urgent_jobs() -> None:
    table: StudyTable = stored("urgent_jobs_kth")

    def apart(policy: str, base: str, name: str) -> Interval:
        return table.difference(name, {"policy": policy}, {"policy": base})

    checkpoint, suspend = "bgs:urgent=checkpoint", "bgs:urgent=suspend"
    expected = {
        (checkpoint, "bgs", "p95_wait_s: urgent"): (709, 294),
        (checkpoint, "bgs", f"{RESPONSE}: others"): (1463, 223),
        (suspend, "bgs", f"{RESPONSE}: others"): (1931, 441),
        ("mbgs:urgent=checkpoint", "mbgs", f"{RESPONSE}: urgent"): (-5092, 450),
        ("mbgs:urgent=checkpoint", "mbgs", f"{RESPONSE}: others"): (307, 178),
    }
    found = {key: apart(*key) for key in expected}
    assert {key: (round(one.mean), round(one.half)) for key, one in found.items()} == expected
    assert len(defined_in("hypothetical/urgent_jobs").PAIRED) * 7 == 49
    for policy, group in (("ss", "urgent"), (checkpoint, "others"), (suspend, "others")):
        assert 0 in apart(policy, "bgs", f"{MBS}: {group}")
