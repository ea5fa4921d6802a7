"""Bisection by a loop of our own, which compiled modules use, against the standard library."""

import bisect
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustermodel.machine import node_set

SMALL = st.integers(-5, 5)
TIMES = SMALL | st.integers(-(2**70), 2**70)


def own(name: str) -> Callable[[list[int], int, int], int]:
    """Return the function as it is compiled; interpreted, the library's takes its place."""
    source = Path(node_set.__file__).with_name("node_set.py")
    names: dict[str, object] = {"__file__": "node_set.so", "__name__": "node_set"}
    exec(compile(source.read_text(), source, "exec"), names)
    function = names[name]
    assert callable(function)
    assert function is not getattr(bisect, name)
    return function


@pytest.mark.parametrize("name", ["bisect_left", "bisect_right"])
@given(values=st.lists(TIMES, max_size=12).map(sorted), value=TIMES, low=st.integers(0, 12))
def test_it_finds_the_place_that_the_library_finds(name: str, values: list[int], value: int, low: int) -> None:
    low = min(low, len(values))
    expected = getattr(bisect, name)(values, value, low)
    assert getattr(node_set, name)(values, value, low) == expected
    assert own(name)(values, value, low) == expected
