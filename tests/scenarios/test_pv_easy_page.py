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
]


@pytest.mark.parametrize(("study", "trace"), STUDIES)
def test_tables(load: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str], study: str, trace: str) -> None:
    name = f"{study}_{trace}"
    load(study).main(["--stored", str(FIGURES / f"{name}.json"), "--markdown"])
    page = PAGE.read_text()
    assert f"<!-- {study} {TRACES[trace]} -->\n\n{capsys.readouterr().out}\n<!-- end -->" in page
    assert f"(figures/{name}.png)" in page
    assert (FIGURES / f"{name}.png").stat().st_size > 10_000
