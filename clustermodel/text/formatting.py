"""Numbers, symbols and tables as people read them: digits of a column, units of time, cells, and small tables for notebooks.

Text in tables is escaped, and no colour is fixed, for dark themes.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import floor, isfinite, isnan, log10
from typing import Any, Final, NamedTuple

from clustermodel.errors import visible

UNDEFINED: Final = "-"  # a value that does not exist
MOST_ROWS: Final = 40  # of a table in a notebook
_LONGEST: Final = 120  # characters of a text in a cell
_LEAST_SCIENTIFIC: Final = 1e15
_SMALLEST: Final = 1e-4
_MOST_DIGITS: Final = 5
_IN_ASCII: Final = str.maketrans(
    {
        "ρ": "rho", "κ": "kappa", "φ": "phi", "Γ": "Gamma", "λ": "lambda", "μ": "mu", "σ": "sigma", "α": "alpha", "δ": "delta",
        "Δ": "Delta", "±": "+-", "×": "x", "·": ".", "−": "-", "–": "-", "—": "-", "…": "...", "≤": "<=", "≥": ">=",
        "≠": "!=", "≈": "~", "→": "->", "“": '"', "”": '"', "‘": "'", "’": "'",
    }
)  # fmt: skip


class TimeUnit(NamedTuple):
    """A unit of time."""

    symbol: str
    name: str
    seconds: float


_SECOND: Final = TimeUnit("s", "seconds", 1.0)
_LONGER: Final = (TimeUnit("d", "days", 86_400.0), TimeUnit("h", "hours", 3600.0), TimeUnit("min", "minutes", 60.0))


def time_unit(seconds: float) -> TimeUnit:
    """Return the largest unit of which a time has at least three; seconds for shorter times and for ``nan``."""
    return next((unit for unit in _LONGER if seconds >= 3 * unit.seconds), _SECOND)


def time_units(columns: Mapping[str, Sequence[float | None]]) -> dict[str, TimeUnit]:
    """Return the units of columns of seconds, by name: one for all, that of the median of the times above zero.

    A column whose times would all be near zero in it has a unit of its own.
    """
    from statistics import median  # noqa: PLC0415  for which --help need not wait

    known = {name: [value for value in values if value and isfinite(value) and value > 0] for name, values in columns.items()}
    common = time_unit(median([value for values in known.values() for value in values] or [0.0]))
    near_zero = {name for name, values in known.items() if values and max(values) < common.seconds / 10}
    return {name: time_unit(median(values)) if name in near_zero else common for name, values in known.items()}


def duration(seconds: float) -> str:
    """Return a time with a legible unit, such as ``"2.35 h"``."""
    unit = time_unit(abs(seconds))
    return f"{four_digits(seconds / unit.seconds)} {unit.symbol}"


def four_digits(value: float) -> str:
    """Return a number with about four significant digits; integers of any size in full."""
    if isnan(value):
        return UNDEFINED
    if value and not _SMALLEST <= abs(value) < _LEAST_SCIENTIFIC:
        return f"{value:.3e}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def cell(value: Any) -> str:
    """Return any value as the text of a cell."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a number of numpy
        return cell(value.item())
    if value is None or isinstance(value, float):
        return UNDEFINED if value is None else four_digits(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def aligned(values: Sequence[float | None], *, places: int | None = None) -> list[str]:
    """Return the numbers of a column with the same number of decimal places; ``None`` and ``nan`` are undefined.

    By default these show three significant digits of the smallest number, as far as the largest has no more than five digits.
    A positive number that would be shown as zero is ``"<0.01"`` or the like.
    """
    known = [abs(value) for value in values if value and isfinite(value)]
    if places is None:
        places = _places(min(known), max(known)) if known else 0
    return [_fixed(value, places) for value in values]


def intervals(means: Sequence[float], halves: Sequence[float]) -> list[str]:
    """Return means with half the width of their intervals, ``"5.31 ± 0.42"``, with the signs below each other.

    A mean is ``nan`` where it is undefined, the half-width that of a single value.
    """
    from statistics import median  # noqa: PLC0415

    known = [half for half in halves if isfinite(half) and half > 0]
    if not known:
        return aligned(means)
    largest = max((abs(mean) for mean in means if isfinite(mean)), default=0.0)
    typical = median(abs(mean) for mean in means if isfinite(mean))
    places = _places(min([*known, *([typical] if typical else [])]), max(largest, *known), digits=2)
    shown = ["" if isnan(mean) or isnan(half) else _fixed(half, places) for mean, half in zip(means, halves, strict=True)]
    wide = max(map(len, shown))
    cells = zip([_fixed(mean, places) for mean in means], shown, strict=True)
    return [f"{mean} ± {half:>{wide}}" if half else mean + " " * (wide + 3) for mean, half in cells]


def _places(smallest: float, largest: float, digits: int = 3) -> int:
    """Return how many decimal places show the digits of the smallest number, as far as the largest stays short."""
    return max(0, min(digits - 1 - floor(log10(smallest)), _MOST_DIGITS - 1 - max(0, floor(log10(largest)))))


def _fixed(value: float | None, places: int) -> str:
    if value is None or isnan(value):
        return UNDEFINED
    if abs(value) >= _LEAST_SCIENTIFIC:
        return f"{value:.3e}"
    smallest = 10.0**-places
    if 0 < value < smallest / 2:
        return f"<{smallest:.{places}f}"
    return f"{value:,.{places}f}"


def encodable(text: str, encoding: str) -> str:
    r"""Return text that a stream can encode: symbols as words or ASCII signs, any other character as ``\xe9``."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_IN_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    return text


def escaped(value: object) -> str:
    """Return any value as text for a page: at most 120 characters, control characters written out."""
    text = visible(str(value))
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 3 :]}"
    from html import escape  # noqa: PLC0415  of pages only

    return escape(text)


def html_table(heading: str, columns: Iterable[tuple[str, Sequence[object]]], *, right: Sequence[bool] = ()) -> str:
    """Return a table of titles and cells with a heading above it, and a line below it if rows are left out.

    ``right`` says whether each column is aligned on the right; by default those of numbers and undefined values are.
    """
    titles, cells = zip(*columns, strict=True)
    sides = list(right) or [all(map(_is_number, values)) for values in cells]
    rows = list(zip(*cells, strict=True))
    head = "".join(map(partial(_element, "th"), titles, sides))
    body = ["".join(map(partial(_element, "td"), row, sides)) for row in rows[:MOST_ROWS]]
    below = f"<div>{MOST_ROWS:,} of {len(rows):,} rows</div>" if len(rows) > MOST_ROWS else ""
    return _table(heading, body, f"<thead><tr>{head}</tr></thead>") + below


def html_fields(heading: str, fields: Iterable[tuple[str, object]]) -> str:
    """Return a table with a row for each field, its name and its value, with a heading above it."""
    return _table(heading, [_element("th", name) + _element("td", value) for name, value in fields])


def _table(heading: str, rows: Iterable[str], head: str = "") -> str:
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<div><strong>{escaped(heading)}</strong></div><table>{head}<tbody>{body}</tbody></table>"


def _element(tag: str, value: Any, right: bool = False) -> str:
    return f'<{tag} style="text-align: {"right" if right else "left"}">{escaped(cell(value))}</{tag}>'


def _is_number(value: object) -> bool:
    return value is None or (not isinstance(value, bool | str) and hasattr(value, "__float__"))
