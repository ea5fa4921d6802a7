"""The Weibull fit: greatest likelihood, intervals that cover, zeros that are counted."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import weibull_min

from clustermodel import SpecificationError, fit_weibull


@pytest.mark.parametrize("shape", [0.3, 0.7, 1.0, 4.0])
def test_the_fit_is_that_of_scipy_and_near_the_truth(shape: float) -> None:
    times = 5000.0 * np.random.default_rng(1).weibull(shape, 2000)
    fit = fit_weibull(times)
    scipy_shape, _, scipy_scale = weibull_min.fit(times, floc=0)
    assert fit.shape == pytest.approx(scipy_shape, rel=1e-4)
    assert fit.scale_s == pytest.approx(scipy_scale, rel=1e-4)
    assert fit.shape_interval[0] < shape < fit.shape_interval[1]
    assert fit.scale_interval_s[0] < 5000 < fit.scale_interval_s[1]
    assert fit.mean_s == pytest.approx(weibull_min.mean(scipy_shape, scale=scipy_scale), rel=1e-4)


def test_intervals_end_where_the_likelihood_has_fallen_by_half_a_quantile() -> None:
    times = np.random.default_rng(2).weibull(0.8, 60) * 100
    fit = fit_weibull(times)

    def likelihood(shape: float, scale: float) -> float:
        return float(weibull_min.logpdf(times, shape, scale=scale).sum())

    best = likelihood(fit.shape, fit.scale_s)
    for end in fit.shape_interval:
        assert 2 * (best - likelihood(end, (times**end).mean() ** (1 / end))) == pytest.approx(3.841459, abs=1e-5)
    for end in fit.scale_interval_s:
        shapes = np.linspace(0.5 * fit.shape, 2 * fit.shape, 20_001)
        z = times[:, None] / end
        profile = (len(times) * np.log(shapes / end) + (shapes - 1) * np.log(z).sum() - (z**shapes).sum(axis=0)).max()
        assert 2 * (best - profile) == pytest.approx(3.841459, abs=1e-4)


@pytest.mark.statistical
def test_intervals_cover_as_often_as_they_say() -> None:
    rng = np.random.default_rng(3)
    fits = [fit_weibull(rng.weibull(0.7, 150), level=0.9) for _ in range(400)]
    assert np.mean([low < 0.7 < high for low, high in (fit.shape_interval for fit in fits)]) == pytest.approx(0.9, abs=0.04)
    assert np.mean([low < 1 < high for low, high in (fit.scale_interval_s for fit in fits)]) == pytest.approx(0.9, abs=0.04)


def test_times_of_zero_are_left_out_and_counted() -> None:
    times = [3.0, 0.0, 8.0, 0.0, 1.0]
    fit, without = fit_weibull(times), fit_weibull([3, 8, 1])
    assert (fit.times, fit.zeros) == (3, 2)
    assert fit[:4] == without[:4]


def test_the_unit_does_not_matter() -> None:
    times = np.random.default_rng(4).weibull(0.6, 50)
    small, large = fit_weibull(times * 1e-6), fit_weibull(times * 1e9)
    assert large.shape == pytest.approx(small.shape, rel=1e-9)
    assert large.scale_s / 1e15 == pytest.approx(small.scale_s, rel=1e-9)
    assert large.scale_interval_s == pytest.approx(np.multiply(1e15, small.scale_interval_s), rel=1e-9)


@pytest.mark.parametrize("times", [[1.0, 1.0000001], [1e-3, 1e9], [1, 2]])
def test_two_times_are_enough(times: list[float]) -> None:
    fit = fit_weibull(times)
    assert 0 < fit.shape_interval[0] < fit.shape < fit.shape_interval[1]
    assert fit.scale_interval_s[0] < fit.scale_s < fit.scale_interval_s[1]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([], "times_s: 0 different times > 0 are not allowed"),
        ([0.0, 5.0, 5.0], "times_s: 1 different times > 0 are not allowed; there must be at least two"),
        ([1.0, -1.0], "times_s: [1.0, -1.0] is not allowed; it must be a list of finite numbers >= 0"),
        ([1.0, float("inf")], "times_s: [1.0, inf] is not allowed"),
        ("often", "times_s: 'often' is not allowed"),
    ],
)
def test_times_that_cannot_be_fitted(times: Any, message: str) -> None:
    with pytest.raises(SpecificationError) as refused:
        fit_weibull(times)
    assert str(refused.value).startswith(message)
    with pytest.raises(SpecificationError, match=r"^level: 1 is not allowed"):
        fit_weibull([1, 2], level=1)
