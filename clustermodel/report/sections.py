"""The sections of the page that show the table of the study: summary, differences, capacity, curves, maps, runs, exhibits."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from bokeh.models import CustomJS
from matplotlib import colormaps
from matplotlib.colors import to_hex

from clustermodel.errors import counted
from clustermodel.experiment.exhibits import StoredExhibits
from clustermodel.experiment.study_table import StudyTable
from clustermodel.figures.capacity import ACCOUNT_COLOURS, SHARE_COLUMNS, account_shares
from clustermodel.figures.style import visible
from clustermodel.report.controls import Control
from clustermodel.report.curves import curve_controls, held_controls, metric_curves
from clustermodel.report.html_tables import (
    MOST_ROWS,
    Column,
    HtmlTable,
    TableCell,
    exact,
    from_columns,
    from_frame,
    number_cells,
    text_cell,
)
from clustermodel.report.labels import measure_title
from clustermodel.report.page_data import StudyData
from clustermodel.report.replications import Replications

MAP_COLOURS: Final = {
    "means": [to_hex(colormaps["cividis"](share)) for share in np.linspace(0, 1, 33)],
    "differences": [to_hex(colormaps["PuOr_r"](share)) for share in np.linspace(0, 1, 33)],
}
"""Colours of heat maps from low to high."""
_ABOUT_TRIALS: Final = ("run", "replication", "seed", "policy", "workload", "nodes", "warm_up_s")
"""Columns of the table that no section draws."""


class Picture(NamedTuple):
    """A figure of the study's own."""

    title: str
    address: str
    """The file itself, as a data URI."""


@dataclass
class Section:
    """A part of the page."""

    name: str
    title: str
    text: str = ""
    tables: Sequence[tuple[str, HtmlTable]] = ()
    """With their captions."""
    pictures: Sequence[Picture] = ()
    controls: Sequence[Control] = ()
    filled: str = ""
    """The element that a script of the page fills."""
    plots: Sequence[Any] = ()
    starts: CustomJS | None = None
    """Draws the plots."""
    more: dict[str, Any] = field(default_factory=dict)
    """What the template needs else."""


def measures_of(table: StudyTable, study: Replications, shown: Sequence[str]) -> list[str]:
    """Return the columns to draw that have numbers: the shown ones first, then the others in the order of the table.

    Where nodes are shared in time the waits stand behind the other shown columns: they are short by construction.
    """
    shared = "delayed" in table.frame and bool(table.frame["delayed"].isna().any())  # which time sharing does not define
    first = sorted(shown, key=lambda name: shared and "wait" in name)
    others = [str(name) for name in table.frame.columns if name not in {*shown, *_ABOUT_TRIALS}]
    return [
        name
        for name in [*first, *others]
        if name not in table.factors and name in table.frame and _is_numeric(table.frame[name]) and study.has(name)
    ]


def _is_numeric(values: pd.Series) -> bool:
    return all(value is None or isinstance(value, int | float | np.number) for value in values)


def summary(study: Replications, data: StudyData, shown: Sequence[str]) -> Section:
    """Return the table of means: a row for each point."""
    points = list(range(len(study.codes)))
    columns = factor_columns(study, points, study.varying)
    several = max(data["runs"]) > 1
    if several:
        columns[Column("replications", "runs", numeric=True)] = number_cells(data["runs"])
    for name in shown:
        mean, half, _ = study.means(name)
        columns[Column(name, measure_title(name), numeric=True)] = number_cells(mean)
        if several:
            columns[Column(f"{name}_half", "±", numeric=True)] = number_cells(half, "half")
    means = f"  Means over up to {max(data['runs'])} runs; ± is half the 95 % interval (Student t)." if several else ""
    text = f"A row for each {_named(study)}.{means}  Click a heading to sort."
    return Section("summary", "Summary", text, [("", from_columns("summary", columns))])


def _named(study: Replications) -> str:
    names = [study.factors[at].title for at in study.varying]
    return ", ".join(names) or "point"


def factor_columns(study: Replications, points: Sequence[int], factors: Sequence[int]) -> dict[Column, Sequence[TableCell]]:
    """Return the columns of factors of a table.

    Args:
        study: its points.
        points: of each row.
        factors: to show.
    """
    columns: dict[Column, Sequence[TableCell]] = {}
    for at in factors:
        factor = study.factors[at]
        cells = []
        for level, label in zip(factor.levels, factor.labels, strict=True):
            value = exact(float(level)) if factor.numeric else visible(level)  # type: ignore[arg-type]
            cells.append(TableCell(label, "" if value == label else value))
        columns[Column(factor.name, factor.title, factor.numeric)] = [cells[study.codes[point, at]] for point in points]
    return columns


def differences(data: StudyData) -> Section | None:
    """Return the paired differences from a baseline, which ``differences.mjs`` shows; ``None`` without any to compare."""
    comparable = [(str(at), data["factors"][at]["title"]) for at, levels in enumerate(data["differences"]) if levels]
    if not comparable or not data["shown"]:
        return None
    lead = str(data["lead"])
    first = lead if lead in dict(comparable) else comparable[0][0]
    controls = [
        Control("differences-factor", "compare", comparable, first),
        Control("differences-baseline", "baseline", [], ""),
    ]
    text = (
        "Mean differences from the baseline at otherwise equal factors, replication by replication: with the same jobs, what "
        "all policies share cancels.  ± is half the 95 % interval; ▼ and ▲ mark differences that are significantly lower and "
        "higher, one by one: of a hundred differences that are zero, five look as if they were not."
    )
    if max(data["runs"]) == 1:
        text += "  With a single replication nothing is known about significance."
    return Section("differences", "Paired differences", text, controls=controls, filled="differences-table")


def capacity(study: Replications) -> Section | None:
    """Return what the capacity was used for: a stacked bar for each point; ``None`` for a table without accounts."""
    if not all(study.has(name) for name in SHARE_COLUMNS):
        return None
    order = _by_lead(study)
    means = pd.DataFrame({name: study.means(name).mean for name in SHARE_COLUMNS}).iloc[order]
    shares = account_shares(means).to_numpy(dtype=float)
    others = [at for at in study.varying if at != study.lead]
    columns = factor_columns(study, order, [*others, *([study.lead] if study.lead is not None else [])])
    table = from_columns("capacity", columns)
    columns_of_uses = [Column(use, use, numeric=True) for use in ACCOUNT_COLOURS]
    bars = []
    for cells, row in zip(table.rows or [()] * len(order), shares, strict=True):
        parts = [
            (use, colour, f"{share:.6f}", f"{share:.2%}")
            for (use, colour), share in zip(ACCOUNT_COLOURS.items(), row, strict=True)
            if share > 0
        ]
        numbers = [TableCell(f"{share:.1%}" if np.isfinite(share) else "-", exact(share)) for share in row]
        bars.append({"cells": cells, "parts": parts, "numbers": numbers})
    used = [use for use, share in zip(ACCOUNT_COLOURS, np.nan_to_num(shares).T, strict=True) if share.any()]
    text = (
        "What the nodes' time was used for, as shares of the capacity, means over replications.  Idle nodes while jobs wait, "
        "and all overheads while jobs wait are lost capacity (Zhang et al. 2003, eqs. (2) and (3))."
    )
    more = {"bars": bars, "columns": table.columns, "uses": columns_of_uses, "used": used, "colours": ACCOUNT_COLOURS}
    return Section("capacity", "Capacity by account", text, more=more)


def _by_lead(study: Replications) -> list[int]:
    """Return the points with those next to each other that differ in the lead factor only."""
    others = [at for at in range(study.codes.shape[1]) if at != study.lead]
    groups = {tuple(code): number for number, code in reversed(list(enumerate(study.codes[:, others].tolist())))}
    return sorted(range(len(study.codes)), key=lambda point: groups[tuple(study.codes[point, others].tolist())])


def curves(data: StudyData, first: str) -> Section:
    """Return the curves of a measure."""
    plots, starts = metric_curves(data)
    return Section("metrics", "Curves", _ABOUT_CURVES, controls=curve_controls(data, first), plots=plots, starts=starts)


_ABOUT_CURVES: Final = (
    "Means over replications; bands and whiskers are 95 % intervals.  Drag to zoom (or enable the wheel tool); click a legend "
    "entry to hide it; hover for values."
)


def maps(data: StudyData, first: str) -> Section | None:
    """Return the heat maps, which ``maps.mjs`` shows; ``None`` without two factors with several levels."""
    factors = [(str(at), factor["title"]) for at, factor in enumerate(data["factors"]) if len(factor["labels"]) > 1]
    if len(factors) < 2:
        return None
    lead = data["lead"]
    axes = sorted(
        (int(at) for at, _ in factors), key=lambda at: (at == lead, not data["factors"][at]["numeric"])
    )  # numbers first, the policy last
    shows = [("", "means")]
    if data["differences"][lead]:
        shows += [(str(at), f"differences from {label}") for at, label in enumerate(data["factors"][lead]["labels"])]
    controls = [
        Control("maps-measure", "measure", [(name, of["title"]) for name, of in data["measures"].items()], first),
        Control("maps-show", "show", shows, ""),
        Control("maps-x", "across", factors, str(axes[0])),
        Control("maps-y", "down", factors, str(axes[1])),
        *held_controls("maps", data),
    ]
    text = (
        "A mean in each cell, or its paired difference from a baseline in per cent of the baseline's mean.  "
        "Hatched differences are not significant."
    )
    return Section("maps", "Heat maps", text, controls=controls, filled="maps-table")


def runs(table: StudyTable, study: Replications, measures: Sequence[str]) -> Section:
    """Return the table of all runs with all measures."""
    frame = table.frame.iloc[:MOST_ROWS]
    columns = factor_columns(study, study.point_of_trial[:MOST_ROWS].tolist(), study.varying)
    for name in ("replication", "seed"):
        columns[Column(name, name, numeric=True)] = number_cells(frame[name].to_numpy(dtype=float))
    for name in measures:
        values = pd.to_numeric(frame[name]).to_numpy(dtype=float)
        columns[Column(name, measure_title(name), numeric=True)] = number_cells(values)
    columns[Column("run", "run")] = [text_cell(run) for run in frame["run"]]
    text = "Every run with all measures.  Click a heading to sort."
    if left := len(table) - len(frame):
        text += f"  {counted(left, 'run')} more are left out: clustermodel results --csv has all."
    return Section("runs", "Runs", text, [("", from_columns("runs", columns))])


def exhibits(stored: StoredExhibits) -> Section | None:
    """Return the tables and figures of the study's own, ``None`` if it has none."""
    tables = [(visible(title), from_frame(path.stem, _read(path))) for title, path in stored.tables.items()]
    pictures = [Picture(visible(title), _data_uri(path)) for title, path in stored.figures.items()]
    if not tables and not pictures:
        return None
    return Section("exhibits", "Results", tables=tables, pictures=pictures)


def _read(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path)
    except (ValueError, OSError):  # an empty table, or a damaged file
        return pd.DataFrame()


def _data_uri(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
