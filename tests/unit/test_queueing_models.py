"""The jobs of queueing formulas, means of the middle of a run, and control variates."""

from __future__ import annotations

import numpy as np
import pytest

from clustermodel import Exponential, Machine, Scenario, SpecificationError, Workload
from clustermodel.experiment.queueing_models import (
    mean_gap,
    mean_response,
    mean_run,
    mean_wait,
    middle,
    model_jobs,
    shared_response,
    shared_work_response,
)

SIZES = {1: 0.5, 4: 0.5}


def jobs_of(stream: str = "a", per_s: float | None = 0.02, seed: int = 1) -> Workload:
    return model_jobs(jobs=4000, seed=seed, stream=stream, run_s=Exponential(100), per_s=per_s, sizes=SIZES)


def test_jobs_have_the_rate_the_mean_and_the_sizes() -> None:
    jobs = jobs_of()
    assert np.diff(jobs.seconds("submit")).mean() == pytest.approx(50, rel=0.05)
    assert jobs.seconds("run").mean() == pytest.approx(100, rel=0.05)
    assert (jobs.column("estimate") == jobs.column("run")).all()
    assert set(jobs.column("nodes").tolist()) == {1, 4}
    assert (jobs.column("nodes") == 4).mean() == pytest.approx(0.5, abs=0.03)


def test_streams_and_seeds_are_independent_and_ingredients_are_not_mixed_up() -> None:
    jobs, other = jobs_of(), jobs_of("b")
    for name in ("submit", "run"):
        assert abs(np.corrcoef(np.diff(jobs.seconds(name)), np.diff(other.seconds(name)))[0, 1]) < 0.06
    faster = jobs_of(per_s=0.04)
    assert faster.seconds("submit") == pytest.approx(jobs.seconds("submit") / 2, abs=1e-6)
    assert (faster.column("run") == jobs.column("run")).all()
    assert (jobs_of(seed=2).column("run") != jobs.column("run")).any()


def test_all_at_once_equal_run_times_and_means_by_size() -> None:
    assert not jobs_of(per_s=None).column("submit").any()
    assert set(model_jobs(jobs=5, seed=1, stream="a", run_s=7.0).seconds("run").tolist()) == {7.0}
    jobs = model_jobs(jobs=4000, seed=1, stream="a", run_s={1: 10.0, 4: 1000.0}, sizes=SIZES)
    run, nodes = jobs.seconds("run"), jobs.column("nodes")
    assert [run[nodes == size].mean() for size in SIZES] == pytest.approx([10, 1000], rel=0.1)


@pytest.mark.parametrize("wrong", [{"jobs": 0}, {"per_s": 0.0}, {"per_s": -1.0}])
def test_wrong_arguments_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SpecificationError, match=f"^{next(iter(wrong))}: "):
        model_jobs(**({"jobs": 5, "seed": 1, "stream": "a", "run_s": 1.0} | wrong))  # type: ignore[arg-type]


def test_the_middle_leaves_out_the_first_fifth_and_the_last_twentieth() -> None:
    assert middle(np.arange(100.0)).tolist() == list(range(20, 95))


def test_measures_of_the_middle() -> None:
    workload = model_jobs(jobs=100, seed=1, stream="a", run_s=Exponential(100), per_s=0.01)
    result = Scenario(machine=Machine(nodes=1), workload=workload, policy="fcfs").run()
    jobs = result.jobs.iloc[20:95]
    assert mean_wait(result) == pytest.approx(jobs["wait_s"].mean())
    assert mean_response(result) == pytest.approx(jobs["response_s"].mean())
    assert mean_run(result) == pytest.approx(jobs["run_s"].mean())
    assert mean_gap(result) == pytest.approx(jobs["submit_s"].diff().mean())


def test_control_variates_share_the_nodes() -> None:
    """Where no two jobs meet, the response is the run time; its work takes half as long on four."""
    workload = model_jobs(jobs=40, seed=1, stream="a", run_s=10.0, per_s=1e-6, sizes={2: 1.0})
    result = Scenario(machine=Machine(nodes=4), workload=workload, policy="fcfs").run()
    assert shared_response(result) == pytest.approx(10.0)
    assert shared_work_response(result) == pytest.approx(5.0)
