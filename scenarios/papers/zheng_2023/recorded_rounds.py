"""Recorded rounds of gangs that take turns on the GPUs of a testbed, and the costs that can be estimated from them.

The files are those of Zheng et al. 2023 as tables: jobs (``job, gpus, submit_s``), rounds (``round, job, gpus``: which GPUs a
job holds in a round) and records (``job, completion_time_s, gpu_seconds``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from clustermodel import SpecificationError
from clustermodel.arrays import FloatArray, IntArray
from clustermodel.errors import shown
from clustermodel.text.files import UNREADABLE, opened

ROUND_S = 120
NODES, GPUS_PER_NODE = 8, 4
GPUS = NODES * GPUS_PER_NODE
_NAMES_OF_GPUS = frozenset(map(str, range(GPUS)))
SAME_SHARE = 0.1
"""Two runs are the same where more than this share of their jobs complete within a second of each other."""


class Numbers(NamedTuple):
    """Which numbers a column may have."""

    least: int
    most: int
    whole: bool = True

    def __str__(self) -> str:
        return f"a {'whole ' if self.whole else ''}number >= {self.least} and <= {self.most}"


ID, SECONDS = Numbers(0, 2**53), Numbers(0, 10**9, whole=False)
JOBS = {"job": ID, "gpus": Numbers(1, GPUS), "submit_s": SECONDS}
ROUNDS = {"round": Numbers(0, 10**6), "job": ID, "gpus": None}
RECORDED = {"job": ID, "completion_time_s": SECONDS, "gpu_seconds": SECONDS}


@dataclass(frozen=True)
class Recorded:
    """One policy on the testbed; series are by job."""

    name: str
    jobs: pd.DataFrame
    rounds: pd.DataFrame
    completion_s: pd.Series
    """From submission to completion."""
    run_s: pd.Series
    """GPU-seconds over GPUs."""

    @property
    def end_s(self) -> pd.Series:
        """When each job has completed."""
        return self.jobs["submit_s"] + self.completion_s

    @cached_property
    def held(self) -> pd.DataFrame:
        """The rounds of each job, in order, with ``starts``: whether it did not hold the same GPUs in the round before."""
        held = self.rounds.sort_values(["job", "round"], ignore_index=True)
        before = held.shift(1)
        goes_on = (held["job"] == before["job"]) & (held["gpus"] == before["gpus"]) & (held["round"] == before["round"] + 1)
        moves = (held["job"] == before["job"]) & (held["round"] == before["round"] + 1) & ~goes_on
        return held.assign(starts=~goes_on, moves=moves)

    @property
    def starts(self) -> int:
        """How often a gang started or restarted."""
        return int(self.held["starts"].sum())

    @property
    def gpu_seconds(self) -> float:
        """GPU-seconds of all jobs."""
        return float((self.run_s * self.jobs["gpus"]).sum())

    @property
    def starts_of_job(self) -> pd.Series:
        """How often each gang started or restarted."""
        return self.held.groupby("job")["starts"].sum()

    @property
    def moves(self) -> int:
        """How often a gang continued on other GPUs."""
        return int(self.held["moves"].sum())

    @property
    def starts_in_round(self) -> IntArray:
        """How many gangs started or restarted, by round."""
        return self.held.groupby("round")["starts"].sum().reindex(range(self.count), fill_value=0).to_numpy()

    @property
    def count(self) -> int:
        """How many rounds there were."""
        return int(self.rounds["round"].max()) + 1

    @property
    def before_end(self) -> FloatArray:
        """How many starts there were, by job, until its last round was over."""
        return self.starts_in_round.cumsum()[self.held.groupby("job")["round"].max()].astype(float)

    def length_s(self, start_s: float) -> FloatArray:
        """Return how long each job has held GPUs, where a round is longer by ``start_s`` for each gang that starts in it."""
        rounds = ROUND_S + start_s * self.starts_in_round
        return self.held.assign(length=rounds[self.held["round"]]).groupby("job")["length"].sum().to_numpy()

    def placements(self, start_s: float) -> pd.DataFrame:
        """Return which gang held which GPUs, where a round is longer by ``start_s`` for each gang that starts in it.

        It is a table like ``Result.placements``: a row for each contiguous range of GPUs of a stay on the same GPUs.
        """
        begins_s = self.first_round_s + np.concatenate([[0.0], np.cumsum(ROUND_S + start_s * self.starts_in_round)])
        of_stay = self.held.groupby(self.held["starts"].cumsum().rename("stay"))
        stays = of_stay.agg(job=("job", "first"), gpus=("gpus", "first"), first=("round", "min"), last=("round", "max"))
        times = {"begin_s": begins_s[stays["first"]], "end_s": begins_s[stays["last"] + 1]}
        of_gpus = stays.assign(**times, gpu=stays["gpus"].str.split()).explode("gpu").astype({"gpu": int}).reset_index()
        of_range = of_gpus["gpu"] - of_gpus.groupby("stay").cumcount()  # the same for neighbours
        ranges = of_gpus.groupby(["stay", of_range.rename("range"), "job", "begin_s", "end_s"], as_index=False)
        return ranges.agg(first_node=("gpu", "min"), nodes=("gpu", "size")).drop(columns=["stay", "range"], errors="ignore")

    @property
    def first_round_s(self) -> float:
        """When the first round began: between the submission of its last job and of the first one that it lacks, if any."""
        in_it = self.jobs["submit_s"][self.rounds.loc[self.rounds["round"] == 0, "job"]].max()
        later = self.jobs["submit_s"][self.jobs["submit_s"] > in_it]
        return float(np.nanmean([in_it, later.min()]))


class Costs(NamedTuple):
    """What restarts cost, estimated from recorded runs."""

    start_s: float
    """How much longer a round is for each gang that starts in it: completions against starts until then."""
    restart_s: float
    """What a gang that starts loses: the time for which it held GPUs, without a round, against its starts."""
    in_run_s: float
    """How much longer the recorded execution of a job is for each start: the median of jobs, between pairs of runs.  NaN where
    no two runs differ in their starts."""
    first_round_s: float


def _slope(x: Iterable[FloatArray], y: Iterable[FloatArray]) -> float:
    every_x, every_y = np.concatenate([*x]), np.concatenate([*y])
    return float(every_x @ every_y / (every_x @ every_x or 1.0))


def costs(runs: Sequence[Recorded]) -> Costs:
    """Estimate the costs from runs by least squares.

    A round of a job's time is not explained by starts: half of its last round is unused on average, and so is, for every second
    job, the round that had been decided when it ended.
    """
    before = [run.before_end for run in runs]
    drift = [(run.end_s - ROUND_S * (run.held.groupby("job")["round"].max() + 1)).to_numpy() for run in runs]
    start_s = _slope((x - x.mean() for x in before), (y - y.mean() for y in drift))
    starts = [run.starts_of_job.to_numpy(dtype=float) for run in runs]
    unused = [run.length_s(start_s) - run.run_s.to_numpy() - ROUND_S for run in runs]
    pairs = [(one, other) for place, one in enumerate(runs) for other in runs[:place]]
    more = [(one.run_s - other.run_s) / (one.starts_of_job - other.starts_of_job).replace(0, np.nan) for one, other in pairs]
    return Costs(
        start_s,
        _slope(starts, unused),
        float(np.maximum(0.0, pd.concat(more).median())) if more else float("nan"),
        float(np.mean([run.first_round_s for run in runs])),
    )


def run_time_s(runs: Sequence[Recorded], in_run_s: float) -> pd.Series:
    """Return the mean run time of each job in several runs, without what its starts have cost there."""
    return pd.concat([run.run_s - in_run_s * run.starts_of_job for run in runs], axis=1).mean(axis=1)


def _refuse(path: Path, table: pd.DataFrame, wrong: pd.Series, message: str) -> None:
    """Refuse the first row that is wrong; ``message`` has the columns of the table in braces."""
    if wrong.any():
        first = table[wrong].head(1)
        values = {str(column): shown(first[column].iloc[0]) for column in first}
        raise SpecificationError(f"{path}: row {int(first.index[0]) + 1}: {message.format(**values)}")


def _table(path: Path, columns: Mapping[str, Numbers | None]) -> pd.DataFrame:
    """Return the columns of a file, as the numbers that they must be; those of ``None`` as text."""
    try:
        with opened(path) as file:
            table = pd.read_csv(file, dtype=str, keep_default_na=False).fillna("")
    except (ValueError, *UNREADABLE) as problem:
        reason = str(getattr(problem, "strerror", None) or problem).partition("\n")[0]
        raise SpecificationError(f"{path}: it cannot be read as a table: {reason}") from None
    if missing := [column for column in columns if column not in table]:
        raise SpecificationError(f"{path}: column {missing[0]} is missing; it must have {', '.join(columns)}")
    if table.empty:
        raise SpecificationError(f"{path}: it has no rows")
    if not isinstance(table.index, pd.RangeIndex):
        raise SpecificationError(f"{path}: its rows have more fields than its first line")
    table = table[[*columns]]
    for column, allowed in columns.items():
        if allowed:
            numbers = pd.to_numeric(table[column], errors="coerce")
            fits = numbers.between(allowed.least, allowed.most) & ((numbers % 1 == 0) | (not allowed.whole))
            _refuse(path, table, ~fits, f"{column}: {{{column}!r}} is not allowed; it must be {allowed}")
            table = table.assign(**{column: numbers.astype(np.int64 if allowed.whole else np.float64)})
    return table


def _gpus(text: str) -> str | None:
    """Return numbers of GPUs in ascending order, with a blank between them; ``None`` if that is not what they are."""
    gpus = text.replace(",", " ").split()
    if not gpus or not all(gpu in _NAMES_OF_GPUS for gpu in gpus):
        return None
    return " ".join(sorted(gpus, key=int))


def read(jobs: Path, rounds: Path, recorded: Path) -> Recorded:
    """Read the files of one run; refuse what cannot have been recorded, naming the file."""
    of_jobs, in_rounds, of_run = _table(jobs, JOBS), _table(rounds, ROUNDS), _table(recorded, RECORDED)
    for path, table, key, twice in (
        (jobs, of_jobs, ["job"], "job {job} is given twice"),
        (rounds, in_rounds, ["round", "job"], "job {job} is given twice in round {round}"),
        (recorded, of_run, ["job"], "job {job} is given twice"),
    ):
        _refuse(path, table, table.duplicated(key), twice)
    ids = set(of_jobs["job"])
    for path, table in ((rounds, in_rounds), (recorded, of_run)):
        if different := sorted(ids ^ set(table["job"])):
            raise SpecificationError(f"{path}: job {different[0]} is not in both this file and {jobs}")
    _refuse(recorded, of_run, of_run["completion_time_s"] == 0, "completion_time_s is 0; it must be > 0")
    if first := in_rounds["round"].min():
        raise SpecificationError(f"{rounds}: its first round is {first}; it must be 0")
    of_jobs, of_run = of_jobs.set_index("job").sort_index(), of_run.set_index("job").sort_index()
    end_s = (of_jobs["submit_s"] + of_run["completion_time_s"]).max()
    too_late = in_rounds["round"] * ROUND_S > end_s + 2 * ROUND_S  # the next round may have been decided
    _refuse(rounds, in_rounds, too_late, f"round {{round}} begins after the last completion, at {end_s:.0f} s")
    held = in_rounds["gpus"].map({text: _gpus(text) for text in in_rounds["gpus"].unique()})
    allowed = f"whole numbers >= 0 and < {GPUS}, with a blank or a comma between them"
    _refuse(rounds, in_rounds, held.isna(), f"gpus: {{gpus!r}} is not allowed; it must be {allowed}")
    each = in_rounds.assign(gpu=held.str.split()).explode("gpu")
    _refuse(rounds, each, each.duplicated(["round", "gpu"]), "GPU {gpu} is held twice in round {round}")
    counted = in_rounds.assign(count=held.str.count(" ") + 1, asked=in_rounds["job"].map(of_jobs["gpus"]))
    different_count = "job {job} holds {count} GPUs in round {round}; in the file of jobs it has {asked}"
    _refuse(rounds, counted, counted["count"] != counted["asked"], different_count)
    name = rounds.name.partition("_rounds")[0]
    run_s = of_run["gpu_seconds"] / of_jobs["gpus"]
    return Recorded(name, of_jobs, in_rounds.assign(gpus=held), of_run["completion_time_s"], run_s)


def read_folder(folder: Path) -> list[Recorded]:
    """Read all runs of a folder in the form of shared/traces/gpu/tacc; none where it has no jobs.csv."""
    jobs = next(folder.glob("jobs.csv*"), None)
    runs = []
    for rounds in sorted(folder.glob("*_rounds.csv*")):
        of_run = next(folder.glob(f"{rounds.name.partition('_rounds')[0]}_jobs.csv*"), None)
        if jobs and of_run:
            runs.append(read(jobs, rounds, of_run))
    return runs


def others_than(run: Recorded, runs: Iterable[Recorded]) -> list[Recorded]:
    """Return the runs that are not this one, whatever it is called."""
    return [other for other in runs if other.name != run.name and not _are_the_same(run, other)]


def _are_the_same(run: Recorded, other: Recorded) -> bool:
    apart_s = (run.completion_s - other.completion_s).abs().dropna()  # of the jobs of both
    return int((apart_s < 1).sum()) > SAME_SHARE * len(apart_s)
