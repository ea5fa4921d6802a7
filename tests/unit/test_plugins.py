"""Policies, predictors and readers of other packages: by name everywhere, one line for each that cannot be used."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import clustermodel as cm
from clustermodel.experiment.run_key import key_of_scenario
from clustermodel.policies.registry import policy_parameters
from tests.conftest import Finished

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "widest_first"
NARROWEST = '''
from clustermodel import Start

class Narrowest:
    """Jobs on few nodes first."""

    def __init__(self, *, most=8):
        self.name = "narrowest"
        self.most = most

    def start(self, setup):
        return self

    def decide(self, batch, view):
        idle, decisions = view.idle, []
        for job in sorted(view.waiting.values(), key=lambda job: (job.nodes, job.queue_order)):
            if job.nodes <= idle:
                idle -= job.nodes
                decisions.append(Start(job=job))
        return decisions
'''
HALF = """
from clustermodel.policies.predictors import UserEstimate

class Half(UserEstimate):
    def predict(self, job):
        return max(job.estimate // 2, 1)
"""
LINES = '''
from clustermodel import Job, Workload

class Lines:
    """Reads one job a line: submission, nodes, run time."""

    name = "lines"

    def recognises(self, lines):
        return lines[:1] == ["#lines"]

    def read(self, path):
        rows = [line.split() for line in path.read_text().splitlines()[1:]]
        jobs = (Job(id=n, submit_s=float(s), nodes=int(m), run_s=float(r)) for n, (s, m, r) in enumerate(rows, 1))
        return Workload.from_jobs(jobs, name=path.stem)
'''

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Install a package of one module: its name, its code, and its entry points by group."""
    monkeypatch.syspath_prepend(folder := tmp_path / "site-packages")

    def put(package: str, code: str, **groups: str) -> Path:
        information = folder / f"{package}-1.0.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"[clustermodel.{group}]\n{entry}\n" for group, entry in groups.items()]
        (information / "entry_points.txt").write_text("\n".join(lines))
        (folder / f"{package}.py").write_text(code)
        monkeypatch.delitem(sys.modules, package, raising=False)
        monkeypatch.syspath_prepend(tmp_path / f"anew-{package}")  # another path, so that packages are searched again
        return folder / f"{package}.py"

    return put


def scenario(policy: str) -> cm.Scenario:
    return cm.Scenario(machine=cm.Machine(nodes=16), workload=cm.synthetic_workload(jobs=60, nodes=16, load=0.9), policy=policy)


def test_a_policy_of_another_package_works_by_name(install: Install, command_line: Callable[..., Finished]) -> None:
    install("narrowest_a", NARROWEST, policies="narrowest = narrowest_a:Narrowest")
    assert cm.policy_names()[-1] == "narrowest"
    assert "narrowest_a" not in sys.modules  # imported when it is used
    assert list(policy_parameters("narrowest")) == ["most"]
    assert cm.make_policy("narrowest:most=3").most == 3
    assert len(scenario("narrowest").run().records) == 60
    listed = command_line("policies")
    assert listed.code == 0
    assert "narrowest:most=8  (narrowest_a 1.0)\n    Jobs on few nodes first.\n" in listed.out
    assert listed.err == ""
    ran = command_line("run", "--jobs", 50, "--policy", "narrowest", "--policy", "narrowest:most=2", "--json")
    assert [row["policy"] for row in json.loads(ran.out)] == ["narrowest", "narrowest:most=2"]


def test_a_sweep_with_workers_runs_it(install: Install, tmp_path: Path) -> None:
    install("narrowest_b", NARROWEST, policies="narrowest = narrowest_b:Narrowest")
    study = cm.Study.of_scenarios("two", [scenario("narrowest"), scenario("fcfs")])
    table = cm.sweep(study, tmp_path / "results", workers=2)
    assert sorted(table.frame["policy"]) == ["fcfs", "narrowest"]


def test_run_keys_follow_the_source_of_a_plug_in(install: Install, tmp_path: Path) -> None:
    program = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from clustermodel import Machine, Scenario, synthetic_workload\n"
        "from clustermodel.experiment.run_key import key_of_scenario\n"
        "jobs = synthetic_workload(jobs=20, nodes=16)\n"
        "for policy in ('narrowest', 'easy:predictor=half', 'easy'):\n"
        "    print(key_of_scenario(Scenario(machine=Machine(nodes=16), workload=jobs, policy=policy)))\n"
    )

    def keys() -> list[str]:
        command = [sys.executable, "-c", program, str(module.parent)]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()

    module = install("narrowest_c", NARROWEST, policies="narrowest = narrowest_c:Narrowest")
    half = install("half_c", HALF, predictors="half = half_c:Half")
    before = keys()
    module.write_text(NARROWEST.replace("Jobs on few nodes first.", "Few nodes first."))
    assert before == keys()  # words do not count
    module.write_text(NARROWEST.replace("job.nodes <= idle", "job.nodes < idle"))
    assert [one == other for one, other in zip(before, keys(), strict=True)] == [False, True, True]
    half.write_text(HALF.replace("// 2", "// 3"))
    assert [one == other for one, other in zip(before, keys(), strict=True)] == [False, False, True]


def test_a_taken_name_is_a_line_and_ours_is_used(install: Install, command_line: Callable[..., Finished]) -> None:
    install("narrowest_d", NARROWEST, policies="easy = narrowest_d:Narrowest\nbad,name = narrowest_d:Narrowest")
    install("half_d", HALF, predictors="last = half_d:Half")
    assert type(cm.make_policy("easy")).__name__ == "Easy"
    listed = command_line("policies")
    assert listed.code == 0
    assert sorted(listed.err.splitlines()) == [
        "policy 'bad,name' of package narrowest_d 1.0: a name has none of :,=; it is ignored",
        "policy 'easy' of package narrowest_d 1.0: the name is taken; it is ignored",
        "predictor 'last' of package half_d 1.0: the name is taken; it is ignored",
    ]
    assert command_line("run", "--jobs", 50, "--policy", "easy").code == 0


def test_one_name_in_two_packages_is_refused_where_it_is_used(install: Install, command_line: Callable[..., Finished]) -> None:
    install("narrowest_e", NARROWEST, policies="narrow = narrowest_e:Narrowest")
    install("narrowest_f", NARROWEST, policies="narrow = narrowest_f:Narrowest")
    finished = command_line("run", "--policy", "narrow")
    assert finished.code == 2
    assert finished.err == (
        "clustermodel: error: policy 'narrow': packages narrowest_e 1.0 and narrowest_f 1.0 have a plug-in of this name; "
        "uninstall all but one\n"
    )
    assert command_line("policies").code == 0


def test_a_plug_in_that_cannot_be_imported_is_a_line(install: Install, command_line: Callable[..., Finished]) -> None:
    install("narrowest_g", "import not_there", policies="narrow = narrowest_g:Narrowest")
    line = "policy 'narrow' of package narrowest_g 1.0 cannot be imported: ModuleNotFoundError: No module named 'not_there'"
    assert command_line("run", "--policy", "narrow").err == f"clustermodel: error: {line}\n"
    listed = command_line("policies")
    assert listed.code == 0
    assert listed.err == f"{line}\n"
    assert "fcfs" in listed.out
    assert command_line("run", "--jobs", 50).code == 0


def test_what_cannot_be_called_is_refused(install: Install) -> None:
    install("narrowest_h", "Narrowest = 3", policies="narrow = narrowest_h:Narrowest")
    with pytest.raises(cm.SpecificationError, match=r"narrowest_h:Narrowest is not allowed; it must be a class or a function"):
        cm.make_policy("narrow")


def test_a_script_cannot_register_the_name_of_a_plug_in(install: Install) -> None:
    install("narrowest_i", NARROWEST, policies="narrowest = narrowest_i:Narrowest")
    with pytest.raises(cm.SpecificationError, match=r"'narrowest' is already that of package narrowest_i 1\.0"):
        cm.register_policy("narrowest", lambda: cm.make_policy("fcfs"))


def test_a_predictor_of_another_package(install: Install) -> None:
    install("half_a", HALF, predictors="half = half_a:Half\nbroken = half_a:missing\nnone = builtins:list")
    assert len(scenario("easy:predictor=half").run().records) == 60
    with pytest.raises(
        cm.SpecificationError, match=r"predictor 'broken' of package half_a 1\.0 cannot be imported: AttributeError"
    ):
        cm.make_policy("easy:predictor=broken")
    with pytest.raises(cm.SpecificationError, match=r"easy: predictor 'none': \[\] is not allowed; it must have start"):
        cm.make_policy("easy:predictor=none")
    with pytest.raises(cm.SpecificationError, match=r"'hlaf' is not allowed \(did you mean 'half'\?\)"):
        cm.make_policy("easy:predictor=hlaf")


def test_a_reader_of_another_package(install: Install, command_line: Callable[..., Finished], tmp_path: Path) -> None:
    install("lines_a", LINES, readers="lines = lines_a:Lines")
    trace = tmp_path / "small.txt"
    trace.write_text("#lines\n0 2 10\n1 2 20.5\n5 1 3\n")
    workload = cm.read_trace(trace)
    assert [job.run_s for job in workload.jobs()] == [10, 20.5, 3]
    ran = command_line("run", "--trace", trace, "--nodes", 2, "--size", "2:2", "--policy", "fcfs", "--json")
    assert [row["jobs"] for row in json.loads(ran.out)] == [2]
    assert command_line("run", "--trace", trace, "--nodes", 2, "--lenient").err == (
        f"clustermodel: error: --lenient: {trace} is read as lines, which has no such option\n"
    )
    given = cm.Scenario(machine=cm.Machine(nodes=2), workload=workload)
    again = cm.Scenario.from_toml(given.to_toml())
    assert again == given
    assert key_of_scenario(again) == key_of_scenario(given)
    trace.write_text("#lines\n0 two 10\n")
    with pytest.raises(cm.TraceError, match=r"small\.txt: cannot be read as lines: ValueError: invalid literal.*'two'$"):
        cm.read_trace(trace)
    trace.write_bytes(gzip.compress(b"#lines\n0 2 10\n"))
    with pytest.raises(
        cm.TraceError, match=r"'utf-8' .*; it is compressed: clustermodel\.text\.files\.opened\(path\) opens it as text$"
    ):
        cm.read_trace(trace)


def test_a_reader_of_another_package_gives_recorded_waits(
    install: Install, command_line: Callable[..., Finished], tmp_path: Path
) -> None:
    install("lines_c", LINES, readers="lines = lines_c:Lines")
    (trace := tmp_path / "small.txt").write_text("#lines\n0 2 10\n1 2 20.5\n5 1 3\n")
    refused = command_line("whatif", "--trace", trace)
    assert refused.code == 2
    assert "whatif: small has no recorded waits" in refused.err
    assert "of your reader: wait_s in Workload.from_frame" in refused.err
    of_frame = "Workload.from_frame(Workload.from_jobs(jobs).frame.assign(wait_s=7.0)"
    install(
        "lines_d",
        LINES.replace("Workload.from_jobs(jobs", of_frame).replace("#lines", "#waits"),
        readers="waits = lines_d:Lines",
    )
    trace.write_text(trace.read_text().replace("#lines", "#waits"))
    compared = command_line("whatif", "--trace", trace, "--policy", "easy", "--json")
    assert json.loads(compared.out)[0]["mean_wait_s"] == 7


def test_predictors_and_readers_are_listed_and_not_imported(install: Install, command_line: Callable[..., Finished]) -> None:
    long = "a-name-so-long-that-the-line-would-be-wider-than-eighty-columns"
    install("half_e", HALF, predictors=f"half = half_e:Half\nlast = half_e:Half\n{long} = half_e:Half")
    install("lines_e", LINES, readers="lines = lines_e:Lines")
    listed = command_line("policies").out.splitlines()
    first = listed.index("predictors, easy:predictor=NAME") + 1
    assert listed[first : first + 2] == [
        "    estimate, last, last-submitted, last-two, perfect, virtual:X,",
        f"    {long} (half_e",
    ]
    assert listed[first + 2] == "    1.0), half (half_e 1.0)"
    assert "    pbs, lsf, sge, sacct, muri, batsim, swf, lines (lines_e 1.0)" in listed
    assert not {"half_e", "lines_e"} & set(sys.modules)


def test_a_reader_that_fails_is_a_warning_and_swf_is_read(
    install: Install, command_line: Callable[..., Finished], tmp_path: Path
) -> None:
    install("lines_b", "import not_there", readers="lines = lines_b:Lines")
    trace = tmp_path / "jobs.txt"
    trace.write_text("1 0 -1 5 1 -1 -1 1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n")
    assert "warning" not in command_line("run", "--trace", trace, "--nodes", 2).err
    trace.write_text("one line\n")
    finished = command_line("run", "--trace", trace, "--nodes", 2)
    assert finished.code == 2
    first, second = finished.err.splitlines()
    assert first.startswith("clustermodel: warning: reader lines of package lines_b 1.0 is not used: reader 'lines' of package")
    assert second.startswith(f"clustermodel: error: {trace}: it is no trace; expected are SWF")
    assert second.endswith("; --format has a file read as lines")
    install("lines_f", "def fails(): raise KeyError('why')", readers="fails = lines_f:fails")
    with pytest.raises(
        cm.SpecificationError, match=r"^reader 'fails' of package lines_f 1\.0: it cannot be made: KeyError: 'why'$"
    ):
        cm.read_trace(trace, format="fails")


def test_a_policy_of_a_module_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "beside_me.py").write_text(NARROWEST)
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    assert cm.make_policy("beside_me:Narrowest:most=2").most == 2
    assert sys.path == before
    assert len(scenario("beside_me:Narrowest").run().records) == 60
    with pytest.raises(
        cm.SpecificationError, match=r"module beside_me has no policy Start, a class with start or a function of setup$"
    ):
        cm.make_policy("beside_me:Start")
    looked = rf"there is no module bgss in {tmp_path}, in PYTHONPATH or among installed packages \(did you mean 'bgs'\?\)$"
    with pytest.raises(cm.SpecificationError, match=looked):
        cm.make_policy("bgss:mpl")


def test_a_predictor_of_a_module_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "predictors_beside.py"
    module.write_text(f"{HALF}\nhalf = Half()\n")
    monkeypatch.chdir(tmp_path)
    table = scenario("easy:predictor=predictors_beside:Half").run().jobs
    assert table.equals(scenario("easy:predictor=predictors_beside:half").run().jobs)
    assert not table.equals(scenario("easy").run().jobs)
    half = scenario("easy:predictor=predictors_beside:Half,reserve_depth=2")
    key = key_of_scenario(half)
    monkeypatch.delitem(sys.modules, "predictors_beside")
    module.write_text(HALF.replace("// 2", "// 33"))
    assert key_of_scenario(replace(half)) != key
    with pytest.raises(cm.SpecificationError, match="must not run code"):
        half.to_toml()
    monkeypatch.delitem(sys.modules, "predictors_beside")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("predictors_wrong:three", r"easy: predictor 'predictors_wrong:three': 3 is not allowed; it must have start, which"),
        ("predictors_wrong:fails", r"easy: predictor 'predictors_wrong:fails': it cannot be made: KeyError: 'why'$"),
        ("predictors_wrong:None", r"predictor: 'predictors_wrong:None' is not allowed: module predictors_wrong has no None$"),
        ("lasst:P", r"predictor: 'lasst:P': there is no module lasst in .* \(did you mean 'last'\?\)$"),
    ],
)
def test_what_is_no_predictor_of_a_module(name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "predictors_wrong.py").write_text("three = lambda: 3\ndef fails(): raise KeyError('why')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(cm.SpecificationError, match=message):
        cm.make_policy(f"easy:predictor={name}")


def test_the_example_package_is_installed_by_pip_and_found(tmp_path: Path) -> None:
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", str(tmp_path)]
    command = [sys.executable, "-m", "pip", "install", *options, str(EXAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from clustermodel import check_policy, make_policy\n"
        "assert check_policy(make_policy('widest-first:patience_s=60')) == []\n"
        "from clustermodel.cli import main\n"
        "main(['policies'])\n"
    )
    listed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert listed.returncode == 0, listed.stderr
    assert "widest-first:patience_s=86400.0  (widest-first 1.0)" in listed.stdout
