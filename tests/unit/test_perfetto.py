"""Perfetto traces: what was written is read back, and every rule of the format is checked."""

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import clustermodel as cm
from clustermodel.figures import perfetto
from clustermodel.figures.perfetto import write_perfetto
from clustermodel.ticks import TICKS_PER_SECOND
from tests.conftest import Finished
from tests.timeline.script import Script, migrate, start

pytestmark = pytest.mark.long


class Slice(NamedTuple):
    """A slice or instant as a reader of the trace sees it."""

    track: str
    begin_s: float
    end_s: float
    name: str
    category: str
    arguments: dict[str, Any]
    flow: bool = False
    """Whether an arrow connects it with another."""


class Trace:
    """A trace as a reader of its file sees it.  Making one checks the rules of the format, and what Perfetto takes for granted.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        events = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)["traceEvents"]
        self.slices: list[Slice] = []
        self.instants: list[Slice] = []
        self.counters: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self._processes: dict[int, str] = {}
        self._threads: dict[tuple[int, int], str] = {}
        self._ends: dict[tuple[int, int], int] = {}
        flows: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
        add = {"M": self._name, "C": self._count, "X": self._slice, "i": self._instant}
        for event in events:
            add[event["ph"]](event)
            if "bind_id" in event:
                assert int(event["bind_id"], 16) < 2**63
                flows[event["bind_id"]].append((event["flow_in"], event["flow_out"]))
        for parts in flows.values():
            assert parts == [(False, True), *[(True, True)] * (len(parts) - 2), (True, False)]

    def _name(self, event: dict[str, Any]) -> None:
        process, arguments = event["pid"], event["args"]
        if event["name"] == "process_name":
            assert process not in self._processes
            assert arguments["name"] not in self._processes.values()
            self._processes[process] = arguments["name"]
        elif event["name"] == "process_sort_index":
            assert arguments == {"sort_index": process}
            assert process == max(self._processes)
        else:
            assert event["name"] == "thread_name"
            assert (process, event["tid"]) not in self._threads
            # A thread with the number of its process is the main thread, which Perfetto shows first.
            assert (process == event["tid"]) == (arguments["name"] == "events")
            self._threads[process, event["tid"]] = arguments["name"]

    @property
    def names(self) -> list[str]:
        """Names of all processes and threads, in the order in which they are shown."""
        below = {number: sorted(at for at in self._threads if at[0] == number) for number in self._processes}
        return [
            name
            for number, process in sorted(self._processes.items())
            for name in (process, *(f"{process}/{self._threads[at]}" for at in below[number]))
        ]

    def _count(self, event: dict[str, Any]) -> None:
        for name, value in event["args"].items():
            counter = self.counters[f"{self._processes[event['pid']]}/{event['name']} {name}"]
            assert not counter or (counter[-1][0] < event["ts"] / 1e6 and counter[-1][1] != value)
            counter.append((event["ts"] / 1e6, value))

    def _read(self, event: dict[str, Any], ticks: int) -> Slice:
        place = event["pid"], event["tid"]
        assert type(event["ts"]) is int
        assert ticks >= 0
        # Slices of a track do not overlap, and are in order of time.
        assert event["ts"] >= self._ends.get(place, 0)
        self._ends[place] = event["ts"] + ticks
        track = f"{self._processes[place[0]]}/{self._threads[place]}"
        begin_s, end_s = event["ts"] / 1e6, (event["ts"] + ticks) / 1e6
        return Slice(track, begin_s, end_s, event["name"], event["cat"], event["args"], "bind_id" in event)

    def _slice(self, event: dict[str, Any]) -> None:
        self.slices.append(self._read(event, event["dur"]))

    def _instant(self, event: dict[str, Any]) -> None:
        assert event["s"] == "t"
        self.instants.append(self._read(event, 0))


def written(result: cm.Result, path: Path) -> Trace:
    result.to_perfetto(path)
    return Trace(path)


def gangs(trace: Trace) -> list[Slice]:
    return [one for one in trace.slices if one.category != "time slice"]


def preempted() -> cm.Result:
    """Job 1 of 2 nodes runs 0-50, gives way to job 2 until 150, and runs again 150-250; job 3 is too wide."""
    jobs = [
        cm.Job(id=1, nodes=2, submit_s=0, run_s=100, user=7),
        cm.Job(id=2, nodes=1, submit_s=50, run_s=100, priority=1, user=8),
        cm.Job(id=3, nodes=9, submit_s=60, run_s=100),
    ]
    return cm.Scenario(machine=cm.Machine(nodes=2), workload=cm.Workload.from_jobs(jobs, name="three"), policy="pv-easy").run()


def test_a_gang_is_a_slice_on_the_track_of_its_lowest_node_with_the_facts_of_its_job(tmp_path: Path) -> None:
    trace = written(preempted(), tmp_path / "three.json")
    run, node = "pv-easy: three on 2 nodes", "pv-easy: nodes 0-1/node 0"
    assert trace.names == [run, f"{run}/events", "pv-easy: nodes 0-1", node]
    assert list(trace.counters) == [f"{run}/{of}" for of in ("waiting jobs", "ledger useful", "ledger lost", "ledger idle")]
    first = {"job": 1, "attempt": 1, "nodes": 2, "node numbers": "0-1", "user": 7, "submit_s": 0, "wait_s": 150, "run_s": 100}
    first |= {"estimate_s": 100, "outcome": "preempted"}
    second = {"job": 2, "attempt": 1, "nodes": 1, "node numbers": "0", "user": 8, "submit_s": 50, "wait_s": 0, "run_s": 100}
    second |= {"estimate_s": 100, "outcome": "completed"}
    assert trace.slices == [
        Slice(node, 0, 50, "job 1", "lost", first, True),
        Slice(node, 50, 150, "job 2", "run", second),
        Slice(node, 150, 250, "job 1", "run", first | {"attempt": 2, "outcome": "completed"}, True),
    ]
    assert [(one.begin_s, one.name, one.category, one.arguments) for one in trace.instants] == [
        (50, "job 1 preempted", "preempted", {"job": 1, "attempt": 1}),
        (60, "job 3 rejected", "rejected", {"job": 3, "attempt": 0}),
    ]
    assert trace.counters[f"{run}/waiting jobs"] == [(0, 0), (50, 1), (150, 0)]
    assert trace.counters[f"{run}/ledger useful"] == [(0, 0), (50, 1), (150, 2), (250, 0)]
    assert trace.counters[f"{run}/ledger lost"] == [(0, 2), (50, 0)]
    assert trace.counters[f"{run}/ledger idle"] == [(0, 0), (50, 1), (150, 0)]


def test_a_migration_is_an_instant_between_two_slices_that_an_arrow_connects(tmp_path: Path) -> None:
    script = Script({0: [start(1)], 10: [migrate({1: (2, 4)})]})
    machine = cm.Machine(nodes=4, checkpointing=cm.Checkpointing(checkpoint_s=4, restart_s=2))
    jobs = cm.Workload.from_jobs([cm.Job(id=1, nodes=2, submit_s=0, run_s=30)])
    trace = written(cm.Scenario(machine=machine, workload=jobs, policy=script).run(), tmp_path / "moved.json.gz")
    found = [(one.track[-6:], one.begin_s, one.end_s, one.arguments["node numbers"], one.flow) for one in trace.slices]
    assert found == [("node 0", 0, 10, "0-1", True), ("node 2", 10, 36, "2-3", True)]
    assert [(one.begin_s, one.name) for one in trace.instants] == [(10, "job 1 migrated")]


def integral(curve: list[tuple[float, float]], end_s: float) -> float:
    """Return the sum of value times seconds until the end of the run."""
    times = np.array([*(time for time, _ in curve), end_s])
    return float((np.diff(times) * [value for _, value in curve]).sum())


@pytest.mark.parametrize(
    "policy", ["fcfs", "pv-easy", "pv-easy:mode=checkpoint", "pv-easy:mode=suspend", "server-filling", "R/L-NG:speculation=0.9"]
)
def test_traces_of_dedicated_nodes_follow_the_rules_and_hold_the_ledger(tmp_path: Path, policy: str) -> None:
    machine = cm.Machine(nodes=128, checkpointing=cm.Checkpointing(checkpoint_s=120.3, restart_s=60))
    result = cm.Scenario(machine=machine, workload=cm.synthetic_workload(jobs=300, nodes=128, load=1.1), policy=policy).run()
    trace = written(result, tmp_path / "run.json")
    held = sum(one.arguments["nodes"] * (one.end_s - one.begin_s) for one in trace.slices)
    ledger = result.ledger.frame["total_node_s"]
    assert held == pytest.approx(ledger.drop("idle").sum(), rel=1e-12)
    end = result.ledger.end / TICKS_PER_SECOND
    process = trace.names[0]
    for account in cm.Account:
        curve = trace.counters.get(f"{process}/ledger {account}", [])
        assert integral(curve, end) == pytest.approx(ledger[account.value], rel=1e-12)
        assert not curve or curve[-1] == (curve[-1][0], 0)
    waits = trace.counters[f"{process}/waiting jobs"]
    assert max(value for _, value in waits) == result.events.waiting.max()
    assert len(trace.slices) == len(result.run_attempts)
    by_job = Counter(one.arguments["job"] for one in trace.slices)
    assert dict(by_job) == result.jobs.set_index("job")["tries"].to_dict()
    assert {one.flow for one in trace.slices if by_job[one.arguments["job"]] > 1} <= {True}
    stopped = Counter(one.category for one in trace.instants)
    outcomes = result.run_attempts["outcome"].value_counts().drop(["completed", "killed"], errors="ignore")
    assert stopped == outcomes.to_dict()
    ranges = {name for name in trace.names if ": nodes " in name and "/node " not in name}
    assert ranges <= {f"{policy}: nodes {low}-{low + 15}" for low in range(0, 128, 16)}


@pytest.mark.parametrize("policy", ["gs", "mbgs", "bgs:urgent=checkpoint", "bgs:urgent=kill"])
def test_traces_of_nodes_shared_in_time_follow_the_rules(tmp_path: Path, policy: str) -> None:
    result = shared(policy)
    trace = written(result, tmp_path / "run.json")
    process = trace.names[0]
    rows = {f"{policy}: row {row}" for row in result.placements["row"]}
    assert {one.track.split(", nodes")[0] for one in gangs(trace)} == rows
    places = result.placements
    seconds = (places["nodes"] * (places["end_s"] - places["begin_s"])).sum()
    assert sum(one.arguments["nodes"] * (one.end_s - one.begin_s) for one in gangs(trace)) == pytest.approx(seconds, rel=1e-12)
    assert {one.category for one in gangs(trace)} == set(places["kind"])
    # Whatever runs in a time slice is no more than the machine has, and is what the ledger does not call idle.
    turns = [one for one in trace.slices if one.category == "time slice"]
    assert max(one.arguments["nodes in use"] for one in turns) <= 320
    busy = sum(one.arguments["nodes in use"] * (one.end_s - one.begin_s) for one in turns)
    assert busy == pytest.approx(result.ledger.frame["total_node_s"].drop("idle").sum(), rel=1e-9)
    end = result.ledger.end / TICKS_PER_SECOND
    ledger = result.ledger.frame["total_node_s"].to_dict()
    ledger["work"] = ledger.pop("useful") + ledger.pop("lost")
    for account, amount in ledger.items():
        assert integral(trace.counters.get(f"{process}/ledger {account}", []), end) == pytest.approx(amount, rel=1e-9, abs=1e-6)


def shared(policy: str, **more: Any) -> cm.Result:
    rows = cm.load_model("blue-pacific").generate(jobs=150, run_time_factor=1.8).rows()
    machine = cm.Machine(
        nodes=320, context_switch=cm.ContextSwitch(fraction=0.02), checkpointing=cm.Checkpointing(checkpoint_s=5)
    )
    workload = cm.Workload([row._replace(priority=int(row.id % 10 == 0)) for row in rows])
    return cm.Scenario(**{"machine": machine, "workload": workload, "policy": policy, "history": True} | more).run()


def test_too_many_time_slices_are_whole_rotations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = shared("gs")
    every = [one for one in written(result, tmp_path / "all.json").slices if one.category == "time slice"]
    monkeypatch.setattr(perfetto, "MOST_TIME_SLICES", 50)
    rotations = [one for one in written(result, tmp_path / "few.json").slices if one.category == "time slice"]
    assert 50 < len(rotations) < len(every)
    assert {one.name for one in every} == {f"row {row}" for row in range(5)}
    assert "rows 0, 1, 2" in {one.name for one in rotations}
    assert sum(one.end_s - one.begin_s for one in rotations) == pytest.approx(sum(one.end_s - one.begin_s for one in every))


def test_a_run_of_rejected_jobs_is_a_trace(tmp_path: Path) -> None:
    jobs = cm.Workload.from_jobs([cm.Job(id=1, nodes=9, submit_s=5, run_s=1)])
    trace = written(cm.Scenario(machine=cm.Machine(nodes=2), workload=jobs).run(), tmp_path / "none.json")
    assert trace.slices == []
    assert [one.name for one in trace.instants] == ["job 1 rejected"]


@pytest.mark.whole
def test_a_hundred_thousand_jobs_are_less_than_fifty_megabytes(tmp_path: Path) -> None:
    jobs = cm.synthetic_workload(jobs=100_000, nodes=128, load=0.9)
    result = cm.Scenario(machine=cm.Machine(nodes=128), workload=jobs, policy="easy").run()
    result.to_perfetto(tmp_path / "large.json")
    assert (tmp_path / "large.json").stat().st_size < 50e6
    assert len(Trace(tmp_path / "large.json").slices) == 100_000


def test_several_runs_are_processes_of_one_trace(tmp_path: Path) -> None:
    work = cm.synthetic_workload(jobs=50, nodes=32)
    results = [cm.Scenario(machine=cm.Machine(nodes=32), workload=work, policy=policy).run() for policy in ("fcfs", "pv-easy")]
    write_perfetto(results, tmp_path / "two.json")
    trace = Trace(tmp_path / "two.json")
    assert [name for name in trace.names if "/" not in name] == [
        *(f"fcfs: {of}" for of in ("synthetic-1 on 32 nodes", "nodes 0-31")),
        *(f"pv-easy: {of}" for of in ("synthetic-1 on 32 nodes", "nodes 0-31")),
    ]
    assert len(trace.slices) == sum(len(result.run_attempts) for result in results)


def test_what_a_trace_needs_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(cm.SpecificationError, match=r"^history: it is not kept; run Scenario\(\.\.\., history=True\)$"):
        shared("gs", history=False).to_perfetto(tmp_path / "x.json")
    late = cm.Workload.from_jobs([cm.Job(id=1, nodes=1, submit_s=9.9e9, run_s=1)])
    with pytest.raises(cm.SpecificationError, match=r"^to_perfetto: the run ends at 9\.9e\+09 s; the format holds times up to"):
        cm.Scenario(machine=cm.Machine(nodes=1), workload=late).run().to_perfetto(tmp_path / "x.json")
    assert not list(tmp_path.iterdir())


def test_the_command_writes_all_runs_to_one_trace(tmp_path: Path, command_line: Callable[..., Finished]) -> None:
    path = tmp_path / "runs.json"
    finished = command_line("run", "--jobs", 60, "--nodes", 32, "--policy", "pv-easy", "--policy", "mbgs", "--perfetto", path)
    assert finished.code == 0
    assert f"perfetto: {path}, for ui.perfetto.dev" in finished.err.splitlines()
    trace = Trace(path)
    first, second = (f"{policy}: synthetic-1 on 32 nodes" for policy in ("pv-easy", "mbgs"))  # the history was kept
    expected = [first, f"{first}/events", second, f"{second}/time slices", f"{second}/events"]
    assert [name for name in trace.names if " on 32 nodes" in name] == expected


def test_a_trace_that_cannot_be_written_is_refused_at_once(tmp_path: Path, command_line: Callable[..., Finished]) -> None:
    nowhere = tmp_path / "nowhere"
    for path, said in (
        (nowhere / "x.json", f"{nowhere}: is not a directory that can be written to"),
        (tmp_path, f"{tmp_path}: is a directory; it must be a file"),
    ):
        finished = command_line("run", "--jobs", 60, "--perfetto", path)
        assert (finished.code, finished.out) == (1, "")
        assert finished.err == f"clustermodel: error: --perfetto: {said}\n"
