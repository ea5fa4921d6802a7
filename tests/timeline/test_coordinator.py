"""The coordinator's own semantics: settling, alarms, kills, merging streams, the horizon."""

from collections.abc import Sequence

import numpy as np
import pytest

import clustermodel as cm
from clustermodel.policies.fcfs import Fcfs
from clustermodel.policies.interface import Decision
from clustermodel.policies.registry import make_policy
from clustermodel.recording.ledger import Account
from clustermodel.sim.simulation import simulate
from clustermodel.theory.capacity_loss import capacity_loss
from clustermodel.ticks import to_ticks
from clustermodel.workload.job import JobRow
from tests.timeline.timeline import play, spans


class Recorder(Fcfs):
    """FCFS that writes down what it is told."""

    name = "recorder"

    def start(self, setup: cm.Setup) -> object:
        self.calls: list[tuple[int, list[int], list[int], bool]] = []
        return self

    def decide(self, batch: cm.Batch, view: cm.View) -> list[Decision]:
        ended = [gang.job.id for gang in batch.ended]
        self.calls.append((view.now // 1_000_000, ended, [job.id for job in batch.submitted], batch.alarm))
        return super().decide(batch, view)


def test_everything_of_one_instant_reaches_the_policy_in_one_batch_ends_and_submissions_in_queue_order() -> None:
    policy = Recorder()
    play(4, "2 0 1 10\n1 0 1 10\n9 10 1 5\n3 10 1 5 5 1\n4 12 5 1", policy)
    # Job 4 is too wide and never reaches the policy; 3 has the higher priority, so it comes before 9.
    assert policy.calls == [(0, [], [1, 2], False), (10, [1, 2], [3, 9], False), (15, [3, 9], [], False)]


class Scripted(Fcfs):
    """FCFS that also does what a script says, second by second: ``wake SECOND`` or ``kill JOB`` (if it runs)."""

    name = "scripted"

    def __init__(self, script: dict[int, Sequence[str]]) -> None:
        self._script = script

    def start(self, setup: cm.Setup) -> object:
        self.rang: list[float] = []
        return self

    def decide(self, batch: cm.Batch, view: cm.View) -> list[Decision]:
        if batch.alarm:
            self.rang.append(view.now / 1e6)
        decisions = super().decide(batch, view)
        for order in self._script.get(view.now // 1_000_000, ()):
            verb, number = order.split()
            if verb == "wake":
                decisions.append(cm.WakeAt(time=to_ticks(float(number))))
            elif int(number) in view.running:
                decisions.append(cm.Kill(job=view.running[int(number)].job))
        return decisions


def test_the_alarm_clock_is_one_and_the_last_setting_counts() -> None:
    policy = Scripted({0: ["wake 50"], 10: ["wake 20"], 20: ["wake 30", "wake 40"]})
    play(2, "1 0 1 100\n2 10 3 1\n3 10 1 1\n4 99 3 1", policy)
    assert policy.rang == [20, 40]


def test_an_alarm_that_rings_when_all_is_over_does_not_lengthen_the_horizon() -> None:
    # 1 ends at 10 instead of 100, 2 moves from 100 to 10 and ends at 20; the alarm for 100 is still armed, and the stream
    # stays open until 200, when a job that the machine rejects is submitted.  The horizon is 0-20, all of it busy.
    result = play(2, "1 0 2 10 100\n2 1 2 10\n3 200 3 1", "conservative")
    assert result.summary().horizon_s == 20
    assert result.ledger.utilization == 1.0
    log = result.events
    assert capacity_loss(log.time_s, log.empty, log.waiting, 2) == result.ledger.capacity_loss == 0.0


def test_a_killed_job_ends_at_once_its_work_is_discarded_and_its_nodes_are_used_in_the_same_instant() -> None:
    policy = Scripted({4: ["kill 1"]})
    result = play(2, "1 0 2 100\n2 1 2 3\n3 4 1 1", policy)
    assert spans(result) == {1: (0, 4), 2: (4, 7), 3: (7, 8)}
    assert result.jobs["status"].tolist() == ["aborted", "completed", "completed"]
    assert sum(result.ledger.amount(Account.LOST)) == 2 * 4 * 1_000_000
    assert result.summary().aborted == 1


def test_a_job_killed_in_the_instant_it_was_started_did_no_work() -> None:
    class StartAndKill(Fcfs):
        name = "start and kill"

        def decide(self, batch: cm.Batch, view: cm.View) -> list[Decision]:
            starts = super().decide(batch, view)
            return [*starts, *(cm.Kill(job=start.job) for start in starts if isinstance(start, cm.Start) and start.job.id == 1)]

    result = play(1, "1 0 1 5\n2 0 1 5", StartAndKill())
    assert spans(result) == {1: (0, 0), 2: (0, 5)}


def test_policies_see_how_long_gangs_are_expected_to_need_their_nodes() -> None:
    class Looker(Fcfs):
        name = "looker"
        seen: list[dict[int, int]]

        def decide(self, batch: cm.Batch, view: cm.View) -> list[Decision]:
            self.seen.append(dict(view.expected_left()))
            return super().decide(batch, view)

    policy = Looker()
    policy.seen = []
    play(2, "1 0 1 5 9\n2 3 1 4 4", policy)
    assert policy.seen == [{}, {1: 6_000_000}, {2: 2_000_000}, {}]


def test_a_job_that_ends_in_the_instant_it_would_be_killed_has_ended() -> None:
    class KillAtTen(Fcfs):
        name = "kill at ten"

        def decide(self, batch: cm.Batch, view: cm.View) -> list[Decision]:
            victims = [cm.Kill(job=gang.job) for gang in batch.ended]
            return super().decide(batch, view) + victims

    with pytest.raises(cm.DecisionError, match="kill at ten: job 1 cannot be killed: it is not running"):
        play(1, "1 0 1 10", KillAtTen())


def test_streams_merge() -> None:
    first = cm.Workload.from_jobs([cm.Job(id=1, nodes=1, submit_s=0, run_s=5), cm.Job(id=3, nodes=1, submit_s=5, run_s=5)])
    second = cm.Workload.from_jobs([cm.Job(id=2, nodes=1, submit_s=0, run_s=5)])
    result = cm.Scenario(machine=cm.Machine(nodes=1), workload=[first, second], policy="fcfs").run()
    assert spans(result) == {1: (0, 5), 2: (5, 10), 3: (10, 15)}


def test_the_mechanism_refuses_two_jobs_of_one_number() -> None:
    streams = [list(cm.Workload.from_jobs([cm.Job(id=1, nodes=1, submit_s=at, run_s=5)]).rows()) for at in (0, 100)]
    with pytest.raises(cm.SpecificationError, match="job id 1 is submitted twice"):
        simulate(cm.Machine(nodes=1), streams, make_policy("fcfs"), np.random.default_rng(1))


def test_jobs_left_for_ever_are_reported_by_number() -> None:
    class Lazy(Fcfs):
        name = "lazy"

        def decide(self, batch: cm.Batch, view: cm.View) -> list[Decision]:
            return []

    with pytest.raises(cm.StrandedJobsError, match=r"policy lazy: 2 jobs left waiting for ever .* \(job 1, 2\)"):
        play(2, "1 0 1 1\n2 0 1 1", Lazy())


def test_named_columns_are_used_and_must_be_idle_and_as_many_as_the_gang() -> None:
    class Placing:
        name = "placing"

        def __init__(self, columns: tuple[int, ...]) -> None:
            self._columns = columns

        def start(self, setup: cm.Setup) -> object:
            return self

        def decide(self, batch: cm.Batch, view: cm.View) -> list[Decision]:
            return [cm.Start(job=job, columns=self._columns) for job in view.waiting.values() if job.nodes <= view.idle]

    result = play(4, "1 0 2 5", Placing((1, 2, 3, 4)))
    assert result.records.columns_of(0) == (1, 2, 3, 4)
    with pytest.raises(cm.DecisionError, match=r"policy placing: job 1 cannot start on 3 columns \(1-3\): its gang needs 2"):
        play(4, "1 0 2 5", Placing((1, 4)))
    with pytest.raises(cm.DecisionError, match=r"job 2 cannot start on columns 0-1: not all of them are idle"):
        play(4, "1 0 2 5\n2 0 2 5", Placing((0, 2)))


def test_jobs_left_behind_are_noticed_when_the_last_thing_that_happens_is_a_rejection() -> None:
    class Lazy(Fcfs):
        name = "lazy"

        def decide(self, batch: cm.Batch, view: cm.View) -> list[Decision]:
            return []

    with pytest.raises(cm.StrandedJobsError, match=r"policy lazy: 1 job left waiting for ever .* \(job 1\)"):
        play(2, "1 0 1 1\n2 5 3 1", Lazy())


class Numeric(Fcfs):
    """Starts one job, at a time and with a width and a limit that it is given."""

    name = "numeric"

    def __init__(self, *, at: object, nodes: object = None, limit: object = None) -> None:
        self._at, self._nodes, self._limit = at, nodes, limit

    def decide(self, batch: cm.Batch, view: cm.View) -> list[Decision]:
        if not batch.alarm and batch.submitted:
            return [cm.WakeAt(time=self._at)]  # type: ignore[arg-type]
        return [cm.Start(job=job, nodes=self._nodes, limit=self._limit) for job in view.waiting.values()]  # type: ignore[arg-type]


def test_numbers_of_numpy_in_decisions_do_not_turn_the_ledger_into_64_bits() -> None:
    row = JobRow(0, 1, 2**52, 10**15, 10**15, -1, -1, 0, -1)
    policy = Numeric(at=np.int64(10**15), nodes=np.int64(2**51), limit=np.int64(10**16))
    result = cm.Scenario(machine=cm.Machine(nodes=2**53), workload=cm.Workload([row]), policy=policy).run()
    assert result.records.column("end").tolist() == [3 * 10**15]
    assert result.ledger.capacity == 2**53 * 3 * 10**15
    assert sum(result.ledger.amount(Account.USEFUL)) == 2**52 * 10**15


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"at": 1.5e6}, "the alarm clock cannot be set: 1500000.0 is not a whole number"),
        ({"at": 10, "nodes": 1.0}, "job 1 cannot start: 1.0 is not a whole number"),
        ({"at": 10, "limit": "5"}, "job 1 cannot start: '5' is not a whole number"),
    ],
)
def test_what_is_no_whole_number_in_a_decision_is_refused(said: dict[str, object], problem: str) -> None:
    with pytest.raises(cm.DecisionError) as refused:
        play(4, "1 0 2 10", Numeric(**said))
    assert str(refused.value) == f"policy numeric: {problem}"
