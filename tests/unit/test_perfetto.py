"""Perfetto traces: what was written is decoded with the format's own schema, and every rule of the format is checked."""

from __future__ import annotations

import gzip
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from clustermodel import (
    Account,
    Checkpointing,
    ContextSwitch,
    Job,
    Machine,
    Result,
    Scenario,
    SpecificationError,
    Workload,
    load_model,
    synthetic_workload,
)
from clustermodel.figures import perfetto
from clustermodel.figures.perfetto import write_perfetto
from clustermodel.ticks import TICKS_PER_SECOND
from tests.conftest import Finished
from tests.timeline.script import Script, migrate, start

pytestmark = pytest.mark.long

schema = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="perfetto is not installed; pip install '.[test-all]' brings it"
)
SECOND_NS = 10**9
TYPE = schema.TrackEvent


class Slice(NamedTuple):
    """A slice or instant as a reader of the trace sees it."""

    track: str
    begin_s: float
    end_s: float
    name: str
    category: str
    arguments: dict[str, Any]
    flow: int = 0


class Trace:
    """A decoded trace.  Making one checks the rules of the format.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        trace = schema.Trace.FromString(gzip.decompress(data) if path.suffix == ".gz" else data)
        self.slices: list[Slice] = []
        self.instants: list[Slice] = []
        self.counters: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self._tracks: dict[int, Any] = {}
        self._open: dict[int, Slice] = {}
        self._flows: dict[int, list[bool]] = defaultdict(list)
        self._interned: dict[str, dict[int, str]] = defaultdict(dict)
        self._now = 0
        first, *rest = trace.packet
        assert first.sequence_flags & first.SEQ_INCREMENTAL_STATE_CLEARED
        assert first.first_packet_on_sequence
        self._intern(first)
        for packet in rest:
            assert packet.trusted_packet_sequence_id == first.trusted_packet_sequence_id > 0
            assert not packet.HasField("interned_data")
            assert not packet.sequence_flags & packet.SEQ_INCREMENTAL_STATE_CLEARED
            if packet.HasField("track_descriptor"):
                self._describe(packet.track_descriptor)
            else:
                self._event(packet)
        assert not self._open  # every slice has ended
        for parts in self._flows.values():
            assert len(parts) >= 2
            assert [at for at, terminates in enumerate(parts) if terminates] == [len(parts) - 1]

    def _intern(self, packet: Any) -> None:
        for kind in ("event_categories", "debug_annotation_names"):
            for one in getattr(packet.interned_data, kind):
                assert one.iid > 0
                assert one.iid not in self._interned[kind]
                self._interned[kind][one.iid] = one.name
            assert len(set(self._interned[kind].values())) == len(self._interned[kind])

    def _describe(self, descriptor: Any) -> None:
        assert not self._now  # all tracks are described before the first event
        assert descriptor.uuid > 0
        assert descriptor.uuid not in self._tracks
        parent = descriptor.parent_uuid
        assert (parent == 0) == descriptor.HasField("process")
        assert not parent or parent in self._tracks
        siblings = [one for one in self._tracks.values() if one.parent_uuid == parent]
        if parent:
            assert descriptor.name
            assert descriptor.name not in {one.name for one in siblings}  # tracks of one name are merged
            assert descriptor.sibling_order_rank not in {one.sibling_order_rank for one in siblings}
            assert self._tracks[parent].child_ordering == descriptor.EXPLICIT
        else:
            assert descriptor.process.pid not in {one.process.pid for one in siblings}
            assert descriptor.process.process_name
        self._tracks[descriptor.uuid] = descriptor

    def name_of(self, uuid: int) -> str:
        """Return the names of a track and of all above it."""
        track = self._tracks[uuid]
        return f"{self.name_of(track.parent_uuid)}/{track.name}" if track.parent_uuid else track.process.process_name

    @property
    def names(self) -> list[str]:
        """Names of all tracks, in the order in which they are shown."""

        def below(parent: int) -> list[str]:
            children = [one for one in self._tracks.values() if one.parent_uuid == parent]
            children.sort(key=lambda one: (one.sibling_order_rank, one.uuid))
            return [name for one in children for name in (self.name_of(one.uuid), *below(one.uuid))]

        return below(0)

    def _event(self, packet: Any) -> None:
        event = packet.track_event
        assert packet.timestamp >= self._now  # in order of time
        self._now = packet.timestamp
        uuid, seconds = event.track_uuid, packet.timestamp / SECOND_NS
        assert uuid in self._tracks
        track = self.name_of(uuid)
        assert (event.type == TYPE.TYPE_COUNTER) == self._tracks[uuid].HasField("counter")
        if event.type == TYPE.TYPE_COUNTER:
            assert event.WhichOneof("counter_value_field") in ("counter_value", "double_counter_value")
            value = event.counter_value if event.HasField("counter_value") else event.double_counter_value
            assert not self.counters[track] or self.counters[track][-1][0] < seconds
            assert not self.counters[track] or self.counters[track][-1][1] != value
            self.counters[track].append((seconds, value))
            return
        if event.type == TYPE.TYPE_SLICE_END:
            begun = self._open.pop(uuid)
            self.slices.append(begun._replace(end_s=seconds))
            return
        assert event.type in (TYPE.TYPE_SLICE_BEGIN, TYPE.TYPE_INSTANT)
        assert packet.sequence_flags & packet.SEQ_NEEDS_INCREMENTAL_STATE
        assert event.name
        (category,) = event.category_iids
        names = [self._interned["debug_annotation_names"][one.name_iid] for one in event.debug_annotations]
        assert len(set(names)) == len(names)
        values = [getattr(one, one.WhichOneof("value")) for one in event.debug_annotations]
        flows = [*event.flow_ids, *event.terminating_flow_ids]
        assert len(flows) <= 1
        for flow in flows:
            self._flows[flow].append(bool(event.terminating_flow_ids))
        found = Slice(
            track,
            seconds,
            seconds,
            event.name,
            self._interned["event_categories"][category],
            dict(zip(names, values, strict=True)),
            *flows,
        )
        if event.type == TYPE.TYPE_INSTANT:
            self.instants.append(found)
        else:
            assert uuid not in self._open  # slices of a track do not overlap
            self._open[uuid] = found


def written(result: Result, path: Path) -> Trace:
    result.to_perfetto(path)
    return Trace(path)


def gangs(trace: Trace) -> list[Slice]:
    return [one for one in trace.slices if one.category != "time slice"]


def preempted() -> Result:
    """Job 1 of 2 nodes runs 0-50, gives way to job 2 until 150, and runs again 150-250; job 3 is too wide."""
    jobs = [
        Job(id=1, nodes=2, submit_s=0, run_s=100, user=7),
        Job(id=2, nodes=1, submit_s=50, run_s=100, priority=1, user=8),
        Job(id=3, nodes=9, submit_s=60, run_s=100),
    ]
    return Scenario(machine=Machine(nodes=2), workload=Workload.from_jobs(jobs, name="three"), policy="pv-easy").run()


def test_a_gang_is_a_slice_on_the_track_of_its_lowest_node_with_the_facts_of_its_job(tmp_path: Path) -> None:
    trace = written(preempted(), tmp_path / "three.pftrace")
    assert trace.names == [
        "pv-easy: 2 nodes",
        "pv-easy: 2 nodes/waiting jobs",
        "pv-easy: 2 nodes/ledger",
        *(f"pv-easy: 2 nodes/ledger/{account}" for account in ("useful", "lost", "idle")),
        "pv-easy: 2 nodes/events",
        "pv-easy: 2 nodes/nodes 0-1",
        "pv-easy: 2 nodes/nodes 0-1/node 0",
    ]
    node = "pv-easy: 2 nodes/nodes 0-1/node 0"
    first = {"job": 1, "attempt": 1, "nodes": 2, "node numbers": "0-1", "user": 7, "submit_s": 0, "wait_s": 150, "run_s": 100}
    first |= {"estimate_s": 100, "outcome": "preempted"}
    second = {"job": 2, "attempt": 1, "nodes": 1, "node numbers": "0", "user": 8, "submit_s": 50, "wait_s": 0, "run_s": 100}
    second |= {"estimate_s": 100, "outcome": "completed"}
    assert trace.slices == [
        Slice(node, 0, 50, "job 1", "lost", first, 1),
        Slice(node, 50, 150, "job 2", "run", second),
        Slice(node, 150, 250, "job 1", "run", first | {"attempt": 2, "outcome": "completed"}, 1),
    ]
    assert [(one.begin_s, one.name, one.category, one.arguments) for one in trace.instants] == [
        (50, "job 1 preempted", "preempted", {"job": 1, "attempt": 1}),
        (60, "job 3 rejected", "rejected", {"job": 3, "attempt": 0}),
    ]
    assert trace.counters["pv-easy: 2 nodes/waiting jobs"] == [(0, 0), (50, 1), (150, 0)]
    assert trace.counters["pv-easy: 2 nodes/ledger/useful"] == [(0, 0), (50, 1), (150, 2), (250, 0)]
    assert trace.counters["pv-easy: 2 nodes/ledger/lost"] == [(0, 2), (50, 0)]
    assert trace.counters["pv-easy: 2 nodes/ledger/idle"] == [(0, 0), (50, 1), (150, 0)]


def test_a_migration_is_an_instant_between_two_slices_that_an_arrow_connects(tmp_path: Path) -> None:
    script = Script({0: [start(1)], 10: [migrate({1: (2, 4)})]})
    machine = Machine(nodes=4, checkpointing=Checkpointing(checkpoint_s=4, restart_s=2))
    jobs = Workload.from_jobs([Job(id=1, nodes=2, submit_s=0, run_s=30)])
    trace = written(Scenario(machine=machine, workload=jobs, policy=script).run(), tmp_path / "moved.pftrace.gz")
    found = [(one.track[-6:], one.begin_s, one.end_s, one.arguments["node numbers"], one.flow) for one in trace.slices]
    assert found == [("node 0", 0, 10, "0-1", 1), ("node 2", 10, 36, "2-3", 1)]
    assert [(one.begin_s, one.name) for one in trace.instants] == [(10, "job 1 migrated")]


def integral(curve: list[tuple[float, float]], end_s: float) -> float:
    """Return the sum of value times seconds until the end of the run."""
    times = np.array([*(time for time, _ in curve), end_s])
    return float((np.diff(times) * [value for _, value in curve]).sum())


@pytest.mark.parametrize(
    "policy", ["fcfs", "pv-easy", "pv-easy:mode=checkpoint", "pv-easy:mode=suspend", "server-filling", "R/L-NG:speculation=0.9"]
)
def test_traces_of_dedicated_nodes_follow_the_rules_and_hold_the_ledger(tmp_path: Path, policy: str) -> None:
    machine = Machine(nodes=128, checkpointing=Checkpointing(checkpoint_s=120.3, restart_s=60))
    result = Scenario(machine=machine, workload=synthetic_workload(jobs=300, nodes=128, load=1.1), policy=policy).run()
    trace = written(result, tmp_path / "run.pftrace")
    held = sum(one.arguments["nodes"] * (one.end_s - one.begin_s) for one in trace.slices)
    ledger = result.ledger.frame["total_node_s"]
    assert held == pytest.approx(ledger.drop("idle").sum(), rel=1e-12)
    end = result.ledger.end / TICKS_PER_SECOND
    process = trace.names[0]
    for account in Account:
        curve = trace.counters.get(f"{process}/ledger/{account}", [])
        assert integral(curve, end) == pytest.approx(ledger[account.value], rel=1e-12)
        assert not curve or curve[-1] == (curve[-1][0], 0)
    waits = trace.counters[f"{process}/waiting jobs"]
    assert max(value for _, value in waits) == result.events.waiting.max()
    assert len(trace.slices) == len(result.run_attempts)
    by_job = Counter(one.arguments["job"] for one in trace.slices)
    assert dict(by_job) == result.jobs.set_index("job")["tries"].to_dict()
    assert {one.flow > 0 for one in trace.slices if by_job[one.arguments["job"]] > 1} <= {True}
    stopped = Counter(one.category for one in trace.instants)
    outcomes = result.run_attempts["outcome"].value_counts().drop(["completed", "killed"], errors="ignore")
    assert stopped == outcomes.to_dict()
    ranges = {name for name in trace.names if name.count("/") == 1 and "/nodes " in name}
    assert ranges <= {f"{process}/nodes {low}-{low + 15}" for low in range(0, 128, 16)}


@pytest.mark.parametrize("policy", ["gs", "mbgs", "bgs:urgent=checkpoint", "bgs:urgent=kill"])
def test_traces_of_nodes_shared_in_time_follow_the_rules(tmp_path: Path, policy: str) -> None:
    result = shared(policy)
    trace = written(result, tmp_path / "run.pftrace")
    process = trace.names[0]
    rows = {f"{process}/row {row}" for row in result.placements["row"]}
    assert {"/".join(one.track.split("/")[:2]) for one in gangs(trace)} == rows
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
        assert integral(trace.counters.get(f"{process}/ledger/{account}", []), end) == pytest.approx(amount, rel=1e-9, abs=1e-6)


def shared(policy: str, **more: Any) -> Result:
    rows = load_model("blue-pacific").generate(jobs=150, run_time_factor=1.8).rows()
    machine = Machine(nodes=320, context_switch=ContextSwitch(fraction=0.02), checkpointing=Checkpointing(checkpoint_s=5))
    workload = Workload([row._replace(priority=int(row.id % 10 == 0)) for row in rows])
    return Scenario(**{"machine": machine, "workload": workload, "policy": policy, "history": True} | more).run()


def test_too_many_time_slices_are_whole_rotations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = shared("gs")
    every = [one for one in written(result, tmp_path / "all.pftrace").slices if one.category == "time slice"]
    monkeypatch.setattr(perfetto, "MOST_TIME_SLICES", 50)
    rotations = [one for one in written(result, tmp_path / "few.pftrace").slices if one.category == "time slice"]
    assert 50 < len(rotations) < len(every)
    assert {one.name for one in every} == {f"row {row}" for row in range(5)}
    assert "rows 0, 1, 2" in {one.name for one in rotations}
    assert sum(one.end_s - one.begin_s for one in rotations) == pytest.approx(sum(one.end_s - one.begin_s for one in every))


def test_several_runs_are_processes_of_one_trace(tmp_path: Path) -> None:
    work = synthetic_workload(jobs=50, nodes=32)
    results = [Scenario(machine=Machine(nodes=32), workload=work, policy=policy).run() for policy in ("fcfs", "pv-easy")]
    write_perfetto(results, tmp_path / "two.pftrace")
    trace = Trace(tmp_path / "two.pftrace")
    assert [name for name in trace.names if "/" not in name] == ["fcfs: 32 nodes", "pv-easy: 32 nodes"]
    assert len(trace.slices) == sum(len(result.run_attempts) for result in results)


def test_a_run_of_rejected_jobs_is_a_trace(tmp_path: Path) -> None:
    jobs = Workload.from_jobs([Job(id=1, nodes=9, submit_s=5, run_s=1)])
    trace = written(Scenario(machine=Machine(nodes=2), workload=jobs).run(), tmp_path / "none.pftrace")
    assert trace.slices == []
    assert [one.name for one in trace.instants] == ["job 1 rejected"]


def test_what_a_trace_needs_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpecificationError, match=r"^history: it is not kept; run Scenario\(\.\.\., history=True\)$"):
        shared("gs", history=False).to_perfetto(tmp_path / "x.pftrace")
    late = Workload.from_jobs([Job(id=1, nodes=1, submit_s=9.9e9, run_s=1)])
    with pytest.raises(SpecificationError, match=r"^to_perfetto: the run ends at 9\.9e\+09 s; the format holds times up to"):
        Scenario(machine=Machine(nodes=1), workload=late).run().to_perfetto(tmp_path / "x.pftrace")
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace.perfetto_trace_pb2", None)
    with pytest.raises(SpecificationError, match=r"^to_perfetto: the package perfetto is missing; pip install '\.\[perf"):
        preempted().to_perfetto(tmp_path / "x.pftrace")
    assert not list(tmp_path.iterdir())


@pytest.mark.whole
def test_a_hundred_thousand_jobs_are_less_than_fifty_megabytes(tmp_path: Path) -> None:
    jobs = synthetic_workload(jobs=100_000, nodes=128, load=0.9)
    result = Scenario(machine=Machine(nodes=128), workload=jobs, policy="easy").run()
    result.to_perfetto(tmp_path / "large.pftrace")
    assert (tmp_path / "large.pftrace").stat().st_size < 50e6
    assert len(Trace(tmp_path / "large.pftrace").slices) == 100_000


# The command line


def test_the_command_writes_all_runs_to_one_trace(tmp_path: Path, command_line: Callable[..., Finished]) -> None:
    path = tmp_path / "runs.pftrace"
    finished = command_line("run", "--jobs", 60, "--nodes", 32, "--policy", "pv-easy", "--policy", "mbgs", "--perfetto", path)
    assert finished.code == 0
    assert finished.err.splitlines()[-1] == f"perfetto: {path}, for ui.perfetto.dev"
    trace = Trace(path)
    assert [name for name in trace.names if "/" not in name] == ["pv-easy: 32 nodes", "mbgs: 32 nodes"]
    assert "mbgs: 32 nodes/time slices" in trace.names  # the history was kept


def test_a_trace_that_cannot_be_written_is_refused_before_the_runs(
    tmp_path: Path, command_line: Callable[..., Finished], monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = command_line("run", "--jobs", 60, "--perfetto", tmp_path / "nowhere" / "x.pftrace")
    assert finished.code == 1
    where = tmp_path / "nowhere"
    assert finished.err.splitlines() == [f"clustermodel: error: --perfetto: {where}: is not a directory that can be written to"]
    finished = command_line("run", "--jobs", 60, "--perfetto", tmp_path)
    assert (finished.code, finished.out) == (1, "")
    assert finished.err == f"clustermodel: error: --perfetto: {tmp_path}: is a directory; it must be a file\n"
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace.perfetto_trace_pb2", None)
    finished = command_line("run", "--jobs", 60, "--perfetto", tmp_path / "x.pftrace")
    assert finished.code == 2
    assert finished.err.startswith("clustermodel: error: --perfetto: the package perfetto is missing; pip install")
    assert len(finished.err.splitlines()) == 1
