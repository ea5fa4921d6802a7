"""Equivalence tests: cases computed by hand and by other means, and the errors that they make on drawn numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import inf, sqrt

import numpy as np
import pytest
from scipy import stats

from clustermodel import SpecificationError
from clustermodel.equivalence import Equivalence, controlled_mean, equivalence_test, looks_at
from clustermodel.statistics import FloatArray

DRAWN = [9.1, 10.4, 9.8, 10.9, 9.7, 10.2, 10.1, 9.6]


def test_a_case_computed_by_hand() -> None:
    # mean 10, deviations -1, 0, 1: s = 1, standard error 1 / sqrt(3) = 0.57735; t at 95 % with two degrees of freedom 2.91999
    found = equivalence_test([9.0, 10.0, 11.0], 10.5, margin=0.2)
    assert (found.expected, found.count) == (10.5, 3)
    assert found.difference == pytest.approx(-0.5)
    assert found.half == pytest.approx(2.9199856 * 0.5773503, rel=1e-7)
    assert found.margin == pytest.approx(2.1)
    assert found.verdict == "undecided"  # -0.5 - 1.686 = -2.186 is outside
    assert equivalence_test([9.0, 10.0, 11.0], 10.5, margin=0.21).verdict == "agrees"  # of 10.5: 2.205
    assert equivalence_test([9.0, 10.0, 11.0], 10.5, margin=2.2, relative=False).verdict == "agrees"
    # the other side: a difference of 3, whose interval begins at 3 - 1.686 = 1.314
    assert equivalence_test([9.0, 10.0, 11.0], 7.0, margin=1.31, relative=False).verdict == "differs"
    assert equivalence_test([9.0, 10.0, 11.0], 7.0, margin=1.32, relative=False).verdict == "undecided"
    assert equivalence_test([9.0, 10.0, 11.0], 13.0, margin=1.31, relative=False).verdict == "differs"


def test_the_number_of_values_that_are_missing_computed_by_hand() -> None:
    # s = 1, three values; the difference 3 is 1 beyond a margin of 2: (1.644854 + 1.281552)^2 = 8.56 values, so 6 more
    assert equivalence_test([9.0, 10.0, 11.0], 7.0, margin=2.0, relative=False).more == 6
    # no difference and a margin of 1: both tests must reject, (1.644854 + 1.644854)^2 = 10.8, so 8 more
    assert equivalence_test([9.0, 10.0, 11.0], 10.0, margin=1.0, relative=False).more == 8


@pytest.mark.parametrize("expected", [9.4, 9.9, 10.0, 10.3, 10.9])
@pytest.mark.parametrize("margin", [0.1, 0.3, 0.6, 1.2])
@pytest.mark.parametrize("looks", [1, 3])
def test_verdicts_are_those_of_two_one_sided_tests_of_scipy(expected: float, margin: float, looks: int) -> None:
    found = equivalence_test(DRAWN, expected, margin, relative=False, level=0.9, looks=looks)

    def p(bound: float, side: str) -> float:
        return float(stats.ttest_1samp(DRAWN, expected + bound, alternative=side).pvalue)

    alpha = 0.1 / looks
    within = max(p(-margin, "greater"), p(margin, "less"))
    beyond = min(p(-margin, "less"), p(margin, "greater"))
    assert found.verdict == ("agrees" if within < alpha else "differs" if beyond < alpha else "undecided")


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
    assert controlled_mean(values).needed == 250
    found = equivalence_test(values, 1.0, margin=0.05)
    assert (found.verdict, found.more) == ("undecided", 240)
    assert abs(found.difference) + found.half < 0.05  # the interval alone would agree
    assert equivalence_test(values, 1.0, margin=0.07).verdict == "agrees"  # as an interval three times as wide


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
        ({"level": 1}, "level: 1 is not allowed"),
        ({"looks": 0}, "looks: 0 is not allowed"),
        ({"relative": 1}, "relative: 1 is not allowed; it must be True or False"),
        (
            {"controls": [1.0, 2.0, 3.0]},
            "controls: shapes (3,) of controls and (0,) of their means are not allowed; there must be 3 rows",
        ),
    ],
)
def test_what_is_refused(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(SpecificationError) as refused:
        equivalence_test(**{"values": [1.0, 2.0, 3.0], "expected": 2.0, **arguments})  # type: ignore[arg-type]
    assert str(refused.value).startswith(said)


# Errors.

Draw = Callable[[np.random.Generator, int], FloatArray]
NORMAL: Draw = lambda rng, count: rng.normal(size=count)  # noqa: E731
EXPONENTIAL: Draw = lambda rng, count: rng.exponential(size=count) - 1  # noqa: E731
GAMMA: Draw = lambda rng, count: (rng.gamma(4, size=count) - 4) / 2  # noqa: E731
LOOKS = looks_at(10, 320)


def sequential(values: FloatArray, expected: float) -> Equivalence:
    """Return the outcome of looks until there is a verdict."""
    for look in LOOKS:
        found = equivalence_test(values[:look], expected, 0.02, looks=len(LOOKS))
        if found.verdict != "undecided":
            break
    return found


def verdicts(draw: Draw, error: float, repetitions: int, seed: int = 20261122) -> Counter[str]:
    """Return how often each verdict occurs for a formula with a relative error; replications vary by 5 %."""
    rng = np.random.default_rng(seed)
    values = (1 + 0.05 * draw(rng, LOOKS[-1]) for _ in range(repetitions))
    return Counter(sequential(one, 1 + error).verdict for one in values)


@pytest.mark.parametrize("draw", [NORMAL, EXPONENTIAL], ids=["normal", "exponential"])
@pytest.mark.parametrize(("error", "verdict"), [(0.0, "agrees"), (0.05, "differs"), (-0.05, "differs")])
def test_right_formulas_agree_and_wrong_ones_differ_in_at_least_95_of_100_repetitions(
    draw: Draw, error: float, verdict: str
) -> None:
    assert verdicts(draw, error, 100)[verdict] >= 95


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("draw", "most"), [(NORMAL, 0.05), (GAMMA, 0.075), (EXPONENTIAL, 0.1)], ids=["normal", "gamma, skewness 1", "exponential"]
)
@pytest.mark.parametrize("edge", [0.02, -0.02])
def test_at_the_edge_of_the_margin_either_verdict_errs_in_5_percent_and_if_skewed_in_at_most_10(
    draw: Draw, most: float, edge: float
) -> None:
    # An expected value of 1 + e, of which the margin is a share: the mean is at its edge if 1 - (1 + e) = -+0.02 (1 + e)
    found = verdicts(draw, 1 / (1 - edge) - 1, 2000)
    for verdict in ("agrees", "differs"):
        assert stats.binomtest(found[verdict], 2000, most, alternative="greater").pvalue > 0.01, found


def test_the_number_that_is_missing_gives_a_verdict_nine_times_of_ten() -> None:
    rng = np.random.default_rng(3)
    decided = 0
    needed = round((stats.norm.ppf(0.95) * 2 * 0.05 / 0.02) ** 2)
    for _ in range(200):
        values = rng.normal(1.0, 0.05, needed)
        decided += equivalence_test(values, 1.0, 0.02).verdict == "agrees"
    assert 170 <= decided <= 195  # 90 %, three standard errors
