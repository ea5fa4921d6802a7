"""Hand-worked timelines of jobs that wait for cheaper hours."""

from typing import Any

import pytest

import clustermodel as cm
from clustermodel import CheapHours
from clustermodel.measure.input_notes import run_notes
from tests.timeline.timeline import play, spans

# Cheap from 100 on, and cheaper from 200 on.
FALLING = cm.Price(time_s=[0, 100, 200], price=[3, 2, 1], carbon=[1, 3, 2])


def wait(jobs: str, *, nodes: int = 2, **parameters: Any) -> cm.Result:
    return play(nodes, jobs, CheapHours(**{"price": FALLING, **parameters}), explain=True)


def test_a_job_waits_for_the_cheapest_hour_within_the_delay() -> None:
    # Of 20 s: at 200 for 1 a kWh; within 150 s at 100 for 2; within 90 s at 90, of which 10 s cost 3 and 10 s 2.
    for delay, start in ((1000, 200), (150, 100), (90, 90), (50, 0), (0, 0)):
        result = wait("1 0 2 20 20", max_delay_s=delay)
        assert spans(result)[1] == (start, start + 20)
    assert "rule: it has waited for a cheaper hour" in str(wait("1 0 2 20 20", max_delay_s=150).explain(1))
    assert wait("1 0 2 20 20", max_delay_s=150).jobs["reserved_s"].tolist() == [100]


def test_a_delay_must_save_enough() -> None:
    assert spans(wait("1 0 2 20 20", max_delay_s=150, min_saving=0.33))[1] == (100, 120)
    assert spans(wait("1 0 2 20 20", max_delay_s=150, min_saving=0.34))[1] == (0, 20)


def test_carbon_may_count_instead() -> None:
    assert spans(wait("1 90 2 20 20", max_delay_s=300))[1] == (200, 220)
    assert spans(wait("1 95 2 20 20", max_delay_s=300, by="carbon"))[1] == (200, 220)
    assert spans(wait("1 50 2 20 20", max_delay_s=300, by="carbon"))[1] == (50, 70)


def test_jobs_behind_use_the_nodes_meanwhile_and_delay_no_job() -> None:
    # 1 waits until 100.  2, of 40 s, ends before; 3, of 70 s, would not, and could start at 120.  Then it waits in turn.
    result = wait("1 0 2 20 20\n2 1 2 40 40\n3 2 2 70 70", max_delay_s=100)
    assert spans(result) == {1: (100, 120), 2: (1, 41), 3: (200, 270)}


def test_the_machine_has_the_price_by_default() -> None:
    power = cm.Power(busy_w=300, idle_w=100)
    result = play(1, "1 0 1 20 20", "cheap-hours", power=power, price=FALLING)
    assert spans(result)[1] == (200, 220)
    assert spans(play(1, "1 0 1 20 20", "cheap-hours", power=power))[1] == (0, 20)


@pytest.mark.parametrize("price", [None, cm.Price(time_s=[0], price=[1]), cm.Price(time_s=[0, 50], price=[1, 2])])
def test_where_no_hour_is_cheaper_it_is_easy(price: cm.Price | None) -> None:
    workload = cm.synthetic_workload(jobs=80, nodes=16, seed=2).scaled(cm.LoadScale(interarrival=0.3))
    machine = cm.Machine(nodes=16, kill_at_estimate=False)
    easy, cheap = (
        cm.Scenario(workload=workload, machine=machine, policy=policy).run().jobs
        for policy in ("easy", CheapHours(price=price))
    )
    assert cheap.equals(easy)


def test_no_delay_is_easy() -> None:
    workload = cm.synthetic_workload(jobs=80, nodes=16, seed=2).scaled(cm.LoadScale(interarrival=0.3))
    price = cm.Price(time_s=[0, 1800], price=[2, 1], every_s=3600)
    machine = cm.Machine(nodes=16)
    easy, same, cheap = (
        cm.Scenario(workload=workload, machine=machine, policy=policy).run().jobs
        for policy in ("easy", CheapHours(price=price, max_delay_s=0), CheapHours(price=price, max_delay_s=7200))
    )
    assert same.equals(easy)
    assert not cheap.equals(easy)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_delay_s": -1}, "cheap-hours: max_delay_s: -1 is not allowed; it must be a finite number of seconds >= 0"),
        ({"min_saving": 2}, "cheap-hours: min_saving: 2 is not allowed; it must be a number >= 0 and <= 1"),
        ({"by": "watt"}, "cheap-hours: by: 'watt' is not allowed; it must be one of price, carbon"),
        ({"price": 3}, "cheap-hours: price: 3 is not allowed; it must be a Price(...) or None"),
    ],
    ids=["delay", "saving", "by", "price"],
)
def test_refusals(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(cm.SpecificationError) as refused:
        CheapHours(**parameters)
    assert str(refused.value).startswith(message)


def test_carbon_must_be_known() -> None:
    with pytest.raises(cm.SpecificationError) as refused:
        play(1, "1 0 1 20", CheapHours(price=cm.Price(time_s=[0], price=[1]), by="carbon"))
    problem = "cheap-hours: by: 'carbon' is not allowed where the carbon intensity is not known; it must be 'price'"
    assert str(refused.value) == problem


def test_a_note_says_so_where_no_price_is_known() -> None:
    no_price = [note.fact for note in run_notes([wait("1 0 2 20 20", price=None)])]
    assert no_price == ["no price of energy is known, so no hour is cheaper under cheap-hours"]
    assert run_notes([wait("1 0 2 20 20")]) == []


@pytest.mark.parametrize("machine", [{}, {"power": cm.Power(busy_w=300, idle_w=100), "power_cap_w": 700}])
@pytest.mark.parametrize("delay", [100, 1000, 1e9])
def test_only_a_period_is_looked_at_beyond_what_is_planned(
    delay: float, machine: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Cheap from 20 to 50 s of every 100 s.  By the cap one of three nodes is never in use, so that the plan never ends.
    calls, mean = [0], cm.Price.mean

    def counted(price: cm.Price, begin: int, end: int) -> float:
        calls[0] += 1
        return mean(price, begin, end)

    monkeypatch.setattr(cm.Price, "mean", counted)
    price = cm.Price(time_s=[0, 20, 50], price=[1, 0.25, 2], every_s=100)
    # 2 fits beside 1, which runs until 150, at 120 only if a node is left then; 3 needs both nodes, and waits until 220.
    jobs = "1 20 1 130 130\n2 60 1 20 20\n3 60 2 20 20"
    result = play(3, jobs, CheapHours(price=price, max_delay_s=delay), **machine)
    starts = {job: start for job, (start, _) in spans(result).items()}
    assert starts[2] == 120
    if machine and delay >= 1000:
        assert starts[3] == 220
    assert calls[0] < 200
