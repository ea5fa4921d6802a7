"""Gang scheduling of one-node jobs on one node with slices of any length, against the Markov chain of its slices."""

from typing import Literal

import numpy as np
import pytest

from clustermodel import ContextSwitch, Interval, Machine, Scenario, TimeSlicing, Workload, interval
from clustermodel.theory.sliced_node import sliced_node_mean_response
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.job import JobRow

pytestmark = pytest.mark.statistical

BRANCHES = {40.0: 0.8, 340.0: 0.2}
REPLICATIONS, JOBS, WARM_UP = 24, 8_000, 500
LOAD, SWITCH_S = 0.5, 5.0


def simulated(quantum_s: float, mpl: int, charge: Literal["on-change", "every-slice"]) -> Interval:
    """Return the mean response time, seconds."""
    means = []
    for seed in np.random.SeedSequence(20261127).spawn(REPLICATIONS):
        rng = np.random.default_rng(seed)
        submit = np.cumsum(rng.exponential(100 / LOAD, JOBS))
        run = rng.exponential(rng.choice(list(BRANCHES), size=JOBS, p=list(BRANCHES.values())))
        ticks = (np.maximum(1, np.round(times * TICKS_PER_SECOND)).astype(int).tolist() for times in (submit, run))
        rows = [JobRow(s, n, 1, r, r, -1, -1, 0, -1) for n, (s, r) in enumerate(zip(*ticks, strict=True))]
        machine = Machine(
            nodes=1,
            time_slicing=TimeSlicing(quantum_s=quantum_s, mpl=mpl),
            context_switch=ContextSwitch(seconds=SWITCH_S, charge=charge),
        )
        result = Scenario(machine=machine, workload=Workload(rows), policy="gs").run()
        means.append(float(result.jobs["response_s"].iloc[WARM_UP:].mean()))
    return interval(means, level=0.99)


@pytest.mark.parametrize("charge", ["on-change", "every-slice"])
@pytest.mark.parametrize(("quantum_s", "mpl"), [(60.0, 2), (60.0, 5), (200.0, 3)])
def test_gs_on_one_node_is_the_chain(quantum_s: float, mpl: int, charge: Literal["on-change", "every-slice"]) -> None:
    expected = sliced_node_mean_response(LOAD / 100, BRANCHES, quantum_s, SWITCH_S, mpl=mpl, charge=charge)
    found = simulated(quantum_s, mpl, charge)
    assert expected in found
    assert found.half < 0.1 * expected
