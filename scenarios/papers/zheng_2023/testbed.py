"""How close is a simulated schedule of gangs to a schedule recorded on hardware?

Zheng et al. 2023 ran 120 jobs on 32 GPUs under several policies, in rounds of 120 s, and recorded which GPUs every job held in
every round.  Here the same jobs are simulated under ``max-min`` (Gavel), ``finish-time-fair`` (Themis) or any other policy.
The cost of a restart is estimated from the runs of the other policies, never from the run compared.

Small and full (10 s on two cores): the recorded runs are fixed, so there are no intervals.

    clustermodel sweep scenarios/papers/zheng_2023/testbed.py --out full --set records=../shared/traces/gpu/tacc
"""

import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.backend_bases import FigureCanvasBase
from recorded_rounds import (
    GPUS_PER_NODE,
    JOBS,
    NODES,
    RECORDED,
    ROUND_S,
    ROUNDS,
    Costs,
    Recorded,
    costs,
    others_than,
    read,
    read_folder,
    run_time_s,
)

from clustermodel import (
    Checkpointing,
    ClusterModelError,
    ContextSwitch,
    Machine,
    Result,
    Scenario,
    SpecificationError,
    Study,
    StudyTable,
    TimeSlicing,
    Workload,
)
from clustermodel.arrays import FloatArray
from clustermodel.figures.style import save
from clustermodel.policies.gang import GangScheduling
from clustermodel.policies.registry import make_policy, policy_parameters, policy_settings
from clustermodel.recording.matrix_history import History

ROWS = 8
AHEAD_S = ROUND_S // 2
"""Gavel decides the next round in the middle of the one that runs."""
SAME_POLICY = {"max_min_fairness": "max-min", "finish_time_fairness": "finish-time-fair"}
WORKS = ("recorded", "others")
"""Where the run times of jobs are from: the GPU-seconds of the run that is compared, or those of the other runs."""
DEFAULT_OTHERS = tuple(folder for up in Path(__file__).resolve().parents for folder in [up / "shared/traces/gpu/tacc"])
MEASURES = ("mean_completion_s", "makespan_s", "restarts", "correlation")
COLUMNS = {
    "run_recorded": "recorded",
    "work": "run times of jobs",
    "mean_completion_s": "mean completion time (%)",
    "makespan_s": "makespan (%)",
    "restarts": "starts and restarts (%)",
}
_CANNOT_TELL = "in_run_s, what a start adds to the GPU-seconds of a job, cannot be estimated from these runs"
ESTIMATES = {
    "start_s": "longer round for each start",
    "restart_s": "lost by each start",
    "in_run_s": "more GPU-seconds for each start, over GPUs",
    "first_round_s": "the first round begins",
}
POLICIES = (
    "max-min", "finish-time-fair", "las:thresholds=120/1200,promote=1", "srtf", "gs", "mgs", "bgs", "mbgs",
)  # fmt: skip


def scenario(run: Recorded, others: Sequence[Recorded], policy: str, work: str) -> Scenario:
    """Return the jobs of a recorded run on the testbed under a policy; jobs are submitted when the scheduler has begun."""
    spent = costs(others)
    if negative := [f"{name} = {value:.3f}" for name, value in spent._asdict().items() if value < 0]:
        names = ", ".join(other.name for other in others)
        raise SpecificationError(f"--others: the costs estimated from {names} are not of restarts: {negative[0]} s is below 0")
    if work == "others":
        _require_same_jobs(run, others)
        if np.isnan(spent.in_run_s):
            raise SpecificationError(f"--work others: {_CANNOT_TELL}; it takes two runs of other policies at least")
    restart_s = spent.restart_s + (spent.in_run_s if work == "others" else 0)
    run_s = run_time_s(others, spent.in_run_s) if work == "others" else run.run_s
    in_rows = isinstance(make_policy(policy), GangScheduling)  # there each start is a context switch, the first one, too
    jobs = pd.DataFrame(
        {
            "job": run.jobs.index,
            "submit_s": np.maximum(run.jobs["submit_s"], spent.first_round_s),
            "nodes": run.jobs["gpus"],
            "run_s": run_s.clip(lower=1) + (0 if in_rows else restart_s),  # the first start costs as much
        }
    )
    machine = Machine(
        nodes=NODES,
        gpus_per_node=GPUS_PER_NODE,
        allocation="consolidate",
        round_s=ROUND_S,
        kill_at_estimate=False,
        checkpointing=Checkpointing(restart_s=0 if in_rows else restart_s),
        time_slicing=TimeSlicing(quantum_s=ROUND_S, mpl=ROWS),
        context_switch=ContextSwitch(seconds=restart_s),
    )
    workload = Workload.from_frame(jobs.reset_index(drop=True), name=f"{run.name}, run times: {work}")
    workload = workload.with_recorded_placements(run.placements(max(0.0, costs([run]).start_s)))
    return Scenario(workload=workload, machine=machine, policy=in_rounds(policy, spent), history=True)


def _require_same_jobs(run: Recorded, others: Sequence[Recorded]) -> None:
    for other in others:
        if not other.jobs["gpus"].equals(run.jobs["gpus"]):
            raise SpecificationError(f"--work others: {other.name} has other jobs than {run.name}")


def in_rounds(policy: str, spent: Costs) -> str:
    """Return the policy with those times that the scheduler takes that are not given."""
    if not _is_in_rounds(policy):
        return policy
    times = {"ahead_s": f"{AHEAD_S}", "start_s": f"{spent.start_s:.4f}"}
    missing = ",".join(f"{name}={value}" for name, value in times.items() if name not in policy_settings(policy))
    return f"{policy}{',' if ':' in policy else ':'}{missing}" if missing else policy


def starts_of(result: Result) -> pd.DataFrame:
    """Return each stay of a gang on the same GPUs, where gangs have their GPUs for themselves: job, begin and end."""
    return result.placements.drop_duplicates(["job", "begin_s"])


def starts_and_moves(result: Result) -> tuple[int, int]:
    """Return how often gangs started or restarted, and how often they continued on other GPUs."""
    if result.slices is None:
        starts = len(starts_of(result))
        return starts, starts - int(result.jobs["tries"].sum())
    return starts_in_rows(result.history, result.ledger.end, result.machine.switch_ticks), moves_in_rows(result.history)


def starts_in_rows(history: History, end: int, switch: int) -> int:
    """Return in how many slices a gang begins on a GPU that did not run it last: what is charged as a context switch."""
    starts, loaded = 0, dict[int, int]()  # by job: the GPUs that ran it last, a bitmask
    for part in history.slices(0, end, end):
        in_use, ready = sum(gang.columns for gang in part.gangs), part.end - part.begin >= switch
        kept = {gang.job: gang.columns & loaded.get(gang.job, 0) for gang in part.gangs}
        starts += sum(kept[gang.job] != gang.columns for gang in part.gangs)
        loaded = {job: gpus & ~in_use for job, gpus in loaded.items()}
        loaded |= {gang.job: gang.columns if ready else kept[gang.job] for gang in part.gangs}  # else the slice was cut short
    return starts


def moves_in_rows(history: History) -> int:
    """Return how often gangs in the matrix changed their GPUs; a gang that runs in another row as well does not."""
    moves, columns = 0, dict[int, int]()
    for moment in history.moments:
        before, columns = columns, {gang.job: gang.columns for row in moment.rows for gang in row}
        moves += sum(columns[job] != before[job] for job in columns.keys() & before.keys())
    return moves


def completions_s(result: Result, run: Recorded, start_s: float) -> FloatArray:
    """Return the completion times; they are noted when a round is over."""
    ends: FloatArray = result.jobs["end_s"].to_numpy()
    if _is_in_rounds(str(result.scenario.policy)):
        begins = starts_of(result).groupby("begin_s").size()
        bounds = []
        for begin_s, count, until_s in zip(begins.index, begins, [*begins.index[1:], ends.max() + 2 * ROUND_S], strict=True):
            bounds.append(begin_s)
            if until_s > begin_s + ROUND_S + start_s * count:
                bounds += [*np.arange(begin_s + ROUND_S + start_s * count, until_s - 1, ROUND_S)]
        ends = np.asarray(bounds)[np.searchsorted(bounds, ends)]
    completions: FloatArray = ends - run.jobs["submit_s"].to_numpy()
    return completions


def _is_in_rounds(policy: str) -> bool:
    return "start_s" in policy_parameters(policy.partition(":")[0])


def compared(result: Result, run: Recorded, others: Sequence[Recorded]) -> dict[str, object]:
    """Return recorded and simulated numbers, and what was estimated from what."""
    spent, recorded_s = costs(others), run.completion_s.to_numpy()
    simulated_s, (starts, moves) = completions_s(result, run, spent.start_s), starts_and_moves(result)
    submit_s, differ = run.jobs["submit_s"].to_numpy(), recorded_s.std() > 0 and simulated_s.std() > 0
    pairs = {
        "mean_completion_s": (recorded_s.mean(), simulated_s.mean()),
        "makespan_s": tuple(float((submit_s + each).max() - submit_s.min()) for each in (recorded_s, simulated_s)),
        "restarts": (run.starts, starts),
        "migrations": (run.moves, moves),
    }
    return {
        "recorded": {key: round(float(pair[0]), 3) for key, pair in pairs.items()},
        "simulated": {key: round(float(pair[1]), 3) for key, pair in pairs.items()},
        "difference": {key: round(float(pair[1] / pair[0] - 1), 5) if pair[0] else None for key, pair in pairs.items()},
        "correlation": round(float(np.corrcoef(recorded_s, simulated_s)[0, 1]), 5) if differ else None,
    }


def study(records: Path = Path("../shared/traces/gpu/tacc"), policies: tuple[str, ...] = POLICIES) -> Study:
    """Return the study; ``records`` is the folder of the recorded runs."""

    def run_and_others(name: str) -> tuple[Recorded, list[Recorded]]:
        runs = recorded_in(records)
        run = next((run for run in runs if run.name == name), None)
        if run is None:
            raise SpecificationError(f"{records}: it has no {name}_rounds.csv")
        return run, others_than(run, runs)

    def of_point(run_recorded: str, work: str, policy: str, seed: int) -> Scenario:
        return replace(scenario(*run_and_others(run_recorded), policy, work), seed=seed)

    def measured(measure: str, result: Result) -> float:
        workload = result.scenario.workload
        assert isinstance(workload, Workload)
        run, others = run_and_others(workload.name.partition(",")[0])
        if measure in ESTIMATES:
            return float(getattr(costs(others), measure))
        found: dict[str, Any] = compared(result, run, others)
        return float(found[measure] if measure == "correlation" else 100 * found["difference"][measure])

    def beside_recorded(table: StudyTable) -> pd.DataFrame:
        means = table.means(*MEASURES)[[*table.factors, *MEASURES]].rename(columns=COLUMNS)
        return means.assign(**{COLUMNS[measure]: means[COLUMNS[measure]].map("{:+.1f}".format) for measure in MEASURES[:-1]})

    def estimated(table: StudyTable) -> pd.DataFrame:
        means = table.means(*ESTIMATES)[["run_recorded", *ESTIMATES]].drop_duplicates("run_recorded")
        means.insert(1, "estimated from", "the runs of the other policies")
        return means.rename(columns={"run_recorded": "for the simulation of", **ESTIMATES})

    return Study(
        name="testbed of gangs",
        factors={"run_recorded": list(SAME_POLICY), "work": list(WORKS), "policy": list(policies)},
        scenario=of_point,
        measures={measure: partial(measured, measure) for measure in (*MEASURES, *ESTIMATES)},
        shown=MEASURES,
        tables={
            "Difference of the simulated schedule from the recorded one": beside_recorded,
            "What was estimated from what (s)": estimated,
        },
        text=__doc__ or "",
    )


@lru_cache(maxsize=2)
def recorded_in(folder: Path) -> list[Recorded]:
    """Return the recorded runs of a folder; they are read once."""
    return read_folder(folder)


def _require_writable(picture: Path) -> None:
    if picture.suffix[1:].lower() not in FigureCanvasBase.filetypes:
        known = ", ".join(FigureCanvasBase.filetypes)
        raise SpecificationError(f"--picture: {picture}: format {picture.suffix!r} is unknown; known are {known}")
    if picture.is_dir() or not os.access(picture if picture.exists() else picture.parent, os.W_OK):
        raise SpecificationError(f"--picture: {picture}: it cannot be written")


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare one recorded run with a policy, and print the numbers."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, columns in (("jobs", JOBS), ("rounds", ROUNDS), ("recorded", RECORDED)):
        parser.add_argument(name, type=Path, help=f"file with {', '.join(columns)}")
    parser.add_argument("--policy", required=True, help="the policy that is simulated, as max-min or las:thresholds=120")
    parser.add_argument("--work", choices=WORKS, default=WORKS[0], help="whose GPU-seconds are the run times of the jobs")
    parser.add_argument(
        "--others", type=Path, help="folder of the runs from which costs are estimated; default: that of ROUNDS"
    )
    parser.add_argument("--picture", type=Path, help="file for a picture of the GPUs, recorded above simulated")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    try:
        if given.picture:
            _require_writable(given.picture)
        run = read(given.jobs, given.rounds, given.recorded)
        folders = [given.others] if given.others else [given.rounds.parent, *DEFAULT_OTHERS]
        others: list[Recorded] = []
        for folder in folders:
            others = others or others_than(run, read_folder(folder))
        if not others:
            raise SpecificationError(f"--others: {folders[0]} has no recorded run of another policy; name a folder that has")
        result = scenario(run, others, given.policy, given.work).run()
        if given.picture:
            save(result.plot.recorded(), given.picture)
    except (ClusterModelError, OSError) as problem:
        sys.exit(f"error: {problem}")
    found: dict[str, Any] = compared(result, run, others)
    estimates = {name: None if np.isnan(value) else round(value, 3) for name, value in costs(others)._asdict().items()}
    if estimates["in_run_s"] is None:
        print(f"note: {_CANNOT_TELL}", file=sys.stderr)
    found |= {
        "policy": given.policy,
        "work": given.work,
        "estimated": estimates,
        "estimated_from": [other.name for other in others],
        "gpu_seconds": {each.name: round(each.gpu_seconds) for each in (run, *others)},
    }
    if given.json:
        print(json.dumps(found, indent=1))
        return
    table = pd.DataFrame({key: found[key] for key in ("recorded", "simulated", "difference")})
    table["difference"] = ["-" if value is None else f"{100 * value:+.1f} %" for value in found["difference"].values()]
    print(f"{run.name}, recorded, beside {given.policy}, simulated (run times of jobs: {given.work})\n{table.to_string()}")
    print(f"correlation of completion times {'-' if found['correlation'] is None else found['correlation']}")
    print(f"estimated from {', '.join(found['estimated_from'])}: {estimates}")
    print(f"GPU-seconds: {', '.join(f'{name} {spent:,}' for name, spent in found['gpu_seconds'].items())}")


if __name__ == "__main__":
    main()
