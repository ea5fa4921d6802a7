"""The price of energy over time: steps, series that recur, files, and what is refused."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustermodel import Machine, Power, Price, Scenario, TraceError, read_price, synthetic_workload
from clustermodel.experiment.run_key import key_of_scenario
from tests.conftest import Finished, refusal

POWER = Power(busy_w=350, idle_w=120)
JOBS = synthetic_workload(jobs=3, nodes=4)
S = 10**6  # ticks of a second
DAY = Price(time_s=[0, 10], price=[1, 3], carbon=[100, 500], every_s=30)


def test_a_series_recurs() -> None:
    times = (0, 9, 10, 29, 30, 39, 40, 70)
    assert [DAY.at(time_s * S) for time_s in times] == [1, 1, 3, 3, 1, 1, 3, 3]
    assert [DAY.next_change(time_s * S) for time_s in (0, 10, 30, 59)] == [10 * S, 30 * S, 40 * S, 60 * S]
    assert list(DAY.steps(25 * S, 45 * S)) == [(25 * S, 1), (30 * S, 0), (40 * S, 1)]
    assert DAY.mean(0, 60 * S) == pytest.approx((20 * 1 + 40 * 3) / 60)
    assert DAY.mean(40 * S, 40 * S) == 3


def test_the_last_step_of_a_series_lasts() -> None:
    once = Price(time_s=[0, 10], price=[1, -3])
    assert (once.at(10**12), once.next_change(5 * S), once.next_change(10 * S)) == (-3, 10 * S, None)
    assert once.mean(5 * S, 15 * S) == -1


@given(st.integers(0, 200), st.integers(0, 200))
def test_the_mean_is_that_of_the_steps(begin: int, length: int) -> None:
    begin, end = begin * S // 3, (begin + length) * S // 3
    bounds = [*DAY.steps(begin, end), (end, 0)]
    total = sum((after - before) * DAY.price[step] for (before, step), (after, _) in pairwise(bounds))
    assert DAY.mean(begin, end) * (end - begin) == pytest.approx(total if end > begin else 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Price(time_s=[1], price=[1]), "Price.time_s: (1.0,) is not allowed; the first step must begin at 0"),
        (lambda: Price(time_s=[], price=[]), "Price.time_s: () is not allowed; the first step must begin at 0"),
        (
            lambda: Price(time_s=[0, 5, 5], price=[1] * 3),
            "Price.time_s: 5.0 is not allowed; each step must begin after the one",
        ),
        (lambda: Price(time_s=[0, 5], price=[1]), "Price.price: '1 values' is not allowed; there must be 2, as of time_s"),
        (lambda: Price(time_s=[0], price=["x"]), "Price.price[0]: 'x' is not allowed; it must be a number >= -1e+09"),
        (
            lambda: Price(time_s=[0], price=[1], carbon=[-1]),
            "Price.carbon[0]: -1 is not allowed; it must be a number >= 0",
        ),
        (lambda: Price(time_s=[0, 5], price=[1, 2], every_s=5), "Price.every_s: 5 is not allowed; it must be after the begin"),
        (lambda: Price(time_s=0, price=1), "Price.time_s: 0 is not allowed; it must be a list of numbers"),
        (lambda: Machine(nodes=1, power=POWER, price=3), "price: 3 is not allowed; it must be a Price(...), or a table with"),
        (lambda: Machine(nodes=1, power=POWER, price={"time_s": [0]}), "price: the column price is missing; there must be"),
        (lambda: Machine(nodes=1, price=DAY), "Machine.price: 'a price' is not allowed alone; give Machine.power, what nodes"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(make: Callable[[], Any], message: str) -> None:
    assert refusal(make).startswith(message)


def test_files_and_tables_make_equal_prices(tmp_path: Path) -> None:
    file = tmp_path / "price.csv"
    file.write_text("zone, price,TIME_S,carbon\nDE,1,0,100\nDE,3,10,500\n")
    frame = pd.DataFrame({"time_s": [0, 10], "price": [1, 3], "carbon": [100, 500]})
    assert read_price(file, every_s=30) == Price.of(frame, every_s=30) == DAY
    machine = Machine(nodes=4, power=POWER, price=frame)
    assert machine.price == Price.of(frame)
    text = "[machine]\nnodes = 4\npower = {{busy_w = 350, idle_w = 120}}\nprice = {}\n[workload]\nsynthetic = true\njobs = 3\n"
    specified = tmp_path / "scenario.toml"
    for price, expected in (
        ("'price.csv'", machine.price), ("{file = 'price.csv', every_s = 30}", DAY),
        ("{time_s = [0, 10], price = [1, 3], carbon = [100, 500], every_s = 30}", DAY),
    ):  # fmt: skip
        specified.write_text(text.format(price))
        read = Scenario.from_toml(specified)
        assert read.used_machine.price == expected
        assert Scenario.from_toml(read.to_toml()).used_machine == read.used_machine


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["time_s,carbon"], ":1: the column price is missing; there must be time_s, price and perhaps carbon"),
        (["time_s,price"], ": there is no step; the first line must name the columns time_s and price, others follow"),
        (["time_s,price", "5,1"], ":2: field time_s: 5 is not allowed; the first must be 0"),
        (["time_s,price", "0,1", "0,2"], ":3: field time_s: 0 is not allowed; it must be after the one before, 0"),
        (["time_s,price", "0,nan"], ":2: field price: nan is not allowed; it must be a number >= -1e+09 and <= 1e+09"),
        (["time_s,price", "0"], ":2: the line has 1 field; the header has 2"),
    ],
    ids=["no price", "no step", "late", "twice", "nan", "short"],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path: Path, lines: list[str], message: str) -> None:
    file = tmp_path / "price.csv"
    file.write_text("\n".join(lines))
    with pytest.raises(TraceError) as refused:
        read_price(file)
    assert str(refused.value) == f"{file}{message}"


def test_the_key_of_a_run_knows_the_price() -> None:
    prices = [None, DAY, Price(time_s=[0, 10], price=[1, 2]), Price(time_s=[0, 10], price=[1, 2], every_s=20)]
    keys = {key_of_scenario(Scenario(machine=Machine(nodes=4, power=POWER, price=price), workload=JOBS)) for price in prices}
    assert len(keys) == len(prices)


def test_options_of_the_price(command_line: Callable[..., Finished], tmp_path: Path) -> None:
    assert "--price-every: it needs --price" in command_line("run", "--jobs", 3, "--nodes", 4, "--price-every", 30).err
    file = tmp_path / "price.csv"
    file.write_text("time_s,price\n0,x\n")
    power = ("--power", "busy=2,idle=1")
    assert f"{file}:2: field price: 'x' is not allowed" in command_line("run", "--jobs", 3, *power, "--price", file).err
