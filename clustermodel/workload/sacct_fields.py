"""The fields and states of Slurm's accounting, and what becomes of a record in each state."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from clustermodel.errors import quoted
from clustermodel.workload.sacct_records import Layout

STATUS: Final = {
    "COMPLETED": 1,
    **dict.fromkeys(
        ("FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "LAUNCH_FAILED", "RECONFIG_FAIL",
         "PREEMPTED", "REQUEUED", "RESIZING", "SPECIAL_EXIT", "REQUEUE_HOLD"),
        0,
    ),
    **dict.fromkeys(("CANCELLED", "REVOKED"), 5),
}  # fmt: skip
"""SWF status of the states in which a run attempt has ended."""
REQUEUED: Final = frozenset(
    ("PREEMPTED", "REQUEUED", "NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RESIZING", "SPECIAL_EXIT", "REQUEUE_HOLD")
)
"""States after which a further record of the job is a further run attempt."""
WAITING_STATES: Final = frozenset(("PENDING", "REQUEUE_FED", "RESV_DEL_HOLD"))
RUNNING_STATES: Final = frozenset(
    ("RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "SIGNALING", "STAGE_OUT", "STOPPED", "POWER_UP_NODE", "EXPEDITING")
)

STEP: Final = "steps"
NEVER: Final = "never started"
WAITING: Final = "still waiting"
RUNNING: Final = "still running or suspended"
NO_TIME: Final = "with run time zero"
NO_SUBMISSION: Final = "without a submission time"
NO_START: Final = "without a start time"
NO_LENGTH: Final = "without a run time"

MOST_SUSPICIOUS_S: Final = 60
"""Differences of times in a record, seconds, up to which they agree."""
SUSPENSION: Final = "elapsed time less than end - start - suspended time, the rest counted as suspended"
OTHER_TIME: Final = "elapsed time is not end - start - suspended time, elapsed time used"
SIZE_MISSING: Final = tuple(f"{size} size missing, the other one used" for size in ("allocated", "requested"))
"""What is repaired if allocated sizes are preferred, or requested ones."""


class Fields:
    """Where the fields stand that an import reads; -1 for those that a log does not have."""

    def __init__(self, layout: Layout) -> None:
        at = layout.position
        self.layout = layout
        self.job_id, self.raw_id = at("jobid", "jobidraw"), at("jobidraw")
        self.cluster, self.state, self.user, self.uid = at("cluster"), at("state"), at("user"), at("uid")
        self.group, self.gid, self.account = at("group"), at("gid"), at("account")
        self.partition, self.qos, self.job_name = at("partition"), at("qos"), at("jobname")
        self.submit, self.start, self.end = at("submit"), at("start"), at("end")
        self.eligible = at("eligible")
        self.elapsed_raw, self.elapsed, self.suspended = at("elapsedraw"), at("elapsed"), at("suspended")
        self.limit_raw, self.limit, self.restarts = at("timelimitraw"), at("timelimit"), at("restarts")
        self.alloc_tres, self.req_tres, self.req_mem = at("alloctres"), at("reqtres"), at("reqmem")
        self.alloc_nodes, self.nnodes, self.req_nodes = at("allocnodes"), at("nnodes"), at("reqnodes")
        self.alloc_cpus, self.req_cpus = at("alloccpus", "ncpus"), at("reqcpus")
        self.alloc_gres, self.req_gres, self.node_list = at("allocgres"), at("reqgres"), at("nodelist")


@lru_cache(maxsize=4096)
def state_of(text: str) -> str:
    """Return the state of ``CANCELLED by 1001``, or of ``OUT_OF_ME+``, as sacct cuts it in a narrow column."""
    state = text.split(" ", 1)[0].upper()
    if not state.endswith("+"):
        return state
    whole_states = [known for known in (*STATUS, *WAITING_STATES, *RUNNING_STATES) if known.startswith(state[:-1])]
    return whole_states[0] if len(whole_states) == 1 else state


def why_not_ended(text: str) -> str:
    """Return what a record counts as whose state is none of :data:`STATUS`."""
    state = state_of(text)
    if state in WAITING_STATES:
        return WAITING
    return RUNNING if state in RUNNING_STATES else f"of unknown state {quoted(text.strip())}"
