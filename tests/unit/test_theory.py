"""The analytic formulas on numbers worked by hand and in textbook cases."""

import pytest

from clustermodel import SpecificationError
from clustermodel.theory.capacity_loss import capacity_loss, utilization
from clustermodel.theory.processor_sharing import mg1_ps_mean_response
from clustermodel.theory.queueing import (
    erlang_c,
    mg1_mean_wait,
    mmc_mean_wait,
)


def test_the_formulas_of_zhang_2003_on_numbers_worked_by_hand() -> None:
    # N = 4; two nodes empty for 3 s while a job waits, one empty for 2 s with an empty queue; the last finish is at 10.
    assert capacity_loss([0, 3, 5, 10], [2, 1, 0, 4], [1, 0, 3, 0], 4) == pytest.approx(2 * 3 / 40)
    assert utilization([2, 1], [5.0, 10.0], 10.0, 4) == pytest.approx(20 / 40)
    with pytest.raises(ValueError, match="must be equal"):
        capacity_loss([0, 1], [1], [1, 1], 4)
    with pytest.raises(ValueError, match="ascending"):
        capacity_loss([1, 0], [1, 1], [1, 1], 4)


def test_the_closed_forms_of_queueing_theory_in_their_special_cases() -> None:
    assert erlang_c(1, 0.7) == pytest.approx(0.7)  # M/M/1: a customer waits if the server is busy
    assert mmc_mean_wait(1, 0.7, 1.0) == pytest.approx(0.7 / 0.3)
    assert mg1_mean_wait(0.7, 1.0, 1.0) == pytest.approx(0.7 / 0.3)  # exponential service has variance 1
    assert mg1_mean_wait(0.7, 1.0, 0.0) == pytest.approx(0.35 / 0.3)  # deterministic: half of it
    assert erlang_c(2, 1.0) == pytest.approx(1 / 3)  # textbook value
    assert 0 < erlang_c(2000, 1900.0) < 1
    for unstable in (lambda: erlang_c(2, 2.0), lambda: mg1_mean_wait(1.0, 1.0, 1.0)):
        with pytest.raises(SpecificationError, match="is not allowed"):
            unstable()


def test_the_response_of_processor_sharing() -> None:
    assert mg1_ps_mean_response(0.005, 100.0) == pytest.approx(200)
    assert mg1_ps_mean_response(0.7, 1.0) == pytest.approx(mmc_mean_wait(1, 0.7, 1.0) + 1)  # as M/M/1: 1 / (mu - lambda)
    with pytest.raises(SpecificationError, match="load"):
        mg1_ps_mean_response(0.01, 100.0)
