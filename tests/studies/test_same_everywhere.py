"""All kinds of experiments: the same results on one process, on two, on Dask, in shards, after kill -9."""

import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from distributed import LocalCluster

from clustermodel import SpecificationError, Store
from clustermodel.cli import main
from clustermodel.experiment.executor import Progress
from clustermodel.experiment.script import load_experiment, sweep
from tests.conftest import refusal
from tests.processes import started
from tests.studies.test_sweep import assert_same, content, held, serial
from tests.studies.three import study as experiment
from tests.tiers import some

pytestmark = pytest.mark.long

SCRIPT = Path(__file__).with_name("three.py")
WHICH = ["map", "until", "crossover", "validation"]
MOMENTS = some(range(10), one_in=4)


@pytest.fixture(scope="module", params=WHICH)
def serially(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Results of an experiment, run one after the other by the command, with exhibits and an export."""
    directory = tmp_path_factory.mktemp("serial") / request.param
    finish(request.param, directory)
    return request.param, directory


def finish(which: str, directory: Path) -> None:
    """Run what is missing, and export."""
    with pytest.raises(SystemExit) as stopped:
        main(["sweep", str(SCRIPT), "--set", f"which={which}", "--out", str(directory), "--workers", "1"])
    assert not stopped.value.code
    with pytest.raises(SystemExit):
        main(["results", str(directory), "--csv", str(directory / "export.csv")])


def assert_same_files(directory: Path, expected: Path) -> None:
    """Compare everything but the wall times in the files of runs: file names, study.json, exports, exhibits, tables."""
    names = sorted(str(path.relative_to(expected)) for path in expected.rglob("*") if path.is_file())
    assert sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()) == names
    assert_same(directory, expected)
    for name in names:
        if not name.startswith("runs/"):
            assert (directory / name).read_bytes() == (expected / name).read_bytes(), name


def frame(directory: Path) -> pd.DataFrame:
    with Store.read(directory) as store:
        return store.results()


def test_the_experiments_ask_for_more_trials_as_results_arrive(serially: tuple[str, Path]) -> None:
    which, directory = serially
    with Store.read(directory) as store:
        states = store.states()
    first = len(experiment(which))
    assert states["pending"] == states["failed"] == 0
    if which == "map":
        assert (states["done"], first) == (18, 24)  # one point of the four makes no sense
    else:
        assert states["done"] > first


@pytest.mark.parametrize("by", ["script", "object"])
def test_two_processes_give_the_same(serially: tuple[str, Path], tmp_path: Path, by: str) -> None:
    which, directory = serially
    if by == "script":
        sweep(SCRIPT, tmp_path, workers=2, settings={"which": which})
    else:
        concluded = experiment(which).run(str(tmp_path), workers=2)
        assert str(concluded) == str(experiment(which).run(tmp_path, workers=1))
    pd.testing.assert_frame_equal(frame(tmp_path), frame(directory))
    if by == "script":
        assert held(tmp_path) == held(directory)


def test_dask_gives_the_same(cluster: LocalCluster, serially: tuple[str, Path], tmp_path: Path) -> None:
    which, directory = serially
    sweep(SCRIPT, tmp_path, dask=cluster.scheduler_address, settings={"which": which})
    assert_same(tmp_path, directory)


@pytest.mark.parametrize("moment", MOMENTS)
def test_kill_9_at_a_random_moment_and_resumed_leaves_the_same_bytes(
    serially: tuple[str, Path], tmp_path: Path, moment: int
) -> None:
    which, directory = serially
    out = tmp_path / "out"
    command = [sys.executable, "-m", "clustermodel", "sweep", str(SCRIPT), "--set", f"which={which}", "--out", str(out)]
    with started([*command, "--workers", str(1 + moment % 2)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        while not out.exists() and process.poll() is None:
            time.sleep(0.005)
        time.sleep(random.Random(moment).uniform(0, 1.5))
        process.send_signal(signal.SIGKILL)
    done = [path for path in (out / "runs").glob("*.json") if content(path)["state"] == "done"]
    before = {path: path.stat().st_mtime_ns for path in done}
    finish(which, out)
    assert_same_files(out, directory)
    assert {path: path.stat().st_mtime_ns for path in done} == before  # nothing is repeated


# Shards.


@pytest.mark.parametrize("which", ["map", "until", "validation"])
def test_four_shards_are_the_whole_experiment(tmp_path: Path, which: str) -> None:
    serial(SCRIPT, tmp_path / "whole", settings={"which": which})
    expected = frame(tmp_path / "whole")
    out = tmp_path / "out"
    for number in (3, 1, 4, 2):
        serial(SCRIPT, out, shard=(number, 4), settings={"which": which})
    lists = [f"study-{number}-of-4.json" for number in range(1, 5)]
    assert sorted(path.name for path in out.glob("*.json")) == lists
    pd.testing.assert_frame_equal(frame(out), expected)
    with Store.read(out) as store:
        assert store.verify() == []
        assert store.states()["done"] == len(expected)
        keys = [key for key in expected["run"] if store.has("records", key)]
        assert len(keys) == expected["replication"].eq(1).sum()
        for key in keys:
            assert len(store.records(key)) == 40
    seen: list[Progress] = []
    table = serial(SCRIPT, out, settings={"which": which}, progress=seen.append)  # the whole, for its tables and figures
    assert {progress.running for progress in seen} == {0}
    assert [path.name for path in out.glob("*.json")] == ["study.json"]  # which has the trials of all
    pd.testing.assert_frame_equal(table.frame, expected)
    pd.testing.assert_frame_equal(frame(out), expected)


def test_a_shard_that_is_run_again_later_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = serial(SCRIPT, out, shard=(1, 2))
    victims = sorted((out / "runs").iterdir())[:2]
    before = {path.name: path.stat().st_mtime_ns for path in (out / "runs").iterdir()}
    for victim in victims:
        victim.unlink()
    seen: list[Progress] = []
    again = serial(SCRIPT, out, shard=(1, 2), progress=seen.append)
    assert len(first) == seen[-1].done > seen[0].done
    pd.testing.assert_frame_equal(again.frame, first.frame)
    after = {path.name: path.stat().st_mtime_ns for path in (out / "runs").iterdir()}
    assert {name for name in before if after[name] != before[name]} == {victim.name for victim in victims}


def test_every_trial_is_in_one_shard() -> None:
    study = experiment("map")
    trials = study.trials(study.first_table())
    for count in (1, 3, 100):
        shards = [study.shard_of(trial, count) for trial in trials]
        assert set(shards) <= set(range(1, count + 1))
    assert len({study.shard_of(trial, 3) for trial in trials}) == 3


def test_shards_of_another_number_are_refused(tmp_path: Path) -> None:
    serial(SCRIPT, tmp_path, shard=(1, 2))
    line = refusal(lambda: serial(SCRIPT, tmp_path, shard=(1, 3)))
    assert line == f"{tmp_path}: it has shards of 2, not of 3; use the same number, or another directory"
    assert [path.name for path in tmp_path.glob("*.json")] == ["study-1-of-2.json"]


def test_shards_of_several_experiments_or_versions_are_not_mixed(tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    serial(SCRIPT, out, shard=(1, 2))
    serial(SCRIPT, other, shard=(2, 2), settings={"which": "until"})
    shutil.copy(other / "study-2-of-2.json", out)
    said = r"study-2-of-2\.json: its study is 'until', in .*study-1-of-2\.json it is 'trade-off map'$"
    with pytest.raises(SpecificationError, match=said), Store.read(out):
        pass
    with pytest.raises(SpecificationError, match=r"out: it holds the study 'until', not 'trade-off map'; give another --out$"):
        serial(SCRIPT, out)
    (out / "study-2-of-2.json").unlink()
    script = tmp_path / "three.py"
    script.write_text(SCRIPT.read_text().replace("jobs=40", "jobs=41"))
    serial(script, out)  # another version of the whole, which takes the place of the shards
    with Store.read(out) as store:
        assert store.states()["done"] == 18
    serial(SCRIPT, out, shard=(1, 2))
    said = (
        r"study-1-of-2\.json: its runs are of another version of the study than those in .*study\.json; run the same "
        "sweep there again, or delete the older one$"
    )
    with pytest.raises(SpecificationError, match=said), Store.read(out):
        pass


@pytest.mark.parametrize(
    ("shard", "said"),
    [
        ((3, 2), "shard: 3 of 2 is not allowed; the first number must not exceed the second"),
        ((0, 2), "shard: 0 is not allowed; it must be an integer >= 1"),
        ((1,), "shard: (1,) is not allowed; it must be two whole numbers, I and N"),
        ("1/2", "shard: '1/2' is not allowed; it must be two whole numbers, I and N"),
    ],
)
def test_a_shard_is_two_numbers(tmp_path: Path, shard: Any, said: str) -> None:
    assert refusal(lambda: serial(SCRIPT, tmp_path, shard=shard)) == said


def test_a_shard_that_is_kept_nowhere_is_refused() -> None:
    line = refusal(lambda: experiment("map").run(shard=(1, 2)))
    assert line == "path: none is given; a shard must keep its results where the others keep theirs"


def test_a_parameter_of_the_script_is_set_or_refused(tmp_path: Path) -> None:
    text = SCRIPT.read_text()
    assert load_experiment(SCRIPT, text, {"which": "until"}).name == "until"
    line = refusal(lambda: load_experiment(SCRIPT, text, {"witch": "until"}))
    assert line == f"{SCRIPT}: --set: `study` has no parameter 'witch'; its parameters are which"
