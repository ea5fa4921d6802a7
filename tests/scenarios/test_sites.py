"""Partitions that share nodes, and queues of two logs: a small run, and what the pages say."""

import gzip
from pathlib import Path

import pandas as pd

from clustermodel import Reservation, Workload
from clustermodel.experiment.exhibits import exhibits_of
from tests.scripts import defined_in, mean, stored, study_of

RULES = ("EASY", "EASY, queues and age", "EASY, queues, age, down")
HEADER = "; MaxProcs: 128\n" + "".join(
    f"; Queue: {code} {name}\n" for code, name in enumerate(["interactive", "express", "high", "normal", "low"])
)


def test_a_small_run_compares_queues_with_the_record(tmp_path: Path) -> None:
    for log, queues in {"SDSC-SP2-1998-4.2-cln": "1234", "SDSC-BLUE-2000-4.2-cln": "01234"}.items():
        lines = [
            f"{job} {job} {100 * job} 600 100 -1 -1 100 900 -1 1 {job} 1 -1 {queue} -1 -1 -1\n"
            for job, queue in enumerate(queues)
        ]
        (tmp_path / f"{log}.swf.gz").write_bytes(gzip.compress((HEADER + "".join(lines)).encode()))
    study = study_of("sites/sdsc", {"traces": str(tmp_path)})
    table = study.run(workers=1)
    assert not table.failures
    exhibits = exhibits_of(study, table)
    assert not exhibits.problems
    (found,) = exhibits.tables.values()
    assert found["queue"].tolist() == ["express", "high", "normal", "low", "interactive", "express", "high", "normal", "low"]
    assert found["EASY, queues and age"].tolist()[4] == 0


def test_times_without_jobs_are_reservations() -> None:
    jobs = Workload.from_frame(
        pd.DataFrame({
            "submit_s": [0, 50, 100, 3800], "nodes": [1, 2, 1, 1], "run_s": [100, 100, 200, 100], "wait_s": [0, 0, 4000, 3600],
            "queue": ["normal", "normal", "normal", "interactive"],
        })
    )  # fmt: skip
    (down,) = defined_in("sites/sdsc").times_down(jobs, 4)
    assert (down.nodes, down.start_s, down.end_s) == (Reservation(nodes=range(4), start_s=0, end_s=1).nodes, 150, 4100)


def test_what_the_page_concludes_of_partitions_that_share_nodes() -> None:
    table = stored("shared_partitions")

    def ratio(who: str, load: float, shared: str) -> tuple[float, float]:
        interval = table.difference(
            f"{who}_response_s", {"load": load, "shared": shared}, {"load": load, "shared": "none"}, ratio=True
        )
        return interval.low, interval.high

    for shared in ("half", "all"):
        assert max(ratio(who, load, shared)[1] for who in ("chemistry", "physics") for load in (0.5, 0.7)) < 1
        assert ratio("physics", 0.9, shared)[1] < 0.65
        assert ratio("chemistry", 0.9, shared)[0] < 1 < ratio("chemistry", 0.9, shared)[1]


def test_what_the_page_concludes_of_two_logs_with_queues() -> None:
    queues = ["express", "high", "normal", "low"]

    def waits(log: str, rules: str, measure: str = "wait_s") -> list[float]:
        return [mean(stored("sdsc"), f"{measure}, {queue}", log=log, rules=rules) for queue in queues]

    recorded, plain, ordered = waits("SDSC-SP2", "EASY", "recorded_s"), *(waits("SDSC-SP2", rules) for rules in RULES[:2])
    assert plain != sorted(plain)
    assert ordered == sorted(ordered)
    assert plain[0] / recorded[0] > 5
    assert plain[1] / recorded[1] > 1.9
    assert all(1 / 1.6 < ours / theirs < 1.6 for ours, theirs in zip(ordered, recorded, strict=True))
    recorded, ordered, down = waits("SDSC-BLUE", "EASY", "recorded_s"), *(waits("SDSC-BLUE", rules) for rules in RULES[1:])
    assert [round(ours / theirs, 1) for ours, theirs in zip(down, ordered, strict=True)] == [1.9, 1.8, 1.6, 1.5]
    assert [round(theirs / ours, 1) for ours, theirs in zip(down, recorded, strict=True)] == [6.5, 5.8, 3.4, 2.5]
    assert min(waits("SDSC-BLUE", "EASY", "idle_share")) > 0.5
    assert waits("SDSC-BLUE", RULES[1]) == sorted(waits("SDSC-BLUE", RULES[1]))
