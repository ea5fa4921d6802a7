"""What 003 says of its schedulers (section 5, figures 3 and 6), on the traces of CTC-SP2, which is the paper's, and KTH-SP2."""

from __future__ import annotations

from functools import cache

import pytest

from clustermodel import Machine, Scenario, read_swf
from clustermodel.measure.metrics import Summary
from clustermodel.policies.queue_order import CRITERIA
from tests.shared_data import reference_starts, trace_path

CTC = "CTC-SP2-1996-3.1-cln", 430
KTH = "KTH-SP2-1996-2.2", 100


@cache
def summary(trace: tuple[str, int], policy: str) -> Summary:
    name, nodes = trace
    return Scenario(machine=Machine(nodes=nodes), workload=read_swf(trace_path(name)), policy=policy).run().summary()


def slowdown(trace: tuple[str, int], policy: str) -> float:
    return summary(trace, policy).mean_bounded_slowdown_003


def delay(trace: tuple[str, int], policy: str) -> float:
    return summary(trace, policy).mean_wait_s


@pytest.mark.parametrize(
    ("policy", "reference"), [("D", "conservative"), ("backfilling:guarantees=relaxed,relaxation=0", "easy")]
)
def test_the_parts_put_together_give_the_reference_schedules_job_for_job(policy: str, reference: str) -> None:
    expected = reference_starts(reference)
    jobs = Scenario(machine=Machine(nodes=100), workload=read_swf(trace_path(KTH[0])), policy=policy).run().jobs
    assert len(expected) == 28_481
    assert dict(zip(jobs["job"].tolist(), jobs["start_s"].tolist(), strict=True)) == expected
