"""A closed queue of users who wait for their jobs against its closed form, inside 99 % intervals of replications."""

import pytest

from clustermodel import ClosedUsers, Exponential, JobStream, Machine, Scenario
from clustermodel.theory.queueing import closed_mm1_throughput
from tests.statistical.test_queueing import interval_99

pytestmark = pytest.mark.statistical

REPLICATIONS = 30
JOBS = 5_000
THINK_S, SERVICE_S = 600.0, 100.0
WARM_UP_S = 20 * (THINK_S + SERVICE_S)


def throughput_and_response(users: int, seed: int) -> tuple[float, float]:
    """Return jobs per second and the mean response, from the warm-up until the first user has no jobs left."""
    closed = ClosedUsers(users=users, think_time_s=Exponential(THINK_S))
    jobs = JobStream(arrivals=closed, nodes=1, run_s=Exponential(SERVICE_S)).generate(jobs=JOBS, seed=seed)
    table = Scenario(machine=Machine(nodes=1), workload=jobs, policy="fcfs").run().jobs
    until_s = table.groupby("user")["end_s"].max().min()
    inside = table[table["end_s"].between(WARM_UP_S, until_s)]
    return len(inside) / (until_s - WARM_UP_S), inside["response_s"].mean()


@pytest.mark.parametrize("users", [1, 5, 10])
def test_closed_users_get_the_throughput_of_machine_repair(users: int) -> None:
    measured = [throughput_and_response(users, seed) for seed in range(REPLICATIONS)]
    throughput = closed_mm1_throughput(users, THINK_S, SERVICE_S)
    for values, expected in zip(zip(*measured, strict=True), (throughput, users / throughput - THINK_S), strict=True):
        low, high = interval_99(list(values))
        assert low <= expected <= high
        assert high - low < 0.05 * expected  # an interval so wide that anything fits would prove nothing
