"""Studies: the same results however they are run, whatever stops them, and errors in one line."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clustermodel import Job, Machine, Scenario, SpecificationError, TimeSlicing, Workload, synthetic_workload
from clustermodel.cli import main
from clustermodel.errors import OutputError
from clustermodel.experiment import executor
from clustermodel.experiment.executor import Progress
from clustermodel.experiment.run_key import Opened, Run
from clustermodel.experiment.script import load_experiment, sweep
from clustermodel.experiment.store import RUNS as RUN_FILES
from clustermodel.experiment.store import STUDY_FILE, Store, read_study, write_content
from clustermodel.experiment.study import Experiment, Study
from clustermodel.experiment.study_table import StudyTable
from clustermodel.experiment.worker import Outcome
from clustermodel.measure.quantities import account_columns
from clustermodel.policies.fcfs import Fcfs
from tests.processes import started

SCRIPT = Path(__file__).with_name("example.py")
RUNS = 24
FAILING = 4
"""Greedy gives up on the 300 made jobs: two machines, two replications."""


def content(path: Path) -> dict[str, Any]:
    """Return what a file of a store has, without how long its run took."""
    plain: dict[str, Any] = json.loads(path.read_bytes())
    return {name: value for name, value in plain.items() if name not in ("digest", "seconds")}


def held(directory: Path) -> dict[str, dict[str, Any]]:
    """Return all that a store's JSON files have but how long runs took: facts, trials, numbers, errors, digests of tables."""
    files = [directory / STUDY_FILE, *sorted((directory / RUN_FILES).iterdir())]
    return {path.name: content(path) for path in files}


def runs_of(study: Experiment[Any]) -> list[Run]:
    """Return the runs of an experiment as they are before any is finished."""
    return Opened(study).runs(study.trials(study.first_table()))


def serial(source: Experiment[Any] | str | Path, directory: str | Path, **options: Any) -> StudyTable:
    """Run an experiment in this process."""
    return sweep(source, directory, **{"workers": 1, **options})


def swept(source: Experiment[Any] | str | Path, directory: str | Path, **options: Any) -> dict[str, int]:
    """Run an experiment and return its trials by state."""
    serial(source, directory, **options)
    with Store.read(directory) as store:
        return store.states()


def all_tables(directory: Path) -> pd.DataFrame:
    with Store.read(directory) as store:
        keys = list(dict.fromkeys(store.results()["run"]))
        kinds = {"records": store.records, "states": store.states_over_time, "placements": store.placements}
        return pd.concat([read(key).assign(run=key) for name, read in kinds.items() for key in keys if store.has(name, key)])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of the study, run one after the other."""
    directory = tmp_path_factory.mktemp("whole") / "results"
    assert swept(SCRIPT, directory) == {"pending": 0, "done": RUNS - FAILING, "failed": FAILING}
    return directory


def assert_same(directory: Path, whole: Path) -> None:
    assert held(directory) == held(whole)
    pd.testing.assert_frame_equal(all_tables(directory), all_tables(whole))


def test_a_run_that_fails_keeps_its_error_and_stops_nothing(whole: Path) -> None:
    with Store.read(whole) as store:
        failures = store.failures()
    assert len(failures) == FAILING
    for factors, error in failures:
        assert "workload made, policy greedy" in factors
        assert error.endswith("RuntimeError: too many jobs for me")


def test_the_tidy_table_has_factors_and_summaries_and_is_what_scenarios_give(whole: Path) -> None:
    with Store.read(whole) as store:
        table = store.results()
    assert len(table) == RUNS - FAILING
    assert table.columns[:7].tolist() == ["run", "machine", "workload", "policy", "replication", "nodes", "seed"]
    row = table[(table.machine == "large") & (table.workload == "made") & (table.policy == "R/L-NG") & (table.replication == 2)]
    jobs = synthetic_workload(jobs=300, seed=6)
    alone = Scenario(machine=Machine(nodes=192), workload=jobs, policy="R/L-NG", seed=6).run()
    assert row["mean_wait_s"].item() == alone.summary().mean_wait_s
    with Store.read(whole) as store:
        pd.testing.assert_frame_equal(store.records(row["run"].item()), alone.jobs)
        pd.testing.assert_frame_equal(store.table().frame, table)
    for name, share in account_columns(alone.ledger).items():
        assert row[name].item() == share


def test_common_random_numbers(whole: Path) -> None:
    with Store.read(whole) as store:
        table = store.results()
        made = table[(table.workload == "made") & (table.replication == 1)]
        submitted = [store.records(key)["submit_s"].tolist() for key in made["run"]]
    assert all(one == submitted[0] for one in submitted)


@pytest.mark.long
def test_two_processes_give_the_same_results(whole: Path, tmp_path: Path) -> None:
    seen: list[Progress] = []
    sweep(SCRIPT, tmp_path / "out", workers=2, progress=seen.append)
    assert_same(tmp_path / "out", whole)
    assert seen[-1] == Progress(RUNS, RUNS - FAILING, 0, FAILING)
    assert max(progress.running for progress in seen) == 2


def test_by_default_there_are_as_many_workers_as_processors_that_may_be_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 128)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5}, raising=False)  # as in a job of a cluster
    monkeypatch.setattr(executor, "ProcessPoolExecutor", None)  # nothing is started
    workloads = {"short": lambda seed: synthetic_workload(jobs=10, seed=seed)}
    study = Study.grid(name="s", workloads=workloads, policies=["fcfs"], replications=3)
    assert len(sweep(study, tmp_path)) == 3


def test_the_longest_runs_are_first_at_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    took, order = {"fcfs": 1.0, "easy": 3.0, "conservative": 2.0}, []

    class Two(executor._Serial):
        def capacity(self) -> int:
            return 2

        def submit(self, run: Run) -> Future[Outcome]:
            order.append((run.jobs, str(run.about["policy"]), run.trial.replication))
            future: Future[Outcome] = Future()
            future.set_result(Outcome({"jobs": run.jobs}, seconds=took[order[-1][1]]))
            return future

    monkeypatch.setattr(executor, "_workers", lambda origin, options, _: Two(origin, options))
    workloads = {
        "short": lambda seed: synthetic_workload(jobs=10, seed=seed),
        "long": lambda seed: synthetic_workload(jobs=20, seed=seed),
    }
    sweep(Study.grid(name="s", workloads=workloads, policies=list(took), replications=8), tmp_path)
    by_replication = [(jobs, policy, number) for jobs in (20, 10) for number in range(1, 9) for policy in took]
    before = len(order) - 2 * executor.LAST
    assert order[:before] == by_replication[:before]
    assert order[before:] == sorted(by_replication[before:], key=lambda run: -took[run[1]])


def test_equal_trials_share_one_run(tmp_path: Path) -> None:
    """The same jobs under two names, and a policy that declares that it draws no random numbers."""

    class Declared(Fcfs):
        name, depends_on = "declared", frozenset[str]()

    jobs = synthetic_workload(jobs=30)
    study = Study.grid(name="s", workloads={"a": jobs, "b": jobs}, policies=[Declared()], replications=3)
    seen: list[Progress] = []
    table = serial(study, tmp_path, progress=seen.append)
    assert [progress.done for progress in seen] == [0, 6]  # one run is the result of all six trials
    (path,) = (tmp_path / RUN_FILES).iterdir()
    assert set(table.frame["run"]) == {path.stem}
    assert table.frame[["workload", "replication", "seed"]].to_numpy().tolist() == [
        [name, replication, replication] for name in "ab" for replication in (1, 2, 3)
    ]
    assert table.interval("mean_wait_s", workload="a").count == 1
    everything = replace(study, factors={**study.factors, "policy": ["fcfs", Declared()]})
    assert len({run.key for run in runs_of(everything) if run.trial.point[1] == "declared"}) == 1


def test_job_tables_are_kept_of_the_first_replication_or_of_all(tmp_path: Path) -> None:
    study = Study.grid(
        name="t", workloads={"w": lambda seed: synthetic_workload(jobs=20, seed=seed)}, policies=["easy"], replications=3
    )
    sweep(study, tmp_path, workers=1)
    for wanted, done, kept in (("first", 3, [True, False, False]), ("all", 1, [True] * 3), ("first", 3, [True] * 3)):
        seen: list[Progress] = []
        sweep(replace(study, job_tables=wanted), tmp_path, workers=1, progress=seen.append)
        assert (seen[0].done, seen[-1].done) == (done, 3)  # runs that lack a table are run again
        with Store.read(tmp_path) as store:
            keys = store.results()["run"].tolist()
            assert [store.has("records", key) for key in keys] == [store.has("states", key) for key in keys] == kept
            if not all(kept):
                with pytest.raises(SpecificationError, match=rf"^run: '{keys[1]}' has no records in "):
                    store.records(keys[1])


def test_a_study_that_grows_keeps_what_it_has(tmp_path: Path) -> None:
    jobs = synthetic_workload(jobs=50)
    serial(Study.grid(name="grows", workloads={"jobs": jobs}, policies=["fcfs"]), tmp_path)
    seen: list[Progress] = []
    serial(Study.grid(name="grows", workloads={"jobs": jobs}, policies=["easy", "fcfs"]), tmp_path, progress=seen.append)
    assert (seen[0].done, seen[-1].done) == (1, 2)
    with Store.read(tmp_path) as store:
        assert store.results()["policy"].tolist() == ["easy", "fcfs"]


def test_only_its_own_half_written_files_are_taken_away(tmp_path: Path) -> None:
    foreign = [tmp_path / "download" / "trace.part", tmp_path / "exhibits" / ".thesis.part"]
    ours = [tmp_path / folder / f".{'0' * 16}.part" for folder in ("records", "exhibits")]
    for left in (*foreign, *ours):
        left.parent.mkdir(exist_ok=True)
        left.write_text("half")
    serial(Study.grid(name="s", workloads={"jobs": synthetic_workload(jobs=5)}, policies=["easy"]), tmp_path)
    assert [path.exists() for path in (*foreign, *ours)] == [True, True, False, False]


def test_runs_that_left_the_study_are_kept_and_left_out(tmp_path: Path) -> None:
    """They may have the same names as others that are in it now: a mean over both would mean nothing."""
    jobs = synthetic_workload(jobs=50)
    for nodes in (128, 140):
        machines = {"ours": Machine(nodes=nodes)}
        serial(Study.grid(name="changed", machines=machines, workloads={"jobs": jobs}, policies=["fcfs"]), tmp_path)
    with Store.read(tmp_path) as store:
        assert store.results()["nodes"].tolist() == [140]
        assert store.states()["done"] == len(store.earlier()) == 1
        assert sorted(store.results(earlier=True)["nodes"]) == [128, 140]
    machines = {"ours": Machine(nodes=128)}
    seen: list[Progress] = []
    serial(
        Study.grid(name="changed", machines=machines, workloads={"jobs": jobs}, policies=["fcfs"]),
        tmp_path,
        progress=seen.append,
    )
    assert seen[0].done == 1  # what is back in the study is not repeated
    with Store.read(tmp_path) as store:
        assert store.results()["nodes"].tolist() == [128]


def test_the_warm_up_is_stored_and_told_apart(tmp_path: Path) -> None:
    jobs = synthetic_workload(jobs=200)
    for warm_up_s in (0.0, 86_400.0):
        study = Study.grid(name="warm", workloads={"jobs": jobs}, policies=["easy"], warm_up_s=warm_up_s)
        serial(study, tmp_path)
        with Store.read(tmp_path) as store:
            row = store.results()
            stored = store.study.warm_up_s
        alone = Scenario(workload=jobs, policy="easy").run().summary(warm_up_s=warm_up_s)
        assert row[["jobs", "mean_wait_s", "warm_up_s"]].to_numpy().tolist() == [[alone.jobs, alone.mean_wait_s, warm_up_s]]
        assert stored == warm_up_s
    assert alone.jobs < 200


def test_the_tables_of_a_run_are_those_of_its_result(tmp_path: Path) -> None:
    """A run that lacks the history that the study has come to want runs again; one that shares no nodes in time lacks none."""
    jobs, machine = synthetic_workload(jobs=60, nodes=32), {"m": Machine(nodes=32, time_slicing=TimeSlicing(quantum_s=600))}
    for history, done in ((False, 0), (True, 1), (False, 2)):
        seen: list[Progress] = []
        study = Study.grid(name="h", machines=machine, workloads={"jobs": jobs}, policies=["easy", "bgs"], history=history)
        serial(study, tmp_path, progress=seen.append)
        assert seen[0].done == done
        with Store.read(tmp_path) as store:
            keys = store.results()["run"].tolist()
            assert [store.has("placements", key) for key in keys] == [True, bool(done)]
            if history:
                for trial, key in zip(study.trials(study.first_table()), keys, strict=True):
                    scenario = study.scenario_of(trial)
                    assert scenario is not None
                    alone = scenario.run()
                    pd.testing.assert_frame_equal(store.placements(key), alone.placements)
                    pd.testing.assert_frame_equal(store.states_over_time(key), alone.states)
                assert "replica" in set(store.placements(keys[1])["kind"])
            elif not done:
                with pytest.raises(SpecificationError, match=f"run: '{keys[1]}' has no placements in"):
                    store.placements(keys[1])


@pytest.mark.long
def test_a_worker_process_that_dies_fails_its_run_and_no_other(tmp_path: Path) -> None:
    script = tmp_path / "deadly.py"
    script.write_text(
        "import os\n"
        "from clustermodel import synthetic_workload\n"
        "from clustermodel.policies.fcfs import Fcfs\n"
        "from clustermodel.experiment.study import Study\n"
        "class Deadly(Fcfs):\n"
        "    name = 'deadly'\n"
        "    def decide(self, batch, view):\n"
        "        os._exit(9)\n"
        "jobs = {str(n): synthetic_workload(jobs=40, seed=n) for n in range(4)}\n"
        "study = Study.grid(name='deadly', workloads=jobs, policies=['easy', Deadly(), 'fcfs'])\n"
    )
    assert swept(script, tmp_path / "out", workers=2) == {"pending": 0, "done": 8, "failed": 4}
    with Store.read(tmp_path / "out") as store:
        assert all("its worker process died" in error for _, error in store.failures())


# Order, keys.


def test_the_runs_with_most_jobs_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = {"few": synthetic_workload(jobs=20), "many": synthetic_workload(jobs=60, seed=2)}
    order, real = [], Scenario.run
    monkeypatch.setattr(Scenario, "run", lambda self: (order.append(len(self.workload)), real(self))[1])
    serial(Study.grid(name="order", workloads=jobs, policies=["easy", "fcfs"]), tmp_path)
    assert order == [60, 60, 20, 20]


def test_measures_that_are_true_or_false_are_read_again(tmp_path: Path) -> None:
    measures = {"long": lambda _: True, "none": lambda _: None, "whole": lambda _: 3}
    study = Study.grid(name="b", workloads={"w": synthetic_workload(jobs=5)}, policies=["easy"], measures=measures)
    table = study.run(tmp_path, workers=1)
    pd.testing.assert_frame_equal(study.stored(tmp_path).frame, table.frame)
    assert table.frame[["long", "none", "whole"]].to_numpy().tolist() == [[True, None, 3]]


def test_a_key_depends_on_everything_that_changes_numbers_and_on_nothing_else() -> None:
    jobs = synthetic_workload(jobs=20)

    def key(**changes: object) -> str:
        given = {"machine": Machine(nodes=128), "workload": jobs, "policy": "easy", "seed": 1, **changes}
        return runs_of(Study.of_scenarios("any", [Scenario(**given)]))[0].key  # type: ignore[arg-type]

    renamed = Workload.from_jobs(jobs.jobs(), name="another name")
    assert key() == key() == key(name="label") == key(workload=renamed) == key(workload=[jobs])
    assert key(seed=2) == key()  # EASY draws no random numbers
    longer = [*jobs.jobs(), Job(id=99, nodes=1, submit_s=1e7, run_s=5)]
    others = [
        key(machine=Machine(nodes=129)), key(machine=Machine(nodes=128, kill_at_estimate=False)),
        key(policy="easy:reserve_depth=2"), key(policy="R"), key(policy="R", seed=2),
        key(workload=Workload.from_jobs(longer)), key(workload=jobs.with_perfect_estimates()), key(fidelity="node"),
    ]  # fmt: skip
    assert len({key(), *others}) == 1 + len(others)


# Errors.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"replications": 0}, "Study.replications: 0 is not allowed; it must be an integer >= 1"),
        ({"warm_up_s": -1.0}, "Study.warm_up_s: -1.0 is not allowed"),
        ({"name": "half \ud800"}, r"Study.name: 'half \\ud800' is not allowed; a name must be made of whole characters"),
        ({"workloads": {"\udfff": synthetic_workload(jobs=5)}}, r"Study.factors: workload: '\\udfff' is not allowed"),
        ({"seed": -1}, "Study.seed: -1 is not allowed"),
        ({"workloads": {"a": 5}}, "Study.workloads: a: 5 is not allowed; it must be a Workload, an SwfStream, or a function"),
        ({"machines": {"m": 5}}, "Study.machines: m: 5 is not allowed; it must be a Machine"),
        ({"name": "a\0b"}, r"Study\.name: 'a\\x00b' is not allowed; a name must have no NUL character$"),
    ],
)
def test_a_study_names_the_field_and_what_is_allowed(given: dict[str, object], message: str) -> None:
    fields = {"name": "s", "workloads": {"jobs": synthetic_workload(jobs=5)}, "policies": ["easy"], **given}
    with pytest.raises(SpecificationError, match=message):
        Study.grid(**fields)  # type: ignore[arg-type]


def test_a_policy_that_is_unknown_or_a_workload_that_is_none_ends_the_sweep(tmp_path: Path) -> None:
    jobs = synthetic_workload(jobs=5)
    with pytest.raises(SpecificationError, match=r"^policy: 'esay' is unknown \(did you mean 'easy'\?\)"):
        serial(Study.grid(name="s", workloads={"a": jobs}, policies=["esay"]), tmp_path)
    with pytest.raises(SpecificationError, match="workload: 1 is not allowed; it must be"):
        serial(Study.grid(name="s", workloads={"a": int}, policies=["easy"]), tmp_path)  # type: ignore[dict-item]
    assert not list(tmp_path.iterdir())


def test_single_scenarios_bring_their_own_seeds_and_names(tmp_path: Path) -> None:
    jobs = synthetic_workload(jobs=20)
    scenarios = [
        Scenario(machine=Machine(nodes=128), workload=jobs, policy="R/L-NG", seed=seed, name=str(seed)) for seed in (3, 8)
    ]
    serial(Study.of_scenarios("s", scenarios), tmp_path)
    with Store.read(tmp_path) as store:
        table = store.results()
    assert table[["scenario", "seed", "policy"]].to_numpy().tolist() == [["3", 3, "3"], ["8", 8, "8"]]
    with pytest.raises(SpecificationError, match=r"Study\.scenarios: '3' is there twice; give each a name=\.\.\. of its own"):
        Study.of_scenarios("s", [scenarios[0], scenarios[0]])
    with pytest.raises(SpecificationError, match=r"Study\.scenarios: 5 is not allowed; it must be a Scenario"):
        Study.of_scenarios("s", [5])  # type: ignore[list-item]


def test_another_studys_directory_is_refused(whole: Path) -> None:
    jobs = {"jobs": synthetic_workload(jobs=5)}
    with pytest.raises(SpecificationError, match="it holds the study 'example', not 'other'; give another --out"):
        serial(Study.grid(name="other", workloads=jobs, policies=["easy"]), whole)
    with pytest.raises(SpecificationError, match="it holds the seed '5', not '6'; give another --out"):
        serial(Study.grid(name="example", workloads=jobs, policies=["easy"], seed=6), whole)


def test_a_directory_that_is_no_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecificationError, match="there is no study here"), Store.read(tmp_path):
        pass
    (tmp_path / STUDY_FILE).touch()
    with pytest.raises(SpecificationError, match=r"study\.json: damaged: not as it was written$"), Store.read(tmp_path):
        pass
    for text in ("this is no JSON" * 50, "[]", "{}", '{"format": "5"}'):
        (tmp_path / STUDY_FILE).write_text(text)
        with pytest.raises(SpecificationError, match=r"study\.json: damaged: not as it was written$"), Store.read(tmp_path):
            pass
    file = tmp_path / "file"
    file.touch()
    study = Study.grid(name="s", workloads={"jobs": synthetic_workload(jobs=5)}, policies=["easy"])
    with pytest.raises(OutputError, match="cannot be written"):
        serial(study, file / "below")


def test_two_sweeps_at_a_time_write_the_same_files(tmp_path: Path) -> None:
    study = Study.grid(name="s", workloads={"jobs": synthetic_workload(jobs=5)}, policies=["easy"])
    (run,) = runs_of(study)
    for store in (Store.create(tmp_path, study), Store.create(tmp_path, study)):
        store.enter(study, [run])
        store.keep(run, Outcome(tables={"records": b"1"}))
    with Store.read(tmp_path) as store:
        assert store.states()["done"] == 1


def test_a_store_of_another_format_is_refused(tmp_path: Path) -> None:
    study = Study.grid(name="s", workloads={"jobs": synthetic_workload(jobs=5)}, policies=["easy"])
    serial(study, tmp_path)
    write_content(tmp_path / STUDY_FILE, replace(read_study(tmp_path / STUDY_FILE), format="9"))
    for use in (lambda: serial(study, tmp_path), lambda: Store.read(tmp_path).__enter__()):
        with pytest.raises(SpecificationError, match=r"its format is '9'; this version of clustermodel reads '5'$"):
            use()


# Commands.


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return int(stopped.value.code or 0), printed.out, printed.err

    return run


@pytest.mark.long
def test_the_commands(command: Callable[..., tuple[int, str, str]], whole: Path, tmp_path: Path) -> None:
    code, _, err = command("sweep", SCRIPT, "--out", tmp_path / "out", "--workers", "1")
    assert code == 1
    assert f"20 of {RUNS} runs done" in err.replace("\n", " ")
    assert err.count("RuntimeError: too many jobs for me") == 1
    assert f"and {FAILING - 1} other runs" in err.replace("\n", " ")
    assert_same(tmp_path / "out", whole)
    exports = tmp_path / "table.csv", tmp_path / "earlier.csv"
    code, out, err = command("results", tmp_path / "out")
    assert code == 0
    assert "0 pending, 20 done, 4 failed" in err
    assert "R/L-NG" in out
    assert "e+0" not in out
    shorter = tmp_path / "example.py"
    shorter.write_text(
        SCRIPT.read_text()
        + "\nfrom dataclasses import replace\n"
        + "study = replace(study, factors={**study.factors, 'policy': ['easy', 'R/L-NG']})\n"
    )
    command("sweep", shorter, "--out", tmp_path / "out", "--workers", "1")
    _, _, err = command("results", tmp_path / "out", "--csv", exports[0])
    assert "left out: 4 runs that the study had before it was changed; --earlier shows them too" in err
    command("results", tmp_path / "out", "--csv", exports[1], "--earlier")
    assert (len(pd.read_csv(exports[0])), len(pd.read_csv(exports[1]))) == (16, 20)


def test_scenarios_of_a_script_are_a_study_too(command: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    script = tmp_path / "two.py"
    script.write_text(
        "from clustermodel import Scenario, synthetic_workload\n"
        "def scenarios():\n"
        "    for depth in (1, 2):\n"
        "        policy = f'easy:reserve_depth={depth}'\n"
        "        yield Scenario(workload=synthetic_workload(jobs=30), policy=policy, name=f'depth {depth}')\n"
    )
    code, _, err = command("sweep", script, "--out", tmp_path / "out", "--workers", "1")
    assert (code, "2 of 2 runs done" in err) == (0, True)
    with Store.read(tmp_path / "out") as store:
        assert store.results()["scenario"].tolist() == ["depth 1", "depth 2"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x = 1 / 0\n", "study.py:1: ZeroDivisionError: division by zero"),
        ("x = (\n", "study.py:1: '(' was never closed"),
        ("import sys\nsys.exit()\n", "study.py:2: SystemExit"),
        ("x = 1\n", "defines neither `study` (a Study, or a function that returns one) nor `scenarios`"),
        ("study = 3\n", "defines neither `study` (a Study, or a function that returns one) nor `scenarios`"),
    ],
)
def test_a_script_that_fails_is_one_line(
    command: Callable[..., tuple[int, str, str]], tmp_path: Path, text: str, complaint: str
) -> None:
    script = tmp_path / "study.py"
    script.write_text(text)
    code, _, err = command("sweep", script, "--out", tmp_path / "out")
    assert code == 2
    assert complaint in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["sweep", "none.py", "--out", "x"], "none.py: no such scenario script"),
        (["sweep", str(SCRIPT)], "Missing option '--out'"),
        (["sweep", str(SCRIPT), "--out", "x", "--workers", "0"], "--workers: 0 is not allowed; it must be >= 1"),
        (
            ["sweep", str(SCRIPT), "--out", "x", "--workers", "2", "--dask", "tcp://here:1"],
            "--workers: a Dask cluster has its own",
        ),
        (["sweep", str(SCRIPT), "--out", "x", "--dask", "tcp://here:1", "--tls-ca", "ca"], "TLS needs all three"),
        (["results", "nowhere"], "nowhere: there is no study here"),
    ],
)
def test_bad_arguments(command: Callable[..., tuple[int, str, str]], arguments: list[str], complaint: str) -> None:
    code, _, err = command(*arguments)
    assert (code, complaint in err) == (2, True)


def test_ctrl_c_keeps_what_is_done(
    monkeypatch: pytest.MonkeyPatch, command: Callable[..., tuple[int, str, str]], whole: Path, tmp_path: Path
) -> None:
    real, calls = Scenario.run, iter(range(99))

    def interrupted(self: Scenario) -> object:
        if next(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return real(self)

    with monkeypatch.context() as patch:
        patch.setattr(Scenario, "run", interrupted)
        code, _, err = command("sweep", SCRIPT, "--out", tmp_path / "out", "--workers", "1")
    assert code == 130
    assert f"of {RUNS} runs are done, and the same command goes on from there" in err.replace("\n", " ")
    with Store.read(tmp_path / "out") as store:
        states = store.states()
    assert states["done"] + states["failed"] == 3  # all that had come to an end
    serial(SCRIPT, tmp_path / "out")
    assert_same(tmp_path / "out", whole)


@pytest.mark.long
def test_a_real_ctrl_c_ends_the_workers_too_and_leaves_no_traceback(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from clustermodel.cli import main; main()"
    )
    command = [sys.executable, "-c", program, "sweep", str(SCRIPT), "--out", str(out), "--workers", "2"]
    with started(command, stderr=subprocess.PIPE, start_new_session=True) as process:
        while not list((out / "records").glob("*.parquet")) and process.poll() is None:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    assert process.returncode == 130
    assert "interrupted; " in err
    serial(SCRIPT, out)
    assert_same(out, whole)


def test_set_with_a_dotted_name_changes_a_field_of_every_scenario(tmp_path: Path) -> None:
    text = (
        "from clustermodel import Machine, Scenario, Study, synthetic_workload\n"
        "def scenario(policy, seed):\n"
        "    return Scenario(machine=Machine(nodes=8), workload=synthetic_workload(jobs=9, nodes=8), policy=policy)\n"
        "def study(levels=('gs', 'mbgs')):\n"
        "    return Study(name='s', factors={'policy': list(levels)}, scenario=scenario)\n"
    )
    settings = {"levels": "gs", "machine.time_slicing.mpl": "2", "machine.nodes": "16"}
    study = load_experiment(tmp_path / "s.py", text, settings)
    made = [study.scenario_of(trial) for trial in study.trials(study.first_table())]
    assert [(one.policy, one.machine.nodes, one.machine.time_slicing.mpl) for one in made] == [("gs", 16, 2)]
    study = load_experiment(tmp_path / "s.py", text, {"machine.mpl": "2"})
    with pytest.raises(SpecificationError, match=r"--set: machine\.mpl: unknown key"):
        study.scenario_of(study.trials(study.first_table())[0])
