"""The watched ratios against their bounds; ``python -m tests.bench.record`` measures the same ratios for a commit."""

import pytest

from tests.bench.timing import require_at_most
from tests.bench.watched import WATCHED, Watched, is_compiled


@pytest.mark.parametrize(
    "watched",
    [pytest.param(one, id=one.name, marks=pytest.mark.slow_bench if one.is_slow else pytest.mark.bench) for one in WATCHED],
)
def test_a_watched_ratio_is_within_its_bound(watched: Watched) -> None:
    bound = watched.compiled_at_most if is_compiled() else watched.at_most

    def measure() -> float:
        ratio = watched.ratio()
        print(f"\n{watched.name}: {ratio:.2f}")
        return ratio

    require_at_most(bound, measure)
