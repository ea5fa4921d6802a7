"""A trial of an experiment identified by its key: the scenario, the digests of its jobs, and what tables say about it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from clustermodel.experiment.factors import Label, Trial
from clustermodel.experiment.run_key import JobsDigest, digest_of_jobs, key_of, specification
from clustermodel.experiment.scenario import Scenario
from clustermodel.workload.table import JobSource, Workload


class Run(NamedTuple):
    """A trial with the key of its run.  Trials whose scenarios cannot differ have the same key."""

    key: str
    """Digest of the specification: 32 hexadecimal digits."""
    trial: Trial
    """The point and the replication."""
    specification: Mapping[str, Any]
    """Everything that the run's numbers depend on; plain values."""
    about: Mapping[str, Label]
    """Policy, workload, number of nodes and seed of the scenario."""
    jobs: int
    """The number of jobs."""
    sources: Sequence[str]
    """The origins of the job streams, for readers."""
    history: bool
    """Whether the run keeps every state of the Ousterhout matrix."""
    error: str | None = None
    """Why the scenario could not be made; such a run has failed."""


class Finished(NamedTuple):
    """The outcome of a successful run."""

    measured: Mapping[str, float | None]
    """The numbers of the run by name: :meth:`Design.numbers_of <clustermodel.experiment.design.Design.numbers_of>`."""
    tables: Mapping[str, bytes]
    """Parquet files by names of tables; none for replications whose tables are not kept."""
    seconds: float
    """Wall time of the run."""
    versions: Mapping[str, str]
    """Versions of Python and of the packages that made the numbers."""
    nothing_played: bool = False
    """Whether the slow mode was requested although no gang shared its nodes in time."""


def identified(
    trial: Trial,
    scenario: Scenario,
    jobs: Sequence[JobsDigest],
    code: Mapping[str, Any],
    *,
    warm_up_s: float,
) -> Run:
    """Return the run of a trial.

    Args:
        trial: the point and the replication.
        scenario: of the trial.
        jobs: the digests of its job streams.
        code: identities of policy, speedup model and measures.
        warm_up_s: of the study, seconds.
    """
    digests = [digest.sha256 for digest in jobs]
    specified = specification(scenario, code, digests, warm_up_s=warm_up_s)
    about: dict[str, Label] = {
        "policy": scenario.label,
        "workload": scenario.workload_name,
        "nodes": scenario.used_machine.processors,
        "seed": scenario.seed,
    }
    names = [source.provenance.source for source in scenario.sources]
    return Run(key_of(specified), trial, specified, about, sum(digest.jobs for digest in jobs), names, scenario.history)


def without_scenario(trial: Trial, experiment: str, seed: int, error: str) -> Run:
    """Return the failed run of a trial of which the scenario could not be made; its own key keeps it apart from results."""
    specified = {"scenario": "could not be made", "trial": list(trial), "study": experiment, "seed": seed}
    about: dict[str, Label] = {"policy": None, "workload": None, "nodes": None, "seed": seed}
    return Run(key_of(specified), trial, specified, about, 0, [], history=False, error=error)


class DigestsOfJobs:
    """Digests of job streams, each computed once; the streams are not kept alive."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Callable[[], object], JobsDigest]] = {}

    def of(self, source: JobSource) -> JobsDigest:
        """Return the digest of the jobs of ``source``, which is read to its end the first time."""
        jobs = _jobs_in(source)
        reference, digest = self._known.get(id(jobs), (None, None))
        if reference is None or digest is None or reference() is not jobs:  # ids are reused
            digest = digest_of_jobs(source)
            self._known[id(jobs)] = _reference_to(jobs), digest
        return digest


def _jobs_in(source: JobSource) -> object:
    """Return the read-only array that workloads of the same jobs share, or the stream itself."""
    jobs = source.column("id").base if isinstance(source, Workload) else None
    return source if jobs is None or jobs.flags.writeable else jobs


def _reference_to(thing: object) -> Callable[[], object]:
    try:
        return weakref.ref(thing)
    except TypeError:  # the class allows no weak references
        return lambda: thing
