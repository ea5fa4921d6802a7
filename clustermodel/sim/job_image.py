"""A job's image: what has been saved of it, where that is kept, and what becomes of it when a run attempt ends."""

from __future__ import annotations

from typing import Final, NamedTuple

from clustermodel.recording.run_attempts import Status
from clustermodel.schedule.node_set import NodeSet

SAVING: Final = (Status.CHECKPOINTED, Status.SUSPENDED)
"""Outcomes of a run attempt that keep what the job has executed."""
ENDS: Final = (Status.COMPLETED, Status.KILLED)
"""Outcomes that end a job whose work counts."""


class Image(NamedTuple):
    """What has been saved of a job."""

    work: int
    """How much of its run time is behind it, ticks."""
    stored: int
    """How much of that is in the checkpoint store, ticks: all of it, unless the image is in memory."""
    nodes: int
    """How many tasks it has; the job can go on with no other number of nodes."""
    columns: NodeSet | None = None
    """The nodes whose memory holds it; ``None`` where it is in the checkpoint store."""

    def restored_on(self, columns: NodeSet) -> Image:
        """Return what is saved once the job is on ``columns`` again: on other nodes it has come through the store."""
        if self.columns is None or self.columns == columns:
            return self._replace(columns=None)
        return self._replace(columns=None, stored=self.work)


def image_after(
    before: Image | None, outcome: Status, executed: int, nodes: int, columns: NodeSet, *, checkpointed: int = 0
) -> tuple[Image | None, int]:
    """Return what is saved of a job after a run attempt, and how much work that attempt's end discards, ticks.

    Args:
        before: what had been saved, on its nodes again when the attempt ends.
        outcome: how the attempt ended.
        executed: how long it executed, ticks.
        nodes: its size.
        columns: the nodes it ran on.
        checkpointed: how much of what it executed is in the checkpoint store by a periodic checkpoint, ticks.

    Returns:
        The image and the discarded work, that is of this attempt, and of earlier ones where that was saved in memory only.
    """
    if outcome in ENDS:
        return None, 0
    saved, stored = (before.work, before.stored) if before is not None else (0, 0)
    total = saved + executed
    if checkpointed:
        stored = saved + checkpointed
    match outcome:
        case Status.CHECKPOINTED:
            return Image(total, total, nodes), 0
        case Status.SUSPENDED:
            return Image(total, stored, nodes, columns), 0
        case Status.PREEMPTED | Status.REQUEUED | Status.FAILED:
            return (Image(stored, stored, nodes) if stored else None), total - stored
        case _:
            return None, total
