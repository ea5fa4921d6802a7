"""Scenarios as TOML files: the same scenario and run key after a round trip, and one line for every mistake."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import clustermodel as cm
from clustermodel.experiment.run_key import key_of_scenario
from clustermodel.policies.fcfs import Fcfs
from clustermodel.workload.job_stream import Renewal
from tests.conftest import Finished

Command = Callable[..., Finished]

LOGS = Path(__file__).parents[1] / "logs"
JOBS = cm.synthetic_workload(jobs=40, nodes=64)
DAY = cm.JobStream(
    arrivals=cm.Cycle(cm.Bursts(arrivals=cm.Poisson(per_hour=30), jobs=scipy.stats.geom(1 / 5))),
    nodes={1: 0.3, 8: 0.7},
    run_s=cm.BySize((8,), (cm.Lognormal(mean=600, cv=2), cm.HyperErlang.from_mean(300, 2.0))),
    estimates=cm.PhiEstimates(0.3),
    users=cm.Zipf(20),
    memory_gib=[1, 2.5],
    name="day",
)
SESSIONS = cm.JobStream(
    arrivals=cm.Sessions(arrivals=cm.Exponential(300.0), jobs=3, think_time_s=scipy.stats.expon(scale=60)),
    nodes=2,
    run_s=100,
    name="people",
)
MACHINE = cm.Machine(
    nodes=64,
    kill_at_estimate=False,
    time_slicing=cm.TimeSlicing(quantum_s=60, mpl=3),
    context_switch=cm.ContextSwitch(seconds=0.5, charge="every-slice"),
    checkpointing=cm.Checkpointing(checkpoint_s=3, restart_s=4.5, max_tasks_per_slice=7),
    suspended_per_node=2,
    node_memory_gib=2.5,
)
WITH_STORE = cm.Machine(
    nodes=64,
    checkpointing=cm.Checkpointing(
        interval_s="own", store=cm.CheckpointStore(bandwidth_gib_s=2.5, node_bandwidth_gib_s=0.5, max_concurrent_tasks=3)
    ),
)
SMALL = "[workload]\nsynthetic = true\njobs = 30\n"


def changed(workload: cm.Workload) -> cm.Workload:
    workload.name, workload.machine_nodes = "mine", 77
    return workload


class Mine:
    """A distribution and a speedup model of the user."""

    def sample(self, rng: np.random.Generator, size: int) -> object:
        return rng.random(size)

    def time_on(self, ticks: int, asked: int, nodes: int) -> int:
        return ticks


WORKLOADS: dict[str, Callable[[], object]] = {
    "synthetic": lambda: cm.synthetic_workload(jobs=20, nodes=64, load=0.5, seed=4),
    "renamed": lambda: changed(cm.synthetic_workload(jobs=20)),
    "steps": lambda: (
        JOBS.select(cm.JobFilter(nodes=(1, 8), users=range(9), window_s=(0, 1e6)))
        .scaled(cm.LoadScale(run_time=2, interarrival=0.5))
        .with_phi_estimates(phi=0.3, seed=4)
    ),
    "exact estimates": JOBS.with_perfect_estimates,
    "a default memory": lambda: JOBS.with_default_memory(0.5),
    "blocks drawn": lambda: JOBS.resampled(3600, seed=2).scaled(cm.LoadScale(interarrival=0.5)),
    "users drawn": lambda: JOBS.resampled("users", seed=3),
    "shipped model": lambda: cm.load_model("blue-pacific").generate(jobs=30, seed=3, run_time_factor=1.3),
    "own model": lambda: cm.fit_model(cm.synthetic_workload(jobs=3000)).generate(jobs=20),
    "job stream": lambda: DAY.generate(jobs=30, seed=2, load=0.7, machine_nodes=64),
    "times of a workload": lambda: cm.JobStream(arrivals=JOBS, nodes=4, run_s=np.array([1.5, 3.0])).generate(jobs=60),
    "weights": lambda: cm.JobStream(arrivals=cm.Poisson(per_hour=60), nodes=2, run_s={5: 1, 7.5: 2}).generate(jobs=9),
    "renewals": lambda: cm.JobStream(arrivals=Renewal(cm.Exponential(9.0)), nodes=1, run_s=5).generate(jobs=9),
    "sessions": lambda: SESSIONS.generate(days=0.5),
    "closed users": lambda: cm.JobStream(arrivals=cm.ClosedUsers(users=3, think_time_s=60), nodes=1, run_s=5).generate(jobs=9),
    "mix": lambda: cm.merge(a=DAY, c=SESSIONS).generate(days=0.3),
    "merged": lambda: cm.merge(x=JOBS, y=DAY.generate(jobs=10)),
    "several": lambda: [JOBS, DAY.generate(jobs=5)],
    "trace": lambda: cm.read_swf("jobs.swf", processors_from="requested", use_estimates=False),
    "filtered trace": lambda: cm.read_swf(
        "jobs.swf", keep=cm.JobFilter(statuses=[-1]), scale=cm.LoadScale(size=0.5), lenient=True
    ),
    "trace with waits": lambda: cm.read_swf("jobs.swf", waits=True),
    "log of PBS": lambda: cm.read_trace(LOGS / "torque.pbs", unit="nodes"),
    "log of sacct": lambda: cm.read_trace(LOGS / "states.sacct", keep=cm.JobFilter(nodes=(1, 10**6))),
    "log with shapes": lambda: cm.read_trace(LOGS / "states.sacct", unit="cores").with_recorded_shapes(),
    "malleable jobs": lambda: JOBS.with_malleable(share=0.3, users=[1, 2], max_nodes="2x").with_malleable(share=0.1),
    "trace with feedback": lambda: cm.read_swf("sessions.swf.gz", feedback=True),
    "stream": lambda: cm.SwfStream(Path("jobs.swf").absolute(), scale=cm.LoadScale(run_time=2)),
    "stream with a default memory": lambda: cm.SwfStream(Path("jobs.swf").absolute(), default_memory_gib=0.5),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with traces."""
    monkeypatch.chdir(tmp_path)
    cm.write_trace("jobs.swf", JOBS)
    cm.write_trace("sessions.swf.gz", SESSIONS.generate(jobs=12))
    return tmp_path


@pytest.mark.parametrize("kind", WORKLOADS)
def test_a_round_trip_gives_the_same_scenario_and_run_key(here: Path, kind: str) -> None:
    made = WORKLOADS[kind]()
    scenario = cm.Scenario(workload=made, policy="mbgs", machine=MACHINE)  # type: ignore[arg-type]
    again = cm.Scenario.from_toml(scenario.to_toml())
    assert again == scenario
    assert key_of_scenario(again) == key_of_scenario(scenario)
    (here / "below").mkdir()
    scenario.to_toml(here / "below" / "scenario.toml")
    from_file = cm.Scenario.from_toml("below/scenario.toml")
    assert [source.name for source in from_file.sources] == [source.name for source in scenario.sources]
    assert key_of_scenario(from_file) == key_of_scenario(scenario)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"machine": None},
        {"machine": WITH_STORE},
        {"machine": cm.Machine(nodes=8, context_switch=cm.ContextSwitch(fraction=0.02))},
        {"machine": cm.Machine(nodes=8, failures=cm.NodeFailures(mtbf_s=9e6, repair_s=60, distribution="weibull", shape=0.7))},
        {
            "machine": cm.Machine(
                nodes=8, failures=cm.Outages(node=[1, 0], down_s=[5, 9.5], up_s=[7, 20], nodes=8, cause=("a", "b"))
            )
        },
        {"policy": "easy:reserve_depth=2,backfill_order=shortest"},
        {"policy": "R/L-NG:speculation=0.9,test_runs=true"},
        {"seed": 7, "explain": True, "history": True, "name": "a = 'name'\t".strip()},
        {"fidelity": "node", "policy": "gs"},
        {"events": "one-by-one"},
        {"speedup": cm.DowneySpeedup(sigma=0.5, parallelism=2)},
    ],
)
def test_every_field_survives(fields: dict[str, object]) -> None:
    scenario = cm.Scenario(**{"workload": JOBS, "machine": MACHINE, **fields})  # type: ignore[arg-type]
    again = cm.Scenario.from_toml(scenario.to_toml())
    assert again == scenario
    assert key_of_scenario(again) == key_of_scenario(scenario)


def test_the_text_is_what_a_person_would_write() -> None:
    scenario = cm.Scenario(workload=JOBS.select(cm.JobFilter(nodes=(1, 8))), policy="bgs", machine=cm.Machine(nodes=8))
    assert scenario.to_toml() == (
        'policy = "bgs"\nseed = 1\nexplain = false\nfidelity = "fast"\nevents = "together"\n'
        'history = false\nstream = false\nspeedup = "linear"\n\n'
        '[machine]\nnodes = 8\nkill_at_estimate = true\ngpus_per_node = 1\nallocation = "any"\nround_s = 0.0\n\n'
        '[machine.time_slicing]\nquantum_s = 200.0\nmpl = 5\nat_events = "cut"\n\n'
        '[machine.context_switch]\ncharge = "on-change"\n\n'
        '[machine.checkpointing]\ncheckpoint_s = 0.0\nrestart_s = 0.0\ncounts = "gang"\nrestart_charge = "on-start"\n\n'
        "[workload]\nsynthetic = true\njobs = 40\nnodes = 64\nload = 0.65\nseed = 1\n"
        "steps = [\n    {keep = {nodes = [1, 8]}},\n]\n"
    )


def test_workloads_are_equal_if_their_jobs_are(here: Path) -> None:
    assert cm.read_swf("jobs.swf") == cm.read_swf(here / "jobs.swf")
    assert cm.read_swf("jobs.swf") != cm.read_swf("jobs.swf", scale=cm.LoadScale(run_time=2))
    assert hash(cm.read_swf("jobs.swf")) == hash(cm.read_swf(here / "jobs.swf"))
    assert cm.SwfStream("jobs.swf") == cm.SwfStream(here / "jobs.swf")
    assert cm.SwfStream("jobs.swf") != cm.SwfStream("jobs.swf", lenient=True)
    assert JOBS != "jobs"
    assert cm.merge(a=JOBS) != cm.merge(b=JOBS)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"workload": cm.Workload(JOBS.rows(), name="mine", machine_nodes=4)},
            r"Scenario\.to_toml: workload: 'mine' exists in memory only, so that no file can name it; write",
        ),
        ({"workload": JOBS.split()[0]}, "exists in memory only"),
        ({"workload": cm.merge(a=JOBS.renumbered(3))}, r"workload\.merge\.a: 'synthetic-1' exists in memory only"),
        ({"policy": "clustermodel.policies.easy:Easy"}, "policy: 'clustermodel.policies.easy:Easy' is not allowed in a file"),
        ({"policy": Fcfs()}, "policy: the object fcfs cannot be written; name the policy, as in "),
        ({"speedup": Mine()}, "speedup: .* cannot be written"),
        (
            {"workload": cm.JobStream(arrivals=5, nodes=1, run_s=Mine()).generate(jobs=3, machine_nodes=4)},
            r"workload\.job_stream\.run_s: .* cannot be written",
        ),
    ],
)  # fmt: skip
def test_what_exists_in_memory_only_is_refused_in_a_line(fields: dict[str, object], message: str) -> None:
    scenario = cm.Scenario(**{"workload": JOBS, **fields})  # type: ignore[arg-type]
    with pytest.raises(cm.SpecificationError, match=message) as refused:
        scenario.to_toml()
    assert "\n" not in str(refused.value)


MISTAKES = {
    "[workload]\nsynthetic = true\n[machine]\nnodes = 0": "machine.nodes: 0 is not allowed; it must be an integer >= 1",
    "[workload]\nsynthetic = true\n[machine]\nnods = 3":
        "machine.nods: unknown key (did you mean 'nodes'?); known are nodes, kill_at_estimate, time_slicing, context_switch, "
        "checkpointing, failures, suspended_per_node",
    "[workload]\nsynthetic = true\n[machine]\nmpl = 3\n": "machine.mpl: unknown key (did you mean "
    "'machine.time_slicing.mpl'?); known are nodes, ",
    "[workload]\nsynthetic = true\n[machine]\nsuspended_per_node = 3\n": "machine.nodes: is missing",
    "machine = 4\n" + SMALL:
        "machine: 4 is not allowed; it must be a table with the keys of a machine, or the name of a .toml file with them",
    SMALL + "[machine]\nnodes = 4\ntime_slicing = {quantum_s = 'long'}":
        "machine.time_slicing.quantum_s: 'long' is not a number; it must be a finite number of seconds > 0 and <= 1e+10",
    SMALL + "[machine]\nnodes = 4\nfailures = {mtbf_s = 0, repair_s = 1}":
        "machine.failures.mtbf_s: 0 is not allowed; it must be a finite number of seconds > 0 and <= 1e+10",
    SMALL + "[machine]\nnodes = 4\nfailures = {outages = 'no.csv'}": "machine.failures: no.csv: cannot be read",
    'machine = "none.toml"\n' + SMALL: "machine: 'none.toml': there is no such file",
    "seed = -1\n" + SMALL: "seed: -1 is not allowed; it must be an integer >= 0",
    "explain = 1\n" + SMALL: "explain: 1 is not allowed; it must be True or False",
    'fidelity = "slow"\n' + SMALL: "fidelity: 'slow' is not allowed; it must be one of fast, node",
    "sed = 1\n" + SMALL:
        "sed: unknown key (did you mean 'seed'?); known are workload, policy, machine, seed, explain, fidelity, events, "
        "history, stream, site, speedup, name",
    'policy = "esay"\n' + SMALL: "policy: 'esay' is unknown (did you mean 'easy'?); 'clustermodel policies' lists all",
    'policy = "easy:depth=2"\n' + SMALL: "policy easy: parameter 'depth' is unknown",
    'policy = {name = "easy", reserve_depth = [1]}\n' + SMALL:
        "policy.reserve_depth: [1] is not allowed; it must be a number, a text without commas, true or false",
    "policy = {reserve_depth = 1}\n" + SMALL: "policy.name: is missing",
    'speedup = "fast"\n' + SMALL: "speedup: 'fast' is not 'linear' or 'downey:SIGMA' with a number >= 0, as downey:1",
    "speedup = {sigma = -1}\n" + SMALL: "speedup.sigma: -1 is not allowed; it must be a finite number >= 0",
    "speedup = 3\n" + SMALL: "speedup: 3 is not allowed; it must be 'linear', 'downey:SIGMA', or a",
    "seed = 1": "workload: is missing; a scenario has a table [workload]",
    "[workload]\njobs = 3": "workload: its jobs come from nowhere; give one of trace, model, synthetic, job_stream, ",
    '[workload]\ntrace = "a"\nmodel = "b"': "workload: trace and model are given; give one of ",
    '[workload]\ntrace = "none.swf"': "workload.trace: 'none.swf': there is no such file",
    "[workload]\ntrace = 3": "workload.trace: 3 is not allowed; it must be the name of a file",
    '[workload]\ntrace = "jobs.swf"\nlenient = 1': "workload.lenient: 1 is not allowed; it must be True or False",
    '[workload]\ntrace = "jobs.swf"\nprocessors_from = "x"': "workload.processors_from: 'x' is not allowed; it must be ",
    '[workload]\ntrace = "jobs.swf"\nkeep = {node = [1, 2]}': "workload.keep.node: unknown key (did you mean 'nodes'?)",
    '[workload]\ntrace = "jobs.swf"\nscale = {size = 0}': "workload.scale.size: 0 is not allowed; it must be a finite",
    '[workload]\ntrace = "jobs.swf"\nstream = true\nname = "x"': "workload.name: not allowed with stream = true",
    "[workload]\nsynthetic = 3": "workload.synthetic: 3 is not allowed; it must be true",
    '[workload]\nsynthetic = true\njobs = "x"': "workload.jobs: 'x' is not a whole number; it must be an integer >= 2",
    "[workload]\nsynthetic = true\nload = true": "workload.load: True is not allowed; it must be > 0 and < 10",
    "[workload]\nsynthetic = true\nsteps = 3": "workload.steps: 3 is not allowed; it must be a list of tables",
    "[workload]\nsynthetic = true\nsteps = [3]": "workload.steps[0]: 3 is not allowed; it must be a table",
    "[workload]\nsynthetic = true\nsteps = [{}]":
        "workload.steps[0]: a step has one of keep, scale, estimates, resample, default_memory_gib, recorded_shapes and mall",
    "[workload]\nsynthetic = true\nsteps = [{default_memory_gib = -1}]":
        "workload.steps[0].default_memory_gib: Workload.with_default_memory: -1 is not allowed; it must be a number of GiB",
    "[workload]\nsynthetic = true\nsteps = [{estimates = 'phi'}]":
        "workload.steps[0].estimates: 'phi' is not allowed; it must be 'run-time', or a table with phi and seed",
    "[workload]\nsynthetic = true\nsteps = [{estimates = {phi = 2}}]": "workload.steps[0].estimates.phi: 2 is not allowed",
    "[workload]\nsynthetic = true\nsteps = [{resample = {of = 'months'}}]":
        "workload.steps[0].resample.of: 'months' is not allowed; it must be 'weeks', 'users' or a number of seconds",
    "[workload]\nsynthetic = true\nname = ''": "workload.name: '' is not allowed; it must be a line of text",
    "[workload]\nsynthetic = true\nmachine_nodes = 0": "workload.machine_nodes: 0 is not allowed; it must be an integer >= 1",
    '[workload]\nmodel = "blu-pacific"': "workload.model: 'blu-pacific' is neither a file nor a shipped model",
    "[workload]\nmodel = 3": "workload.model: 3 is not allowed; it must be one of blue-pacific, blue-pacific-2, the name of "
    "a file, or a table",
    "[workload.model]\nname = 'x'": "workload.model.source: is missing",
    "[workload]\njob_stream = 3": "workload.job_stream: 3 is not allowed; it must be a table with the fields of a JobStream",
    "[workload.job_stream]\nnodes = 1\nrun_s = 3": "workload.job_stream.arrivals: is missing",
    "[workload.job_stream]\narrivals = 5\nnodes = 'x'\nrun_s = 3": "workload.job_stream.nodes: 'x' is not a distribution",
    "[workload.job_stream]\narrivals = {type = 'Poison'}\nnodes = 1\nrun_s = 3":
        "workload.job_stream.arrivals.type: 'Poison' is unknown (did you mean 'Poisson'?); known are ",
    "[workload.job_stream]\narrivals = {type = 'Poisson', per_hour = 0}\nnodes = 1\nrun_s = 3":
        "workload.job_stream.arrivals.per_hour: 0 is not allowed; it must be a finite number > 0",
    "[workload.job_stream]\narrivals = {scipy = 'geometric'}\nnodes = 1\nrun_s = 3":
        "workload.job_stream.arrivals.scipy: 'geometric' is not allowed; it must be the name of a distribution of scipy.stats",
    "[workload.job_stream]\narrivals = {mean = 3}\nnodes = 1\nrun_s = 3":
        "workload.job_stream.arrivals.mean: unknown key; a distribution has type, scipy, or numbers with their weights",
    "[workload.job_stream]\narrivals = 5\nnodes = 1\nrun_s = 3": "workload: JobStream.generate: give either jobs or days",
    "[workload.merge]\na = {synthetic = 1}": "workload.merge.a.synthetic: 1 is not allowed; it must be true",
    "[workload]\nmerge = {}": "workload.merge: {} is not allowed; it must be a table with a table for each label",
    "workload = [3]": "workload[0]: 3 is not allowed; it must be a table with the keys of a workload, or the name",
    "workload = []": "workload: no job stream is given; at least one is needed",
    'workload = "again.toml"': "more than 10 files include each other",
    "a = \nb = 1": "is not TOML: Invalid value (at line 1, column 5)",
}  # fmt: skip


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_one_line_with_file_and_key(here: Path, command_line: Command, text: str) -> None:
    (here / "again.toml").write_text('merge = {a = "again.toml"}')
    (here / "file.toml").write_text(text)
    finished = command_line("run", "file.toml")
    assert finished.code == 2
    assert finished.out == ""
    assert len(finished.err.splitlines()) == 1
    file = "again.toml" if "again" in text else "file.toml"
    assert finished.err.startswith(f"clustermodel: error: {file}: {MISTAKES[text]}")


def test_files_that_cannot_be_read_are_a_line(here: Path, command_line: Command) -> None:
    assert command_line("run", "none.toml").err == "clustermodel: error: none.toml: cannot be read: No such file or directory\n"
    assert command_line("run", here).code == 2
    (here / "binary.toml").write_bytes(b"\xff\xfe")
    assert command_line("run", "binary.toml").err.startswith("clustermodel: error: binary.toml: is not UTF-8: ")
    with pytest.raises(cm.SpecificationError, match=r"^scenario: is not TOML: "):
        cm.Scenario.from_toml("a = =")


def test_machines_policies_and_workloads_are_files_that_scenarios_share(here: Path) -> None:
    (here / "shared").mkdir()
    cm.write_trace(here / "shared" / "jobs.swf", JOBS)
    (here / "shared" / "cielo.toml").write_text("nodes = 48\n[time_slicing]\nmpl = 2\n")
    (here / "shared" / "bgs.toml").write_text('name = "easy"\nreserve_depth = 3\nbackfill_order = "shortest"\n')
    (here / "shared" / "jobs.toml").write_text('trace = "jobs.swf"\n')
    (here / "mine.toml").write_text(
        'machine = "shared/cielo.toml"\npolicy = "shared/bgs.toml"\nworkload = "shared/jobs.toml"\n'
    )
    scenario = cm.Scenario.from_toml(here / "mine.toml")
    assert scenario.machine == cm.Machine(nodes=48, time_slicing=cm.TimeSlicing(mpl=2))
    assert scenario.policy == "easy:reserve_depth=3,backfill_order=shortest"
    assert scenario.sources[0].provenance.source == str(here / "shared" / "jobs.swf")
    assert cm.Scenario.from_toml(scenario.to_toml()) == scenario


def test_a_module_beside_the_file_is_not_imported(here: Path, command_line: Command) -> None:
    (here / "beside_the_file.py").write_text("from pathlib import Path\nPath('imported').touch()\n")
    (here / "file.toml").write_text('policy = "beside_the_file:Beside:reserve_depth=2"\n' + SMALL)
    for options in ([], ["--policy", "easy"]):
        finished = command_line("run", "file.toml", *options)
        assert finished.code == 2
        assert finished.err.startswith(
            "clustermodel: error: file.toml: policy: 'beside_the_file:Beside' is not allowed in a file, which must not run code"
        )
    assert not (here / "imported").exists()


def test_a_policy_of_a_module_is_given_on_the_command_line(here: Path, command_line: Command) -> None:
    (here / "given_by_hand.py").write_text("from clustermodel.policies.easy import Easy\n\nclass Mine(Easy):\n    pass\n")
    (here / "file.toml").write_text(SMALL)
    assert len(run(command_line, "file.toml", "--policy", "given_by_hand:Mine:reserve_depth=2")) == 1


@pytest.mark.parametrize("policy", ["os:system:command=touch called", "os:_exit:status=0", "subprocess:Popen:args=ls"])
def test_what_is_no_policy_is_never_called(here: Path, command_line: Command, policy: str) -> None:
    (here / "file.toml").write_text(SMALL)
    finished = command_line("run", "file.toml", "--policy", policy)
    assert finished.code == 2
    assert "a class with" in finished.err
    assert len(finished.err.splitlines()) == 1
    assert not (here / "called").exists()


def run(command_line: Command, *arguments: object) -> list[dict[str, object]]:
    finished = command_line("run", *arguments, "--json")
    assert finished.code == 0, finished.err
    rows: list[dict[str, object]] = json.loads(finished.out)
    return rows


def test_a_file_runs_and_options_replace_its_values(here: Path, command_line: Command) -> None:
    cm.Scenario(workload=JOBS, policy="easy", machine=MACHINE).to_toml("one.toml")
    assert [row["policy"] for row in run(command_line, "one.toml")] == ["easy"]
    assert [row["policy"] for row in run(command_line, "one.toml", "--policy", "fcfs", "--policy", "bgs")] == ["fcfs", "bgs"]
    (row,) = run(command_line, "one.toml", "--nodes", 8)
    expected = cm.Scenario(workload=JOBS, policy="easy", machine=cm.Machine(nodes=8, kill_at_estimate=False)).run().summary()
    assert row["mean_wait_s"] == expected.mean_wait_s
    (row,) = run(command_line, "one.toml", "--kill-at-estimate", "--policy", "gs", "--quantum", 30, "--context-switch", 0.1)
    machine = cm.Machine(
        nodes=64,
        time_slicing=cm.TimeSlicing(quantum_s=30, mpl=3),
        context_switch=cm.ContextSwitch(fraction=0.1, charge="every-slice"),
    )
    assert row["mean_response_s"] == cm.Scenario(workload=JOBS, policy="gs", machine=machine).run().summary().mean_response_s


def test_several_files_have_their_names_as_labels(here: Path, command_line: Command) -> None:
    cm.Scenario(workload=JOBS).to_toml("one.toml")
    cm.Scenario(workload=JOBS, name="second").to_toml("two.toml")
    assert [row["policy"] for row in run(command_line, "one.toml", "two.toml")] == ["one", "second"]
    labels = [row["policy"] for row in run(command_line, "one.toml", "two.toml", "--policy", "easy", "--policy", "fcfs")]
    assert labels == ["one easy", "one fcfs", "second easy", "second fcfs"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["one.toml", "--jobs", 3], "one.toml: --jobs: the jobs are those of the file; change its table [workload]"),
        (["one.toml", "--scale-run-time", 3], "one.toml: --scale-run-time: the jobs are those of the file"),
        (["one.py", "one.toml"], "one.py: a script stands alone; several scenarios are .toml files"),
        (["one.py", "--seed", 2], "one.py: --seed: a script brings its own; only files take it"),
        (["one.py", "--quantum", 2], "one.py: --quantum: a script brings its own; only files take it"),
    ],
)
def test_options_that_mean_nothing_with_a_scenario_are_refused(
    here: Path, command_line: Command, arguments: list[object], message: str
) -> None:
    (here / "one.toml").write_text(SMALL)
    (here / "one.py").write_text("scenarios = []")
    finished = command_line("run", *arguments)
    assert finished.code == 2
    assert finished.err.startswith(f"clustermodel: error: {message}")


def test_verbose_says_what_is_done_and_more_so_twice(here: Path, command_line: Command) -> None:
    (here / "one.toml").write_text('[workload]\ntrace = "jobs.swf"\n')
    quiet = command_line("run", "one.toml").err
    run, note = quiet.splitlines()
    assert (run.partition(" in ")[0], note.partition(" of ")[0]) == ("easy: 40 jobs", "note: 79 %")
    said = command_line("-v", "run", "one.toml").err
    assert "tables: read one.toml\n" in said
    assert "workload.swf: read jobs.swf: 40 jobs in " in said
    assert "experiment.scenario: run easy: jobs on 64 nodes, seed 1, fidelity fast\n" in said
    assert "key" not in said
    more = command_line("-vv", "run", "one.toml").err
    assert f"run easy has the key {key_of_scenario(cm.Scenario.from_toml('one.toml'))}\n" in more
    assert "experiment.scenario: machine of easy: Machine(nodes=64," in more
    logger = logging.getLogger("clustermodel")
    assert (logger.level, logger.handlers) == (logging.NOTSET, [])
