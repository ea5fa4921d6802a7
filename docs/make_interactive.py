"""Make docs/_static/interactive_data.js, the stored runs of docs/interactive.md and of its notebook.

    python docs/make_interactive.py

runs backfilling alone and gang scheduling on a machine of 16 nodes, for each load, multiprogramming level and cost of a context
switch, in ten replications; a few minutes.  Matrices are those of the first replication.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from clustermodel import ContextSwitch, Machine, Scenario, Study, TimeSlicing, interval, paired_ratio, synthetic_workload
from clustermodel.machine.node_set import from_mask

STORED = Path(__file__).parent / "_static" / "interactive_data.js"
BEFORE = "window.STORED = "
NODES, JOBS, QUANTUM_S, REPLICATIONS, MOMENTS = 16, 300, 200, 10, 12
FACTORS = {"cost": [0.0, 0.02, 0.05, 0.1, 0.2], "mpl": [1, 2, 3, 4, 5], "load": [0.6, 0.8, 1.0]}
SHARES = {
    "useful work": "utilization",
    "context switches": "context_switch_share",
    "blocked gangs": "blocked_share",
    "idle while jobs wait": "idle_waiting_share",
    "idle, no job waits": "idle_queue_empty",
}
"""Parts of the node time, and their columns in the table of the study."""


def scenario(cost: float, mpl: int, load: float, seed: int, *, history: bool = False) -> Scenario | None:
    """Return a run: backfilling alone where the level is 1, which pays for no context switch."""
    if mpl == 1 and cost > 0:
        return None
    machine = Machine(
        nodes=NODES,
        time_slicing=TimeSlicing(quantum_s=QUANTUM_S, mpl=mpl),
        context_switch=ContextSwitch(fraction=cost),
    )
    jobs = synthetic_workload(jobs=JOBS, nodes=NODES, load=load, seed=seed)
    policy = "bf" if mpl == 1 and not history else "bgs"  # of one row, without costs: the same schedule
    return Scenario(machine=machine, workload=jobs, policy=policy, seed=seed, history=history)


STUDY = Study(
    name="costs that move",
    factors=FACTORS,
    scenario=scenario,
    replications=REPLICATIONS,
)


def numbers(study: Study) -> dict[tuple[float, int, float], dict[str, Any]]:
    """Run a study; return slowdowns, response times and shares of node time by cost, level and load."""
    frame = study.run(workers=os.cpu_count() or 1).frame.sort_values("replication")
    frame["idle_queue_empty"] = frame["idle_share"] - frame["idle_waiting_share"]
    runs = {}
    for (cost, mpl, load), rows in frame.groupby(["cost", "mpl", "load"]):
        alone = frame[(frame["mpl"] == 1) & (frame["load"] == load)]
        entry: dict[str, Any] = {"cost": cost, "mpl": mpl, "load": load}
        for name, column, unit in (("slowdown", "mean_bounded_slowdown", 1), ("response_h", "mean_response_s", 3600)):
            entry[name] = round(interval(rows[column] / unit).mean, 2)
            if mpl > 1:
                ratio = paired_ratio(rows[column].to_numpy(), alone[column].to_numpy())
                entry[f"{name}_ratio"] = [round(value, 2) for value in (ratio.mean, ratio.low, ratio.high)]
        entry["shares"] = [round(float(rows[column].mean()), 4) for column in SHARES.values()]
        runs[cost, mpl, load] = entry
    return runs


def moments(cost: float, mpl: int, load: float) -> list[dict[str, Any]]:
    """Return the matrix at instants of the first replication: gangs by row, first column, number of columns, and job."""
    single = scenario(cost, mpl, load, STUDY.seed, history=True)
    assert single is not None
    result = single.run()
    assert result.history is not None
    last = int(single.workload.column("submit")[-1])
    found = []
    for number in range(1, MOMENTS + 1):
        at = last * number // (MOMENTS + 1)
        moment = result.history.at(at)
        gangs = [
            [row, low, high - low, cell.job]
            for row, cells in enumerate(moment.rows)
            for cell in cells
            for low, high in zip(*[iter(from_mask(cell.columns))] * 2, strict=True)
        ]
        running = result.history.running_row(at)
        found.append({"hours": round(at / 3.6e9, 1), "runs": running, "gangs": gangs})
    return found


def stored() -> dict[str, Any]:
    """Return what is stored."""
    text = STORED.read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text.removeprefix(BEFORE).rstrip().removesuffix(";"))
    return data


def main() -> None:
    """Run everything and store it."""
    runs = numbers(STUDY)
    entries = [entry | {"moments": moments(*setting)} for setting, entry in runs.items()]
    about = {"nodes": NODES, "replications": REPLICATIONS, "factors": FACTORS, "shares": list(SHARES)}
    text = json.dumps(about | {"runs": entries}, separators=(",", ":"))
    STORED.write_text(f"{BEFORE}{text};\n", encoding="utf-8")


if __name__ == "__main__":
    main()
