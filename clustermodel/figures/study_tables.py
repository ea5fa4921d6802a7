"""Tables of experiments for the terminal and for pipes: means with intervals, single trials, and any table of pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from re import fullmatch
from textwrap import fill
from typing import TYPE_CHECKING, Final

from clustermodel.figures.text_tables import TextColumn, TextTable
from clustermodel.measure.input_notes import Counts, Note, count_notes, same_results
from clustermodel.measure.quantities import account_column, column_heading, named
from clustermodel.readable import cell, column, intervals, time_units
from clustermodel.recording.ledger import Account

if TYPE_CHECKING:
    import pandas as pd

    from clustermodel.experiment.study_table import StudyTable


OVERHEADS: Final = tuple(
    account_column(account, "share")
    for account in (Account.LOST, Account.CONTEXT_SWITCH, Account.CHECKPOINT, Account.RESTART, Account.BLOCKED, Account.DOWN)
)
"""Columns of the shares of node time that do no useful work although nodes are held."""
_PERCENT: Final = {"utilization": "utilization", "kappa": "loss of capacity", "lost_share": "discarded work"}
"""Headings of ratios that are shown in percent."""
_COMPARED: Final = ("mean_wait_s", "mean_response_s", "utilization", "kappa", "horizon_s")
"""Measures that tell policies apart."""
_HEADING: Final = 12
"""Characters of a line of a heading, if its words allow."""
_NUMBER: Final = r"[-+]?[0-9][-+0-9,.e]*( %)?|-"
"""A number as a table shows it."""


def means_table(table: StudyTable, title: str, measures: Sequence[str], extra: Sequence[str] = ()) -> TextTable:
    """Return a table of means with their intervals: a row for each point.

    Args:
        table: of the experiment.
        title: of the table.
        measures: its columns.
        extra: columns that people see only where they are not zero.

    Raises:
        SpecificationError: there is no such column.
    """
    means = table.means(*measures, *extra)
    factors = [str(name) for name in means.columns if name not in _columns_of([*measures, *extra])]
    halves = {name: means[f"{name}_half"].tolist() for name in (*measures, *extra)}
    columns = _measure_columns({name: means[name].tolist() for name in halves}, extra, halves)
    runs = TextColumn("runs", [f"{number:,}" for number in means["replications"]])
    keys = [_text_column(name, means[name]) for name in factors]
    return TextTable(title, keys, [[runs, *columns]], {str(name): means[name].tolist() for name in means})


def trials_table(
    frame: pd.DataFrame, title: str, keys: Sequence[str], measures: Sequence[str], extra: Sequence[str] = ()
) -> TextTable:
    """Return a table with a row for each trial.

    Args:
        frame: the trials.
        title: of the table.
        keys: columns that identify a trial.
        measures: the other columns.
        extra: columns that people see only where they are not zero.
    """
    numbers = {name: frame[name].tolist() for name in (*measures, *extra) if frame[name].dtype.kind in "iuf"}
    texts = [_text_column(name, frame[name]) for name in measures if name not in numbers]
    plain = {name: frame[name].tolist() for name in (*keys, *measures, *extra)}
    return TextTable(
        title, [_text_column(name, frame[name]) for name in keys], [[*_measure_columns(numbers, extra), *texts]], plain
    )


def _measure_columns(
    values: Mapping[str, Sequence[float]], extra: Sequence[str], halves: Mapping[str, Sequence[float]] | None = None
) -> list[TextColumn]:
    """Return the columns of measures as people see them: times in one unit, shares of node time in percent.

    Args:
        values: by measure.
        extra: measures that are left out where they are zero.
        halves: of the intervals, by measure.
    """
    shown = [name for name in values if name not in extra or any(value and not isnan(value) for value in values[name])]
    units = time_units({name: values[name] for name in shown if _is_time(name)})
    columns = []
    for name in shown:
        if _in_percent(name):
            heading, scale = f"{_PERCENT.get(name, _words(name.removesuffix('_share')))} (%)", 100.0
        elif name in units:
            heading, scale = column_heading(name, units[name].symbol), 1 / units[name].seconds
        else:
            heading, scale = column_heading(name), 1.0
        means = [scale * value for value in values[name]]
        cells = column(means) if halves is None else intervals(means, [scale * half for half in halves[name]])
        columns.append(TextColumn(fill(heading, _HEADING, break_long_words=False), cells))
    return columns


def _columns_of(measures: Sequence[str]) -> set[str]:
    return {"replications", *measures, *(f"{name}_half" for name in measures)}


def _is_time(name: str) -> bool:
    return named(name).unit == "s"


def _in_percent(name: str) -> bool:
    return name in _PERCENT or name.endswith("_share")


def _words(name: str) -> str:
    return name.replace("_", " ").strip() or name


def frame_table(frame: pd.DataFrame, title: str) -> TextTable:
    """Return a pandas table as a table of text; its index, or else the columns before the first number, name the rows."""
    keys: list[str] = []
    if any(name is not None for name in frame.index.names):
        keys = [*map(str, frame.index.names)]
        frame = frame.reset_index()
    columns = {str(name): _text_column(str(name), frame.iloc[:, at]) for at, name in enumerate(frame.columns)}
    if not keys:
        first = next((at for at, one in enumerate(columns.values()) if one.number), len(columns))
        keys = list(columns)[: max(first, 1) if first < len(columns) else 1]
    others = [one for name, one in columns.items() if name not in keys]
    plain = {name: frame.iloc[:, at].tolist() for at, name in enumerate(columns)}
    return TextTable(title, [columns[name] for name in keys], [others], plain)


def _text_column(name: str, values: pd.Series) -> TextColumn:
    heading = fill(column_heading(name), _HEADING, break_long_words=False)
    return TextColumn(heading, [cell(value) for value in values.tolist()], _is_numeric(values))


def _is_numeric(cells: pd.Series) -> bool:
    """Return whether a column has numbers, or means with intervals."""
    if cells.dtype.kind in "iuf":
        return True
    values = [value for value in cells.tolist() if value is not None]
    if any(isinstance(value, bool) for value in values):
        return False
    texts = [value for value in values if isinstance(value, str)]
    return bool(values) and all(" ± " in text or fullmatch(_NUMBER, text) for text in texts)


def repeated_runs(table: StudyTable) -> list[Note]:
    """Return a note if all replications of a point are the same run: its function ignores the seed, and nothing is random."""
    frame = table.frame
    if not len(frame):
        return []
    point = [frame[name] for name in table.factors] or [frame["run"].isna()]
    runs = frame.groupby(point, dropna=False, sort=False)["run"].agg(["size", "nunique"])
    same = runs[(runs["size"] > 1) & (runs["nunique"] == 1)]
    if not len(same):
        return []
    which = "each point" if len(same) == len(runs) else f"{len(same):,} of {len(runs):,} points"
    fact = f"the {same['size'].max():,} replications of {which} are one and the same run, so that means have no interval"
    return [Note(fact, "let the workload of the study depend on its seed, or ask for one replication")]


def study_notes(table: StudyTable) -> list[Note]:
    """Return what looks wrong in an experiment: replications that are the same run, its worst runs, policies without effect."""
    frame, repeated = table.frame, repeated_runs(table)
    if not {*Counts._fields, *_COMPARED} <= set(frame.columns) or not len(frame):
        return repeated
    rows = frame[list(Counts._fields)].astype({"policy": str, "load": float})  # a single job has no load: None
    notes = [*repeated, *count_notes([Counts(*row) for row in rows.itertuples(index=False)], with_memory=True)]
    policies = rows["policy"].nunique()
    if policies > 1 and "policy" in table.factors:
        others = [name for name in (*table.factors, "replication") if name != "policy"]
        differing = frame.groupby(others, dropna=False, sort=False)[list(_COMPARED)].nunique(dropna=False)
        if (differing == 1).all(axis=None):
            notes.append(same_results(policies, float(frame["load"].max()), waits=bool((frame["mean_wait_s"] > 0).any())))
    return notes
