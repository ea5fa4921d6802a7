"""Does a job with periodic checkpoints complete when Daly's exact formula says, whatever its interval?

One job of 20 mean times between failures on one node with exponential failures.  A checkpoint takes 6 minutes, a restart 3, a
repair 12.  The intervals are multiples of the optimal one, for MTBFs of 24 and 2 hours (Daly 2006).

    clustermodel validate scenarios/validation/checkpoint_interval.py --out results --set at_most=100
"""

from clustermodel import Checkpointing, Job, Machine, NodeFailures, Result, Scenario, Validation, Workload, validate
from clustermodel.theory.checkpointing import expected_completion_s, optimal_interval_s

HOUR = 3600.0
CHECKPOINT_S, RESTART_S, REPAIR_S = 360.0, 180.0, 720.0
LENGTH = 20
"""Work of the job in mean times between failures."""


def interval_s(mtbf_h: float, multiple: float) -> float:
    """Return the work between two checkpoints, seconds."""
    return multiple * optimal_interval_s(CHECKPOINT_S, mtbf_h * HOUR)


def formula(mtbf_h: float, multiple: float) -> float:
    mtbf_s = mtbf_h * HOUR
    mean_s = expected_completion_s(
        LENGTH * mtbf_s, interval_s(mtbf_h, multiple), mtbf_s=mtbf_s, checkpoint_s=CHECKPOINT_S, restart_s=RESTART_S,
        downtime_s=REPAIR_S, first_restart_s=0.0,
    )  # fmt: skip
    return mean_s / HOUR


def completion_h(result: Result) -> float:
    return float(result.jobs["end_s"].iloc[0]) / HOUR


def study(
    at_most: int = 4_000,
    mtbfs_h: tuple[float, ...] = (24.0, 2.0),
    multiples: tuple[float, ...] = (0.33, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0),
) -> Validation:
    def scenario(mtbf_h: float, multiple: float, seed: int) -> Scenario:
        failures, interval = NodeFailures(mtbf_s=mtbf_h * HOUR, repair_s=REPAIR_S), interval_s(mtbf_h, multiple)
        saving = Checkpointing(checkpoint_s=CHECKPOINT_S, restart_s=RESTART_S, interval_s=interval)
        machine = Machine(nodes=1, failures=failures, checkpointing=saving)
        job = Job(id=1, submit_s=0, nodes=1, run_s=LENGTH * mtbf_h * HOUR)
        return Scenario(machine=machine, workload=Workload.from_jobs([job]), policy="fcfs", seed=seed)

    return validate(
        formula,
        scenario=scenario,
        factors={"mtbf_h": mtbfs_h, "multiple": multiples},
        measure=completion_h,
        margin=0.01,
        replications=100,
        at_most=max(at_most, 100),
        name="Periodic checkpoints: completion of a job (h)",
        text=__doc__ or "",
    )
