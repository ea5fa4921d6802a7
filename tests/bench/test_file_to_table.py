"""From a trace to its tables by the command line: no part but the simulation takes more than a quarter of the time."""

import pytest

from tests.bench import file_to_table
from tests.bench.timing import require_at_most


@pytest.mark.parametrize(
    ("trace", "rounds"),
    [
        pytest.param("KTH-SP2-1996-2.2", 3, marks=pytest.mark.bench),
        pytest.param("CEA-Curie-2011-2.1-cln", 1, marks=pytest.mark.slow_bench),
    ],
)
def test_the_simulation_takes_most_of_the_time(trace: str, rounds: int) -> None:
    def measure() -> float:
        seconds = file_to_table.best_parts(trace, rounds)
        print("\n" + ", ".join(f"{part} {took:.2f} s" for part, took in seconds.items()))
        return file_to_table.largest_share(seconds)

    require_at_most(file_to_table.MOST, measure)
