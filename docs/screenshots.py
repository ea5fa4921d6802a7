"""Makes the pictures of docs/report.md: runs a small study, writes its report, and photographs it in Chromium.

    python docs/screenshots.py

needs what `bash .ci/test` installs, and Chromium.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from clustermodel import Machine, Study, TimeSlicing, sweep, synthetic_workload, write_report

FIGURES = Path(__file__).with_name("figures")
LOADS = (0.5, 0.7, 0.9)
STUDY = Study(
    name="How much load can a machine take?",
    machines={"128 nodes": Machine(nodes=128, time_slicing=TimeSlicing(quantum_s=200, mpl=4))},
    workloads={f"load {load}": lambda seed, load=load: synthetic_workload(jobs=600, seed=seed, load=load) for load in LOADS},
    policies=["easy", "conservative", "pv-easy", "bgs"],
    replications=5,
    history=True,
)
CHOOSE = """
(beginning) => {
  const [select] = Bokeh.documents[0].get_model_by_name("viewer").children
  select.value = select.options.find((label) => label.startsWith(beginning))
}
"""


def photograph(page: Page, section: str, name: str) -> None:
    """Store a picture of a section of the report."""
    page.wait_for_function("Bokeh.documents[0].is_idle")
    page.wait_for_timeout(1000)
    page.locator(f"section:has(#{section})").screenshot(path=FIGURES / f"{name}.png")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = Path(folder, "report.html")
        sweep(STUDY, Path(folder, "results"))
        write_report(Path(folder, "results"), report)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1260, "height": 1000})
        page.goto(report.as_uri())
        page.wait_for_function("window.Bokeh && Bokeh.documents.length")
        photograph(page, "metrics", "report_curves")
        page.evaluate(CHOOSE, "bgs · load 0.9")
        photograph(page, "viewer", "report_viewer")
        browser.close()


if __name__ == "__main__":
    main()
