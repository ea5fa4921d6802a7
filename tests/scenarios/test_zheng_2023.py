"""A recorded testbed of gangs: what restarts cost in tables by hand, the command, and how near the simulated schedules are."""

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.scripts import defined_in, study_of
from tests.shared_data import SHARED

RECORDS, TESTBED = defined_in("papers/zheng_2023/recorded_rounds"), defined_in("papers/zheng_2023/testbed")
TACC = SHARED / "traces" / "gpu" / "tacc"
NEAR = {"mean_completion_s": 0.05, "makespan_s": 0.06, "restarts": 0.15}
"""How near a simulated schedule is to the recorded one, where the run times of jobs are the recorded ones."""


def write_run(folder: Path, policy: str, starts: int) -> tuple[Path, Path, Path]:
    """Write two jobs on GPU 0 that take turns, with ``starts`` each: a round is 2 s longer for each start, which loses 20 s."""
    order = [job for turn in range(starts) for job in (1, 2) for _ in range(6 // starts)]
    starts_before = [place == 0 or order[place] != order[place - 1] for place in range(12)]
    ends = {job: max(place for place, other in enumerate(order) if other == job) + 1 for job in (1, 2)}
    spent_s = dict.fromkeys((1, 2), 120 * 6 + 2 * starts - 20 * starts - 120)
    files = (folder / "jobs.csv", folder / f"{policy}_rounds.csv", folder / f"{policy}_jobs.csv")
    pd.DataFrame({"job": [1, 2], "gpus": 1, "submit_s": [0, 10]}).to_csv(files[0], index=False)
    pd.DataFrame({"round": range(12), "job": order, "gpus": 0}).to_csv(files[1], index=False)
    completed = [ends[job] * 120 + 2 * sum(starts_before[: ends[job]]) - submit_s for job, submit_s in ((1, 0), (2, 10))]
    pd.DataFrame({"job": [1, 2], "completion_time_s": completed, "gpu_seconds": spent_s.values()}).to_csv(files[2], index=False)
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
    files = write_run(tmp_path, "run", 1)
    rounds = pd.read_csv(files[1]).assign(gpus=["0 1", "1 0", "2 3", *["2 3"] * 9])
    rounds.to_csv(files[1], index=False)
    run = RECORDS.read(*files)
    assert (run.starts, run.moves) == (3, 1)


def test_placements_are_the_stays_of_the_rounds(tmp_path: Path) -> None:
    """A round is 10 s longer for each start: both jobs start in the first one, job 1 again in the third."""
    files = write_run(tmp_path, "run", 1)
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


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(path) for path in write_run(tmp_path, "often", 6)]
    write_run(tmp_path, "thrice", 3)
    TESTBED.main([*files, "--policy", "srtf", "--json", "--picture", str(tmp_path / "gpus.png")])
    found = json.loads(capsys.readouterr().out)
    assert found["estimated_from"] == ["thrice"]
    assert found["recorded"]["restarts"] == 12
    assert found["simulated"].keys() == found["recorded"].keys()
    assert (tmp_path / "gpus.png").stat().st_size > 0
    TESTBED.main([*files, "--policy", "max-min", "--work", "others"])
    assert "estimated from thrice" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("policy", "column", "message"),
    [
        ("max-mni", None, "did you mean 'max-min'"),
        ("srtf", "gpus", "often_rounds.csv: column gpus is missing; it must have round, job, gpus"),
    ],
)
def test_refusals(tmp_path: Path, policy: str, column: str | None, message: str) -> None:
    files = write_run(tmp_path, "often", 6)
    write_run(tmp_path, "thrice", 3)
    if column:
        pd.read_csv(files[1]).drop(columns=column).to_csv(files[1], index=False)
    with pytest.raises(SystemExit, match=message) as refusal:
        TESTBED.main([*map(str, files), "--policy", policy])
    assert "\n" not in str(refusal.value)


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
