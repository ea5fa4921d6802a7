"""The adaptive policy changes its mode at the thresholds given; BF is conservative backfilling; any queue order is taken."""

from itertools import pairwise

import pytest

import clustermodel as cm
from clustermodel.policies.adaptive import Adaptive, AdaptiveRows
from clustermodel.policies.conservative import BF
from clustermodel.policies.gang import BGS, GS
from clustermodel.policies.interface import Decision

MACHINE = cm.Machine(nodes=320, context_switch=cm.ContextSwitch(fraction=0.05))


@pytest.fixture(scope="module")
def busy() -> cm.Workload:
    return cm.load_model("blue-pacific").generate(jobs=800, run_time_factor=1.8)


class Noted:
    """Adaptive, which notes (utilization it knew, mode it chose, rows in use) at each event."""

    name = "noted"

    def __init__(self, **parameters: float) -> None:
        self._policy = Adaptive(**parameters)  # type: ignore[arg-type]
        self.notes: list[tuple[float, bool, int]] = []

    def start(self, setup: cm.Setup) -> object:
        self._run = self._policy.start(setup)
        return self

    def decide(self, batch: cm.Batch, view: cm.View) -> list[Decision]:
        decisions = self._run.decide(batch, view)
        rows = self._run.open_rows
        assert isinstance(rows, AdaptiveRows)
        self.notes.append((rows.utilization, rows.space_sharing, len(self._run.matrix.rows_in_use)))
        return decisions


def ends(policy: object, workload: cm.Workload, machine: cm.Machine = MACHINE) -> list[int]:
    result = cm.Scenario(machine=machine, workload=workload, policy=policy).run()  # type: ignore[arg-type]
    column: list[int] = result.records.column("end").tolist()
    return column


def test_a_threshold_that_is_never_passed_leaves_bgs(busy: cm.Workload) -> None:
    assert ends(Adaptive(threshold=1.0, hysteresis=0.0), busy) == ends(BGS(), busy)


def test_the_mode_changes_only_beyond_the_thresholds(busy: cm.Workload) -> None:
    policy = Noted(threshold=0.6, hysteresis=0.1, window_s=20_000.0)
    ends(policy, busy)
    modes = [mode for _, mode, _ in policy.notes]
    assert 2 <= sum(now != before for before, now in pairwise(modes)) <= 60
    mode = False
    for utilization, chosen, _ in policy.notes:
        if utilization > 0.7:
            assert chosen
        elif utilization < 0.5:
            assert not chosen
        else:
            assert chosen == mode  # hysteresis
        mode = chosen


def test_the_other_rows_drain_in_bf_mode_and_the_last_job_needs_no_switches(busy: cm.Workload) -> None:
    policy = Noted(threshold=0.0, hysteresis=0.0)
    ends(policy, busy)
    rows = [rows for _, mode, rows in policy.notes if mode]
    assert len(rows) > 0.99 * len(policy.notes)
    after = rows[len(rows) // 10 :]
    assert max(after) == 1
    assert max(rows) <= 5


def test_bf_mode_all_the_time_is_worth_what_bf_is_without_switching_costs(busy: cm.Workload) -> None:
    # From the second event on there is one row to start jobs in; the first jobs alone may have been placed as BGS does.
    free = cm.Machine(nodes=320)
    adaptive, bf = (
        cm.Scenario(machine=free, workload=busy, policy=policy).run() for policy in ("adaptive:threshold=0,hysteresis=0", "bf")
    )
    assert adaptive.jobs["start_s"].to_list() == bf.jobs["start_s"].to_list()


def test_bf_is_conservative_backfilling(busy: cm.Workload) -> None:
    assert ends("bf", busy) == ends("conservative", busy)


@pytest.mark.parametrize("kind", [BF, GS, BGS])
def test_the_queue_is_gone_through_in_any_order(kind: type[BF] | type[GS] | type[BGS]) -> None:
    # Four jobs wait for one node while job 0 runs; the order says who is next.
    rows = [
        row._replace(id=number, submit=submit, nodes=1, run=run, estimate=run)
        for row, (number, submit, run) in zip(
            cm.load_model("blue-pacific").generate(jobs=5).rows(),
            [(0, 0, 100), (1, 1, 50), (2, 2, 10), (3, 3, 30), (4, 4, 20)],
            strict=True,
        )
    ]
    machine = cm.Machine(nodes=1, time_slicing=MACHINE.time_slicing)

    def started(order: object) -> list[int]:
        policy = kind(queue_order=order) if kind is BF else kind(queue_order=order, mpl=1)  # type: ignore[arg-type, call-arg]
        jobs = cm.Scenario(machine=machine, workload=cm.Workload(rows), policy=policy).run().jobs
        ids: list[int] = jobs.sort_values("start_s")["job"].to_list()
        return ids

    assert started("arrival") == [0, 1, 2, 3, 4]
    if kind is GS:  # reservations, once made, are kept
        assert started("shortest") == [0, 2, 4, 3, 1]

        def latest_first(job: cm.QueuedJob, now: int) -> int:
            return -job.submit

        assert started(latest_first) == [0, 4, 3, 2, 1]
    else:
        assert started("shortest") == [0, 1, 2, 3, 4]
