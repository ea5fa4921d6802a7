"""A study: a grid of machines, workloads, policies and replications, or a list of scenarios; each run has a key of its own."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, Final, NamedTuple

from clustermodel.errors import ClusterModelError, SpecificationError, quoted
from clustermodel.experiment.run_key import (
    JobsDigest,
    digest_of_jobs,
    identity_of_policy,
    identity_of_speedup,
    key_of,
    specification,
)
from clustermodel.experiment.scenario import Scenario
from clustermodel.experiment.user_code import as_failure, failure_line
from clustermodel.machine import Machine
from clustermodel.policies.interface import Policy
from clustermodel.policies.registry import make_policy, policy_factory, policy_label
from clustermodel.validation import require_seconds, require_whole
from clustermodel.workload.table import JobSource

WorkloadMaker = Callable[[int], JobSource]
"""A function that makes the jobs of one replication from its seed."""
FACTORS: Final = ("machine", "workload", "policy", "replication")
"""The columns that identify the runs of a grid."""
KEPT_WORKLOADS: Final = 64
"""Workloads that a process keeps in memory for later runs."""


class Run(NamedTuple):
    """One scenario of a study."""

    key: str
    """Digest of the specification: 32 hexadecimal digits."""
    factors: Mapping[str, object]
    """The columns that identify this run in tables; plain values."""
    specification: Mapping[str, Any]
    """Everything that the run's numbers depend on; plain values."""
    jobs: int
    """The number of jobs."""
    sources: Sequence[str]
    """The origins of the job streams, for readers."""
    history: bool
    """Whether the run keeps every state of the Ousterhout matrix."""
    error: str | None = None
    """Why the jobs could not be made; such a run has failed."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """A grid of scenarios: every policy on every workload on every machine, in every replication.

    Replication r has the seed ``seed + r - 1``, the root of the policy's random stream.  Functions make workloads from the same
    seed, so that all policies and machines see the same jobs (common random numbers).

    Raises:
        SpecificationError: a field has a value that is not allowed.
    """

    name: str
    """The name of the study; a directory of results belongs to one study."""
    workloads: Mapping[str, JobSource | WorkloadMaker] = field(default_factory=dict)
    """Job streams, or functions of a seed that make them, by their names in tables."""
    policies: Sequence[str | Policy] = ()
    """Names, with parameters, or objects of your own."""
    machines: Mapping[str, Machine] | None = None
    """Machines by their names in tables; by default a machine of the size on which each workload was recorded."""
    replications: int = 1
    """Number of runs of each scenario, each with its own seed."""
    seed: int = 1
    """Seed of the first replication."""
    warm_up_s: float = 0.0
    """Length of the warm-up: jobs submitted sooner than this after the first submission do not count in waits, responses and
    slowdowns.  :func:`~clustermodel.experiment.replicate.suggest_warm_up` suggests a length; it is stored with every run."""
    history: bool = False
    """Keep every state of the Ousterhout matrix of runs with time sharing, for the report; takes time and disk space."""
    scenarios: Sequence[Scenario] = ()
    """The scenarios to run instead of a grid, with distinct labels."""

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
        else:
            self._check_grid()

    def _check_grid(self) -> None:
        for name, given, kind in (("workloads", self.workloads, Mapping), ("policies", self.policies, Sequence)):
            if not isinstance(given, kind) or isinstance(given, str):
                allowed = "a dictionary of job streams by name" if kind is Mapping else "a list of names or policies"
                raise SpecificationError(f"Study.{name}: {quoted(given)} is not allowed; it must be {allowed}")
            if not given:
                raise SpecificationError(f"Study.{name}: none is given; at least one is needed")
        if not isinstance(self.machines, Mapping | None):
            raise SpecificationError(f"Study.machines: {quoted(self.machines)} is not allowed; it must be a dictionary by name")
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
        self._check_policies()

    def _check_policies(self) -> None:
        for policy in self.policies:
            try:
                make_policy(policy)
            except SpecificationError as problem:
                raise SpecificationError(f"Study.policies: {problem}") from None
        labels = [policy_label(policy) for policy in self.policies]
        for label in labels:
            _require_text("Study.policies", label)
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
        """Return the scenario of one run.

        Args:
            position: of the run, from 0 on.
            made: workloads made before, by name and seed; new ones are added.
        """
        if self.scenarios:
            scenario = self.scenarios[position]
            return replace(scenario, policy=_of_its_own(scenario.policy), history=self.history or scenario.history)
        machine, workload, policy_at, replication = self._places[position]
        seed = self.seed + replication - 1
        return Scenario(
            machine=(self.machines or {}).get(machine) if machine is not None else None,
            workload=self._jobs(workload, seed, {} if made is None else made),
            policy=_of_its_own(self.policies[policy_at]),
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
                    f"Study.workloads: {label}: the function returned {quoted(jobs)}; it must return a Workload or an SwfStream"
                )
            made[label, seed] = jobs
        return made[label, seed]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the identities of policies, which each process determines itself."""
        return {name: value for name, value in self.__dict__.items() if name not in ("identities", "_factories")}

    @cached_property
    def identities(self) -> list[tuple[object, object]]:
        """The identities of policy and speedup model of each scenario, or of each policy of the grid.

        They must be determined before any run, because a run may change module globals that a policy reads.

        Raises:
            SpecificationError: a policy reaches an object without known source and value.
        """
        _ = self._factories
        if self.scenarios:
            return [(identity_of_policy(one.policy), identity_of_speedup(one.speedup)) for one in self.scenarios]
        linear = identity_of_speedup(Scenario.speedup)
        return [(identity_of_policy(policy), linear) for policy in self.policies]

    @cached_property
    def _factories(self) -> dict[str, object]:
        """The registered factories of named policies when they were identified; another script may replace them."""
        policies = [one.policy for one in self.scenarios] if self.scenarios else self.policies
        return {policy: policy_factory(policy) for policy in policies if isinstance(policy, str)}

    def runs(self, made: dict[tuple[str, int], JobSource] | None = None, *, make_twice: bool = False) -> list[Run]:
        """Return all runs, with their keys; runs without jobs have an error.

        Args:
            made: workloads made before, by name and seed; new ones are added.
            make_twice: make the first workload of each function twice, to check that it depends on the seed alone.

        Raises:
            SpecificationError: two runs are equal, so that the second would add nothing; or no jobs can be made at all.
            TraceError: no jobs can be made, since a trace cannot be read.
        """
        made = {} if made is None else made
        _ = self.identities
        known = DigestsOfJobs()
        problems = self._unseeded(made) if make_twice else {}  # by workload, or by workload and seed
        first_problem: BaseException | None = None
        runs: dict[str, Run] = {}
        for position in range(len(self)):
            needed = self._drawn_from(position)
            problem = next((problems[name] for name in needed if name in problems), None)
            if problem is None:
                try:
                    scenario = self.scenario(position, made)
                    run = self.identify(position, scenario, [known.of(source) for source in scenario.sources])
                except BaseException as raised:  # of the user's code
                    problem = raised
                    if needed and needed[-1] not in made:
                        problems[needed[-1]] = raised  # the same for the other policies
            if problem is not None:
                run = self._without_jobs(position, as_failure(problem))
                first_problem = first_problem or problem
            if run.key in runs:
                raise SpecificationError(
                    f"study {self.name}: two runs are the same: {describe(runs[run.key].factors)} and {describe(run.factors)}"
                )
            runs[run.key] = run
        if first_problem is not None and all(run.error for run in runs.values()):
            if isinstance(first_problem, ClusterModelError):
                raise first_problem
            raise SpecificationError(
                f"study {self.name}: no jobs can be made: {failure_line(first_problem)}"
            ) from first_problem
        return list(runs.values())

    def _drawn_from(self, position: int) -> tuple[Hashable, ...]:
        """Return the keys of a run's jobs if a function makes them: the workload, and the workload with the seed."""
        if self.scenarios or isinstance(self.workloads[self._places[position][1]], JobSource):
            return ()
        _, workload, _, replication = self._places[position]
        return workload, (workload, self.seed + replication - 1)

    def _unseeded(self, made: dict[tuple[str, int], JobSource]) -> dict[Hashable, BaseException]:
        """Return an error for each function that makes other jobs when it is called again, by workload."""
        problems: dict[Hashable, BaseException] = {}
        for label, source in self.workloads.items():
            if isinstance(source, JobSource):
                continue
            try:
                first, again = (digest_of_jobs(self._jobs(label, self.seed, kept)) for kept in (made, {}))
            except BaseException as raised:  # of the user's code; it recurs, and is recorded then
                as_failure(raised)
                continue
            if first != again:
                problems[label] = SpecificationError(
                    f"Study.workloads: {label}: made twice from the seed {self.seed}, its jobs differ ({first.jobs:,} and "
                    f"{again.jobs:,} jobs); a workload must depend on its seed alone: seed its random generators"
                )
        return problems

    def identify(self, position: int, scenario: Scenario, jobs: Sequence[JobsDigest]) -> Run:
        """Return the run at ``position``, with its key.

        Args:
            position: of the run, from 0 on.
            scenario: the scenario at this position, from :meth:`scenario`.
            jobs: the digests of its job streams.

        Raises:
            SpecificationError: another policy has been registered under the name of its policy.
        """
        if isinstance(scenario.policy, str) and policy_factory(scenario.policy) is not self._factories[scenario.policy]:
            raise SpecificationError(f"policy {scenario.policy}: another script has registered this name meanwhile")
        specified = specification(scenario, *self._identity(position), [digest.sha256 for digest in jobs], self.warm_up_s)
        names = [source.provenance.source for source in scenario.sources]
        factors = self._factors(position, scenario.used_machine.nodes, scenario.workload_name)
        return Run(key_of(specified), factors, specified, sum(digest.jobs for digest in jobs), names, scenario.history)

    def _identity(self, position: int) -> tuple[object, object]:
        return self.identities[position if self.scenarios else self._places[position][2]]

    def _without_jobs(self, position: int, error: str) -> Run:
        """Return the run at ``position`` without jobs: its own key keeps it apart from runs with results."""
        factors = self._factors(position, None, "unknown")
        specified = {"jobs": "could not be made", "factors": factors, "study": self.name, "seed": self.seed}
        return Run(key_of(specified), factors, specified, 0, [], history=False, error=error)

    def _factors(self, position: int, nodes: int | None, workload_name: str) -> dict[str, object]:
        size = "unknown" if nodes is None else f"{nodes} nodes"
        if self.scenarios:
            scenario = self.scenarios[position]
            values = (size, workload_name, policy_label(scenario.policy), 1)
            return {"scenario": scenario.label, **dict(zip(FACTORS, values, strict=True))}
        machine, workload, policy, replication = self._places[position]
        name = size if machine is None else machine
        return dict(zip(FACTORS, (name, workload, policy_label(self.policies[policy]), replication), strict=True))


class DigestsOfJobs:
    """Digests of job streams, each computed once; the streams are not kept alive."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Callable[[], JobSource | None], JobsDigest]] = {}

    def of(self, source: JobSource) -> JobsDigest:
        """Return the digest of the jobs of ``source``, which is read to its end the first time."""
        reference, digest = self._known.get(id(source), (None, None))
        if reference is None or digest is None or reference() is not source:  # ids are reused
            digest = digest_of_jobs(source)
            self._known[id(source)] = _reference_to(source), digest
        return digest


def _reference_to(source: JobSource) -> Callable[[], JobSource | None]:
    try:
        return weakref.ref(source)
    except TypeError:  # the class allows no weak references
        return lambda: source


def _of_its_own(policy: str | Policy) -> str | Policy:
    """Return a copy of a policy object, since one process runs several scenarios, perhaps in parallel; names stay names."""
    return policy if isinstance(policy, str) else copy.deepcopy(policy)


def _require_text(field: str, text: object) -> None:
    """Refuse a value that cannot be a name in tables and files."""
    if not isinstance(text, str) or not text.strip():
        raise SpecificationError(f"{field}: {text!r} is not allowed; a name must be a text that is not empty")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SpecificationError(f"{field}: {text!a} is not allowed; a name must be made of whole characters") from None
    if "\0" in text:
        raise SpecificationError(f"{field}: {text!a} is not allowed; a name must have no NUL character")


def describe(factors: Mapping[str, object]) -> str:
    """Return the factors of a run as text."""
    return ", ".join(f"{name} {value}" for name, value in factors.items())
