"""Tables of studies: means with intervals, and notes on what looks wrong in a study or what its intervals mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from clustermodel.figures.text_table import Column, TextTable, Values, measure_columns, text_column
from clustermodel.measure import input_notes
from clustermodel.measure.input_notes import Note
from clustermodel.measure.metrics import quantity
from clustermodel.measure.quantities import never_negative

if TYPE_CHECKING:
    from clustermodel.experiment.study_table import StudyTable

_COMPARED: Final = ("mean_wait_s", "mean_response_s", "utilization", "kappa", "horizon_s")  # these tell policies apart


def means_table(table: StudyTable, title: str, measures: Sequence[str], extra: Sequence[str] = ()) -> TextTable:
    """Return a table of means with their intervals: a row for each point; ``extra`` ones are shown where they are not zero."""
    means = table.means(*measures, *extra)
    halves = {name: means[f"{name}_half"].tolist() for name in (*measures, *extra)}
    factors = [str(name) for name in means if name not in {"replications", *halves, *(f"{name}_half" for name in halves)}]
    columns = measure_columns({name: means[name].tolist() for name in halves}, not_if_zero=extra, halves=halves)
    runs = Column("runs", [f"{number:,}" for number in means["replications"]], name="replications")
    keys = [text_column(name, means[name]) for name in factors]
    values = {str(name): means[name].tolist() for name in means}
    advice = "" if sample_paths(table) else "more replications narrow them"
    return TextTable(title, keys, [[runs, *columns.values()]], values, _below_zero(values, list(columns), advice))


def _below_zero(values: Mapping[str, Values], measures: Sequence[str], advice: str) -> list[Note]:
    """Return a note on measures that cannot be negative whose intervals reach below 0."""
    wrong = [
        (name, mean, half)
        for name in measures
        if never_negative(name)
        for mean, half in zip(values[name], values[f"{name}_half"], strict=True)
        if mean is not None and half is not None and 0 <= mean < half
    ]
    if not wrong:
        return []
    names = ", ".join(dict.fromkeys(quantity(name).name for name, *_ in wrong))
    fact = f"intervals reach below 0, where {names} cannot be: they are to be read as ending at 0"
    return [Note(fact, advice)]


def sample_paths(table: StudyTable) -> list[Note]:
    """Return a note on what the intervals of a study mean whose jobs are resampled."""
    resampled = table.resampled
    if not resampled.any():
        return []
    which = "jobs" if resampled.all() else f"the jobs of {int(resampled.sum()):,} of {len(resampled):,} runs"
    fact = f"{which} are resampled: their ± is half of a prediction interval for one new log, sqrt(n+1) times that of a mean"
    return [Note(fact, "more resamples do not narrow it")]


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


def notes_of_runs(table: StudyTable) -> list[Note]:
    """Return what to know after the runs: replications that are the same run, resampled jobs, unused costs, lost work."""
    notes, frame = [*repeated_runs(table), *sample_paths(table), *table.notes], table.frame
    if not {"policy", "lost_share", "useful_share", "failed_attempts"} <= set(frame.columns):
        return notes
    lost = frame["lost_share"].where(frame["failed_attempts"] > 0, 0.0).astype(float)
    shares = (lost / (lost + frame["useful_share"].astype(float))).groupby(frame["policy"].astype(str), sort=False).max()
    if (shares > input_notes.DISCARDED_SHARE).any():
        notes.append(input_notes.discarded_work(shares.fillna(0.0).tolist(), shares.index.tolist()))
    return notes


def study_notes(table: StudyTable) -> list[Note]:
    """Return what looks wrong in an experiment: that of :func:`notes_of_runs`, its worst runs, policies without effect."""
    frame, repeated = table.frame, notes_of_runs(table)
    if not {*input_notes.COUNTED, *_COMPARED} <= set(frame.columns) or not len(frame):
        return repeated
    numbers = {*input_notes.COUNTED, *_COMPARED} - {"policy"}
    if any(isinstance(level, str) for name in numbers & set(table.factors) for level in table.levels(name)):
        return repeated  # texts hide the numbers of a column of that name
    rows = frame[list(input_notes.COUNTED)].astype({"policy": str, "load": float})  # a single job has no load: None
    notes = [*repeated, *input_notes.count_notes(list(rows.itertuples(index=False)), with_memory=True, with_rules=True)]
    policies = rows["policy"].nunique()
    if policies > 1 and "policy" in table.factors:
        others = [name for name in (*table.factors, "replication") if name != "policy"]
        differing = frame.groupby(others, dropna=False, sort=False)[list(_COMPARED)].nunique(dropna=False)
        if (differing == 1).all(axis=None):
            waits = bool((frame["mean_wait_s"] > 0).any())
            notes.append(input_notes.same_results(policies, float(frame["load"].max()), waits=waits))
    return notes
