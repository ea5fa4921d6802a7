"""Equivalence tests: cases computed by hand and by other means, and the errors that they make on drawn numbers."""

from itertools import pairwise
from math import inf, sqrt

import numpy as np
import pytest
from scipy import stats

from clustermodel.measure.equivalence import Estimate, controlled_mean, equivalence_test, looks_at
from tests.conftest import refusal
from tests.statistical.error_rates import CALIBRATED, DISTRIBUTIONS, EDGES, SPREADS, verdict_counts

DRAWN = [9.1, 10.4, 9.8, 10.9, 9.7, 10.2, 10.1, 9.6]


def test_a_case_computed_by_hand() -> None:
    # mean 10, deviations -1, 0, 1: s = 1, standard error 1 / sqrt(3) = 0.57735; t at 95 % with two degrees of freedom 2.91999
    found = equivalence_test([9.0, 10.0, 11.0], 10.5, margin=0.2)
    assert (found.expected, found.count) == (10.5, 3)
    assert found.difference == pytest.approx(-0.5)
    assert found.half == pytest.approx(2.9199856 * 0.5773503, rel=1e-7)
    assert found.margin == pytest.approx(2.1)
    # So few values need an interval about four times as wide: 0.5 + 6.94 is within a margin of 7.5, not within one of 7.
    assert equivalence_test([9.0, 10.0, 11.0], 10.5, margin=7.0, relative=False).verdict == "undecided"
    assert equivalence_test([9.0, 10.0, 11.0], 10.5, margin=7.5, relative=False).verdict == "agrees"
    # Half of the error on each side: t at 97.5 % is 4.3027; a difference of 30 lies beyond 19, not beyond 21, on either side
    for expected in (-20.0, 40.0):
        assert equivalence_test([9.0, 10.0, 11.0], expected, margin=19.0, relative=False).verdict == "differs"
        assert equivalence_test([9.0, 10.0, 11.0], expected, margin=21.0, relative=False).verdict == "undecided"


@pytest.mark.parametrize("skewness", [-2.0, 0.0, 0.5, 2.0])
@pytest.mark.parametrize("count", [40, 100, 1000])
def test_bounds_are_those_of_the_cubic_transformation_of_t(skewness: float, count: int) -> None:
    # Hall 1992: with c = skewness / sqrt(n), T + c T^2 / 3 + c^2 T^3 / 27 + c / 6 has the quantiles of a symmetric variable.
    quantile = float(stats.t.ppf(0.99, count - 1))
    low, high = Estimate(0.0, 1.0, count - 1, count, skewness).bounds(0.01)
    for bound, tail in ((high, skewness), (-low, -skewness)):
        c = (max(1.75 * tail, tail) + 12 / count) / sqrt(count)
        if c < 0:
            assert bound == pytest.approx(quantile)  # never less than the t interval
        elif c < 9 / (8 * quantile):
            assert -bound + c * bound**2 / 3 - c**2 * bound**3 / 27 + c / 6 == pytest.approx(-quantile)
            assert bound > quantile
        else:
            assert bound == pytest.approx(4 * quantile, rel=0.05)
    assert (low == pytest.approx(-high)) == (skewness == 0)


def test_bounds_grow_with_the_skewness_and_shrink_with_the_number_of_values() -> None:
    def high(skewness: float, count: int) -> float:
        return Estimate(0.0, 1.0, count - 1, count, skewness).bounds(0.01)[1]

    by_skewness = [high(skewness, 50) for skewness in np.linspace(-3, 9, 100)]
    assert all(b > 0.99 * a for a, b in pairwise(by_skewness))  # it ends a little beyond its largest value
    assert all(high(1.0, 2 * count) < high(1.0, count) for count in (20, 50, 100, 1000))
    assert high(1.0, 10**6) == pytest.approx(float(stats.norm.ppf(0.99)), rel=0.01)


def test_the_number_that_is_missing_is_what_a_verdict_needs() -> None:
    symmetric = [9.0, 11.0, 9.5, 10.5]  # of mean 10
    for expected, margin, verdict in ((10.0, 0.3, "agrees"), (11.0, 0.5, "differs"), (9.0, 0.5, "differs")):
        found = equivalence_test(symmetric, expected, margin, relative=False)
        assert found.verdict == "undecided"
        assert found.more is not None
        assert equivalence_test(symmetric * (1 + found.more // 4), expected, margin, relative=False).verdict == verdict
        fewer = equivalence_test(symmetric * max(1, found.more // 16), expected, margin, relative=False)
        assert fewer.verdict == "undecided"


@pytest.mark.parametrize("expected", [9.4, 9.9, 10.0, 10.3, 10.9])
@pytest.mark.parametrize("margin", [0.1, 0.3, 0.6, 1.2])
@pytest.mark.parametrize("looks", [1, 3])
def test_verdicts_from_many_symmetric_values_are_those_of_one_sided_t_tests(expected: float, margin: float, looks: int) -> None:
    values = np.tile([*DRAWN, *(20 - np.array(DRAWN))], 30)
    found = equivalence_test(values, expected, margin, relative=False, level=0.9, looks=looks)

    def p(bound: float, side: str) -> float:
        return float(stats.ttest_1samp(values, expected + bound, alternative=side).pvalue)

    alpha = 0.1 / looks
    within = max(p(-margin, "greater"), p(margin, "less"))
    beyond = min(p(-margin, "less"), p(margin, "greater"))
    assert found.verdict == ("agrees" if within < alpha else "differs" if beyond < alpha / 2 else "undecided")


def test_expected_values_of_each_run_are_paired() -> None:
    expected = [value + 0.01 for value in DRAWN]
    found = equivalence_test(DRAWN, expected, margin=0.002)
    assert found.difference == pytest.approx(-0.01)
    assert found.half == pytest.approx(0, abs=1e-12)
    assert found.verdict == "agrees"
    assert equivalence_test(DRAWN, expected, margin=0.0009).verdict == "differs"


def test_skewed_values_need_more_replications() -> None:
    values = [1.0] * 9 + [1.1]
    skewness = float(stats.skew(values, bias=False))
    assert controlled_mean(values).skewness == pytest.approx(skewness) == pytest.approx(10**0.5)
    found = equivalence_test(values, 1.0, margin=0.05)
    assert abs(found.difference) + found.half < 0.05  # the t interval alone would agree
    assert (found.verdict, found.more) == ("undecided", 37)
    assert equivalence_test(values * 6, 1.0, margin=0.05).verdict == "agrees"
    assert equivalence_test(values, 1.0, margin=0.09).verdict == "agrees"  # as an interval four times as wide


def test_equal_values_have_no_spread_and_one_value_has_no_interval() -> None:
    assert equivalence_test([5.0, 5.0], 5.0).verdict == "agrees"
    assert equivalence_test([5.0, 5.0], 5.2).verdict == "differs"
    one = equivalence_test([5.0], 5.0)
    assert (one.verdict, one.half, one.more, str(one)) == ("undecided", inf, None, "undecided")


def test_a_control_variate_is_a_regression() -> None:
    rng = np.random.default_rng(1)
    control = rng.normal(3.0, 1.0, 40)
    values = 7 + 2 * (control - 3) + rng.normal(0.0, 0.1, 40)
    line = stats.linregress(control - 3, values)
    found = controlled_mean(values, control[:, np.newaxis], [3.0])
    assert found.mean == pytest.approx(line.intercept)
    assert found.error == pytest.approx(line.intercept_stderr)
    assert (found.freedom, found.count) == (38, 40)
    assert found.error < 0.1 * controlled_mean(values).error
    plain = controlled_mean(values)
    assert (plain.mean, plain.error) == (pytest.approx(values.mean()), pytest.approx(stats.sem(values)))


def test_several_controls_are_the_intercept_of_least_squares_and_a_constant_one_changes_nothing() -> None:
    rng = np.random.default_rng(2)
    controls = rng.normal(size=(30, 2))
    values = 5 + controls @ [1.0, -2.0] + rng.normal(0.0, 0.3, 30)
    design = np.column_stack([np.ones(30), controls])
    coefficients, squares, _, _ = np.linalg.lstsq(design, values, rcond=None)
    error = sqrt(float(squares[0]) / 27 * np.linalg.inv(design.T @ design)[0, 0])
    found = controlled_mean(values, controls, [0.0, 0.0])
    assert (found.mean, found.error, found.freedom) == (pytest.approx(coefficients[0]), pytest.approx(error), 27)
    with_constant = controlled_mean(values, np.column_stack([controls, np.full(30, 0.1) + 1e-14]), [0.0, 0.0, 0.1])
    assert (with_constant.mean, with_constant.error) == (pytest.approx(found.mean), pytest.approx(found.error))
    assert controlled_mean(values[:3], controls[:3], [0.0, 0.0]).error == inf


def test_looks_double() -> None:
    assert looks_at(10, 320) == (10, 20, 40, 80, 160, 320)
    assert looks_at(10, 100) == (10, 20, 40, 80, 100)
    assert looks_at(7, 7) == (7,)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"values": []}, "values: 0 values, [], cannot be enough"),
        ({"expected": 0}, "expected: 0 is not allowed with a relative margin; give relative=False"),
        ({"expected": [1.0, 2.0]}, "expected: 2 values are not allowed; there must be one, or one for each value"),
        ({"expected": float("nan")}, "expected: nan at 0 is not allowed"),
        ({"margin": 0}, "margin: 0 is not allowed; it must be a finite number > 0"),
        (
            {"margin": 5},
            "margin: 5 is not allowed; a relative margin is a share, below 1; 5 % is 0.05; or give relative=False",
        ),
        ({"level": 1}, "level: 1 is not allowed"),
        ({"looks": 0}, "looks: 0 is not allowed"),
        ({"relative": 1}, "relative: 1 is not allowed; it must be True or False"),
        ({"controls": [1.0, 2.0, 3.0]}, "controls: shapes (3,) of controls and (0,) of their means are not allowed; there "),
    ],
)
def test_what_is_refused(arguments: dict[str, object], said: str) -> None:
    defaults = {"values": [1.0, 2.0, 3.0], "expected": 2.0}
    assert refusal(lambda: equivalence_test(**{**defaults, **arguments})).startswith(said)  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [0.05, -0.05, 0.0])
@pytest.mark.parametrize("name", ["normal", "exponential"])
def test_right_formulas_agree_and_wrong_ones_differ_in_at_least_95_of_100_repetitions(name: str, error: float) -> None:
    assert verdict_counts(name, 0.05, error, 100)["differs" if error else "agrees"] >= 95


@pytest.mark.parametrize("name", CALIBRATED)
def test_a_right_formula_seldom_differs(name: str) -> None:
    assert verdict_counts(name, 1.0, 0.0, 40)["differs"] <= 3


@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name in DISTRIBUTIONS if name != "hyperexponential"])  # the page says by how much
@pytest.mark.parametrize("spread", SPREADS)
def test_a_verdict_is_wrong_in_at_most_5_percent_of_1000_repetitions(name: str, spread: float) -> None:
    assert verdict_counts(name, spread, 0.0, 1000)["differs"] <= 50
    for edge in EDGES:
        counts = verdict_counts(name, spread, edge, 1000)
        assert counts["agrees"] <= 50
        assert counts["differs"] <= 50


def test_the_number_that_is_missing_gives_a_verdict_nine_times_of_ten() -> None:
    rng = np.random.default_rng(3)
    decided = 0
    needed = round((stats.norm.ppf(0.95) * 2 * 0.05 / 0.02) ** 2)
    for _ in range(200):
        values = rng.normal(1.0, 0.05, needed)
        decided += equivalence_test(values, 1.0, 0.02).verdict == "agrees"
    assert 170 <= decided <= 195  # 90 %, three standard errors
