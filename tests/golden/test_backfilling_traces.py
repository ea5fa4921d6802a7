"""What Perkovic & Keleher 2000, figure 3, say of their schedulers, on their trace, CTC-SP2, and on KTH-SP2."""

from functools import cache

import pytest

from clustermodel import Machine, Scenario, Workload, read_swf
from clustermodel.measure.metrics import Summary
from tests.shared_data import trace_path

CTC = "CTC-SP2-1996-3.1-cln", 430
KTH = "KTH-SP2-1996-2.2", 100


@cache
def workload(name: str) -> Workload:
    return read_swf(trace_path(name))


@cache
def summary(trace: tuple[str, int], policy: str) -> Summary:
    name, nodes = trace
    return Scenario(machine=Machine(nodes=nodes), workload=workload(name), policy=policy).run().summary()


def slowdown(trace: tuple[str, int], policy: str) -> float:
    return summary(trace, policy).mean_bounded_slowdown_perkovic


def delay(trace: tuple[str, int], policy: str) -> float:
    return summary(trace, policy).mean_wait_s


# CTC-SP2: figure 3.


@pytest.mark.long
@pytest.mark.parametrize(
    ("policy", "mean_wait", "mean_bounded_slowdown"),
    [
        ("D", "4105.970", "13.2757"),
        ("1/L", "3641.0", "10.2427"),
        pytest.param("D-NG", "4759.0", "15.4080", marks=pytest.mark.whole),
        pytest.param("1/L-NG", "3382.1", "9.2691", marks=pytest.mark.whole),
    ],
)
def test_on_ctc_the_means_of_those_that_draw_nothing_stay_what_they_are(
    policy: str, mean_wait: str, mean_bounded_slowdown: str
) -> None:
    # What Perkovic & Keleher 2000 say of the others below conservative backfilling: bounded slowdown by 57 % (P/L-NG) and
    # 77 % (R/L-NG), delay by 38 % and 65 %; below shortest-first by 35 % and 65 %, 28 % and 59 %.  Here, with seed 1:
    # 48 % and 68 %, 42 % and 64 %; 32 % and 58 %, 35 % and 59 %.
    decimals = len(mean_wait.partition(".")[2])
    assert f"{delay(CTC, policy):.{decimals}f}" == mean_wait
    assert f"{slowdown(CTC, policy):.4f}" == mean_bounded_slowdown


# KTH-SP2, 100 nodes.


@pytest.mark.statistical
def test_on_kth_random_beats_arrival_order_and_guarantees_hurt_all_but_arrival_order() -> None:
    # What does not hold on KTH: R is not better than P (slowdown 74.1 against 74.0; without guarantees 72.4 against 67.6)
    # nor than 1/L (70.3); 1/L-NG is the best of the twelve (45.2, R/L-NG 51.3); P-NG waits longer than P (6868 s against
    # 6726 s).
    assert slowdown(KTH, "R") < slowdown(KTH, "D")
    assert delay(KTH, "R") < min(delay(KTH, "D"), delay(KTH, "P"))
    assert slowdown(KTH, "D-NG") > slowdown(KTH, "D")
    assert delay(KTH, "D-NG") > delay(KTH, "D")
    for criterion in ("P", "R", "1/L", "P/L", "R/L"):
        assert slowdown(KTH, f"{criterion}-NG") < slowdown(KTH, criterion)
    for criterion in ("R", "1/L", "P/L", "R/L"):
        assert delay(KTH, f"{criterion}-NG") < delay(KTH, criterion)
    assert slowdown(KTH, "1/L") < slowdown(KTH, "P")


@pytest.mark.whole
def test_on_kth_test_runs_help_at_a_large_speculation_percentage() -> None:
    # At 0.5 they help less (46.6 instead of 51.2), and the mean wait is far longer than without (12,873 s instead of 7,514 s).
    assert slowdown(KTH, "R/L-NG:speculation=0.9,test_runs=true") < slowdown(KTH, "R/L-NG:speculation=0.9")
    assert slowdown(KTH, "R/L-NG:speculation=0.9,test_runs=true") < slowdown(KTH, "R/L-NG")
