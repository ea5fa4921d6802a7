"""The machine's nodes as a SimPy resource that grants whole gangs.

A gang asks once for all its nodes.  The resource never decides whose turn it is: a request waits until the coordinator
grants it.  A scan of the request queue (``simpy.Resource``) would be a scheduling policy of its own, and one request per
node joined by ``all_of`` deadlocks as soon as two gangs hold a part each of what both need.
"""

from __future__ import annotations

from simpy import Environment
from simpy.resources import base

from clustermodel.errors import DecisionError
from clustermodel.schedule.node_set import IdleNodes, NodeSet, count, is_node_set, text


class GangRequest(base.Get["NodePool"]):
    """A gang's request for nodes; its value, once granted, is the :data:`~clustermodel.schedule.node_set.NodeSet`."""

    def __init__(self, pool: NodePool, job_id: int, nodes: int) -> None:
        self.job_id = job_id
        self.nodes = nodes
        super().__init__(pool)

    def granted(self, columns: NodeSet) -> None:
        """Succeed as an event that is over: the gang's process, which has not asked yet, goes on without a pause."""
        self._ok = True
        self._value = columns
        self.callbacks = None  # type: ignore[assignment]  # SimPy's mark of a processed event


class NodePool(base.BaseResource[base.Put["NodePool"], GangRequest]):
    """The nodes of a machine; each is idle or held by one gang.

    Args:
        env: the simulation.
        nodes: size of the machine.
    """

    def __init__(self, env: Environment, nodes: int) -> None:
        super().__init__(env, nodes)
        self._idle = IdleNodes(nodes)

    @property
    def idle(self) -> int:
        """Number of nodes that no gang holds."""
        return self._idle.count

    def has_idle(self, columns: NodeSet) -> bool:
        """Tell whether all of ``columns`` are idle."""
        return self._idle.has(columns)

    def request(self, job_id: int, nodes: int) -> GangRequest:
        """Return a request for ``nodes`` at once, to be granted by the coordinator."""
        return GangRequest(self, job_id, nodes)

    def grant(self, request: GangRequest, columns: NodeSet | None = None) -> NodeSet:
        """Give the gang its nodes: ``columns`` if named, else the lowest idle ones, so that runs repeat.

        Raises:
            DecisionError: not as many are idle, or ``columns`` are not idle or not as many as the gang needs.
        """
        idle = self._idle
        if columns is None:
            if request.nodes > idle.count:
                raise DecisionError(
                    f"job {request.job_id} cannot start: it needs {request.nodes} nodes and {idle.count} are idle"
                )
            columns = idle.take_lowest(request.nodes)
        elif not is_node_set(columns):
            raise DecisionError(
                f"job {request.job_id} cannot start on columns {columns!r}: they must be ascending ranges, (low, high, ...)"
            )
        elif count(columns) != request.nodes:
            raise DecisionError(
                f"job {request.job_id} cannot start on {count(columns)} columns ({text(columns)}): "
                f"its gang needs {request.nodes}"
            )
        elif not idle.take(columns):
            raise DecisionError(f"job {request.job_id} cannot start on columns {text(columns)}: not all of them are idle")
        self.get_queue.remove(request)
        request.granted(columns)
        return columns

    def take_whole_machine(self) -> None:
        """Hand all nodes to the time-slice process, for good.

        Raises:
            DecisionError: a gang that shares nothing in time holds some of them.
        """
        if self.idle < self._capacity:
            raise DecisionError(
                f"nodes cannot be shared in time while {self._capacity - self.idle} of {self._capacity} are held "
                "without a row; a policy starts either all jobs in rows or none"
            )
        self._idle.take_lowest(self.idle)

    def release(self, columns: NodeSet) -> None:
        """Take a gang's nodes back."""
        self._idle.give_back(columns)

    def _trigger_get(self, put_event: base.Put[NodePool] | None) -> None:
        """Grant nothing: the coordinator does."""

    def _trigger_put(self, get_event: GangRequest | None) -> None:
        """Nodes are released, not put."""
