"""Restoring the jobs that a log has been cleaned of, from the gaps in its job numbers."""

from typing import Any

import numpy as np
import pytest

from clustermodel import JobRow, Workload, synthetic_workload
from clustermodel.ticks import TICKS_PER_SECOND
from clustermodel.workload.job import NUMBERS, UNSET
from clustermodel.workload.job_columns import table_of
from tests.conftest import refusal
from tests.scripts import defined_in

SCRIPT = defined_in("papers/perkovic_2000/cleaned_log")
BURST, RESTORED, Flurry, with_flurry = SCRIPT.BURST, SCRIPT.RESTORED, SCRIPT.Flurry, SCRIPT.with_flurry

FACTS: dict[str, Any] = {"estimate_s": 21_600, "mean_run_s": 100, "mean_overestimation": 857}
FLURRY = Flurry(first=50, last=260, **FACTS)


@pytest.fixture(scope="module")
def whole() -> Workload:
    return synthetic_workload(jobs=300, nodes=128, load=0.8, seed=1)


@pytest.fixture(scope="module")
def cleaned(whole: Workload) -> Workload:
    """Without the jobs 50 to 229, and without those after them that have even numbers up to 260."""
    rows = [row for row in whole.rows() if not (50 <= row.id < 230 or (230 <= row.id <= 260 and row.id % 2 == 0))]
    return Workload(rows, name="log", machine_nodes=128)


def missing_from(cleaned: Workload) -> np.ndarray:
    return np.setdiff1d(np.arange(1, 301), cleaned.column("id"))


@pytest.mark.parametrize("at", RESTORED)
def test_missing_jobs_come_between_their_neighbours(cleaned: Workload, at: str) -> None:
    restored = with_flurry(cleaned, FLURRY, at=at)
    assert sorted(restored.column("id").tolist()) == list(range(1, 301))
    assert (np.diff(restored.column("id")) > 0).all(), "numbers are in order of submission"
    kept = np.isin(restored.column("id"), cleaned.column("id"))
    assert [*restored.part(kept, "kept").rows()] == [*cleaned.rows()]
    assert restored.machine_nodes == 128
    assert (restored.column("run")[~kept] % TICKS_PER_SECOND == 0).all()
    assert restored.provenance.options["at"] == at


def test_places_in_a_gap(whole: Workload, cleaned: Workload) -> None:
    missing = missing_from(cleaned)
    long = missing < 230  # the gap of 180 jobs
    low, high = (int(whole.column("submit")[number - 1]) for number in (49, 231))
    submit = {at: with_flurry(cleaned, FLURRY, at=at).values("submit", missing[long]) for at in RESTORED}
    assert set(submit["gap-start"].tolist()) == {low}
    assert len(set(submit["uniform"].tolist())) > 150
    assert submit["uniform"].mean() == pytest.approx((low + high) / 2, abs=(high - low) / 180**0.5)
    together = np.unique(submit["bursts"], return_counts=True)[1]
    assert sorted(together.tolist()) == sorted([BURST, BURST, BURST, 181 - 3 * BURST]) or together.sum() == 180
    assert len(together) == 4


def test_what_restored_jobs_are_like() -> None:
    log = synthetic_workload(jobs=300, nodes=128, load=0.8, seed=1)
    rows = [row._replace(id=row.id + 20_000 if row.id > 150 else row.id) for row in log.rows()]
    restored = with_flurry(Workload(rows), Flurry(first=151, last=20_150, nodes=2, **FACTS))
    added = (restored.column("id") > 150) & (restored.column("id") <= 20_150)
    run_s, estimate_s = restored.seconds("run")[added], restored.seconds("estimate")[added]
    assert (len(run_s), set(restored.column("nodes")[added].tolist()), set(estimate_s.tolist())) == (20_000, {2}, {21_600.0})
    assert run_s.mean() == pytest.approx(100, rel=0.05)
    assert (estimate_s / run_s).mean() == pytest.approx(857, rel=0.05)
    assert run_s.min() >= 1
    assert set(restored.column("user")[added].tolist()) == {UNSET}


def test_a_seed_draws_times_and_run_times(cleaned: Workload) -> None:
    missing = missing_from(cleaned)

    def drawn(column: str, **choice: Any) -> list[int]:
        return with_flurry(cleaned, FLURRY, **choice).values(column, missing).tolist()

    for column in ("submit", "run"):
        assert drawn(column, seed=1) == drawn(column, seed=1) != drawn(column, seed=2)
    assert drawn("run", at="uniform") == drawn("run", at="bursts") == drawn("run", at="gap-start")


def test_extra_columns_stay(cleaned: Workload) -> None:
    ids = cleaned.column("id")
    columns = {name: cleaned.column(name) for name in NUMBERS}
    with_extra = Workload(table_of(**columns, cores=ids * 2), extra=["cores"])
    restored = with_flurry(with_extra, FLURRY)
    assert restored.values("cores", ids).tolist() == (ids * 2).tolist()
    assert restored.values("cores", np.array([50, 51])).tolist() == [UNSET, UNSET]


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        (((1, 0), (4, 1)), None),
        (((1, 0), (2, 1), (3, 2), (4, 3)), "none is missing, so there is nothing to restore; a cleaned log is needed"),
        (((1, 5), (4, 1)), "job 4 was submitted before job 1; job numbers must be in order of submission"),
        (((2, 0), (4, 1)), "the log has jobs 2 to 4; it must have jobs before and after the flurry"),
        (((1, 0), (3, 1)), "the log has jobs 1 to 3; it must have jobs before and after the flurry"),
        (((9, 0), (1, 1), (4, 2)), None),
    ],
)
def test_a_log_that_does_not_tell_the_times_is_one_line(jobs: tuple[tuple[int, int], ...], message: str | None) -> None:
    flurry = Flurry(first=2, last=3, **FACTS)
    log = Workload([JobRow(at * TICKS_PER_SECOND, job, 1, 1, 1, 1, 1, 0, 1) for job, at in jobs], name="log")
    if message is None:
        assert len(with_flurry(log, flurry)) == len(log) + 2
        return
    assert refusal(lambda: with_flurry(log, flurry)) == f"with_flurry: job numbers 2 to 3 of log: {message}"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"last": 1}, "Flurry.last: 1 is not allowed; it must be an integer >= 2"),
        ({"nodes": 0}, "Flurry.nodes: 0 is not allowed; it must be an integer >= 1"),
        ({"estimate_s": 0.5}, "Flurry.estimate_s: 0.5 is not allowed; it must be a number of seconds >= 1"),
        ({"mean_run_s": 0}, "Flurry.mean_run_s: 0 is not allowed; it must be a number of seconds > 0 and <= 21600, the "
         "estimate"),
        ({"mean_overestimation": 200}, "Flurry.mean_overestimation: 200 is not allowed; it must be a number >= 216, the "
         "estimate / the mean run time"),
    ],
)  # fmt: skip
def test_an_impossible_flurry_is_one_line(change: dict[str, Any], message: str) -> None:
    assert refusal(lambda: Flurry(**{"first": 2, "last": 3, **FACTS, **change})) == message


def test_places_have_names(cleaned: Workload) -> None:
    assert refusal(lambda: with_flurry(cleaned, FLURRY, at="spread")).startswith("with_flurry: at: 'spread' is not allowed")
