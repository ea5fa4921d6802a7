"""The memory of workloads: the same jobs for the same arguments, made once; bounded, and nothing shared that can change."""

import inspect
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from clustermodel import SpecificationError, Study, Workload, load_model, synthetic_workload
from clustermodel.experiment.run_key import Opened
from clustermodel.workload import remembered as memory
from clustermodel.workload.job import JobRow
from clustermodel.workload.remembered import remembered

made: list[object] = []


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    memory._kept.clear()
    made.clear()
    yield
    memory._kept.clear()


@remembered
def jobs(count: object = 3, *, seed: object = 1) -> Workload:
    """Make so many jobs."""
    made.append((count, seed))
    number = count if isinstance(count, int) else 3
    return Workload([JobRow(at, at, 1, 1, 1, -1, -1, 0, -1) for at in range(number)])


def test_the_same_arguments_make_jobs_once_and_others_again() -> None:
    for _ in range(2):
        jobs(3), jobs(), jobs(count=3), jobs(3, seed=1), jobs(3, seed=2)
    assert made == [(3, 1), (3, 1), (3, 1), (3, 1), (3, 2)]  # however they are written down
    made.clear()
    jobs(1), jobs(1.0), jobs(True), jobs(np.int64(1))
    assert len(made) == 4  # equal, and not the same


def test_arguments_without_a_hash_are_passed_on() -> None:
    for _ in range(2):
        jobs([1])
    assert len(made) == 2


def test_the_oldest_are_forgotten_when_there_are_too_many_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST_KEPT", 10)
    jobs(4), jobs(5), jobs(4), jobs(3)  # 5 is used least recently
    made.clear()
    jobs(4), jobs(3)
    assert made == []
    jobs(5)
    assert made == [(5, 1)]
    jobs(11), jobs(11)
    assert made == [(5, 1), (11, 1), (11, 1)]


def test_a_change_of_one_workload_is_not_seen_by_the_next() -> None:
    first = synthetic_workload(jobs=20)
    first.name = "mine"
    second = synthetic_workload(jobs=20)
    assert second.name == "synthetic-1"
    assert second.column("submit").base is first.column("submit").base  # the jobs are shared, and read-only
    with pytest.raises(ValueError, match="read-only"):
        second.column("submit")[0] = 1
    opened = Opened(Study.grid(name="s", workloads={"w": first}, policies=["easy"]))
    assert opened.jobs_of(first) is opened.jobs_of(second)
    assert opened.jobs_of(synthetic_workload(jobs=21)) != opened.jobs_of(first)


def test_generated_workloads_are_those_that_are_made_anew() -> None:
    model = load_model("blue-pacific")
    first, again = (model.generate(jobs=50, seed=2) for _ in range(2))
    assert first.column("run").base is again.column("run").base
    memory._kept.clear()
    assert list(load_model("blue-pacific").generate(jobs=50, seed=2).rows()) == list(first.rows())
    assert list(model.generate(jobs=50, seed=3).rows()) != list(first.rows())
    with pytest.raises(SpecificationError, match="jobs: 0 is not allowed"):
        synthetic_workload(jobs=0)


def test_functions_look_as_before() -> None:
    assert list(inspect.signature(synthetic_workload).parameters) == ["jobs", "nodes", "load", "seed"]
    assert pickle.loads(pickle.dumps(synthetic_workload)) is synthetic_workload


def test_threads_may_share_it() -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda seed: jobs(5, seed=seed % 3), range(60)))
    assert all(len(one) == 5 for one in found)
    assert 3 <= len(made) <= 24
