"""Small tables for notebooks: what ``_repr_html_`` returns.  Text is escaped, and no colour is fixed, for dark themes."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any, Final

from clustermodel.errors import visible
from clustermodel.readable import cell

MOST_ROWS: Final = 40
"""Rows of a table in a notebook."""
_LONGEST: Final = 120
"""Characters of a text in a cell."""


def escaped(value: object) -> str:
    """Return any value as text for a page: at most 120 characters, control characters written out."""
    text = visible(str(value))
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 3 :]}"
    return html.escape(text)


def html_table(heading: str, columns: Iterable[tuple[str, Sequence[object]]], *, right: Sequence[bool] = ()) -> str:
    """Return a table with a heading above it, and a line below it if rows are left out.

    Args:
        heading: one line.
        columns: titles and cells.
        right: whether each column is aligned on the right; by default those of numbers and undefined values.
    """
    shown = list(columns)
    sides = list(right) or [all(map(_is_number, cells)) for _, cells in shown]
    titles = "".join(_element("th", title, right=side) for (title, _), side in zip(shown, sides, strict=True))
    rows = list(zip(*(cells for _, cells in shown), strict=True))
    lines = [
        "".join(_element("td", value, right=side) for value, side in zip(row, sides, strict=True)) for row in rows[:MOST_ROWS]
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    below = f"<div>{MOST_ROWS:,} of {len(rows):,} rows</div>" if len(rows) > MOST_ROWS else ""
    return f"{_heading(heading)}<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>{below}"


def html_fields(heading: str, fields: Iterable[tuple[str, object]]) -> str:
    """Return a table with a row for each field, its name and its value, with a heading above it."""
    rows = [_element("th", name, right=False) + _element("td", value, right=False) for name, value in fields]
    lines = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"{_heading(heading)}<table><tbody>{lines}</tbody></table>"


def _heading(text: str) -> str:
    return f"<div><strong>{escaped(text)}</strong></div>"


def _element(tag: str, value: Any, *, right: bool) -> str:
    return f'<{tag} style="text-align: {"right" if right else "left"}">{escaped(cell(value))}</{tag}>'


def _is_number(value: object) -> bool:
    """Return whether a cell is aligned as a number: it is one, or undefined."""
    return value is None or (not isinstance(value, bool | str) and hasattr(value, "__float__"))
