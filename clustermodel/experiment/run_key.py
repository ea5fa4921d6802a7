"""The key of a run: a digest of everything that its numbers depend on.

The key covers the machine, the jobs, the policy and the speedup model, the seed, the warm-up, the software (this package's
sources, Python, SimPy and numpy), and the source files of the user where a policy, a speedup model or a measure is theirs.  It
does not cover the host, names, or the order of the runs.
"""

from __future__ import annotations

import hashlib
import json
import platform
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from clustermodel.errors import SpecificationError
from clustermodel.experiment.factors import Label, Trial
from clustermodel.experiment.fingerprint import Sources, fingerprint
from clustermodel.experiment.scenario import Scenario
from clustermodel.experiment.user_code import is_ours
from clustermodel.job import JobRow
from clustermodel.machine import Machine
from clustermodel.policies.interface import PARTS, RANDOM_NUMBERS, Policy, dependencies_of
from clustermodel.policies.predictors import installed_predictor
from clustermodel.policies.registry import make_policy, policy_factory, policy_settings
from clustermodel.workload.extra_columns import PRECEDING, STREAM, THINK
from clustermodel.workload.table import JobSource, Provenance, Workload

_SOURCES: Final = Path(__file__).parents[1]
_NO_NUMBERS: Final = ("cli/", "figures/", "report/")
"""Folders of sources on which no number of a run depends: commands, figures and reports."""
_CHUNK: Final = 4096


class JobsDigest(NamedTuple):
    """Identity of the jobs of a stream."""

    sha256: str
    jobs: int


class Digested:
    """A job stream that computes its digest while it is read, so that the digest is of the jobs that really ran.

    Args:
        source: the stream.
    """

    def __init__(self, source: JobSource) -> None:
        self._source = source
        self.digest: JobsDigest | None = None
        """The digest of the jobs, ``None`` before the stream was read to its end."""

    @property
    def name(self) -> str:
        """A label for messages and tables."""
        return self._source.name

    @property
    def provenance(self) -> Provenance:
        """The origin of the jobs."""
        return self._source.provenance

    @property
    def machine_nodes(self) -> int | None:
        """The size of the machine on which the workload was recorded, if known."""
        return self._source.machine_nodes

    def rows(self) -> Iterator[JobRow]:
        """Yield the jobs in order of submission."""
        self.digest = None
        digest, jobs = hashlib.sha256(), 0
        rows = iter(self._source.rows())
        while chunk := list(islice(rows, _CHUNK)):
            digest.update(np.array(chunk, dtype="<i8").tobytes())
            jobs += len(chunk)
            yield from chunk
        self.digest = JobsDigest(digest.hexdigest(), jobs)


def digest_of_jobs(source: JobSource) -> JobsDigest:
    """Return the digest of the jobs of a stream; reads all of it.

    It covers labels of streams and feedback where the workload has them, on which metrics and submissions depend.
    """
    if isinstance(source, Workload):
        names = (*JobRow._fields, *(name for name in (STREAM, PRECEDING, THINK) if source.has(name)))
        table = np.stack([source.column(name) for name in names], axis=1).astype("<i8", order="C", copy=False)
        digest = hashlib.sha256(table.tobytes())
        if names != JobRow._fields:
            digest.update(json.dumps([names, source.streams]).encode())
        return JobsDigest(digest.hexdigest(), len(source))
    digested = Digested(source)
    for _ in digested.rows():
        pass
    assert digested.digest is not None
    return digested.digest


def specification(
    scenario: Scenario, code: Mapping[str, Any], jobs: Sequence[str | None], *, warm_up_s: float
) -> dict[str, Any]:
    """Return everything that the numbers of a run depend on, as plain values.

    A policy that declares what it depends on (:class:`~clustermodel.policies.interface.Dependent`) makes the same schedule on
    machines that differ in other parts; those parts, and the seed of a policy that draws no random numbers, are left out.

    Args:
        scenario: the scenario of the run.
        code: identities of policy, speedup model and measures: :meth:`Identities.of_code`.
        jobs: digests of its job streams.
        warm_up_s: warm-up of the study, seconds.
    """
    failures = scenario.used_machine.failures
    parts = {field.name: getattr(scenario.used_machine, field.name) for field in fields(Machine)}
    machine = {name: _plain(part) for name, part in parts.items() if name != "failures"}
    machine["failures"] = _identity_of_failures(failures)
    used = set(dependencies_of(make_policy(scenario.policy)))
    costs = scenario.used_machine.checkpointing
    if costs.interval_s is not None or costs.restart_charge != "on-start":
        used.add("checkpointing")  # whatever the policy decides
    if failures is not None:
        used.add(RANDOM_NUMBERS)
    if _refuses_jobs(scenario):
        used.add("node_memory_gib")  # whatever the policy decides
    for part in PARTS:
        if part not in used:
            machine.pop(part, None)
    return {
        "machine": machine,
        "jobs_sha256": list(jobs),
        "seed": scenario.seed if RANDOM_NUMBERS in used else None,
        "fidelity": scenario.fidelity,
        "events": scenario.events,
        "warm_up_s": warm_up_s,
        **code,
        "software": software(),
    }


def _refuses_jobs(scenario: Scenario) -> bool:
    """Return whether some jobs may need more memory than a node of the machine has."""
    memory = scenario.used_machine.node_memory
    if memory is None:
        return False
    return any(not isinstance(source, Workload) or source.column("memory").max() > memory for source in scenario.sources)


def _plain(value: object) -> object:
    """Return a part of a machine as a mapping, a single value as it is."""
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def key_of_scenario(scenario: Scenario) -> str:
    """Return the key of a run on its own, without a warm-up or measures; reads streamed traces to their ends.

    Raises:
        SpecificationError: the policy or the speedup model reaches an object without known source and value.
    """
    jobs = [digest_of_jobs(source).sha256 for source in scenario.sources]
    return key_of(specification(scenario, Identities().of_code(scenario), jobs, warm_up_s=0.0))


def _identity_of_failures(failures: object) -> object:
    """Return the identity of a source of failures, ``None`` without one."""
    return None if failures is None else fingerprint(failures, "Machine.failures")


def key_of(specification: Mapping[str, Any]) -> str:
    """Return the key of a run: 32 hexadecimal digits of the digest of its specification."""
    return hashlib.sha256(canonical(specification).encode()).hexdigest()[:32]


def canonical(value: object) -> str:
    """Return ``value`` as JSON, always in the same way."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


@cache
def software() -> dict[str, str]:
    """Return the identity of the software that makes the numbers: versions, and a digest of this package's sources."""
    digest = hashlib.sha256()
    for path in sorted(_SOURCES.rglob("*")):
        name = path.relative_to(_SOURCES).as_posix()
        if path.suffix in (".py", ".json") and not name.startswith(_NO_NUMBERS):
            digest.update(f"{name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    python = ".".join(platform.python_version_tuple()[:2])
    packages = {name: version(name) for name in ("numpy", "simpy")}
    return {"clustermodel": version("clustermodel"), "clustermodel_sha256": digest.hexdigest(), "python": python, **packages}


class Identities:
    """Identities of policies, speedup models and measures in one process.

    The identity of a registered policy is determined once, before the first run that uses it: a run may change values that the
    policy reads, and another script may register another policy under its name.

    Args:
        sources: of the experiment; by default the program of this process and what it imports.
    """

    def __init__(self, sources: Sources | None = None) -> None:
        self.sources = sources or Sources()
        self._named: dict[str, tuple[object, object]] = {}  # factory and identity
        self._objects: dict[int, tuple[object, object]] = {}  # by id: a policy, which is kept alive, and its identity

    def of_code(self, scenario: Scenario, measures: object = None) -> dict[str, object]:
        """Return the identities of all code of a run: policy, speedup model and measures.

        Raises:
            SpecificationError: a policy or a speedup model reaches an object without known source and value, or another policy
                has been registered under its name.
        """
        speedup = scenario.speedup
        kind = type(speedup).__name__
        return {
            "policy": self._of_policy(scenario.policy),
            "speedup": repr(speedup) if is_ours(type(speedup)) else self._of(kind, f"speedup {kind}", speedup),
            "measures": measures,
        }

    def of_measures(self, measures: Mapping[str, Callable[..., object]]) -> dict[str, object]:
        """Return the identities of a study's own measures by name.

        Raises:
            SpecificationError: a measure reaches an object without known source and value.
        """
        return {name: self._of(name, f"measure {name}", measure) for name, measure in measures.items()}

    def _of_policy(self, policy: str | Policy) -> object:
        """Return the identity of a policy: its name with parameters, or a digest of its values and of the user's sources."""
        if not isinstance(policy, str):
            if id(policy) not in self._objects:  # before its first run, which may change what a user's class keeps on itself
                self._objects[id(policy)] = policy, self._of(policy.name, f"policy {policy.name}", policy)
            return self._objects[id(policy)][1]
        factory = policy_factory(policy)
        if policy not in self._named:
            identity: object = policy if is_ours(factory) else self._of(policy, f"policy {policy}", factory)
            predictor = installed_predictor(policy_settings(policy).get("predictor"))
            if predictor is not None:
                identity = {"policy": identity, "predictor": self._of(policy, f"predictor of policy {policy}", predictor)}
            self._named[policy] = factory, identity
        known_factory, settled = self._named[policy]
        if factory is not known_factory:
            raise SpecificationError(f"policy {policy}: another script has registered this name meanwhile")
        return settled

    def _of(self, name: str, shown: str, thing: object) -> dict[str, object]:
        return {"name": name, "sha256": fingerprint(thing, shown, self.sources)}


def difference(expected: Mapping[str, Any], found: Mapping[str, Any], jobs: int, found_jobs: int) -> str:
    """Return in one line how a worker's run differs from the study's, and how to correct it.

    Args:
        expected: specification of the run in the study.
        found: specification of the run in the worker.
        jobs: number of jobs in the study.
        found_jobs: number of jobs in the worker.
    """
    of_worker, of_study = dict(_leaves(found)), dict(_leaves(expected))
    differing = [name for name in sorted({*of_study, *of_worker}) if of_study.get(name) != of_worker.get(name)]
    first = differing[0] if differing else ""
    if any(name.startswith("software") for name in differing):
        first = next(name for name in differing if name.startswith("software"))
        return (
            f"it was run by other software: {first.partition('.')[2]} is {_short(of_worker.get(first))} there and "
            f"{_short(of_study.get(first))} here; install the same"
        )
    if all(name.startswith("jobs_sha256") for name in differing):
        return (
            f"it was run on other jobs: {found_jobs:,} there and {jobs:,} here, or of other values; a workload must depend on "
            "its seed alone: seed its random generators, and read no environment, clock or file that changes"
        )
    return (
        f"it was run on another specification: {first} is {_short(of_worker.get(first))} there and "
        f"{_short(of_study.get(first))} here; the script, and all that it imports and reads, must be the same wherever it runs"
    )


def _leaves(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list | tuple) else None
    if items is None:
        yield name, value
        return
    for key, part in items:
        yield from _leaves(part, f"{name}.{key}" if name else str(key))


def _short(value: object) -> str:
    text = "missing" if value is None else str(value)
    return text if len(text) <= 20 else f"{text[:8]}..."


# Runs.

RECORDS: Final = "records"
"""The job table of a run."""
STATES_OVER_TIME: Final = "states"
"""The state of the machine after each scheduling event."""
PLACEMENTS: Final = "placements"
"""The nodes of each gang over time."""
TABLES: Final = (RECORDS, STATES_OVER_TIME, PLACEMENTS)
"""Names of the tables of a run, and of their folders."""


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
