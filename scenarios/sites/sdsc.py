"""How far do the queues of a site explain the waits that two logs of the San Diego Supercomputer Center record?

EASY backfilling, without and with what headers and logs show of the site.  Nothing is fitted to the waits:

- *Order*: the headers number the queues express, high, normal, low, standby; the first comes first.  No weights are known.
  Either the queue weighs as much as a week of age, so that a step between two queues is 42 hours of waiting; or queues come
  before any age.
- *Partition*: interactive jobs of SDSC-BLUE have processors of their own, as many as they ever had at once.  Batch jobs have
  1,136 of the 1,152 processors, 142 nodes: in 99 % of the time they had no more.
- *Down*: at times no batch job ran for an hour or more, on SDSC-BLUE 122 times and for 4.9 % of the time, nearly always while
  jobs waited.  The last jobs ended one after another, as on a machine that is drained: reservations of all batch processors.
- *Limits* of queues (in the header, express 8 nodes for 2 hours, high and normal 36 hours) refuse jobs; no wait is due to them.

The last column is the part of the recorded waits in which enough processors were idle for the job that waited.  No order of the
queue, and no backfilling, makes a job wait for long then: processors were down, reserved or kept, or the job was held.

    clustermodel sweep scenarios/sites/sdsc.py --out results
"""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from clustermodel import (
    Machine,
    Multifactor,
    Partition,
    Reservation,
    Result,
    Scenario,
    Site,
    Study,
    StudyTable,
    Workload,
    read_swf,
)
from clustermodel.experiment.design import Measure
from clustermodel.report.measure_table import Scaled, by_class, measure_table
from clustermodel.site.recorded_schedule import RecordedSchedule

LOGS = {"SDSC-SP2": ("SDSC-SP2-1998-4.2-cln.swf.gz", 128), "SDSC-BLUE": ("SDSC-BLUE-2000-4.2-cln.swf.gz", 1136)}
"""Files and the processors of batch jobs."""
IN_ORDER = ("express", "high", "normal", "low", "standby")
QUEUES = ("interactive", *IN_ORDER[:-1])
"""Queues of the table; the others have few jobs, or unknown queues."""
VALUES = {queue: 1 - place / (len(IN_ORDER) - 1) for place, queue in enumerate(IN_ORDER)}
AND_AGE = Multifactor(queue=1, age=1, queues=VALUES)
RULES = {
    "EASY": (None, False),
    "EASY, queues and age": (AND_AGE, False),
    "EASY, queues first": (Multifactor(queue=len(IN_ORDER), age=1, queues=VALUES), False),
    "EASY, queues, age, down": (AND_AGE, True),
}
"""The order of the queue, and whether the machine is down when it was."""
LEAST_DOWN_S = 3600
MEASURES = ("jobs", "recorded_s", "wait_s", "idle_share")


def study(traces: Path = Path("../shared/traces")) -> Study:
    """Return the study; ``traces`` is the folder of the logs."""

    def scenario(log: str, rules: tuple[Multifactor | None, bool], seed: int) -> Scenario:
        order, down = rules
        workload, machine = log_and_machine(traces, log, with_partition=order is not None)
        if down:
            machine = replace(machine, reservations=times_down(workload, LOGS[log][1]))
        return Scenario(workload=workload, machine=machine, policy="easy", site=Site(order=order), seed=seed)

    return Study(
        name="queues of SDSC",
        factors={"log": list(LOGS), "rules": RULES},
        scenario=scenario,
        measures={
            f"{measure}, {queue}": of_queue(measure, queue)
            for measure in MEASURES
            for queue in (QUEUES if measure != "idle_share" else IN_ORDER[:-1])
        },
        shown=tuple(f"wait_s, {queue}" for queue in QUEUES),
        tables={"Mean wait by queue, s": by_queue},
    )


@lru_cache(maxsize=2)
def log_and_machine(traces: Path, log: str, *, with_partition: bool) -> tuple[Workload, Machine]:
    """Return a log and its machine; without a partition, interactive jobs of SDSC-BLUE run beside the others."""
    file, batch = LOGS[log]
    workload = read_swf(traces / file, waits=True)
    jobs = workload.frame
    own = jobs[jobs["queue"] == "interactive"]
    if own.empty:
        return workload, Machine(nodes=batch)
    if not with_partition:
        return workload, Machine(nodes=batch + 16)
    most = batch + batch - int(RecordedSchedule(Workload.from_frame(own), batch).idle.min())
    partitions = [
        Partition(name="batch", nodes=range(batch), default=True),
        Partition(name="interactive", nodes=range(batch, most)),
    ]
    named = jobs.assign(partition=np.where(jobs["queue"] == "interactive", "interactive", "batch"))
    return Workload.from_frame(named), Machine(nodes=most, partitions=partitions)


def times_down(workload: Workload, nodes: int) -> list[Reservation]:
    """Return the times in which no batch job of a log ran, as reservations of the batch nodes."""
    jobs = workload.frame
    log = RecordedSchedule(Workload.from_frame(jobs[jobs["queue"] != "interactive"]), nodes)
    length = np.diff(log.times)
    down = (log.idle[:-1] == nodes) & (length >= LEAST_DOWN_S)
    return [
        Reservation(nodes=range(nodes), start_s=begin, end_s=begin + length_s)
        for begin, length_s in zip(log.times[:-1][down].tolist(), length[down].tolist(), strict=True)
    ]


def of_queue(measure: str, queue: str) -> Measure:
    """Return a measure of the jobs of one queue, which is missing where there are none."""
    return lambda result: queues_of(result)[measure].get(queue)


@lru_cache(maxsize=1)
def queues_of(result: Result) -> pd.DataFrame:
    """Return the measures of all queues."""
    jobs = result.jobs
    processors = LOGS["SDSC-BLUE" if "interactive" in set(jobs["queue"]) else "SDSC-SP2"][1]
    by = jobs.assign(idle_s=idle_enough(jobs, processors)).groupby("queue", observed=True)
    waits = by[["recorded_wait_s", "wait_s", "idle_s"]].mean()
    return pd.DataFrame({
        "jobs": by.size(), "recorded_s": waits["recorded_wait_s"], "wait_s": waits["wait_s"],
        "idle_share": waits["idle_s"] / waits["recorded_wait_s"],
    })  # fmt: skip


def idle_enough(jobs: pd.DataFrame, nodes: int) -> "pd.Series[float]":
    """Return how long each batch job waited while enough processors were idle for it, seconds."""
    batch = jobs[(jobs["queue"] != "interactive") & jobs["run_s"].notna()]  # the one job that is too wide has none
    recorded = batch[["submit_s", "nodes", "run_s"]].assign(wait_s=batch["recorded_wait_s"])
    log = RecordedSchedule(Workload.from_frame(recorded), nodes)
    waited = pd.Series(np.nan, jobs.index)
    for size in np.unique(log.nodes):
        fits = np.cumsum(np.diff(log.times, prepend=log.times[0]) * np.concatenate([[0], log.idle[:-1] >= size]))
        of_size = batch["nodes"] == size
        begin = batch.loc[of_size, "submit_s"]
        end = begin + batch.loc[of_size, "recorded_wait_s"]
        waited[begin.index] = np.interp(end, log.times, fits) - np.interp(begin, log.times, fits)
    return waited


def by_queue(table: StudyTable) -> pd.DataFrame:
    """Return recorded beside simulated means."""
    rows = by_class(table, "queue", {queue: {name: f"{name}, {queue}" for name in MEASURES[:3]} for queue in QUEUES})
    shares = by_class(table, "queue", {queue: {"idle_share": f"idle_share, {queue}"} for queue in IN_ORDER[:-1]})
    at = {"rules": "EASY"}
    found = measure_table(
        rows,
        {
            "jobs": Scaled("jobs", at=at),
            "recorded": Scaled("recorded_s", at=at),
            **{rules: Scaled("wait_s", at={"rules": rules}) for rules in RULES},
        },
        by=["log", "queue"],
    )
    idle = measure_table(shares, {"idle enough, %": Scaled("idle_share", 100, at=at)}, by=["log", "queue"])
    return found.merge(idle, how="left").sort_values("log", key=lambda logs: logs.map(list(LOGS).index), kind="stable")
