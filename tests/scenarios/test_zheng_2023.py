"""A recorded testbed of gangs: what restarts cost in tables by hand, the command, and how near the simulated schedules are."""

import gzip
import json
import re
from pathlib import Path

import pandas as pd
import pytest

from clustermodel.recording.ledger import Account
from clustermodel.recording.matrix_history import Cell, History, Moment
from tests.scripts import defined_in, study_of
from tests.shared_data import SHARED

RECORDS, TESTBED = defined_in("papers/zheng_2023/recorded_rounds"), defined_in("papers/zheng_2023/testbed")
TACC = SHARED / "traces" / "gpu" / "tacc"
NEAR = {"mean_completion_s": 0.05, "makespan_s": 0.06, "restarts": 0.15}
"""How near a simulated schedule is to the recorded one, where the run times of jobs are the recorded ones."""


def write_run(folder: Path, policy: str, starts: int, gpus: int = 1) -> tuple[Path, Path, Path]:
    """Write two jobs on GPU 0 and the next that take turns: a round is 2 s longer for each start, which loses 20 s."""
    order = [job for turn in range(starts) for job in (1, 2) for _ in range(6 // starts)]
    starts_before = [place == 0 or order[place] != order[place - 1] for place in range(12)]
    ends = {job: max(place for place, other in enumerate(order) if other == job) + 1 for job in (1, 2)}
    spent_s = dict.fromkeys((1, 2), 120 * 6 + 2 * starts - 20 * starts - 120)
    files = (folder / "jobs.csv", folder / f"{policy}_rounds.csv", folder / f"{policy}_jobs.csv")
    pd.DataFrame({"job": [1, 2], "gpus": gpus, "submit_s": [0, 10]}).to_csv(files[0], index=False)
    pd.DataFrame({"round": range(12), "job": order, "gpus": " ".join(map(str, range(gpus)))}).to_csv(files[1], index=False)
    completed = [ends[job] * 120 + 2 * sum(starts_before[: ends[job]]) - submit_s for job, submit_s in ((1, 0), (2, 10))]
    gpu_seconds = [gpus * each for each in spent_s.values()]
    pd.DataFrame({"job": [1, 2], "completion_time_s": completed, "gpu_seconds": gpu_seconds}).to_csv(files[2], index=False)
    return files


def test_costs_of_tables_by_hand(tmp_path: Path) -> None:
    write_run(tmp_path, "often", 6)
    write_run(tmp_path, "thrice", 3)
    runs = RECORDS.read_folder(tmp_path)
    assert [(run.name, run.starts, run.moves, run.count) for run in runs] == [("often", 12, 0, 12), ("thrice", 6, 0, 12)]
    costs = RECORDS.costs(runs)
    assert costs.start_s == pytest.approx(2)
    assert costs.restart_s == pytest.approx(20)
    assert costs.first_round_s == 5
    assert RECORDS.others_than(runs[0], runs) == [runs[1]]


def test_a_gang_that_moves_starts_again(tmp_path: Path) -> None:
    files = write_run(tmp_path, "run", 1, gpus=2)
    rounds = pd.read_csv(files[1]).assign(gpus=["0 1", "1,0", "2 3", *["2, 3"] * 9])
    rounds.to_csv(files[1], index=False)
    run = RECORDS.read(*files)
    assert (run.starts, run.moves) == (3, 1)


def test_placements_are_the_stays_of_the_rounds(tmp_path: Path) -> None:
    """A round is 10 s longer for each start: both jobs start in the first one, job 1 again in the third."""
    files = write_run(tmp_path, "run", 1)
    pd.DataFrame({"job": [1, 2], "gpus": [2, 3], "submit_s": [0, 10]}).to_csv(files[0], index=False)
    rounds = {"round": [0, 0, 1, 1, 2, 3], "job": [1, 2, 1, 2, 1, 2], "gpus": ["1 0", "2 7 3", "0 1", "3 2 7", "0 2", "3 2 7"]}
    pd.DataFrame(rounds).to_csv(files[1], index=False)
    run = RECORDS.read(*files)
    stays = sorted(run.placements(10).itertuples(index=False, name=None))
    first, ends = run.first_round_s, [0, 140, 260, 390, 520]
    assert stays == [
        (1, first, first + ends[2], 0, 2),
        (1, first + ends[2], first + ends[3], 0, 1),
        (1, first + ends[2], first + ends[3], 2, 1),
        (2, first, first + ends[2], 2, 2),
        (2, first, first + ends[2], 7, 1),
        (2, first + ends[3], first + ends[4], 2, 2),
        (2, first + ends[3], first + ends[4], 7, 1),
    ]


def test_gangs_in_rows_pay_once_for_each_start(tmp_path: Path) -> None:
    """Both jobs take all GPUs and execute for 492 s, in slices of 120 s of which a switch takes 20 s.

    Job 1 begins with the first round at 5 s, its slice is cut short at 10 s, and then jobs 2 and 1 take turns.
    """
    run, others = (RECORDS.read(*write_run(tmp_path, name, starts, gpus=32)) for name, starts in (("often", 6), ("thrice", 3)))
    result = TESTBED.scenario(run, [others], "mgs", "recorded").run()
    assert result.jobs["end_s"].tolist() == pytest.approx([1194, 1082], abs=1e-4)
    found = TESTBED.compared(result, run, [others])
    assert (found["simulated"]["restarts"], found["simulated"]["migrations"]) == (6 + 5, 0)
    assert found["difference"]["migrations"] is None
    charged_s = sum(result.ledger.amount(Account.CONTEXT_SWITCH)) / 10**6
    assert charged_s == pytest.approx(32 * (5 + 10 * 20), abs=0.01)


def test_moves_in_rows_are_changes_of_nodes() -> None:
    """Job 1 is copied into another row, then moves; job 2 leaves, and comes back elsewhere: that is a start."""
    gangs = ([[(1, 1)], [(2, 1)]], [[(1, 1)], [(1, 1)]], [[(1, 2)], [(2, 4)]])
    history = History(120)
    for ticks, rows in enumerate(gangs):
        cells = tuple(tuple(Cell(*gang, replica=False) for gang in row) for row in rows)
        history.moments.append(Moment(120 * ticks, cells, (0, 1), {}))
    assert TESTBED.moves_in_rows(history) == 1
    assert TESTBED.starts_in_rows(history, 480, 20) == 3  # in the slices that begin at 0, 240 and 360; at 120 job 1 goes on


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("max-min", "max-min:ahead_s=60,start_s=2.0000"),
        ("max-min:start_s=1", "max-min:start_s=1,ahead_s=60"),
        ("max-min:ahead_s=30", "max-min:ahead_s=30,start_s=2.0000"),
        ("max-min:ahead_s=30,start_s=1", "max-min:ahead_s=30,start_s=1"),
        ("srtf", "srtf"),
    ],
)
def test_times_of_the_scheduler_where_none_are_given(policy: str, expected: str) -> None:
    assert TESTBED.in_rounds(policy, RECORDS.Costs(2.0, 20.0, 0.0, 5.0)) == expected


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the files of one run of three."""
    folder = tmp_path_factory.mktemp("runs")
    for name, starts in (("thrice", 3), ("twice", 2)):
        write_run(folder, name, starts)
    return [str(path) for path in write_run(folder, "often", 6)]


def test_the_command(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    TESTBED.main([*files, "--policy", "srtf", "--json", "--picture", str(tmp_path / "gpus.png")])
    found = json.loads(capsys.readouterr().out)
    assert found["estimated_from"] == ["thrice", "twice"]
    assert found["recorded"]["restarts"] == 12
    assert found["simulated"].keys() == found["recorded"].keys()
    assert found["difference"]["migrations"] is None
    assert found["gpu_seconds"] == {"often": 984, "thrice": 1092, "twice": 1128}
    assert (tmp_path / "gpus.png").stat().st_size > 0
    TESTBED.main([*files, "--policy", "max-min", "--work", "others"])
    printed = capsys.readouterr()
    assert "estimated from thrice, twice" in printed.out
    assert "nan" not in printed.out
    assert not printed.err


def test_one_other_run_does_not_tell_what_a_start_adds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A copy of the run that is compared, under another name, is none."""
    files = [str(path) for path in write_run(tmp_path, "often", 6)]
    for name, starts in (("copy", 6), ("thrice", 3)):
        write_run(tmp_path, name, starts)
    TESTBED.main([*files, "--policy", "srtf", "--json"])
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert (found["estimated_from"], found["estimated"]["in_run_s"]) == (["thrice"], None)
    assert printed.err.startswith("note: in_run_s, ")
    with pytest.raises(SystemExit, match=r"--work others: in_run_s, .* cannot be estimated"):
        TESTBED.main([*files, "--policy", "srtf", "--work", "others"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--policy", "max-mni"], "did you mean 'max-min'"),
        (["--policy", "srtf", "--picture", "gpus.xyz"], "--picture: gpus.xyz: format '.xyz' is unknown; known are "),
        (["--policy", "srtf", "--picture", "nowhere/gpus.png"], "--picture: nowhere/gpus.png: it cannot be written"),
        (["--policy", "srtf", "--others", "nowhere"], "--others: nowhere has no recorded run of another policy"),
    ],
)
def test_refused_options(files: list[str], options: list[str], message: str) -> None:
    with pytest.raises(SystemExit, match=re.escape(message)) as refusal:
        TESTBED.main([*files, *options])
    assert "\n" not in str(refusal.value)


def test_refused_others_with_other_jobs(files: list[str], tmp_path: Path) -> None:
    for name, starts in (("twice", 2), ("thrice", 3)):
        write_run(tmp_path, name, starts, gpus=2)
    with pytest.raises(SystemExit, match="--work others: thrice has other jobs than often"):
        TESTBED.main([*files, "--policy", "srtf", "--work", "others", "--others", str(tmp_path)])


JOBS, ROUNDS, RUN = "job,gpus,submit_s\n1,1,0\n2,2,10\n", "round,job,gpus\n0,1,0\n0,2,1 2\n1,2,1 2\n", (
    "job,completion_time_s,gpu_seconds\n1,120,100\n2,230,400\n"
)  # fmt: skip


@pytest.mark.parametrize(
    ("file", "before", "after", "message"),
    [
        ("jobs.csv", JOBS, "", "it cannot be read as a table: No columns to parse from file"),
        ("jobs.csv", "job,", "jobs,", "column job is missing; it must have job, gpus, submit_s"),
        ("jobs.csv", JOBS, "job,gpus,submit_s\n", "it has no rows"),
        ("jobs.csv", "1,1,0\n2,2,10", "1,1,0,7\n2,2,10,7", "its rows have more fields than its first line"),
        ("jobs.csv", "2,2,10\n", "2,2,10\n2,2,10\n", "row 3: job 2 is given twice"),
        ("jobs.csv", "2,2,10", "b,2,10", "row 2: job: 'b' is not allowed; it must be a whole number >= 0"),
        ("jobs.csv", "2,2,10", "2,33,10", "row 2: gpus: '33' is not allowed; it must be a whole number >= 1 and <= 32"),
        ("jobs.csv", "2,2,10", "2,0,10", "row 2: gpus: '0' is not allowed"),
        ("jobs.csv", "2,2,10", "2,1.5,10", "row 2: gpus: '1.5' is not allowed"),
        ("jobs.csv", "2,2,10", "2,2,", "row 2: submit_s: '' is not allowed; it must be a number >= 0"),
        ("jobs.csv", "2,2,10", "2,2,nan", "row 2: submit_s: 'nan' is not allowed"),
        ("jobs.csv", "2,2,10", "2,2,-1", "row 2: submit_s: '-1' is not allowed"),
        ("a_rounds.csv", ROUNDS, "\0\x01\x02", "column round is missing"),
        ("a_rounds.csv", "0,1,0", "-1,1,0", "row 1: round: '-1' is not allowed; it must be a whole number >= 0"),
        ("a_rounds.csv", "0,1,0", "0.5,1,0", "row 1: round: '0.5' is not allowed"),
        ("a_rounds.csv", "0,1,0", "0,3,0", "job 1 is not in both this file and "),
        ("a_rounds.csv", "0,1,0\n0,2", "1,1,0\n2,2", "its first round is 1; it must be 0"),
        ("a_rounds.csv", "1,2,1 2", "5,2,1 2", "row 3: round 5 begins after the last completion, at 240 s"),
        ("a_rounds.csv", "0,1,0", "0,1,32", "row 1: gpus: '32' is not allowed; it must be whole numbers >= 0 and < 32"),
        ("a_rounds.csv", "0,1,0", "0,1,0.5", "row 1: gpus: '0.5' is not allowed"),
        ("a_rounds.csv", "0,1,0", "0,1,", "row 1: gpus: '' is not allowed"),
        ("a_rounds.csv", "0,1,0", "0,1,1", "row 2: GPU 1 is held twice in round 0"),
        ("a_rounds.csv", "0,2,1 2", "0,2,1 1", "row 2: GPU 1 is held twice in round 0"),
        ("a_rounds.csv", "0,2,1 2", "0,2,1", "row 2: job 2 holds 1 GPUs in round 0; in the file of jobs it has 2"),
        ("a_rounds.csv", "1,2,1 2", "0,2,3 4", "row 3: job 2 is given twice in round 0"),
        ("a_jobs.csv", "2,230,400", "1,230,400", "row 2: job 1 is given twice"),
        ("a_jobs.csv", "2,230,400", "2,inf,400", "row 2: completion_time_s: 'inf' is not allowed"),
        ("a_jobs.csv", "2,230,400", "2,0,400", "row 2: completion_time_s is 0; it must be > 0"),
        ("a_jobs.csv", "2,230,400", "2,230,much", "row 2: gpu_seconds: 'much' is not allowed"),
    ],
)
def test_damaged_files(tmp_path: Path, file: str, before: str, after: str, message: str) -> None:
    contents = {"jobs.csv": JOBS, "a_rounds.csv": ROUNDS, "a_jobs.csv": RUN}
    assert before in contents[file]
    for name, content in contents.items():
        (tmp_path / name).write_text(content.replace(before, after) if name == file else content)
    with pytest.raises(SystemExit, match=re.escape(f"error: {tmp_path / file}: {message}")) as refusal:
        TESTBED.main([*(str(tmp_path / name) for name in contents), "--policy", "srtf"])
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (JOBS.encode(), "Not a gzipped file"),
        (gzip.compress(JOBS.encode(), mtime=0)[:-9], "Compressed file ended before"),
        (None, "No such file or directory"),
    ],
)
def test_damaged_compressed_files(files: list[str], tmp_path: Path, content: bytes | None, message: str) -> None:
    jobs = tmp_path / "jobs.csv.gz"
    if content:
        jobs.write_bytes(content)
    with pytest.raises(SystemExit, match=re.escape(f"error: {jobs}: it cannot be read as a table: {message}")):
        TESTBED.main([str(jobs), *files[1:], "--policy", "srtf"])


@pytest.mark.parametrize("recorded", ["max_min_fairness", "finish_time_fairness"])
def test_the_recorded_schedules(recorded: str) -> None:
    if not TACC.is_dir():
        pytest.skip(f"{TACC} is not here; the recorded runs are not part of the repository")
    runs = RECORDS.read_folder(TACC)
    run = next(run for run in runs if run.name == recorded)
    others = RECORDS.others_than(run, runs)
    assert len(others) == len(runs) - 1
    result = TESTBED.scenario(run, others, TESTBED.SAME_POLICY[recorded], "recorded").run()
    found = TESTBED.compared(result, run, others)
    assert found["correlation"] >= 0.95
    table = result.scenario.workload.recorded_placements
    assert len(table.drop_duplicates(["job", "begin_s"])) == run.starts == found["recorded"]["restarts"]
    gpus = table.groupby(["job", "begin_s"], as_index=False)["nodes"].sum()
    assert gpus["nodes"].tolist() == run.jobs["gpus"].loc[gpus["job"]].tolist()
    assert abs(table["end_s"].max() - run.end_s.max()) < 2 * RECORDS.ROUND_S
    for measure, allowed in NEAR.items():
        assert abs(found["difference"][measure]) <= allowed, measure


def test_the_study() -> None:
    if not TACC.is_dir():
        pytest.skip(f"{TACC} is not here; the recorded runs are not part of the repository")
    study = study_of("papers/zheng_2023/testbed", {"records": str(TACC), "policies": "srtf"})
    assert len(study) == 4
