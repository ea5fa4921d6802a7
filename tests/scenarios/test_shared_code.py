"""What scripts of a folder in scenarios/ share: periods, shapes, load curves, the jobs and measures of queueing models."""

from collections.abc import Sequence
from math import inf, isnan
from pathlib import Path

import numpy as np
import pytest

import clustermodel
import clustermodel as cm
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.provenance import Provenance
from tests.scripts import defined_in
from tests.shared_data import trace_path

BLUE_PACIFIC, CURVES = defined_in("papers/zhang_2003/blue_pacific"), defined_in("papers/zhang_2003/load_curves")
FAIRNESS = defined_in("papers/yuan_2010/fairness_measures")
MODELS = defined_in("validation/queueing_models")
PERIODS, SHAPES = defined_in("papers/talby_1999/periods"), defined_in("papers/perkovic_2000/shape_classes")


@pytest.mark.parametrize("name", ["blue-pacific", "blue-pacific-2"])
def test_the_shipped_file_is_what_the_calibration_makes(name: str) -> None:
    model = cm.load_model(name)
    assert BLUE_PACIFIC.CALIBRATIONS[name]() == model
    shipped = Path(clustermodel.__file__).parent / "workload" / "models" / f"{name}.json"
    assert shipped.read_text(encoding="utf-8") == model.to_json()


def test_the_setting_of_blue_pacific() -> None:
    scenario = BLUE_PACIFIC.blue_pacific_scenario("bgs", jobs=200, seed=4, run_time_factor=1.5)
    assert (scenario.machine.nodes, scenario.machine.time_slicing) == (320, cm.TimeSlicing(quantum_s=200, mpl=5))
    exact = BLUE_PACIFIC.blue_pacific_scenario("bgs", jobs=200, seed=4, phi=1.0)
    jobs, others = (one.run().jobs for one in (scenario, exact))
    assert (jobs["submit_s"].to_numpy() == others["submit_s"].to_numpy()).all()
    assert jobs["run_s"].to_numpy() == pytest.approx(1.5 * others["run_s"].to_numpy(), abs=1e-5)


def table_of(**curves: tuple[Sequence[float], Sequence[float]]) -> cm.StudyTable:
    """Return a table with a curve for each policy: utilizations and slowdowns at factors 0, 1, ..."""
    rows = [
        {"run": f"{policy} {factor}", "policy": policy, "factor": factor, "replication": 1, "utilization": x, "slowdown": y}
        for policy, points in curves.items()
        for factor, (x, y) in enumerate(zip(*points, strict=True))
    ]
    return cm.StudyTable(rows, ["policy", "factor"], "curves")


def crossing(x: Sequence[float], y: Sequence[float], other_x: Sequence[float], other_y: Sequence[float]) -> float:
    table = table_of(one=(x, np.exp(y)), other=(other_x, np.exp(other_y)))  # curves are straight in the logarithm
    return CURVES.overtaking(table, "slowdown", "factor", {"policy": "one"}, {"policy": "other"})


def test_overtaking() -> None:
    x = [0.0, 1.0, 2.0]
    assert crossing(x, [2.0, 2.0, 2.0], x, [1.0, 1.5, 3.5]) == pytest.approx(1.25)
    assert isnan(crossing(x, [2.0, 2.0, 2.0], x, [1.0, 1.5, 1.9]))
    assert isnan(crossing(x, [2.0, 2.0, 2.0], x, [3.5, 1.5, 1.0]))  # from below
    bent = [0.0, 1.0, 0.9]  # a saturated policy: utilization falls when the load rises
    assert crossing(x, [2.0, 2.0, 2.0], bent, [1.0, 1.5, 2.5]) == pytest.approx(0.95)


def test_utilization_at() -> None:
    x = [0.5, 0.7, 0.9]
    table = table_of(a=(x, [1.0, 10.0, 1000.0]), b=(x, [1.0, 10.0, 20.0]), c=(x, [30.0, 40.0, 50.0]))
    assert CURVES.utilization_at(table, "slowdown", 100.0, "factor", policy="a") == pytest.approx(0.8)
    assert CURVES.utilization_at(table, "slowdown", 20.0, "factor", policy="b") == inf
    assert isnan(CURVES.utilization_at(table, "slowdown", 20.0, "factor", policy="c"))


def test_load_curve() -> None:
    table = table_of(a=([0.5, 0.7], [1.0, 10.0]))
    utilization, slowdown = CURVES.load_curve(table, "slowdown", "factor", policy="a")
    assert utilization.tolist() == [0.5, 0.7]
    assert slowdown.tolist() == [1.0, 10.0]


def test_the_highest_utilization_and_where_it_is_reached() -> None:
    table = table_of(a=([0.5, 0.9, 0.8], [1.0, 2.0, 3.0]), b=([0.95], [1.0]))
    level, reached = CURVES.highest_utilization(table, "factor", policy="a")
    assert (level, reached.mean) == (1, 0.9)


SIZES = {1: 0.5, 4: 0.5}


def jobs_of(stream: str = "a", per_s: float | None = 0.02, seed: int = 1) -> cm.Workload:
    return MODELS.model_jobs(jobs=4000, seed=seed, stream=stream, run_s=cm.Exponential(100), per_s=per_s, sizes=SIZES)


def test_jobs_have_the_rate_the_mean_and_the_sizes() -> None:
    jobs = jobs_of()
    assert np.diff(jobs.seconds("submit")).mean() == pytest.approx(50, rel=0.05)
    assert jobs.seconds("run").mean() == pytest.approx(100, rel=0.05)
    assert (jobs.column("estimate") == jobs.column("run")).all()
    assert set(jobs.column("nodes").tolist()) == {1, 4}
    assert (jobs.column("nodes") == 4).mean() == pytest.approx(0.5, abs=0.03)


def test_streams_and_seeds_are_independent_and_ingredients_are_not_mixed_up() -> None:
    jobs, other = jobs_of(), jobs_of("b")
    for name in ("submit", "run"):
        assert abs(np.corrcoef(np.diff(jobs.seconds(name)), np.diff(other.seconds(name)))[0, 1]) < 0.06
    faster = jobs_of(per_s=0.04)
    assert faster.seconds("submit") == pytest.approx(jobs.seconds("submit") / 2, abs=1e-6)
    assert (faster.column("run") == jobs.column("run")).all()
    assert (jobs_of(seed=2).column("run") != jobs.column("run")).any()


def test_all_at_once_equal_run_times_and_means_by_size() -> None:
    assert not jobs_of(per_s=None).column("submit").any()
    assert set(MODELS.model_jobs(jobs=5, seed=1, stream="a", run_s=7.0).seconds("run").tolist()) == {7.0}
    jobs = MODELS.model_jobs(jobs=4000, seed=1, stream="a", run_s={1: 10.0, 4: 1000.0}, sizes=SIZES)
    run, nodes = jobs.seconds("run"), jobs.column("nodes")
    assert [run[nodes == size].mean() for size in SIZES] == pytest.approx([10, 1000], rel=0.1)


def test_the_middle_leaves_out_the_first_fifth_and_the_last_twentieth() -> None:
    assert MODELS.middle(np.arange(100.0)).tolist() == list(range(20, 95))


def test_measures_of_the_middle() -> None:
    workload = MODELS.model_jobs(jobs=100, seed=1, stream="a", run_s=cm.Exponential(100), per_s=0.01)
    result = cm.Scenario(machine=cm.Machine(nodes=1), workload=workload, policy="fcfs").run()
    jobs = result.jobs.iloc[20:95]
    assert MODELS.mean_wait_s(result) == pytest.approx(jobs["wait_s"].mean())
    assert MODELS.mean_response_s(result) == pytest.approx(jobs["response_s"].mean())
    assert MODELS.mean_run(result) == pytest.approx(jobs["run_s"].mean())
    assert MODELS.mean_gap(result) == pytest.approx(jobs["submit_s"].diff().mean())


def test_control_variates_share_the_nodes() -> None:
    """Where no two jobs meet, the response is the run time; its work takes half as long on four."""
    workload = MODELS.model_jobs(jobs=40, seed=1, stream="a", run_s=10.0, per_s=1e-6, sizes={2: 1.0})
    result = cm.Scenario(machine=cm.Machine(nodes=4), workload=workload, policy="fcfs").run()
    assert MODELS.shared_response(result) == pytest.approx(10.0)
    assert MODELS.shared_work_response(result) == pytest.approx(5.0)


SECOND = 1_000_000


def at_once(policy: str, *sizes_and_runs: tuple[int, int], **machine: object) -> cm.Result:
    """Return a run of jobs submitted at once to 2 nodes."""
    rows = [
        cm.JobRow(0, number, nodes, run_s * SECOND, run_s * SECOND, -1, -1, 0, -1)
        for number, (nodes, run_s) in enumerate(sizes_and_runs, 1)
    ]
    return cm.Scenario(machine=cm.Machine(nodes=2, **machine), workload=cm.Workload(rows), policy=policy).run()  # type: ignore[arg-type]


def test_what_is_idle_until_the_last_start_is_lost() -> None:
    result = at_once("fcfs", (1, 10), (2, 10), (1, 30))  # one node idles for 10 s; what follows 20 s does not count
    assert MODELS.kappa_until_last_start(result) == pytest.approx(10 / 40)
    assert MODELS.utilization_until_last_start(result) == pytest.approx(30 / 40)


def test_the_first_starts_may_be_left_out() -> None:
    result = at_once("fcfs", (1, 10), (2, 10), (1, 30))
    assert MODELS.utilization_until_last_start(result, skip=0.4) == pytest.approx(1.0)  # from the second start at 10 s


def test_with_time_sharing_switches_are_lost_and_both_agree() -> None:
    machine = {
        "time_slicing": cm.TimeSlicing(quantum_s=10, mpl=2),
        "context_switch": cm.ContextSwitch(fraction=0.1, charge="every-slice"),
    }
    result = at_once("gs", (2, 18), (2, 18), (2, 18), **machine)
    assert MODELS.kappa_until_last_start(result) == pytest.approx(0.1)
    assert MODELS.utilization_until_last_start(result) == pytest.approx(0.9)


@pytest.fixture(scope="module")
def result() -> cm.Result:
    workload = cm.synthetic_workload(jobs=400, nodes=64, load=0.95, seed=3)
    return cm.Scenario(machine=cm.Machine(nodes=64), workload=workload, policy="easy").run()


def test_fairness_by_size(result: cm.Result) -> None:
    table = result.fairness()
    assert FAIRNESS.fairness_measure("blocked")(result) == table.loc["all", "blocked"] > 0
    for group in ("wide", "narrow"):
        assert FAIRNESS.fairness_measure(f"{group}_blocked")(result) == table.loc[group, "blocked"]


def test_jobs_delayed_for_long(result: cm.Result) -> None:
    delays_s = cm.delays_by_later_jobs(result.records, 64)
    for over_s in (0, 600):
        assert FAIRNESS.delayed_measure(over_s=over_s)(result) == (delays_s > over_s).sum() > 0
    literally_s = cm.delays_by_later_jobs(result.records, 64, only_with_idle_nodes=False)
    assert literally_s.sum() > delays_s.sum()
    over_s = float(np.sort(literally_s)[-2])  # of which one is longer
    assert FAIRNESS.delayed_measure(over_s=over_s, only_with_idle_nodes=False)(result) == 1


def test_migrations_are_counted_by_the_equations() -> None:
    migration = defined_in("validation/migration_overhead")
    saving = cm.Checkpointing(checkpoint_s=3, restart_s=7)
    machine = cm.Machine(nodes=16, time_slicing=cm.TimeSlicing(quantum_s=100, mpl=4), checkpointing=saving)
    workload = cm.synthetic_workload(jobs=150, nodes=16, load=0.9, seed=2)
    policy = migration.CountedMigrations("mgs")
    counted, plain = (cm.Scenario(machine=machine, workload=workload, policy=one).run() for one in (policy, "mgs"))
    assert counted.jobs["end_s"].equals(plain.jobs["end_s"])  # counting decides nothing
    spent = sum(sum(counted.ledger.amount(one)) for one in (cm.Account.CHECKPOINT, cm.Account.RESTART, cm.Account.BLOCKED))
    assert spent > 0
    assert migration.by_equations(counted) == pytest.approx(cm.to_seconds(spent))


def log(header: dict[str, str], *submit_s: int) -> cm.Workload:
    rows = [
        cm.JobRow(*[0] * 10)._replace(id=number, submit=second * TICKS_PER_SECOND, nodes=1, run=1, estimate=1)
        for number, second in enumerate(submit_s)
    ]
    return cm.Workload(rows, name="log", provenance=Provenance(source="log", header=header), machine_nodes=8)


def test_months_change_at_midnight_of_the_time_zone() -> None:
    """843480031 is Mon Sep 23 14:00:31 CEST 1996; October begins 7 days and 9:59:29 hours later."""
    until_october = 7 * 86_400 + 9 * 3600 + 59 * 60 + 29
    header = {"UnixStartTime": "843480031", "TimeZoneString": "Europe/Stockholm"}
    months = PERIODS.by_month(log(header, 0, until_october - 1, until_october))
    assert {name: list(part.column("id")) for name, part in months.items()} == {"1996-09": [0, 1], "1996-10": [2]}
    assert months["1996-10"].name == "log 1996-10"
    assert months["1996-10"].column("submit").tolist() == [until_october * TICKS_PER_SECOND]
    assert months["1996-10"].machine_nodes == 8


def test_the_months_of_kth() -> None:
    workload = cm.read_swf(trace_path("KTH-SP2-1996-2.2"))
    months = PERIODS.by_month(workload)
    assert [len(months[name]) for name in ("1996-09", "1996-10", "1997-08")] == [106, 2406, 1926]
    assert sum(map(len, months.values())) == len(workload)


def test_parts_are_equally_long() -> None:
    workload = log({}, 0, 1, 2, 3, 50, 60, 99)
    by_time = PERIODS.in_parts(workload, 3)
    assert {name: part.seconds("submit").tolist() for name, part in by_time.items()} == {
        "part 1": [0, 1, 2, 3], "part 2": [50, 60], "part 3": [99],
    }  # fmt: skip


def test_every_job_has_one_shape() -> None:
    nodes, estimate = [1, 1, 3, 3], [10, 60, 10, 60]
    assert SHAPES.shapes_of_jobs(nodes, estimate).tolist() == ["short-narrow", "long-narrow", "short-wide", "long-wide"]
    assert SHAPES.shapes_of_jobs(nodes, estimate, narrow=3).tolist() == ["short-narrow", "long-narrow"] * 2


def test_the_median_job_is_short_and_narrow() -> None:
    assert SHAPES.shapes_of_jobs([1, 2, 3], [1, 2, 3]).tolist() == ["short-narrow", "short-narrow", "long-wide"]


def test_jobs_that_do_not_count_have_no_shape() -> None:
    nodes, estimate = [1, 2, 3, 0], [1, 2, 3, 9]
    assert SHAPES.shapes_of_jobs(nodes, estimate, among=[True, True, True, False]).tolist()[1:] == [
        "short-narrow",
        "long-wide",
        "",
    ]
    assert SHAPES.shapes_of_jobs(nodes, estimate, among=[False] * 4).tolist() == [""] * 4
    assert SHAPES.shapes_of_jobs([], []).tolist() == []
