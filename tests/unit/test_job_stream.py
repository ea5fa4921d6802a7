"""The builder of job streams: what it draws, with which random numbers, and what it refuses."""

from itertools import islice

import numpy as np
import pytest
from scipy import stats

import clustermodel as cm
from clustermodel.workload.distributions import draw
from clustermodel.workload.job_stream import arrival_process, lublin_feitelson_day
from tests.shared_data import SHARED

HOUR = 3600.0
DAY = 24 * HOUR


def stream(**fields: object) -> cm.JobStream:
    return cm.JobStream(**{"arrivals": cm.Poisson(per_hour=60), "nodes": 4, "run_s": 100, **fields})


def sample(spec: object, size: int = 20_000, seed: int = 1) -> np.ndarray:
    return draw("it", spec, np.random.default_rng(seed), size)


@pytest.mark.parametrize(
    ("spec", "mean", "cv"),
    [
        (7, 7, 0),
        ({1: 1, 3: 3, 9: 0}, 2.5, np.sqrt(0.75) / 2.5),
        ([2, 4], 3, 1 / 3),
        (range(1, 4), 2, np.sqrt(2 / 3) / 2),
        (cm.Exponential(50), 50, 1),
        (cm.Lognormal(mean=600, cv=1.5), 600, 1.5),
        (cm.HyperErlang.from_mean(40, 2), 40, 2),
        (stats.uniform(10, 10), 15, np.sqrt(100 / 12) / 15),
        (cm.Zipf(2), 4 / 3, np.sqrt(2) / 4),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_distribution_has_its_mean_and_coefficient_of_variation(spec: object, mean: float, cv: float) -> None:
    values = sample(spec)
    # The mean of n values lies within 4.4 standard errors of its expectation in all but one of 100,000 samples.
    assert abs(values.mean() - mean) <= 4.4 * values.std() / np.sqrt(len(values))
    spread = [abs(sample(spec, seed=seed).std() / mean - cv) for seed in range(2, 7)]
    assert np.median(spread) <= 0.05 * cv


def test_two_stage_uniform_sizes_are_those_of_the_model() -> None:
    sizes = sample(cm.TwoStageUniform(largest=256), 100_000)
    assert set(np.unique(sizes)) <= set(range(1, 257))
    assert abs((sizes == 1).mean() - 0.244) < 4.4 * np.sqrt(0.244 * 0.756 / 100_000)
    # Of the parallel jobs, 86 % lie in the lower stage, up to 2^5.5 = 45 nodes; rounding to a power of two keeps their stage.
    assert abs((sizes[sizes > 1] <= 45).mean() - 0.86) < 0.01
    assert abs((np.log2(sizes) % 1 == 0).mean() - 0.244 - 0.576) < 0.07  # some others are powers of two by chance


def test_a_size_class_has_its_own_run_times() -> None:
    jobs = stream(nodes=[1, 8, 9, 64, 65], run_s=cm.BySize((8, 64), (10, [20, 21], cm.Exponential(30)))).generate(jobs=2000)
    nodes, run = jobs.column("nodes"), jobs.seconds("run")
    assert set(run[nodes <= 8]) == {10}
    assert set(run[(nodes > 8) & (nodes <= 64)]) == {20, 21}
    assert len(set(run[nodes > 64])) > 300


def first(process: object, number: int, seed: int = 1) -> np.ndarray:
    arrivals = arrival_process("it", process)
    chunks, total = [], 0
    for gaps in arrivals.gaps(np.random.default_rng(seed)):
        chunks.append(gaps)
        total += len(gaps)
        if total >= number:
            break
    return arrivals.to_time(np.cumsum(np.concatenate(chunks))[:number])


def test_poisson_arrivals_are_poisson() -> None:
    gaps = np.diff(first(cm.Poisson(per_hour=30), 20_000), prepend=0)
    assert stats.kstest(gaps, stats.expon(scale=120).cdf).pvalue > 0.001


def test_bursts_have_their_sizes_and_gaps() -> None:
    times = first(cm.Bursts(arrivals=1000, jobs=[3], gap_s=5), 7)
    assert times.tolist() == [1000, 1005, 1010, 2010, 2015, 2020, 3020]
    cycle = cm.Cycle(cm.Poisson(per_hour=10), hours=[1] * 8 + [3] * 8 + [0] * 8)
    hours = first(cm.Bursts(arrivals=cycle, jobs=stats.geom(0.2)), 5000) % DAY / HOUR
    assert hours.max() < 16


def test_a_trace_gives_its_times_and_begins_again() -> None:
    trace = cm.Workload.from_frame(cm.synthetic_workload(jobs=3).frame.assign(submit_s=[10.0, 20.0, 50.0]))
    assert first(trace, 8).tolist() == [10, 20, 50, 70, 80, 110, 130, 140]
    submit = stream(arrivals=trace).generate(jobs=3).seconds("submit")
    assert submit.tolist() == [10, 20, 50]


def test_a_cycle_has_its_rates_by_hour_and_by_day_and_keeps_the_mean_rate() -> None:
    hours, days = [1] * 6 + [2] * 6 + [5] * 12, [1, 1, 1, 1, 1, 0.5, 0]
    cycle = cm.Cycle(cm.Poisson(per_hour=120), hours=hours, days=days)
    times = first(cycle, 200_000)
    assert abs(120 * cycle.to_own_clock(times[-1]) / HOUR - 200_000) < 4.4 * np.sqrt(200_000)
    assert cycle.to_own_clock(21 * DAY) == pytest.approx(21 * DAY, rel=1e-12)
    times = times[times < 63 * DAY]  # whole weeks
    for moment, weights, length in ((times % DAY, hours, HOUR), (times % (7 * DAY), days, DAY)):
        counts = np.bincount((moment / length).astype(int), minlength=len(weights))
        expected = np.array(weights) / sum(weights) * len(times)
        assert stats.chisquare(counts[expected > 0], expected[expected > 0] * counts.sum() / expected.sum()).pvalue > 1e-4
        assert not counts[expected == 0].any()


def test_a_cycle_and_its_clock_are_inverse() -> None:
    cycle = cm.Cycle(cm.Poisson(per_hour=1), days=(1, 1, 1, 1, 1, 0.4, 0.3))
    for time in np.random.default_rng(1).uniform(0, 40 * DAY, 50):
        assert cycle.to_time(np.array([cycle.to_own_clock(time)]))[0] == pytest.approx(time, rel=1e-12)


def test_the_published_day_has_its_peak_before_two_in_the_afternoon_and_begins_at_five() -> None:
    weights = lublin_feitelson_day()
    assert weights.mean() == pytest.approx(1)
    assert weights.argmax() / 2 == 13.5
    assert weights.argmin() / 2 == 5


@pytest.mark.skipif(not (SHARED / "traces" / "lublin_256.swf.gz").exists(), reason="the trace is not there")
def test_the_published_day_and_sizes_are_those_of_a_trace_of_the_model() -> None:
    trace = cm.read_swf(SHARED / "traces" / "lublin_256.swf.gz")
    counts = np.bincount((trace.seconds("submit") % DAY / 1800).astype(int), minlength=48)
    assert np.corrcoef(counts, lublin_feitelson_day())[0, 1] > 0.95
    # The archive's generator delays arrivals until they fit the day, so the counts are no sample from the weights.
    sizes, drawn = trace.column("nodes"), sample(cm.TwoStageUniform(largest=256), 100_000)
    for largest in (1, 2, 4, 8, 16, 32, 64, 128):
        assert abs((sizes <= largest).mean() - (drawn <= largest).mean()) < 0.02


def test_ingredients_have_random_numbers_of_their_own() -> None:
    base = stream(nodes=cm.Zipf(50), run_s=cm.Exponential(60), users=cm.Zipf(9), estimates=cm.PhiEstimates())
    jobs = base.generate(jobs=6000, seed=3).frame
    slower = stream(
        nodes=cm.Zipf(50), run_s=cm.Exponential(60), users=cm.Zipf(9), estimates=cm.PhiEstimates(),
        arrivals=cm.Poisson(per_hour=6),
    ).generate(jobs=6000, seed=3)  # fmt: skip
    loaded = base.generate(jobs=6000, seed=3, load=0.7, machine_nodes=64)
    other_runs = stream(nodes=cm.Zipf(50), run_s=cm.Exponential(6), users=cm.Zipf(9)).generate(jobs=6000, seed=3).frame
    for frame in (slower.frame, loaded.frame):
        assert frame.drop(columns="submit_s").equals(jobs.drop(columns="submit_s"))
        ratio = frame["submit_s"] / jobs["submit_s"]
        assert ratio.max() == pytest.approx(ratio.min(), rel=1e-3)
    for column in ("submit_s", "nodes", "user"):
        assert other_runs[column].equals(jobs[column])
    assert base.generate(jobs=500, seed=3).frame.equals(jobs.head(500))
    assert not base.generate(jobs=6000, seed=4).frame["nodes"].equals(jobs["nodes"])
    assert list(base.generate(jobs=6000, seed=3).rows()) == list(base.generate(jobs=6000, seed=3).rows())


def test_streams_of_other_names_are_independent() -> None:
    both = cm.merge(day=stream(run_s=cm.Exponential(60)), night=stream(run_s=cm.Exponential(60))).generate(days=5)
    runs = [part.seconds("run") for part in both.split("stream")]
    number = min(map(len, runs))
    assert abs(np.corrcoef(runs[0][:number], runs[1][:number])[0, 1]) < 4.4 / np.sqrt(number)


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_a_load_is_offered_exactly_and_a_cycle_keeps_its_hours(load: float) -> None:
    def submissions(arrivals: object) -> tuple[np.ndarray, float]:
        jobs = stream(arrivals=arrivals, run_s=cm.Lognormal(mean=900, cv=3), nodes=cm.Zipf(64)).generate(
            jobs=3000, load=load, machine_nodes=64
        )
        assert jobs.machine_nodes == 64
        return jobs.seconds("submit"), (jobs.column("nodes") * jobs.seconds("run")).sum() / (64 * load)

    submit, length = submissions(cm.Cycle(cm.Poisson(per_hour=30)))
    assert submit[-1] == pytest.approx(length, rel=1e-9)
    submit, length = submissions(cm.Cycle(cm.Poisson(per_hour=30), hours=[0] * 8 + [1] * 10 + [0] * 6))
    assert length - 14 * HOUR <= submit[-1] <= length + 1e-3  # the last submission before a night
    assert 8 <= (submit % DAY / HOUR).min() < (submit % DAY / HOUR).max() <= 18


@pytest.mark.parametrize("load", [0.2, 0.9])
def test_a_mix_offers_a_load_over_its_days_with_the_shares_of_its_streams(load: float) -> None:
    mix = cm.merge(
        many=stream(arrivals=cm.Poisson(per_hour=90), run_s=cm.Exponential(300)),
        few=stream(arrivals=cm.Cycle(cm.Poisson(per_hour=10))),
    )
    jobs = mix.generate(days=10, load=load, machine_nodes=64)
    work = (jobs.column("nodes") * jobs.seconds("run")).sum()
    largest = (jobs.column("nodes") * jobs.seconds("run")).max()
    assert load * 64 * 10 * DAY <= work <= load * 64 * 10 * DAY + largest
    assert jobs.seconds("submit").max() <= 10 * DAY
    many, few = map(len, jobs.split("stream"))
    assert abs(many / (many + few) - 0.9) < 4.4 * np.sqrt(0.09 / (many + few))


def test_days_without_a_load_have_the_jobs_of_that_time() -> None:
    jobs = stream().generate(days=10)
    assert abs(len(jobs) - 14_400) < 4.4 * np.sqrt(14_400)
    longer = stream().generate(days=11)
    assert list(islice(longer.rows(), len(jobs))) == list(jobs.rows())


def test_estimates() -> None:
    exact, twice = (
        stream(run_s=cm.Exponential(600), estimates=cm.FactorEstimates(factor)).generate(jobs=99) for factor in (1, 2)
    )
    assert exact.seconds("estimate").tolist() == exact.seconds("run").tolist()
    assert np.allclose(twice.seconds("estimate"), 2 * twice.seconds("run"), rtol=1e-6)
    phi = stream(run_s=cm.Exponential(600), estimates=cm.PhiEstimates(0.5)).generate(jobs=4000)
    assert abs((phi.column("run") == phi.column("estimate")).mean() - 0.5) < 4.4 * 0.5 / np.sqrt(4000)


def test_memory_priority_and_users_are_kept_with_the_jobs() -> None:
    jobs = stream(memory_gib=[0.5, 2], priority=[0, 7], users=range(1, 4)).generate(jobs=500)
    assert set(jobs.frame["memory_gib"]) == {0.5, 2}
    assert set(jobs.frame["priority"]) == {0, 7}
    assert set(jobs.frame["user"]) == {1, 2, 3}
    assert set(jobs.with_perfect_estimates().frame["memory_gib"]) == {0.5, 2}


def test_closed_users_take_turns() -> None:
    jobs = stream(arrivals=cm.ClosedUsers(users=3, think_time_s=10), run_s=5).generate(jobs=8).frame
    assert jobs["submit_s"].tolist() == [10] * 3 + [25] * 3 + [40] * 2
    assert jobs["user"].tolist() == [1, 2, 3, 1, 2, 3, 1, 2]
    assert jobs["preceding"].tolist() == [-1, -1, -1, 1, 2, 3, 4, 5]


def test_sessions_within_days_are_whole() -> None:
    sessions = cm.Sessions(arrivals=6 * HOUR, jobs=3, think_time_s=10 * HOUR)
    jobs = stream(arrivals=sessions).generate(days=1).frame
    assert len(jobs) == 12
    assert (jobs["preceding"] == -1).sum() == 4
    assert len(stream(arrivals=sessions).generate(jobs=8)) == 8


class Broken:
    """A distribution that returns too few values."""

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        return np.ones(3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: stream(arrivals="often"), "JobStream.arrivals: 'often' is not allowed; it must be an arrival process"),
        (lambda: stream(nodes=None), "JobStream.nodes: None is not a distribution; it must be a number, {value: weight}"),
        (lambda: stream(nodes=True), "JobStream.nodes: True is not a distribution"),
        (lambda: stream(nodes={}), "JobStream.nodes: {} is not a distribution"),
        (lambda: stream(nodes={1: -1}), "JobStream.nodes: weight of 1: -1 is not allowed"),
        (lambda: stream(nodes={1: 0}), "one weight at least must be > 0"),
        (lambda: stream(run_s=[]), r"JobStream.run_s: \[\] is not a distribution"),
        (lambda: stream(run_s=[1, np.nan]), "JobStream.run_s: .* is not a distribution"),
        (lambda: stream(run_s=cm.Exponential), "JobStream.run_s: <class .* is not a distribution"),
        (lambda: stream(estimates=2), "JobStream.estimates: 2 is not allowed; it must be FactorEstimates"),
        (lambda: stream(name=""), "JobStream.name: '' is not allowed"),
        (lambda: cm.Poisson(per_hour=0), "Poisson.per_hour: 0 is not allowed"),
        (lambda: cm.Cycle(cm.Poisson(per_hour=1), hours=[]), r"Cycle.hours: \[\] is not allowed"),
        (lambda: cm.Cycle(cm.Poisson(per_hour=1), hours=[0, 0]), "one weight at least must be > 0"),
        (lambda: cm.Cycle(cm.Poisson(per_hour=1), days=[1] * 6), "Cycle.days: 6 weights are given; there must be 7"),
        (lambda: cm.Lognormal(mean=1, cv=0), "Lognormal.cv: 0 is not allowed"),
        (lambda: cm.TwoStageUniform(largest=1), "TwoStageUniform.largest: 1 is not allowed"),
        (lambda: cm.TwoStageUniform(largest=8, powers_of_two=0.8), "powers_of_two: 0.8 is not allowed"),
        (lambda: cm.Zipf(0), "Zipf.largest: 0 is not allowed"),
        (lambda: cm.BySize((8, 4), (1, 2, 3)), "BySize.boundaries: .* they must rise"),
        (lambda: cm.BySize((8,), (1,)), "BySize.distributions: 1 are given; there must be 2"),
        (lambda: cm.ClosedUsers(users=0, think_time_s=1), "ClosedUsers.users: 0 is not allowed"),
        (lambda: stream().generate(), "give either jobs or days"),
        (lambda: stream().generate(jobs=1, days=1), "give either jobs or days"),
        (lambda: stream().generate(jobs=0), "jobs: 0 is not allowed"),
        (lambda: stream().generate(jobs=10**9), "jobs: 1000000000 is not allowed"),
        (lambda: stream().generate(jobs=9, load=0.5), "machine_nodes: none is given; load needs it"),
        (lambda: stream().generate(jobs=9, load=0, machine_nodes=4), "load: 0 is not allowed"),
        (lambda: stream().generate(jobs=9, seed=-1), "seed: -1 is not allowed"),
        (lambda: stream(arrivals=0).generate(jobs=9, load=0.5, machine_nodes=4), "no factor gives them a load"),
        (lambda: stream(arrivals=[-1, 2]).generate(jobs=9), "JobStream.arrivals: -1 s was drawn between arrivals"),
        (lambda: stream(arrivals=DAY).generate(days=0.5), "JobStream jobs: no job arrives in that time"),
        (lambda: stream(nodes=[0, 1]).generate(jobs=9), "JobStream.nodes: 0 was drawn; it must be >= 1"),
        (lambda: stream(run_s=[-5, 1]).generate(jobs=9), "JobStream.run_s: -5 was drawn; it must be >= 0"),
        (lambda: stream(run_s=Broken()).generate(jobs=9), "JobStream.run_s: .* it must return 4096 finite numbers"),
        (
            lambda: stream(arrivals=cm.ClosedUsers(users=1, think_time_s=1)).generate(days=1),
            "days: not allowed with ClosedUsers",
        ),
        (
            lambda: stream(arrivals=cm.ClosedUsers(users=1, think_time_s=1)).generate(jobs=1, load=0.5, machine_nodes=4),
            "load: not allowed with sessions",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(make, message: str) -> None:
    with pytest.raises(cm.SpecificationError, match=message) as refused:
        make()
    assert "\n" not in str(refused.value)
