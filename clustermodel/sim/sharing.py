"""How the nodes of a machine are given to gangs: what the coordinator asks of either way, dedicated nodes or time sharing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from clustermodel.recording.slice_log import SliceLog
from clustermodel.schedule.node_set import NodeSet
from clustermodel.sim.job_process import Execution, JobInSystem, Terms


class Sharing(Protocol):
    """Where gangs run."""

    @property
    def slice_log(self) -> SliceLog | None:
        """What ran between scheduling events; ``None`` where nodes are not shared in time."""

    @property
    def is_settled(self) -> bool:
        """Whether gangs do anything at scheduling cycles: where they do not, :meth:`settle` and :meth:`resume` do nothing."""

    def shared_in_time(self, down: Iterable[NodeSet]) -> Sharing:
        """Return time sharing of the same nodes; itself if that is what it is.

        Args:
            down: the nodes that are down.

        Raises:
            DecisionError: gangs hold nodes to themselves.
        """

    def start(self, job: JobInSystem, terms: Terms, columns: NodeSet | None, row: int | None) -> Execution:
        """Give a job its nodes and return its run attempt, which its process will run.

        Args:
            job: a waiting job.
            terms: on which it starts.
            columns: the nodes to use; ``None`` leaves the choice.
            row: of the Ousterhout matrix, where nodes are shared in time.

        Raises:
            DecisionError: the nodes are taken or not as many as it needs, or what is saved of it cannot be restored there.
        """

    def migrate(self, moves: list[tuple[Execution, NodeSet]], blocked: list[Execution]) -> None:
        """Move gangs to other nodes by checkpoint and restart.

        Args:
            moves: gangs and their new nodes.
            blocked: gangs that wait until the checkpoints are written.

        Raises:
            DecisionError: that is impossible.
        """

    def take_down(self, columns: NodeSet) -> None:
        """Take nodes out of service that have failed, and that no gang holds any more."""

    def put_up(self, columns: NodeSet) -> None:
        """Put nodes that have been repaired back into service."""

    def settle(self, now: int) -> None:
        """Bring what gangs have executed, the ledger and the logs up to ``now``."""

    def resume(self, *, waiting: bool) -> None:
        """Go on, now that the decisions of the present time have been carried out.

        Args:
            waiting: whether jobs wait from now on.

        Raises:
            DecisionError: gangs cannot run as they are.
        """
