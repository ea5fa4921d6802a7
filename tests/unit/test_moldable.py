"""Which sizes a job can have; what is made of them is in tests/timeline/test_backfilling.py."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustermodel import SpecificationError
from clustermodel.policies.backfilling.parts import SIZES, Greedy, QuarterSize, sizes_of
from clustermodel.policies.backfilling.scheduler import Backfilling
from tests.timeline.timeline import play


def test_half_size_leaves_sequential_jobs_as_they_are() -> None:
    assert [SIZES["half"].sizes(nodes, 8) for nodes in range(1, 9)] == [(1,), (1,), (2,), (2,), (3,), (3,), (4,), (4,)]


def test_a_quarter_is_for_jobs_wider_than_four_nodes_and_half_for_the_others() -> None:
    assert [SIZES["quarter"].sizes(nodes, 99) for nodes in (1, 2, 3, 4, 5, 8, 9, 16)] == [
        (1,), (1,), (2,), (2,), (2,), (2,), (3,), (4,),
    ]  # fmt: skip
    assert isinstance(SIZES["quarter"], QuarterSize)


def test_greedy_tries_what_was_asked_half_and_double_each_once_and_not_more_than_the_machine_has() -> None:
    greedy = SIZES["greedy"]
    assert list(greedy.sizes(4, 16)) == [4, 2, 8]
    assert list(greedy.sizes(1, 16)) == [1, 2]
    assert list(greedy.sizes(9, 16)) == [9, 5, 16]
    assert list(greedy.sizes(16, 16)) == [16, 8]
    assert list(Greedy((0.25, 1.0)).sizes(1, 16)) == [1]


def test_any_share_is_rounded_up_and_fits_the_machine() -> None:
    assert sizes_of(0.3).sizes(10, 99) == (3,)
    assert sizes_of(0.3).sizes(11, 99) == (4,)
    assert sizes_of(3).sizes(10, 16) == (16,)
    assert sizes_of(1e-300).sizes(10, 16) == (1,)
    assert sizes_of(1e308).sizes(10, 16) == (16,)
    assert sizes_of(np.float64(0.5)).sizes(10, 16) == (5,)  # type: ignore[arg-type]
    assert sizes_of(np.int64(2)).sizes(5, 16) == (10,)  # type: ignore[arg-type]


@given(nodes=st.integers(1, 100_000), hundredths=st.integers(1, 500))
def test_a_share_written_in_decimals_means_them(nodes: int, hundredths: int) -> None:
    # 100 x 0.07 is 7.000000000000001 in floats; seven nodes are meant
    exact = (Decimal(nodes) * hundredths / 100).to_integral_value(ROUND_CEILING)
    assert sizes_of(hundredths / 100).sizes(nodes, 10**9) == (int(exact),)


class Always:
    """A part of one's own that gives every job the same alternatives."""

    def __init__(self, *alternatives: Any) -> None:
        self.alternatives = alternatives

    def sizes(self, nodes: int, most: int) -> Sequence[int]:
        return self.alternatives


def test_a_part_of_ones_own_chooses_the_sizes() -> None:
    result = play(4, "1 0 1 10", Backfilling(width=Always(2)))
    assert result.jobs["allocated_nodes"].tolist() == [2]
    assert result.jobs["end_s"].tolist() == [5]


@pytest.mark.parametrize("alternatives", [(), (0,), (2, 0), (-1,), (5,), (2, 99)])
def test_a_part_that_gives_a_width_the_machine_does_not_have_is_refused_by_name(alternatives: tuple[int, ...]) -> None:
    with pytest.raises(SpecificationError) as refused:
        play(4, "1 0 1 10", Backfilling(width=Always(*alternatives)))
    expected = f"backfilling: width: Always gives a job of 1 nodes the alternatives {list(alternatives)}; "
    assert str(refused.value) == expected + "there must be at least one, and each must be from 1 to 4"


def test_a_part_that_gives_half_a_node_is_refused_by_name() -> None:
    with pytest.raises(SpecificationError, match=r"^backfilling: width: 1\.5 is not a whole number; it must be an integer$"):
        play(4, "1 0 1 10", Backfilling(width=Always(1.5)))
