"""A study: a grid of machines, workloads, policies and replications, or any list of scenarios; each run has a key of its own.

The key is a digest of all that a run's numbers depend on, and of nothing else: not of the host, nor of the order of the runs.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, Final, NamedTuple

import numpy as np

from clustermodel.errors import SpecificationError
from clustermodel.job import JobRow
from clustermodel.machine import Machine, require_seconds, require_whole
from clustermodel.policies import make_policy, policy_label
from clustermodel.policies.base import Policy
from clustermodel.study.scenario import Scenario
from clustermodel.workload.table import JobSource, Workload

WorkloadMaker = Callable[[int], JobSource]
"""Makes the jobs of one replication from its seed."""
FACTORS: Final = ("machine", "workload", "policy", "replication")
"""What tells the runs of a grid apart."""
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
KEPT_WORKLOADS: Final = 64
"""How many workloads a process keeps in memory for the runs to come."""


class Run(NamedTuple):
    """One scenario of a study."""

    key: str
    """Digest of the specification: 32 hexadecimal digits."""
    factors: Mapping[str, object]
    """What tells this run from the others, for tables; plain values."""
    specification: Mapping[str, Any]
    """All that its numbers depend on, plain values."""
    jobs: int
    """How many jobs it has."""
    sources: Sequence[str]
    """What its job streams came from, for people to read."""
    history: bool
    """Whether every state of its Ousterhout matrix is kept."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A grid of scenarios: every policy on every workload on every machine, in every replication.

    Replication r has the seed ``seed + r - 1``: it is the root of the policy's random stream, and workloads that are made are
    made from it, so that all policies and machines see the same jobs (common random numbers).

    Raises:
        SpecificationError: a field has a value that is not allowed.
    """

    name: str
    """Of the study; a directory of results belongs to one study."""
    workloads: Mapping[str, JobSource | WorkloadMaker] = field(default_factory=dict)
    """By the name that tables have: job streams, or functions of a seed that make them."""
    policies: Sequence[str | Policy] = ()
    """Names, with parameters, or objects of your own."""
    machines: Mapping[str, Machine] | None = None
    """By the name that tables have; by default a machine of the size that each workload was recorded on."""
    replications: int = 1
    """How often each scenario runs, with other seeds."""
    seed: int = 1
    """Of the first replication."""
    warm_up_s: float = 0.0
    """Jobs submitted sooner than this after the first submission are left out of waits, responses and slowdowns;
    :func:`~clustermodel.study.statistics.suggest_warm_up` suggests how long.  The choice is stored with every run."""
    history: bool = False
    """Keep every state of the Ousterhout matrix of runs that share nodes in time, for the report; takes time and room."""
    scenarios: Sequence[Scenario] = ()
    """Instead of a grid: the scenarios to run, told apart by their labels."""

    def __post_init__(self) -> None:
        _require_text("Study.name", self.name)
        object.__setattr__(self, "replications", require_whole("Study.replications", self.replications, at_least=1))
        object.__setattr__(self, "seed", require_whole("Study.seed", self.seed, at_least=0))
        object.__setattr__(self, "warm_up_s", require_seconds("Study.warm_up_s", self.warm_up_s))
        if self.scenarios:
            if self.workloads or self.policies or self.machines or self.replications > 1:
                raise SpecificationError(
                    "Study.scenarios: scenarios bring their own workloads, policies, machines and seeds; give no others"
                )
            self._check_scenarios()
            return
        for name, given in (("workloads", self.workloads), ("policies", self.policies)):
            if not given:
                raise SpecificationError(f"Study.{name}: none is given; at least one is needed")
        for label, workload in self.workloads.items():
            _require_text("Study.workloads", label)
            if not (isinstance(workload, JobSource) or callable(workload)):
                raise SpecificationError(
                    f"Study.workloads: {label}: {workload!r} is not allowed; it must be a Workload, an SwfStream, "
                    "or a function of a seed that returns one"
                )
        for label, machine in (self.machines or {}).items():
            _require_text("Study.machines", label)
            if not isinstance(machine, Machine):
                raise SpecificationError(f"Study.machines: {label}: {machine!r} is not allowed; it must be a Machine")
        labels = [policy_label(policy) for policy in self.policies]
        for label, policy in zip(labels, self.policies, strict=True):
            _require_text("Study.policies", label)
            make_policy(policy)
            if labels.count(label) > 1:
                raise SpecificationError(f"Study.policies: {label!r} is given twice; names must be unique")

    def _check_scenarios(self) -> None:
        labels = []
        for one in self.scenarios:
            if not isinstance(one, Scenario):
                raise SpecificationError(f"Study.scenarios: {one!r} is not allowed; it must be a Scenario")
            _require_text("Study.scenarios", one.label)
            labels.append(one.label)
        if twice := next((label for label in labels if labels.count(label) > 1), None):
            raise SpecificationError(f"Study.scenarios: {twice!r} is there twice; give each a name=... of its own")

    @cached_property
    def _places(self) -> list[tuple[str | None, str, int, int]]:
        """Machine, workload, position of the policy and replication of each run of a grid, workload by workload."""
        machines: Iterable[str | None] = self.machines or [None]
        replications = range(1, self.replications + 1)
        grid = product(self.workloads, replications, machines, range(len(self.policies)))
        return [(machine, workload, policy, replication) for workload, replication, machine, policy in grid]

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.scenarios) or len(self._places)

    def scenario(self, position: int, made: dict[tuple[str, int], JobSource] | None = None) -> Scenario:
        """Return the scenario of one run, from 0 on.

        Args:
            position: which.
            made: keeps workloads that have been made, for other runs.
        """
        if self.scenarios:
            given = self.scenarios[position]
            return replace(given, history=True) if self.history else given
        machine, workload, policy_at, replication = self._places[position]
        seed = self.seed + replication - 1
        policy = self.policies[policy_at]
        return Scenario(
            machine=(self.machines or {}).get(machine) if machine is not None else None,
            workload=self._jobs(workload, seed, {} if made is None else made),
            policy=policy if isinstance(policy, str) else copy.deepcopy(policy),  # runs may be side by side in one process
            seed=seed,
            history=self.history,
        )

    def _jobs(self, label: str, seed: int, made: dict[tuple[str, int], JobSource]) -> JobSource:
        source = self.workloads[label]
        if isinstance(source, JobSource):
            return source
        if (label, seed) not in made:
            while len(made) >= KEPT_WORKLOADS:
                del made[next(iter(made))]
            jobs = source(seed)
            if not isinstance(jobs, JobSource):
                raise SpecificationError(
                    f"Study.workloads: {label}: the function returned {jobs!r}; it must return a Workload or an SwfStream"
                )
            made[label, seed] = jobs
        return made[label, seed]

    def runs(self, made: dict[tuple[str, int], JobSource] | None = None) -> list[Run]:
        """Return all runs, with their keys.

        Args:
            made: keeps workloads that have been made, for other runs.

        Raises:
            SpecificationError: two runs are the same, so that one of them would say nothing.
            TraceError: a trace cannot be read.
        """
        made = {} if made is None else made
        digests: dict[int, tuple[object, str, int]] = {}
        runs: dict[str, Run] = {}
        for position in range(len(self)):
            scenario = self.scenario(position, made)
            factors = self._factors(position, scenario)
            sources = []
            for source in scenario.sources:
                if id(source) not in digests:
                    digests[id(source)] = source, *_digest(source)  # the source is kept: an id is unique while it lives
                sources.append(digests[id(source)])
            specification = {
                "machine": asdict(scenario.used_machine),
                "jobs_sha256": [digest for _, digest, _ in sources],
                "policy": _policy_specification(scenario.policy),
                "seed": scenario.seed,
                "fidelity": scenario.fidelity,
                "speedup": repr(scenario.speedup),
                "warm_up_s": self.warm_up_s,
            }
            key = hashlib.sha256(canonical(specification).encode()).hexdigest()[:32]
            if key in runs:
                raise SpecificationError(
                    f"study {self.name}: two runs are the same: {describe(runs[key].factors)} and {describe(factors)}"
                )
            names = [source.provenance.source for source in scenario.sources]
            runs[key] = Run(key, factors, specification, sum(jobs for *_, jobs in sources), names, scenario.history)
        return list(runs.values())

    def _factors(self, position: int, scenario: Scenario) -> dict[str, object]:
        if self.scenarios:
            values = (f"{scenario.used_machine.nodes} nodes", scenario.workload_name, policy_label(scenario.policy), 1)
            return {"scenario": scenario.label, **dict(zip(FACTORS, values, strict=True))}
        machine, workload, policy, replication = self._places[position]
        name = machine if machine is not None else f"{scenario.used_machine.nodes} nodes"
        return dict(zip(FACTORS, (name, workload, policy_label(self.policies[policy]), replication), strict=True))


def _require_text(field: str, text: object) -> None:
    """Refuse what cannot be a name in tables and files."""
    if not isinstance(text, str) or not text.strip():
        raise SpecificationError(f"{field}: {text!r} is not allowed; a name must be a text that is not empty")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SpecificationError(f"{field}: {text!a} is not allowed; a name must be made of whole characters") from None


def canonical(value: object) -> str:
    """Return ``value`` as JSON, always in the same way."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def describe(factors: Mapping[str, object]) -> str:
    """Return the factors of a run as text."""
    return ", ".join(f"{name} {value}" for name, value in factors.items())


def _digest(source: JobSource) -> tuple[str, int]:
    """Return a digest of the jobs of a stream, and how many they are."""
    digest = hashlib.sha256()
    if isinstance(source, Workload):
        for name in JobRow._fields:
            digest.update(source.column(name).astype("<i8").tobytes())
        return digest.hexdigest(), len(source)
    rows = list(source.rows())
    for column in np.array(rows, dtype="<i8").reshape(-1, len(JobRow._fields)).T:
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest(), len(rows)


def _policy_specification(policy: str | Policy) -> object:
    """Return what identifies a policy: its name with parameters, or the text of its class and the values of its fields."""
    if isinstance(policy, str):
        return policy
    kind = type(policy)
    try:
        text = inspect.getsource(kind)
    except (OSError, TypeError):  # made at a prompt, say
        text = ""
    fields = {name: _ADDRESS.sub("", repr(value)) for name, value in sorted(getattr(policy, "__dict__", {}).items())}
    code = hashlib.sha256(text.encode()).hexdigest()
    return {"name": policy.name, "class": kind.__qualname__, "code_sha256": code, "fields": fields}
