"""The tables of docs/gang_scheduling.md are those of the full studies stored beside its figures.

After a new run of a full study NAME: ``python scenarios/NAME.py --stored docs/figures/NAME.json --figure docs/figures/NAME.png
--into docs/gang_scheduling.md``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.scenarios.conftest import FIGURES, ROOT

PAGE = ROOT / "docs" / "gang_scheduling.md"

STUDIES = ("table1_migration", "context_switch_tradeoff", "migration_tradeoff", "overestimation", "capacity_loss", "job_sizes")


@pytest.mark.parametrize("name", STUDIES)
def test_tables(stored_study: Callable[[str], str], name: str) -> None:
    page = PAGE.read_text()
    assert f"<!-- {name} -->\n\n{stored_study(name)}\n<!-- end -->" in page
    assert f"(figures/{name}.png)" in page
    assert (FIGURES / f"{name}.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", STUDIES)
def test_model(load: Callable[[str], ModuleType], name: str) -> None:
    facts = json.loads((FIGURES / f"{name}.json").read_text())["facts"]
    assert facts["model_sha256"] == load("replications").model_digest(), f"the model has changed: run {name} --full again"
    assert facts["jobs"] == 10_000


def test_into(load: Callable[[str], ModuleType], tmp_path: Path, stored_study: Callable[[str], str]) -> None:
    """Tables go between their marks, and nothing else changes."""
    page, table = tmp_path / "page.md", stored_study("table1_migration")
    page.write_text("before\n<!-- table1_migration -->\nold\n<!-- end -->\nafter\n<!-- end -->\n")
    load("table1_migration").main(["--stored", str(FIGURES / "table1_migration.json"), "--into", str(page)])
    assert page.read_text() == f"before\n<!-- table1_migration -->\n\n{table}\n<!-- end -->\nafter\n<!-- end -->\n"
