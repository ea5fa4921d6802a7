"""Small runs of the studies in ``scenarios/``, compared with tables that are checked in.

The studies import modules that lie beside them; the tests put that folder on the path, as Python does for scripts.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SCENARIOS = ROOT / "scenarios"
FIGURES = ROOT / "docs" / "figures"
SMALL = ["--jobs", "500", "--replications", "2", "--workers", "1"]
"""Size of the checked-in tables."""


class Study(NamedTuple):
    script: ModuleType
    printed: str
    runs: Any
    """``reporting.Runs``."""
    figure: Path


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(str(SCENARIOS))
    return importlib.import_module


@pytest.fixture
def small_study(load: Callable[[str], ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Study]:
    """Runs a study small, and claims that its table is the one that is checked in and that its figure is drawn."""

    def run(name: str, options: Sequence[str] = SMALL) -> Study:
        script, table, figure = load(name), tmp_path / "table.json", tmp_path / "figure.png"
        script.main([*options, "--json", str(table), "--figure", str(figure)])
        found, expected = json.loads(table.read_text()), json.loads(Path(__file__).with_name(f"{name}.json").read_text())
        for digest in ("model_sha256", "workload_sha256"):
            assert found["facts"].get(digest) == expected["facts"].get(digest), "the jobs have changed: renew the table"
        assert found["columns"] == expected["columns"]
        for ours, theirs in zip(found["rows"], expected["rows"], strict=True):
            for value, known, column in zip(ours, theirs, found["columns"], strict=True):
                # means may be summed in another order by another numpy
                assert value == (pytest.approx(known, rel=1e-9, abs=1e-12) if isinstance(known, float) else known), column
        return Study(script, capsys.readouterr().out, load("reporting").read(table), figure)

    return run


@pytest.fixture
def stored_study(load: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Shows the full study whose table is stored with the documentation, as Markdown."""

    def show(name: str) -> str:
        load(name).main(["--stored", str(FIGURES / f"{name}.json"), "--markdown"])
        return capsys.readouterr().out

    return show
