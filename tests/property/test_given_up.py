"""Random rules in combination under every policy: no job ends the run of others, the books have the documented bounds, and no
job is on a node when that is reserved for others.
"""

from random import Random
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustermodel import (
    Account,
    Checkpointing,
    FairShare,
    Job,
    Limits,
    Machine,
    Outages,
    Partition,
    Power,
    Reservation,
    Result,
    Scenario,
    Site,
    TimeSlicing,
    Workload,
    make_policy,
)
from tests.property.strategies import cases

IN_ROWS: Final = ("gs", "bgs", "mgs", "mbgs", "adaptive")
SIZING: Final = ("equipartition", "expand", "shrink-to-admit")
POLICIES: Final = (
    "fcfs", "easy", "easy:reserve_depth=2", "easy:reservation=kept", "easy:predictor=last-two,correction=tsafrir",
    "conservative", "conservative:predictor=last", "bf", *IN_ROWS, "slack:awt=20", "pv-easy", "pv-easy:vb=false,mode=suspend",
    "ss", "server-filling", "srtf", "srtf:mode=suspend", "las", "las:round_s=7", "fifo-preempt", "fifo-preempt:round_s=3",
    "backfilling", "D", "D-NG", "P-NG", *SIZING,
)  # fmt: skip


def machine_of(random: Random, policy: str, nodes: int) -> Machine:
    """Return a small machine with some of: reservations, failures, partitions, memory, a cap, a store, start-up."""
    fields: dict[str, Any] = {"nodes": nodes, "kill_at_estimate": random.random() < 0.8}

    def time() -> float:
        return random.randrange(200) if random.random() < 0.5 else round(random.uniform(0, 200), 6)

    def some() -> str:
        return ",".join(map(str, sorted(random.sample(range(nodes), random.randint(1, nodes)))))

    reservations = []
    for _ in range(random.randint(0, 2)):
        start, length = time(), random.choice([1, 3, 10, 40, 100])
        every = random.choice([None, length + 1, length + 10, length + 50, 400])
        accounts = random.choice([(), (), ("bio",)])
        end = start + length
        reservations.append(Reservation(nodes=some(), start_s=start, end_s=end, every_s=every, accounts=accounts))
    fields["reservations"] = reservations
    outages: list[tuple[int, float, float]] = []
    for down in sorted(time() for _ in range(random.choice([0, 0, 1, 3]))):
        node = random.randrange(nodes)
        if all(other != node or up + 1 < down for other, _, up in outages):
            outages.append((node, down, down + random.choice([1, 5, 25, 100, 1000])))
    if outages:
        node_of, down_s, up_s = np.array(outages).T
        known = tuple(random.random() < 0.4 for _ in outages) if random.random() < 0.4 else ()
        fields["failures"] = Outages(node=node_of.astype(int), down_s=down_s, up_s=up_s, nodes=nodes, known=known)
    if random.random() < 0.3:
        fields["partitions"] = [Partition(name=name, nodes=some()) for name in "ab"]
    if random.random() < 0.3:
        fields["node_memory_gib"] = 4
    elif random.random() < 0.2:
        fields["power"] = Power(busy_w=350, idle_w=100, switching_w=400)
        fields["power_cap_w"] = nodes * 100 + 300 * random.randint(1, nodes)
    costs: dict[str, Any] = {"checkpoint_s": random.choice([0, 1, 30]), "restart_s": random.choice([0, 10])}
    fields["time_slicing"] = TimeSlicing(quantum_s=random.choice([1, 10]), mpl=random.randint(1, 3))
    if policy not in IN_ROWS:
        costs["interval_s"] = random.choice([None, None, 1, 20])
        costs["max_tasks_per_slice"] = random.choice([None, 1, 2])
        fields["startup_s"], fields["epilog_s"] = random.choice([0, 0, 3]), random.choice([0, 0, 3])
        fields["idle_off_s"] = random.choice([None, None, 5])
        fields.setdefault("power", Power(busy_w=350, idle_w=100, off_w=5, boot_s=2) if fields["idle_off_s"] else None)
    fields["checkpointing"] = Checkpointing(**costs)
    return Machine(**fields)


def jobs_of(random: Random, policy: str, machine: Machine) -> list[Job]:
    jobs: list[Job] = []
    numbers, last = random.sample(range(1, 999), random.randint(1, 10)), random.choice([0, 20, 60, 400])
    for number in numbers:
        run_s, nodes = random.choice([1, 10, 20, 100, round(random.uniform(1, 60), 6)]), random.randint(1, machine.nodes)
        fields: dict[str, Any] = {"account": random.choice(["bio", "geo", None]), "qos": random.choice(["low", None])}
        fields["estimate_s"] = random.choice([None, run_s, run_s + 10, 2 * run_s, max(1, run_s - 5), 300])
        fields["partition"] = random.choice(["a", "b", "a,b", None]) if machine.partitions else None
        fields["memory_gib"] = random.choice([None, 0.5, 2, 3, 4, 5]) if machine.node_memory_gib else None
        fields["priority"] = random.choice([0, 0, 0, 1])
        if jobs and random.random() < 0.35:
            needs = random.choice(["after", "after_ok", "after_not_ok", "after_any"])
            fields[needs] = tuple({each.id for each in random.choices(jobs, k=2)})
        if policy in SIZING and random.random() < 0.6:
            sizes = {"min_nodes": random.randint(1, nodes), "max_nodes": random.randint(nodes, machine.nodes)}
            fields |= {"malleable": True, **sizes}
        submit_s = random.randint(0, last) if random.random() < 0.7 else round(random.uniform(0, last), 6)
        jobs.append(Job(id=number, nodes=nodes, submit_s=submit_s, run_s=run_s, **fields))
    return jobs


def site_of(random: Random, nodes: int) -> Site | None:
    if random.random() < 0.6:
        return None
    kinds: list[dict[str, Any]] = [{"nodes": random.randint(1, nodes)}, {"running_jobs": 1}, {"node_hours": 0.1}]
    who = {random.choice(["account", "qos"]): "*"}
    return Site(limits=[Limits(**who, **random.choice(kinds))], order=random.choice([None, None, FairShare(half_life_s=20)]))


def faults(result: Result, jobs: list[Job]) -> list[str]:
    """Return what does not hold, from the tables and what was asked for."""
    table, attempts, ledger = result.jobs.set_index("job"), result.run_attempts, result.ledger
    found = [
        f"{job}: {how}" for job, how in table["status"].items() if how not in ("completed", "killed", "aborted", "rejected")
    ]
    accepted = table[table["status"] != "rejected"]
    if len(accepted):
        first, last = (round(time * 1e6) for time in (accepted["submit_s"].min(), accepted["end_s"].max()))
        spent = sum(sum(ledger.amount(account)) for account in Account)
        if (ledger.start, ledger.end, spent) != (first, last, result.machine.processors * (last - first)):
            found.append(f"H from {ledger.start} to {ledger.end}, {spent} charged; the table has {first} to {last}")
        if ledger.capacity and abs(result.kappa_by_formula - ledger.capacity_loss) > 1e-9:
            found.append(f"kappa {ledger.capacity_loss}; by the events {result.kappa_by_formula}")
    lost = sum(round(each.lost_s * 1e6) * each.nodes for each in attempts.itertuples())
    if lost != sum(ledger.amount(Account.LOST)):
        found.append(f"lost {sum(ledger.amount(Account.LOST))}; the attempts have {lost}")
    if result.slices is None and len(attempts):
        found += _reserved(result, jobs)
    return found


def _reserved(result: Result, jobs: list[Job]) -> list[str]:
    """Return which jobs are on nodes that are reserved for others, unless they have outlived their estimates."""
    of_number, machine, found = {job.id: job for job in jobs}, result.machine, list[str]()
    ran = result.jobs.set_index("job")["run_s"].to_dict()
    for each in result.placements.itertuples():
        job, begin, end = of_number[each.job], round(each.begin_s * 1e6), round(each.end_s * 1e6)
        if not machine.kill_at_estimate and ran[job.id] >= (job.estimate_s or job.run_s):
            continue
        for number, (columns, start, stop, every) in enumerate(machine.windows):
            if number < len(machine.reservations) and job.account in machine.reservations[number].accounts:
                continue
            turn = start + max(0, (begin - stop) // every + 1) * every if every else start
            inside = any(
                low < each.first_node + each.nodes and each.first_node < high
                for low, high in zip(*[iter(columns)] * 2, strict=True)
            )
            if inside and begin < turn + stop - start and turn < end:
                found.append(f"job {job.id} from {begin} to {end} in a window that begins at {turn}")
    return found


@pytest.mark.parametrize("policy", POLICIES)
@settings(
    max_examples=cases(12, fewest=6), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(random=st.randoms(use_true_random=False))
def test_no_job_ends_the_run_of_the_others(policy: str, random: Random) -> None:
    machine = machine_of(random, policy, random.choice([1, 1, 2, 3, 5]))
    if machine.windows and not getattr(make_policy(policy), "takes_reservations", False):
        return
    jobs = jobs_of(random, policy, machine)
    scenario = Scenario(
        machine=machine,
        workload=Workload.from_jobs(jobs),
        policy=policy,
        site=site_of(random, machine.nodes),
        events="one-by-one" if policy not in IN_ROWS and random.random() < 0.3 else "together",
    )
    assert faults(scenario.run(), jobs) == []
