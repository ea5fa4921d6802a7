"""Random scenarios as users build them, each a combination of some features; made smaller while they still fail; as scripts.

:func:`drawn` makes the case of a number, always the same one.  A feature that the policy does not take is not drawn.
"""

import random
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import Any, Final

import numpy as np

from clustermodel import (
    QOS,
    Checkpointing,
    CheckpointStore,
    ContextSwitch,
    DowneySpeedup,
    FairShare,
    Job,
    Limits,
    LinearSpeedup,
    Machine,
    Multifactor,
    NodeType,
    Outages,
    Partition,
    Power,
    Price,
    Reservation,
    Result,
    Scenario,
    Site,
    SizeCost,
    SpecificationError,
    TimeSlicing,
    Workload,
    make_policy,
)
from clustermodel.machine.checkpoints import WRITERS
from clustermodel.machine.machine import ALLOCATIONS
from clustermodel.policies.registry import may_resize, shipped_policies
from clustermodel.workload.speedup import Speedup
from tests.outside import RESERVING, Noting, differences

POLICIES: Final = tuple(dict.fromkeys((
    *shipped_policies(),
    "easy:backfill_order=shortest", "easy:reserve_depth=2", "easy:reserve_depth=3,reservation=kept", "easy:reservation=kept",
    "easy:predictor=last-two,correction=tsafrir", "easy:predictor=perfect", "conservative:queue_order=shortest",
    "conservative:predictor=last,correction=double", "bf:queue_order=narrowest",
    "gs:mpl=1", "gs:queue_order=widest", "bgs:urgent=checkpoint", "bgs:urgent=suspend", "mbgs:urgent=kill", "mgs:mpl=2",
    "mbgs:queue_order=shortest", "adaptive:threshold=0.3,window_s=20",
    "slack:awt=20", "slack:awt=20,heuristic=dc", "slack:awt=20,compression=shift", "slack:awt=20,slack_factor=0.5",
    "pv-easy:mode=suspend", "pv-easy:mode=checkpoint", "pv-easy:vb=false", "pv-easy:slp=false,mode=suspend",
    "ss:mode=checkpoint", "ss:mode=kill", "ss:sf=1.5,interval_s=5",
    "srtf:mode=suspend", "srtf:skip=false", "srtf:min_run_s=5,victim=largest",
    "srsf:mode=kill", "srsf:round_s=7",
    "las:mode=suspend", "las:thresholds=5/20", "las:thresholds=20,promote=2", "las:round_s=5", "las:mode=kill",
    "fifo-preempt:mode=kill",
    "fifo-preempt:victim=latest-start", "fifo-preempt:victim=least-lost", "fifo-preempt:victim=largest,mode=suspend",
    "max-min:round_s=10", "max-min:round_s=10,reset_s=0", "finish-time-fair:round_s=10",
    "max-min:round_s=10,ahead_s=2,start_s=1",
    "equipartition:min_gain=0.2", "equipartition:min_interval_s=5", "shrink-to-admit:order=fcfs",
    "shrink-to-admit:victim=longest,expand=no", "shrink-to-admit:victim=largest,fewer=false", "shrink-to-admit:expand=asked",
    "shrink-to-admit:min_gain=0.3,min_interval_s=5,victim=latest", "expand:order=age", "expand:min_gain=0.1",
    "cheap-hours:max_delay_s=30",
    "backfilling:guarantees=selective", "backfilling:guarantees=relaxed", "backfilling:speculation=0.9,test_runs=true",
    "backfilling:width=greedy", "backfilling:width=greedy,widening=2", "R/L:width=half,widening=1", "D:starvation_weight=0.5",
    "P:levels=2", "1/L:test_runs=true,width=greedy", "D-NG:predictor=last,correction=second",
)))  # fmt: skip
USERS, ACCOUNTS, NAMES_OF_QOS, NAMES = (1, 2, 3, -1), ("bio", "geo", None), ("high", "low", None), ("sweep", "prep", None)
QUIET: Final = ("no gang shared", "Scenario.fidelity", "power")
_ONE_IN: Final = 3  # cases with a feature that the policy takes


@dataclass(frozen=True)
class Case:
    """What is run."""

    policy: str
    machine: Machine
    jobs: tuple[Job, ...]
    site: Site | None = None
    arrays: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    events: str = "together"
    speedup: Speedup = field(default_factory=LinearSpeedup)
    seed: int = 1

    def scenario(self, policy: Any = None, fidelity: str = "fast") -> Scenario:
        workload = Workload.from_jobs(self.jobs)
        if self.arrays:
            of_job = [self.arrays.get(job, (-1, -1)) for job in workload.column("id").tolist()]
            array, limit = zip(*of_job, strict=True)
            workload = Workload.from_frame(workload.frame.assign(array=array, array_limit=limit))
        options: dict[str, Any] = {"events": self.events, "fidelity": fidelity, "speedup": self.speedup, "seed": self.seed}
        return Scenario(
            workload=workload, machine=self.machine, policy=policy or self.policy, site=self.site, history=True, **options
        )

    def run(self, policy: Any = None, fidelity: str = "fast") -> Result:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.scenario(policy, fidelity).run()

    def checked(self) -> tuple[Result, list[str]]:
        """Run the case; return the result, and in words what does not hold."""
        made = make_policy(self.policy)
        notes = made.name in RESERVING and not any(job.malleable for job in self.jobs)
        notes = notes or (self.machine.node_memory is not None and _keeps_in_memory(self.policy))
        noting = Noting(self.policy) if notes else None
        result = self.run(noting)
        reserved, discarded = ([], {}) if noting is None else (noting.reserved, noting.discarded)
        return result, differences(result, self.jobs, self.arrays, reserved, discarded)

    @property
    def features(self) -> frozenset[str]:
        """What the case has beside nodes, jobs, and a policy."""
        machine, site, jobs = self.machine, self.site, self.jobs
        names = {name for each in jobs for name in (each.partition or "").split(",") if "," in (each.partition or "")}
        costs, power = machine.checkpointing, machine.power
        has = {
            "partitions": machine.partitions,
            "several partitions": machine.partitions and names,
            "limits": site is not None and site.limits,
            "limits of a QOS": site is not None and any(limit.qos is not None for limit in site.limits),
            "QOS of partitions": site is not None and site.qos,
            "dependencies": any(job.after or job.after_ok or job.after_not_ok or job.after_any for job in jobs),
            "singletons": any(job.singleton for job in jobs),
            "arrays": self.arrays,
            "reservations": machine.reservations,
            "recurring reservations": any(each.every_s is not None for each in machine.reservations),
            "reservations for some": any(each.accounts or each.users or each.name for each in machine.reservations),
            "malleable jobs": any(job.malleable for job in jobs),
            "resizing": may_resize(make_policy(self.policy)) and any(job.malleable for job in jobs),
            "costly resizes": any(job.malleable for job in jobs) and (machine.resize_s is None or machine.resize_s > 0),
            "power": machine.powers,
            "power cap": machine.power_cap_w is not None,
            "nodes switched off": machine.idle_off_s is not None,
            "boots": machine.idle_off_s is not None and power is not None and power.boot_s,
            "start-up and epilog": machine.startup_s or machine.epilog_s or any(job.startup_s or job.epilog_s for job in jobs),
            "node memory": machine.node_memory is not None,
            "one-by-one": self.events == "one-by-one",
            "several processors": machine.has_shared_nodes,
            "shapes": any(job.processors_per_node or job.max_nodes_used or job.whole_nodes for job in jobs),
            "failures": machine.failures is not None,
            "known outages": any(getattr(machine.failures, "known", ())),
            "periodic checkpoints": costs.interval_s is not None,
            "store": costs.store is not None,
            "checkpoint costs": costs.checkpoint_s or costs.restart_s or any(job.checkpoint_s is not None for job in jobs),
            "task limit Q": costs.max_tasks_per_slice is not None,
            "node types": machine.node_types,
            "speeds": machine.node_speeds is not None,
            "fair share": site is not None and isinstance(site.order, FairShare),
            "multifactor": site is not None and isinstance(site.order, Multifactor),
            "priorities": len({job.priority for job in jobs}) > 1,
            "no kills": not machine.kill_at_estimate,
            "rounds": machine.round_s or "round_s" in self.policy,
            "switch costs": machine.context_switch != ContextSwitch() and hasattr(make_policy(self.policy), "mpl"),
            "speedup": not isinstance(self.speedup, LinearSpeedup),
        }
        return frozenset(name for name, value in has.items() if value)

    def script(self, words: Iterable[str] = ()) -> str:
        """Return a script that runs the case."""
        given = {"policy": self.policy, "site": self.site, "events": self.events, "speedup": self.speedup, "seed": self.seed}
        usual = {"events": "together", "site": None, "speedup": LinearSpeedup(), "seed": 1}
        options = [f"{name}={written(value)}" for name, value in given.items() if name not in usual or value != usual[name]]
        run = f"r = Scenario(machine=machine, workload=workload, {', '.join(options)}, history=True)"
        lines = [f'"""{"; ".join(words)}"""', "from numpy import array", "from clustermodel import *"]
        lines += [f"machine = {written(self.machine)}", "jobs = ["]
        lines += [f"    {written(job)}," for job in self.jobs] + ["]", "workload = Workload.from_jobs(jobs)"]
        if self.arrays:
            lines += [
                f"arrays = {self.arrays!r}",
                "of_job = [arrays.get(job, (-1, -1)) for job in workload.column('id').tolist()]",
            ]
            columns = "array=[a for a, _ in of_job], array_limit=[n for _, n in of_job]"
            lines += [f"workload = Workload.from_frame(workload.frame.assign({columns}))"]
        lines += [f"{run}.run()", "print(r.jobs.to_string())", "print(r.run_attempts.to_string())", ""]
        return "\n".join(lines)


def written(value: object) -> str:
    """Return the text of a value in Python, without the fields that are as by default."""
    if isinstance(value, np.ndarray):
        return f"array({value.tolist()!r})"
    if isinstance(value, (tuple, list)) and value and is_dataclass(value[0]):
        return f"[{', '.join(map(written, value))}]"
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value)
    given = []
    for each in fields(value):
        own = getattr(value, each.name)
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        if isinstance(own, np.ndarray) or default is MISSING or own != default:
            given.append(f"{each.name}={written(own)}")
    return f"{type(value).__name__}({', '.join(given)})"


def _keeps_in_memory(policy: str) -> bool:
    return policy.partition(":")[0] in ("ss", "server-filling") or "mode=suspend" in policy or "urgent=suspend" in policy


@cache
def _taken(policy: str) -> frozenset[str]:
    """Return which features a policy takes, of those that not all do; the table of policies says so."""
    made = make_policy(policy)
    taken = {
        name.removeprefix("takes_")
        for name in ("takes_partitions", "takes_reservations", "takes_shapes")
        if getattr(made, name, False)
    }
    name, rows = policy.partition(":")[0], hasattr(made, "mpl")
    preempts = rows or name in (
        "pv-easy", "ss", "server-filling", "srtf", "srsf", "las", "fifo-preempt", "max-min", "finish-time-fair"
    )  # fmt: skip
    taken |= {"order"} if getattr(made, "takes_order", True) else set()
    taken |= {"rows"} if rows else {"one-by-one", "startup", "off", "store"}
    taken |= set() if preempts else {"speeds"}
    taken |= {"resizes"} if getattr(made, "takes_resizes", False) else set()
    taken |= {"rounds"} if name in ("srtf", "srsf", "las", "fifo-preempt") and "round_s" not in policy else set()
    return frozenset(taken)


class _Draw:
    """Draws of one case."""

    def __init__(self, number: str, without: Collection[str], always: Collection[str]) -> None:
        self.rng = random.Random(number)
        self._without, self._always = without, always

    def has(self, feature: str, one_in: float = _ONE_IN) -> bool:
        drawn = self.rng.random() < 1 / one_in
        return feature not in self._without and (drawn or feature in self._always)

    def one(self, *values: Any) -> Any:
        return self.rng.choice(values)

    def whole(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def nodes(self, nodes: int) -> str:
        """Return nodes as a text: neighbours, or any."""
        if self.rng.random() < 0.5:
            low, high = sorted((self.whole(0, nodes - 1), self.whole(0, nodes - 1)))
            return f"{low}-{high}"
        return ",".join(map(str, sorted(self.rng.sample(range(nodes), self.whole(1, nodes)))))


def drawn(number: int | str, *, policy: str | None = None, without: Collection[str] = (), always: Collection[str] = ()) -> Case:
    """Return the case of a number.

    Args:
        number: which.
        policy: under this policy; by default one of :data:`POLICIES`.
        without: features that are not drawn.
        always: features that are drawn wherever the policy takes them.
    """
    draw = _Draw(str(number), without, always)
    policy = draw.one(*POLICIES) if policy is None else policy
    taken = _taken(policy)
    nodes = draw.whole(1, 8)
    per_node = draw.whole(2, 4) if "shapes" in taken and draw.has("several processors") else 1
    nodes = min(nodes, 4) if per_node > 1 else nodes
    memory = draw.has("node memory") and (per_node == 1 or "shapes" in taken)
    parts = _partitions(draw, nodes) if "partitions" in taken and draw.has("partitions") else []
    types = _types(draw, nodes, per_node, taken, memory=memory) if "partitions" in taken and draw.has("node types", 5) else []
    memory = memory or bool(types and types[0].memory_gib)
    grid = draw.one(1.0, 1.0, 1.0, 0.5, 0.3)  # times are multiples, so that instants collide
    jobs = _jobs(draw, nodes, per_node, parts, types, taken, grid=grid, memory=memory)
    machine = Machine(
        nodes=nodes,
        partitions=parts,
        node_types=types,
        processors_per_node=per_node if draw.has("cores", 2) else 1,
        kill_at_estimate=not draw.has("no kills"),
        time_slicing=TimeSlicing(quantum_s=draw.one(1, 4, 7.3), mpl=draw.whole(1, 3), at_events=draw.one("cut", "cut", "keep")),
        allocation=draw.one(*ALLOCATIONS) if per_node > 1 else "any",
        node_memory_gib=4 if memory else None,
    )
    if per_node > 1 and machine.processors_per_node == 1:
        machine = replace(machine, gpus_per_node=per_node)
    machine = _with_costs(draw, machine, taken)
    if "reservations" in taken and draw.has("reservations"):
        machine = replace(machine, reservations=_reservations(draw, nodes))
        named = [each.name for each in machine.reservations if each.name]
        if named and draw.has("named reservations", 2):
            jobs = [replace(job, reservation=draw.one(None, None, *named)) for job in jobs]
    if not machine.has_shared_nodes and draw.has("failures", 4):
        machine = replace(
            machine, failures=_failures(draw, nodes, known="reservations" in taken and draw.has("known outages", 5))
        )
        if any(job.malleable for job in jobs) and "resizes" in taken and draw.has("shrink", 2):
            machine = replace(machine, on_failure="shrink")
    machine = _with_power(draw, machine, taken)
    if "rounds" in taken and draw.has("rounds", 6):
        machine = replace(machine, round_s=draw.one(1, 7, 10))
    arrays: dict[int, tuple[int, int]] = {}
    if not any(job.after or job.after_ok or job.after_not_ok or job.after_any or job.singleton for job in jobs) and draw.has(
        "arrays"
    ):
        most = {array: draw.whole(1, 2) for array in (100, 200)}
        arrays = {job.id: (array, most[array]) for job in jobs if (array := draw.one(None, 100, 200)) is not None}
    order = None
    if "order" in taken and draw.has("orders", 4):
        order = draw.one(
            FairShare(half_life_s=20),
            Multifactor(fair_share=1, size=0.5, half_life_s=20),
            Multifactor(qos=1, qos_values={"high": 1.0}),
        )
    limits = [_limit(draw, nodes * per_node) for _ in range(draw.whole(1, 3))] if draw.has("limits") else []
    site = Site(limits=limits, array_limits=bool(arrays), order=order) if limits or arrays or order else None
    if limits and site is not None and draw.has("QOS of partitions", 2):
        site = replace(site, qos=_qos(draw, [each.name for each in parts]))
    case = Case(
        policy,
        machine,
        tuple(jobs),
        site,
        arrays,
        "one-by-one" if "one-by-one" in taken and draw.has("one-by-one", 4) else "together",
        draw.one(LinearSpeedup(), DowneySpeedup(sigma=1)) if any(job.malleable for job in jobs) else LinearSpeedup(),
        draw.whole(1, 999),
    )
    if draw.has("ticks", 6) and ":" not in policy and policy not in ("max-min", "finish-time-fair"):
        case = replace(case, machine=scaled(case.machine, 1e-5), jobs=scaled(case.jobs, 1e-5), site=scaled(case.site, 1e-5))
    return case


def scaled(value: Any, by: float) -> Any:
    """Return a specification with all its times multiplied, those below a tick as a tick."""
    if isinstance(value, (tuple, list)):
        return type(value)(scaled(each, by) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    changes: dict[str, Any] = {}
    for each in fields(value):
        own = getattr(value, each.name)
        if each.name.endswith("_gib_s") and own is not None:
            changes[each.name] = own / by
        elif each.name in ("node_hours", "processor_hours") and own is not None:
            changes[each.name] = own * by
        elif each.name in ("down_s", "up_s", "time_s"):
            changes[each.name] = (
                type(own)(_times(time, by) for time in own) if isinstance(own, tuple) else np.round(own * by, 6)
            )
        elif each.name == "every_s" and isinstance(value, Reservation) and own is not None:
            changes[each.name] = max(_times(own, by), 1)  # less is refused
        elif (each.name.endswith("_s") or each.name == "seconds") and isinstance(own, (int, float)):
            changes[each.name] = _times(own, by)
        elif is_dataclass(own) or isinstance(own, tuple):
            changes[each.name] = scaled(own, by)
    return replace(value, **changes)


def _times(seconds: float, by: float) -> float:
    return max(round(seconds * by, 6), 1e-6) if seconds else 0.0


def _partitions(draw: _Draw, nodes: int) -> list[Partition]:
    default = draw.one("a", "b", None, None)
    return [
        Partition(
            name=name,
            nodes=draw.nodes(nodes),
            default=name == default,
            priority=draw.one(0, 0, 0, 1),
            max_wall_time_s=draw.one(None, None, None, 20),
            max_nodes=draw.one(None, None, None, 2),
        )
        for name in "abc"[: draw.whole(1, 3)]
    ]


def _types(draw: _Draw, nodes: int, per_node: int, taken: Collection[str], *, memory: bool) -> list[NodeType]:
    middle, speeds = draw.whole(1, nodes), "speeds" in taken and draw.has("speeds", 2)
    sizes = per_node > 1 and draw.has("sizes", 4)
    return [
        NodeType(
            name=name,
            nodes=f"{low}-{high}",
            memory_gib=draw.one(2, 4, 5) if memory else None,
            speed=draw.one(1, 1, 0.5, 2) if speeds else 1,
            features=draw.one((), ("x",), ("x", "y")),
            processors_per_node=draw.one(None, 1, 3) if sizes else None,
        )
        for name, low, high in (("s", 0, middle - 1), ("t", middle, nodes - 1))
        if low <= high and (name == "s" or draw.has("second type", 2))
    ]


def _jobs(
    draw: _Draw,
    nodes: int,
    per_node: int,
    parts: Collection[Partition],
    types: Collection[NodeType],
    taken: Collection[str],
    *,
    grid: float,
    memory: bool,
) -> list[Job]:
    """Return jobs close together."""
    names = [each.name for each in parts] or ["a"]
    if len(names) > 1 and draw.has("several partitions"):
        names += ["a,b", "b,a", ",".join(reversed(names))]
    depend, alone, ranks = draw.has("dependencies"), draw.has("singletons", 6), (0, 0, 1) if draw.has("priorities", 4) else (0,)
    shapes = per_node > 1 and draw.has("shapes", 2)
    malleable = draw.has("malleable jobs", 1.5 if "resizes" in taken else 8)
    sizes_differ = any(each.processors_per_node for each in types)
    under, costs, store = draw.has("underestimates"), draw.has("costs of jobs", 5), draw.has("image", 4)
    asks_types, jobs = bool(types) and draw.has("asks for types", 2), []
    count = draw.whole(1, draw.one(4, 14))
    ids = draw.rng.sample(range(1, 40), count)
    for place, number in enumerate(ids):
        run = draw.whole(1, draw.one(10, 30)) * grid
        extra = draw.one(0, 0, 1, 10, 40) * grid
        estimate = max(grid, run - 3 * grid) if under and draw.rng.random() < 0.3 else run + extra
        more: dict[str, Any] = {}
        if depend and place and draw.rng.random() < 0.4:
            others = draw.rng.sample(ids[:place], min(place, draw.whole(1, 2)))
            if draw.rng.random() < 0.1:
                others.append(99)  # which is no job of the workload
            more[draw.one("after", "after_ok", "after_any", "after_not_ok")] = others
        if alone:
            more["job_name"] = draw.one(*NAMES)
            more["singleton"] = more["job_name"] is not None and draw.rng.random() < 0.6
        size = draw.whole(1, nodes) if draw.rng.random() < 0.95 else draw.one(nodes + 1, 3 * nodes)
        if per_node > 1:
            each = draw.one(None, None, *range(1, per_node + 1)) if shapes else None
            size = draw.whole(1, 6) * (each or 1)
            if shapes:
                whole = not sizes_differ and draw.rng.random() < 0.25
                more |= {"processors_per_node": each, "max_nodes_used": draw.one(None, None, 1, 2), "whole_nodes": whole}
        shaped = any(more.get(name) for name in ("processors_per_node", "max_nodes_used", "whole_nodes"))
        if malleable and not shaped and draw.rng.random() < 0.6:
            more |= {"malleable": True, "min_nodes": draw.one(None, None, 1, max(1, size // 2), size)}
            more |= {"max_nodes": draw.one(None, None, size, size + 1, 2 * size), "resize_s": draw.one(None, None, 0, 2)}
        if asks_types:
            more |= {
                "node_type": draw.one(None, None, "s", "t", "s,t"),
                "features": draw.one(None, None, None, "x", "x&y", "x|z"),
            }
        if costs:
            more |= {"checkpoint_s": draw.one(None, 0, 2), "restart_s": draw.one(None, 0, 1)}
            if "rows" in taken:
                more["context_switch_s"] = draw.one(None, 0, 0.2)
            else:
                more |= {"startup_s": draw.one(None, 0, 3), "epilog_s": draw.one(None, 0, 2)}
        gib = draw.one(None, 0, 1, 2, 3, 5) if memory else draw.one(0, 1, 2) if store else None
        jobs.append(
            Job(
                id=number,
                nodes=size,
                submit_s=round(draw.whole(0, draw.one(10, 40)) * grid, 6),
                run_s=round(run, 6),
                estimate_s=round(estimate, 6),
                user=draw.one(*USERS),
                account=draw.one(*ACCOUNTS),
                qos=draw.one(*NAMES_OF_QOS),
                partition=draw.one(None, *names),
                priority=draw.one(*ranks),
                memory_gib=gib,
                **more,
            )
        )
    return jobs


def _with_costs(draw: _Draw, machine: Machine, taken: Collection[str]) -> Machine:
    """Return the machine with what gangs pay: start-up, epilog, switches, checkpoints and resizes."""
    quantum = machine.time_slicing.quantum_s
    if "startup" in taken and draw.has("start-up and epilog"):
        machine = replace(machine, startup_s=draw.one(0, 1, 3, SizeCost(base_s=1, per_node_s=0.5)), epilog_s=draw.one(0, 1, 2))
    if "rows" in taken and draw.has("switch costs"):
        charge = draw.one("on-change", "every-slice")
        by_size = SizeCost(base_s=quantum / 100, per_node_s=quantum / 200)
        switch = draw.one({"fraction": 0.1}, {"seconds": quantum / 10}, {"seconds": by_size})
        machine = replace(machine, context_switch=ContextSwitch(charge=charge, **switch))
    if draw.has("costly resizes", 2):
        machine = replace(machine, resize_s=draw.one(0, 1, 5))
    if machine.node_speeds is not None:
        return machine
    costs = Checkpointing()
    if draw.has("checkpoint costs"):
        costs = Checkpointing(checkpoint_s=draw.one(0, 1, 3), restart_s=draw.one(0, 2))
        if draw.has("task limit Q", 3):
            costs = replace(costs, max_tasks_per_slice=draw.whole(1, machine.nodes), counts=draw.one("gang", "moved", "spread"))
    elif draw.has("store", 6):
        rate = draw.one(0.5, 1, 1.5)
        store = CheckpointStore(node_bandwidth_gib_s=rate)
        if "store" in taken:
            store = draw.one(
                CheckpointStore(bandwidth_gib_s=rate, max_concurrent_tasks=draw.one(None, 1, 3)),
                CheckpointStore(bandwidth_gib_s=rate, writers=draw.one(*WRITERS)),
            )
        costs = Checkpointing(store=store)
    if draw.has("periodic checkpoints", 6) and not ("rows" in taken and costs.max_tasks_per_slice is not None):
        costs = replace(costs, interval_s=draw.one(2, 5, 12))
    if draw.has("suspended", 8):
        machine = replace(machine, suspended_per_node=draw.whole(0, 2))
    return replace(machine, checkpointing=costs)


def _reservations(draw: _Draw, nodes: int) -> list[Reservation]:
    """Return one or two reservations, once or every so often; the periods fit each other."""
    made = []
    for number in range(draw.whole(1, 2)):
        start, length = draw.whole(0, 60), draw.whole(1, 20)
        every = draw.one(None, None, 25, 50, 100, 400) if draw.has("recurring reservations", 1.3) else None
        made.append(
            Reservation(
                nodes=draw.one(None, draw.nodes(nodes)),
                start_s=start,
                end_s=start + length,
                every_s=every,
                accounts=draw.one((), (), ("bio",)),
                users=draw.one((), (), ("1", "2")),
                name=draw.one("", "", "course" if number else "workshop"),
            )
        )
    return made


def _failures(draw: _Draw, nodes: int, *, known: bool) -> Outages:
    """Return outages of nodes, some of which may be known in advance."""
    down, node, up = [], [], []
    free = [-1.0] * nodes
    for time in sorted(float(draw.whole(0, 60)) for _ in range(draw.whole(1, 5))):
        which, repair = draw.whole(0, nodes - 1), draw.one(0.000001, 1, 5, 40, 200)
        if time > free[which]:
            down.append(time)
            node.append(which)
            up.append(time + repair)
            free[which] = time + repair
    flags = tuple(draw.rng.random() < 0.5 for _ in down) if known else ()
    return Outages(node=np.array(node), down_s=np.array(down), up_s=np.array(up), nodes=nodes, known=flags)


def _power(draw: _Draw) -> Power:
    idle = draw.one(0, 1, 100)
    return Power(
        busy_w=idle + draw.one(1, 50, 250.5),
        idle_w=idle,
        switching_w=draw.one(None, idle, 400),
        down_w=draw.one(0, 0, 120),
        off_w=draw.one(0, 5),
        boot_s=draw.one(0, 1, 3, 15),
        boot_w=draw.one(None, 500),
    )


def _with_power(draw: _Draw, machine: Machine, taken: Collection[str]) -> Machine:
    if not draw.has("power", 2):
        return machine
    machine = replace(machine, power=_power(draw))
    if draw.has("price", 4):
        machine = replace(machine, price=Price(time_s=(0.0, 20.0, 50.0), price=(1.0, 0.3, 2.0), every_s=100))
    if machine.node_types and "rows" not in taken and draw.has("powers", 4):
        machine = replace(machine, node_types=[replace(each, power=_power(draw)) for each in machine.node_types])
    if "off" in taken and len(machine.powers) == 1 and draw.has("nodes switched off", 2):
        machine = replace(machine, idle_off_s=draw.one(0.000001, 1, 5, 30))
    differ = machine.has_shared_nodes and (machine.partitions or machine.node_types or machine.node_memory is not None)
    if not differ and draw.has("power cap", 2):
        draws = [(unused, most) for bounds, unused, most in machine.draws for _ in range(sum(bounds[1::2]) - sum(bounds[::2]))]
        least = sum(unused for unused, _ in draws) + min(most - unused for unused, most in draws)
        cap = draw.whole(least, max(least, sum(most for _, most in draws)))
        machine = replace(machine, power_cap_w=-(-cap // 1000) / 1000)  # in whole milliwatts, as a float holds them
    return machine


def _limit(draw: _Draw, nodes: int) -> Limits:
    """Return a limit of some of the jobs."""
    who: dict[str, Any] = {}
    for name, values in (
        ("user", ("*", 1, 2)), ("account", ("*", "bio")), ("partition", ("*", "a")),
        ("qos", ("*", "low", "part", ["low", "high"])),
    ):  # fmt: skip
        if draw.rng.random() < 1 / 3:
            who[name] = draw.one(*values)
    if "qos" not in who and draw.rng.random() < 0.25:
        who["yields_to_qos"] = draw.one("max", "grp")
    kinds = ["running_jobs", "nodes", "node_hours", "submitted_jobs", "wall_time_s", "job_nodes", "both"]
    kinds += ["processors", "processor_hours", "job_processors"]
    kind = draw.one(*kinds)
    if kind == "both":
        return Limits(**who, running_jobs=draw.whole(1, 3), nodes=draw.whole(1, nodes))
    most: dict[str, Any] = {
        "running_jobs": draw.whole(1, 3),
        "submitted_jobs": draw.whole(1, 4),
        "nodes": draw.whole(1, nodes),
        "job_nodes": draw.whole(max(nodes // 2, 1), nodes),
        "node_hours": draw.whole(10, 40 * nodes) / 3600,
        "wall_time_s": draw.whole(20, 60),
        "processors": draw.whole(1, 2 * nodes),
        "processor_hours": draw.whole(10, 40 * nodes) / 3600,
        "job_processors": draw.whole(max(nodes // 2, 1), nodes),
    }
    return Limits(**who, **{kind: most[kind]})


def _qos(draw: _Draw, partitions: Iterable[str]) -> list[QOS]:
    """Return which QOS partitions have, and what QOS lift."""
    made, left = [], set(partitions)
    for name in ("high", "low", "part"):
        own = sorted(each for each in left if draw.rng.random() < 1 / 3)
        left -= set(own)
        flags = {
            flag: draw.rng.random() < 1 / 3 for flag in ("over_partition_qos", "lifts_partition_time", "lifts_partition_nodes")
        }
        made.append(QOS(name=name, partitions=own, **flags))
    return made


# Smaller cases


def smaller(case: Case, fails: Callable[[Case], bool], *, attempts: int = 400) -> Case:
    """Return the case without whatever can be left out while it still fails."""
    left, found = attempts, True
    while found and left > 0:
        found = False
        for simpler in _simpler(case):
            left -= 1
            if left <= 0:
                break
            if fails(simpler):
                case, found = simpler, True
                break
    return case


def _simpler(case: Case) -> Iterator[Case]:
    """Yield cases with a job, a rule or a value less."""
    jobs = case.jobs
    for half in (jobs[: len(jobs) // 2], jobs[len(jobs) // 2 :]) if len(jobs) > 3 else ():
        yield replace(case, jobs=half)
    for job in jobs if len(jobs) > 1 else ():
        yield replace(case, jobs=tuple(other for other in jobs if other is not job))
    if case.arrays:
        yield replace(case, arrays={}, site=case.site and replace(case.site, array_limits=False))
    for changes in ({"site": None}, {"events": "together"}, {"speedup": LinearSpeedup()}, {"seed": 1}):
        if any(getattr(case, name) != value for name, value in changes.items()):
            yield replace(case, **changes)
    if ":" in case.policy:
        yield replace(case, policy=case.policy.partition(":")[0])
    for part in _without_fields(case.machine, keep=("nodes",)):
        yield replace(case, machine=part)
    for site in () if case.site is None else _without_fields(case.site):
        yield replace(case, site=site)
    for place, job in enumerate(jobs):
        for simpler in _without_fields(job, keep=("id", "nodes", "submit_s", "run_s")):
            yield replace(case, jobs=(*jobs[:place], simpler, *jobs[place + 1 :]))


def _without_fields(value: Any, keep: Collection[str] = ()) -> Iterator[Any]:
    """Yield a specification with one field as by default, or with less in it."""
    for each in fields(value):
        own = getattr(value, each.name)
        if each.name in keep:
            continue
        changes = []
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        if default is not MISSING and (isinstance(own, np.ndarray) or own != default):
            changes.append(default)
        if isinstance(own, tuple) and len(own) > 1:
            changes += [tuple(other for other in own if other is not one) for one in own]
        if isinstance(own, tuple) and own and is_dataclass(own[0]):
            changes += [(*own[:i], less, *own[i + 1 :]) for i, one in enumerate(own) for less in _without_fields(one)]
        elif isinstance(own, Outages) and len(own.node) > 1:
            changes += [_kept(own, [i for i in range(len(own.node)) if i != out]) for out in range(len(own.node))]
        elif is_dataclass(own) and not isinstance(own, (type, Outages)):
            changes += list(_without_fields(own))
        for changed in changes:
            with suppress(SpecificationError, TypeError):
                yield replace(value, **{each.name: changed})


def _kept(outages: Outages, places: list[int]) -> Outages:
    known = tuple(outages.known[place] for place in places) if outages.known else ()
    return replace(outages, node=outages.node[places], down_s=outages.down_s[places], up_s=outages.up_s[places], known=known)
