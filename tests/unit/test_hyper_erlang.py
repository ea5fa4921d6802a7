"""The hyper-Erlang distribution against its formulas, its fit against its own moments, its samples against its moments."""

from math import inf, nan, sqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import gamma

from clustermodel import HyperErlang, SpecificationError
from clustermodel.workload.distributions import LARGEST_ORDER
from tests.conftest import refusal

distributions = st.builds(
    lambda order, p, longer_s, ratio: HyperErlang(order=order, p=p, stage_s=(longer_s, longer_s * ratio)),
    st.integers(1, 100),
    st.floats(1e-5, 0.99),
    st.floats(1e-3, 1e6),
    st.floats(1e-3, 0.9),
)


def feasible(order: int, m1: float, m2: float, m3: float) -> bool:
    """Whether two stages above zero have these moments: the Hankel determinants, written as in a textbook."""
    mu1, mu2, mu3 = m1 / order, m2 / (order * (order + 1)), m3 / (order * (order + 1) * (order + 2))
    return mu2 > mu1 * mu1 and mu1 * mu3 > mu2 * mu2


@given(distributions)
def test_the_fit_has_the_three_moments_and_the_smallest_order(original: HyperErlang) -> None:
    moments = original.moments()
    fitted = HyperErlang.fit(*moments)
    assert fitted.moments() == pytest.approx(moments, rel=1e-9)
    assert fitted.order <= original.order
    assert feasible(fitted.order, *moments)
    assert fitted.order == 1 or not feasible(fitted.order - 1, *moments)
    assert fitted.stage_s[0] > fitted.stage_s[1] > 0  # the longer branch first
    assert 0 < fitted.p < 1


@given(st.lists(st.floats(1, 1e5), min_size=2, max_size=20))
def test_times_that_vary_have_a_fit_unless_its_order_would_be_too_large(times_s: list[float]) -> None:
    moments = [float(np.mean(np.array(times_s) ** k)) for k in (1, 2, 3)]
    if feasible(LARGEST_ORDER, moments[0], moments[1] * (1 - 1e-9), moments[2] * (1 - 4e-9)):
        try:
            fitted = HyperErlang.fit(*moments)
        except SpecificationError as problem:
            # so near the edge of an order that the fit needs a branch of centuries
            assume("stage_s" not in str(problem))
            raise
        assert fitted.moments() == pytest.approx(moments, rel=1e-9)
    elif not feasible(LARGEST_ORDER, moments[0], moments[1] * (1 + 1e-9), moments[2] * (1 + 4e-9)):
        with pytest.raises(SpecificationError, match="admit no fit"):
            HyperErlang.fit(*moments)


@pytest.mark.parametrize("order", [1, 2, 7, 100])
def test_the_moments_of_an_erlang_distribution_give_that_distribution(order: int) -> None:
    assert HyperErlang.fit(*HyperErlang(order=order, p=1, stage_s=(3.0, 3.0)).moments()).order == order
    assert HyperErlang.fit(*HyperErlang(order=order, p=1, stage_s=(3.0, 3.0)).moments()).p == 1


@pytest.mark.parametrize(
    ("moments", "message"),
    [
        ((5, 25, 125), "moments 5 s, 25 s^2, 125 s^3 admit no fit: m2 is not above m1^2, as of times that do not vary"),
        ((5, 20, 125), "moments 5 s, 20 s^2, 125 s^3 admit no fit: m2 is not above m1^2, as of times that do not vary"),
        # 0 and 10 s, each half of the times
        ((5, 50, 500), "moments 5 s, 50 s^2, 500 s^3 admit no fit: m1 m3 is not above m2^2, as of times that are zero or one "
         "value"),
        # a CV of 1 %: an order over 1 / 0.01^2 = 10,000
        ((1, 1.0001, 1.0003), "moments 1 s, 1.0001 s^2, 1.0003 s^3 admit no fit of an order up to 1,000 (CV 0.01, "
         "m1 m3 / m2^2 = 1.0001)"),
        ((0, 1, 1), "moments 0 s, 1 s^2, 1 s^3 are not allowed; they must be finite numbers > 0"),
        ((1, nan, 1), "moments 1 s, nan s^2, 1 s^3 are not allowed; they must be finite numbers > 0"),
        ((1, 2, inf), "moments 1 s, 2 s^2, inf s^3 are not allowed; they must be finite numbers > 0"),
        ((1e-200, 1e200, 1e300), "moments 1e-200 s, 1e+200 s^2, 1e+300 s^3 are not allowed; they are too far apart"),
    ],
)  # fmt: skip
def test_moments_without_a_fit_are_named_with_the_reason(moments: tuple[float, float, float], message: str) -> None:
    assert refusal(lambda: HyperErlang.fit(*moments)) == f"HyperErlang.fit: {message}"


@pytest.mark.parametrize("cv", [1.001, 1.5, 3, 50])
def test_above_one_a_mean_and_a_cv_are_met_with_balanced_means(cv: float) -> None:
    found = HyperErlang.from_mean(120, cv)
    assert found.order == 1
    assert (found.mean_s, found.cv) == pytest.approx((120, cv))
    assert found.p * found.stage_s[0] == pytest.approx((1 - found.p) * found.stage_s[1])


@pytest.mark.parametrize(("cv", "order"), [(0, 1000), (0.01, 1000), (0.1, 100), (0.5, 4), (0.6, 3), (0.9, 1), (1, 1)])
def test_up_to_one_it_is_the_nearest_erlang_distribution(cv: float, order: int) -> None:
    found = HyperErlang.from_mean(120, cv)
    assert (found.order, found.p) == (order, 1)
    assert found.mean_s == pytest.approx(120)
    assert found.cv == pytest.approx(1 / sqrt(order))


SPREAD = HyperErlang(order=3, p=0.2, stage_s=(500.0, 10.0))


def test_moments_mean_cv_and_skewness_are_those_of_the_mixed_gamma_distributions() -> None:
    branches = [gamma(3, scale=500), gamma(3, scale=10)]
    moments = [0.2 * branches[0].moment(k) + 0.8 * branches[1].moment(k) for k in (1, 2, 3)]
    assert SPREAD.moments() == pytest.approx(moments)
    mean, variance = moments[0], moments[1] - moments[0] ** 2
    assert SPREAD.mean_s == pytest.approx(mean)
    assert SPREAD.cv == pytest.approx(sqrt(variance) / mean)
    assert SPREAD.skewness == pytest.approx((moments[2] - 3 * mean * variance - mean**3) / variance**1.5)
    times = np.array([0, 5, 30, 1500, 9000])
    expected = 0.2 * branches[0].cdf(times) + 0.8 * branches[1].cdf(times)
    assert SPREAD.cdf(times).tolist() == pytest.approx(expected.tolist())
    assert float(SPREAD.cdf(30)) == pytest.approx(expected[2])


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("original", [SPREAD, HyperErlang.from_mean(1000, 2.2), HyperErlang(order=4, p=1, stage_s=(7.0, 7.0))])
def test_samples_have_the_moments(original: HyperErlang, seed: int) -> None:
    times = original.sample(np.random.default_rng(seed), 200_000)
    assert times.shape == (200_000,)
    assert times.min() >= 0
    for k, moment in enumerate(original.moments(), 1):
        powers = times**k
        assert np.mean(powers) == pytest.approx(moment, abs=2.576 * np.std(powers) / sqrt(len(times)))  # 99 %


def test_the_residual_time_is_that_of_the_inspection_paradox() -> None:
    # A stream seen at an arbitrary instant: the mean time to the next renewal is m2 / (2 m1).
    rng = np.random.default_rng(1)
    times = np.array([SPREAD.sample_residual(rng) for _ in range(20_000)])
    m1, m2, m3 = SPREAD.moments()
    assert np.mean(times) == pytest.approx(m2 / (2 * m1), abs=2.576 * np.std(times) / sqrt(len(times)))
    assert np.mean(times**2) == pytest.approx(m3 / (3 * m1), abs=2.576 * np.std(times**2) / sqrt(len(times)))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("order", 0, "HyperErlang.order: 0 is not allowed; it must be an integer >= 1"),
        ("order", 1.5, "HyperErlang.order: 1.5 is not a whole number; it must be an integer >= 1"),
        ("order", 1001, "HyperErlang.order: 1001 is not allowed; it must be an integer <= 1000"),
        ("p", 0, "HyperErlang.p: 0 is not allowed; it must be a number > 0 and <= 1"),
        ("p", 1.1, "HyperErlang.p: 1.1 is not allowed; it must be a number > 0 and <= 1"),
        ("p", nan, "HyperErlang.p: nan is not allowed; it must be a number > 0 and <= 1"),
        ("p", True, "HyperErlang.p: True is not allowed; it must be a number > 0 and <= 1"),
        ("p", "half", "HyperErlang.p: 'half' is not allowed; it must be a number > 0 and <= 1"),
        ("stage_s", (1.0,), "HyperErlang.stage_s: (1.0,) is not allowed; it must be two times in seconds"),
        ("stage_s", 5, "HyperErlang.stage_s: 5 is not allowed; it must be two times in seconds"),
        ("stage_s", (1.0, -1.0), "HyperErlang.stage_s: -1.0 is not allowed; it must be a finite number of seconds > 0 and <= "
         "1e+10"),
    ],
)  # fmt: skip
def test_a_field_out_of_range_is_named(field: str, value: Any, message: str) -> None:
    fields: dict[str, Any] = {"order": 1, "p": 0.5, "stage_s": (1.0, 2.0), field: value}
    assert refusal(lambda: HyperErlang(**fields)) == message


@pytest.mark.parametrize(("mean_s", "cv"), [(0, 1), (nan, 1), (1, -1), (1, inf), (1, "x")])
def test_a_mean_or_cv_out_of_range_is_refused(mean_s: Any, cv: Any) -> None:
    with pytest.raises(SpecificationError, match=r"HyperErlang\.from_mean: (mean_s|cv): "):
        HyperErlang.from_mean(mean_s, cv)
