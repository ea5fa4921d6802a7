"""The command line with workload models: ``trace fit``, ``run --model``, and the phi model of overestimation."""

import csv
import errno
import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clustermodel import WorkloadModel, load_model
from clustermodel.workload.model import RUN_TIME_FACTORS
from tests.conftest import Finished

Command = Callable[..., Finished]


def job_line(number: int, submit: int, run: float, nodes: int) -> str:
    return f"{number} {submit} -1 {run} {nodes} -1 -1 -1 {10 * run} -1 1 7 1 -1 -1 -1 -1 -1"


@pytest.fixture
def trace(write_trace: Callable[..., Path]) -> Path:
    """Two hundred jobs of 1 to 8 nodes on a machine of 16, one that needs all of it and one that is too wide."""
    rng = np.random.default_rng(1)
    lines = [job_line(n, n * n % 977 + 20 * n, 1 + int(rng.exponential(50)), 1 + n % 8) for n in range(200)]
    return write_trace("; MaxProcs: 16", *lines, job_line(999, 100, 7, 16), job_line(1000, 200, 7, 30))


def complaint(finished: Finished, code: int = 2) -> str:
    assert finished.code == code
    assert finished.out == ""
    assert len(finished.err.splitlines()) == 1
    return finished.err.removeprefix("clustermodel: error: ").rstrip("\n")


def easy(command_line: Command, *options: object) -> dict[str, object]:
    finished = command_line("run", "--policy", "easy", "--json", *options)
    assert finished.code == 0
    return json.loads(finished.out)[0]


def test_a_fit_goes_to_standard_output_and_its_table_and_notes_to_standard_error(command_line: Command, trace: Path) -> None:
    finished = command_line("trace", "fit", trace)
    assert finished.code == 0
    model = WorkloadModel.from_json(finished.out)
    assert (model.name, model.nodes, model.source) == ("jobs", 16, "fitted to 201 jobs of jobs.swf")
    title, *lines = (line for line in finished.err.splitlines() if not line.startswith("jobs: "))
    assert title == f"jobs on 16 nodes: offered load {model.offered_load:.4f}"
    table = pd.read_csv(io.StringIO("\n".join(lines)), sep="\t")  # a pipe gets tabs
    assert list(table["nodes"]) == ["1", "2", "3-4", "5-8", "9-16"]
    assert list(table["jobs"]) == [25, 25, 50, 100, 1]
    for name, times in (
        ("interarrival", [one.interarrival for one in model.classes]),
        ("run_time", [one.run_time for one in model.classes]),
    ):
        for column in ("mean_s", "cv", "skewness", "order"):
            assert list(table[f"{name}_{column}"]) == pytest.approx([getattr(time, column) for time in times], rel=1e-9)
    assert "jobs: 1 job left out: not of 1 to 16 nodes\n" in finished.err
    assert "jobs: class 9-16 run time: a single time of 7 s; exponential with that mean used instead\n" in finished.err


def test_a_fit_goes_to_a_file_and_runs_from_there(command_line: Command, trace: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    finished = command_line("trace", "fit", trace, "-o", path, "--nodes", 8, "--size", ":4")
    assert (finished.code, finished.out) == (0, "")
    assert finished.err.endswith(f"model: {path}\n")
    model = load_model(path)
    assert (model.nodes, model.classes[-1].label) == (8, "3-4")
    run = easy(command_line, "--model", path, "--jobs", 300)
    assert (run["jobs"], run["nodes"], run["workload"]) == (300, 8, "jobs")


def test_traces_that_cannot_be_fitted(command_line: Command, write_trace: Callable[..., Path], tmp_path: Path) -> None:
    assert complaint(command_line("trace", "fit", "no.swf")) == "no.swf: cannot be read: No such file or directory"
    path = write_trace(job_line(1, 0, 5, 1), job_line(2, 9, 5, 1))
    expected = f"--nodes: neither MaxProcs nor MaxNodes of {path} is the size of a machine; give one"
    assert complaint(command_line("trace", "fit", path)) == expected
    path = write_trace(job_line(1, 0, 5, 1))
    expected = "jobs: 1 job of 1 to 4 nodes, submitted at one instant, give no interarrival time to fit a model to"
    assert complaint(command_line("trace", "fit", path, "--nodes", 4)) == expected


def test_a_model_file_that_cannot_be_written(command_line: Command, trace: Path, tmp_path: Path) -> None:
    finished = command_line("trace", "fit", trace, "-o", tmp_path)
    assert (finished.code, finished.out) == (1, "")
    assert finished.err.endswith(f"clustermodel: error: {tmp_path}: cannot be written: Is a directory\n")


def test_a_model_that_cannot_be_finished_leaves_the_one_before(
    command_line: Command, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.json"
    path.write_text("the one before")

    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    finished = command_line("trace", "fit", trace, "-o", path)
    assert finished.code == 1
    assert finished.err.endswith(f"clustermodel: error: {path}: cannot be written: No space left on device\n")
    assert path.read_text() == "the one before"
    assert sorted(left.name for left in tmp_path.iterdir()) == ["jobs.swf", "m.json"]


def test_a_shipped_model_brings_its_machine_and_the_papers_number_of_jobs(command_line: Command) -> None:
    run = easy(command_line, "--model", "blue-pacific")
    assert (run["jobs"], run["nodes"], run["workload"]) == (10_000, 320, "blue-pacific")
    assert run["utilization"] == pytest.approx(0.55, abs=0.02)


def test_scaling_run_times_is_the_run_time_factor(command_line: Command, tmp_path: Path) -> None:
    factor = RUN_TIME_FACTORS[3]
    run = easy(
        command_line, "--model", "blue-pacific", "--jobs", 500, "--scale-run-time", factor, "--seed", 3, "--jobs-csv", tmp_path
    )
    assert (run["workload"], run["jobs"]) == ("blue-pacific x1.3", 500)
    expected = load_model("blue-pacific").generate(jobs=500, seed=3, run_time_factor=factor)
    rows = {int(row["job"]): row for row in csv.DictReader((tmp_path / "easy.csv").read_text().splitlines())}
    for job in expected.jobs():
        row = rows[job.id]
        assert (float(row["submit_s"]), float(row["estimate_s"])) == (job.submit_s, job.estimate_s)
        assert (float(row["run_s"]), int(row["nodes"])) == (pytest.approx(job.run_s), job.nodes)


def test_a_model_takes_the_filters_and_scales_of_a_trace(command_line: Command) -> None:
    few = ("--model", "blue-pacific", "--jobs", 1000)
    whole = easy(command_line, *few)
    assert easy(command_line, *few, "--size", "33:")["jobs"] == pytest.approx(300, abs=60)
    assert easy(command_line, *few, "--nodes", 128)["rejected"] == pytest.approx(80, abs=30)
    assert easy(command_line, *few, "--scale-interarrival", 2)["utilization"] < whole["utilization"] / 1.8
    assert easy(command_line, *few, "--seed", 2) != easy(command_line, *few, "--seed", 1) == whole


def test_the_synthetic_year_takes_a_number_of_jobs_too(command_line: Command) -> None:
    assert easy(command_line, "--jobs", 500)["jobs"] == 500


def estimates(command_line: Command, folder: Path, *options: object) -> np.ndarray:
    assert command_line("run", "--policy", "fcfs", "--jobs-csv", folder, *options).code == 0
    rows = list(csv.DictReader((folder / "fcfs.csv").read_text().splitlines()))
    return np.array([float(row["estimate_s"]) / float(row["run_s"]) for row in rows if row["run_s"]])


def test_the_phi_model_replaces_estimates_of_traces_models_and_the_synthetic_year(
    command_line: Command, trace: Path, tmp_path: Path
) -> None:
    for source in (("--trace", trace), ("--model", "blue-pacific", "--jobs", 2000), ("--jobs", 2000)):
        half = estimates(command_line, tmp_path, *source, "--estimates", "phi:0.5")
        assert np.mean(half < 1 + 1e-6) == pytest.approx(0.5, abs=0.11)
        assert (estimates(command_line, tmp_path, *source, "--estimates", "phi:1") < 1 + 1e-6).all()
        assert (estimates(command_line, tmp_path, *source, "--estimates", "run-time") < 1 + 1e-6).all()


def test_a_model_has_phi_0_2_unless_told_otherwise(command_line: Command, tmp_path: Path) -> None:
    source = ("--model", "blue-pacific", "--jobs", 2000)
    default = estimates(command_line, tmp_path, *source)
    assert np.mean(default < 1 + 1e-6) == pytest.approx(0.2, abs=0.03)
    assert (default == estimates(command_line, tmp_path, *source, "--estimates", "phi:0.2")).all()


@pytest.mark.parametrize("value", ["phi", "phi:", "phi:x", "phi:1.5", "phi:-0.1", "phi:nan", "users", "0.2"])
def test_other_estimates_are_refused(command_line: Command, value: str) -> None:
    assert complaint(command_line("run", "--estimates", value)) == (
        f"--estimates: {value!r} is not 'user', 'run-time' or 'phi:VALUE' with a value from 0 to 1, as phi:0.2"
        + " (did you mean 'user'?)" * (value == "users")
    )


def test_a_model_beside_a_trace_is_refused(command_line: Command, trace: Path) -> None:
    expected = f"--model: the jobs come from --trace {trace}; give one of the two"
    assert complaint(command_line("run", "--trace", trace, "--model", "blue-pacific")) == expected
    expected = f"--jobs: the jobs come from --trace {trace}; give one of the two"
    assert complaint(command_line("run", "--trace", trace, "--jobs", 5)) == expected


def test_models_that_are_not_there_or_no_models(command_line: Command, trace: Path, tmp_path: Path) -> None:
    expected = (
        "model: 'blu-pacific' is neither a file nor a shipped model (did you mean 'blue-pacific'?); shipped are blue-pacific, "
        "blue-pacific-2"
    )
    assert complaint(command_line("run", "--model", "blu-pacific")) == expected
    assert complaint(command_line("run", "--model", trace)) == f"{trace}:1: not JSON: Expecting value"
    path = tmp_path / "m.json"
    path.write_text(load_model("blue-pacific").to_json().replace('"nodes": 320', '"nodes": 200'))
    assert complaint(command_line("run", "--model", path)) == (
        f"{path}: classes: a size of 256 is not allowed; the machine has 200 nodes"
    )
    assert complaint(command_line("run", "--model", "blue-pacific", "--scale-run-time", "0")) == (
        "LoadScale.run_time: 0.0 is not allowed; it must be a finite number > 0"
    )


@pytest.mark.parametrize("option", ["--scale-run-time", "--scale-interarrival", "--scale-size"])
def test_factors_beyond_all_bounds_are_one_line(command_line: Command, option: str) -> None:
    finished = command_line("run", "--model", "blue-pacific", "--jobs", 10, option, "1e300")
    assert "too large for 64-bit ticks" in complaint(finished)


def test_synthetic_jobs_ask_for_all_processors_of_the_nodes(command_line: Command) -> None:
    rows = [
        json.loads(command_line("run", "--jobs", 500, "--nodes", nodes, *more, "--policy", "easy", "--json").out)[0]
        for nodes, more in ((16, ("--gpus-per-node", 4)), (64, ()))
    ]
    assert rows[0]["load"] == rows[1]["load"]
