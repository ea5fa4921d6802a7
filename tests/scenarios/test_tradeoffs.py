"""Small runs of the trade-offs and of the hypothetical machines: every run succeeds, every table and figure can be made."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from clustermodel.cli import main
from clustermodel.experiment.exhibits import exhibits_of, stored_exhibits
from clustermodel.figures.study_tables import study_notes
from clustermodel.figures.text_table import frame_table
from tests.scripts import SCENARIOS, stored, study_of
from tests.shared_data import trace_path

SIZE = {"jobs": "60", "replications": "2"}
SMALL: Mapping[str, Mapping[str, str]] = {
    "tradeoffs/checkpoint_cost.py": SIZE,
    "tradeoffs/context_switch_mpl.py": SIZE,
    "tradeoffs/energy.py": SIZE,
    "tradeoffs/migration_cost.py": SIZE,
    "tradeoffs/power_cap.py": SIZE,
    "tradeoffs/slice_length.py": SIZE,
    "tradeoffs/slicing_or_preemption.py": {**SIZE, "costs": "0,30"},
    "tradeoffs/store_bandwidth.py": SIZE,
    "hypothetical/exascale.py": {"jobs": "20", "replications": "2"},
    "hypothetical/gangs_and_failures.py": SIZE,
    "hypothetical/memory_for_multiprogramming.py": {**SIZE, "levels": "1,3", "memory_gib": "1.5,3"},
    "hypothetical/shared_partitions.py": {"days": "2", "replications": "2", "loads": "0.5,0.9"},
    "hypothetical/two_classes.py": {"days": "1", "replications": "1", "loads": "0.6,0.9"},
    "hypothetical/urgent_jobs.py": {**SIZE, "share": "0.3"},
}
"""Parameters of small runs."""
ELSEWHERE = {"hypothetical/recorded_outages.py", "hypothetical/other_years.py", "tradeoffs/switching_off.py"}
"""Scripts that test_failures.py, test_other_years.py and test_logs_whose_idle_nodes_are_switched_off run."""


def test_every_script_has_a_small_run() -> None:
    folders = ("tradeoffs", "hypothetical")
    scripts = {f"{folder}/{path.name}" for folder in folders for path in (SCENARIOS / folder).glob("*.py")}
    assert SMALL.keys() | ELSEWHERE == scripts


@pytest.mark.long
def test_logs_whose_idle_nodes_are_switched_off() -> None:
    folder = trace_path("SDSC-SP2-1998-4.2-cln").parent
    study = study_of("tradeoffs/switching_off", {"traces": str(folder), "jobs": "60"})
    table = study.run(workers=1)
    exhibits = exhibits_of(study, table)
    assert not table.failures
    assert not exhibits.problems
    (saved,) = exhibits.tables.values()
    assert saved.loc[("KTH-SP2", "never"), "saved (%)"] == "0.0"
    assert (saved["saved (%)"].astype(float)[saved.index.get_level_values(1) != "never"] > 0).all()


LONG = {"tradeoffs/checkpoint_cost.py", "tradeoffs/migration_cost.py", "hypothetical/two_classes.py"}
"""Scripts whose small runs take many seconds."""


@pytest.mark.parametrize("script", [pytest.param(one, marks=[pytest.mark.long] if one in LONG else []) for one in SMALL])
@pytest.mark.long
def test_a_small_run_has_all_its_tables_and_figures(script: str) -> None:
    study = study_of(script.removesuffix(".py"), SMALL[script])
    table = study.run(workers=1)
    assert not table.failures
    exhibits = exhibits_of(study, table)
    assert not exhibits.problems
    assert exhibits.tables
    assert exhibits.figures
    for title, frame in exhibits.tables.items():
        shown = frame_table(frame, title)
        assert list(shown.values)
        assert title in str(shown)
    assert isinstance(study_notes(table), list)


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])
@pytest.mark.long
def test_a_table_with_numbers_as_headings_is_printed(
    terminal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The columns of a pivoted table are the levels of a numeric factor: 0.0, 0.01, ... and not their texts."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    settings = [f"--set={name}={value}" for name, value in SIZE.items()]
    script = SCENARIOS / "tradeoffs" / "context_switch_mpl.py"
    with pytest.raises(SystemExit) as stopped:
        main(["sweep", str(script), "--out", str(tmp_path / "results"), "--workers", "1", *settings])
    assert not stopped.value.code
    printed = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
    heading = next(line for line in printed.splitlines() if "bgs:mpl=2" not in line and "0.05" in line)
    assert heading.split() == ["policy", "0.0", "0.01", "0.02", "0.05", "0.1"]
    assert len(stored_exhibits(tmp_path / "results")[0]) == 4


DOCS = SCENARIOS.parent / "docs"
MAKE: dict[str, Any] = run_path(str(DOCS / "make_studies.py"))
STORED = [one for one in MAKE["documented_studies"]() if one.page == DOCS / "tradeoffs.md"]


def test_preemption_pays_up_to_an_hour_or_more() -> None:
    """Selective suspension has the lowest slowdown up to a cost of 1 h at all loads, and at a load of 0.9 up to 4 h."""
    table = stored("checkpoint_cost")
    slowdown = "mean_bounded_slowdown"
    found = table.lowest(slowdown)
    sure = found[(found["lowest"] == "SS") & (found["tied"] == "")]
    assert set(map(tuple, found[["cost_s", "load"]].to_numpy())) - set(map(tuple, sure[["cost_s", "load"]].to_numpy())) == {
        (7200, 0.6), (14_400, 0.6), (14_400, 0.7), (14_400, 0.8)
    }  # fmt: skip
    assert found.set_index(["cost_s", "load"]).loc[(14_400, 0.6), "lowest"] == "EASY"
    by_cost = found.pivot_table(slowdown, "cost_s", "load")
    assert (by_cost.idxmax() == 14_400).all()
    responses = table.differences("mean_response_s", "policy", "EASY", ratio=True)
    of_ss = responses[responses["policy"] == "SS"].set_index("cost_s")
    assert (of_ss.loc[:1800, "high"] < 1).all()
    assert (of_ss.loc[7200:, "low"] > 1).all()


def test_preemption_pays_from_a_tenth_of_a_gib_per_second_on() -> None:
    found = stored("store_bandwidth").lowest("mean_bounded_slowdown").set_index("bandwidth_gib_s")
    assert set(found.loc[0.25:, "lowest"]) == {"SS"}
    assert set(found.loc[0.25:, "tied"]) == {""}
    assert set(found.loc[0.02, "lowest"]) == {"EASY"}
    assert set(found.loc[0.02, "tied"]) == {""}
