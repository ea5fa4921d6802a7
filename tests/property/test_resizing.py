"""Random machines and jobs under a policy that resizes, preempts and starts at random: work, books, nodes, bounds."""

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel import (
    Checkpointing,
    CheckpointStore,
    ContextSwitch,
    DowneySpeedup,
    Job,
    Machine,
    NodeFailures,
    Partition,
    Power,
    Reservation,
    Scenario,
    Workload,
)
from clustermodel.machine.node_set import as_mask, from_mask, lowest
from clustermodel.measure.energy import energy_by_account, microwatts
from clustermodel.policies.interface import Checkpoint, Decision, Kill, Resize, Setup, Start, Suspend, WakeAt
from clustermodel.policies.view import Batch, View
from clustermodel.recording.ledger import Account
from clustermodel.recording.run_attempts import Status
from clustermodel.workload.job import UNSET
from clustermodel.workload.speedup import LINEAR
from tests.gang_runs import check_books
from tests.property.strategies import cases
from tests.property.test_energy import check_instant_by_instant, instants


class Restless:
    """Resizes, preempts and starts at random, again and again."""

    name = "restless"
    takes_partitions = takes_reservations = takes_resizes = True

    def __init__(self, seed: int, preempts: float) -> None:
        self._seed, self._preempts = seed, preempts

    def start(self, setup: Setup) -> "Restless":
        self._rng = np.random.default_rng(self._seed)
        return self

    def decide(self, batch: Batch, view: View) -> list[Decision]:
        rng, decisions, grows = self._rng, list[Decision](), False
        for gang in view.running.values():
            job, luck = gang.job, rng.random()
            if luck < 0.5 and job.sizes is not None:
                nodes = int(rng.integers(job.sizes[0], job.sizes[1] + 1))
                if (nodes <= gang.nodes or not grows) and (columns := view.resizable(gang, nodes)) is not None:
                    grows |= nodes > gang.nodes
                    decisions.append(Resize(job=job, columns=columns) if luck < 0.25 else Resize(job=job, nodes=nodes))
            elif luck > 1 - self._preempts and not gang.stopping and job.sizes is not None:
                kinds: list[Any] = [lambda job: Kill(job=job, requeue=True)]
                kinds += [
                    kind for kind, suspends in ((Checkpoint, False), (Suspend, True)) if view.saved_in_time(gang, suspends)
                ]
                decisions.append(kinds[int(rng.integers(len(kinds)))](job=job))
        for job in [] if grows else view.waiting.values():
            saved_on, sizes, suspended_on = view.saved_on(job), job.sizes, view.suspended_on(job)
            room = as_mask(view.idle_nodes()) & (-1 if job.eligible is None else as_mask(job.eligible))
            if (free := view.free_memory()) is not None:
                room &= free.nodes_with(job.memory) | as_mask(suspended_on or ())
            nodes = saved_on or job.nodes
            if sizes is not None and saved_on is None and not job.barred:
                nodes = int(rng.integers(sizes[0], sizes[1] + 1))
            elif sizes is not None and not (suspended_on or job.barred) and rng.random() < 0.5:
                nodes = job.nodes
            if room.bit_count() >= nodes:
                decisions.append(Start(job=job, nodes=nodes, columns=from_mask(lowest(room, nodes))))
                break
            if suspended_on:
                decisions.append(Kill(job=job, requeue=True))  # its image is in memory of nodes that it may not get again
        if view.waiting or view.running:
            decisions.append(WakeAt(time=view.now + 1_000_000 * int(rng.integers(1, 60))))
        return decisions


def scenario(seed: int) -> Scenario:
    """Return a random machine with random jobs, most of them malleable."""
    rng = np.random.default_rng(seed)

    def choose(*values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    nodes, limited = int(rng.integers(2, 12)), rng.random() < 0.3
    submit = np.cumsum(rng.exponential(20, int(rng.integers(2, 12)))).round(6)
    jobs = []
    for number, submit_s in enumerate(submit.tolist(), 1):
        size, run_s = int(rng.integers(1, nodes + 1)), round(float(rng.exponential(60)), 6) + 1e-6
        sizes: dict[str, Any] = {}
        if rng.random() < 0.8:
            least, most = int(rng.integers(1, size + 1)), int(rng.integers(size, nodes + 1))
            sizes = {"malleable": True, "min_nodes": least, "max_nodes": most, "resize_s": choose(None, 0, 3)}
        memory = {"memory_gib": choose(1, 2)}
        partition = {"partition": choose("left", "all")} if limited else {}
        estimate_s = run_s * choose(0.5, 1, 1, 2, 5) + 1e-6
        jobs.append(
            Job(id=number, nodes=size, submit_s=submit_s, run_s=run_s, estimate_s=estimate_s, **sizes, **memory, **partition)
        )
    rules: dict[str, Any] = {}
    if limited:
        left = Partition(name="left", nodes=range((nodes + 1) // 2))
        rules["partitions"] = [left, Partition(name="all", nodes=range(nodes), default=True)]
    if rng.random() < 0.2:
        rules["reservations"] = [Reservation(nodes=[0], start_s=100, end_s=130, every_s=choose(None, 1000))]
    if rng.random() < 0.3:
        rules["node_memory_gib"] = 4
    if rng.random() < 0.5:
        power = Power(busy_w=10, idle_w=3, switching_w=12, down_w=1, boot_s=4, boot_w=11)
        rules |= {"power": power, "idle_off_s": choose(None, None, 9)}
        if rng.random() < 0.5 and "reservations" not in rules:
            # So many nodes can be in use, whatever they do; wider jobs are rejected.
            rules["power_cap_w"] = 3 * nodes + 9 * int(rng.integers(1, nodes + 1))
    checkpointing = Checkpointing(checkpoint_s=2, restart_s=3, interval_s=choose(None, 15), max_tasks_per_slice=choose(None, 3))
    if rng.random() < 0.5:
        checkpointing = Checkpointing(store=CheckpointStore(bandwidth_gib_s=0.5), interval_s=choose(None, 20))
    machine = Machine(
        nodes=nodes,
        kill_at_estimate=choose(True, True, False),
        resize_s=choose(None, 0, 5),
        on_failure=choose("requeue", "shrink"),
        failures=NodeFailures(mtbf_s=300.0 * nodes, repair_s=20) if rng.random() < 0.5 else None,
        context_switch=ContextSwitch(seconds=0.5),
        checkpointing=checkpointing,
        **rules,
    )
    policy = Restless(seed, choose(0.0, 0.1))
    speedup = choose(LINEAR, DowneySpeedup(sigma=1.0), DowneySpeedup(sigma=0.3))
    return Scenario(machine=machine, workload=Workload.from_jobs(jobs), policy=policy, speedup=speedup, seed=seed)


@settings(max_examples=cases(30))
@given(st.integers(0, 2**32 - 1))
def test_gangs_that_change_size_at_random_do_their_work_to_the_tick(seed: int) -> None:
    result = scenario(seed).run()
    check_books(result)
    records = result.records
    runs, ranges = records.runs, records.node_ranges
    demands = {row.id: row.demand for stream in result.scenario.streams.submissions(())[0] for row in stream}
    sizes_of = {number: demand.sizes for number, demand in demands.items() if demand is not None and demand.sizes is not None}
    numbers = records.column("id")
    for run in np.flatnonzero(runs.ended_as == Status.RESIZED).tolist():
        sizes = sizes_of[int(numbers[runs.job[run]])]
        later = np.flatnonzero((runs.job == runs.job[run]) & (runs.start == runs.end[run]))[-1]
        most = result.machine.nodes if sizes.most == UNSET else min(sizes.most, result.machine.nodes)
        assert sizes.least <= runs.nodes[later] <= most
    if result.machine.powers and result.machine.idle_off_s is None:
        assert sum(energy_by_account(records, result.ledger, result.machine).values()) == sum(result.power_draw.picojoules)
    if result.machine.powers and result.machine.idle_off_s is None:
        check_instant_by_instant(result)
        if (cap := result.machine.power_cap_w) is not None:
            (power,) = result.machine.powers
            for _, _, states in instants(result):
                draws = [microwatts(power, states.get(node, (Account.IDLE, -1))[0]) for node in range(result.machine.nodes)]
                assert sum(draws) <= cap * 1_000_000
    # No node has two gangs at a time.
    order = np.lexsort((ranges.since, ranges.first_node))
    for node in range(result.machine.nodes):
        held = [place for place in order if ranges.first_node[place] <= node < ranges.first_node[place] + ranges.nodes[place]]
        held.sort(key=lambda place: (ranges.since[place], ranges.until[place]))
        assert all(ranges.until[first] <= ranges.since[second] for first, second in pairwise(held))
