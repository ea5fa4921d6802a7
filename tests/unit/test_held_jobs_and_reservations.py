"""Jobs that are held, by a limit or by jobs that they depend on, or wait, while reservations come and go."""

import pytest

from clustermodel import Job, Limits, Machine, Outages, Power, Reservation, Scenario, Site, Workload


def test_the_last_start_of_a_held_job_passes_while_nodes_are_switched_off() -> None:
    # Booting, job 8 takes 16.5 s: only before the first reservation, at 23 s, is there time for that, until 6.5 s.  It is held
    # then, and nothing is scheduled when it is submitted.
    machine = Machine(
        nodes=2,
        failures=Outages(node=[1], down_s=[2.0], up_s=[2.000001], nodes=2),
        reservations=[Reservation(start_s=23, end_s=35, every_s=25, users="1")],
        power=Power(busy_w=2, idle_w=1, boot_s=15),
        idle_off_s=5,
    )
    jobs = [Job(id=8, nodes=2, submit_s=6.3, run_s=1.5), Job(id=38, nodes=2, submit_s=0.9, run_s=6.3, user=1)]
    site = Site(limits=Limits(running_jobs=1))
    result = Scenario(workload=Workload.from_jobs(jobs), machine=machine, policy="easy", site=site).run()
    assert result.jobs.set_index("job")["status"].to_dict() == {38: "completed", 8: "rejected"}


@pytest.mark.parametrize("policy", ["fcfs", "easy", "expand", "srtf"])
@pytest.mark.parametrize("end", [29, 30, 31])
def test_a_reservation_ends_although_a_node_is_switched_off_at_that_instant(policy: str, end: int) -> None:
    # Node 0 is idle from 10 s on, and off at 30 s.  Job 2 does not fit before the reservation.
    power = Power(busy_w=2, idle_w=1)
    machine = Machine(nodes=1, reservations=[Reservation(start_s=25, end_s=end)], power=power, idle_off_s=20)
    jobs = [Job(id=1, nodes=1, submit_s=5, run_s=5), Job(id=2, nodes=1, submit_s=18, run_s=10)]
    result = Scenario(workload=Workload.from_jobs(jobs), machine=machine, policy=policy).run()
    assert result.jobs.set_index("job")["start_s"].to_dict() == {1: 5, 2: end}
