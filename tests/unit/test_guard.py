"""What a policy cannot do by assigning: change jobs, gangs, the view or the machine.  The refusal names the field."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest

from clustermodel import DecisionError, Job, Machine, NodeFailures, Partition, Scenario, Start, Workload, check_policy
from clustermodel.experiment.result import Result
from clustermodel.policies.easy import Easy
from clustermodel.policies.interface import Decision, PolicyFunction, Setup
from clustermodel.policies.predictors import PREDICTORS
from clustermodel.policies.registry import make_policy, policy_names
from clustermodel.policies.view import Batch, Outage, QueuedJob, RunningJob, View, copy_of
from clustermodel.sim.guard import is_shipped

pytestmark = pytest.mark.compiled
JOBS = [Job(id=n, nodes=2, submit_s=10 * n, run_s=35) for n in (1, 2, 3)]


def run(policy: Any, jobs: Sequence[Job] = JOBS, machine: Machine | None = None) -> Result:
    return Scenario(machine=machine or Machine(nodes=4), workload=Workload.from_jobs(jobs), policy=policy).run()


@dataclass(frozen=True)
class Meddler:
    """First come, first served, after something has been done to what it sees."""

    meddle: Callable[[Batch, View], object]
    name: str = "p"

    def start(self, setup: Setup) -> "Meddler":
        return self

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        self.meddle(batch, view)
        fit, idle = list[Decision](), view.idle
        for job in view.waiting.values():
            if job.nodes > idle:
                break
            fit.append(Start(job=job))
            idle -= job.nodes
        return fit


def sets(field: str, things: Callable[[Batch, View], Sequence[object]]) -> Callable[[Batch, View], None]:
    """Return what assigns its own value to a field of each thing, which would change nothing."""

    def meddle(batch: Batch, view: View) -> None:
        for thing in things(batch, view):
            setattr(thing, field, getattr(thing, field))

    return meddle


def waiting(_batch: Batch, view: View) -> Sequence[QueuedJob]:
    return list(view.waiting.values())


def submitted(batch: Batch, _view: View) -> Sequence[QueuedJob]:
    return batch.submitted


def of_running(_batch: Batch, view: View) -> Sequence[QueuedJob]:
    return [gang.job for gang in view.running.values()]


def running(_batch: Batch, view: View) -> Sequence[RunningJob]:
    return list(view.running.values())


def ended(batch: Batch, _view: View) -> Sequence[RunningJob]:
    return batch.ended


@pytest.mark.parametrize("field", list(QueuedJob.__slots__) if hasattr(QueuedJob, "__slots__") else ["nodes", "estimate"])
@pytest.mark.parametrize("jobs", [waiting, submitted, of_running])
def test_no_field_of_a_job_can_be_set(field: str, jobs: Callable[[Batch, View], Sequence[object]]) -> None:
    with pytest.raises(DecisionError, match=rf"^policy p: it sets {field}; a policy may not change jobs$"):
        run(Meddler(sets(field, jobs)))


@pytest.mark.parametrize("field", ["job", "start", "expected_end", "columns", "nodes", "rows", "ran", "state"])
@pytest.mark.parametrize("gangs", [running, ended])
def test_no_field_of_a_gang_can_be_set(field: str, gangs: Callable[[Batch, View], Sequence[object]]) -> None:
    with pytest.raises(DecisionError, match=rf"^policy p: it sets {field}; a policy may not change running jobs$"):
        run(Meddler(sets(field, gangs)))


@pytest.mark.parametrize("field", [*getattr(View, "__slots__", ["now", "idle", "waiting", "fits"])])
def test_no_field_of_the_view_can_be_set(field: str) -> None:
    with pytest.raises(DecisionError, match=rf"^policy p: it sets {field}; a policy may not change what it is shown$"):
        run(Meddler(sets(field, lambda _batch, view: [view])))


@pytest.mark.parametrize("field", Batch._fields)
def test_no_field_of_the_batch_can_be_set(field: str) -> None:
    with pytest.raises(
        DecisionError, match=rf"^policy p: it sets {field} of the batch; a policy may not change what has happened$"
    ):
        run(Meddler(sets(field, lambda batch, _view: [batch])))


def test_nothing_of_an_outage_the_setup_or_the_machine_can_be_set() -> None:
    def of_outages(_batch: Batch, view: View) -> Sequence[Outage]:
        return list(view.down.values())

    machine = Machine(nodes=4, failures=NodeFailures(mtbf_s=50.0, repair_s=30.0))
    with pytest.raises(
        DecisionError, match=r"^policy p: it sets node of the outage of node \d; a policy may not change outages$"
    ):
        run(Meddler(sets("node", of_outages)), machine=machine)

    def meddles(setup: Setup) -> Meddler:
        setup.nodes = 9  # type: ignore[misc]
        return Meddler(lambda _batch, _view: None)

    with pytest.raises(
        DecisionError, match=r"^policy meddles: it sets nodes of the setup; a policy may not change what it is told$"
    ):
        run(meddles)

    def changes_machine(setup: Setup) -> Meddler:
        setup.machine.nodes = 9  # type: ignore[misc]
        return Meddler(lambda _batch, _view: None)

    with pytest.raises(FrozenInstanceError, match=r"^cannot assign to field 'nodes'$"):
        run(changes_machine)


def test_jobs_cannot_be_put_into_or_taken_out_of_the_queue_by_hand() -> None:
    for meddle in (
        lambda _batch, view: view.waiting.clear(),
        lambda _batch, view: view.running.popitem(),
        lambda _batch, view: view.down.update({}),
    ):
        with pytest.raises(AttributeError, match="'mappingproxy' object has no attribute"):
            run(Meddler(meddle))
    plain = run(Meddler(lambda _batch, _view: None)).jobs
    clears = Meddler(lambda batch, view: (batch.submitted.clear(), batch.ended.clear(), view.expected_left().clear()))  # type: ignore[attr-defined]
    assert run(clears).jobs.equals(plain)


def test_deleting_a_field_and_deciding_by_yield_are_refused_too() -> None:
    def delete(_batch: Batch, view: View) -> None:
        for job in view.waiting.values():
            del job.memory

    with pytest.raises(DecisionError, match=r"^policy p: it (deletes|sets) memory\b"):
        run(Meddler(delete))

    def yields(setup: Setup) -> Any:
        def decide(_batch: Batch, view: View) -> Iterator[Decision]:
            for job in list(view.waiting.values()):
                job.estimate = 1
                yield Start(job=job)

        return decide

    with pytest.raises(DecisionError, match=r"^policy yields: it sets estimate\b"):
        run(yields)


class LastOfAll:
    """A predictor that writes."""

    def start(self, _setup: Setup) -> "LastOfAll":
        return self

    def submitted(self, job: QueuedJob) -> None:
        job.estimate = 1

    def predict(self, job: QueuedJob) -> int:
        return job.estimate

    def ended(self, job: QueuedJob, run: int) -> None:
        pass


def test_a_part_of_a_user_cannot_either() -> None:
    with pytest.raises(DecisionError, match=r"^policy easy: it sets estimate\b"):
        run(Easy(predictor=LastOfAll()))


def test_check_policy_reports_it_once_a_case() -> None:
    broken = check_policy(Meddler(sets("nodes", waiting)))
    assert broken
    assert {rule.rule for rule in broken} == {"never asks for the impossible, leaves no job behind"}
    assert all("it sets nodes" in rule.detail for rule in broken)


class Mine(Easy):
    """A policy of a user that does what a shipped one does."""


@pytest.mark.parametrize("partitions", [(), (Partition(name="a", nodes="0-1"), Partition(name="b", nodes="2-3"))])
def test_a_policy_that_sets_nothing_has_the_schedule_of_the_shipped_one(partitions: tuple[Partition, ...]) -> None:
    jobs = [
        Job(
            id=n,
            nodes=1 + n % 2,
            submit_s=5 * n,
            run_s=7 * (n % 5) + 1,
            estimate_s=40,
            partition="ab"[n % 2] if partitions else None,
        )
        for n in range(1, 40)
    ]
    machine = Machine(nodes=4, partitions=partitions)
    assert run(Mine(), jobs, machine).jobs.equals(run("easy", jobs, machine).jobs)


def test_which_policies_are_of_this_package() -> None:
    for name in policy_names():
        if name != "backfilling":
            assert is_shipped(make_policy(name)), name
    assert all(is_shipped(make_policy(f"easy:predictor={name}")) for name in PREDICTORS if ":" not in name)
    assert not is_shipped(Mine())
    assert not is_shipped(Easy(predictor=LastOfAll()))
    assert not is_shipped(PolicyFunction("own", lambda _setup: Meddler(lambda _batch, _view: None)))


def test_a_copy_of_a_view_shows_all_that_the_view_shows() -> None:
    seen: list[str] = []

    def look(_: Batch, view: View) -> None:
        own = copy_of(view)
        seen.extend(name for name in View.__annotations__ if getattr(own, name) != getattr(view, name))

    run(Meddler(look))
    assert not seen
