"""A page that answers a question: one HTML file with the sentence, the table, three pictures, and how it was made.

It needs no network, no script, and no package beyond the base installation.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clustermodel.errors import visible
from clustermodel.experiment.comparisons import NO_RULES, WAIT, Case, answers_of, comparisons_of, times_of
from clustermodel.report.words import machine_in_words, site_in_words
from clustermodel.text.files import write_file
from clustermodel.text.formatting import UNDEFINED
from clustermodel.workload.table import Workload

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from clustermodel.experiment.result import Result
    from clustermodel.measure.answers import Answer

_STYLE: Final = """\
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:54rem;margin:0 auto;padding:1rem}
h1{font-size:1.5rem;line-height:1.25}h2{font-size:1.15rem;margin-top:2rem}
.answer{font-size:1.15rem;border-left:.3rem solid #1f77b4;padding:.1rem 0 .1rem .9rem;margin:1rem 0}
.uncertain{border-color:#999}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;text-align:right;white-space:nowrap;border-bottom:1px solid #8884}
th{white-space:normal;vertical-align:bottom}
th:first-child,td:first-child{text-align:left;white-space:normal;min-width:7rem}
figure{margin:1rem 0;max-width:44rem}figure svg{width:100%;height:auto;background:#fff}
figcaption,.small{font-size:.9rem;opacity:.8}
code{overflow-wrap:anywhere;white-space:pre-wrap}
@media print{body{max-width:none;font-size:11pt}h2{break-after:avoid}figure{break-inside:avoid}}
"""


_MEASURES: Final = {
    "jobs": ("jobs", "{:,.0f}"), "mean_wait_s": ("mean wait (h)", "{:,.2f}"), "median_wait_s": ("median wait (h)", "{:,.2f}"),
    "p95_wait_s": ("95th percentile of waits (h)", "{:,.2f}"), "p99_wait_s": ("99th percentile of waits (h)", "{:,.2f}"),
    "mean_response_s": ("mean response time (h)", "{:,.2f}"),
    "mean_bounded_slowdown": ("bounded slowdown", "{:,.2f}"), "utilization": ("utilization", "{:.3f}"),
    "energy_kwh": ("energy (kWh)", "{:,.0f}"),
}  # fmt: skip
"""Columns of the table: heading and format by measure; times are in hours."""


@dataclass(frozen=True, kw_only=True)
class AnswerPage:
    """What a page shows."""

    title: str
    """The question that the reader has."""
    answers: Sequence[Answer]
    names: Sequence[str]
    """What the rows of the table are called."""
    rows: Sequence[Mapping[str, Any]]
    """Measures by name, of each row; times are shown in hours."""
    runs: Mapping[str, Result]
    """The runs by the names that pictures show, the first one as it is compared with."""
    left_out: Sequence[str] = ()
    """What became of lines of the log, and notes."""

    def html(self) -> str:
        """Return the page."""
        parts = [f"<h1>{_text(self.title)}</h1>", *self._sentences(), self._table(), *self._pictures()]
        parts += [*self._machine(), *_section("What was left out of the log", self.left_out)]
        parts += ["<h2>How to run it again</h2>", f"<p><code>{_text(shlex.join(['clustermodel', *sys.argv[1:]]))}</code></p>"]
        made = f'<p class="small">Made with clustermodel {_text(version("clustermodel"))}.</p>'
        head = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{_text(self.title)}</title><style>{_STYLE}</style></head>"
        )
        return "\n".join([head, "<body>", *parts, made, "</body></html>", ""])

    def write(self, path: Path) -> None:
        """Write the page to a file; an ``OutputError`` if it cannot be written."""
        write_file(path, self.html())

    def _sentences(self) -> list[str]:
        classes = ["answer" if answer.certain else "answer uncertain" for answer in self.answers]
        return [f'<p class="{style}">{_text(answer.sentence)}</p>' for style, answer in zip(classes, self.answers, strict=True)]

    def _table(self) -> str:
        there = {name: form for name, form in _MEASURES.items() if any(row.get(name) is not None for row in self.rows)}
        head = "".join(f"<th>{_text(title)}</th>" for title in ("", *(title for title, _ in there.values())))
        rows = []
        for name, row in zip(self.names, self.rows, strict=True):
            values = [(row.get(of), form, 3600 if of.endswith("_s") else 1) for of, (_, form) in there.items()]
            cells = [name, *(UNDEFINED if value is None else form.format(value / by) for value, form, by in values)]
            rows.append("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>")
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        return f'<div class="scroll">{table}</div>'

    def _pictures(self) -> list[str]:
        from clustermodel.figures import answer_pictures as figures  # noqa: PLC0415  matplotlib takes a second to import

        drawable = {name: run for name, run in self.runs.items() if run.records.finished.any()}
        pictures: list[tuple[str, Figure]] = []
        measure = self.answers[0].measure if self.answers else WAIT
        if drawable:
            pictures.append((f"{measure.capitalize()} of jobs by their size", figures.times_by_size(drawable, measure)))
            pictures.append(("Busy nodes over time; dotted: all nodes", figures.nodes_over_time(drawable)))
        if self.answers:
            caption = f"Change of the {self.answers[0].measure} with its 95 % interval, a line for each answer; filled: certain"
            pictures.append((caption, figures.differences(self.answers)))
        return [f"<figure>{_svg(figure)}<figcaption>{_text(caption)}</figcaption></figure>" for caption, figure in pictures]

    def _machine(self) -> list[str]:
        if not self.runs:
            return []
        first = next(iter(self.runs.values()))
        rules = [site_in_words(site) for run in self.runs.values() if (site := run.scenario.used_site) is not None]
        lines = dict.fromkeys(line for of_run in rules for line in of_run)
        sizes = sorted({run.machine.nodes for run in self.runs.values()})
        compared = [f"compared with {', '.join(f'{size:,}' for size in sizes[1:])} nodes"] if len(sizes) > 1 else []
        return [*_section("The machine", [*machine_in_words(first.machine), *compared]), *_section("Its rules", [*lines])]


def _section(title: str, lines: Sequence[str]) -> list[str]:
    items = "".join(f"<li>{_text(line)}</li>" for line in lines)
    return [f"<h2>{_text(title)}</h2>", f"<ul>{items}</ul>"] if lines else []


def _text(text: object) -> str:
    return escape(visible(str(text)))


def _svg(figure: Figure) -> str:
    file = StringIO()
    figure.savefig(file, format="svg")
    text = file.getvalue()
    return text[text.index("<svg") :]


def page_of_runs(results: Sequence[Result]) -> AnswerPage:
    """Return the page of runs under several policies, each compared with the first one if they have the same jobs."""
    first = results[0]
    runs = {result.scenario.label: result for result in results}
    cases = {Case(run.machine.nodes, 1.0, NO_RULES, label): run for label, run in runs.items()}
    ids = first.records.column("id")
    alike = all(np.array_equal(run.records.column("id"), ids) for run in results)
    times = {case: times_of(ids, run) for case, run in cases.items()}
    submit = first.records.seconds("submit")
    log_s = float(submit.max() - submit.min()) if len(submit) else 0.0
    alike = alike and len({run.machine.nodes for run in results}) == 1
    answers = answers_of(list(comparisons_of(times, list(runs))), times, log_s) if alike else []
    policies, sources = ", ".join(runs), [each for each in first.scenario.sources if isinstance(each, Workload)]
    return AnswerPage(
        title=f"{first.scenario.workload_name} under {policies}",
        answers=answers,
        names=list(runs),
        rows=[run.summary().as_dict() for run in results],
        runs=runs,
        left_out=[line for source in sources for line in source.provenance.lines()],
    )
