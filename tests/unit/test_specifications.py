"""What users write down - machine, job, filter, scale - is checked field by field and kept as plain numbers."""

from collections import Counter
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields
from fractions import Fraction
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustermodel as cm
from clustermodel.machine.checkpoints import Checkpointing  # noqa: F401  in reprs that are evaluated
from clustermodel.machine.context_switch import ContextSwitch  # noqa: F401  in reprs that are evaluated
from clustermodel.machine.time_slicing import TimeSlicing  # noqa: F401  in reprs that are evaluated
from clustermodel.workload.job import JobRow
from clustermodel.workload.transforms import filtered, scaled
from tests.conftest import refusal

GOOD_JOB: dict[str, Any] = {"id": 1, "nodes": 2, "submit_s": 3.0, "run_s": 5.0}
ROW = JobRow(submit=10_000_000, id=1, nodes=4, run=7, estimate=9, user=5, group=-1, priority=0, status=1)


def _scale(factor: int) -> cm.LoadScale:
    return cm.LoadScale(size=factor)


NODES = "it must be an integer >= 1"
GIB = "it must be a number of GiB"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("nodes", 0, f"0 is not allowed; {NODES}"),
        ("nodes", -128, f"-128 is not allowed; {NODES}"),
        ("nodes", 2.0, f"2.0 is not a whole number; {NODES}"),
        ("nodes", nan, f"nan is not a whole number; {NODES}"),
        ("nodes", "8", f"'8' is not a whole number; {NODES}"),
        ("nodes", None, f"None is not a whole number; {NODES}"),
        ("nodes", True, f"True is not a whole number; {NODES}"),
        ("nodes", np.int32(0), f"0 is not allowed; {NODES}"),
        ("suspended_per_node", -1, "-1 is not allowed; it must be an integer >= 0"),
        ("suspended_per_node", 1.5, "1.5 is not a whole number; it must be an integer >= 0"),
        ("suspended_per_node", True, "True is not a whole number; it must be an integer >= 0"),
        *(("kill_at_estimate", value, f"{value!r} is not allowed; it must be True or False") for value in (1, 0, None, "yes")),
        *(
            ("node_memory_gib", gib, f"{gib!r} is not allowed; {GIB} > 0 and <= 2^33")
            for gib in (-1, 0, True, "4", nan, 2.0**34)
        ),
    ],
)
def test_a_wrong_machine_names_the_field_the_value_and_what_is_allowed(field: str, value: object, message: str) -> None:
    assert refusal(lambda: cm.Machine(**{"nodes": 4, field: value})) == f"Machine.{field}: {message}"  # type: ignore[arg-type]


@pytest.mark.parametrize("specify", [lambda n: cm.Machine(nodes=n), lambda n: cm.Job(**{**GOOD_JOB, "run_s": n}), _scale])
@pytest.mark.parametrize("digits", [300, 10_000])
def test_a_number_of_very_many_digits_is_refused_in_a_short_line(specify: Callable[[int], object], digits: int) -> None:
    # Python raises a ValueError of its own where an integer of more than 4,300 digits is to be printed
    line = refusal(lambda: specify(-(10**digits)))
    assert "... (302 characters) is" in line or "a number of thousands of digits is" in line
    assert len(line) < 160


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: cm.Workload.from_jobs(["x"]), "Workload.from_jobs: 'x' is not allowed; it must be a Job"),  # type: ignore[list-item]
        (
            lambda: cm.Workload([(1, 2, 3)] * 9),  # type: ignore[list-item]
            "Workload 'workload': rows: [(1, 2, 3)] is not allowed; each must be a JobRow of 10 whole numbers; "
            "from_jobs takes jobs in seconds",
        ),
        (lambda: cm.Workload([ROW]).split(["user"]), "Workload.split by: ['user'] is not allowed; it must be one of "),  # type: ignore[arg-type]
        (
            lambda: cm.JobFilter(users=b"17"),
            "JobFilter.users: b'17' is not allowed; it must be a set of names or whole numbers",
        ),
        (
            lambda: cm.JobFilter(nodes=(10**5000, 1)),
            "JobFilter.nodes: a number of thousands of digits is not allowed; it must be (low, high), low <= high",
        ),
        (lambda: cm.synthetic_workload(load="1"), "load: '1' is not allowed; it must be > 0 and < 10"),  # type: ignore[arg-type]
        (
            lambda: cm.Scenario(workload=cm.Workload([ROW]), fidelity=["node"]),  # type: ignore[arg-type]
            "Scenario.fidelity: ['node'] is not allowed; it must be one of fast, node",
        ),
    ],
)
def test_things_of_the_wrong_kind_are_refused(wrong: Callable[[], object], message: str) -> None:
    assert refusal(wrong).startswith(message)


def test_any_real_number_may_be_a_factor_or_a_phi() -> None:
    workload = cm.Workload([ROW])
    assert workload.with_phi_estimates(phi=Fraction(1, 3)).provenance.options["estimates"] == "phi model, phi=0.333333, seed=1"  # type: ignore[arg-type]
    assert cm.load_model("blue-pacific").generate(jobs=3, run_time_factor=Fraction(3, 2)).name == "blue-pacific x1.5"  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.int64, np.uint16])
def test_numpy_integers_become_plain_ones(kind: type[np.integer[Any]]) -> None:
    # SimPy's clock turns into a float when a numpy integer is added to it.
    assert type(cm.Machine(nodes=kind(4)).nodes) is int  # type: ignore[arg-type]
    job = cm.Job(id=kind(1), nodes=kind(2), submit_s=3, run_s=4, user=kind(5), group=kind(6), priority=kind(7))  # type: ignore[arg-type]
    for field in ("id", "nodes", "user", "group", "priority"):
        assert type(getattr(job, field)) is int
    assert [type(value) for value in job.row()[:-1]] == [int] * 10


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_numpy_times_become_plain_ticks(kind: type[np.number[Any]]) -> None:
    row = cm.Job(id=1, nodes=1, submit_s=kind(2), run_s=kind(3), estimate_s=kind(4)).row()  # type: ignore[arg-type]
    assert (row.submit, row.run, row.estimate) == (2_000_000, 3_000_000, 4_000_000)
    assert type(row.submit) is type(row.run) is type(row.estimate) is int


@pytest.mark.parametrize(
    "specification", [cm.Machine(nodes=4), cm.Job(**GOOD_JOB), cm.JobFilter(nodes=(1, 2)), cm.LoadScale(size=2)]
)
def test_a_specification_is_frozen_printable_and_takes_no_positional_arguments(specification: object) -> None:
    assert eval(repr(specification), {name: getattr(cm, name) for name in cm.__all__}) == specification  # only our own classes
    with pytest.raises(FrozenInstanceError):
        setattr(specification, fields(specification)[0].name, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="positional"):
        type(specification)(4)


def test_every_specification_error_is_the_packages_and_a_value_error() -> None:
    assert issubclass(cm.SpecificationError, cm.ClusterModelError)
    assert issubclass(cm.SpecificationError, ValueError)


SECONDS = "a finite number of seconds >= 0 and <= 1e+10"
POSITIVE = "a finite number of seconds > 0 and <= 1e+10"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("id", -1, "Job.id: -1 is not allowed; it must be an integer >= 0"),
        ("id", 1.0, "Job.id: 1.0 is not a whole number; it must be an integer >= 0"),
        ("nodes", 2.5, "Job 1: nodes: 2.5 is not a whole number; it must be an integer"),
        ("nodes", nan, "Job 1: nodes: nan is not a whole number; it must be an integer"),
        ("user", "root", "Job 1: user: 'root' is not a whole number; it must be an integer"),
        ("group", None, "Job 1: group: None is not a whole number; it must be an integer"),
        ("priority", True, "Job 1: priority: True is not a whole number; it must be an integer"),
        ("submit_s", -0.5, f"Job 1: submit_s: -0.5 is not allowed; it must be {SECONDS}"),
        ("submit_s", nan, f"Job 1: submit_s: nan is not allowed; it must be {SECONDS}"),
        ("submit_s", None, f"Job 1: submit_s: None is not a number; it must be {SECONDS}"),
        ("run_s", 0, f"Job 1: run_s: 0 is not allowed; it must be {POSITIVE}"),
        ("run_s", -1, f"Job 1: run_s: -1 is not allowed; it must be {POSITIVE}"),
        ("run_s", inf, f"Job 1: run_s: inf is not allowed; it must be {POSITIVE}"),
        ("run_s", 1.1e10, f"Job 1: run_s: 11000000000.0 is not allowed; it must be {POSITIVE}"),
        ("run_s", "long", f"Job 1: run_s: 'long' is not a number; it must be {POSITIVE}"),
        ("run_s", True, f"Job 1: run_s: True is not a number; it must be {POSITIVE}"),
        ("estimate_s", -1, f"Job 1: estimate_s: -1 is not allowed; it must be {SECONDS}"),
        ("estimate_s", nan, f"Job 1: estimate_s: nan is not allowed; it must be {SECONDS}"),
    ],
)
def test_a_job_names_its_number_the_field_the_value_and_what_is_allowed(field: str, value: object, message: str) -> None:
    assert refusal(lambda: cm.Job(**{**GOOD_JOB, field: value})) == message


def test_a_time_too_long_for_a_float_is_refused_like_any_other() -> None:
    with pytest.raises(cm.SpecificationError, match="Job 1: run_s: "):
        cm.Job(id=1, nodes=1, submit_s=0, run_s=10**400)


@pytest.mark.parametrize("nodes", [0, -3, 5, 10**9])
def test_a_size_that_no_machine_has_is_legal_and_the_machine_rejects_the_job(nodes: int) -> None:
    workload = cm.Workload.from_jobs([cm.Job(id=1, nodes=nodes, submit_s=0, run_s=1)])
    assert cm.Scenario(machine=cm.Machine(nodes=4), workload=workload).run().jobs["status"].tolist() == ["rejected"]


@pytest.mark.parametrize("field", ["id", "nodes", "user"])
def test_a_number_too_large_for_the_table_is_a_specification_error(field: str) -> None:
    with pytest.raises(cm.SpecificationError, match=field):
        cm.Workload.from_jobs([cm.Job(**{**GOOD_JOB, field: 10**30})])


@pytest.mark.parametrize("estimate", [None, 0, 0.0])
def test_a_missing_or_zero_estimate_is_the_run_time(estimate: float | None) -> None:
    assert cm.Job(**GOOD_JOB, estimate_s=estimate).row().estimate == cm.Job(**GOOD_JOB).row().run == 5_000_000


def test_a_job_in_ticks() -> None:
    job = cm.Job(id=3, nodes=8, submit_s=1.5, run_s=2.25, estimate_s=60, user=4, group=2, priority=-1)
    # 1 s = 1e6 ticks; the SWF status of a job that comes from no trace is unknown, -1
    assert job.row() == JobRow(1_500_000, 3, 8, 2_250_000, 60_000_000, 4, 2, -1, -1)


def test_the_memory_of_a_job_in_kib() -> None:
    job = cm.Job(**GOOD_JOB, memory_gib=1.5)
    assert job.row().memory == 3 * 2**19
    assert cm.Job.from_row(job.row()).memory_gib == 1.5
    assert cm.Job(**GOOD_JOB).row().memory == -1
    assert cm.Job.from_row(cm.Job(**GOOD_JOB).row()).memory_gib is None


@pytest.mark.parametrize("wrong", [-1, True, "4", float("nan"), 2.0**34])
def test_an_impossible_amount_of_memory_is_refused(wrong: Any) -> None:
    line = refusal(lambda: cm.Job(**GOOD_JOB, memory_gib=wrong))
    assert line == f"Job 1: memory_gib: {wrong!r} is not allowed; {GIB} >= 0 and <= 2^33"


def test_the_limits_of_a_machine() -> None:
    assert cm.Machine(nodes=4).suspended_per_node is None
    assert cm.Machine(nodes=4, suspended_per_node=np.int64(2)).suspended_per_node == 2
    assert cm.Machine(nodes=4).node_memory is None
    assert cm.Machine(nodes=4, node_memory_gib=0.5).node_memory == 2**19


def test_times_are_rounded_to_the_nearest_tick_and_a_duration_is_never_zero() -> None:
    row = cm.Job(id=1, nodes=1, submit_s=1.4e-6, run_s=1e-9, estimate_s=2e-9).row()
    assert (row.submit, row.run, row.estimate) == (1, 1, 1)
    assert cm.Job(id=1, nodes=1, submit_s=1.6e-6, run_s=1.6e-6).row()[:4] == (2, 1, 1, 2)
    assert cm.Job(id=1, nodes=1, submit_s=1e-9, run_s=1).row().submit == 0
    assert cm.Job(id=1, nodes=1, submit_s=1e10, run_s=1e10).row().submit == 10**16


# Up to 1e9 s (1e15 ticks) a float of seconds is within 2^-52 x 1e15 = 0.22 ticks of the truth, so nothing is lost.
times = st.floats(0, 1e9)


@given(submit=times, run=times.filter(bool), estimate=st.none() | times, nodes=st.integers(-5, 2**40))
def test_a_job_survives_its_row(submit: float, run: float, estimate: float | None, nodes: int) -> None:
    row = cm.Job(id=9, nodes=nodes, submit_s=submit, run_s=run, estimate_s=estimate, user=1, group=2, priority=3).row()
    assert cm.Job.from_row(row).row() == row


def rejects(keep: cm.JobFilter, row: JobRow = ROW) -> str | None:
    """Return the reason for which a job is left out."""
    dropped: Counter[str] = Counter()
    chosen = {"user": (np.array([row.user]), list(keep.users))} if keep.users is not None else {}
    filtered(np.array([row[:-1]]), keep, dropped, chosen)
    return next(iter(dropped), None)


@pytest.mark.parametrize("field", ["window_s", "nodes"])
@pytest.mark.parametrize("value", [(5, 4), (nan, 5), (0, nan), (1,), (1, 2, 3), ()])
def test_an_interval_that_is_none_is_refused(field: str, value: tuple[float, ...]) -> None:
    line = refusal(lambda: cm.JobFilter(**{field: value}))  # type: ignore[arg-type]
    assert line == f"JobFilter.{field}: {value!r} is not allowed; it must be (low, high), low <= high"


@pytest.mark.parametrize(("field", "value"), [("window_s", 5), ("nodes", "ab"), ("window_s", ("1", "2")), ("users", 7)])
def test_what_is_no_interval_and_no_set_is_refused(field: str, value: object) -> None:
    assert refusal(lambda: cm.JobFilter(**{field: value})).startswith(f"JobFilter.{field}: ")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keep", "reason"),
    [
        (cm.JobFilter(), None),
        (cm.JobFilter(window_s=(10, 11)), None),
        (cm.JobFilter(window_s=(10.000001, 20)), "outside the time window"),
        (cm.JobFilter(window_s=(0, 10)), "outside the time window"),  # [low, high)
        (cm.JobFilter(window_s=(10, 10)), "outside the time window"),
        (cm.JobFilter(nodes=(4, 4)), None),  # both ends included
        (cm.JobFilter(nodes=(5, 9)), "outside the size range"),
        (cm.JobFilter(nodes=(1, 3)), "outside the size range"),
        (cm.JobFilter(statuses={0, 1}), None),
        (cm.JobFilter(statuses=[0]), "status not selected"),
        (cm.JobFilter(statuses=()), "status not selected"),
        (cm.JobFilter(users=(5,)), None),
        (cm.JobFilter(users={6}), "user not selected"),
        (cm.JobFilter(window_s=(0, 1), users={6}), "outside the time window"),  # one reason for a job: the first
    ],
)
def test_a_filter_gives_one_reason_for_each_job_it_leaves_out(keep: cm.JobFilter, reason: str | None) -> None:
    assert rejects(keep) == reason


def test_a_window_without_end_keeps_what_comes_later_or_is_refused_by_name() -> None:
    try:
        keep = cm.JobFilter(window_s=(5, inf))
    except cm.SpecificationError as refused:
        assert str(refused).startswith("JobFilter.window_s: ")  # noqa: PT017  either is fine, an OverflowError later is not
    else:
        assert rejects(keep) is None
        assert rejects(keep, ROW._replace(submit=4_999_999)) == "outside the time window"


def applied(scale: cm.LoadScale, row: JobRow = ROW, first: int = 0) -> JobRow:
    return JobRow(*scaled(np.array([row[:-1]]), scale, first)[0].tolist())


@pytest.mark.parametrize("field", ["interarrival", "run_time", "size"])
@pytest.mark.parametrize("factor", [0, 0.0, -1, nan, inf, -inf, "2"])
def test_a_factor_is_a_finite_number_above_zero(field: str, factor: float) -> None:
    line = refusal(lambda: cm.LoadScale(**{field: factor}))
    assert line == f"LoadScale.{field}: {factor!r} is not allowed; it must be a finite number > 0"


def test_scaling_moves_submissions_away_from_the_first_and_rounds_sizes() -> None:
    # first submission at 4 s, this one 6 s later: 4 + 6 x 0.5 = 7 s; run 7 -> 17.5, half to even: 18; estimate 9 -> 22.5: 22
    scaled = applied(cm.LoadScale(interarrival=0.5, run_time=2.5, size=0.4), ROW, 4_000_000)
    assert scaled == ROW._replace(submit=7_000_000, run=18, estimate=22, nodes=2)  # 4 x 0.4 = 1.6


def test_scaling_never_makes_a_size_or_a_duration_vanish_nor_a_missing_size_appear() -> None:
    tiny = applied(cm.LoadScale(run_time=1e-9, size=1e-9))
    assert (tiny.nodes, tiny.run, tiny.estimate) == (1, 1, 1)
    assert applied(cm.LoadScale(size=3), ROW._replace(nodes=0)).nodes == 0
    assert applied(cm.LoadScale(size=3), ROW._replace(nodes=-1)).nodes == -1


def test_the_default_scale_changes_nothing() -> None:
    assert applied(cm.LoadScale(), ROW, 123) == ROW


@pytest.mark.parametrize("path", ["KTH.swf", Path("KTH.swf")])
def test_a_path_is_no_workload_but_must_be_read(path: object) -> None:
    line = refusal(lambda: cm.Scenario(workload=path))  # type: ignore[arg-type]
    assert line == (
        "Scenario.workload: 'KTH.swf' is not allowed; a path must be read first, as in Scenario(workload=read_swf(path))"
    )


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "\x1b[31m", "\x7f", "\x85", "\u2028", "half \ud800", 5])
def test_a_scenario_has_a_line_of_text_for_a_name(name: object) -> None:
    line = refusal(lambda: cm.Scenario(workload=cm.synthetic_workload(jobs=2), name=name))  # type: ignore[arg-type]
    assert line == (f"Scenario.name: {name!r} is not allowed; it must be a line of text without control characters")


def test_names_in_all_languages_are_names() -> None:
    for name in ("", "EASY, ρ = 0.9", "日本", "a\N{NO-BREAK SPACE}b", "👩‍💻", "../x"):
        assert cm.Scenario(workload=cm.synthetic_workload(jobs=2), name=name).name == name
