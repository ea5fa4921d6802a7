"""Overlaps of intervals, by which delays by later jobs are found, against looking at every pair; and distinct values."""

import numpy as np
import pytest

from clustermodel.arrays import distinct
from clustermodel.measure.fairness import _Intervals


@pytest.mark.parametrize("number", [0, 1, 63, 64, 65, 500])
def test_the_intervals_that_overlap_others_are_found(number: int) -> None:
    rng = np.random.default_rng(number)
    start = np.sort(rng.integers(0, 300, number))
    end = start + rng.integers(0, 20, number) * np.where(rng.random(number) < 0.05, 20, 1)  # a few last long
    since = rng.integers(-10, 320, 200)
    until = since + rng.integers(1, 60, 200)
    intervals = _Intervals(start, end)
    found = np.stack(intervals.overlapping(since, until), axis=1)
    assert sorted(found.tolist()) == np.argwhere((start < until[:, None]) & (end > since[:, None])).tolist()


def test_blocks_are_all_others_in_order() -> None:
    start = np.arange(1_000)
    intervals, since = _Intervals(start, start + 50), np.arange(0, 1_000, 3)
    blocks = list(intervals.blocks(since, since + 10, most=500))
    assert len(blocks) > 10
    assert np.array_equal(np.concatenate([since[block] for block in blocks]), since)
    assert list(intervals.blocks(since[:0], since[:0])) == []


def test_distinct_values_are_those_of_numpy() -> None:
    rng = np.random.default_rng(1)
    for values in (rng.integers(-(2**63), 2**63 - 1, 50), rng.integers(0, 5, 50), rng.random(50), np.empty(0, dtype=np.int64)):
        assert np.array_equal(distinct(np.append(values, values)), np.unique(values))
