"""README.md: short, with its two commands, and with figures that the stored study has."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
INDEX = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
COMPARISON = "context_switch_mpl"


def paired_ratios(measure: str, level: int) -> pd.Series:
    """Return the mean paired ratios to BF at each cost of a context switch."""
    table = pd.read_csv(ROOT / "docs" / "data" / f"{COMPARISON}.csv")
    values = table.pivot_table(index=["switch", "replication"], columns="policy", values=measure)
    return (values[f"bgs:mpl={level}"] / values["bf"]).groupby("switch").mean()


def crossing(level: int) -> float:
    """Return the cost of a context switch, in percent of a slice, at which the ratio of slowdowns to BF reaches 1."""
    ratios = paired_ratios("mean_bounded_slowdown", level)
    above = ratios.index[ratios > 1][0]
    below = ratios.index[ratios.index < above][-1]
    return float(100 * (below + (above - below) * (1 - ratios[below]) / (ratios[above] - ratios[below])))


@pytest.mark.parametrize("page", [README, INDEX], ids=["README", "index"])
def test_the_crossing_is_that_of_the_stored_study(page: str) -> None:
    assert f"figures/{COMPARISON}.png" in page
    two, five = re.findall(r"switch\s+of\s+(\d+) % of a slice,\s+with\s+five\s+jobs\s+up\s+to\s+(\d+) %", page)[0]
    assert (round(crossing(2)), round(crossing(5))) == (int(two), int(five))
    assert "mean response is never lower" in page
    assert all((paired_ratios("mean_response_s", level) >= 1).all() for level in (2, 3, 4, 5))


def test_readme_is_short_and_begins_with_its_two_commands() -> None:
    assert len(README.splitlines()) <= 90
    first, second = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)[:2]
    assert first.endswith(".venv/bin/clustermodel run --figure year.png\n")
    assert second == "bash .ci/test\n"


@pytest.mark.long
def test_the_first_steps_work_as_pasted(tmp_path: Path) -> None:
    block = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)[2]
    assert block.startswith("clustermodel init first && cd first\n")
    folders = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = os.environ | {"PATH": folders, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(["bash", "-ec", block], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "observed" in ran.stdout
