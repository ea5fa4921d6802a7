"""What preemption does to a job: kill and restart, checkpoint and restart, or suspend and resume."""

from __future__ import annotations

from typing import Final, Literal, cast, get_args

from clustermodel.errors import SpecificationError
from clustermodel.machine import Machine
from clustermodel.validation import choice

Mode = Literal["kill", "checkpoint", "suspend"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)


def mode_of(policy: str, mode: str, *, parameter: str = "mode") -> Mode:
    """Return ``mode``, what preemption does to a job.

    Args:
        policy: name of the policy.
        mode: given for it.
        parameter: what the policy calls it.

    Raises:
        SpecificationError: ``mode`` is none of ``MODES``.
    """
    return cast("Mode", choice(f"{policy}: {parameter}", mode, MODES))


def uses_of_mode(mode: Mode) -> frozenset[str]:
    """Return the parts of the machine on which preemption in this mode depends."""
    if mode == "kill":
        return frozenset()
    if mode == "checkpoint":
        return frozenset({"checkpointing"})
    return frozenset({"checkpointing", "context_switch", "node_memory_gib", "suspended_per_node", "time_slicing"})


def require_store(policy: str, mode: Mode, machine: Machine, *, parameter: str = "mode") -> None:
    """Check that a job that is preempted in this mode can go on on other nodes.

    Args:
        policy: name of the policy.
        mode: what preemption does to a job.
        machine: what it runs on.
        parameter: what the policy calls the mode.

    Raises:
        SpecificationError: the mode keeps work, and the machine takes no checkpoints.
    """
    if mode != "kill" and machine.checkpointing.max_tasks_per_slice == 0:
        raise SpecificationError(
            f"{policy}: {parameter}={mode}: the machine takes no checkpoints (max_tasks_per_slice=0), "
            "so that no job could go on on other nodes"
        )
