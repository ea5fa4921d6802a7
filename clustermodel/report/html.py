"""The report of a study: one HTML file with tables, curves, maps and figures of runs, which opens without a network."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.events import DocumentReady
from bokeh.resources import INLINE
from jinja2 import Environment, FileSystemLoader
from markdown_it import MarkdownIt
from markupsafe import Markup

from clustermodel.errors import SpecificationError, counted
from clustermodel.experiment.exhibits import stored_exhibits
from clustermodel.experiment.store import Store
from clustermodel.figures.style import visible
from clustermodel.report import sections
from clustermodel.report.data import Replications, study_data
from clustermodel.report.plots import PAGE, script
from clustermodel.report.sections import MAP_COLOURS, Section


def report_page(store: Store, directory: Path, wanted: Sequence[str]) -> str:
    """Return the page of a stored study, with the runs whose keys begin with one of ``wanted`` in its viewer."""
    table = store.table()
    if not len(table):
        raise SpecificationError(f"{directory}: no run of this study is done; there is nothing to report")
    study = Replications(table)
    measures = sections.measures_of(table, study, store.study.shown)
    shown = [name for name in measures if name in store.study.shown] or measures[:3]
    data, finished = study_data(study, measures, shown), sections.FinishedRuns(store, table, study)
    made = [
        sections.exhibits(stored_exhibits(directory)),
        sections.summary(study, data, shown),
        sections.differences(data),
        sections.capacity(study),
        sections.curves(data, shown[0]),
        sections.maps(data, shown[0]),
        finished.over_time(),
        finished.viewer(wanted),
        sections.runs(table, study, measures),
    ]
    there = [section for section in made if section]
    title = visible(store.study.study)
    environment = Environment(loader=FileSystemLoader(PAGE), autoescape=True)
    environment.globals |= {"page_file": lambda name: Markup((PAGE / name).read_text(encoding="utf-8")), "counted": counted}
    constant = [factor for at, factor in enumerate(study.factors) if at not in study.varying]
    page: str = file_html(
        _document(title, there),
        INLINE,
        title=title,
        template=environment.get_template("report.html"),
        template_variables={
            "sections": there,
            "states": store.states(),
            "constant": ", ".join(f"{factor.title} {factor.labels[0]}" for factor in constant),
            "study": store.study,
            "kind": visible(store.study.kind),
            "study_text": Markup(markdown(store.study.text)),
            "warm_up": f"{store.study.warm_up_s:,g} s",
            "failures": [(visible(of), visible(error.rstrip().rpartition("\n")[2])) for of, error in store.failures()],
            "directory": visible(directory),
            "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
            "versions": {name: version(name) for name in ("clustermodel", "bokeh")},
            "runs": list(sections.provenance(store)),
            "data": data,
            "map_colours": MAP_COLOURS,
        },
    )
    return page


def _document(title: str, made: Sequence[Section]) -> Document:
    """Return Bokeh's document: the plots of all sections, and their scripts."""
    document = Document(title=title)
    plots = [plot for section in made for plot in (*section.plots, *chain(*section.panels))]
    with document.models.freeze():  # else Bokeh collects all models again for each plot
        for plot in plots:
            document.add_root(plot)
    for section in made:
        if section.starts is not None:
            document.js_on_event(DocumentReady, section.starts)
    document.js_on_event(DocumentReady, script("theme.mjs", {}))
    return document


def markdown(text: str) -> str:
    """Return a text in Markdown as HTML: tags are shown as text, images are left out, scripts cannot be addressed."""
    plain = "".join(character if character in "\n\t" else visible(character) for character in text)
    return str(MarkdownIt("commonmark", {"html": False}).enable("table").disable("image").render(plain))
