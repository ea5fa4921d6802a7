"""The key of a run: a digest of everything that its numbers depend on.

The key covers the machine, the jobs, the policy and the speedup model, the seed, the warm-up and the software.  A policy, a
speedup model or a measure of the user counts by its :func:`fingerprint`, which covers all source files of the experiment.  The
host, names and the order of the runs do not count.
"""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import types
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from clustermodel.errors import ClusterModelError, SpecificationError
from clustermodel.experiment import user_code
from clustermodel.experiment.design import Design
from clustermodel.experiment.factors import Label, Trial
from clustermodel.experiment.fingerprint import Sources, canonical, fingerprint, sha256
from clustermodel.experiment.scenario import Scenario
from clustermodel.measure.input_notes import Costs
from clustermodel.policies.interface import PARTS, RANDOM_NUMBERS, Policy, dependencies_of
from clustermodel.policies.predictors import installed_predictor
from clustermodel.policies.registry import make_policy, may_resize, policy_factory, policy_settings
from clustermodel.workload.job import NUMBERS
from clustermodel.workload.table import JobSource, Workload

_PACKAGE: Final = Path(__file__).parents[1]
# Sources on which no number of a run depends; on the measures of classes of jobs, in report/measure_table.py, some do.
_NO_NUMBERS: Final = ("cli/", "figures/", *(f"report/{name}.py" for name in ("data", "html", "plots", "write")))
_NOT_OF_VERSION: Final = frozenset({"history", "job_tables", "shown", "text", "tables", "figures"})
"""Fields of experiments that change no number of a run."""
_CHUNK: Final = 4096


class JobsDigest(NamedTuple):
    """Identity of the jobs of a stream."""

    sha256: str
    jobs: int


def digest_of_jobs(source: JobSource) -> JobsDigest:
    """Return the digest of all jobs of a stream, with all that is known of them, on which measures may depend."""
    digest, jobs = hashlib.sha256(), 0
    if isinstance(source, Workload):
        names = (*NUMBERS, *source.extra)
        table = np.stack([source.column(name) for name in names], axis=1).astype("<i8", order="C", copy=False)
        digest.update(table.tobytes())
        if names != NUMBERS:
            digest.update(json.dumps([names, source.streams]).encode())
        if source.names:
            digest.update(json.dumps(source.names, sort_keys=True).encode())
        digest.update(source.dependencies.astype("<i8").tobytes())
        if source.placed is not None:  # on which no schedule depends, but measures may, and a table that is kept
            digest.update(source.placed.digest.encode())
        return JobsDigest(digest.hexdigest(), len(source))
    rows = iter(source.rows())
    while chunk := list(islice(rows, _CHUNK)):
        digest.update(np.array([row[:-1] for row in chunk], dtype="<i8").tobytes())
        if any(demands := [row.demand for row in chunk]):
            digest.update(repr(demands).encode())
        jobs += len(chunk)
    return JobsDigest(digest.hexdigest(), jobs)


class Run(NamedTuple):
    """A trial with the key of its run.  Trials whose scenarios cannot differ have the same key."""

    key: str
    trial: Trial
    specification: Mapping[str, Any]  # everything that the run's numbers depend on; plain values
    about: Mapping[str, Label]  # policy, workload, number of nodes and seed of the scenario
    jobs: int
    sources: Sequence[str]  # the origins of the job streams, for readers
    history: bool  # whether the run keeps every state of the Ousterhout matrix
    error: str | None = None  # why the scenario could not be made; such a run has failed
    costs: Costs | None = None  # what was given for the machine, and what of it the policy may use


class Opened:
    """An experiment in the process that runs it, with the identities that its policies and measures had before any run."""

    def __init__(self, design: Design[Any], *, sent: bool = False, sources: Sources | None = None) -> None:
        self.design = design
        self._sent = sent  # by another process, which has identified its code
        self._sources = sources or Sources()
        self._policies: dict[str | int, tuple[object, object]] = {}  # by names, and ids: what makes it, its identity
        self._jobs: dict[int, tuple[Callable[[], object], JobsDigest]] = {}  # streams are not kept alive

    @cached_property
    def measures(self) -> dict[str, object]:
        """The identities of the experiment's own measures; none if another process sent them."""
        measures = {} if self._sent else self.design.measures
        return {name: self._identity(name, f"measure {name}", measure) for name, measure in measures.items()}

    @cached_property
    def version(self) -> str:
        """Digest of the user's sources and of the parameters of the experiment; the shards of a job array have the same."""
        design = self.design
        levels = {name: design.levels.labels(name) for name in design.levels.names}
        values = {part.name: getattr(design, part.name) for part in fields(design) if part.name not in _NOT_OF_VERSION}
        plain = {name: repr(part) for name, part in values.items() if isinstance(part, int | float | str) or is_dataclass(part)}
        return key_of({"levels": levels, "fields": plain, "sources": self._sources.digest()})

    def jobs_of(self, source: JobSource) -> JobsDigest:
        """Return the digest of the jobs of ``source``, which is read to its end the first time."""
        shared = source.column("id").base if isinstance(source, Workload) else None  # workloads of the same jobs share it
        jobs: object = source if shared is None or shared.flags.writeable else shared
        reference, digest = self._jobs.get(id(jobs), (None, None))
        if reference is None or digest is None or reference() is not jobs:  # ids are reused
            digest = digest_of_jobs(source)
            with suppress(TypeError):  # of a class that allows no weak references
                self._jobs[id(jobs)] = weakref.ref(jobs), digest
        return digest

    def runs(self, trials: Sequence[Trial]) -> list[Run]:
        """Return the runs of trials with their keys, none for points that make no sense; not all scenarios may fail."""
        design, _ = self.design, self.measures
        made: dict[Trial, Run] = {}
        problems: list[BaseException] = []
        # Replication by replication, so that functions that keep their last workloads need not make them again.
        for trial in sorted(trials, key=lambda trial: trial.replication):
            try:
                scenario = design.scenario_of(trial)
                if scenario is not None:
                    made[trial] = self.identify(trial, scenario, list(map(self.jobs_of, scenario.sources)))
            except BaseException as raised:  # of the user's code
                specified = {"scenario": "could not be made", "trial": list(trial), "study": design.name, "seed": design.seed}
                about: dict[str, Label] = {"policy": None, "workload": None, "nodes": None, "seed": design.seed}
                key, error = key_of(specified), user_code.as_failure(raised)  # apart from those of results
                made[trial] = Run(key, trial, specified, about, 0, [], history=False, error=error)
                problems.append(raised)
        if problems and all(run.error for run in made.values()):
            if isinstance(problems[0], ClusterModelError):
                raise problems[0]
            line = user_code.failure_line(problems[0])
            raise SpecificationError(f"study {design.name}: no scenario can be made: {line}") from problems[0]
        return [made[trial] for trial in trials if trial in made]

    def identify(self, trial: Trial, scenario: Scenario, jobs: Sequence[JobsDigest], run: Run | None = None) -> Run:
        """Return the run of a trial, with its key; ``run`` is that of the process that sent the experiment."""
        if run is not None and self._sent:
            code: dict[str, object] = {name: run.specification.get(name) for name in ("policy", "speedup", "measures")}
        else:
            kind = type(scenario.speedup).__name__
            speedup = [kind, _plain(f"speedup {kind}", scenario.speedup)]
            code = {"policy": self._policy(scenario.policy), "speedup": speedup, "measures": self.measures}
        specified = _specification(scenario, code, [digest.sha256 for digest in jobs], warm_up_s=self.design.warm_up_s)
        about: dict[str, Label] = {
            "policy": scenario.label,
            "workload": scenario.workload_name,
            "nodes": scenario.used_machine.processors,
            "seed": scenario.seed,
        }
        names = [source.provenance.source for source in scenario.sources]
        number, costs = sum(digest.jobs for digest in jobs), Costs.of(scenario)
        return Run(key_of(specified), trial, specified, about, number, names, scenario.history, costs=costs)

    def _identity(self, name: str, shown: str, thing: object) -> dict[str, object]:
        return {"name": name, "sha256": fingerprint(thing, shown, self._sources)}

    def _policy(self, policy: str | Policy) -> object:
        """Return the identity of a policy: its name with parameters, or a digest of its values and of the user's sources."""
        # Determined before any run, which may change what the policy reads; another script may register its name anew.
        if not isinstance(policy, str):
            if id(policy) not in self._policies:
                self._policies[id(policy)] = policy, self._identity(policy.name, f"policy {policy.name}", policy)
            return self._policies[id(policy)][1]
        factory = policy_factory(policy)
        if policy not in self._policies:
            identity: object = policy if user_code.is_ours(factory) else self._identity(policy, f"policy {policy}", factory)
            predictor = installed_predictor(policy_settings(policy).get("predictor"))
            if predictor is not None:
                of_predictor = self._identity(policy, f"predictor of policy {policy}", predictor)
                identity = {"policy": identity, "predictor": of_predictor}
            self._policies[policy] = factory, identity
        if self._policies[policy][0] is not factory:
            raise SpecificationError(f"policy {policy}: another script has registered this name meanwhile")
        return self._policies[policy][1]


def _specification(scenario: Scenario, code: Mapping[str, Any], jobs: Sequence[str], *, warm_up_s: float) -> dict[str, Any]:
    """Return everything that the numbers of a run depend on, as plain values."""
    # Parts of the machine on which the policy does not depend, and the seed if it draws no random numbers, are left out.
    machine = scenario.used_machine
    checkpointing, memory = machine.checkpointing, machine.node_memory
    policy, shrinks = make_policy(scenario.policy), machine.on_failure == "shrink"
    whatever_the_policy_decides = {
        "checkpointing": checkpointing.interval_s is not None or checkpointing.restart_charge != "on-start" or shrinks,
        RANDOM_NUMBERS: machine.failures is not None,
        "node_memory_gib": memory is not None  # some jobs may need more than a node has, or share it
        and (
            machine.has_shared_nodes
            or any(each.memory_gib is not None for each in machine.node_types)
            or any(not isinstance(source, Workload) or source.column("memory").max() > memory for source in scenario.sources)
        ),
    }
    used = dependencies_of(policy) | {part for part, counts in whatever_the_policy_decides.items() if counts}
    unused = {*PARTS, "failures"} - used | (set() if shrinks or may_resize(policy) else {"resize_s"})
    return {
        "machine": _plain("Machine", machine, unused),
        "failures": None if machine.failures is None else fingerprint(machine.failures, "Machine.failures"),
        "site": None if scenario.used_site is None else fingerprint(scenario.used_site, "Scenario.site"),
        "jobs_sha256": list(jobs),
        "seed": scenario.seed if RANDOM_NUMBERS in used else None,
        "fidelity": scenario.fidelity,
        "events": scenario.events,
        "warm_up_s": warm_up_s,
        **code,
        "software": software(),
    }


def _plain(name: str, part: object, unused: Collection[str] = ()) -> Any:
    """Return a part of a machine as plain values, without fields that are not given; objects of other code as digests."""
    if part is None or isinstance(part, bool | int | float | str):
        return part
    if isinstance(part, tuple | list):
        return [_plain(name, each) for each in part]
    if not is_dataclass(part) or not type(part).__module__.startswith("clustermodel."):
        return fingerprint(part, name)
    used = [field.name for field in fields(part) if field.name not in unused]
    values = {each: _plain(f"{name}.{each}", getattr(part, each)) for each in used}
    return {each: value for each, value in values.items() if value is not None and value != []}


def key_of_scenario(scenario: Scenario) -> str:
    """Return the key of a run on its own, without a warm-up or measures; reads streamed traces to their ends."""
    alone: Any = types.SimpleNamespace(measures={}, warm_up_s=0.0)
    return Opened(alone).identify(Trial((), 1), scenario, list(map(digest_of_jobs, scenario.sources))).key


def key_of(specification: Mapping[str, Any]) -> str:
    """Return the key of a run: 32 hexadecimal digits of the digest of its specification."""
    return sha256(canonical(specification))[:32]


@functools.cache
def software() -> dict[str, str]:
    """Return the identity of the software that makes the numbers: versions, and a digest of this package's sources."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*")):
        name = path.relative_to(_PACKAGE).as_posix()
        if path.suffix in (".py", ".json") and not name.startswith(_NO_NUMBERS):
            digest.update(f"{name}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    python = ".".join(platform.python_version_tuple()[:2])
    packages = {name: version(name) for name in ("numpy", "simpy")}
    return {"clustermodel": version("clustermodel"), "clustermodel_sha256": digest.hexdigest(), "python": python, **packages}


def difference(expected: Run, found: Run) -> str:
    """Return in one line how a worker's run differs from the study's, and how to correct it; nothing if it does not."""
    if found.key == expected.key:
        return ""
    import pandas as pd  # a worker that agrees does without

    study, worker = (pd.json_normalize(dict(run.specification)).to_dict("records")[0] for run in (expected, found))
    names = sorted(str(name) for name in study.keys() | worker.keys() if study.get(name) != worker.get(name))
    name = next((name for name in names if name.startswith("software")), names[0])
    ours, theirs = (str(values.get(name, "missing")) for values in (study, worker))
    differs = " there and ".join(text if len(text) <= 20 else f"{text[:8]}..." for text in (theirs, ours)) + " here"
    if name.startswith("software"):
        return f"it was run by other software: {name.partition('.')[2]} is {differs}; install the same"
    if names == ["jobs_sha256"]:
        return (
            f"it was run on other jobs: {found.jobs:,} there and {expected.jobs:,} here, or of other values; a workload must "
            "depend on its seed alone: seed its random generators, and read no environment, clock or file that changes"
        )
    must = "the script, and all that it imports and reads, must be the same wherever it runs"
    return f"it was run on another specification: {name} is {differs}; {must}"
