"""Which sizes a job can have; what is made of them is in tests/timeline/test_backfilling.py."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustermodel import SpecificationError
from clustermodel.policies.backfilling.moldable import Greedy, sizes_of
from clustermodel.policies.backfilling.scheduler import Backfilling
from tests.timeline.timeline import play


@pytest.mark.parametrize(
    ("width", "sizes"),
    [
        ("half", {(1, 8): [1], (2, 8): [1], (3, 8): [2], (4, 8): [2], (5, 8): [3], (8, 8): [4]}),
        ("quarter", {(1, 99): [1], (2, 99): [1], (3, 99): [2], (4, 99): [2], (5, 99): [2], (8, 99): [2], (9, 99): [3]}),
        ("greedy", {(4, 16): [4, 2, 8], (1, 16): [1, 2], (9, 16): [9, 5, 16], (16, 16): [16, 8]}),
        (Greedy((0.25, 1.0)), {(1, 16): [1]}),
        (0.3, {(10, 99): [3], (11, 99): [4]}),
        (3, {(10, 16): [16]}),
        (1e-300, {(10, 16): [1]}),
        (1e308, {(10, 16): [16]}),
        (np.float64(0.5), {(10, 16): [5]}),
        (np.int64(2), {(5, 16): [10]}),
    ],
)
def test_sizes_by_nodes_asked_for_and_nodes_of_the_machine(width: Any, sizes: dict[tuple[int, int], list[int]]) -> None:
    assert {asked: list(sizes_of(width).sizes(*asked)) for asked in sizes} == sizes


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
    with pytest.raises(SpecificationError, match=r"^backfilling: width: 1\.5 is not a whole number; it must be an integer$"):
        play(4, "1 0 1 10", Backfilling(width=Always(1.5)))
