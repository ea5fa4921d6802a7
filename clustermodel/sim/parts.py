"""The parts of one run, each made of those that it needs: the machine, its nodes, the jobs, the rules and the books."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from clustermodel.errors import DecisionError, SpecificationError
from clustermodel.machine.machine import Machine
from clustermodel.plans.windows import Windows
from clustermodel.policies.interface import Policy, Reason
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Ledger, UnusedNodes
from clustermodel.recording.matrix_history import History
from clustermodel.sim.checkpoint_store import Store
from clustermodel.sim.dedicated_nodes import DedicatedNodes
from clustermodel.sim.events import Clock, InstantSettled
from clustermodel.sim.guard import Guard, is_shipped
from clustermodel.sim.held_jobs import HeldJobs
from clustermodel.sim.job_process import Execution, JobInSystem
from clustermodel.sim.node_failures import NodeStates
from clustermodel.sim.node_pool import NodePool
from clustermodel.sim.node_requests import NodeChoice, requests_of
from clustermodel.sim.node_types import Speeds, places_of
from clustermodel.sim.partitions import Lifting
from clustermodel.sim.phases import Phases
from clustermodel.sim.power_cap import CapWaits, cap_of
from clustermodel.sim.reservations import KeptFree, Reservations
from clustermodel.sim.resizing import Resizes
from clustermodel.sim.rules import Rule
from clustermodel.sim.saved_work import SavedWork
from clustermodel.sim.segments import JobTimes
from clustermodel.sim.site_order import SiteOrder
from clustermodel.sim.switching_off import SwitchedOff
from clustermodel.sim.unreported_ends import UnreportedEnds
from clustermodel.workload.job import Demands
from clustermodel.workload.speedup import Speedup

if TYPE_CHECKING:
    from clustermodel.sim.time_sharing.shared_nodes import TimeSharing

    Sharing: TypeAlias = DedicatedNodes | TimeSharing


class Parts:
    """What the coordinator and the decisions work with."""

    def __init__(
        self, machine: Machine, policy: Policy, speedup: Speedup, records: JobRecords, demands: Demands, lifting: Lifting,
        held: HeldJobs | None, order: SiteOrder | None, *, explain: bool, history: bool, fidelity: str, events: str,
        by_node: bool,
    ) -> None:  # fmt: skip
        self.machine, self.records = machine, records
        self.guard = None if is_shipped(policy) else Guard(policy.name)  # keeps a user's policy from assigning to jobs
        self.node_by_node, self.one_by_one = fidelity == "node", events == "one-by-one"
        self.reasons: dict[int, Reason] | None = {} if explain else None  # job id -> why it started; ``None`` unless asked for
        self.history = History(machine.time_slicing.quantum) if history else None  # states of the Ousterhout matrix
        self.places = places_of(machine, demands, lifting)  # which nodes jobs may have; ``None`` where each may have all
        self.rows: int = getattr(policy, "rows_on", _none)(machine)  # of the Ousterhout matrix; 0 where there are none
        step: int = getattr(policy, "step_on", _none)(machine)  # at multiples of which alone it decides, ticks; 0: at any time
        # Whether it may never start a job that could: it decides at certain times only, or expects jobs to run longer.
        may_miss = step > 1 or getattr(policy, "predictor", "estimate") != "estimate"
        # What jobs ask of nodes; ``None`` where that is a number of processors.
        self.requests = requests = requests_of(machine, demands, by_node=by_node)
        speeds = machine.node_speeds
        self.speeds = None if speeds is None else Speeds(speeds, machine.node_sizes)  # of nodes, if these differ
        self.held = held  # the jobs that rules of the site keep from the queue; ``None`` without rules
        self.env = env = Clock()
        self.jobs: dict[int, JobInSystem] = {}  # the jobs in the system by id
        self.running: dict[int, Execution] = {}  # the running gangs by job id
        self.settled = InstantSettled(env)  # what ends an instant: whatever the coordinator has to know of arms it
        self.ledger = Ledger(machine.processors)
        self.unused = UnusedNodes(self.ledger)
        self.pool = NodePool(env, machine)  # the nodes, and the queue for them
        self.store = Store(env, machine)  # where gangs are checkpointed
        self.phases = Phases(machine, demands)  # what run attempts consist of
        self.times = JobTimes(speedup, kill_at_estimate=machine.kill_at_estimate)
        self.saved = SavedWork(env, machine, self.phases.transfers, records, self.jobs, self.running)
        self.cap = cap_of(machine)  # which nodes are out of service because of the power cap; ``None`` where none are
        self.choice = NodeChoice(self.pool, self.saved, requests, self.cap)  # which idle nodes a job would have
        windows = Windows(machine.windows, len(machine.reservations)) if machine.windows else None
        self.states = NodeStates(
            env, machine, self.settled, self.ledger, self.unused, records, self.cap, windows, self.saved, self.pool, self.jobs
        )
        if (after := machine.idle_off) is not None:
            self.pool.switched_off = SwitchedOff(env, machine, after, self.saved, self.unused, records, self.jobs)
        self.resizes = Resizes(
            env, machine, self.phases, self.times, self.pool, self.choice, self.saved, records, self.ledger, windows
        )
        self.kept_free: KeptFree | None = None  # nodes that are reserved
        self.reservations: Reservations | None = None  # when nodes are kept free
        if windows is not None:
            self.kept_free = KeptFree(env, windows, self.pool, self.cap, self.unused, records, self.jobs)
            self.reservations = Reservations(
                env, self.settled, machine, windows, demands, records, self.jobs, self.running, self.pool, self.choice,
                self.phases, self.times, self.states, self.kept_free, self.rows, step, may_miss=may_miss,
            )  # fmt: skip
            if self.pool.switched_off is not None:
                self.pool.switched_off.note = self.reservations.note
        # Whether all jobs may have all nodes at any time, so that nothing of this kind has to be looked at.
        self.any_node = self.places is None and requests is None and self.speeds is None and windows is None
        self.sharing: Sharing = DedicatedNodes(  # gives nodes to gangs; time sharing from a first row on
            env, machine, self.phases, self.pool, self.saved, self.store, self.ledger, records, windows, self.running
        )
        # Where each event of an instant is a scheduling cycle.
        self.unreported = UnreportedEnds(self.pool, self.saved, self.choice)
        cap_waits: CapWaits | None = None  # how long jobs wait because of the power cap
        if self.cap is not None and not records.ids_rise:
            cap_waits = CapWaits(env, records, self.cap, machine.processors, self.pool.unused)
        if order is not None:
            order.begin(env, self.pool, self.running)
        self.rules: tuple[Rule, ...] = tuple([rule for rule in (self.reservations, held, order, cap_waits) if rule is not None])

    def share_in_time(self) -> TimeSharing:
        """Let gangs share the nodes in time from now on; those in rows go on without a restart."""
        machine, charge = self.machine, self.machine.checkpointing.restart_charge
        if charge != "on-start":
            raise DecisionError(
                f"nodes cannot be shared in time where restarts are charged {charge} (Checkpointing.restart_charge), "
                "because gangs in rows go on without a restart; use 'on-start'"
            )
        for refuses, where in (
            (machine.idle_off is not None, "where idle ones are switched off (Machine.idle_off_s)"),
            (self.phases.occupy, "where jobs have a start-up or an epilog (startup_s, epilog_s of Machine or Job)"),
            (self.phases.switch_of_all is None, "where context switches differ (ContextSwitch.seconds, Job.context_switch_s)"),
            (self.speeds is not None, "where they differ in speed (NodeType.speed)"),
            (len(machine.powers) > 1, "where they differ in power (NodeType.power)"),
        ):
            if refuses:
                raise DecisionError(f"nodes cannot be shared in time {where}")
        # Runs without gangs in rows do not import the modules.
        from clustermodel.sim.time_sharing.node_by_node import NodeByNode  # noqa: PLC0415
        from clustermodel.sim.time_sharing.shared_nodes import OfRun  # noqa: PLC0415
        from clustermodel.sim.time_sharing.slices import ComputedSlices, KeptSlices  # noqa: PLC0415

        self.pool.take_whole_machine()
        if self.one_by_one:
            raise SpecificationError("events: 'one-by-one' is for dedicated nodes, and the policy shares nodes in time")
        keeps = machine.time_slicing.at_events == "keep" or machine.windows
        kind: type[TimeSharing] = NodeByNode if self.node_by_node else KeptSlices if keeps else ComputedSlices
        of_run = OfRun(
            self.env, machine, self.phases, self.saved, self.store, self.ledger, self.records, self.states, self.kept_free,
            self.history,
        )  # fmt: skip
        self.sharing = sharing = kind(of_run)
        self.pool.in_rows = sharing.unused
        for node in self.states.down:
            sharing.change_nodes((node, node + 1), down=True)
        return sharing


def _none(_machine: Machine) -> int:
    return 0
