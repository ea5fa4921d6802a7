"""Time slices, context switches and checkpointing: what users write down is checked field by field."""

from dataclasses import FrozenInstanceError, fields, replace
from math import inf, nan
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustermodel as cm
from clustermodel.policies.gang import GS
from clustermodel.policies.view import QueuedJob
from tests.conftest import refusal
from tests.gang_runs import POLICIES

POSITIVE = "it must be a finite number of seconds > 0 and <= 1e+10"
SECONDS = "it must be a finite number of seconds >= 0 and <= 1e+10"
SHARE = "it must be a number >= 0 and < 1, a share of the time slice"


@pytest.mark.parametrize(
    ("kind", "field", "value", "message"),
    [
        *((cm.TimeSlicing, "quantum_s", value, f"{value!r} is not allowed; {POSITIVE}") for value in (0, -1.5, nan, inf)),
        *((cm.TimeSlicing, "quantum_s", value, f"{value!r} is not a number; {POSITIVE}") for value in ("200", None, True)),
        (cm.TimeSlicing, "quantum_s", 4e-7, "4e-07 is not allowed; it must be >= 1e-6 (a tick)"),
        *((cm.TimeSlicing, "mpl", value, f"{value} is not allowed; it must be an integer >= 1") for value in (0, -2)),
        *(
            (cm.TimeSlicing, "mpl", value, f"{value!r} is not a whole number; it must be an integer >= 1")
            for value in (2.0, True, "5")
        ),
        *(
            (cm.ContextSwitch, "fraction", value, f"{value!r} is not allowed; {SHARE}")
            for value in (1, 1.5, -0.01, nan, "high", False)
        ),
        (cm.ContextSwitch, "fraction", "5%", f"'5%' is not allowed (did you mean 0.05?); {SHARE}"),
        (cm.ContextSwitch, "seconds", -1, f"-1 is not allowed; {SECONDS}"),
        (cm.ContextSwitch, "seconds", inf, f"inf is not allowed; {SECONDS}"),
        (cm.ContextSwitch, "seconds", [1], f"[1] is not a number; {SECONDS}"),
        (cm.ContextSwitch, "charge", "always", "'always' is not allowed; it must be 'on-change' or 'every-slice'"),
        (cm.ContextSwitch, "charge", None, "None is not allowed; it must be 'on-change' or 'every-slice'"),
        (cm.Checkpointing, "checkpoint_s", -1, f"-1 is not allowed; {SECONDS}"),
        (cm.Checkpointing, "checkpoint_s", "1", f"'1' is not a number; {SECONDS}"),
        (cm.Checkpointing, "restart_s", -1e-9, f"-1e-09 is not allowed; {SECONDS}"),
        (cm.Checkpointing, "restart_s", nan, f"nan is not allowed; {SECONDS}"),
        (cm.Checkpointing, "max_tasks_per_slice", -1, "-1 is not allowed; it must be an integer >= 0"),
        (cm.Checkpointing, "max_tasks_per_slice", 64.0, "64.0 is not a whole number; it must be an integer >= 0"),
        (cm.Checkpointing, "counts", "all", "'all' is not allowed; it must be one of gang, moved, spread"),
    ],
)
def test_a_wrong_value_is_named_with_its_field_and_what_is_allowed(kind: Any, field: str, value: object, message: str) -> None:
    assert refusal(lambda: kind(**{field: value})) == f"{kind.__name__}.{field}: {message}"


def test_a_context_switch_has_a_fraction_or_seconds_but_not_both() -> None:
    line = refusal(lambda: cm.ContextSwitch(fraction=0.05, seconds=0.0))
    assert line == "ContextSwitch: fraction=0.05 and seconds=0.0 are both given; give one of them"


@pytest.mark.parametrize(
    ("quantum_s", "switch", "takes"),
    [
        (10, cm.ContextSwitch(seconds=10), "10"),
        (0.5, cm.ContextSwitch(seconds=2), "2"),
        (2e-6, cm.ContextSwitch(fraction=0.9), "2e-06"),  # rounds to the whole slice
    ],
)
def test_a_quantum_is_longer_than_the_context_switch(quantum_s: float, switch: cm.ContextSwitch, takes: str) -> None:
    line = refusal(lambda: cm.Machine(nodes=1, time_slicing=cm.TimeSlicing(quantum_s=quantum_s), context_switch=switch))
    must = f"it must be longer than the context switch of {takes} s, or no job ever runs"
    assert line == f"Machine.time_slicing: a quantum of {quantum_s:g} s is not allowed; {must}"


def test_a_tick_less_than_the_quantum_is_left() -> None:
    machine = cm.Machine(nodes=1, time_slicing=cm.TimeSlicing(quantum_s=10), context_switch=cm.ContextSwitch(seconds=9.999999))
    assert machine.time_slicing.quantum - machine.switch_ticks == 1


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("time_slicing", 200, "TimeSlicing"),
        ("context_switch", 0.05, "ContextSwitch"),
        ("checkpointing", None, "Checkpointing"),
        ("checkpointing", cm.Checkpointing, "Checkpointing"),
    ],
)
def test_a_machine_takes_specifications_not_numbers(field: str, value: object, kind: str) -> None:
    line = refusal(lambda: cm.Machine(nodes=1, **{field: value}))  # type: ignore[arg-type]
    assert line == f"Machine.{field}: {value!r} is not allowed; it must be a {kind}(...)"


def test_defaults_cost_nothing_and_are_the_papers() -> None:
    machine = cm.Machine(nodes=4)
    assert (machine.time_slicing.quantum, machine.time_slicing.mpl) == (200_000_000, 5)  # Zhang et al. 2003, section 5.3
    assert machine.switch_ticks == 0
    assert machine.context_switch.charge == "on-change"
    assert (machine.checkpointing.checkpoint, machine.checkpointing.restart) == (0, 0)
    assert machine.checkpointing.max_tasks_per_slice is None
    assert machine.checkpointing.counts == "gang"


@pytest.mark.parametrize(
    "specification",
    [
        cm.TimeSlicing(quantum_s=7.5, mpl=3),
        cm.ContextSwitch(fraction=0.05, charge="every-slice"),
        cm.ContextSwitch(seconds=2),
        cm.Checkpointing(checkpoint_s=5, restart_s=6.5, max_tasks_per_slice=64),
        cm.Machine(nodes=2, time_slicing=cm.TimeSlicing(mpl=2), checkpointing=cm.Checkpointing(checkpoint_s=1)),
    ],
)
def test_a_specification_is_frozen_printable_and_takes_no_positional_arguments(specification: object) -> None:
    assert eval(repr(specification), {name: getattr(cm, name) for name in cm.__all__}) == specification  # only our own classes
    with pytest.raises(FrozenInstanceError):
        setattr(specification, fields(specification)[0].name, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="positional"):
        type(specification)(4)


def test_numpy_integers_become_plain_ones() -> None:
    assert type(cm.TimeSlicing(mpl=np.int64(3)).mpl) is int  # type: ignore[arg-type]
    assert type(cm.Checkpointing(max_tasks_per_slice=np.int32(3)).max_tasks_per_slice) is int  # type: ignore[arg-type]
    assert type(cm.TimeSlicing(quantum_s=np.float64(0.5)).quantum) is int
    assert type(cm.ContextSwitch(fraction=np.float64(0.5)).ticks(7)) is int


@given(quantum=st.integers(1, 10**12), share=st.floats(0, 1, exclude_max=True))
def test_a_fraction_is_a_fraction_of_the_slice_to_the_nearest_tick(quantum: int, share: float) -> None:
    ticks = cm.ContextSwitch(fraction=share).ticks(quantum)
    assert abs(ticks - share * quantum) <= 0.5 + 1e-3
    assert cm.ContextSwitch(seconds=share).ticks(quantum) == round(share * 1e6)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_has_no_more_rows_than_the_machine(policy: str) -> None:
    scenario = cm.Scenario(
        machine=cm.Machine(nodes=1, time_slicing=cm.TimeSlicing(mpl=3)),
        workload=cm.Workload.from_jobs([cm.Job(id=1, nodes=1, submit_s=0, run_s=1)]),
        policy=f"{policy}:mpl=4",
    )
    assert refusal(scenario.run) == f"{policy}: mpl: 4 is not allowed; it must be <= 3, the machine's TimeSlicing.mpl"


def test_a_queue_order_is_a_name_or_a_function() -> None:
    with pytest.raises(cm.SpecificationError, match=r"gs: queue_order: 7 is not allowed; it must be one of arrival, "):
        GS(queue_order=7)  # type: ignore[arg-type]

    def longest(job: QueuedJob, now: int) -> int:
        return -job.estimate

    jobs = [cm.Job(id=number, nodes=1, submit_s=0, run_s=number) for number in (1, 2, 3)]
    machine = cm.Machine(nodes=1, time_slicing=cm.TimeSlicing(mpl=1))
    result = cm.Scenario(machine=machine, workload=cm.Workload.from_jobs(jobs), policy=GS(queue_order=longest)).run()
    assert result.jobs["start_s"].tolist() == [5, 3, 0]


def test_an_unknown_fidelity_is_refused() -> None:
    workload = cm.Workload.from_jobs([cm.Job(id=1, nodes=1, submit_s=0, run_s=1)])
    line = refusal(lambda: cm.Scenario(machine=cm.Machine(nodes=1), workload=workload, policy="gs", fidelity="slow"))  # type: ignore[arg-type]
    assert line == "Scenario.fidelity: 'slow' is not allowed; it must be one of fast, node"


@pytest.mark.parametrize("policy", ["easy", "gs"])
def test_the_slow_mode_says_where_there_was_nothing_to_play(policy: str) -> None:
    # Space sharing; or a machine that rejects all jobs.
    workload = cm.Workload.from_jobs([cm.Job(id=1, nodes=1 if policy == "easy" else 2, submit_s=0, run_s=1)])
    scenario = cm.Scenario(machine=cm.Machine(nodes=1), workload=workload, policy=policy, fidelity="node")
    with pytest.warns(UserWarning, match="^Scenario.fidelity") as warned:
        result = scenario.run()
    (warning,) = warned
    assert str(warning.message) == (
        f"Scenario.fidelity: 'node': no gang shared its nodes in time under {policy}; there was nothing to play, and "
        "the result is that of fidelity fast"
    )
    assert (warning.category, warning.filename) == (UserWarning, __file__)
    fast = replace(scenario, fidelity="fast").run()
    pd.testing.assert_frame_equal(result.jobs, fast.jobs)
    assert (result.provenance["fidelity"], fast.provenance["fidelity"]) == ("node", "fast")


def test_the_slow_mode_is_silent_where_it_plays() -> None:
    workload = cm.Workload.from_jobs([cm.Job(id=1, nodes=1, submit_s=0, run_s=1)])
    result = cm.Scenario(machine=cm.Machine(nodes=1), workload=workload, policy="gs", fidelity="node").run()
    assert result.slices is not None


def test_a_history_is_kept_on_demand_and_only_where_nodes_are_shared_in_time() -> None:
    workload = cm.Workload.from_jobs([cm.Job(id=1, nodes=1, submit_s=0, run_s=1)])
    with pytest.raises(cm.SpecificationError, match=r"history: it is not kept; run Scenario\(\.\.\., history=True\)"):
        _ = cm.Scenario(machine=cm.Machine(nodes=1), workload=workload, policy="gs").run().history
    with pytest.raises(cm.SpecificationError, match="history: easy does not share nodes in time; there is no matrix to show"):
        _ = cm.Scenario(machine=cm.Machine(nodes=1), workload=workload, policy="easy", history=True).run().history
