"""What a run is of: machine, workload, policy, seed and options, and what follows from them before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike, fspath
from typing import Final
from unicodedata import category

from clustermodel.errors import SpecificationError, counted, refused
from clustermodel.machine.machine import Machine
from clustermodel.policies.interface import Policy
from clustermodel.policies.registry import make_policy, policy_label, site_order_of
from clustermodel.sim.simulation import EVENTS, FIDELITIES, Events, Fidelity
from clustermodel.site.site import Site
from clustermodel.text.formatting import html_fields
from clustermodel.validation import choice, flag, require, whole_fields
from clustermodel.workload.job import MALLEABLE
from clustermodel.workload.speedup import LINEAR, Speedup
from clustermodel.workload.streams_of_run import JobStreams
from clustermodel.workload.table import JobSource, Workload

_NOT_IN_A_LINE: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode categories that a name must not contain: control characters, surrogates, line and paragraph separators."""


@dataclass(frozen=True, kw_only=True)
class Specification:
    """What a run is of; a field that is not allowed is a ``SpecificationError``."""

    workload: JobSource | Sequence[JobSource]
    """The jobs: a :class:`~clustermodel.workload.table.Workload`, an :class:`~clustermodel.workload.swf.SwfStream`, or several
    job streams, which the machine merges; duplicate job numbers are renumbered in the later ones."""
    policy: str | Policy = "easy"
    """A registered name, ``"name:key=value"``, or a policy of your own: an object with name and start, or a function."""
    machine: Machine | None = None
    """The machine; by default one of the size on which the workload was recorded."""
    seed: int = 1
    """Root seed of the policy's random stream."""
    explain: bool = False
    """Keep the decision log, for :meth:`Result.explain <clustermodel.experiment.result.Result.explain>`."""
    fidelity: Fidelity = "fast"
    """How time slices are simulated: ``"fast"`` computes progress between scheduling events in closed form; ``"node"``, the
    slow mode, simulates every slice on every node, with the same results to the tick, and warns where no gang shares nodes."""
    events: Events = "together"
    """Whether a policy is told of several events at one instant ``"together"``, in one scheduling cycle, or ``"one-by-one"``,
    submissions first, then ends, as by the program of Gaussier et al. 2015.  For dedicated nodes only."""
    history: bool = False
    """Keep every state of the Ousterhout matrix and of the ledger, for the figures of ``Result.plot``."""
    stream: bool | str | PathLike[str] = False
    """Run in constant memory: no job is kept after it has left the system, and the summary is made of running sums
    (docs/outputs says what can be streamed, and which results there are).  A path is that of a Parquet file for the jobs."""
    site: Site | None = None
    """The rules of the site, as limits of users; jobs that they hold are no policy's (docs/site)."""
    speedup: Speedup = LINEAR
    """How the run time of a job depends on its size, for policies that choose the size (Perkovic & Keleher 2000, section 7)."""
    name: str = ""
    """A label; by default the policy as requested."""

    def __post_init__(self) -> None:
        whole_fields(self, "Scenario.", seed=0)
        if isinstance(self.workload, (str, PathLike)):
            must = "a path must be read first, as in Scenario(workload=read_swf(path))"
            raise refused("Scenario.workload", str(self.workload), must)
        if isinstance(self.workload, Sequence):
            object.__setattr__(self, "workload", tuple(self.workload))
        if not self.sources:
            raise SpecificationError("Scenario.workload: no job stream is given; at least one is needed")
        for source in self.sources:
            require(isinstance(source, JobSource), "Scenario.workload", source, "it must be a Workload or an SwfStream")
        require(isinstance(self.machine, Machine | None), "Scenario.machine", self.machine, "it must be a Machine")
        require(isinstance(self.site, Site | None), "Scenario.site", self.site, "it must be a Site, as Site.from_toml(path)")
        flag("Scenario.explain", self.explain)
        flag("Scenario.history", self.history)
        if isinstance(self.stream, (str, PathLike)):
            object.__setattr__(self, "stream", fspath(self.stream))
        streamed = "it must be True, False or the path of a Parquet file"
        require(isinstance(self.stream, bool | str), "Scenario.stream", self.stream, streamed)
        choice("Scenario.fidelity", self.fidelity, FIDELITIES)
        choice("Scenario.events", self.events, EVENTS)
        speedup = isinstance(self.speedup, Speedup) and not isinstance(self.speedup, type)
        allowed = "it must be a LinearSpeedup, a DowneySpeedup, or an object with time_on"
        require(speedup, "Scenario.speedup", self.speedup, allowed)
        policy = make_policy(self.policy)
        if not isinstance(self.policy, str):
            object.__setattr__(self, "policy", policy)
        line = isinstance(self.name, str) and not any(category(letter) in _NOT_IN_A_LINE for letter in self.name)
        require(line, "Scenario.name", self.name, "it must be a line of text without control characters")
        _ = self.used_machine, self.used_site  # its size must be known, and its order one

    @property
    def sources(self) -> tuple[JobSource, ...]:
        """The job streams as specified."""
        return tuple(self.workload) if isinstance(self.workload, Sequence) else (self.workload,)

    @cached_property
    def streams(self) -> JobStreams:
        """The job streams with the job numbers of the run, which are unique; some jobs malleable, as the site says."""
        return JobStreams([self._resizable(source) for source in self.sources])

    @property
    def may_have_malleable(self) -> bool:
        """Whether the site or a workload has malleable jobs."""
        of_site = self.site is not None and bool(self.site.malleable)
        return of_site or any(isinstance(source, Workload) and source.has(MALLEABLE) for source in self.sources)

    def _resizable(self, source: JobSource) -> JobSource:
        for rule in () if self.site is None else self.site.malleable:
            if not isinstance(source, Workload):
                problem = f"not allowed for {source.name}, which is read job by job; read it into memory"
                raise SpecificationError(f"Site.malleable: {problem}")
            source = source.with_malleable(rule)
        return source

    @cached_property
    def used_machine(self) -> Machine:
        """The specified machine, or one of the size on which the workload was recorded, with the site's rules for nodes."""
        machine = self._machine()
        of_site = ("partitions", "node_types", "reservations", "power", "price", "power_cap_w")
        changes = {name: own for name in of_site if (own := getattr(self.site, name, ()))}
        return replace(machine, **changes) if changes else machine

    @cached_property
    def used_site(self) -> Site | None:
        """The rules of the site, with the order that the policy asks for."""
        if (name := site_order_of(self.policy)) is None:
            return self.site
        site = self.site or Site()
        if site.order is not None and not isinstance(site.order, str) and site.order.name == name:
            return self.site
        if site.order is not None:
            raise SpecificationError(f"policy {self.label}: the order of the site is another one; give one of the two")
        return replace(site, order=name)

    def _machine(self) -> Machine:
        if self.machine is not None:
            return self.machine
        known = [source.machine_nodes for source in self.sources if source.machine_nodes]
        if not known:
            unknown = f"none is given and {self.workload_name} does not name its size"
            raise SpecificationError(f"Scenario.machine: {unknown}; give machine=Machine(nodes=...)")
        return Machine(nodes=max(known))

    @property
    def workload_name(self) -> str:
        """The names of the job streams."""
        names = [source.name for source in self.sources]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"

    @property
    def unit(self) -> str:
        """The unit of job sizes: ``"node"``, ``"core"`` or ``"GPU"``; ``"processor"`` where job streams differ."""
        units = {source.provenance.unit for source in self.sources}
        if units == {"node"} and self.used_machine.has_shared_nodes:
            return "GPU" if self.used_machine.gpus_per_node > 1 else "processor"
        return units.pop() if len(units) == 1 else "processor"

    @property
    def label(self) -> str:
        """The name, or the policy as requested."""
        return self.name or policy_label(self.policy)

    def _repr_html_(self) -> str:
        """Return the scenario for a notebook."""
        fields: dict[str, object] = {
            "workload": ", ".join(source.name for source in self.sources),
            "machine": counted(self.used_machine.processors, self.unit),
            "policy": policy_label(self.policy),
            "seed": str(self.seed),
        }
        others = ("fidelity", "events", "site", "speedup", "explain", "history", "stream")
        fields |= {name: getattr(self, name) for name in others if getattr(self, name) != getattr(type(self), name)}
        return html_fields(f"Scenario {self.label}", fields.items())
