"""Limits of a site hold at every instant under every policy, and cost nothing where they are never reached."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustermodel import Limits, Machine, Scenario, Site, Workload
from clustermodel.policies.registry import policy_names
from tests.property.strategies import cases

NODES = 8

jobs = st.lists(
    st.tuples(
        st.integers(0, 60), st.integers(1, NODES), st.integers(1, 40), st.integers(1, 3), st.sampled_from(["bio", "geo", None])
    ),
    min_size=1,
    max_size=14,
)
limits = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "user": st.sampled_from(["*", 1]),
            "account": st.sampled_from(["*", "bio"]),
            "running_jobs": st.integers(1, 3),
            "nodes": st.integers(NODES, 2 * NODES),
            "submitted_jobs": st.integers(1, 4),
        },
    ).filter(lambda limit: limit.keys() & {"running_jobs", "nodes", "submitted_jobs"}),
    min_size=1,
    max_size=3,
)


def workload_of(jobs: list[tuple[Any, ...]]) -> Workload:
    frame = pd.DataFrame(jobs, columns=["submit_s", "nodes", "run_s", "user", "account"])
    return Workload.from_frame(frame, name="jobs")


def most(start: Any, end: Any, amount: Any) -> int:
    """Return the most of an amount at a time; what ends at an instant frees it for what starts then."""
    times = np.concatenate([end, start])
    changes = np.concatenate([-amount, amount])[np.argsort(times, kind="stable")]
    return int(np.cumsum(changes).max(initial=0))


@pytest.mark.parametrize("policy", policy_names())
@settings(max_examples=cases(12, fewest=4), deadline=None)
@given(jobs=jobs, limits=limits)
def test_no_limit_is_exceeded_at_any_instant(policy: str, jobs: list[tuple[Any, ...]], limits: list[dict[str, Any]]) -> None:
    machine = Machine(nodes=NODES)
    site = Site(limits=[Limits(**limit) for limit in limits])
    result = Scenario(workload=workload_of(jobs), machine=machine, policy=policy, site=site).run()
    table, attempts = result.jobs, result.run_attempts.set_index("job")
    assert not (table["status"] == "rejected").any()
    assert table["end_s"].notna().all()
    table["account"] = table["account"].astype(object) if "account" in table else None
    for limit in site.limits:
        subjects = [name for name in ("user", "account") if getattr(limit, name) is not None]
        of_limit = table[table[subjects].notna().all(axis=1)] if subjects else table
        for name in subjects:
            if (who := getattr(limit, name)) != "*":
                of_limit = of_limit[of_limit[name].astype(str) == who]
        parts = [part for _, part in of_limit.groupby(subjects, observed=True)] if subjects else [of_limit]
        for part in parts:
            runs = attempts.loc[attempts.index.intersection(part["job"])]
            start, end = (runs[name].to_numpy() for name in ("start_s", "end_s"))
            if limit.running_jobs is not None:
                assert most(start, end, np.ones(len(runs), dtype=int)) <= limit.running_jobs
            if limit.nodes is not None:
                assert most(start, end, part.set_index("job")["nodes"].loc[runs.index].to_numpy()) <= limit.nodes
            if limit.submitted_jobs is not None:
                entered = (part["submit_s"] + part["held_s"]).to_numpy()
                assert most(entered, part["end_s"].to_numpy(), np.ones(len(part), dtype=int)) <= limit.submitted_jobs
    assert (table["wait_s"] >= table["held_s"]).all()


@pytest.mark.parametrize("policy", policy_names())
@settings(max_examples=cases(12, fewest=4), deadline=None)
@given(jobs=jobs)
def test_limits_that_are_never_reached_change_nothing(policy: str, jobs: list[tuple[Any, ...]]) -> None:
    scenario = Scenario(workload=workload_of(jobs), machine=Machine(nodes=NODES), policy=policy)
    free = Site(limits=[Limits(user="*", running_jobs=100, nodes=1000, node_hours=1000, submitted_jobs=100)])
    without, with_limits = scenario.run(), replace(scenario, site=free).run()
    pd.testing.assert_frame_equal(without.jobs, with_limits.jobs.drop(columns="held_s"))
    pd.testing.assert_frame_equal(without.ledger.frame, with_limits.ledger.frame)
