"""Metrics, ledger, explanations and figures against numbers worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from clustermodel import LedgerError, Machine, OutputError, Scenario, SpecificationError, synthetic_workload
from clustermodel.measure.fairness import delays_by_later_jobs
from clustermodel.measure.ledger import Account, Ledger
from clustermodel.measure.metrics import bounded_slowdown, bounded_slowdown_003
from clustermodel.report.plots import busy_nodes, comparison, save, waiting_jobs
from clustermodel.theory.capacity import capacity_loss, utilization
from clustermodel.theory.queueing import erlang_c, mg1_mean_wait, mmc_mean_wait
from tests.timeline.timeline import play

# Four nodes, FCFS.  1: 0-10 on 4.  2: 10-12 on 2 (waited 5).  3 (5 s on 3) does not fit beside 2: 12-17 (waited 6).
THREE = "1 0 4 10\n2 5 2 2\n3 6 3 5"


def test_the_summary_of_three_jobs() -> None:
    found = play(4, THREE, "fcfs").summary()
    assert found.mean_wait_s == pytest.approx((0 + 5 + 6) / 3)
    assert found.median_wait_s == 5
    assert found.mean_response_s == pytest.approx((10 + 7 + 11) / 3)
    # max(response, 10) / max(run, 10): 10/10, 10/10, 11/10; by 003 response / max(run, 10): 10/10, 7/10, 11/10
    assert found.mean_bounded_slowdown == pytest.approx((1 + 1 + 1.1) / 3)
    assert found.mean_bounded_slowdown_003 == pytest.approx((1 + 0.7 + 1.1) / 3)
    assert found.mean_weighted_bounded_slowdown == pytest.approx((4 * 1 + 2 * 1 + 3 * 1.1) / 9)
    work = 4 * 10 + 2 * 2 + 3 * 5
    assert found.horizon_s == 17
    assert found.utilization == found.load_until_end == pytest.approx(work / (4 * 17))
    assert found.load == pytest.approx(work / (4 * 6))
    assert found.kappa == pytest.approx(2 * 2 / (4 * 17))  # two nodes idle from 10 to 12 while 3 waits
    assert (found.blocked, found.backfilled, found.delayed) == (2, 0, 0)


def test_slowdown_is_bounded_in_both_papers_ways() -> None:
    response, run = np.array([5.0, 40.0, 40.0]), np.array([5.0, 5.0, 20.0])
    assert bounded_slowdown(response, run).tolist() == [1.0, 4.0, 2.0]
    assert bounded_slowdown_003(response, run).tolist() == [0.5, 4.0, 2.0]


def test_classes_divide_at_32_nodes() -> None:
    table = play(64, "1 0 32 10\n2 0 33 20\n3 0 1 30", "fcfs").by_class()
    assert table["jobs"].unstack()["wait_s"].to_dict() == {"all": 3, "small": 2, "large": 1}
    # 2 does not fit beside 1: it waits 10; 3 waits behind it until 10 too.
    assert table.loc[("large", "wait_s"), "mean"] == 10
    assert table.loc[("small", "wait_s"), "mean"] == 5
    assert table.loc[("all", "response_s"), "max"] == 40
    assert table.loc[("all", "wait_s"), "weighted_mean"] == pytest.approx((32 * 0 + 33 * 10 + 1 * 10) / 66)


def test_statistics_of_an_empty_class_are_nan_and_a_run_without_jobs_has_a_summary() -> None:
    result = play(2, "1 0 3 10", "easy")
    found = result.summary()
    assert (found.jobs, found.rejected) == (0, 1)
    assert np.isnan(found.mean_wait_s)
    assert found.as_dict()["mean_wait_s"] is None
    assert result.by_class()["mean"].isna().all()
    with pytest.raises(SpecificationError, match="no job ran in any result"):
        comparison([result])


def test_a_ledger_that_does_not_add_up_fails() -> None:
    ledger = Ledger(2)
    ledger.settle(0, 1, waiting=False)
    ledger.settle(10, 2, waiting=False)
    with pytest.raises(LedgerError, match="accounts sum to 10 node-ticks, but 2 nodes x 10 ticks are 20"):
        ledger.close()
    ledger.charge(Account.USEFUL, 10)
    ledger.close()
    assert ledger.utilization == 0.5


def test_the_formulas_of_002_on_numbers_worked_by_hand() -> None:
    # N = 4; two nodes empty for 3 s while a job waits, one empty for 2 s with an empty queue; the last finish is at 10.
    assert capacity_loss([0, 3, 5, 10], [2, 1, 0, 4], [1, 0, 3, 0], 4) == pytest.approx(2 * 3 / 40)
    assert utilization([2, 1], [5.0, 10.0], 10.0, 4) == pytest.approx(20 / 40)
    with pytest.raises(ValueError, match="must be equal"):
        capacity_loss([0, 1], [1], [1, 1], 4)
    with pytest.raises(ValueError, match="ascending"):
        capacity_loss([1, 0], [1, 1], [1, 1], 4)


def test_the_closed_forms_of_queueing_theory_in_their_special_cases() -> None:
    assert erlang_c(1, 0.7) == pytest.approx(0.7)  # M/M/1: a customer waits if the server is busy
    assert mmc_mean_wait(1, 0.7, 1.0) == pytest.approx(0.7 / 0.3)
    assert mg1_mean_wait(0.7, 1.0, 1.0) == pytest.approx(0.7 / 0.3)  # exponential service has variance 1
    assert mg1_mean_wait(0.7, 1.0, 0.0) == pytest.approx(0.35 / 0.3)  # deterministic: half of it
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)  # textbook value
    assert 0 < erlang_c(2000, 1900.0) < 1
    for unstable in (lambda: erlang_c(2, 2.0), lambda: mg1_mean_wait(1.0, 1.0, 1.0)):
        with pytest.raises(SpecificationError, match="is not allowed"):
            unstable()


def test_a_job_is_delayed_by_a_later_one_from_the_first_instant_the_others_would_have_left_enough() -> None:
    # Four nodes.  1 (two nodes) is expected until 100 but ends at 10; 2 needs all four; 3 is backfilled until 92.
    result = play(4, "1 0 2 10 100\n2 1 4 10\n3 2 2 90", "easy")
    assert delays_by_later_jobs(result.records, 4).tolist() == [0, 82, 0]
    summary = result.summary()
    assert (summary.delayed, summary.mean_delay_by_later_s, summary.longest_delay_by_later_s) == (1, 82, 82)


def test_an_explanation_names_the_holder_the_shadow_time_the_extra_nodes_and_the_rule() -> None:
    # 1 holds three of five nodes until 10; 2 (four nodes) is blocked, one extra node at 10; 3 ends by then; 4 takes it.
    jobs = "1 0 3 10\n2 1 4 10\n3 1 1 4\n4 5 1 20"
    result = play(5, jobs, "easy", explain=True)
    assert result.explain(1).rule == "head of the queue, and it fits"
    third, fourth = result.explain(3), result.explain(4)
    assert (third.holder, third.shadow_s, third.extra_nodes) == (2, 10, 1)
    assert third.rule == "backfilled: it will end by the shadow time"
    assert fourth.rule == "backfilled: it takes no more than the extra nodes"
    assert (result.explain(2).reserved_s, result.explain(2).head_since_s) == (10, 1)
    assert "job 4 (1 node) was submitted at 5 s and started at 5 s" in str(fourth)
    conservative = play(5, jobs, "conservative", explain=True).explain(3)
    assert (conservative.holder, conservative.shadow_s) == (2, 10)
    assert play(5, jobs, "fcfs", explain=True).explain(3).rule == "head of the queue, and it fits"
    with pytest.raises(SpecificationError, match="job 99 is not in this run"):
        result.explain(99)


def test_figures_have_units_and_average_to_the_ledger(tmp_path: Path) -> None:
    result = Scenario(machine=Machine(nodes=32), workload=synthetic_workload(jobs=200, nodes=32), policy="easy").run()
    edges = np.linspace(0, result.summary().horizon_s, 7)
    assert busy_nodes(result, edges).mean() / 32 == pytest.approx(result.ledger.utilization, rel=1e-12)
    # Little's law over the whole horizon, which holds exactly because the queue is empty at both ends
    waiting = waiting_jobs(result, edges).mean()
    assert waiting == pytest.approx(result.jobs["wait_s"].sum() / result.summary().horizon_s, rel=1e-9)
    figures = [result.plot.utilization(), result.plot.gantt(first=3, last=40), comparison([result])]
    for number, figure in enumerate(figures):
        assert isinstance(figure, Figure)
        assert all(axes.get_ylabel() for axes in figure.axes)
        assert figure.axes[-1].get_xlabel().endswith(")")  # the unit
        save(figure, tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(SpecificationError, match="first: job 999 is not in this run"):
        result.plot.gantt(first=999)
    with pytest.raises(SpecificationError, match="no job ran between"):
        result.plot.gantt(first=40, last=3)
    with pytest.raises(OutputError, match="cannot be written"):
        save(figures[0], tmp_path / "nowhere" / "a.png")
    with pytest.raises(OutputError, match=r"format '\.xyz' is unknown"):
        save(figures[0], tmp_path / "a.xyz")
