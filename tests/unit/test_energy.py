"""The energy of a run by hand: by account, by job and user, over time, and what it costs."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clustermodel import (
    Checkpointing,
    ContextSwitch,
    DecisionError,
    Job,
    Machine,
    NodeType,
    Power,
    Price,
    Reservation,
    Result,
    Scenario,
    TimeSlicing,
    Workload,
    synthetic_workload,
)
from clustermodel.figures.run_tables import comparison_table, run_row
from clustermodel.machine.failure import Failure
from tests.conftest import Finished, refusal
from tests.property.test_failures import Listed
from tests.timeline.script import Script, migrate, start

S = 10**6  # ticks of a second
KWH = 3.6e6  # joules
POWER = Power(busy_w=100, idle_w=40, switching_w=60, down_w=5)
PRICE = Price(time_s=[0, 10], price=[2, 6], carbon=[100, 500], every_s=30)


def joules(result: Result) -> dict[str, float]:
    """Return the energy of each account that has any."""
    energy: pd.Series[float] = result.energy["energy_j"]
    return {str(account): value for account, value in energy.items() if value}


def of_jobs(result: Result) -> list[float]:
    return (result.jobs["energy_kwh"] * KWH).round(6).tolist()


def run(jobs: list[Job], policy: Any = "easy", nodes: int = 4, **fields: Any) -> Result:
    fields = {"power": POWER, **fields}
    return Scenario(workload=Workload.from_jobs(jobs), machine=Machine(nodes=nodes, **fields), policy=policy).run()


TWO = [Job(id=1, nodes=2, submit_s=0, run_s=30, user=7), Job(id=2, nodes=4, submit_s=10, run_s=10, user=8)]


def test_busy_and_idle_nodes() -> None:
    result = run(TWO)  # job 2 waits until 30 s
    assert joules(result) == {"useful": 100 * (2 * 30 + 4 * 10), "idle": 40 * 2 * 30}
    assert result.energy_kwh == 12_400 / KWH == result.summary().energy_kwh == run_row(result)["energy_kwh"]
    assert result.energy["share"].sum() == 1
    assert of_jobs(result) == [6_000, 4_000]
    assert (result.by_user()["energy_kwh"] * KWH).round(6).tolist() == [6_000, 4_000]
    assert result.states[["time_s", "power_w"]].to_numpy().tolist() == [[0, 280], [10, 280], [30, 400], [40, 0]]


def test_nodes_that_are_down_and_work_that_is_lost() -> None:
    failures = Listed((Failure(5 * S, 0, 20 * S),), 20.0)
    result = run([Job(id=1, nodes=2, submit_s=0, run_s=10)], nodes=2, failures=failures)
    # Node 0 fails at 5 s and is up at 25 s, when the job starts again.
    assert joules(result) == {"useful": 2_000, "lost": 1_000, "idle": 40 * 20, "down": 5 * 20}
    assert of_jobs(result) == [3_000]
    assert result.states["power_w"].tolist() == [200, 45, 200, 0]


@pytest.mark.parametrize("differ", [False, True])
def test_a_migration_draws_what_switching_does(differ: bool) -> None:
    script = Script({0: [start(1)], 10: [migrate({1: (2, 4)})]})
    costs = Checkpointing(checkpoint_s=4, restart_s=2)
    big = Power(busy_w=1000, idle_w=400, switching_w=600)
    types = [NodeType(name="big", nodes="0-1", power=big)] if differ else []
    result = run([Job(id=1, nodes=2, submit_s=0, run_s=30)], script, checkpointing=costs, node_types=types)
    # 10 s on nodes 0 and 1, then 4 s of checkpoint, 2 s of restart and 20 s of work on nodes 2 and 3.
    first, idle = (2_000, 80 * 10 + 800 * 26) if differ else (200, 80 * 36)
    assert joules(result) == {"useful": first * 10 + 200 * 20, "checkpoint": 120 * 4, "restart": 120 * 2, "idle": idle}
    assert of_jobs(result) == [first * 10 + 120 * 6 + 200 * 20]
    drawn = [2_080, 920, 920, 1_000, 0] if differ else [280, 200, 200, 280, 0]
    assert result.states["power_w"].tolist() == drawn


def test_of_types_without_failures_each_draws_its_own() -> None:
    types = [NodeType(name="gpu", nodes="0", processors_per_node=2, power=Power(busy_w=10, idle_w=1))]
    result = run([Job(id=1, nodes=3, submit_s=0, run_s=10), Job(id=2, nodes=1, submit_s=0, run_s=4)], nodes=3, node_types=types)
    # Processors 0 and 1 are of node 0, 2 and 3 of the others: power is that of processors.
    assert joules(result) == {"useful": (2 * 10 + 100) * 10 + 100 * 4, "idle": 40 * 6}
    assert of_jobs(result) == [1_200, 400]


def test_rows_pay_for_context_switches() -> None:
    jobs = [Job(id=1, nodes=2, submit_s=0, run_s=10), Job(id=2, nodes=2, submit_s=0, run_s=10)]
    slices = {"time_slicing": TimeSlicing(quantum_s=5, mpl=2), "context_switch": ContextSwitch(seconds=1)}
    result = run(jobs, "gs", nodes=2, **slices)
    switches, length = result.ledger.amount("context switch"), result.ledger.end // S
    assert joules(result) == {"useful": 100 * 40, "context switch": 60 * sum(switches) / S}
    assert sum(switches) == (2 * length - 40) * S > 0
    assert of_jobs(result) == [2_000, 2_000]  # which gang pays for a switch is not recorded
    assert sum(result.power_draw.picojoules) == round(result.energy_kwh * KWH * 10**12)


def sum_over_states(result: Result) -> float:
    states = result.states
    joules = (states["power_w"] * -states["time_s"].diff(-1)).sum()
    return float(joules / 3.6e6)


@pytest.mark.parametrize("policy", ["easy", "pv-easy:mode=checkpoint", "mbgs"])
def test_the_sum_over_the_states_is_the_energy(policy: str) -> None:
    costs = {"checkpointing": Checkpointing(checkpoint_s=60, restart_s=30), "context_switch": ContextSwitch(fraction=0.05)}
    machine = Machine(nodes=64, power=POWER, price=PRICE, **costs)
    scenario = Scenario(machine=machine, workload=synthetic_workload(jobs=100, nodes=64, load=1.0), policy=policy)
    result = scenario.run()
    assert sum_over_states(result) == pytest.approx(result.energy_kwh, rel=1e-12)
    assert result.cost(Price(time_s=[0], price=[2])).energy_cost == 2 * result.energy_kwh


def test_the_cost_is_that_of_each_step() -> None:
    result = run(TWO, price=PRICE)
    # 280 W until 30 s, 400 W until 40 s; the price is 2 from 0 to 10 s and from 30 to 40 s, else 6.
    cheap, dear = 280 * 10 + 400 * 10, 280 * 20
    assert result.cost().energy_cost == pytest.approx((2 * cheap + 6 * dear) / KWH, rel=1e-14)
    assert result.cost().carbon_kg == pytest.approx((0.1 * cheap + 0.5 * dear) / KWH, rel=1e-14)
    summary = result.summary()
    assert (summary.energy_cost, summary.carbon_kg) == result.cost()
    without = result.cost(pd.DataFrame({"time_s": [0], "price": [0.3]}))
    assert without == (pytest.approx(0.3 * 12_400 / KWH), None)


def test_a_price_may_recur_often_in_a_run() -> None:
    often = Price(time_s=[0, 2e-6], price=[1, 4], carbon=[1, 4], every_s=3e-6)
    result = run(TWO)
    assert result.cost(often).energy_cost == pytest.approx(2 * result.energy_kwh, rel=1e-6)
    many = run(TWO, price=often)
    assert refusal(many.plot.power) == "power: the price has more than 20,000 steps in the run, too many to draw"
    thrice = Price(time_s=[0, 1, 3], price=[1, 4, -2], every_s=5)
    bounds = [*thrice.steps(0, 40 * S), (40 * S, 0)]
    watts = [280] * 30 + [400] * 10
    expected = sum(thrice.price[step] * sum(watts[begin // S : end // S]) for (begin, step), (end, _) in pairwise(bounds))
    assert result.cost(thrice).energy_cost == pytest.approx(expected / KWH, rel=1e-12)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda result: result.energy, "energy: it is not known what nodes draw; give Machine(power=Power(busy_w=..., idle_w="),
        (lambda result: result.energy_kwh, "energy: it is not known what nodes draw; give Machine(power=Power(busy_w=..., "),
        (lambda result: result.cost(PRICE), "energy: it is not known what nodes draw"),
        (lambda result: result.cost(), "cost: no price is given; give one, or Machine(price=...)"),
    ],
    ids=["energy", "sum", "cost", "price"],
)
def test_without_a_power_nothing_is_said(ask: Callable[[Result], Any], message: str) -> None:
    result = run(TWO, power=None)
    assert refusal(lambda: ask(result)).startswith(message)
    assert "energy_kwh" not in result.jobs
    assert "power_w" not in result.states
    assert not {"energy_kwh", "energy_cost", "carbon_kg"} & run_row(result).keys()
    assert "energy_kwh" not in comparison_table([result]).values


def test_a_streamed_run_has_energy_and_no_cost() -> None:
    jobs = Workload.from_jobs(TWO)
    streamed = Scenario(workload=jobs, machine=Machine(nodes=4, power=POWER), stream=True).run()
    assert streamed.energy_kwh == run(TWO).energy_kwh == streamed.summary().energy_kwh
    priced = Scenario(workload=jobs, machine=Machine(nodes=4, power=POWER, price=PRICE), stream=True)
    assert refusal(priced.run).startswith("stream: a machine with a price of energy is not allowed in a streamed run")


def test_nodes_that_differ_in_power_are_not_shared_in_time() -> None:
    types = [NodeType(name="a", nodes="0", power=Power(busy_w=2, idle_w=1))]
    with pytest.raises(DecisionError, match=r"cannot be shared in time where they differ in power \(NodeType.power\)"):
        run(TWO, "gs", node_types=types)


def test_a_reserved_node_draws_what_an_idle_one_does() -> None:
    kept = [Reservation(nodes="3", start_s=0, end_s=20)]
    uniform = run(TWO[:1], reservations=kept)
    assert joules(uniform) == {"useful": 6_000, "idle": 40 * 40, "reserved": 40 * 20}
    types = [NodeType(name="a", nodes="3", power=Power(busy_w=9, idle_w=1))]
    assert joules(run(TWO[:1], reservations=kept, node_types=types)) == {"useful": 6_000, "idle": (40 + 1) * 30}


def test_commands_tell_energy(command_line: Callable[..., Finished], tmp_path: Path) -> None:
    file = tmp_path / "price.csv"
    file.write_text("time_s,price,carbon\n0,2,100\n")
    options = ("run", "--jobs", 20, "--nodes", 128, "--policy", "easy", "--power", "busy=350,idle=120")
    told = json.loads(command_line(*options, "--price", file, "--json").out)[0]
    assert told["energy_cost"] == pytest.approx(2 * told["energy_kwh"])
    assert told["carbon_kg"] == pytest.approx(0.1 * told["energy_kwh"])
    assert "energy_cost" not in json.loads(command_line(*options, "--json").out)[0]


def test_the_figure_of_the_power_has_the_mean_and_the_price() -> None:
    result = run(TWO, price=PRICE)
    power, price = result.plot.power(bins=4).axes
    values, edges, _ = power.patches[0].get_data()
    assert (values.tolist(), edges.tolist()) == ([0.28, 0.28, 0.28, 0.4], [0, 10, 20, 30, 40])
    assert power.get_lines()[0].get_ydata()[0] == pytest.approx(12.4 / 40)
    steps, times, _ = price.patches[0].get_data()
    assert (steps.tolist(), times.tolist()) == ([2, 6, 2], [0, 10, 30, 40])
    assert len(run(TWO).plot.power().axes) == 1
    assert refusal(run(TWO, power=None).plot.power).startswith("energy: it is not known what nodes draw")


def test_whatif_tells_the_energy_of_its_rows(command_line: Callable[..., Finished], write_trace: Callable[..., Path]) -> None:
    trace = write_trace("1 0 5 30 2 -1 -1 2 40 -1 1 1 1 -1 1 -1 -1 -1", "2 10 0 10 4 -1 -1 4 20 -1 1 1 1 -1 1 -1 -1 -1")
    told = command_line("whatif", "--trace", trace, "--nodes", 4, "--policy", "easy", "--power", "busy=100,idle=40")
    header, observed, easy = (line.split("\t") for line in told.out.splitlines())
    assert (header[-1], observed[-1], float(easy[-1])) == ("energy_kwh", "nan", pytest.approx(12_400 / KWH))


def test_a_sweep_takes_power_and_price(command_line: Callable[..., Finished], tmp_path: Path) -> None:
    (tmp_path / "price.csv").write_text("time_s,price\n0,2\n")
    (tmp_path / "study.py").write_text(SWEPT)
    options = ("--power", "busy=100,idle=40", "--price", tmp_path / "price.csv", "--price-every", 60, "--workers", 1)
    assert not command_line("sweep", tmp_path / "study.py", "--out", tmp_path / "results", *options).code
    told = command_line("results", tmp_path / "results")
    header, row = (line.split("\t") for line in told.out.splitlines()[:2])
    found = dict(zip(header, row, strict=True))
    assert float(found["energy_kwh"]) == pytest.approx(12_400 / KWH)
    assert float(found["energy_cost"]) == pytest.approx(2 * 12_400 / KWH)
    assert not command_line("sweep", tmp_path / "study.py", "--out", tmp_path / "other", "--workers", 1).code
    assert command_line("results", tmp_path / "other", "--csv", tmp_path / "other.csv").code in (None, 0)
    assert pd.read_csv(tmp_path / "other.csv")["energy_kwh"].isna().all()


SWEPT = """
from clustermodel import Job, Machine, Scenario, Study, Workload
jobs = [Job(id=1, nodes=2, submit_s=0, run_s=30), Job(id=2, nodes=4, submit_s=10, run_s=10)]
def scenario(policy, seed):
    return Scenario(workload=Workload.from_jobs(jobs), machine=Machine(nodes=4), policy=policy)
study = Study(name="swept", factors={"policy": ["easy"]}, scenario=scenario, shown=("energy_kwh", "energy_cost"))
"""
