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
"""Makes the jobs of one replication from its seed."""
FACTORS: Final = ("machine", "workload", "policy", "replication")
"""What tells the runs of a grid apart."""
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
    error: str | None = None
    """Why its jobs could not be made; it has failed then."""


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
    :func:`~clustermodel.experiment.replicate.suggest_warm_up` suggests how long.  The choice is stored with every run."""
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
        """Return the scenario of one run, from 0 on.

        Args:
            position: which.
            made: keeps workloads that have been made, for other runs.
        """
        if self.scenarios:
            given = self.scenarios[position]
            return replace(given, policy=_of_its_own(given.policy), history=self.history or given.history)
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
        """Leave out what each process has to see for itself: what its policies are."""
        return {name: value for name, value in self.__dict__.items() if name not in ("identities", "_factories")}

    @cached_property
    def identities(self) -> list[tuple[object, object]]:
        """What identifies the policy and the speedup model of each scenario, or each policy of the grid.

        To be asked for before anything runs: what runs may change module globals that a policy reads.

        Raises:
            SpecificationError: a policy reaches something of which neither source nor value is known.
        """
        _ = self._factories
        if self.scenarios:
            return [(identity_of_policy(one.policy), identity_of_speedup(one.speedup)) for one in self.scenarios]
        linear = identity_of_speedup(Scenario.speedup)
        return [(identity_of_policy(policy), linear) for policy in self.policies]

    @cached_property
    def _factories(self) -> dict[str, object]:
        """What the names of policies stand for when they are identified; another script may register them anew."""
        policies = [one.policy for one in self.scenarios] if self.scenarios else self.policies
        return {policy: policy_factory(policy) for policy in policies if isinstance(policy, str)}

    def runs(self, made: dict[tuple[str, int], JobSource] | None = None, *, make_twice: bool = False) -> list[Run]:
        """Return all runs, with their keys.  Where jobs cannot be made, the runs that need them say why.

        Args:
            made: keeps workloads that have been made, for other runs.
            make_twice: make the first jobs of each function twice, to see that they depend on the seed alone.

        Raises:
            SpecificationError: two runs are the same, so that one of them would say nothing; or no jobs can be made at all.
            TraceError: no jobs can be made, since a trace cannot be read.
        """
        made = {} if made is None else made
        _ = self.identities
        known = DigestsOfJobs()
        problems = self._unseeded(made) if make_twice else {}  # by what cannot be made: a workload, or its jobs of one seed
        first_problem: BaseException | None = None
        runs: dict[str, Run] = {}
        for position in range(len(self)):
            wanted = self._drawn_from(position)
            problem = next((problems[one] for one in wanted if one in problems), None)
            if problem is None:
                try:
                    scenario = self.scenario(position, made)
                    run = self.identify(position, scenario, [known.of(source) for source in scenario.sources])
                except BaseException as raised:  # of the user's code
                    problem = raised
                    if wanted and wanted[-1] not in made:
                        problems[wanted[-1]] = raised  # other policies need not try
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
        """Return what a run of a grid is drawn from by a function: the workload, and the workload with the seed."""
        if self.scenarios or isinstance(self.workloads[self._places[position][1]], JobSource):
            return ()
        _, workload, _, replication = self._places[position]
        return workload, (workload, self.seed + replication - 1)

    def _unseeded(self, made: dict[tuple[str, int], JobSource]) -> dict[Hashable, BaseException]:
        """Return what is wrong with functions that make other jobs when they are called again, by workload."""
        problems: dict[Hashable, BaseException] = {}
        for label, source in self.workloads.items():
            if isinstance(source, JobSource):
                continue
            try:
                first, again = (digest_of_jobs(self._jobs(label, self.seed, kept)) for kept in (made, {}))
            except BaseException as raised:  # of the user's code; it is met again, and recorded
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
            position: which, from 0 on.
            scenario: what :meth:`scenario` has returned for it.
            jobs: the digests of its job streams.

        Raises:
            SpecificationError: the name of its policy has come to stand for another one.
        """
        if isinstance(scenario.policy, str) and policy_factory(scenario.policy) is not self._factories[scenario.policy]:
            raise SpecificationError(f"policy {scenario.policy}: another script has registered this name meanwhile")
        found = specification(scenario, *self._identity(position), [one.sha256 for one in jobs], self.warm_up_s)
        names = [source.provenance.source for source in scenario.sources]
        factors = self._factors(position, scenario.used_machine.nodes, scenario.workload_name)
        return Run(key_of(found), factors, found, sum(one.jobs for one in jobs), names, scenario.history)

    def _identity(self, position: int) -> tuple[object, object]:
        return self.identities[position if self.scenarios else self._places[position][2]]

    def _without_jobs(self, position: int, error: str) -> Run:
        """Return the run at ``position`` of which no jobs can be made: it has a key of its own, so it hides no results."""
        factors = self._factors(position, None, "unknown")
        found = {"jobs": "could not be made", "factors": factors, "study": self.name, "seed": self.seed}
        return Run(key_of(found), factors, found, 0, [], history=False, error=error)

    def _factors(self, position: int, nodes: int | None, workload_name: str) -> dict[str, object]:
        size = "unknown" if nodes is None else f"{nodes} nodes"
        if self.scenarios:
            given = self.scenarios[position]
            values = (size, workload_name, policy_label(given.policy), 1)
            return {"scenario": given.label, **dict(zip(FACTORS, values, strict=True))}
        machine, workload, policy, replication = self._places[position]
        name = size if machine is None else machine
        return dict(zip(FACTORS, (name, workload, policy_label(self.policies[policy]), replication), strict=True))


class DigestsOfJobs:
    """Digests of job streams, taken once of each; the streams are not kept."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Callable[[], JobSource | None], JobsDigest]] = {}

    def of(self, source: JobSource) -> JobsDigest:
        """Return the digest of the jobs of ``source``; a stream is read for it."""
        reference, digest = self._known.get(id(source), (None, None))
        if reference is None or digest is None or reference() is not source:  # an id may be used again
            digest = digest_of_jobs(source)
            self._known[id(source)] = _reference_to(source), digest
        return digest


def _reference_to(source: JobSource) -> Callable[[], JobSource | None]:
    try:
        return weakref.ref(source)
    except TypeError:  # some classes allow none
        return lambda: source


def _of_its_own(policy: str | Policy) -> str | Policy:
    """Return a policy for one run alone: others may be side by side with it, or after it, in one process."""
    return policy if isinstance(policy, str) else copy.deepcopy(policy)


def _require_text(field: str, text: object) -> None:
    """Refuse what cannot be a name in tables and files."""
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
