"""What the slow mode costs: fidelity="node", every slice on every node as SimPy events, against the default."""

from __future__ import annotations

import pytest

from clustermodel import Scenario, load_model
from tests.bench.timing import best_of, require, size

pytestmark = pytest.mark.bench


@pytest.mark.parametrize(("policy", "at_least"), [("gs", 20), ("mbgs", 10)])
def test_the_slow_mode_gives_the_same_jobs_many_times_more_slowly(policy: str, at_least: float) -> None:
    # docs/design and README quote these ratios; where the slow mode is not far slower, they are wrong.
    workload = load_model("blue-pacific").generate(jobs=size(200), run_time_factor=1.55)
    fast, slow = (Scenario(workload=workload, policy=policy, fidelity=fidelity) for fidelity in ("fast", "node"))
    assert fast.run().jobs.equals(slow.run().jobs)
    fast_s, slow_s = best_of(fast.run, slow.run, rounds=2)
    print(f"\n{policy}: fidelity='node' takes {slow_s / fast_s:,.0f} times as long ({slow_s:.1f} s instead of {fast_s:.3f} s)")
    require(holds=slow_s >= at_least * fast_s)
