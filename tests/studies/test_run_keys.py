"""Stale results: whatever a run's numbers depend on changes its key, and the same sweep runs it again."""

import threading
from pathlib import Path

import pytest

import clustermodel as cm
from clustermodel.experiment import run_key
from clustermodel.experiment.executor import Progress
from clustermodel.experiment.run_key import digest_of_jobs, key_of, key_of_scenario, software
from clustermodel.experiment.script import origin_of_script, sweep
from clustermodel.experiment.store import Store
from clustermodel.experiment.study import Study
from clustermodel.experiment.worker import execute, opened
from clustermodel.policies.backfilling.guarantees import EveryJob
from clustermodel.policies.backfilling.scheduler import Backfilling
from tests.conftest import refusal
from tests.studies.test_sweep import runs_of, serial, swept

HELPERS = """
def far(x):
    return x + 1

def near(x):
    return far(x) * 2
"""

STUDY = """
import json
from pathlib import Path
from clustermodel import Scenario, read_swf, register_policy, synthetic_workload, Workload
from clustermodel.policies.backfilling.scheduler import Backfilling
from clustermodel.policies.easy import Easy
from clustermodel.policies.fcfs import Fcfs
from clustermodel.experiment.study import Study
from helpers import near

FOLDER = Path(__file__).parent
LIMIT = 40

class Registered(Fcfs):
    name = "registered"
    def __init__(self, depth: int = 1):
        super().__init__()
        self.depth = near(depth)

register_policy("registered", Registered)

class WithLambda(Fcfs):
    name = "with-lambda"
    score = staticmethod(lambda job: job.nodes)
    def decide(self, batch, view):
        self.score(None) if view.idle > LIMIT * 10**6 else None
        return super().decide(batch, view)

class Twice:
    may_overrun = True
    def predict(self, job): return 2 * job.estimate

class WithPart(Fcfs):
    name = "with-part"
    def __init__(self):
        super().__init__()
        self.part = Twice()

class WithFile(Fcfs):
    name = "with-file"
    def start(self, setup):
        self.quotas = json.loads((FOLDER / "quotas.json").read_text())
        return self
    path = FOLDER / "quotas.json"

def jobs(seed):
    return read_swf(FOLDER / "jobs.swf")

study = Study.grid(
    name="keys",
    workloads={"made": lambda seed: synthetic_workload(jobs=30, seed=seed), "trace": jobs},
    policies=["easy", "registered:depth=2", WithLambda(), WithPart(), WithFile()],
)
"""
ALL = {"easy", "registered", "with-lambda", "with-part", "with-file"}
EDITS = {
    "nothing": ("study.py", "", "", set(), "both"),
    "a comment": ("study.py", "LIMIT = 40", "LIMIT = 40  # nodes", set(), "both"),
    "a function of the workload with the same jobs": ("study.py", "jobs=30, seed=seed", "seed=seed, jobs=30", set(), "both"),
    "a registered policy": ("study.py", "near(depth)", "near(depth + 1)", {"registered"}, "both"),
    "a helper function two calls away": ("helpers.py", "x + 1", "x + 3", {"registered"}, "both"),
    "a lambda body": ("study.py", "lambda job: job.nodes", "lambda job: job.user", {"with-lambda"}, "both"),
    "a module global": ("study.py", "LIMIT = 40", "LIMIT = 41", {"with-lambda"}, "both"),
    "a predictor": ("study.py", "2 * job.estimate", "3 * job.estimate", {"with-part"}, "both"),
    "an input file of a policy": ("quotas.json", "1", "2", {"with-file"}, "both"),
    "the jobs of a function": ("study.py", "jobs=30", "jobs=31", ALL, "made"),
    "an input file of a workload": ("jobs.swf", "1 0 -1 5 2", "1 0 -1 6 2", ALL, "trace"),
    "a parameter": ("study.py", "depth=2", "depth=3", {"registered"}, "both"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "study.py").write_text(STUDY)
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "quotas.json").write_text('{"a": 1}')
    (tmp_path / "jobs.swf").write_text("; MaxProcs: 8\n1 0 -1 5 2 -1 -1 2 9 -1 1 1 1 1 1 1 -1 -1\n")
    return tmp_path


def keys(folder: Path) -> dict[tuple[str, str], str]:
    """Return the keys of all runs by workload and policy."""
    mine = opened(origin_of_script(folder / "study.py"))
    runs = mine.design.runs(mine.design.trials(mine.design.first_table()), mine)
    return {(str(workload), str(policy).partition(":")[0]): run.key for run in runs for workload, policy in [run.trial.point]}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_changes_all_keys_that_it_should(folder: Path, edit: str) -> None:
    file, old, new, policies, workload = EDITS[edit]
    before = keys(folder)
    assert {policy for _, policy in before} == ALL
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    after = keys(folder)
    changed = {run for run in before if before[run] != after[run]}
    workloads = ("made", "trace") if workload == "both" else (workload,)
    assert changed >= {(one, policy) for one in workloads for policy in policies}
    if policies != ALL:  # a policy of the package runs again for no change of the user's sources
        assert not {policy for _, policy in changed} & {"easy"}
    assert bool(changed) == (edit not in ("nothing", "a comment"))


def test_in_one_process_too(tmp_path: Path) -> None:
    """Workloads and modules that an earlier sweep of the same script has made or imported are not used again."""
    script = tmp_path / "again.py"
    script.write_text(
        "from clustermodel import read_swf, synthetic_workload\n"
        "from clustermodel.experiment.study import Study\n"
        "import beside\n"
        f"workloads = {{'trace': lambda seed: read_swf({str(tmp_path / 'jobs.swf')!r}),\n"
        "             'made': lambda seed: synthetic_workload(jobs=beside.jobs, seed=seed)}\n"
        "study = Study.grid(name='again', workloads=workloads, policies=['easy'])\n"
    )
    jobs = []
    for run, number in ((5, 20), (7, 30)):
        (tmp_path / "jobs.swf").write_text(f"; MaxProcs: 8\n1 0 -1 {run} 2 -1 -1 2 9 -1 1 1 1 1 1 1 -1 -1\n")
        (tmp_path / "beside.py").write_text(f"jobs = {number}\n")
        serial(script, str(tmp_path / "out"))
        with Store.read(str(tmp_path / "out")) as store:
            table = store.results().set_index("workload")
            jobs.append((table["jobs"]["made"], store.records(table["run"]["trace"])["run_s"].item()))
    assert jobs == [(20, 5.0), (30, 7.0)]


def test_the_software_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study.grid(name="s", workloads={"jobs": cm.synthetic_workload(jobs=5)}, policies=["easy"])
    first = runs_of(study)[0]
    assert {"clustermodel", "clustermodel_sha256", "python", "numpy", "simpy"} == first.specification["software"].keys()
    for name in first.specification["software"]:
        monkeypatch.setattr("clustermodel.experiment.run_key.software", lambda name=name: {**software(), name: "other"})
        assert runs_of(study)[0].key != first.key
    monkeypatch.undo()
    assert runs_of(study)[0].key == first.key == key_of(first.specification)


def test_sources_of_commands_and_reports_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counting = ("clients.py", "report/measure_table.py", "sim/node_pool.py", "workload/models/a.json")
    not_counting = ("cli/run_command.py", "report/html.py")
    for name in (*counting, *not_counting):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    monkeypatch.setattr("clustermodel.experiment.run_key._PACKAGE", tmp_path)

    def digest() -> str:
        return run_key.software.__wrapped__()["clustermodel_sha256"]

    first = digest()
    for name in (*counting, *not_counting):
        (tmp_path / name).write_text("2")
        assert (digest() != first) == (name in counting)
        first = digest()


def test_streams_and_tables_of_the_same_jobs_have_the_same_digest(tmp_path: Path) -> None:
    jobs = cm.synthetic_workload(jobs=9000)
    path = tmp_path / "jobs.swf"
    rest = "-1 1 1 1 1 1 1 -1 -1"
    lines = [
        f"{row.id} {row.submit / 1e6:f} -1 {row.run / 1e6:f} {row.nodes} -1 -1 {row.nodes} {row.estimate / 1e6:f} {rest}"
        for row in jobs.rows()
    ]
    path.write_text("; MaxProcs: 128\n" + "\n".join(lines) + "\n")
    stream = cm.SwfStream(path)
    table = cm.Workload(stream.rows())
    assert digest_of_jobs(stream) == digest_of_jobs(table)
    assert digest_of_jobs(stream).jobs == 9000
    assert digest_of_jobs(cm.Workload(list(stream.rows())[:-1])) != digest_of_jobs(stream)


def test_intervals_by_formula_and_the_store_are_in_the_key() -> None:
    jobs = cm.synthetic_workload(jobs=3)
    stores = [None, *(cm.CheckpointStore(bandwidth_gib_s=rate) for rate in (1, 2))]
    costs = [cm.Checkpointing(checkpoint_s=0 if store else 1, interval_s="daly", store=store) for store in stores]
    machines = [cm.Machine(nodes=128, failures=cm.NodeFailures(mtbf_s=1e9, repair_s=0), checkpointing=one) for one in costs]
    keys = {key_of_scenario(cm.Scenario(machine=machine, workload=jobs, policy="fcfs")) for machine in machines}
    assert len(keys) == 3


def test_a_stream_that_changes_while_the_study_runs_fails_the_run(tmp_path: Path) -> None:
    path = tmp_path / "jobs.swf"
    line = "{} 0 -1 5 2 -1 -1 2 9 -1 1 1 1 1 1 1 -1 -1\n"
    path.write_text("; MaxProcs: 8\n" + line.format(1))
    study = Study.grid(name="s", workloads={"stream": cm.SwfStream(path)}, policies=["easy", "fcfs"])

    def edit(progress: Progress) -> None:
        if progress.running == 1 and progress.done == 0:
            path.write_text("; MaxProcs: 8\n" + line.format(1) + line.format(2))

    assert swept(study, tmp_path / "out", progress=edit) == {"pending": 0, "done": 1, "failed": 1}
    with Store.read(tmp_path / "out") as store:
        assert store.failures()[0][1].startswith("it was run on other jobs: 2 there and 1 here")


def test_a_study_that_cannot_be_sent_says_so(tmp_path: Path) -> None:
    lock = threading.Lock()

    def make(seed: int) -> cm.Workload:
        with lock:
            return cm.synthetic_workload(jobs=9, seed=seed)

    study = Study.grid(name="s", workloads={"jobs": make}, policies=["fcfs", "easy"])
    for run in (lambda: sweep(study, tmp_path / "a", workers=2), lambda: study.run(workers=2)):
        assert refusal(run) == (
            "study s: it cannot be sent to worker processes (cannot pickle '_thread.lock' object); "
            "run its script with clustermodel sweep, or give workers=1"
        )
    assert len(study.run(workers=1)) == 2


def test_a_name_that_another_script_registers_meanwhile_fails_the_run(tmp_path: Path) -> None:
    """On a worker that serves two sweeps at once."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(
            "from clustermodel import register_policy, synthetic_workload\n"
            "from clustermodel.policies.fcfs import Fcfs\n"
            "from clustermodel.experiment.study import Study\n"
            "register_policy('mine', lambda: Fcfs())\n"
            f"study = Study.grid(name='{name}', workloads={{'jobs': synthetic_workload(jobs=9)}}, policies=['mine'])\n"
        )
    one = origin_of_script(tmp_path / "one.py")
    mine = opened(one)
    (run,) = mine.design.runs(mine.design.trials(mine.design.first_table()), mine)
    origin_of_script(tmp_path / "two.py").open()
    outcome = execute(one, run)
    assert outcome.error == "policy mine: another script has registered this name meanwhile"


class WithInheritedFields(EveryJob):
    """A part of a user without fields: its class inherits from a frozen dataclass, but is none itself."""

    def __init__(self, order: str) -> None:
        self._order = order


def test_what_a_class_without_fields_of_its_own_keeps_is_in_the_key() -> None:
    """Two parts that differ only in an attribute had the same key, so that a study ran the first one only."""
    jobs = cm.synthetic_workload(jobs=5, nodes=4)

    def key(order: str) -> str:
        policy = Backfilling(guarantees=WithInheritedFields(order))
        return key_of_scenario(cm.Scenario(machine=cm.Machine(nodes=4), workload=jobs, policy=policy))

    assert key("queue") == key("queue") != key("starts")
