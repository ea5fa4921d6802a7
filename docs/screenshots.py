"""Makes the pictures of docs/report.md: runs a small study, writes its report, and photographs it in Chromium.

    python docs/screenshots.py

needs what `bash .ci/test` installs, and Chromium.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from clustermodel import Machine, Scenario, Study, TimeSlicing, synthetic_workload, write_report

FIGURES = Path(__file__).with_name("figures")
STUDY = Study(
    name="How much load can a machine take?",
    factors={"load": [0.5, 0.6, 0.7, 0.8, 0.9], "quantum_s": [60, 200, 600], "policy": ["easy", "conservative", "bgs"]},
    scenario=lambda load, quantum_s, policy, seed: Scenario(
        machine=Machine(nodes=128, time_slicing=TimeSlicing(quantum_s=quantum_s, mpl=4)),
        workload=synthetic_workload(jobs=400, load=load, seed=seed),
        policy=policy,
    ),
    replications=5,
    history=True,
)


def photograph(page: Page, section: str, name: str) -> None:
    """Store a picture of a section of the report."""
    page.wait_for_function("Bokeh.documents[0].is_idle")
    page.wait_for_timeout(1000)
    page.locator(f"section:has(#{section})").screenshot(path=FIGURES / f"{name}.png")


def choose(page: Page, control: str, beginning: str) -> None:
    """Choose the first option of a list that begins with a text."""
    options = page.locator(f"#{control} option").all_inner_texts()
    page.locator(f"#{control}").select_option(next(text for text in options if text.startswith(beginning)))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = Path(folder, "report.html")
        STUDY.run(Path(folder, "results"))
        write_report(Path(folder, "results"), report)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1260, "height": 1000})
        page.goto(report.as_uri())
        page.wait_for_function("window.Bokeh && Bokeh.documents.length")
        choose(page, "curves-x", "load")
        photograph(page, "metrics", "report_curves")
        choose(page, "maps-measure", "mean bounded slowdown")
        choose(page, "maps-show", "differences from easy")
        choose(page, "maps-at-2", "bgs")
        photograph(page, "maps", "report_map")
        choose(page, "run-1", "easy · load 0.9")
        choose(page, "run-2", "bgs · load 0.9")
        photograph(page, "viewer", "report_viewer")
        browser.close()


if __name__ == "__main__":
    main()
