"""The quickstart runs, keeps its rules, and its table is the one that is checked in.

After a deliberate change: ``clustermodel run scenarios/quickstart.py --json > tests/scenarios/quickstart.json``.
"""

import json
import runpy
from pathlib import Path

import pytest

from clustermodel import check_policy
from clustermodel.cli import main

SCRIPT = Path(__file__).parents[2] / "scenarios" / "quickstart.py"
TABLE = Path(__file__).with_name("quickstart.json")


def test_the_table_is_the_one_that_is_checked_in(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["run", str(SCRIPT), "--json"])
    assert stopped.value.code == 0
    found, expected = json.loads(capsys.readouterr().out), json.loads(TABLE.read_text())
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.keys() == theirs.keys()
        for key, value in theirs.items():
            # means may be summed in another order by another numpy
            assert ours[key] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), key


@pytest.mark.long
def test_the_script_prints_the_check_the_table_and_an_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(SCRIPT), run_name="__main__")
    printed = capsys.readouterr().out
    assert "greedy keeps every rule" in printed
    assert "conservative" in printed
    assert "rule: backfilled" in printed


def test_its_policy_passes_the_same_check_as_ours() -> None:
    assert check_policy(runpy.run_path(str(SCRIPT))["Greedy"]()) == []
