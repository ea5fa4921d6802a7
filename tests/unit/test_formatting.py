"""Numbers and symbols as people read them."""

from math import inf, nan

import numpy as np
import pytest

from clustermodel.text.formatting import aligned, cell, duration, encodable, four_digits, intervals, time_unit, time_units


@pytest.mark.parametrize(
    ("seconds", "symbol"), [(0, "s"), (179, "s"), (180, "min"), (10_799, "min"), (10_800, "h"), (259_200, "d"), (nan, "s")]
)
def test_a_unit_is_the_largest_of_which_there_are_three(seconds: float, symbol: str) -> None:
    assert time_unit(seconds).symbol == symbol


def test_columns_of_times_share_a_unit_unless_one_would_be_zero_in_it() -> None:
    units = time_units({"response": [20_000.0, 40_000.0], "wait": [9_000.0, nan], "median": [0.0, 0.0], "small": [2.0, None]})
    assert {name: unit.symbol for name, unit in units.items()} == {"response": "h", "wait": "h", "median": "h", "small": "s"}
    assert time_units({"none": [None, nan, inf]})["none"].symbol == "s"


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([15_176.6, 2_053.9, 0.0], ["15,177", "2,054", "0"]),
        ([4.2157, 0.5705, 0.5261], ["4.216", "0.571", "0.526"]),
        ([0.0, 0.0], ["0", "0"]),
        ([1e9 / 86_400], ["11,574"]),
        ([123_456.0, 0.01], ["123,456", "<1"]),
        ([nan, None, 2.5], ["-", "-", "2.50"]),
        ([1e300, 2.0], ["1.000e+300", "2"]),
        ([], []),
    ],
)
def test_a_column_has_one_number_of_decimal_places(values: list[float | None], texts: list[str]) -> None:
    assert aligned(values) == texts


def test_a_share_that_is_not_zero_is_not_shown_as_zero() -> None:
    assert aligned([2.984, 0.0001, 0.0], places=2) == ["2.98", "<0.01", "0.00"]


def test_intervals_have_two_digits_of_the_smallest_half() -> None:
    assert intervals([95.34, 102.3, 7.0], [54.3, 6.3, nan]) == ["95.3 ± 54.3", "102.3 ±  6.3", "7.0       "]
    assert intervals([1.0, nan], [nan, nan]) == ["1.00", "-"]
    assert intervals([0.0], [0.0]) == ["0"]


def test_any_value_is_a_cell() -> None:
    cells = [None, nan, True, np.bool_(False), 1_234_567, 0.12345, np.float64(1e-9), "text", np.int64(3), float(2**60)]
    assert [cell(one) for one in cells] == [
        "-", "-", "yes", "no", "1,234,567", "0.1235", "1.000e-09", "text", "3", "1.153e+18",
    ]  # fmt: skip
    assert (four_digits(12_345.6), duration(8_460), duration(0.5)) == ("12,346", "141 min", "0.5 s")


def test_symbols_become_words_where_a_stream_cannot_encode_them() -> None:
    text = "utilization ρ, loss of capacity κ, 2 ± 1 – 3 × 4 é"
    assert encodable(text, "utf-8") == text
    assert encodable(text, "ascii") == "utilization rho, loss of capacity kappa, 2 +- 1 - 3 x 4 \\xe9"
    assert encodable(text, "latin-1") == "utilization rho, loss of capacity kappa, 2 +- 1 - 3 x 4 é"
