"""Calibration before a run: a policy that needs the waits of another scheduler gets them measured on the same machine and jobs.

They are measured once for all policies that are compared on a workload in memory, as long as machine and seed stay the same,
and not at all if the other scheduler is one of those that are compared, and has run before.
:mod:`clustermodel.policies.interface` says which policies ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from weakref import WeakKeyDictionary

from clustermodel.arrays import IntArray
from clustermodel.experiment.random_streams import random_stream
from clustermodel.job import JobRow
from clustermodel.machine import Machine
from clustermodel.policies.average_wait import MEASURED
from clustermodel.policies.interface import Calibrated, Policy, Waits
from clustermodel.policies.registry import make_policy
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.run_attempts import UNKNOWN
from clustermodel.sim.simulation import simulate
from clustermodel.workload.table import Workload

_Columns = tuple[IntArray, IntArray]
"""Nodes and waits of the jobs that have started."""

# Of each workload, for which policy, machine and seed its waits were measured last, and the waits.
_last_measured: WeakKeyDictionary[Workload, tuple[tuple[str, Machine, int], _Columns]] = WeakKeyDictionary()


def calibrate(
    policy: Policy,
    machine: Machine,
    streams: Callable[[], Sequence[Iterable[JobRow]]],
    seed: int,
    *,
    workload: Workload | None = None,
) -> Policy:
    """Return ``policy``, calibrated with the waits of another policy on the same machine and jobs if it asks for that.

    Args:
        policy: the policy of the coming run.
        machine: the machine of that run.
        streams: returns the job streams of that run; called once for each measurement.
        seed: root seed of the other policy's random stream.
        workload: all jobs, if they are one workload in memory.

    Raises:
        DecisionError: the other policy made an impossible decision.
    """

    def measure(other: str) -> Waits:
        measured_for = (other, machine, seed)
        last = None if workload is None else _last_measured.get(workload)
        if last is not None and last[0] == measured_for:
            nodes, wait = last[1]
        else:
            rng, failure_rng = random_stream(seed, "policy"), random_stream(seed, "failures")
            nodes, wait = _columns(simulate(machine, streams(), make_policy(other), rng, failure_rng=failure_rng).records)
            if workload is not None:
                _last_measured[workload] = measured_for, (nodes, wait)
        return Waits(tuple(nodes.tolist()), tuple(wait.tolist()))

    return policy.calibrated(measure) if isinstance(policy, Calibrated) else policy


def keep_waits(policy: object, machine: Machine, workload: Workload, seed: int, records: JobRecords) -> None:
    """Keep the waits of a finished run if it is the one in which a calibrated policy would measure them.

    Args:
        policy: as it was requested; only conservative backfilling, by its name alone, is asked for by our policies.
        machine: the machine of that run.
        workload: its jobs.
        seed: its root seed.
        records: of its jobs.
    """
    if policy == MEASURED:
        _last_measured[workload] = (MEASURED, machine, seed), _columns(records)


def _columns(records: JobRecords) -> _Columns:
    start = records.column("start")
    started = start != UNKNOWN
    return records.column("nodes")[started], (start - records.column("submit"))[started]
