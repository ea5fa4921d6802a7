"""The power of nodes: what may be stated, in Python, files and options."""

from collections.abc import Callable
from typing import Any

import pytest

from clustermodel import Machine, NodeType, Power, Price, Scenario, Site, synthetic_workload
from clustermodel.experiment.run_key import key_of_scenario
from tests.conftest import Finished, refusal

POWER = Power(busy_w=350, idle_w=120)
JOBS = synthetic_workload(jobs=3, nodes=4)


def test_defaults_follow_the_busy_power() -> None:
    assert (POWER.switching, POWER.booting, POWER.down, POWER.off) == (350_000_000, 350_000_000, 0, 0)
    assert Power(busy_w=1, idle_w=0.1234567, switching_w=0.5, boot_s=60).idle == 123_457  # the nearest microwatt
    assert Power.from_text("busy=1,idle=0.5,switching=2,down=3,off=4,boot=5,boot_s=6") == Power(
        busy_w=1, idle_w=0.5, switching_w=2, down_w=3, off_w=4, boot_w=5, boot_s=6
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Power(busy_w=1, idle_w=2), "Power.idle_w: 2 is not allowed; it must be at most busy_w, 1"),
        (lambda: Power(busy_w=-1, idle_w=2), "Power.busy_w: -1 is not allowed; it must be a number of watts >= 0 and <= 1e+06"),
        (lambda: Power(busy_w=1, idle_w=1, boot_s=-1), "Power.boot_s: -1 is not allowed"),
        (lambda: Power.from_text("busy=3"), "power: idle is missing in 'busy=3'; write busy=WATTS,idle=WATTS"),
        (lambda: Power.from_text("busy=3,busy=4"), "power: busy: '4' is not allowed; it is given twice"),
        (lambda: Power.from_text("busy=x,idle=1"), "power: busy: 'x' is not allowed; it must be a number"),
        (lambda: Power.from_text("busy,idle=1"), "power: 'busy' is not allowed; write busy=WATTS,idle=WATTS"),
        (lambda: Machine(nodes=1, power=350), "Machine.power: 350 is not allowed; it must be a Power(...) or None"),
        (lambda: NodeType(name="a", nodes="0", power=350), "NodeType.power: 350 is not allowed"),
        (
            lambda: Machine(nodes=2, node_types=[NodeType(name="a", nodes="0", power=POWER)]),
            "NodeType.power: None is not allowed where other nodes have a power; give it for all nodes, or Machine.power",
        ),
    ],
    ids=lambda value: "" if callable(value) else value.partition(" is ")[0],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(make: Callable[[], Any], message: str) -> None:
    assert refusal(make).startswith(message)


def test_powers_are_those_of_sets_of_processors() -> None:
    big = Power(busy_w=700, idle_w=200)
    same, other = NodeType(name="a", nodes="0-1", power=POWER), NodeType(name="b", nodes="3", power=big)
    machine = Machine(nodes=5, power=POWER, node_types=[same, other], gpus_per_node=4)
    assert machine.powers == {big: [(12, 16)], POWER: [(0, 12, 16, 20)]}
    assert Machine(nodes=2**50, power=POWER).powers == {POWER: [(0, 2**50)]}
    assert Machine(nodes=2).powers == {}


def test_files_have_the_power_of_machines_and_of_types() -> None:
    types = [NodeType(name="a", nodes="0-1", power=Power(busy_w=700, idle_w=200, boot_s=60))]
    machine = Machine(nodes=4, power=POWER, node_types=types)
    scenario = Scenario.from_toml(
        "[machine]\nnodes = 4\npower = {busy_w = 350, idle_w = 120}\n[workload]\nsynthetic = true\njobs = 3\nnodes = 4"
    )
    assert scenario.used_machine.power == POWER
    specified = Scenario(machine=machine, workload=JOBS, site=Site(node_types=types))
    assert "[machine.power]" in Scenario(machine=machine, workload=JOBS).to_toml()
    assert Scenario.from_toml(specified.to_toml()).used_machine == machine


def test_a_site_file_has_the_power_of_types(tmp_path: Any) -> None:
    site = Site(node_types=[NodeType(name="a", nodes="0-1", power=POWER)])
    site.to_toml(tmp_path / "site.toml")
    assert Site.from_toml(tmp_path / "site.toml") == site
    (tmp_path / "wrong.toml").write_text("[[node_types]]\nname = 'a'\nnodes = '0'\npower = {busy_w = 1}\n")
    wrong = f"{tmp_path / 'wrong.toml'}: node_types[0].power.idle_w: is missing"
    assert refusal(lambda: Site.from_toml(tmp_path / "wrong.toml")) == wrong


def test_a_site_says_what_its_nodes_draw_and_what_that_costs(tmp_path: Any) -> None:
    (tmp_path / "price.csv").write_text("time_s,price\n0,2\n")
    (tmp_path / "site.toml").write_text("price = 'price.csv'\n[power]\nbusy_w = 350\nidle_w = 120\n")
    site = Site.from_toml(tmp_path / "site.toml")
    assert site == Site(power=POWER, price=Price(time_s=[0], price=[2]))
    site.to_toml(tmp_path / "again.toml")
    assert Site.from_toml(tmp_path / "again.toml") == site
    used = Scenario(machine=Machine(nodes=4), workload=JOBS, site=site).used_machine
    assert (used.power, used.price) == (site.power, site.price)
    assert refusal(lambda: Site(power=350)) == "Site.power: 350 is not allowed; it must be a Power(...) or None"  # type: ignore[arg-type]


def test_the_key_of_a_run_knows_the_power() -> None:
    types = [NodeType(name="a", nodes="0-1")]
    machines = [
        Machine(nodes=4), Machine(nodes=4, power=POWER), Machine(nodes=4, power=Power(busy_w=350, idle_w=121)),
        Machine(nodes=4, power=POWER, node_types=types),
        Machine(nodes=4, power=POWER, node_types=[NodeType(name="a", nodes="0-1", power=Power(busy_w=1, idle_w=1))]),
    ]  # fmt: skip
    assert len({key_of_scenario(Scenario(machine=machine, workload=JOBS)) for machine in machines}) == len(machines)


def test_the_option_names_the_mistake(command_line: Callable[..., Finished]) -> None:
    finished = command_line("run", "--jobs", 3, "--nodes", 4, "--power", "busy=1,ide=1")
    assert finished.code == 2
    assert "power: 'ide' is not allowed (did you mean 'idle'?)" in finished.err
