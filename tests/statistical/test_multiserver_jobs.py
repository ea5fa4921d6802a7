"""FCFS, EASY and ServerFilling on rigid jobs against the tables in ../shared/reference/msj, and FCFS against its exact mean.

Every point of the tables up to a load of 0.9 is simulated.  Run with ``pytest -m statistical``; ``python -m
tests.statistical.multiserver_jobs`` prints the comparison.  FCFS near saturation takes most of the time.
"""

import numpy as np
import pytest

from clustermodel.theory.rigid_jobs import fcfs_mean_response
from tests.statistical.multiserver_jobs import COLUMNS, HIGHEST_LOAD, points, simulate_point, z

pytestmark = pytest.mark.statistical

WITHIN = 2.576
"""Standard errors on both sides of a 99 % interval."""


@pytest.mark.parametrize("column", COLUMNS)
def test_the_mean_response_is_that_of_the_table(column: str) -> None:
    _, policy, model = COLUMNS[column]
    simulated = [point for point in points(column) if point.load <= HIGHEST_LOAD and np.isfinite(point.response)]
    assert simulated
    for point in simulated:
        found = simulate_point(point)
        assert abs(z(point, found)) < WITHIN, str(point)  # both have sampling errors
        if point.load <= 0.8:  # an interval so wide that anything fits would prove nothing
            assert found.half_width < 0.02 * found.mean, str(point)
        if policy == "fcfs":
            exact = fcfs_mean_response(model.servers, model.arrival_rate(point.load), model.sizes, model.mean_service)
            assert abs(found.mean - exact) < found.half_width, str(point)
