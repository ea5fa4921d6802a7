"""The machine: nodes and their memory, and what the other specifications of this package say of them.

A field with a value that is not allowed is a :class:`~clustermodel.errors.SpecificationError`, in every class.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import accumulate
from math import lcm
from typing import Final, Literal, TypeVar

import clustermodel.validation as check
from clustermodel.errors import SpecificationError, counted
from clustermodel.machine.checkpoints import Checkpointing
from clustermodel.machine.context_switch import ContextSwitch
from clustermodel.machine.costs import CostTicks, Seconds, require_cost
from clustermodel.machine.failure import FailureSource
from clustermodel.machine.node_ranges import of_machine
from clustermodel.machine.node_set import count, from_members, union, without
from clustermodel.machine.node_type import NodeType
from clustermodel.machine.partition import Partition
from clustermodel.machine.power import Power, to_microwatts, to_watts
from clustermodel.machine.price import Price
from clustermodel.machine.reservation import Reservation
from clustermodel.machine.time_slicing import TimeSlicing
from clustermodel.text.formatting import html_fields
from clustermodel.ticks import to_seconds, to_ticks
from clustermodel.validation import A_TICK, require, seconds_fields, whole_fields

ALLOCATIONS: Final = ("any", "lowest", "consolidate")
ON_FAILURES: Final = ("requeue", "shrink")
MOST_TOLD_APART: Final = 2**24
"""Nodes of the largest machine with partitions, types of nodes or reservations: a set of them takes a bit for each.
The largest machines have 11 million processors."""
MOST_TURNS: Final = 10_000  # of recurring reservations, after which all recur together
_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """A parallel computer of nodes, identical unless they have types, perhaps in partitions."""

    nodes: int
    """Number of nodes; one task of a job per node (the papers' processors; N in Zhang et al. 2003)."""
    kill_at_estimate: bool = True
    """Whether the estimate is the wall-time limit, at which the batch system kills the job (Talby & Feitelson 1999, long
    version, requirement VIII).  If not, the job continues."""

    time_slicing: TimeSlicing = field(default_factory=TimeSlicing)
    """Time slices; space-sharing policies do not use them."""
    context_switch: ContextSwitch = field(default_factory=ContextSwitch)
    """Cost of a context switch between time slices."""
    checkpointing: Checkpointing = field(default_factory=Checkpointing)
    """Cost of a checkpoint and of a restart; a migration is one of each."""
    failures: FailureSource | None = None
    """When nodes fail, and for how long they are down."""
    suspended_per_node: int | None = None
    """Number of suspended tasks that fit a node's memory besides the running task; ``None`` is no limit, 0 no suspension."""
    gpus_per_node: int = 1
    """Number of processors of each node, as GPUs: jobs ask for processors, and each task has one of its own.  What this
    documentation says of nodes is then true of processors."""
    processors_per_node: int = 1
    """The same for cores and other processors; give one of the two fields."""
    allocation: Literal["any", "lowest", "consolidate"] = "any"
    """Which idle processors a gang gets unless the policy names them: ``"any"``, ``"lowest"``: those with the lowest numbers;
    ``"consolidate"``: those of as few nodes as possible, the last of them the fullest that has enough for the rest."""
    round_s: float = 0.0
    """Length of a scheduling round, seconds: the preemptive schedulers decide at its multiples only; 0: at every event."""

    partitions: Sequence[Partition] = ()
    """Sets of nodes that jobs name.  A job that names several runs in one of them at a time.  It starts in the first in which
    it can, in the order of their priorities, of equal ones as it names them; its reservation is in the one in which it can
    start earliest.  Without partitions each job may have all nodes."""
    node_types: Sequence[NodeType] = ()
    """Nodes that differ from the others in processors, memory, speed or features."""
    reservations: Sequence[Reservation] = ()
    """When nodes are kept free, and for whom."""
    node_memory_gib: float | None = None
    """Memory of each node, GiB; the tasks of all gangs on a node, suspended ones too, must fit
    (:attr:`Job.memory_gib <clustermodel.workload.job.Job.memory_gib>`).  ``None`` is no limit."""
    power: Power | None = None
    """Power drawn by each node, for the energy of a run; it changes no schedule.  ``None``: no energy accounting."""
    price: Price | None = None
    """Price and carbon intensity of energy over time: a :class:`~clustermodel.machine.price.Price`, or a table with its
    columns."""
    on_failure: Literal["requeue", "shrink"] = "requeue"
    """What becomes of a gang of which a node fails: its job waits again, or, if the job is malleable and its least number of
    nodes is left, ``"shrink"``: it continues at once on the remaining nodes, from its last checkpoint."""
    resize_s: float | None = None
    """How long a change of a gang's size takes, seconds, in which it does not execute; a job may have a cost of its own.
    ``None``: as long as a checkpoint on the nodes before and a restart on the nodes after."""
    startup_s: Seconds = 0.0
    """How long a gang on dedicated nodes occupies them before each run attempt executes (prolog, image, MPI launch), seconds: a
    number, or a function of its number of nodes.  A job may have a time of its own, here and below.  The wall-time limit does
    not count it, but the response does; wait is until the gang has its nodes."""
    epilog_s: Seconds = 0.0
    """How long it occupies them after a run attempt (epilog, cleaning), seconds.  The attempt ends when the nodes are free."""
    power_cap_w: float | None = None
    """What all nodes together may draw at any time, watts: so many nodes are kept idle that it is enough whatever the others do
    (docs/energy).  ``None`` is no limit."""
    idle_off_s: float | None = None
    """After how long an idle node is switched off, seconds; the gang that gets it waits until it has booted (``Power.boot_s``).
    ``None``: nodes stay on."""

    def __post_init__(self) -> None:
        whole_fields(self, "Machine.", nodes=1, suspended_per_node=0)
        check.flag("Machine.kill_at_estimate", self.kill_at_estimate)
        if self.node_memory_gib is not None:
            check.require_gib("Machine.node_memory_gib", self.node_memory_gib, positive=True)
        for part, name, kind in (
            (self.time_slicing, "time_slicing", TimeSlicing),
            (self.context_switch, "context_switch", ContextSwitch),
            (self.checkpointing, "checkpointing", Checkpointing),
        ):
            require(isinstance(part, kind), f"Machine.{name}", part, f"it must be a {kind.__name__}(...)")
        whole_fields(self, "Machine.", gpus_per_node=1, processors_per_node=1)
        both = self.gpus_per_node > 1 < self.processors_per_node
        where = f" with gpus_per_node={self.gpus_per_node}"
        require(not both, "Machine.processors_per_node", self.processors_per_node, "give one of the two", where)
        check.choice("Machine.allocation", self.allocation, ALLOCATIONS)
        check.choice("Machine.on_failure", self.on_failure, ON_FAILURES)
        seconds_fields(self, "Machine.", "resize_s")
        self._check_costs_of_size()
        self._check_node_types()
        one_each, where = not self.has_shared_nodes, f" with {self._most_per_node} processors per node"
        require(self.failures is None or one_each, "Machine.failures", self.failures, "it must be None", where)
        self._check_partitions()
        self._check_reservations()
        named = [name for name in ("partitions", "node_types", "reservations") if getattr(self, name)]
        few, where = not named or self.nodes <= MOST_TOLD_APART, f" with {' and '.join(named)}"
        require(few, "Machine.nodes", self.nodes, f"it must be at most {MOST_TOLD_APART:,}, a bit for each in a set", where)
        self._check_power()
        seconds_fields(self, "Machine.", "round_s")
        charged = self.checkpointing.restart_charge == "every-round" and not self.round
        require(not charged, "Machine.round_s", 0, "it must be > 0", " where restarts are charged in every round")
        known = self.failures is None or isinstance(self.failures, FailureSource)
        require(known, "Machine.failures", self.failures, "it must be NodeFailures(...), Outages(...) or None")
        interval, where = self.checkpointing.interval_s, " on a machine without failures"
        known = self.failures is not None or interval not in ("young", "daly")
        require(known, "Checkpointing.interval_s", interval, "it must be a number of seconds", where)
        self.require_switch(self.uniform_switch or 0)

    def require_switch(self, ticks: int, whose: str = "") -> None:
        """Refuse a context switch that takes as long as a time slice."""
        if ticks >= self.time_slicing.quantum:
            raise SpecificationError(
                f"Machine.time_slicing: a quantum of {self.time_slicing.quantum_s:g} s is not allowed; "
                f"it must be longer than the context switch{whose} of {to_seconds(ticks):g} s, or no job ever runs"
            )

    def _check_costs_of_size(self) -> None:
        costs: tuple[tuple[str, Seconds | None], ...] = (
            ("ContextSwitch.seconds", self.context_switch.seconds),
            ("Machine.startup_s", self.startup_s),
            ("Machine.epilog_s", self.epilog_s),
        )
        for name, seconds in costs:
            if seconds is not None:
                require_cost(name, seconds, self.nodes)
        for name, seconds in costs[1:]:
            charge, where = self.checkpointing.restart_charge, f" where a start-up or an epilog takes time ({name})"
            free = charge == "on-start" or (not callable(seconds) and not seconds)
            require(free, "Checkpointing.restart_charge", charge, "it must be 'on-start'", where)

    def _check_partitions(self) -> None:
        self._check_named_nodes("partitions", Partition)
        names = [each.name for each in self.partitions]
        require(sum(each.default for each in self.partitions) <= 1, "Machine.partitions", names, "at most one is the default")

    def _keep_tuple(self, name: str, kind: type) -> None:
        value = getattr(self, name)
        given: object = (value,) if isinstance(value, kind) else value
        known = isinstance(given, Sequence) and all(isinstance(each, kind) for each in given)
        require(known, f"Machine.{name}", value, f"they must be {kind.__name__}(...)")
        assert isinstance(given, Sequence)
        object.__setattr__(self, name, tuple(given))

    def _take_shares(self, name: str) -> None:
        """Let nodes that are given as shares of the machine be those of a machine of this size."""
        field = f"Machine.{name}: nodes"
        given = getattr(self, name)
        nodes = [each.nodes and of_machine(field, each.nodes, self.nodes) for each in given]
        if nodes != [each.nodes for each in given]:
            made = [replace(each, nodes=own) for each, own in zip(given, nodes, strict=True)]
            object.__setattr__(self, name, tuple(made))

    def _check_named_nodes(self, name: str, kind: type[Partition] | type[NodeType]) -> None:
        self._keep_tuple(name, kind)
        self._take_shares(name)
        given = getattr(self, name)
        names = [each.name for each in given]
        for each in given:
            where = f"Machine.{name}: {each.name}"
            require(names.count(each.name) == 1, where, each.name, "another one has the same name; names must be unique")
            last = each.node_set[-1] - 1
            require(last < self.nodes, f"{where}: nodes", each.nodes, f"they must be among 0-{self.nodes - 1}")

    def _check_node_types(self) -> None:
        self._check_named_nodes("node_types", NodeType)
        taken: tuple[int, ...] = ()
        for place, each in enumerate(self.node_types):
            for other in self.node_types[:place]:
                both = without(each.node_set, without(each.node_set, other.node_set))
                where = f"Machine.node_types: {each.name}: nodes"
                require(not both, where, each.nodes, f"node {both[:1] and both[0]} is of type {other.name}")
            taken = union(taken, each.node_set)
        limited = [self.node_memory_gib if each.memory_gib is None else each.memory_gib for each in self.node_types]
        limited += [self.node_memory_gib] if count(taken) < self.nodes else []
        alike = None not in limited or not any(limited)
        must = "give it for all nodes, or Machine.node_memory_gib"
        require(alike, "NodeType.memory_gib", None, must, " where other nodes have limited memory")
        require(isinstance(self.power, Power | None), "Machine.power", self.power, "it must be a Power(...) or None")
        if self.price is not None:
            object.__setattr__(self, "price", Price.of(self.price))
        powers = [each.power or self.power for each in self.node_types] + [self.power] * (count(taken) < self.nodes)
        must = "give it for all nodes, or Machine.power"
        require(None not in powers or not any(powers), "NodeType.power", None, must, " where other nodes have a power")
        given, must = self.price is None or any(powers), "give Machine.power, what nodes draw, too"
        require(given, "Machine.price", "a price", must, " alone")
        uniform, where = self.node_speeds is None, " where nodes differ in speed"
        interval, charge = self.checkpointing.interval_s, self.checkpointing.restart_charge
        require(uniform or interval is None, "Checkpointing.interval_s", interval, "it must be None", where)
        require(uniform or charge == "on-start", "Checkpointing.restart_charge", charge, "it must be 'on-start'", where)

    def _check_power(self) -> None:
        seconds_fields(self, "Machine.", "idle_off_s", positive=True)
        if self.idle_off_s is not None:
            require(self.idle_off, "Machine.idle_off_s", self.idle_off_s, A_TICK)
            charge, where = self.checkpointing.restart_charge, " where idle nodes are switched off"
            require(charge == "on-start", "Checkpointing.restart_charge", charge, "it must be 'on-start'", where)
        for name, given in (("power_cap_w", self.power_cap_w), ("idle_off_s", self.idle_off_s)):
            must = "say what nodes draw, Machine(power=Power(...))"
            require(given is None or self.powers, f"Machine.{name}", given, must, " without a power")
        where = " where types of nodes differ in power"
        require(
            self.idle_off_s is None or len(self.powers) == 1, "Machine.idle_off_s", self.idle_off_s, "it must be None", where
        )
        if self.power_cap_w is None:
            return
        allowed = "a number of watts > 0"
        check.require_number("Machine.power_cap_w", self.power_cap_w, allowed, lambda watts: 0 < watts < float("inf"))
        differ = self.has_shared_nodes and (self.partitions or self.node_types or self.node_memory is not None)
        where = " where nodes have several processors, and partitions, types or a limited memory"
        require(not differ, "Machine.power_cap_w", self.power_cap_w, "it must be None", where)
        least = sum(unused * sum(bounds[1::2], -sum(bounds[::2])) for bounds, unused, _ in self.draws)
        least += min(most - unused for _, unused, most in self.draws)
        enough = f"it must be at least {to_watts(least):g}: all nodes unused, and one in use"
        require(to_microwatts(self.power_cap_w) >= least, "Machine.power_cap_w", self.power_cap_w, enough)

    def _check_reservations(self) -> None:
        self._keep_tuple("reservations", Reservation)
        self._take_shares("reservations")
        for each in self.reservations:
            last = 0 if each.node_set is None else each.node_set[-1] - 1
            require(last < self.nodes, "Machine.reservations: nodes", each.nodes, f"they must be among 0-{self.nodes - 1}")
        periods = [to_ticks(each.every_s) for each in self.reservations if each.every_s is not None]
        turns = sum(lcm(*periods) // period for period in periods)
        must = (
            f"their periods must fit each other: together they repeat after {turns:,} reservations only, at most {MOST_TURNS:,}"
        )
        require(turns <= MOST_TURNS, "Machine.reservations: every_s", [each.every_s for each in self.reservations], must)

    @property
    def windows(self) -> list[tuple[tuple[int, ...], int, int, int]]:
        """When nodes are kept free: ranges of processors, begin, end and period (ticks; 0: once), of reservations, then of
        outages that are known in advance.
        """
        nodes = self._in_processors(each.node_set or (0, self.nodes) for each in self.reservations)
        windows = [
            (of_window, to_ticks(each.start_s), to_ticks(each.end_s), to_ticks(each.every_s or 0.0))
            for of_window, each in zip(nodes, self.reservations, strict=True)
        ]
        announced = getattr(self.failures, "announced", None)
        together: dict[tuple[int, int], list[int]] = {}
        for outage in () if announced is None else announced():
            together.setdefault((outage.time, outage.time + outage.repair), []).append(outage.node)
        return windows + [(from_members(nodes), begin, end, 0) for (begin, end), nodes in sorted(together.items())]

    @property
    def switch_ticks(self) -> int:
        """Length of a context switch, ticks; a cost that depends on the number of nodes is refused."""
        if (ticks := self.uniform_switch) is None:
            raise SpecificationError(
                "ContextSwitch.seconds: a function of the number of nodes is not allowed where all switches must take the "
                "same time; it must be a number"
            )
        return ticks

    @property
    def uniform_switch(self) -> int | None:
        """Length of a context switch, ticks; ``None`` if it depends on the number of nodes."""
        return self.context_switch.ticks(self.time_slicing.quantum)

    @property
    def processors(self) -> int:
        """Number of processors of all nodes; as many as nodes, unless these have several."""
        of_types = any(each.processors_per_node for each in self.node_types)
        return sum(self.node_sizes) if of_types else self.nodes * self._per_node

    @property
    def _per_node(self) -> int:
        return max(self.gpus_per_node, self.processors_per_node)

    @property
    def node_sizes(self) -> list[int]:
        """Number of processors of each node."""
        return self._by_node(self._per_node, lambda each: each.processors_per_node)

    @property
    def has_shared_nodes(self) -> bool:
        """Whether nodes have several processors, so that several jobs may run on a node at a time."""
        return self._most_per_node > 1

    @property
    def _most_per_node(self) -> int:  # without a list of the nodes, of which there may be 2 to the power of 52
        return max([self._per_node, *(each.processors_per_node or 1 for each in self.node_types)])

    @property
    def node_memories(self) -> list[int] | None:
        """Memory of each node, KiB; ``None`` is no limit."""
        if self.node_memory is None:
            return None
        of_others = 0 if self.node_memory_gib is None else check.to_kib(self.node_memory_gib)
        return self._by_node(of_others, lambda each: None if each.memory_gib is None else check.to_kib(each.memory_gib))

    @property
    def node_speeds(self) -> list[float] | None:
        """Speed of each node; ``None`` if all have speed 1."""
        if all(each.speed == 1 for each in self.node_types):
            return None
        return self._by_node(1.0, lambda each: each.speed)

    @property
    def powers(self) -> dict[Power, list[tuple[int, ...]]]:
        """What processors draw, and the sets of those that draw it, as ranges; empty if no power is given."""
        if self.power is None and not any(each.power for each in self.node_types):
            return {}
        rest: tuple[int, ...] = (0, self.nodes)
        sets: dict[Power, list[tuple[int, ...]]] = {}
        differing = [each for each in self.node_types if each.power not in (None, self.power)]
        for each in differing:
            assert each.power is not None
            sets.setdefault(each.power, []).extend(self._in_processors([each.node_set]))
            rest = without(rest, each.node_set)
        if self.power is not None and rest:
            sets[self.power] = self._in_processors([rest])
        return sets

    @property
    def draws(self) -> list[tuple[tuple[int, ...], int, int]]:
        """Sets of processors, as ranges, and the most that each draws while no gang has it, and at any time, microwatts."""
        draws = []
        for power, sets in self.powers.items():
            unused = max(power.idle, power.down, 0 if self.idle_off_s is None else power.off)
            most = max(unused, power.busy, power.switching, 0 if self.idle_off_s is None else power.booting)
            draws += [(bounds, unused, most) for bounds in sets]
        return draws

    @property
    def power_cap(self) -> int | None:
        """``power_cap_w`` in microwatts."""
        return None if self.power_cap_w is None else to_microwatts(self.power_cap_w)

    @property
    def idle_off(self) -> int | None:
        """``idle_off_s`` in ticks."""
        return None if self.idle_off_s is None else to_ticks(self.idle_off_s)

    @property
    def boot(self) -> int:
        """How long a gang may have to wait until its nodes have booted, ticks; 0 where idle nodes stay on."""
        return 0 if self.idle_off_s is None else max(power.boot for power in self.powers)

    def _by_node(self, other: _Number, of_type: Callable[[NodeType], _Number | None]) -> list[_Number]:
        """Return a number of each node: that of its type, if it has one, else ``other``."""
        values = [other] * self.nodes
        for each in self.node_types:
            if (value := of_type(each)) is not None:
                for low, high in zip(each.node_set[::2], each.node_set[1::2], strict=True):
                    values[low:high] = [value] * (high - low)
        return values

    def sets_of_nodes(self) -> list[tuple[int, ...]]:
        """Return the sets of nodes to which jobs may be limited, as ranges of processors."""
        named: tuple[Partition | NodeType, ...] = (*self.partitions, *self.node_types)
        return self._in_processors(each.node_set for each in named)

    def kinds_of_nodes(self) -> list[tuple[int, ...]]:
        """Return the sets of nodes that partitions, types of nodes and reservations tell apart, as ranges of processors."""
        reserved = [each.node_set for each in self.reservations]
        return [*self.sets_of_nodes(), *self._in_processors(nodes for nodes in reserved if nodes is not None)]

    def _in_processors(self, sets: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
        first = [0, *accumulate(self.node_sizes)] if self.has_shared_nodes else range(self.nodes + 1)
        return [tuple(first[bound] for bound in nodes) for nodes in sets]

    @property
    def resize(self) -> int | None:
        """How long a resize takes, ticks; ``None``: as long as a checkpoint and a restart."""
        return None if self.resize_s is None else to_ticks(self.resize_s)

    @property
    def startup(self) -> CostTicks:
        """``startup_s`` by number of nodes."""
        return CostTicks("Machine.startup_s", self.startup_s)

    @property
    def epilog(self) -> CostTicks:
        """``epilog_s`` by number of nodes."""
        return CostTicks("Machine.epilog_s", self.epilog_s)

    @property
    def round(self) -> int:
        """Length of a scheduling round, ticks; 0 where there are none."""
        return to_ticks(self.round_s)

    @property
    def node_memory(self) -> int | None:
        """Memory of the nodes that have most, KiB; ``None`` is no limit."""
        known = [gib for gib in (self.node_memory_gib, *(each.memory_gib for each in self.node_types)) if gib is not None]
        return check.to_kib(max(known)) if known else None

    def _repr_html_(self) -> str:
        """Return the machine for a notebook, its fields with the names of scenario files."""
        rows: list[tuple[str, object]] = []
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            inner = fields(value) if is_dataclass(value) else ()
            rows += [(f"{name}.{each.name}", getattr(value, each.name)) for each in inner] or [(name, value)]
        return html_fields(f"Machine of {counted(self.nodes, 'node')}", rows)
