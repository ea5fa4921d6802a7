"""Rules that lift rules: whose limit holds for a job if its QOS, its partition's QOS and its association have one each."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from clustermodel import QOS, Job, Limits, Machine, Partition, Result, Scenario, Site, Workload, read_sacct, read_slurm_site
from clustermodel.measure.input_notes import run_notes
from tests.conftest import refusal
from tests.shared_data import site_case

P, Q = Partition(name="p", nodes="0-7", default=True), Partition(name="q", nodes="0-7")
OF_P = QOS(name="of-p", partitions="p")


def run(limits: list[Limits], jobs: list[dict[str, Any]], qos: list[QOS] | None = None, **site: Any) -> Result:
    """Run jobs of one node and 100 s, on eight nodes with two partitions."""
    usual = {"submit_s": 0, "nodes": 1, "run_s": 100, "user": 1, "account": "bio", "partition": "p", "qos": "own"}
    workload = Workload.from_jobs([Job(id=number, **{**usual, **job}) for number, job in enumerate(jobs, 1)])
    rules = Site(limits=limits, qos=[OF_P] if qos is None else qos, **{"partitions": [P, Q], **site})
    return Scenario(workload=workload, machine=Machine(nodes=8), policy="easy", site=rules).run()


def starts(*args: Any, **kwargs: Any) -> list[float]:
    return list(run(*args, **kwargs).jobs["start_s"])


def statuses(*args: Any, **kwargs: Any) -> list[str]:
    return list(run(*args, **kwargs).jobs["status"])


OVER = [OF_P, QOS(name="own", over_partition_qos=True)]


@pytest.mark.parametrize(
    ("field", "tight", "loose", "held"),
    [
        ("running_jobs", 1, 2, [0, 100]),
        ("submitted_jobs", 1, 2, [0, 100]),
        ("nodes", 1, 2, [0, 100]),
        ("processors", 1, 2, [0, 100]),
        ("node_hours", 100 / 3600, 200 / 3600, [0, 100]),
        ("processor_hours", 150 / 3600, 200 / 3600, [0, 50]),
    ],
)
@pytest.mark.parametrize("who", [{}, {"user": "*"}, {"account": "*"}])
def test_the_qos_of_the_partition_comes_first_unless_the_jobs_own_one_is_over_it(
    field: str, tight: float, loose: float, held: list[float], who: dict[str, str]
) -> None:
    for of_own, of_p, overridden in ((tight, loose, False), (loose, tight, True)):
        limits = [Limits(qos="own", **who, **{field: of_own}), Limits(qos="of-p", **who, **{field: of_p})]  # type: ignore[arg-type]
        assert starts(limits, [{}, {}]) == (held if overridden else [0, 0])
        assert starts(limits, [{}, {}], OVER) == ([0, 0] if overridden else held)
        assert starts(limits, [{"partition": "q"}] * 2) == ([0, 0] if overridden else held)  # without a QOS of its own
        assert starts(limits, [{}, {}], []) == ([0, 0] if overridden else held)  # p is without one too
        assert starts(limits, [{"partition": None}, {}]) == (held if overridden else [0, 0])  # p is the default partition


@pytest.mark.parametrize(("field", "tight", "loose"), [("wall_time_s", 99, 100), ("job_nodes", 1, 2), ("job_processors", 1, 2)])
def test_limits_of_each_job_are_overridden_too(field: str, tight: float, loose: float) -> None:
    jobs = [{"nodes": 2}]
    for of_own, of_p in ((tight, loose), (loose, tight)):
        limits = [Limits(qos="own", **{field: of_own}), Limits(qos="of-p", **{field: of_p})]  # type: ignore[arg-type]
        first, second = (["completed"], ["rejected"]) if of_own == tight else (["rejected"], ["completed"])
        assert statuses(limits, jobs) == first
        assert statuses(limits, jobs, OVER) == second


def test_limits_of_other_kinds_hold_beside_each_other() -> None:
    running, nodes = Limits(qos="own", user="*", running_jobs=1), Limits(qos="of-p", user="*", nodes=5)
    assert starts([running, nodes], [{}, {}]) == [0, 100]
    assert starts([Limits(qos="own", user="*", running_jobs=1), Limits(qos="of-p", account="*", running_jobs=5)], [{}, {}]) == [
        0,
        100,
    ]
    assert starts([Limits(qos="own", running_jobs=1), Limits(qos="of-p", user="*", running_jobs=5)], [{}, {}]) == [0, 100]


def test_jobs_under_the_partitions_limit_count_for_their_own_qos_too() -> None:
    # Two jobs of p run under the limit of p's QOS; the third, in q, is the third of its own QOS, and waits for both to end.
    limits = [Limits(qos="own", running_jobs=1), Limits(qos="of-p", running_jobs=3)]
    assert starts(limits, [{}, {"run_s": 50}, {"partition": "q"}]) == [0, 0, 100]


def test_a_qos_counts_its_jobs_and_those_of_its_partition_together() -> None:
    limits = [Limits(qos="both", user="*", running_jobs=2)]
    jobs = [{"qos": "both", "partition": "q"}, {"qos": "own"}, {"qos": "both"}, {"qos": "own", "partition": "q"}]
    assert starts(limits, jobs, [QOS(name="both", partitions=["p"])]) == [0, 0, 100, 0]


@pytest.mark.parametrize(
    ("yields", "of_qos", "held"),
    [
        ("max", Limits(qos="own", user="*", running_jobs=5), False),
        ("max", Limits(qos="of-p", account="*", running_jobs=5), False),
        ("max", Limits(qos="own", running_jobs=5), True),  # another kind
        ("grp", Limits(qos="own", running_jobs=5), False),
        ("grp", Limits(qos="own", user="*", running_jobs=5), True),
        ("max", Limits(qos="own", user="*", nodes=5), True),
        ("max", Limits(qos="other", user="*", running_jobs=5), True),
        (None, Limits(qos="own", user="*", running_jobs=5), True),
    ],
)
def test_limits_of_associations_yield_to_those_of_qos(yields: Any, of_qos: Limits, held: bool) -> None:
    limits = [Limits(user=1, account="bio", running_jobs=1, yields_to_qos=yields), of_qos]
    assert starts(limits, [{}, {}]) == [0, 100 if held else 0]


def test_a_qos_lifts_the_limits_of_partitions() -> None:
    short = [Partition(name="p", nodes="0-7", max_wall_time_s=99, max_nodes=1), Q]
    lifting = {"lifts_partition_time": True}, {"lifts_partition_nodes": True}
    for job, (lifts, does_not) in (({}, lifting), ({"nodes": 2, "run_s": 50}, lifting[::-1])):
        assert statuses([], [job], [], partitions=short) == ["rejected"]
        assert statuses([], [job], [QOS(name="own", **lifts)], partitions=short) == ["completed"]
        assert statuses([], [job], [QOS(name="own", **does_not)], partitions=short) == ["rejected"]
        assert statuses([], [job], [QOS(name="of-p", partitions="p", **lifts)], partitions=short) == [
            "rejected"
        ]  # of jobs alone
    # What the QOS allows holds instead.
    limits, long = [Limits(qos="own", wall_time_s=200)], [QOS(name="own", lifts_partition_time=True)]
    assert statuses(limits, [{"run_s": 200}, {"run_s": 201}], long, partitions=short) == ["completed", "rejected"]


def test_a_job_in_partitions_with_different_qos_is_under_its_own() -> None:
    limits = [Limits(qos="own", running_jobs=1), Limits(qos="of-p", running_jobs=5)]
    assert starts(limits, [{"partition": "p,q"}] * 2) == [0, 100]
    assert starts(limits, [{"partition": "p,q"}] * 2, [QOS(name="of-p", partitions=["p", "q"])]) == [0, 0]


def test_sites_with_qos_are_written_and_read(tmp_path: Path) -> None:
    rules = Site(
        qos=[QOS(name="a", partitions=["p", "q"], over_partition_qos=True), QOS(name="b", lifts_partition_time=True)],
        limits=[Limits(user="*", running_jobs=1, yields_to_qos="max"), Limits(qos="a", processors=4, processor_hours=2.5)],
    )
    text = rules.to_toml(tmp_path / "site.toml")
    assert Site.from_toml(tmp_path / "site.toml") == rules
    assert '[[qos]]\nname = "b"\nlifts_partition_time = true\n' in text
    assert Site(qos=QOS(name="a")) == Site(qos=[QOS(name="a")])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: QOS(name=""), "QOS.name: '' is not allowed; it must be a text"),
        (lambda: QOS(name="a", partitions=[1]), "QOS.partitions: [1] is not allowed; they must be names of partitions"),
        (lambda: QOS(name="a", over_partition_qos=1), "QOS.over_partition_qos: 1 is not allowed; it must be True or False"),
        (lambda: Site(qos=[QOS(name="a"), QOS(name="a")]), "Site.qos: ['a', 'a'] is not allowed; each has one entry"),
        (
            lambda: Site(qos=[QOS(name="a", partitions="p"), QOS(name="b", partitions="p")]),
            "Site.qos: partitions: 'p' is not allowed; a partition has one QOS",
        ),
        (lambda: Limits(nodes=1, yields_to_qos="all"), "Limits.yields_to_qos: 'all' is not allowed"),
    ],
)  # fmt: skip
def test_qos_that_are_not_allowed(make: Any, message: str) -> None:
    assert refusal(make).startswith(message)


def test_notes_look_at_the_limits_that_hold() -> None:
    limits = [Limits(qos="own", job_nodes=1), Limits(qos="of-p", job_nodes=2)]
    assert [note.fact for note in run_notes([run(limits, [{"nodes": 2}, {}], partitions=[P])])] == []
    (rejected,) = run_notes([run(limits, [{"nodes": 3}, {}], partitions=[P])])
    assert rejected.fact == "1 job is rejected: limits of the site never allow such a size or estimate"
    short = [Partition(name="p", nodes="0-7", max_wall_time_s=99, default=True)]
    lifted = run(
        [Limits(qos="own", wall_time_s=150)],
        [{"run_s": 200}, {}],
        [QOS(name="own", lifts_partition_time=True)],
        partitions=short,
    )
    (by_qos,) = run_notes([lifted])
    assert by_qos.fact == "1 job is rejected: limits of the site never allow such a size or estimate"


# The small form of a real cluster: cases d01 and d16.

D01 = ("d01_nodes.conf", "d01_partitions.txt", "d01_qos.txt")


def test_the_cluster_of_case_d01(tmp_path: Path) -> None:
    slurm = read_slurm_site(*map(site_case, D01), unit="gpus")
    slurm.site.to_toml(tmp_path / "site.toml")
    for site in (slurm.site, Site.from_toml(tmp_path / "site.toml")):
        workload = Workload.from_frame(pd.read_csv(site_case("d01_jobs.csv")))
        jobs = Scenario(workload=workload, machine=Machine(nodes=slurm.nodes), policy="easy", site=site).run().jobs
        assert list(jobs.loc[jobs["status"] == "completed", "job"]) == [1, 2, 3, 6]
        # Job 3 is the fourth GPU of its user, of whom three may be in use in the partition.
        assert jobs.set_index("job")["start_s"].dropna().to_dict() == {1: 0, 2: 1, 3: 1000, 6: 5}


def test_jobs_that_ran_are_compared_in_case_d16() -> None:
    slurm = read_slurm_site(*map(site_case, D01), unit="gpus")
    workload = read_sacct(site_case("d16_log_long_qos.sacct"), unit="gpus")
    result = Scenario(workload=workload, machine=Machine(nodes=slurm.nodes), policy="easy", site=slurm.site).run()
    assert list(result.jobs["status"]) == ["completed"] * 3
