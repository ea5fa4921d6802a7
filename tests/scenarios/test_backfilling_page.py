"""The tables of docs/backfilling.md are those of the studies of traces that are stored beside its figures.

After a new run of a study NAME that is stored as FILE: ``python scenarios/NAME.py --stored docs/figures/FILE.json --figure
docs/figures/FILE.png --into docs/backfilling.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

from tests.scenarios.conftest import FIGURES, ROOT
from tests.shared_data import trace_path

PAGE = ROOT / "docs" / "backfilling.md"
STUDIES = {
    "queue_order_ctc": ("queue_order", "CTC-SP2-1996-3.1-cln"),
    "queue_order_kth": ("queue_order", "KTH-SP2-1996-2.2"),
    "flurry_ctc": ("flurry", "CTC-SP2-1996-3.1-cln"),
    "randomization_kth": ("randomization", "KTH-SP2-1996-2.2"),
    "randomization_ctc": ("randomization", "CTC-SP2-1996-3.1-cln"),
    "speculation_ctc": ("speculation", "CTC-SP2-1996-3.1-cln"),
    "adaptation_ctc": ("adaptation", "CTC-SP2-1996-3.1-cln"),
}


@pytest.mark.parametrize("name", STUDIES)
def test_tables(load: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str], name: str) -> None:
    study, trace = STUDIES[name]
    load(study).main(["--stored", str(FIGURES / f"{name}.json"), "--markdown"])
    page = PAGE.read_text()
    assert f"<!-- {study} {trace} -->\n\n{capsys.readouterr().out}\n<!-- end -->" in page
    assert f"(figures/{name}.png)" in page
    assert (FIGURES / f"{name}.png").stat().st_size > 10_000


def test_what_003_says_of_figure_3(load: Callable[[str], ModuleType]) -> None:
    """On its trace, the order of the algorithms is the paper's (section 5)."""
    script, reporting = load("queue_order"), load("reporting")
    runs = reporting.read(FIGURES / "queue_order_ctc.json")
    slowdown = {name: script.at(runs, name).interval("slowdown").mean for name in script.ALGORITHMS}
    assert min(slowdown, key=slowdown.__getitem__) == "R/L-NG"
    assert slowdown["R"] < slowdown["P"] < slowdown["D"]
    assert slowdown["D-NG"] > slowdown["D"]
    assert all(slowdown[f"{name}-NG"] < slowdown[name] for name in script.CRITERIA if name != "D")
    for (after, before, measure), value in script.PAPER_SAVED.items():
        allowed = 0.02 if measure == "wait_s" else 0.13
        assert script.saved(runs, after, before, measure).mean == pytest.approx(value, abs=allowed)


def test_the_flurry_has_its_place(load: Callable[[str], ModuleType]) -> None:
    """The gaps in the job numbers of the cleaned trace are where the study puts the flurry."""
    path = trace_path("CTC-SP2-1996-3.1-cln")
    traces, script = load("traces"), load("flurry")
    number = traces._first(path, None).column("id")
    missing = np.setdiff1d(np.arange(47421, 50308), number)
    assert len(missing) == 2080
    assert len(missing) / len(number) == script.PER_JOB
    assert [(number < edge).mean() for edge in missing[[0, -1]]] == pytest.approx([script.FIRST, script.LAST], abs=1e-4)
