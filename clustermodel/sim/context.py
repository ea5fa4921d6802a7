"""What the parts of one run share: the simulation, the machine, its nodes, the jobs and the books."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from clustermodel.machine import Machine
from clustermodel.policies.interface import Reason
from clustermodel.recording.job_records import JobRecords
from clustermodel.recording.ledger import Ledger
from clustermodel.recording.matrix_history import History
from clustermodel.sim.checkpoint_store import Store
from clustermodel.sim.dedicated_nodes import DedicatedNodes
from clustermodel.sim.events import Clock, InstantSettled
from clustermodel.sim.job_process import Execution, JobInSystem
from clustermodel.sim.node_failures import NodeStates
from clustermodel.sim.node_pool import NodePool
from clustermodel.sim.saved_work import SavedWork
from clustermodel.speedup import Speedup

if TYPE_CHECKING:
    from clustermodel.sim.time_sharing.shared_nodes import TimeSharing

    Sharing: TypeAlias = DedicatedNodes | TimeSharing


class RunContext:
    """One run."""

    def __init__(
        self,
        machine: Machine,
        speedup: Speedup,
        records: JobRecords,
        *,
        explain: bool,
        history: bool,
        node_by_node: bool,
        one_by_one: bool,
    ) -> None:
        self.machine = machine
        self.speedup = speedup
        self.records = records
        self.node_by_node = node_by_node
        self.one_by_one = one_by_one
        self.reasons: dict[int, Reason] | None = {} if explain else None  # job id -> why it started; ``None`` unless asked for
        self.history = History(machine.time_slicing.quantum) if history else None
        """Every state of the Ousterhout matrix; ``None`` unless asked for."""
        self.env = Clock()
        self.jobs: dict[int, JobInSystem] = {}  # the jobs in the system by id
        self.running: dict[int, Execution] = {}  # the running gangs by job id
        self.settled = InstantSettled(self.env)  # what ends an instant: whatever the coordinator has to know of arms it
        self.ledger = Ledger(machine.processors)
        self.pool = NodePool(self.env, machine)  # the nodes, and the queue for them
        self.store = Store(self.env, machine)  # where gangs are checkpointed
        self.saved = SavedWork(self)  # what is saved of preempted jobs
        self.states = NodeStates(self)  # which nodes are down
        self.sharing: Sharing = DedicatedNodes(self)
        """Gives nodes to gangs: each its own, or all in turns from the first start in a row on."""
