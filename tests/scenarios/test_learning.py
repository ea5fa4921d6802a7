"""The agent of scenarios/learning: what it chooses by hand-made weights, its windows, and what the page says of its results."""

import numpy as np
import pytest

from clustermodel import Job, Machine, Scenario, Workload, check_policy
from clustermodel.experiment.exhibits import exhibits_of
from tests.conftest import refusal
from tests.scripts import SCENARIOS, defined_in, stored, study_of

SCORER, HALVES = defined_in("learning/scorer"), defined_in("learning/halves")
SHORTEST, RESERVING, STRICT = (0, -1, 0, 0, 0, -9), (0, -1, 0, 0, -9, -5), (0, -1, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("weights", "run_s", "starts"),
    [(SHORTEST, 1, [0, 100, 11, 12]), (RESERVING, 39, [0, 50, 11, 90]), (STRICT, 41, [0, 50, 90, 90])],
    ids=["shortest", "reserving", "strict"],
)
def test_what_the_scorer_starts(weights: tuple[float, ...], run_s: float, starts: list[float]) -> None:
    """Jobs 3 and 4 fit beside job 1, which ends at 50; job 2 needs all nodes, and only a short job 3 does not delay it."""
    jobs = [
        Job(id=1, nodes=3, submit_s=0, run_s=50),
        Job(id=2, nodes=4, submit_s=10, run_s=40),
        Job(id=3, nodes=1, submit_s=11, run_s=run_s),
        Job(id=4, nodes=1, submit_s=12, run_s=88),
    ]
    result = Scenario(workload=Workload.from_jobs(jobs), machine=Machine(nodes=4), policy=SCORER.agent(weights)).run()
    assert result.jobs["start_s"].tolist() == starts


def test_windows_have_no_job_in_common_and_none_that_was_learnt_from() -> None:
    first, second = HALVES.halves(None, 1100, 16)
    windows = [HALVES.window(second, number) for number in (1, 2)]
    ids = [set(jobs.column("id").tolist()) for jobs in (first, *windows)]
    assert [len(of) for of in ids] == [550, 256, 256]
    assert len(set.union(*ids)) == 1062
    assert refusal(lambda: HALVES.window(second, 3)).endswith("has 2 windows of 256 jobs; give at most as many")


@pytest.mark.long
def test_a_small_study() -> None:
    study = study_of("learning/unseen_jobs", {"jobs": "1100", "nodes": "32", "replications": "2"})
    exhibits = exhibits_of(study, study.run(workers=1))
    assert not exhibits.problems
    assert (len(exhibits.tables), len(exhibits.figures)) == (3, 1)


@pytest.mark.long
@pytest.mark.parametrize("weights", ["lublin_256", "kth"])
def test_the_trained_agents_conform(weights: str) -> None:
    read = SCORER.trained(SCENARIOS / "learning" / f"{weights}.json")
    assert tuple(read["weights"]) == SCORER.WEIGHTS
    assert read["curve"][-1] < read["curve"][0]
    assert check_policy(SCORER.agent(tuple(read["weights"].values()))) == []


def differs(trace: str, policy: str, measure: str = "log_slowdown") -> int:
    """Return the sign of the difference of a policy from the agent, 0 where the interval contains 0."""
    difference = stored(f"learning_{trace}").difference(measure, {"policy": policy}, {"policy": "agent"})
    return int(np.sign(difference.mean)) if 0 not in difference else 0


def test_what_the_page_says() -> None:
    for trace in ("lublin", "kth"):
        assert differs(trace, "EASY") == differs(trace, "EASY, shortest first") == 1
        assert differs(trace, "EASY", "longest_wait_s") == -1
    assert (differs("lublin", "SJF"), differs("kth", "SJF")) == (1, 0)
    assert (differs("lublin", "scorer, by hand"), differs("kth", "scorer, by hand")) == (0, 1)
