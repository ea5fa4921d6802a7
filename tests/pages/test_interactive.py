"""docs/interactive.md: its stored runs are those of the package, its sliders show them, and its notebook reads them."""

import json
import re
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

DOCS = Path(__file__).parents[2] / "docs"
STATIC = DOCS / "_static"
SETTING = (0.05, 3, 0.8)
"""Cost, level and load at which the sliders begin."""

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def make() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "make_interactive.py"))


@pytest.fixture(scope="module")
def stored(make: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = make["stored"]()
    return found


def entry(stored: dict[str, Any], *setting: float) -> dict[str, Any]:
    (run,) = (run for run in stored["runs"] if (run["cost"], run["mpl"], run["load"]) == setting)
    return dict(run)


def test_a_stored_setting_is_what_a_fresh_run_gives(make: dict[str, Any], stored: dict[str, Any]) -> None:
    cost, mpl, load = SETTING
    study = replace(make["STUDY"], factors={"cost": [0.0, cost], "mpl": [1, mpl], "load": [load]})
    fresh = make["numbers"](study)
    for setting in ((0.0, 1, load), (0.0, mpl, load), SETTING):
        assert fresh[setting] | {"moments": make["moments"](*setting)} == entry(stored, *setting)


def test_all_settings_are_stored_in_a_small_file(make: dict[str, Any], stored: dict[str, Any]) -> None:
    costs, levels, loads = make["FACTORS"].values()
    assert len(stored["runs"]) == len(loads) * (1 + len(costs) * (len(levels) - 1))
    for run in stored["runs"]:
        assert sum(run["shares"]) == pytest.approx(1, abs=0.001)
        assert len(run["moments"]) == make["MOMENTS"]
        for moment in run["moments"]:
            cells = [(row, at) for row, low, nodes, _ in moment["gangs"] for at in range(low, low + nodes)]
            assert len(cells) == len(set(cells))
            assert all(row < run["mpl"] and at < stored["nodes"] for row, at in cells)
    assert make["STORED"].stat().st_size <= 300_000
    assert len((STATIC / "interactive.js").read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("width", [1280, 390])
def test_sliders_show_the_stored_runs(browser: Any, stored: dict[str, Any], tmp_path: Path, width: int) -> None:
    text = (DOCS / "interactive.md").read_text(encoding="utf-8")
    block = re.findall(r"```\{raw\} html\n(.*?)```", text, re.DOTALL)[0]
    path = tmp_path / "page.html"
    path.write_text(f"<meta charset='utf-8'>{block.replace('_static', STATIC.as_uri())}", encoding="utf-8")
    page, errors = browser.new_page(viewport={"width": width, "height": 1000}), list[Any]()

    def remember(error: Any) -> None:
        errors.append(error)

    page.on("pageerror", remember)
    page.goto(path.as_uri(), wait_until="load")

    def shows(run: dict[str, Any], moment: int) -> None:
        assert page.inner_text("#slowdown") == f"{run['slowdown']:.2f}"
        assert page.inner_text("#response") == f"{run['response_h']:.2f}"
        shares = page.locator("#ledger-shares b").all_inner_texts()
        assert shares == [f"{100 * share:.1f} %" for share in run["shares"]]
        gangs = run["moments"][moment]["gangs"]
        assert page.locator("#matrix .gang").count() == len(gangs)
        assert page.locator("#matrix text").all_text_contents() == [str(job) for *_, job in gangs]
        assert page.locator("#matrix .row").count() == run["mpl"]

    shows(entry(stored, *SETTING), 5)
    for name, key in (("cost", "ArrowRight"), ("mpl", "End"), ("load", "Home"), ("moment", "ArrowLeft")):
        page.get_by_label(page.inner_text(f"label[for={name}]")).press(key)
    assert page.get_attribute("#mpl", "aria-valuetext") == "5"
    shows(entry(stored, 0.1, 5, 0.6), 4)
    page.locator("#mpl").press("Home")
    shows(entry(stored, 0.0, 1, 0.6), 4)
    page.close()
    assert errors == []


def test_the_notebook_shows_the_same_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(DOCS / "examples")
    cells = json.loads(Path("move_the_costs.ipynb").read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    for cell in cells[:-1]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            exec("".join(cell["source"]), names)
    run = entry(names["stored"], 0.2, 4, 1.0)
    capsys.readouterr()
    assert isinstance(names["show"](cost=0.2, mpl=4, load=1.0, moment=11), Figure)
    assert capsys.readouterr().out == f"mean bounded slowdown {run['slowdown']}, mean response {run['response_h']} h\n"
