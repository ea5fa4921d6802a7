"""``clustermodel crossover``: its answers, JSON, advice and picture, and refusals of one line."""

import json
from collections.abc import Callable
from math import exp, inf, log
from pathlib import Path
from typing import Any

import pytest

from clustermodel import ContextSwitch, Machine, Scenario, TimeSlicing, synthetic_workload
from clustermodel.experiment.conformance import BrokenRule, PolicyCheck
from clustermodel.experiment.crossover import Crossover
from clustermodel.measure.statistics import Interval
from tests.conftest import Finished

Command = Callable[..., Finished]
SMALL = ("--jobs", 80, "--nodes", 16, "--workers", 1, "--replications", 4, "--between", "gs", "bf")
COSTLY = ("--over", "context-switch=0:0.8", "--charge", "every-slice")


def answer(command_line: Command, *arguments: object) -> dict[str, Any]:
    finished = command_line("crossover", *SMALL, *arguments, "--json")
    assert finished.code == 0, finished.err
    whole = json.loads(finished.out)
    assert isinstance(whole, dict)
    return whole


def test_the_answer_is_one_object_of_a_crossing_with_its_interval(command_line: Command, tmp_path: Path) -> None:
    picture = tmp_path / "ratios.svg"
    found = answer(command_line, *COSTLY, "--figure", picture)
    assert list(found)[:7] == ["between", "over", "at", "low", "high", "unit", "found"]
    assert (found["between"], found["over"], found["unit"]) == (["gs", "bf"], "context-switch", "of a slice")
    assert found["found"]
    assert (found["lower_before"], found["lower_after"]) == ("gs", "bf")
    assert found["low"] is None or found["low"] <= found["at"]
    assert found["high"] is None or found["high"] >= found["at"]
    # The ratio at an end is that of the runs themselves.
    machine = Machine(nodes=16, time_slicing=TimeSlicing(), context_switch=ContextSwitch(fraction=0.8, charge="every-slice"))
    slowdowns = {
        policy: [
            Scenario(machine=machine, workload=synthetic_workload(jobs=80, nodes=16, seed=seed), policy=policy, seed=seed)
            .run().summary().mean_bounded_slowdown
            for seed in range(1, 5)
        ]
        for policy in ("gs", "bf")
    }  # fmt: skip
    logarithms = [log(a / b) for a, b in zip(slowdowns["gs"], slowdowns["bf"], strict=True)]
    assert found["ratios"][-1]["value"] == 0.8
    assert found["ratios"][-1]["ratio"] == pytest.approx(exp(sum(logarithms) / 4))
    assert "bf is lower" in picture.read_text()


def test_people_get_a_sentence_and_to_what_it_belongs(command_line: Command) -> None:
    finished = command_line("crossover", *SMALL, *COSTLY)
    assert finished.out.startswith("mean bounded slowdown: gs is lower ")
    (setting,) = (line for line in finished.out.splitlines() if line.startswith("for 80 jobs of "))
    assert " on 16 nodes, load " in setting
    assert ", 4 replications; with other jobs or another machine the crossing " in setting
    assert "\ncontext_switch\tratio\tlow\thigh\treplications\n" in finished.out


@pytest.mark.parametrize(
    ("over", "unit", "values"),
    [
        ("nodes=16:24", "nodes", [16, 18, 20, 22, 24]),
        ("machine.time_slicing.quantum_s=10.0:90.0", "s", [10, 30, 50, 70, 90]),
        ("context-switch=0s:8s", "s", [0, 2, 4, 6, 8]),
        ("load=0.3:0.7", "", [0.3, 0.4, 0.5, 0.6, 0.7]),
    ],
)
def test_options_fields_seconds_and_the_load_are_parameters(
    command_line: Command, over: str, unit: str, values: list[float]
) -> None:
    machine = () if "nodes" in over else ("--nodes", 16)
    arguments = ("--jobs", 60, *machine, "--workers", 1, "--replications", 2, "--between", "gs", "bf", "--over", over)
    found = json.loads(command_line("crossover", *arguments, "--json").out)
    assert (found["unit"], found["over"]) == (unit, over.partition("=")[0])
    looked = [row["value"] for row in found["ratios"]]
    assert {round(value, 9) for value in values} <= {round(value, 9) for value in looked}


def test_policies_that_do_not_cross_say_so_and_where_to_look(command_line: Command) -> None:
    arguments = ("--jobs", 200, "--nodes", 16, "--workers", 1, "--replications", 4, "--between", "fcfs", "easy")
    finished = command_line("crossover", *arguments, "--over", "load=0.8:0.9", "--json")
    found = json.loads(finished.out)
    assert (found["found"], found["at"], found["low"], found["high"]) == (False, None, None, None)
    assert found["sentence"].startswith("easy is lower throughout")
    assert found["certain"] == ("not" not in found["sentence"])


def test_a_parameter_without_effect_has_equal_means_throughout(command_line: Command) -> None:
    finished = command_line("crossover", *SMALL[:-2], "gs", "gs:mpl=5", "--over", "checkpoint=10:90")
    assert finished.out.splitlines()[:2] == [
        "mean bounded slowdown: equal throughout",
        "at no value do the means differ; this factor may not matter to these policies",
    ]


def crossing(low: float, high: float, *differences: tuple[float, float, float]) -> Crossover:
    of = {value: Interval(mean, half, 0.95, 10) for value, mean, half in differences}
    return Crossover("a", "b", 5.0, low, high, 1, of, along="cost", unit="s", ratios=True, measure="mean_wait_s")


def test_an_unbounded_interval_says_how_many_replications_would_bound_it() -> None:
    found = crossing(-inf, 8.0, (0.0, -1.0, 1.5), (10.0, 2.0, 1.0))
    assert str(found) == "a is lower up to 5 s (interval up to 8), b beyond"
    assert found.advice == "unbounded below: try replications=30"  # 1.3 x 10 x 1.5^2 = 29.25
    above = crossing(3.0, inf, (0.0, -2.0, 1.0), (10.0, 0.001, 1.0))
    assert (str(above), above.advice) == (
        "a is lower up to 5 s (interval from 3 on), b beyond",
        "unbounded above: the policies hardly differ there; try values above 10 s",
    )
    both = crossing(-inf, inf, (0.0, -1.0, 1.2), (10.0, 1.0, 1.2))
    assert (str(both), both.advice) == (
        "a is lower up to 5 s (interval unbounded), b beyond", "unbounded below and above: try replications=20",
    )  # fmt: skip
    of_one_log = {value: Interval(value - 5, 9.0, 0.95, 10, of_one_log=True) for value in (0.0, 10.0)}
    resampled = Crossover("a", "b", 5.0, -inf, inf, 1, of_one_log)
    assert resampled.advice.startswith("unbounded below and above: the jobs are of one log; a longer one would tell more")
    assert crossing(3.0, 8.0, (0.0, -1.0, 0.5), (10.0, 1.0, 0.5)).advice == ""


def test_notebooks_show_the_answer_and_its_picture() -> None:
    found = crossing(3.0, inf, (0.0, -2.0, 1.0), (5.0, 0.1, 1.0), (10.0, 0.5, 1.0))
    html = found._repr_html_()
    assert "mean_wait_s: a / b: a is lower up to 5 s" in html
    assert "unbounded above: try replications=60" in html
    (axes,) = found.plot.axes
    assert (axes.get_yscale(), axes.get_xlabel()) == ("log", "cost (s)")


def test_an_answer_of_check_policy_is_a_list_that_says_how_many_machines_were_tried() -> None:
    fine, broken = PolicyCheck([], 11), PolicyCheck([BrokenRule("starts", "burst", "job <1> waits")], 11)
    assert (repr(fine), fine) == ("11 machines, no rule broken", [])
    assert fine._repr_html_() == "<div>11 machines, no rule broken</div>"
    assert str(broken).splitlines() == ["11 machines, 1 rule broken", "starts [burst]: job <1> waits"]
    assert "job &lt;1&gt; waits" in broken._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--between", "bf", "bgs"), "Missing option '--over'"),
        (("--between", "bf"), "Option '--between' requires 2 arguments."),
        (("--between", "bf", "bf", "--over", "load=0.3:0.9"), "--between: 'bf' is given twice"),
        (("--between", "bf", "bgx", "--over", "load=0.3:0.9"), "policy: 'bgx' is unknown (did you mean 'bgs'?)"),
        (("--over", "contxt-switch=0:1"), "--over: 'contxt-switch' is not allowed (did you mean 'context-switch'?)"),
        (("--over", "context-switch=0.1"), "--over: 'context-switch=0.1' is not NAME=LOW:HIGH"),
        (("--over", "context-switch=1:0"), "--over: 'context-switch=1:0' is not allowed; LOW must be less than HIGH"),
        (("--over", "context-switch=0:nan"), "--over: 'context-switch=0:nan' is not allowed"),
        (("--over", "context-switch=0:1.5"), "ContextSwitch.fraction: 1.5 is not allowed"),
        (("--over", "mpl=1s:4s"), "--over: mpl is not a number of seconds; leave out the s"),
        (("--over", "load=0:1"), "--over: load=0 is not allowed; it must be > 0"),
        (("--over", "mpl=1:4", "--mpl", 3), "--mpl: --over varies it; leave it out"),
        (("--over", "load=0.3:0.9", "--measure", "wait"), "--measure: 'wait' is not allowed (did you mean 'mean_wait_s'"),
        (("--over", "machine.time_slicing.quantum=1:9"), "--set: machine.time_slicing.quantum: unknown key"),
        (("--over", "load=0.3:0.9", "--replications", 1), "--replications: 1 is not allowed; it must be >= 2"),
        (("--over", "load=0.3:0.9", "--trace", "a.swf", "--model", "m"), "--model: the jobs come from --trace a.swf"),
    ],
)
def test_what_cannot_be_asked_is_one_line(command_line: Command, arguments: tuple[object, ...], message: str) -> None:
    given = arguments if "--between" in arguments else ("--between", "bf", "bgs", *arguments)
    finished = command_line("crossover", *(() if "--trace" in given else ("--jobs", 50)), *given)
    assert (finished.code, finished.out, len(finished.err.splitlines())) == (2, "", 1)
    assert finished.err.startswith(f"clustermodel: error: {message}")
