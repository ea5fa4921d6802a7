"""Figures in the sentences of pages about results: a command makes the table (here or in docs/tables) or example with them."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
FROM_ELSEWHERE = {
    "backfilling.md": {
        "135": "user of the flurry, in the header of the log",
        "2,080": "jobs of the flurry, in the header of the log",
    },
    "slack.md": {"1,882.3": "Talby & Feitelson 1999", "4,882.3": "what the paper must mean"},
    "pv_easy.md": {},
    "urgent_jobs.md": {
        "200": "seconds of a slice",
        "808": "of the formula in the same sentence",
        "2,000": "choices that are compared: a limit of the policy",
        "8,000": "jobs of the study, in docs/studies.toml",
    },
    "learning.md": {"100": "of a formula", "256": "jobs of a run of the study"},
    "site.md": {},
    "malleable.md": {"1,024": "parts of idle nodes: a constant of the policy"},
    "energy.md": {},
    "guide_site.md": {},
    "guide_ledger.md": {},
    "guide_machine.md": {},
}
"""Other figures of a page, and where they are from."""

NUMBER = re.compile(r"(?<![\w.,/])(?<!\w-)\d[\d,]*(?:\.\d+)?(?:e\d+)?(?![\w/]|\.\d|,\d)")
NO_RESULT = re.compile(
    r"\]\([^)\n]*\)|`[^`\n]*`|\b(?:19|20)\d\d\b|eqs?\. \(\d+\)"
    r"|(?:[Ff]igures?|[Tt]ables?|[Ss]ections?) [\d.]+(?: (?:to|and) \d+)?"
)
"""Links, code, years, and numbers of figures, tables and sections."""


def text_and_made(page: str) -> tuple[str, str]:
    """Return the sentences of a page, and what commands make of it: its examples and the tables of its studies."""
    text, made = [], []
    fenced = stored = False
    for line in page.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        stored = not line.startswith("<!-- end") and (stored or line.startswith("<!-- "))
        (made if fenced or stored else text).append(line)
    return "\n".join(text), "\n".join(made)


def figures(text: str) -> list[str]:
    """Return the numbers of a text with three digits or more, which cannot be true by chance."""
    return [number for number in NUMBER.findall(NO_RESULT.sub("", text)) if len(re.sub(r"[,.]", "", number)) > 2]


def is_among(number: str, values: list[float]) -> bool:
    """Return whether a number is one of ``values``, rounded to as many places."""
    places = len(number.partition(".")[2])
    return any(round(value, places) == float(number.replace(",", "")) for value in values)


@pytest.mark.parametrize("name", FROM_ELSEWHERE)
def test_figures_in_sentences_are_made_by_a_command(name: str) -> None:
    page = (DOCS / name).read_text(encoding="utf-8")
    text, made = text_and_made(page)
    made += "".join((DOCS / path).read_text(encoding="utf-8") for path in re.findall(r"\]\((tables/\w+\.txt)\)", page))
    values = [float(number.replace(",", "")) for number in NUMBER.findall(made)]
    assert {number for number in figures(text) if not is_among(number, values)} == set(FROM_ELSEWHERE[name])


def test_a_figure_that_no_table_has_is_found() -> None:
    text, made = text_and_made(
        "A mean of 12.34 s (2019, table 123), `999`.\n<!-- a -->\n| 12.341 |\n<!-- end -->\nOf 1,235 jobs."
    )
    assert figures(text) == ["12.34", "1,235"]
    values = [float(number) for number in NUMBER.findall(made)]
    assert [is_among(number, values) for number in figures(text)] == [True, False]
