"""The tables of docs/pv_easy.md are those of the studies that are stored beside its figures, and what the page says holds.

After a new run of a study NAME that is stored as FILE: ``python scenarios/NAME.py --stored docs/figures/FILE.json --figure
docs/figures/FILE.png --into docs/pv_easy.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from tests.scenarios.conftest import FIGURES, ROOT

PAGE = ROOT / "docs" / "pv_easy.md"
TRACES = {"ctc": "CTC-SP2-1996-3.1-cln", "blue": "SDSC-BLUE-2000-4.2-cln", "kth": "KTH-SP2-1996-2.2"}
STUDIES = [
    ("pv_easy", "ctc"),
    ("pv_easy", "blue"),
    ("pv_easy", "kth"),
    ("prediction_error", "ctc"),
    ("prediction_error", "kth"),
    ("preemption_mode", "ctc"),
    ("preemption_mode", "kth"),
    ("easy_readings", "ctc"),
    ("easy_readings", "blue"),
]


@pytest.mark.parametrize(("study", "trace"), STUDIES)
def test_tables(load: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str], study: str, trace: str) -> None:
    name = f"{study}_{trace}"
    load(study).main(["--stored", str(FIGURES / f"{name}.json"), "--markdown"])
    page = PAGE.read_text()
    assert f"<!-- {study} {TRACES[trace]} -->\n\n{capsys.readouterr().out}\n<!-- end -->" in page
    assert f"(figures/{name}.png)" in page
    assert (FIGURES / f"{name}.png").stat().st_size > 10_000


def test_what_the_page_says_of_slowdowns(load: Callable[[str], ModuleType]) -> None:
    script, reporting = load("pv_easy"), load("reporting")

    def value(trace: str, policy: str, name: str = "mean_bounded_slowdown") -> float:
        return float(script.at(reporting.read(FIGURES / f"pv_easy_{trace}.json"), policy).values(name)[0])

    def relative(trace: str, policy: str, name: str = "mean_bounded_slowdown", to: str = "EASY") -> float:
        return value(trace, policy, name) / value(trace, to, name)

    for trace, slowdown, weighted in (("ctc", 2.12, 1.25), ("blue", 1.52, 1.37), ("kth", 1.07, 1.09)):
        assert relative(trace, "PV-EASY") == pytest.approx(slowdown, abs=0.005)
        assert relative(trace, "PV-EASY", "mean_weighted_bounded_slowdown") == pytest.approx(weighted, abs=0.005)
        perfect = "PV-EASY, perfect predictions"
        assert 0.61 < relative(trace, perfect) < 0.80
        assert relative(trace, perfect, to="EASY, perfect predictions") < 1
        assert value(trace, "PV-EASY without VB", "wasted_load") < value(trace, "PV-EASY", "wasted_load")
        for name in ("mean_bounded_slowdown", "mean_weighted_bounded_slowdown"):
            assert relative(trace, "PV-EASY without VB", name, to="PV-EASY") > 1
            assert relative(trace, "EASY-Last", name) > 1
        assert relative(trace, "EASY-Last", "wide_mean_bounded_slowdown") > 1.75
        assert abs(value(trace, "PV-EASY", "horizon_s") - value(trace, "EASY", "horizon_s")) < 3600
        assert relative(trace, "PV-EASY without SLP") < 1
    assert [relative(trace, "PV-EASY, estimates") for trace in ("ctc", "blue", "kth")] == pytest.approx(
        [1.32, 0.92, 0.81], abs=0.005
    )
    assert relative("ctc", "PV-EASY, estimates", "mean_weighted_bounded_slowdown") == pytest.approx(1.03, abs=0.005)
    assert value("blue_allocated", "PV-EASY") == pytest.approx(53.4, abs=0.05)
    assert value("blue_allocated", "EASY") == pytest.approx(36.1, abs=0.05)
    assert value("blue_allocated", "EASY", "delayed") == 4901


def test_what_the_page_says_of_004_with_estimates(load: Callable[[str], ModuleType]) -> None:
    """PV-EASY with estimates is closer to 004's numbers of blocked and preempted jobs and to MKT; not to the wasted load."""
    script, reporting = load("pv_easy"), load("reporting")
    for trace in ("ctc", "blue", "blue_allocated"):
        runs = reporting.read(FIGURES / f"pv_easy_{trace}.json")
        theirs = script.paper_costs(script.paper_of(runs))
        for column, closer in (("blocked", True), ("preempted", True), ("mean_killed_times", True), ("wasted_load", False)):
            last, estimates = (
                abs(script.differs(script.at(runs, policy), column, theirs[column]))
                for policy in ("PV-EASY", "PV-EASY, estimates")
            )
            assert (estimates < last) == closer, (trace, column)


def test_what_the_page_says_of_saving(load: Callable[[str], ModuleType]) -> None:
    script, reporting = load("preemption_mode"), load("reporting")
    for trace in ("ctc", "kth"):
        runs = reporting.read(FIGURES / f"preemption_mode_{trace}.json")
        for name in script.CRITERIA:
            kill = script.killed(runs).interval(name).mean
            checkpoint, suspend, store = (
                script.break_even(script.COSTS_S, script.curve_of(runs, mode, name), kill) for mode in script.saving_modes(runs)
            )
            seconds = [float(text.removesuffix(" s").replace(",", "")) for text in (checkpoint, suspend, store)]
            low, high = {"ctc": (27, 40), "kth": (39, 55)}[trace]
            assert low <= seconds[0] / 60 <= high
            assert seconds[2] < seconds[1] < seconds[0]
            assert 0.24 < seconds[2] / seconds[0] < 0.5


def test_what_the_page_says_of_predictions(load: Callable[[str], ModuleType]) -> None:
    """Where intervals tell two policies apart: from which error on PV-EASY is better than another, or worse."""
    script, reporting = load("prediction_error"), load("reporting")

    def sides(trace: str, other: str, metric: str) -> dict[float, int]:
        runs = reporting.read(FIGURES / f"prediction_error_{trace}.json")
        found = {}
        for error in script.ERRORS:
            mean, half = script.relative_to(runs, other, metric, error)
            found[error] = 0 if error and abs(mean - 1) <= half else 1 if mean > 1 else -1
        return found

    assert list(sides("kth", "FCFS-EASY", "mbs").values()) == [-1] * 7
    assert list(sides("ctc", "FCFS-EASY", "mbs").values()) == [-1, -1, -1, 0, 0, 1, 1]
    assert list(sides("kth", "FCFS-EASY", "mwbs").values()) == [1, 1, 0, -1, -1, -1, -1]
    assert list(sides("ctc", "FCFS-EASY", "mwbs").values()) == [1, 1, 1, -1, -1, -1, -1]
    assert list(sides("ctc", "SJF-EASY", "mbs").values()) == [1] * 7
    assert list(sides("kth", "SJF-EASY", "mbs").values()) == [1, 1, 1, 1, 0, 0, -1]
    assert list(sides("ctc", "SJF-EASY", "mwbs").values()) == [1, 1, 1, 1, 1, 0, -1]
    assert list(sides("kth", "SJF-EASY", "mwbs").values()) == [1, 1, 1, 0, -1, -1, -1]
    for trace in ("ctc", "kth"):
        runs = reporting.read(FIGURES / f"prediction_error_{trace}.json")
        for metric in script.METRICS:
            easy = {error: script.at(runs, "FCFS-EASY", error).interval(metric).mean for error in (None, 0.1, 0.4)}
            assert easy[0.1] < easy[None] < easy[0.4]
            assert (
                script.at(runs, "PV-EASY", None).interval(metric).mean > script.at(runs, "PV-EASY", 1.0).interval(metric).mean
            )


def test_what_the_page_says_of_delays_and_promises(load: Callable[[str], ModuleType]) -> None:
    script, reporting = load("pv_easy"), load("reporting")
    for trace, delay_min, times, share_of_longest in (("ctc", 37, 12, 0.88), ("blue", 51, 8, 1 / 3)):
        runs = reporting.read(FIGURES / f"pv_easy_{trace}.json")
        paper = script.paper_of(runs)
        easy, last, fair = ({**script.at(runs, policy).rows[0]} for policy in ("EASY", "EASY-Last", "PV-EASY"))
        assert 2.7 < easy["delayed"] / paper.delayed < 3
        assert round(easy["mean_delay_by_later_s"] / 60) == delay_min
        assert easy["longest_delay_by_later_s"] / 3600 / paper.longest_delay_h == pytest.approx(share_of_longest, abs=0.01)
        assert round(last["reservation_violations"] / paper.violations) == times
        assert last["mean_violation_nodes"] < paper.violation_nodes
        assert easy["blocked"] > paper.blocked_easy
        assert easy["backfilled"] < paper.backfilled_easy
        assert 0.099 < fair["blocked"] / paper.blocked_pv - 1 < 0.16
    wide = "wide_blocked_bounded_slowdown"
    for trace, better in (("ctc", True), ("blue", False), ("kth", False)):
        runs = reporting.read(FIGURES / f"pv_easy_{trace}.json")
        assert (script.at(runs, "PV-EASY").rows[0][wide] < script.at(runs, "EASY").rows[0][wide]) == better
