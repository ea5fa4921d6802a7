"""The first scripts of the documentation: short, and they run."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.mark.parametrize(
    ("name", "lines", "smaller", "picture"),
    [
        ("two_classes", 35, {"days=7": "days=1", "replications=10": "replications=2"}, "classes.png"),
        ("heat_map", 20, {"jobs=1000": "jobs=50", "replications=3": "replications=2"}, "heat.png"),
    ],
)
@pytest.mark.long
def test_an_example_is_short_and_runs(name: str, lines: int, smaller: dict[str, str], picture: str, tmp_path: Path) -> None:
    text = (EXAMPLES / f"{name}.py").read_text()
    assert len(text.splitlines()) <= lines
    for old, new in smaller.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "study.py").write_text(text)
    ran = subprocess.run([sys.executable, "study.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / picture).stat().st_size > 5_000
    if name == "two_classes":
        assert "interactive" in ran.stdout
        assert " ± " in ran.stdout
